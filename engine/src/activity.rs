//! The component that each thread is executing, and a watchdog that reports runs that make no progress.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tracing::warn;

const SLOTS: usize = 1024;
/// Number of the component that each thread is executing, plus 1; 0 for none.
static CURRENT: [AtomicU32; SLOTS] = [const { AtomicU32::new(0) }; SLOTS];
static THREADS: AtomicU64 = AtomicU64::new(0);
static BEATS: AtomicU64 = AtomicU64::new(0);

/// The last step that the only run of this process reached; `u64::MAX` before the first.
/// Components finish their files: the last checkpoint follows.
static FINISHING: AtomicBool = AtomicBool::new(false);
static STEP: AtomicU64 = AtomicU64::new(u64::MAX);

thread_local! {
    static SLOT: usize = THREADS.fetch_add(1, Ordering::Relaxed) as usize % SLOTS;
    /// What this thread is executing, for the handler of fatal signals.
    static WORK: Cell<Option<Work>> = const { Cell::new(None) };
}

/// A component and its method in execution. The text outlives the [`Activity`] that it is part of.
#[derive(Clone, Copy)]
pub struct Work {
    id: u32,
    name: *const str,
    method: &'static str,
}

/// Marks this thread as executing a component until the value is dropped.
pub struct Activity<'a> {
    slot: usize,
    before: u32,
    work_before: Option<Work>,
    name: PhantomData<&'a str>,
}

/// Marks this thread as executing a method of a component.
pub fn enter<'a>(id: u32, name: &'a str, method: &'static str) -> Activity<'a> {
    announce(name, method);
    enter_work(Work { id, name: std::ptr::from_ref(name), method })
}

fn enter_work<'a>(work: Work) -> Activity<'a> {
    let slot = SLOT.with(|s| *s);
    let before = CURRENT[slot].swap(work.id.wrapping_add(1), Ordering::Relaxed);
    Activity { slot, before, work_before: WORK.replace(Some(work)), name: PhantomData }
}

impl Drop for Activity<'_> {
    fn drop(&mut self) {
        CURRENT[self.slot].store(self.before, Ordering::Relaxed);
        WORK.set(self.work_before);
    }
}

/// Work that a component passes to other threads.
#[derive(Clone, Copy)]
pub struct Shared(Option<Work>);

// SAFETY: the component's call waits for the threads that it shares its work with, so its name outlives their use of it
unsafe impl Send for Shared {}
// SAFETY: threads only read the name through a shared reference; it is never written, and it outlives their use of it
unsafe impl Sync for Shared {}

impl Shared {
    /// Returns what this thread is executing.
    pub fn of_this_thread() -> Self {
        Self(WORK.get())
    }

    /// Marks this thread as executing the same.
    pub fn enter(&self) -> Option<Activity<'_>> {
        self.0.map(enter_work)
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

/// Says that the components of a run finish their files, which may take some time beyond the wall time.
pub fn finishing() {
    FINISHING.store(true, Ordering::Relaxed);
}

/// Reports the step that the run has reached, unless several runs share the process.
pub fn reached(step: u64) {
    if crate::log::run_name().is_none() {
        STEP.store(step, Ordering::Relaxed);
    }
}

/// Optional arrays whose address is null, with the component that asked for it; [`ANY`] for those of the views, which every
/// component gets.
static NULL_ARRAYS: Mutex<Vec<(u32, &'static str)>> = Mutex::new(vec![]);
/// Stands for every component, and for work that belongs to none of a run.
pub const ANY: u32 = u32::MAX;

/// Remembers that the component of this thread asked for an array that does not exist.
pub fn asked_for_null(name: &str) {
    note_null(WORK.get().map_or(ANY, |w| w.id), name);
}

/// Remembers that an array of the views does not exist.
pub fn null_in_views(name: &str) {
    note_null(ANY, name);
}

fn note_null(id: u32, name: &str) {
    let mut all = NULL_ARRAYS.lock().unwrap_or_else(PoisonError::into_inner);
    if !all.iter().any(|(i, n)| *i == id && *n == name) {
        // a run has few names, and the handler of a fatal signal must be able to read them
        all.push((id, String::from(name).leak()));
    }
}

/// What was under way when a fatal signal came.
pub struct AtCrash<'a> {
    /// Component and method of this thread.
    pub component: Option<(&'a str, &'static str)>,
    /// The last step that the run reached.
    pub step: Option<u64>,
    /// Optional arrays that are null for this component.
    pub null_arrays: &'a mut dyn Iterator<Item = &'static str>,
}

/// Calls `f` with what this thread is executing. For handlers of fatal signals: it waits for no lock and takes no memory.
pub fn at_crash(f: impl FnOnce(AtCrash<'_>)) {
    let work = WORK.get();
    // SAFETY: the name outlives the `Activity` that set it, and that of this thread has not been dropped
    let component = work.map(|w| (unsafe { &*w.name }, w.method));
    let step = Some(STEP.load(Ordering::Relaxed)).filter(|s| *s != u64::MAX);
    let known = NULL_ARRAYS.try_lock();
    let of = |id: u32| known.iter().flat_map(|k| k.iter()).filter(move |(i, _)| *i == id).map(|(_, name)| *name);
    // what the component asked for explains a null address better than what it might have read
    let asked = work.map(|w| w.id).filter(|id| of(*id).next().is_some());
    f(AtCrash { component, step, null_arrays: &mut of(asked.unwrap_or(ANY)) });
}

/// Returns whether any thread is executing a component.
fn is_in_component() -> bool {
    CURRENT.iter().any(|s| s.load(Ordering::Relaxed) > 0)
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

/// Returns how long a run or a start of several processes may wait without a message: `GALAMOST_PATIENCE` seconds, at least 1, by
/// default 60.
pub fn patience() -> Duration {
    let seconds = std::env::var("GALAMOST_PATIENCE").ok().and_then(|s| s.parse().ok()).unwrap_or(60.0_f64).max(1.0);
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_secs(60))
}

/// A watchdog thread that observes the run until the value is dropped.
pub struct Watch {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts the watchdog. It warns if the run makes no progress for `patience`, and again after twice, four times, …
    /// that time, and names the component. After `deadline` it calls `give_up` for a run without progress. A component that does not
    /// return has a twelfth of the time beyond the deadline (5 s by default): what the engine does then, such as writing the last checkpoint, is
    /// worth more patience.
    pub fn start(
        names: Vec<(u32, String)>,
        patience: Duration,
        deadline: Option<Instant>,
        give_up: impl FnOnce(String) + Send + 'static,
    ) -> Self {
        FINISHING.store(false, Ordering::Relaxed);
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
                let grace = patience / 12;
                let finishing = FINISHING.load(Ordering::Relaxed);
                let beyond =
                    |d: Instant| Instant::now() >= d + grace && still >= grace && is_in_component() && !finishing;
                if still < patience && !deadline.is_some_and(beyond) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// The engine would have the whole minute, but a component that does not return has seconds.
    #[test]
    fn a_component_has_little_time_beyond_the_walltime() {
        let (send, given_up) = mpsc::channel();
        let _activity = enter(7, "Render", "analyze");
        let names = vec![(7, "Render".to_string())];
        let (patience, deadline) = (Duration::from_millis(2400), Instant::now());
        let begun = Instant::now();
        let _watch = Watch::start(names, patience, Some(deadline), move |message| {
            let _ = send.send(message);
        });
        let message = given_up.recv_timeout(Duration::from_secs(60)).expect("given up");
        assert!(message.contains("the run is in ") && message.contains("Render"), "{message}");
        assert!(begun.elapsed() < patience, "{:?}", begun.elapsed());
    }
}
