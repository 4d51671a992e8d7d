//! Signals that stop a run or make it write a checkpoint.

use galamost_engine::diagnostic::Failure;
use signal_hook::{consts, flag};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Signals of a user who may want the program to end at once: the second one does that.
const REQUESTS: [i32; 2] = [consts::SIGINT, consts::SIGTERM];
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

/// Returns two flags. SIGINT (Ctrl-C), SIGTERM, SIGHUP, SIGXCPU and SIGUSR2 set the first; a second SIGINT or SIGTERM ends
/// the program at once. SIGUSR1 sets the second. SIGHUP stays ignored if it was ignored at the start, as `nohup` does.
///
/// # Errors
/// Returns an error if the signals cannot be caught.
pub fn signals() -> Result<(Arc<AtomicBool>, Arc<AtomicBool>), Failure> {
    let (stop, save) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let requested = Arc::new(AtomicBool::new(false));
    for signal in REQUESTS {
        flag::register_conditional_shutdown(signal, 130, requested.clone()).map_err(failed)?;
        flag::register(signal, requested.clone()).map_err(failed)?;
        flag::register(signal, stop.clone()).map_err(failed)?;
    }
    let ignored = ignored_signals();
    for signal in NOTICES.into_iter().filter(|s| ignored & bit(*s) == 0) {
        flag::register(signal, stop.clone()).map_err(failed)?;
    }
    flag::register(consts::SIGUSR1, save.clone()).map_err(failed)?;
    Ok((stop, save))
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
