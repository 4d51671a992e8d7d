//! `galamost ibi`: derives potentials from target distributions by iterated runs.
//!
//! | file | contents |
//! |---|---|
//! | `spec.rs` | the specification file |
//! | `targets.rs`, `mapping.rs` | target distributions, mapping of atoms to beads |
//! | `analyzers.rs` | analyzers that measure distributions |
//! | `iterate.rs`, `update.rs` | the runs, the update of potentials |
//! | `progress.rs`, `report.rs` | convergence table, HTML report |
//!
//! The numerical methods are in the crate `galamost-inversion`. Components appear as pipeline text only.

mod analyzers;
mod iterate;
mod mapping;
mod progress;
mod report;
mod spec;
mod targets;
mod update;

use crate::common::{Context, file_failure, input_error, parse_device};
use crate::terminal::signals;
use clap::Args;
use galamost_engine::diagnostic::Failure;
use galamost_engine::plugins::Registry;
use galamost_engine::run::RunOptions;
use spec::Spec;
use std::path::PathBuf;

/// Options of `galamost ibi`.
#[derive(Args, Debug)]
pub(crate) struct IbiArgs {
    /// The specification file.
    file: PathBuf,
    /// Device, overriding `device` of the pipelines: auto, cpu, cuda:0 or emulated.
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Largest number of iterations, overriding `iterations` of the file.
    #[arg(long, value_name = "N")]
    iterations: Option<u32>,
    /// Report all errors, measure the targets and write the first iteration, without running it.
    #[arg(long)]
    check: bool,
}

/// Runs the command. Finished iterations are kept; an unfinished one resumes from its checkpoint.
///
/// # Errors
/// Returns an error if a file is invalid or a run fails.
pub(crate) fn run(args: &IbiArgs, context: &Context) -> Result<u8, Failure> {
    let device = args.device.as_deref().map(parse_device).transpose()?;
    let mut spec = Spec::read(&args.file)?;
    if let Some(n) = args.iterations {
        spec.fields.iterations = n.clamp(1, 999);
    }
    let (stop, _) = signals()?;
    let registry = context.registry();
    let options = iterate::InversionOptions {
        device,
        run: RunOptions { quiet: context.common.quiet, stop, ..RunOptions::default() },
        check: args.check,
    };
    let is_new = !spec.folder().exists();
    let begun = begin(&spec, &registry, &options);
    // a mistake leaves no files behind, except those that its message names
    let folder = spec.folder();
    let names_file = |e: &Failure| matches!(e, Failure::Input(all) if all.iter().any(|d| d.file.starts_with(&folder)));
    if is_new && begun.as_ref().is_err_and(|e| !names_file(e)) && folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|e| file_failure(&folder, e))?;
    }
    begun?.run_all()?;
    Ok(0)
}

/// Reads the targets and checks the first iteration.
fn begin<'a>(
    spec: &'a Spec,
    registry: &'a Registry,
    options: &'a iterate::InversionOptions,
) -> Result<iterate::Inversion<'a>, Failure> {
    check_grids(spec)?;
    let targets = targets::read_all(spec, registry)?;
    let numerics = spec.interactions.value.iter().map(|i| i.interaction(spec.dimensions)).collect();
    let (potentials, measured, done) = (vec![], vec![], vec![]);
    let mut inversion = iterate::Inversion { spec, registry, options, numerics, targets, potentials, measured, done };
    inversion.begin()?;
    Ok(inversion)
}

/// Checks that the iterations in the results folder have the same states, interactions and grids; records them for a
/// new folder.
fn check_grids(spec: &Spec) -> Result<(), Failure> {
    let mut text = String::new();
    for s in &spec.states.value {
        text += &format!("state {} {}\n", s.value.name.value, s.value.pipeline.value);
    }
    for i in &spec.interactions.value {
        text += &format!("{} {:?} {:?} {}\n", i.name(), i.first, i.last, i.common.bins);
    }
    let folder = spec.folder();
    let file = folder.join("grids.txt");
    match std::fs::read_to_string(&file) {
        Ok(previous) if previous != text => {
            let message = format!(
                "{} contains iterations with other states, interactions or grids: move it away, or give another `folder`",
                folder.display()
            );
            Err(input_error(&spec.path, message))
        }
        Ok(_) => Ok(()),
        Err(_) => {
            std::fs::create_dir_all(&folder).map_err(|e| file_failure(&folder, e))?;
            iterate::write_atomically(&file, &text)
        }
    }
}
