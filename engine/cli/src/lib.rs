//! The command line of GALAMOST: one file or folder per command.

pub mod bench;
mod check;
mod common;
mod doctor;
pub mod files;
mod ibi;
mod new;
pub mod output;
pub mod plot;
pub mod plugins;
mod render;
mod report;
mod run;
pub mod selftest;
pub mod stats;
mod table;
pub mod terminal;
mod watch;

pub use render::all_threads;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use common::{CommonArgs, Context, usage_error, variables};
use galamost_engine::diagnostic::Failure;
use galamost_engine::log::event;
use galamost_engine::processes::{Launch, check_launch, launch, prepare_environment};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;
use terminal::log::{self, Format};
use tracing::warn;

/// GALAMOST: coarse-grained molecular simulation of polymers and soft matter on GPUs and CPUs.
#[derive(Parser, Debug)]
#[command(name = "galamost", version, override_usage = "galamost --pipeline FILE [OPTIONS]\n       galamost COMMAND …")]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: run::RunArgs,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Check a pipeline and report all errors at once, without running it.
    Check(check::CheckArgs),
    /// Check the machine: processor, GPUs, kernel compiler, plugins, disk.
    Doctor,
    /// List all components, or print the page of one component.
    Plugins(plugins::PluginsArgs),
    /// Test components: device against CPU, forces against energy gradients.
    Selftest(selftest::SelftestArgs),
    /// Test a plugin library thoroughly on every available device.
    TestPlugin(selftest::TestPluginArgs),
    /// Create a pipeline that runs, or a plugin crate that builds.
    New(new::NewArgs),
    /// Describe a file: particles (any readable format), checkpoint or table.
    Info(files::InfoArgs),
    /// Convert particle files and trajectories to another format.
    Convert(Box<files::ConvertArgs>),
    /// Derive potentials from target distributions (iterative Boltzmann inversion, inverse Monte Carlo).
    Ibi(ibi::IbiArgs),
    /// Plot columns of CSV or Parquet tables as SVG or PNG.
    Plot(plot::PlotArgs),
    /// Print mean, standard error, correlation time and drift of each column of a table.
    Stats(stats::StatsArgs),
    /// Render particles as PNG: of a file, of a pipeline's initial state, or of a trajectory as a movie.
    Render(Box<render::RenderArgs>),
    /// Write an HTML report of a finished or running simulation.
    Report(report::ReportArgs),
    /// Follow a run: live curves in a terminal, or a report that updates itself in a browser.
    Watch(watch::WatchArgs),
    /// Convert, differentiate, plot and create tables of potentials.
    Table(table::TableArgs),
    /// Measure the speed of the standard benchmark cases.
    Bench(bench::BenchArgs),
}

/// Groups of commands in the order in which `--help` lists them.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Prepare a run", &["new", "check", "doctor", "plugins", "table", "ibi"]),
    ("Analyze results", &["watch", "report", "stats", "plot", "render"]),
    ("Work with files", &["info", "convert"]),
    ("Develop and measure", &["test-plugin", "selftest", "bench"]),
];

/// Builds the command-line parser. `--help` lists the commands by group.
fn parser() -> clap::Command {
    let mut parser = Cli::command();
    let mut groups = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(groups, "{title}:");
        for name in names {
            let about = parser.find_subcommand(name).and_then(clap::Command::get_about).cloned().unwrap_or_default();
            let _ = writeln!(groups, "  {name:12} {about}");
        }
        groups.push('\n');
    }
    for name in GROUPS.iter().flat_map(|g| g.1) {
        parser = parser.mut_subcommand(name, |c| c.hide(true));
    }
    parser.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\
         `galamost COMMAND --help` describes a command.\n\n{{all-args}}{{after-help}}"
    ))
}

/// Runs the program and returns its exit status.
///
/// # Errors
/// Returns an error if the command fails.
pub fn run(args: impl IntoIterator<Item = OsString>) -> Result<u8, Failure> {
    let started = Instant::now();
    let named = |m: &clap::ArgMatches| m.subcommand_name().map(String::from);
    let parsed = parser().try_get_matches_from(args).and_then(|m| Ok((named(&m), Cli::from_arg_matches(&m)?)));
    let (name, cli) = match parsed {
        Ok(parsed) => parsed,
        Err(e) => return parser_exit(e),
    };
    if cli.command.is_some() && cli.run.is_given() {
        return Err(usage_error(
            "--pipeline, --device, --steps, --set, --resume and --walltime cannot precede a command; \
             give a command's own options after its name",
        ));
    }
    let context = Context { common: cli.common, started };
    let launch = launch();
    if launch.is_some() {
        prepare_environment();
    }
    // one process of a run or a check reports what all of them do
    let shares = matches!(cli.command, None | Some(Command::Check(_)));
    let silent = shares && launch.as_ref().is_some_and(|l| l.rank > 0);
    context.start(silent)?;
    match check_launch() {
        Err(message) if shares => return Err(usage_error(message)),
        Ok(Some(warning)) if cli.command.is_none() => warn!("{warning}"),
        _ => {}
    }
    let checked = match &cli.command {
        // the processes of a run compare such errors when they have joined
        None if launch.is_some() => Ok(()),
        // many users start small tools once for each process, with other arguments
        Some(Command::Ibi(_) | Command::Bench(_) | Command::Selftest(_) | Command::New(_)) => {
            refuse_launch(&name.unwrap_or_default(), launch.as_ref()).and_then(|()| variables::check())
        }
        _ => variables::check(),
    };
    match checked {
        Err(failure) if silent => return Ok(failure.exit_code()),
        checked => checked?,
    }
    match cli.command {
        None => run::run(&cli.run, &context),
        Some(Command::Check(args)) => check::run(&args, &context),
        Some(Command::Doctor) => doctor::run(&context),
        Some(Command::Plugins(args)) => plugins::run(&args, &context),
        Some(Command::Selftest(args)) => selftest::run(&args, &context),
        Some(Command::TestPlugin(args)) => selftest::run_test_plugin(&args, &context),
        Some(Command::New(args)) => new::run(&args),
        Some(Command::Info(args)) => files::info(&args, &context),
        Some(Command::Convert(args)) => files::convert(&args, &context),
        Some(Command::Ibi(args)) => ibi::run(&args, &context),
        Some(Command::Plot(args)) => plot::run(&args),
        Some(Command::Stats(args)) => stats::run(&args),
        Some(Command::Render(args)) => render::run(&args, &context),
        Some(Command::Report(args)) => report::run(&args, &context),
        Some(Command::Watch(args)) => watch::run(&args, &context),
        Some(Command::Table(args)) => table::run(&args, &context),
        Some(Command::Bench(args)) => bench::run(&args, &context),
    }
}

/// Checks that a command that works in one process was not started as one of several. All of them would do the same work and write
/// the same files.
///
/// # Errors
/// See above.
fn refuse_launch(name: &str, launch: Option<&Launch>) -> Result<(), Failure> {
    let Some(Launch { ranks, variables: [of, count], .. }) = launch else { return Ok(()) };
    Err(usage_error(format!(
        "`galamost {name}` works in one process, but this is one of {ranks} ({of}, {count}); start it without `mpiexec` or `srun`, \
         or unset both variables"
    )))
}

/// Prints help, version or a usage error and returns the exit status.
///
/// # Errors
/// Returns an error if standard output cannot be written.
fn parser_exit(mut e: clap::Error) -> Result<u8, Failure> {
    // help and version go to standard output and are not errors
    if !e.use_stderr() {
        return terminal::written(e.print()).map(|()| 0);
    }
    suggest_pipeline(&mut e);
    if asks_for_json() {
        log::start(Format::Json, "warn");
        event("error", serde_json::json!({"status": 2, "message": e.to_string().trim_end()}));
    } else {
        let _ = e.print();
    }
    Ok(2)
}

/// Adds how to run a pipeline to the error of `galamost sim.ron`.
fn suggest_pipeline(e: &mut clap::Error) {
    let Some(ContextValue::String(word)) = e.get(ContextKind::InvalidSubcommand) else { return };
    if word.ends_with(".ron") || Path::new(word).is_file() {
        let hint = format!("to run a pipeline, use `galamost --pipeline {word}`");
        e.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
}

/// Returns whether an invalid command line asks for JSON messages.
fn asks_for_json() -> bool {
    let all: Vec<OsString> = std::env::args_os().collect();
    all.iter().any(|a| a == "--log=json") || all.windows(2).any(|w| w[0] == "--log" && w[1] == "json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lists_every_command_once() {
        Cli::command().debug_assert();
        let listed: Vec<&str> = GROUPS.iter().flat_map(|g| g.1).copied().collect();
        let parser = Cli::command();
        for name in parser.get_subcommands().map(clap::Command::get_name) {
            assert_eq!(listed.iter().filter(|l| **l == name).count(), 1, "{name}");
        }
        assert_eq!(parser.get_subcommands().count(), listed.len());
        let help = super::parser().render_help().to_string();
        for text in ["Prepare a run:", "test-plugin", "--pipeline", "Common options:"] {
            assert!(help.contains(text), "no `{text}` in\n{help}");
        }
    }
}
