//! Which component every thread is in, and a look from outside at whether the run still moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tracing::warn;

const SLOTS: usize = 1024;
/// Number of the component that a thread is in, plus 1.
static INSIDE: [AtomicU32; SLOTS] = [const { AtomicU32::new(0) }; SLOTS];
static THREADS: AtomicU64 = AtomicU64::new(0);
static BEATS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static SLOT: usize = THREADS.fetch_add(1, Ordering::Relaxed) as usize % SLOTS;
}

/// This thread is inside of a component until the value is dropped.
pub struct Inside {
    slot: usize,
    before: u32,
}

/// Notes that this thread enters a component.
pub fn enter(component: u32) -> Inside {
    let slot = SLOT.with(|s| *s);
    Inside { slot, before: INSIDE[slot].swap(component.wrapping_add(1), Ordering::Relaxed) }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE[self.slot].store(self.before, Ordering::Relaxed);
    }
}

/// The run has moved on.
pub fn beat() {
    BEATS.fetch_add(1, Ordering::Relaxed);
}

/// What the run is told to be in, by the names of components.
fn inside(names: &[(u32, String)]) -> String {
    let mut all: Vec<&str> = INSIDE
        .iter()
        .filter_map(|s| s.load(Ordering::Relaxed).checked_sub(1))
        .map(|id| names.iter().find(|(i, _)| *i == id).map_or("a component", |(_, n)| n))
        .collect();
    all.sort_unstable();
    all.dedup();
    if all.is_empty() { "the engine, or kernels on the device".into() } else { all.join(", ") }
}

/// Looks at a run from outside until it is dropped.
pub struct Watch {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Warns when the run has not moved for `patience`, and again after twice as long, four times as long, …; says in which
    /// component it is. At `deadline` a run that does not move is ended by `give_up`.
    pub fn start(
        names: Vec<(u32, String)>,
        patience: Duration,
        deadline: Option<Instant>,
        give_up: impl FnOnce(String) + Send + 'static,
    ) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let seen = over.clone();
        let look = move || {
            let (mut beats, mut since, mut next) = (BEATS.load(Ordering::Relaxed), Instant::now(), patience);
            while !seen.load(Ordering::Relaxed) {
                std::thread::park_timeout((patience / 4).min(Duration::from_secs(1)));
                let now = BEATS.load(Ordering::Relaxed);
                if now != beats {
                    (beats, since, next) = (now, Instant::now(), patience);
                    continue;
                }
                let still = since.elapsed();
                if still < patience {
                    continue;
                }
                let place = inside(&names);
                if deadline.is_some_and(|d| Instant::now() >= d) {
                    return give_up(format!(
                        "nothing has moved for {:.0} s; the run is in {place}",
                        still.as_secs_f64()
                    ));
                }
                if still >= next {
                    warn!("nothing has moved for {:.0} s; the run is in {place}", still.as_secs_f64());
                    next *= 2;
                }
            }
        };
        // a run goes on without it
        let thread = std::thread::Builder::new().name("watch".into()).spawn(look).ok();
        Self { over, thread }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(t) = self.thread.take() {
            t.thread().unpark();
            let _ = t.join();
        }
    }
}
