//! Kernels that run later: a thread runs them in the order of their launches while the host continues, as on a GPU. So a host
//! that does not wait for a kernel where it must gets wrong results.

use super::fail;
use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::error::{Error, Result};
use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A function that writes the size of each argument of a kernel, and returns their number.
pub type Sizes = unsafe extern "C" fn(*mut u32, u32) -> u32;

/// Returns the size of each argument of a kernel.
///
/// # Safety
/// The function is one that GALAMOST_HOST_ENTRY declares.
pub unsafe fn sizes(of: Sizes) -> Vec<u32> {
    // SAFETY: it writes no more numbers than it is asked for (contract of this function)
    let mut all = vec![0; unsafe { of(std::ptr::null_mut(), 0) } as usize];
    // SAFETY: `all` has room for this many numbers
    unsafe { of(all.as_mut_ptr(), all.len() as u32) };
    all
}

/// Copies of the arguments of a launch.
pub struct Arguments(Vec<Vec<u128>>);

impl Arguments {
    /// Copies arguments.
    ///
    /// # Safety
    /// Argument k has `sizes[k]` bytes.
    pub unsafe fn copy(args: &[*mut Opaque], sizes: &[u32]) -> Self {
        let copy = |(from, bytes): (&*mut Opaque, &u32)| {
            let mut to = vec![0u128; bytes.div_ceil(16) as usize];
            // SAFETY: the argument has this size (contract of this function), and the copy is not smaller
            unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), to.as_mut_ptr().cast::<u8>(), *bytes as usize) };
            to
        };
        Self(args.iter().zip(sizes).map(copy).collect())
    }

    /// Returns the addresses of the copies.
    pub fn pointers(&mut self) -> Vec<*mut Opaque> {
        self.0.iter_mut().map(|a| a.as_mut_ptr().cast()).collect()
    }
}

/// A launch.
type Job = Box<dyn FnOnce() -> Result<()> + Send>;

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    running: bool,
    ended: bool,
    /// The first error, until the host waits; kernels that were launched before that do not run.
    error: Option<Error>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(&self, condition: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        self.changed.wait_while(self.lock(), |s| condition(s)).unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs jobs, each after a random delay with this mean, until the stream ends.
    fn work(&self, mean: Duration) {
        let random = RandomState::new();
        for number in 0u64.. {
            let mut state = self.wait_while(|s| s.jobs.is_empty() && !s.ended);
            let Some(job) = state.jobs.pop_front() else { return };
            state.running = true;
            drop(state);
            // 2⁻⁵³ … 1
            let uniform = ((random.hash_one(number) >> 11) + 1) as f64 * f64::EPSILON / 2.0;
            std::thread::sleep(mean.mul_f64(-uniform.ln()));
            let result = job();
            let mut state = self.lock();
            state.running = false;
            if let Err(e) = result {
                state.jobs.clear();
                state.error.get_or_insert(e);
            }
            self.changed.notify_all();
        }
    }
}

/// Kernels of a device that have been launched and not yet run.
pub struct Stream {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

impl Stream {
    /// Starts a stream if `GALAMOST_EMULATED_DELAY` is set, the mean microseconds that each kernel waits before it runs. Waiting times are
    /// random and differ between devices, so a kernel that must wait for another device meets faster and slower ones.
    ///
    /// # Errors
    /// Returns an error if it is not a number.
    pub fn from_environment() -> Result<Option<Self>> {
        let Ok(text) = std::env::var("GALAMOST_EMULATED_DELAY") else { return Ok(None) };
        let bad = |_| fail("GALAMOST_EMULATED_DELAY", format!("`{text}` is not a number of microseconds"));
        let delay = Duration::from_micros(text.parse().map_err(bad)?);
        let queue = Arc::new(Queue::default());
        let worker = queue.clone();
        let thread = std::thread::Builder::new()
            .name("emulated stream".into())
            .spawn(move || worker.work(delay))
            .map_err(|e| fail("emulated device", e))?;
        Ok(Some(Self { queue, thread: Some(thread) }))
    }

    /// Adds a launch.
    pub fn push(&self, job: Job) {
        let mut state = self.queue.lock();
        if state.error.is_none() {
            state.jobs.push_back(job);
        }
        self.queue.changed.notify_all();
    }

    /// Waits for all launches.
    ///
    /// # Errors
    /// Returns the error of the first launch that has failed.
    pub fn wait(&self) -> Result<()> {
        let mut state = self.queue.wait_while(|s| s.running || !s.jobs.is_empty());
        state.error.take().map_or(Ok(()), Err)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.queue.lock().ended = true;
        self.queue.changed.notify_all();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
