//! Long runs that measure how far the program can be trusted. Each prints a table and exits with 1 if it found something.
//! The program runs without a Rust toolchain: it needs `galamost`, its plugins, and the repository's `examples/` and `tests/`.

mod hostile;
mod kills;
mod process;
mod soak;

use clap::{Args, Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Measures how far GALAMOST can be trusted.
#[derive(Parser)]
#[command(name = "galamost-instruments")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Feed mutated files to all readers, pipelines, tables, checkpoints and the plugin loader.
    Hostile(hostile::HostileArgs),
    /// Kill runs of all examples at random moments, resume them, and compare all outputs with an uninterrupted run.
    Kills(kills::KillArgs),
    /// Run one pipeline with many analyzers and reactions for a long time, and watch memory and speed.
    Soak(soak::SoakArgs),
    /// Run mutated inputs in this process; used by `hostile`.
    #[command(hide = true)]
    Worker(hostile::WorkerArgs),
}

/// Where things are.
#[derive(Args, Clone, Debug)]
pub struct Folders {
    /// Folder of the program `galamost` and the plugins [default: the folder of this program].
    #[arg(long, value_name = "FOLDER")]
    program: Option<PathBuf>,
    /// Root of the repository [default: the current folder].
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    repository: PathBuf,
}

impl Folders {
    /// Returns the absolute folder of the program.
    fn program(&self) -> PathBuf {
        let own = || std::env::current_exe().ok().and_then(|e| e.parent().map(Path::to_path_buf)).unwrap_or_default();
        let folder = self.program.clone().unwrap_or_else(own);
        folder.canonicalize().unwrap_or(folder)
    }

    /// Returns the absolute root of the repository.
    ///
    /// # Errors
    /// Returns an error if the folder has no examples.
    fn repository(&self) -> Result<PathBuf, String> {
        let folder = self.repository.canonicalize().map_err(|e| format!("{}: {e}", self.repository.display()))?;
        if folder.join("examples").is_dir() {
            return Ok(folder);
        }
        Err(format!("{} has no folder `examples`; set --repository", folder.display()))
    }

    /// Returns the program `galamost`.
    ///
    /// # Errors
    /// Returns an error if it does not exist.
    fn galamost(&self) -> Result<PathBuf, String> {
        let program = self.program().join("galamost");
        if program.is_file() {
            Ok(program)
        } else {
            Err(format!("{} does not exist; set --program", program.display()))
        }
    }
}

/// Parses minutes, which may have decimals.
fn minutes(text: &str) -> Result<Duration, String> {
    let minutes: f64 = text.parse().map_err(|_| format!("`{text}` is not a number of minutes"))?;
    Duration::try_from_secs_f64(60.0 * minutes).map_err(|e| e.to_string())
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Hostile(args) => hostile::run(&args),
        Command::Kills(args) => kills::run(&args),
        Command::Soak(args) => soak::run(&args),
        Command::Worker(args) => hostile::work(&args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::from(2)
        }
    }
}
