//! What all commands share: common options, input and usage errors, file output.

pub(crate) mod variables;

use crate::terminal::catch_file_size;
use crate::terminal::log::{self, Format};
use clap::Args;
use galamost_engine::diagnostic::{Diagnostic, Failure, counted};
use galamost_engine::log::set_json;
use galamost_engine::pipeline::{DeviceChoice, Pipeline};
use galamost_engine::plan::files::Target;
use galamost_engine::plugins::{Registry, search_path};
use galamost_engine::run::writing_process;
use galamost_plugin_api::error::InputError;
use galamost_plugin_api::output::replace;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Options that every command accepts.
#[derive(Args, Debug)]
#[command(next_help_heading = "Common options")]
pub(crate) struct CommonArgs {
    /// Search this folder for plugins before all others; may be given several times.
    #[arg(long, global = true, value_name = "DIR")]
    pub plugin_dir: Vec<PathBuf>,
    /// Number of CPU threads, at most 1024 [default: all cores].
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: Option<u64>,
    /// Print more log messages; `-vv` prints all of them.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Print warnings and errors only.
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Format of the log on standard error: text, or one JSON object per line.
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "text",
        value_name = "text|json",
        hide_possible_values = true
    )]
    log: Format,
}

/// The environment of a command: the common options and the start time of the program.
pub(crate) struct Context {
    /// The common options.
    pub common: CommonArgs,
    /// When the program started.
    pub started: Instant,
}

impl Context {
    /// Starts the log, which is empty if `silent` is set, and the CPU threads. Makes files beyond a size limit a write error.
    ///
    /// # Errors
    /// Returns an error if the threads cannot be created.
    pub fn start(&self, silent: bool) -> Result<(), Failure> {
        let level = match (self.common.quiet, self.common.verbose) {
            _ if silent => "off",
            (true, _) => "warn",
            (_, 0) => "info",
            (_, 1) => "debug",
            _ => "trace",
        };
        log::start(if silent { Format::Text } else { self.common.log }, level);
        catch_file_size()?;
        let Some(n) = self.common.threads else { return Ok(()) };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n as usize).build_global();
        pool.map_err(|e| input_error("--threads", format!("cannot start {}: {e}", counted(n, "thread"))))
    }

    /// Makes a process that was silent report its error in the chosen format.
    pub fn report_as_chosen(&self) {
        set_json(self.common.log == Format::Json);
    }

    /// Loads the plugins of the search path.
    pub fn registry(&self) -> Registry {
        Registry::load(&search_path(&self.common.plugin_dir), self.common.plugin_dir.len())
    }
}

/// Returns an error about the command line.
pub(crate) fn usage_error(message: impl Into<String>) -> Failure {
    input_error("galamost", message)
}

/// Returns the messages of an error without files and positions, for warnings about work that is left out.
pub(crate) fn messages(failure: Failure) -> String {
    match failure {
        Failure::Input(list) => list.iter().map(|d| d.message.as_str()).collect::<Vec<_>>().join("; "),
        Failure::Run(message, _) => message,
    }
}

/// Returns an input error about a file or an option as a whole.
pub(crate) fn input_error(source: impl AsRef<Path>, message: impl Into<String>) -> Failure {
    Failure::Input(vec![Diagnostic::new(source.as_ref(), None, message)])
}

/// Returns the errors found in the text of a file.
pub(crate) fn parse_errors(file: &Path, errors: Vec<InputError>) -> Failure {
    Failure::Input(errors.into_iter().map(|e| Diagnostic::new(file, e.at, e.message)).collect())
}

/// Returns a runtime error about a file.
pub(crate) fn file_failure(file: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::run(format!("{}: {error}", file.display()))
}

/// Whether a command may replace files.
#[derive(Args, Clone, Copy, Debug)]
pub struct OverwriteArgs {
    /// Replace existing files.
    #[arg(long = "overwrite")]
    pub(crate) replace: bool,
}

impl OverwriteArgs {
    /// Checks that a file can be written: its folder exists, it replaces no file unless `--overwrite` is set, and no run in progress
    /// writes it. Devices and pipes, such as `/dev/stdout`, are no files.
    ///
    /// # Errors
    /// Returns an error if there is no such folder, if the file exists and must not be replaced, or if a run writes it.
    pub(crate) fn check(self, file: &Path) -> Result<(), Failure> {
        if let Some(folder) = file.parent().filter(|f| !f.as_os_str().is_empty() && !f.is_dir()) {
            return Err(input_error(file, format!("there is no folder {}", folder.display())));
        }
        if file.is_dir() {
            return Err(input_error(file, "this is a folder; give the name of a file"));
        }
        refuse_in_use(file)?;
        match !self.replace && file.is_file() {
            true => Err(exists(file)),
            false => Ok(()),
        }
    }

    /// Writes a file.
    ///
    /// # Errors
    /// Returns an error if the file exists and must not be replaced, or if it cannot be written, for example without its folder.
    pub(crate) fn write(self, file: &Path, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
        self.check(file)?;
        write_file(file, bytes)
    }
}

/// Refuses an output of a run that is in progress.
///
/// # Errors
/// Returns an error if a run of another process writes this file.
pub(crate) fn refuse_in_use(output: &Path) -> Result<(), Failure> {
    match writing_process(output) {
        Some(process) => {
            let message = format!("is in use by {process}; wait until it ends, stop it, or choose another name");
            Err(input_error(output, message))
        }
        None => Ok(()),
    }
}

/// Refuses an output that is also one of the files that the command reads.
///
/// # Errors
/// Returns an error if it is one of them, also by another name.
pub(crate) fn refuse_input(output: &Path, inputs: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<(), Failure> {
    // devices and pipes are no targets
    let Ok(target) = Target::resolve(output) else { return Ok(()) };
    let mut inputs = inputs.into_iter();
    match inputs.any(|input| Target::resolve(input.as_ref()).is_ok_and(|i| i.overlaps(&target))) {
        true => Err(input_error(output, "input and output are the same file")),
        false => Ok(()),
    }
}

/// Quotes a word for the shell if it needs that.
pub(crate) fn shell_quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+,:@%=".contains(c);
    if word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// Returns an error about a file that must not be replaced.
pub(crate) fn exists(file: &Path) -> Failure {
    input_error(file, "exists; remove it, choose another name, or replace it with --overwrite")
}

/// Writes a file, whether it exists or not. An existing one keeps its permissions, and its contents until the new ones are complete.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub(crate) fn write_file(file: &Path, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
    let permissions = std::fs::metadata(file).map(|m| m.permissions()).ok();
    let written = match Target::resolve(file) {
        Ok(_) => replace(file, |out| {
            permissions.map_or(Ok(()), |p| out.get_ref().set_permissions(p))?;
            out.write_all(bytes.as_ref())
        }),
        // devices and pipes are no targets, and cannot be replaced
        Err(_) => std::fs::write(file, bytes),
    };
    written.map_err(|e| file_failure(file, e))
}

/// Parses the value of `--device`.
///
/// # Errors
/// Returns an error if the text is not a device.
pub(crate) fn parse_device(text: &str) -> Result<DeviceChoice, Failure> {
    DeviceChoice::parse(text).map_err(|m| input_error("--device", m))
}

/// Reads a pipeline and applies `--set` and `--device`. Returns errors of its fields, which the check reports with those of
/// components.
///
/// # Errors
/// Returns an error if the file, an override or the device is invalid.
pub(crate) fn read_pipeline(
    file: &Path,
    set: &[String],
    device: Option<&str>,
) -> Result<(Pipeline, Vec<Diagnostic>), Failure> {
    let (mut pipeline, errors) = Pipeline::read_partially(file, set)?;
    if let Some(d) = device {
        pipeline.device = parse_device(d)?;
        pipeline.device_at = None;
    }
    Ok((pipeline, errors))
}
