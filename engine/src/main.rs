//! The program `galamost`.

use galamost::log;
use std::process::ExitCode;

fn main() -> ExitCode {
    let status = match galamost::cli::run(std::env::args_os()) {
        Ok(code) => code,
        Err(failure) => {
            log::failure(&failure);
            failure.exit_code()
        }
    };
    log::event("end", serde_json::json!({"status": status}));
    ExitCode::from(status)
}
