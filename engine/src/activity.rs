//! The component that each thread is executing, and a watchdog that reports runs that make no progress.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tracing::warn;

const SLOTS: usize = 1024;
/// Number of the component that each thread is executing, plus 1; 0 for none.
static CURRENT: [AtomicU32; SLOTS] = [const { AtomicU32::new(0) }; SLOTS];
static THREADS: AtomicU64 = AtomicU64::new(0);
static BEATS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static SLOT: usize = THREADS.fetch_add(1, Ordering::Relaxed) as usize % SLOTS;
}

/// Marks this thread as executing a component until the value is dropped.
pub struct Activity {
    slot: usize,
    before: u32,
}

/// Marks this thread as executing a component.
pub fn enter(component: u32) -> Activity {
    let slot = SLOT.with(|s| *s);
    Activity { slot, before: CURRENT[slot].swap(component.wrapping_add(1), Ordering::Relaxed) }
}

impl Drop for Activity {
    fn drop(&mut self) {
        CURRENT[self.slot].store(self.before, Ordering::Relaxed);
    }
}

/// Called with the names of a component and of one of its methods.
type Observer = Box<dyn Fn(&str, &'static str) + Send + Sync>;
static OBSERVER: OnceLock<Observer> = OnceLock::new();

/// Sets a function that this process calls before each call of a component's method. Later calls have no effect.
pub fn observe(observer: impl Fn(&str, &'static str) + Send + Sync + 'static) {
    let _ = OBSERVER.set(Box::new(observer));
}

/// Tells the observer that a method of a component is about to be called.
pub fn announce(component: &str, method: &'static str) {
    if let Some(observer) = OBSERVER.get() {
        observer(component, method);
    }
}

/// Reports progress of the run.
pub fn beat() {
    BEATS.fetch_add(1, Ordering::Relaxed);
}

/// Returns the names of the components that threads are executing.
fn current(names: &[(u32, String)]) -> String {
    let mut all: Vec<&str> = CURRENT
        .iter()
        .filter_map(|s| s.load(Ordering::Relaxed).checked_sub(1))
        .map(|id| names.iter().find(|(i, _)| *i == id).map_or("a component", |(_, n)| n))
        .collect();
    all.sort_unstable();
    all.dedup();
    if all.is_empty() { "the engine, or kernels on the device".into() } else { all.join(", ") }
}

/// A watchdog thread that observes the run until the value is dropped.
pub struct Watch {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts the watchdog. It warns if the run makes no progress for `patience`, and again after twice, four times, …
    /// that time, and names the component. After `deadline` it calls `give_up` for a run without progress.
    pub fn start(
        names: Vec<(u32, String)>,
        patience: Duration,
        deadline: Option<Instant>,
        give_up: impl FnOnce(String) + Send + 'static,
    ) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let end_seen = ended.clone();
        let watch = move || {
            let (mut beats, mut since, mut next) = (BEATS.load(Ordering::Relaxed), Instant::now(), patience);
            while !end_seen.load(Ordering::Relaxed) {
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
                let component = current(&names);
                if deadline.is_some_and(|d| Instant::now() >= d) {
                    return give_up(format!(
                        "nothing has moved for {:.0} s; the run is in {component}",
                        still.as_secs_f64()
                    ));
                }
                if still >= next {
                    warn!("nothing has moved for {:.0} s; the run is in {component}", still.as_secs_f64());
                    next *= 2;
                }
            }
        };
        // the run continues if the thread cannot be started
        let thread = std::thread::Builder::new().name("watch".into()).spawn(watch).ok();
        Self { ended, thread }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(t) = self.thread.take() {
            t.thread().unpark();
            let _ = t.join();
        }
    }
}
