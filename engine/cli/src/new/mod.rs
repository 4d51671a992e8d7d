//! `galamost new`: creates a pipeline or a plugin crate.

mod pipeline;
mod plugin;

use crate::common::input_error;
use clap::Args;
use galamost_engine::diagnostic::Failure;
use pipeline::NumberArgs;
use std::path::{Path, PathBuf};

/// Options of `galamost new`.
#[derive(Args, Debug, Default)]
pub(crate) struct NewArgs {
    /// `pipeline`, or the kind of a plugin: pair, oriented-pair, bond, angle, dihedral, improper, force, integrator,
    /// updater, analyzer, generator or sampler.
    kind: String,
    /// Pipeline: melt, liquid, dpd, brush, field, janus, polymerization, electrolyte, ibi or walks. Plugin: name of the
    /// crate, of lowercase letters, digits and `-`.
    name: String,
    /// Folder to create [default: the name of the crate; for a pipeline, the current folder].
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Path or version of galamost-plugin-api [default: the sources installed with this program, the
    /// path it was built from, or its version].
    #[arg(long, value_name = "PATH|VERSION")]
    api: Option<String>,
    #[command(flatten)]
    numbers: NumberArgs,
}

fn error(message: String) -> Failure {
    input_error("galamost new", message)
}

/// Runs the command.
///
/// # Errors
/// Returns an error if an argument is invalid or a file exists.
pub(crate) fn run(args: &NewArgs) -> Result<u8, Failure> {
    let folder = args.folder.as_deref();
    if args.kind == "pipeline" {
        if args.api.is_some() {
            return Err(error("--api applies to plugins only".into()));
        }
        return pipeline::run(&args.name, folder.unwrap_or(Path::new(".")), &args.numbers);
    }
    if args.numbers != NumberArgs::default() {
        return Err(error("--beads, --chain, --density, --kT and --steps apply to pipelines only".into()));
    }
    plugin::run(args)
}
