//! `galamost ibi`: potentials out of distributions, by iterations that are ordinary runs.
//!
//! `spec.rs` is the file that says what is looked for, `targets.rs` and `mapping.rs` where the distributions wanted come from,
//! `analyzers.rs` what measures them, `iterate.rs` the runs and what follows from them, `report.rs` the page. The numbers stand in
//! the crate `galamost-inversion`. Components are named as text of pipelines only.

mod analyzers;
mod iterate;
mod mapping;
mod report;
mod spec;
mod targets;

use clap::Args;
use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::plugins::Registry;
use galamost_engine::run::RunOptions;
use spec::Spec;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What `galamost ibi` is given.
#[derive(Args, Debug)]
pub(crate) struct IbiArgs {
    /// The file that says what is looked for.
    file: PathBuf,
    /// auto, cpu, cuda:0 or emulated, instead of the pipelines' `device`.
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Most iterations, instead of the file's `iterations`.
    #[arg(long, value_name = "N")]
    iterations: Option<u32>,
    /// Reports all mistakes, measures targets and writes the first iteration; runs nothing.
    #[arg(long)]
    check: bool,
}

/// Runs the command: finished iterations are kept, an unfinished one goes on from its checkpoint.
///
/// # Errors
/// What is wrong with the files, or what broke in a run.
pub(crate) fn run(args: &IbiArgs, quiet: bool, stop: Arc<AtomicBool>, registry: &Registry) -> Result<u8, Failure> {
    let wrong = |m: String| Failure::Input(vec![Diagnostic::new("--device".as_ref(), None, m)]);
    let device = args.device.as_deref().map(DeviceChoice::parse).transpose().map_err(wrong)?;
    let mut spec = Spec::read(&args.file)?;
    if let Some(n) = args.iterations {
        spec.fields.iterations = n.clamp(1, 999);
    }
    same_grids(&spec)?;
    let options =
        iterate::Options { device, run: RunOptions { quiet, stop, ..RunOptions::default() }, check: args.check };
    let targets = targets::all(&spec, registry)?;
    let interactions = spec.interactions.value.iter().map(|i| i.interaction(spec.dimensions)).collect();
    let mut inversion = iterate::Inversion {
        spec: &spec,
        registry,
        options: &options,
        interactions,
        targets,
        potentials: vec![],
        measured: vec![],
        done: vec![],
    };
    inversion.all()?;
    Ok(0)
}

/// Iterations of a folder belong to one set of states, interactions and grids: what was begun with others is not gone on with.
fn same_grids(spec: &Spec) -> Result<(), Failure> {
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
        Ok(then) if then != text => {
            let message = format!(
                "{} has iterations of other states, interactions or grids: move it away, or give another `folder`",
                folder.display()
            );
            Err(Failure::Input(vec![Diagnostic::new(&spec.path, None, message)]))
        }
        Ok(_) => Ok(()),
        Err(_) => {
            std::fs::create_dir_all(&folder).map_err(|e| Failure::run(format!("{}: {e}", folder.display())))?;
            iterate::write_whole(&file, &text)
        }
    }
}
