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
