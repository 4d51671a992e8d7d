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
use galamost_engine::run::{Lock, RunOptions};
use spec::Spec;
use std::path::PathBuf;
use tracing::info;

/// Options of `galamost ibi`.
#[derive(Args, Debug)]
pub(crate) struct IbiArgs {
    /// The specification file.
    file: PathBuf,
    /// Device, overriding `device` of the pipelines: auto, cpu, cuda:0 or emulated.
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Largest number of iterations, overriding `iterations` of the file.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=999))]
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
    // a second process would change the files of the iterations
    let _lock = Lock::of_specification(&spec.path)?;
    if let Some(n) = args.iterations {
        spec.fields.iterations = n;
    }
    let finished = finished_iterations(&spec);
    if finished > spec.fields.iterations {
        info!("{finished} iterations instead of {}: so many are finished already", spec.fields.iterations);
        spec.fields.iterations = finished;
    }
    check_names(&spec)?;
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

/// Checks that no file has the name of a folder of results, and no folder that of a file.
fn check_names(spec: &Spec) -> Result<(), Failure> {
    let results = spec.folder();
    let iterations = (1..=spec.fields.iterations).map(|k| results.join(format!("iter-{k:03}")));
    let mut folders = [results.clone(), results.join("result"), results.join("targets")].into_iter().chain(iterations);
    if let Some(file) = folders.find(|path| path.exists() && !path.is_dir()) {
        let message = "this is a file, but results are written into a folder of this name; move it away";
        return Err(input_error(file, message));
    }
    let mut files = ["inputs.txt", "convergence.csv", "report.html"].into_iter().map(|name| results.join(name));
    match files.find(|path| path.is_dir()) {
        Some(folder) => {
            let message = "this is a folder, but results are written into a file of this name; move it away";
            Err(input_error(folder, message))
        }
        None => Ok(()),
    }
}

/// Reads the targets and checks the first iteration.
fn begin<'a>(
    spec: &'a Spec,
    registry: &'a Registry,
    options: &'a iterate::InversionOptions,
) -> Result<iterate::Inversion<'a>, Failure> {
    let targets = targets::read_all(spec, registry)?;
    check_inputs(spec, &targets)?;
    let numerics = spec.interactions.value.iter().map(|i| i.interaction(spec.dimensions)).collect();
    let (potentials, measured, done) = (vec![], vec![], vec![]);
    let mut inversion = iterate::Inversion { spec, registry, options, numerics, targets, potentials, measured, done };
    inversion.begin()?;
    Ok(inversion)
}

/// Checks that finished iterations in the results folder have the same inputs; records those of a new folder.
///
/// Weights, damping and method may change on the way, and so may `iterations` and `tolerance`.
fn check_inputs(spec: &Spec, targets: &[Vec<Vec<f64>>]) -> Result<(), Failure> {
    let mut text = String::new();
    for (s, targets) in spec.states.value.iter().zip(targets) {
        let (s, state) = (&s.value, &s.value.name.value);
        let template = iterate::read_template(spec, s)?.text;
        text += &format!("kT of {state}: {:?}\npressure of {state}: {:?}\n", s.kt, s.pressure);
        text += &format!("pipeline of {state}: {:016x}\n", hash(template.as_bytes()));
        for (i, target) in spec.interactions.value.iter().zip(targets) {
            let bytes: Vec<u8> = target.iter().flat_map(|p| p.to_le_bytes()).collect();
            text += &format!("target of {} in {state}: {:016x}\n", i.name(), hash(&bytes));
        }
    }
    for i in &spec.interactions.value {
        text += &format!("grid of {}: {:?} {:?} {}\n", i.name(), i.first, i.last, i.common.bins);
    }
    let folder = spec.folder();
    let file = folder.join("inputs.txt");
    let finished = std::fs::read_dir(folder.join("iter-001"))
        .is_ok_and(|mut all| all.any(|e| e.is_ok_and(|e| e.path().join("done.ron").exists())));
    match std::fs::read_to_string(&file) {
        Ok(previous) if finished => match &changes(&previous, &text)[..] {
            [] => Ok(()),
            changed => Err(input_error(
                &spec.path,
                format!(
                    "{} contains iterations with another {}: undo the change, move the folder away, or give another `folder`",
                    folder.display(),
                    changed.join(", ")
                ),
            )),
        },
        _ => {
            std::fs::create_dir_all(&folder).map_err(|e| file_failure(&folder, e))?;
            iterate::write_atomically(&file, &text)
        }
    }
}

/// Returns the labels of the lines that are in one text only.
fn changes<'a>(previous: &'a str, text: &'a str) -> Vec<&'a str> {
    let mut labels = vec![];
    for (a, b) in [(text, previous), (previous, text)] {
        for line in a.lines().filter(|line| !b.lines().any(|other| other == *line)) {
            let label = line.split_once(": ").map_or(line, |(label, _)| label);
            if !labels.contains(&label) {
                labels.push(label);
            }
        }
    }
    labels
}

/// Returns the FNV-1a hash of bytes, which does not depend on the version of the compiler.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Returns the number of iterations that all states have finished.
fn finished_iterations(spec: &Spec) -> u32 {
    let done = |k: u32| {
        let folder = spec.folder().join(format!("iter-{k:03}"));
        spec.states.value.iter().all(|s| folder.join(&s.value.name.value).join("done.ron").exists())
    };
    (1..=999).take_while(|k| done(*k)).last().unwrap_or(0)
}
