//! `galamost watch`: follows a run in a terminal, as lines, or as a web page. It reads what the run writes and nothing else,
//! so it follows runs of other processes and does not slow them.

mod lines;
mod progress;
mod screen;
mod serve;
mod tail;

use crate::common::{Context, input_error, usage_error};
use crate::report::pipeline_path;
use crate::terminal;
use clap::Args;
use galamost_engine::diagnostic::Failure;
use galamost_engine::run::record::path_of as record_path;
use progress::Progress;
use std::io::IsTerminal as _;
use std::net::ToSocketAddrs as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options of `galamost watch`.
#[derive(Args, Debug)]
pub struct WatchArgs {
    /// The pipeline of the run, or its folder; with --serve also several runs, which are compared.
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// Serve the report as a web page that updates itself, at this address, such as 127.0.0.1:8080; port 0 takes a free
    /// one.
    #[arg(long, value_name = "ADDRESS:PORT")]
    serve: Option<String>,
    /// Seconds between updates, 0.1 to 3600 [default: 1 in a terminal, 10 for lines, 5 with --serve].
    #[arg(long, value_name = "SECONDS")]
    every: Option<f64>,
    /// With --serve: do not render particles.
    #[arg(long, requires = "serve")]
    no_pictures: bool,
}

impl WatchArgs {
    /// Returns the time between updates.
    ///
    /// # Errors
    /// Returns an error if it is out of range.
    fn interval(&self, default: f64) -> Result<Duration, Failure> {
        let seconds = self.every.unwrap_or(default);
        if !(0.1..=3600.0).contains(&seconds) {
            return Err(input_error("--every", format!("{seconds} is not between 0.1 and 3600 seconds")));
        }
        Ok(Duration::from_secs_f64(seconds))
    }
}

/// Refuses a pipeline that ran as replicas or as a sweep: each of them has a record, and the pipeline has none.
///
/// # Errors
/// Returns an error that names the first replica.
fn refuse_replicas(pipeline: &Path) -> Result<(), Failure> {
    let first = pipeline.with_extension("0.ron");
    if record_path(pipeline).exists() || !record_path(&first).exists() {
        return Ok(());
    }
    let message = format!("its replicas are followed one by one: galamost watch {}", first.display());
    Err(input_error(pipeline, message))
}

/// Runs the command until the run ends (lines), or until the user ends it (terminal and page).
///
/// # Errors
/// Returns an error if a pipeline cannot be read, if the address is in use, or if the terminal fails.
pub(crate) fn run(args: &WatchArgs, context: &Context) -> Result<u8, Failure> {
    // SAFETY: `nice` changes the priority of this process and accesses no memory
    unsafe { libc::nice(10) };
    let paths = args.runs.iter().map(|r| pipeline_path(r)).collect::<Result<Vec<PathBuf>, Failure>>()?;
    paths.iter().try_for_each(|p| refuse_replicas(p))?;
    let stop = terminal::end_requests()?;
    if let Some(address) = &args.serve {
        let address = address.to_socket_addrs().ok().and_then(|mut found| found.next()).ok_or_else(|| {
            input_error("--serve", format!("`{address}` is not an address with a port, such as 127.0.0.1:8080"))
        })?;
        let source = serve::Source { paths, registry: context.registry(), pictures: !args.no_pictures };
        return serve::serve(source, address, args.interval(5.0)?, &stop).map(|()| 0);
    }
    let [path] = &paths[..] else { return Err(usage_error("give one run to watch; --serve compares several")) };
    let mut progress = Progress::of(path)?;
    if std::io::stdout().is_terminal() {
        screen::show(&mut progress, args.interval(1.0)?, &stop)?;
    } else {
        lines::print_until_end(&mut progress, args.interval(10.0)?, &stop)?;
    }
    Ok(0)
}
