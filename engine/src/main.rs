//! The program `galamost`.

use std::process::ExitCode;

fn main() -> ExitCode {
    match galamost::cli::run(std::env::args_os()) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprint!("{}", failure.render());
            ExitCode::from(failure.exit_code())
        }
    }
}
