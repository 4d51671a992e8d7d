//! The `galamost` program.

use galamost::terminal::log;
use std::process::ExitCode;

fn main() -> ExitCode {
    let status = match galamost::run(std::env::args_os()) {
        Ok(code) => code,
        Err(failure) => {
            log::failure(&failure);
            failure.exit_code()
        }
    };
    galamost_engine::log::event("end", serde_json::json!({"status": status}));
    ExitCode::from(status)
}
