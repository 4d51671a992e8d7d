//! Signals that stop a run or make it write a checkpoint.

use galamost_engine::diagnostic::Failure;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Returns two flags. Ctrl-C and SIGTERM set the first; a second such signal ends the program at once. SIGUSR1 sets
/// the second.
///
/// # Errors
/// Returns an error if the signals cannot be caught.
pub fn signals() -> Result<(Arc<AtomicBool>, Arc<AtomicBool>), Failure> {
    use signal_hook::{consts, flag};
    let (stop, save) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let failed = |e: std::io::Error| Failure::run(format!("cannot catch signals: {e}"));
    for signal in [consts::SIGINT, consts::SIGTERM] {
        flag::register_conditional_shutdown(signal, 130, stop.clone()).map_err(failed)?;
        flag::register(signal, stop.clone()).map_err(failed)?;
    }
    flag::register(consts::SIGUSR1, save.clone()).map_err(failed)?;
    Ok((stop, save))
}
