//! The `galamost` program.

use galamost::terminal::{crash, log};
use galamost_engine::plugins::trial;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    if let [_, command, files @ ..] = args.as_slice()
        && command == trial::COMMAND
    {
        trial::child(files);
        return ExitCode::SUCCESS;
    }
    if let Ok(program) = std::env::current_exe() {
        trial::set_program(program);
    }
    crash::catch();
    return_large_buffers();
    let status = match galamost::run(args) {
        Ok(code) => code,
        Err(failure) => {
            log::failure(&failure);
            failure.exit_code()
        }
    };
    galamost_engine::log::event("end", serde_json::json!({"status": status}));
    ExitCode::from(status)
}

/// Makes the allocator return buffers above 1 MiB to the system when they are freed. Its own limit grows with the sizes that it
/// has seen; frames and pictures that are written at long intervals then leave holes in its heaps, and the memory of a long run grows.
fn return_large_buffers() {
    #[cfg(target_env = "gnu")]
    // SAFETY: changes a limit of the allocator, before other threads exist
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20);
    }
}
