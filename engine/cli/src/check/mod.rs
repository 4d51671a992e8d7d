//! `galamost check`: checks a pipeline without running it.

mod estimate;
mod probe;

use crate::common::{Context, read_pipeline, usage_error};
use crate::run::replicas;
use crate::terminal::print;
use clap::Args;
use galamost_engine::diagnostic::{Failure, counted};
use galamost_engine::plan::{CheckOptions, Plan, check};
use std::path::PathBuf;

/// Options of `galamost check`.
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// The pipeline.
    file: PathBuf,
    /// Device, overriding `device` of the pipeline: auto, cpu, cuda:0 or emulated.
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Replace a value of the pipeline, for example `--set stages[0].dt=0.01`; may be given several times. The last value of a
    /// path counts.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Estimate time, memory and disk space of the run from a test run of a few seconds, which leaves no files.
    #[arg(long)]
    estimate: bool,
}

/// Runs the command.
///
/// # Errors
/// Returns all errors of the pipeline.
pub(crate) fn run(args: &CheckArgs, context: &Context) -> Result<u8, Failure> {
    let registry = context.registry();
    if let Some(pipelines) = replicas::read(&args.file, &args.set, &args.device, &[], None)? {
        if args.estimate {
            return Err(usage_error("--estimate works with a single run; use it with the pipeline of a replica"));
        }
        let check = |pipeline, errors| check(pipeline, &registry, CheckOptions { errors, ..CheckOptions::default() });
        let plans = replicas::check_all(pipelines, check, |p| p)?;
        print(format!("{}: ok: {}\n", args.file.display(), replica_summary(&plans)))?;
        return Ok(0);
    }
    let (pipeline, errors) = read_pipeline(&args.file, &args.set, args.device.as_deref())?;
    let plan = check(pipeline, &registry, CheckOptions { errors, ..CheckOptions::default() })?;
    print(format!("{}: ok: {}\n", args.file.display(), summary(&plan)))?;
    if args.estimate {
        print(estimate::estimate(&plan, &registry)?)?;
    }
    Ok(0)
}

/// Summarizes the plans of replicas: in one line if they are equal, else with a line for each group of equal ones.
fn replica_summary(plans: &[Plan]) -> String {
    let mut groups: Vec<(String, Vec<String>)> = vec![];
    for (k, text) in plans.iter().map(summary).enumerate() {
        match groups.iter_mut().find(|(t, _)| *t == text) {
            Some((_, members)) => members.push(k.to_string()),
            None => groups.push((text, vec![k.to_string()])),
        }
    }
    let replicas = counted(plans.len() as u64, "replica");
    match &groups[..] {
        [(text, _)] => format!("{replicas}, each of {text}"),
        _ => groups.iter().fold(replicas, |all, (text, members)| {
            let noun = if members.len() == 1 { "replica" } else { "replicas" };
            format!("{all}\n  {noun} {}: {text}", members.join(", "))
        }),
    }
}

/// Summarizes a valid plan in one line.
fn summary(plan: &Plan) -> String {
    let s = &plan.snapshot;
    let number = |n: usize, noun: &str| counted(n as u64, noun);
    if !plan.pipeline.ensemble.is_empty() {
        let batches: u64 = plan.components.iter().map(|c| c.needs.batches).sum();
        let (samplers, plugins) = (number(plan.components.len(), "sampler"), number(plan.plugins.len(), "plugin"));
        return format!("{samplers} of {plugins}, {}", counted(batches, "batch"));
    }
    let steps: u64 = plan.stages.iter().map(|p| p.stage.steps).sum();
    format!(
        "{}, {}, {}, {} of {}, {} in {}",
        number(s.len(), "particle"),
        number(s.types.len(), "type"),
        number(s.bonds.len(), "bond"),
        number(plan.components.len(), "component"),
        number(plan.plugins.len(), "plugin"),
        counted(steps, "step"),
        number(plan.stages.len(), "stage")
    )
}
