//! The run: stages, steps, output, checkpoints, and the handling of failures.

mod clock;
mod ends;
pub mod ensemble;
pub mod exchange;
mod execute;
mod frame;
mod lock;
mod open;
pub mod outputs;
pub mod processes;
mod progress;
pub mod record;
mod session;
mod stage_profile;

pub use clock::{Clock, parse_walltime};
pub use ends::FailedAt;
pub use execute::{ComponentTimes, LoopTimes, RunOptions, Summary, execute};
pub use lock::{Lock, killed_process, running_process, writing_process};
pub use open::{open, open_replica, open_replica_devices, open_shared};
pub use progress::{Progress, ProgressDisplay, duration};
pub use session::{Change, Sample, Session};
