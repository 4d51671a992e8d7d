//! Signals that stop a run or make it write a checkpoint.

use galamost_engine::diagnostic::Failure;
use signal_hook::{consts, flag, low_level};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Signals of a user who may want the program to end at once: the second one does that.
const REQUESTS: [i32; 2] = [consts::SIGINT, consts::SIGTERM];
/// Milliseconds after the first request in which further ones belong to it. GNU `timeout` sends its signal twice: to the program
/// and to its process group.
const ONE_REQUEST: u64 = 1000;
/// The time of the first request before there is one.
const NEVER: u64 = u64::MAX;
/// Exit status after a second request.
const ENDED: i32 = 130;
/// Signals of batch systems and closed terminals, which may repeat them while the checkpoint is written.
const NOTICES: [i32; 3] = [consts::SIGHUP, consts::SIGXCPU, consts::SIGUSR2];

fn failed(e: std::io::Error) -> Failure {
    Failure::run(format!("cannot catch signals: {e}"))
}

/// Makes a file beyond the size limit a write error. By default SIGXFSZ would kill the program.
///
/// # Errors
/// Returns an error if the signal cannot be caught.
pub fn catch_file_size() -> Result<(), Failure> {
    flag::register(consts::SIGXFSZ, Arc::default()).map(drop).map_err(failed)
}

/// The flags of signals during the start of a run: the request to stop, and that to save.
static EARLY: OnceLock<[Arc<AtomicBool>; 2]> = OnceLock::new();

/// Catches the signals of [`signals`] from now on. Those that arrive before it is called are requests to the runs that call it.
///
/// # Errors
/// Returns an error if the signals cannot be caught.
pub fn catch_early() -> Result<(), Failure> {
    let (stop, save) = signals()?;
    let _ = EARLY.set([stop, save]);
    Ok(())
}

/// Returns two flags. SIGINT (Ctrl-C), SIGTERM, SIGHUP, SIGXCPU and SIGUSR2 set the first; a second SIGINT or SIGTERM, more than a
/// second after the first, ends the program at once. SIGUSR1 sets the second flag. SIGHUP stays ignored if it was ignored at the
/// start, as `nohup` does.
///
/// # Errors
/// Returns an error if the signals cannot be caught.
pub fn signals() -> Result<(Arc<AtomicBool>, Arc<AtomicBool>), Failure> {
    let (stop, save) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (begun, first) = (Instant::now(), Arc::new(AtomicU64::new(NEVER)));
    for signal in REQUESTS {
        let (first, stop) = (first.clone(), stop.clone());
        let request = move || {
            if is_second(&first, begun.elapsed().as_millis() as u64) {
                low_level::exit(ENDED);
            }
            stop.store(true, Ordering::SeqCst);
        };
        // SAFETY: the action reads a clock, uses atomics and may end the process, which signal handlers are allowed to do
        unsafe { low_level::register(signal, request) }.map_err(failed)?;
    }
    let ignored = ignored_signals();
    for signal in NOTICES.into_iter().filter(|s| ignored & bit(*s) == 0) {
        flag::register(signal, stop.clone()).map_err(failed)?;
    }
    flag::register(consts::SIGUSR1, save.clone()).map_err(failed)?;
    // after the flags are registered, so that no signal is lost
    for (early, flag) in EARLY.get().into_iter().flatten().zip([&stop, &save]) {
        flag.fetch_or(early.load(Ordering::SeqCst), Ordering::SeqCst);
    }
    Ok((stop, save))
}

/// Makes the signals of [`signals`] have no effect, also if they are repeated, in a process whose run another process ends.
///
/// # Errors
/// Returns an error if the signals cannot be caught.
pub fn ignore_signals() -> Result<(), Failure> {
    let mut all = REQUESTS.into_iter().chain(NOTICES).chain([consts::SIGUSR1]);
    all.try_for_each(|signal| flag::register(signal, Arc::default()).map(drop)).map_err(failed)
}

/// Returns whether a request at this time, in milliseconds, is a second one; records the time of the first.
fn is_second(first: &AtomicU64, now: u64) -> bool {
    let before = first.compare_exchange(NEVER, now, Ordering::SeqCst, Ordering::SeqCst);
    before.is_err_and(|first| now.saturating_sub(first) > ONE_REQUEST)
}

/// Returns a flag that SIGINT (Ctrl-C), SIGTERM and SIGHUP set, for commands that follow something until the user ends them.
///
/// # Errors
/// Returns an error if the signals cannot be caught.
pub fn end_requests() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in REQUESTS.into_iter().chain([consts::SIGHUP]) {
        flag::register(signal, stop.clone()).map_err(failed)?;
    }
    Ok(stop)
}

/// Returns the bit of a signal in the masks of `/proc`.
fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Returns the mask of the ignored signals; 0 if the system does not tell.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The default action of these signals would end this process.
    #[test]
    fn repeated_signals_can_be_ignored() {
        ignore_signals().expect("caught");
        for signal in REQUESTS.into_iter().chain(NOTICES).chain([consts::SIGUSR1]) {
            for _ in 0..2 {
                low_level::raise(signal).expect("sent");
            }
        }
    }

    #[test]
    fn requests_within_a_second_are_one() {
        let first = AtomicU64::new(NEVER);
        let second = [5000, 5000, 5001, 6000, 6001, 9000].map(|now| is_second(&first, now));
        assert_eq!(second, [false, false, false, false, true, true]);
    }
}
