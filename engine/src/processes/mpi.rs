//! Messages through an MPI library.

use super::Messages;
use super::control::{Control, DATA, Failed, receive, send, test};
use super::launch::Launch;
use super::library::{ERRORS_RETURN, Functions, SERIALIZED, WORLD, handle, load};
use crate::activity::patience;
use crate::log::{event, is_json};
use galamost_plugin_api::error::{Error, Result};
use serde_json::json;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two signs of life.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time between two looks for failures while a transfer waits.
const LOOK: Duration = Duration::from_millis(20);
/// Time that the run has to end after a failure.
const ENDING: Duration = Duration::from_secs(20);
/// Time that the rank which reports the failure has beyond that, before others report it.
const REPORTING: Duration = Duration::from_secs(5);
/// Time that the launcher has to pass on what was written: a launcher may drop it when it ends all processes.
const PASSING_ON: Duration = Duration::from_millis(500);
/// Bytes of a host's name.
const HOST: usize = 64;

/// The ranks of a run as processes that an MPI launcher has started.
pub struct Mpi {
    shared: Arc<Shared>,
    /// The thread that gives signs of life.
    beats: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    mpi: Functions,
    rank: usize,
    ranks: usize,
    hosts: OnceLock<Vec<String>>,
    control: Mutex<Control>,
    /// Milliseconds; 0 for no limit.
    limit: AtomicU64,
    /// A rank has failed: the messages of the run are no longer in order.
    broken: AtomicBool,
    left: (Mutex<bool>, Condvar),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn name(&self, rank: usize) -> String {
        match self.hosts.get().and_then(|h| h.get(rank)) {
            Some(host) => format!("rank {rank} on host {host}"),
            None => format!("rank {rank}"),
        }
    }

    /// Looks for failures of other ranks.
    fn look(&self) -> Result<Option<Failed>> {
        let mut control = lock(&self.control);
        control.listen(&self.mpi, |rank| self.name(rank))?;
        if control.failed.is_some() {
            self.broken.store(true, Ordering::Relaxed);
        }
        Ok(control.failed.clone())
    }

    fn fails(&self) -> Result<()> {
        self.look()?.map_or(Ok(()), |failed| Err(failed.error))
    }

    /// Gives signs of life until this process leaves, and ends it if the run does not end after a failure.
    fn beats(&self) {
        let mut failed_at = None;
        let mut last = Instant::now();
        loop {
            let left = lock(&self.left.0);
            if self.left.1.wait_timeout_while(left, INTERVAL, |left| !*left).is_ok_and(|(left, _)| *left) {
                return;
            }
            let mut control = lock(&self.control);
            // a process that was stopped has heard of nobody meanwhile
            control.forgive(last.elapsed().saturating_sub(2 * INTERVAL));
            last = Instant::now();
            let done = control.beat(&self.mpi).and_then(|()| control.listen(&self.mpi, |rank| self.name(rank)));
            if let Err(e) = done {
                control.failed.get_or_insert(Failed { error: e, lost: None });
            }
            control.find_lost(|rank| self.name(rank));
            let Some(failed) = control.failed.clone() else { continue };
            drop(control);
            let more = if reports(self.rank, failed.lost) { Duration::ZERO } else { REPORTING };
            if failed_at.get_or_insert_with(Instant::now).elapsed() > ENDING + more {
                report(&failed.error.to_string(), 1);
                self.abort(1);
            }
        }
    }

    fn abort(&self, code: u8) -> ! {
        std::thread::sleep(PASSING_ON);
        let _control = lock(&self.control);
        // SAFETY: no other thread calls the library
        unsafe { (self.mpi.abort)(handle(WORLD), code.into()) };
        std::process::exit(code.into());
    }
}

/// Writes an error to standard error, which may be closed, before the process ends with this status.
fn report(message: &str, status: u8) {
    if is_json() {
        event("error", json!({"status": status, "message": message}));
        event("end", json!({"status": status}));
    } else {
        let _ = writeln!(std::io::stderr(), "error: {message}");
    }
}

/// Ends this process, `who`, unless the returned value is dropped within [`patience`]: the library waits without limit for processes that
/// cannot start it.
fn end_unless_started(who: &str) -> Sender<()> {
    let (sender, receiver) = channel();
    let limit = patience();
    let message = format!("{who} cannot join the others: not all have started after {} s", limit.as_secs_f64());
    std::thread::spawn(move || {
        if receiver.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            report(&message, 2);
            std::process::exit(2);
        }
    });
    sender
}

/// Returns whether this rank reports a failure: the first one that is left.
fn reports(rank: usize, lost: Option<usize>) -> bool {
    rank == usize::from(lost == Some(0))
}

impl Mpi {
    /// Starts the library and joins the processes of the launcher. All of them call it.
    ///
    /// # Errors
    /// Returns an error if there is no library, or if it does not belong to the launcher.
    pub fn join(launch: &Launch) -> Result<Self> {
        let [rank_variable, ranks_variable] = launch.variables;
        let who = format!("process {} of {} ({rank_variable}, {ranks_variable})", launch.rank, launch.ranks);
        let (mpi, path) = load().map_err(|e| Error::Run(format!("{who} cannot join the others: {e}")))?;
        let started = end_unless_started(&who);
        let (mut provided, mut rank, mut ranks) = (0, 0, 0);
        // SAFETY: the pointers are valid; this is the only thread that calls the library
        unsafe {
            let nothing = std::ptr::null_mut();
            let result = (mpi.init_thread)(nothing, nothing.cast(), SERIALIZED, &raw mut provided);
            mpi.check("start", result)?;
            mpi.check("start", (mpi.set_errhandler)(handle(WORLD), handle(ERRORS_RETURN)))?;
            mpi.check("start", (mpi.rank)(handle(WORLD), &raw mut rank))?;
            mpi.check("start", (mpi.size)(handle(WORLD), &raw mut ranks))?;
        }
        drop(started);
        let (rank, ranks) = (rank as usize, ranks as usize);
        let wrong = if ranks != launch.ranks {
            Some(format!(
                "{} did not find them; start them with the mpiexec of this MPI library, or with srun --mpi=pmi2",
                path.display()
            ))
        } else if provided < SERIALIZED {
            Some(format!("the MPI library {} does not support calls from several threads", path.display()))
        } else {
            None
        };
        if let Some(wrong) = wrong {
            // SAFETY: MPI is initialized, and this is the last call of its library
            unsafe { (mpi.finalize)() };
            return Err(Error::Run(format!("{who} cannot join the others: {wrong}")));
        }
        let shared = Arc::new(Shared {
            mpi,
            rank,
            ranks,
            hosts: OnceLock::new(),
            control: Mutex::new(Control::new(rank, ranks)),
            limit: AtomicU64::new(0),
            broken: AtomicBool::new(false),
            left: (Mutex::new(false), Condvar::new()),
        });
        let thread = shared.clone();
        let beats = std::thread::Builder::new().name("signs of life".into()).spawn(move || thread.beats());
        let beats = beats.map_err(|e| Error::Run(format!("cannot start a thread: {e}")))?;
        let joined = Self { shared, beats: Mutex::new(Some(beats)) };
        joined.exchange_hosts()?;
        Ok(joined)
    }

    fn exchange_hosts(&self) -> Result<()> {
        let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let mut bytes = own.trim().as_bytes().to_vec();
        bytes.resize(HOST, 0);
        let messages: &dyn Messages = self;
        let all = messages.all_gather(&bytes, &vec![HOST; self.ranks()])?;
        let text = |b: &Vec<u8>| String::from_utf8_lossy(b).trim_end_matches('\0').to_string();
        let _ = self.shared.hosts.set(all.iter().map(text).collect());
        Ok(())
    }

    /// Returns the host of each rank.
    pub fn hosts(&self) -> &[String] {
        self.shared.hosts.get().map_or(&[], Vec::as_slice)
    }

    /// Returns the name of a rank for messages.
    pub fn name(&self, rank: usize) -> String {
        self.shared.name(rank)
    }

    /// Returns how many ranks of the same host precede this one.
    pub fn local_rank(&self) -> usize {
        let hosts = self.hosts();
        hosts.iter().take(self.rank()).filter(|h| **h == hosts[self.rank()]).count()
    }

    /// Returns at once in the rank that reports the failure of the run; in others when that rank should have ended the run.
    pub fn wait_for_report(&self) {
        let lost = lock(&self.shared.control).failed.as_ref().and_then(|f| f.lost);
        if !reports(self.rank(), lost) {
            std::thread::sleep(ENDING + REPORTING);
        }
    }

    /// Returns whether a rank has failed in the middle of a run, so that only [`Self::abort`] can end it.
    pub fn is_broken(&self) -> bool {
        self.shared.broken.load(Ordering::Relaxed)
    }

    /// Leaves the other processes at the end of the run. All of them call it.
    ///
    /// # Errors
    /// Returns the library's error.
    pub fn leave(&self) -> Result<()> {
        *lock(&self.shared.left.0) = true;
        self.shared.left.1.notify_all();
        if let Some(beats) = lock(&self.beats).take() {
            let _ = beats.join();
        }
        // the library refuses to end while a message is under way
        lock(&self.shared.control).send_last(&self.shared.mpi)?;
        let begun = Instant::now();
        while !lock(&self.shared.control).may_end(&self.shared.mpi)? {
            self.shared.fails()?;
            lock(&self.shared.control).find_lost(|rank| self.name(rank));
            pause(begun.elapsed());
        }
        // SAFETY: no other thread calls the library
        self.shared.mpi.check("end", unsafe { (self.shared.mpi.finalize)() })
    }

    /// Ends all processes.
    pub fn abort(&self, code: u8) -> ! {
        self.shared.abort(code)
    }
}

impl Messages for Mpi {
    fn rank(&self) -> usize {
        self.shared.rank
    }

    fn ranks(&self) -> usize {
        self.shared.ranks
    }

    fn transfer(&self, sent: Vec<(usize, Vec<u8>)>, expected: &[(usize, usize)]) -> Result<Vec<Vec<u8>>> {
        let s = &*self.shared;
        let mut received: Vec<Vec<u8>> = expected.iter().map(|(_, length)| vec![0; *length]).collect();
        let ranks: Vec<usize> = expected.iter().map(|(r, _)| *r).chain(sent.iter().map(|(r, _)| *r)).collect();
        let mut requests = vec![];
        let begun = Instant::now();
        let mut transfer = || -> Result<()> {
            {
                let _control = lock(&s.control);
                for ((from, _), bytes) in expected.iter().zip(&mut received) {
                    requests.push(receive(&s.mpi, bytes, *from, DATA)?);
                }
                for (to, bytes) in &sent {
                    requests.push(send(&s.mpi, bytes, *to, DATA)?);
                }
            }
            let mut looked = Instant::now();
            loop {
                let done = {
                    let _control = lock(&s.control);
                    test(&s.mpi, &mut requests)?
                };
                if done {
                    return Ok(());
                }
                if looked.elapsed() > LOOK {
                    s.fails()?;
                    looked = Instant::now();
                    let limit = s.limit.load(Ordering::Relaxed);
                    if limit > 0 && begun.elapsed() > Duration::from_millis(limit) {
                        self.lose_slowest(&mut requests, &ranks)?;
                        s.fails()?;
                    }
                }
                pause(begun.elapsed());
            }
        };
        match transfer() {
            Ok(()) => Ok(received),
            Err(e) => {
                s.broken.store(true, Ordering::Relaxed);
                // the library may still write to and read from them
                std::mem::forget((received, sent));
                Err(e)
            }
        }
    }

    fn set_limit(&self, limit: Option<Duration>) {
        self.shared.limit.store(limit.map_or(0, |l| l.as_millis() as u64), Ordering::Relaxed);
    }

    fn check(&self, begun: Instant) -> Result<()> {
        let s = &*self.shared;
        s.fails()?;
        let limit = s.limit.load(Ordering::Relaxed);
        if limit == 0 || begun.elapsed() < Duration::from_millis(limit) {
            return Ok(());
        }
        let seconds = limit / 1000;
        let name = s.name(s.rank);
        Err(Error::Run(format!(
            "the GPU of {name} has not finished for {seconds} s: it hangs, or it waits for the GPU of another rank; resume from \
             the last checkpoint"
        )))
    }

    fn fail(&self, error: &Error) {
        let s = &*self.shared;
        s.broken.store(true, Ordering::Relaxed);
        let mut control = lock(&s.control);
        // others may have heard of this failure before they announced their own; this rank does not wait for them again
        control.failed.get_or_insert(Failed { error: error.clone(), lost: None });
        if let Err(e) = control.announce(&s.mpi, error) {
            tracing::warn!("{e}");
        }
    }

    fn failure(&self, wait: Duration) -> Option<Error> {
        let begun = Instant::now();
        loop {
            match self.shared.look() {
                Ok(None) if begun.elapsed() < wait => std::thread::sleep(LOOK),
                Ok(failed) => return failed.map(|f| f.error),
                Err(e) => return Some(e),
            }
        }
    }
}

impl Mpi {
    /// Notes that the first rank of a transfer that is not complete is lost.
    fn lose_slowest(&self, requests: &mut [*mut std::ffi::c_void], ranks: &[usize]) -> Result<()> {
        let mut control = lock(&self.shared.control);
        for (request, rank) in requests.iter_mut().zip(ranks) {
            if !test(&self.shared.mpi, std::slice::from_mut(request))? {
                control.lose(*rank, &self.name(*rank));
                break;
            }
        }
        Ok(())
    }
}

/// Waits before the next test of a transfer: at first without giving the processor away for long.
fn pause(waited: Duration) {
    match waited.as_micros() {
        0..200 => std::thread::yield_now(),
        200..5000 => std::thread::sleep(Duration::from_micros(20)),
        _ => std::thread::sleep(Duration::from_micros(200)),
    }
}
