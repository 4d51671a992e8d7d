//! `galamost check`: checks a pipeline without running it.

mod estimate;
mod probe;

use crate::common::{Context, read_pipeline, usage_error};
use crate::run::replicas;
use crate::terminal::print;
use clap::Args;
use galamost_engine::diagnostic::{Failure, counted};
use galamost_engine::pipeline::{Pipeline, Processes};
use galamost_engine::plan::{CheckOptions, Plan, check};
use galamost_engine::processes::launch;
use std::path::PathBuf;

/// Options of `galamost check`.
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// The pipeline.
    file: PathBuf,
    /// Device, overriding `device` of the pipeline: auto, cpu, cuda:0 or emulated.
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Number of GPUs that share the run, overriding `gpus` of the pipeline.
    #[arg(long, value_name = "N")]
    gpus: Option<u32>,
    /// Replace a value of the pipeline, for example `--set stages[0].dt=0.01`; may be given several times. The last value of a
    /// path counts.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Estimate time, memory and disk space of the run from a test run of a few seconds, which leaves no files.
    #[arg(long)]
    estimate: bool,
}

/// Runs the command. The first of several processes checks the run that they would share; the others do nothing.
///
/// # Errors
/// Returns all errors of the pipeline.
pub(crate) fn run(args: &CheckArgs, context: &Context) -> Result<u8, Failure> {
    let launch = launch();
    if launch.as_ref().is_some_and(|l| l.rank > 0) {
        return Ok(0);
    }
    let count = launch.map_or(1, |l| l.ranks as u32);
    let processes = Processes { count, ..Processes::default() };
    let alone = processes.count == 1;
    if args.estimate && !alone {
        return Err(usage_error("--estimate works in one process; start it without `mpiexec` or `srun`"));
    }
    let registry = context.registry();
    let check = |mut pipeline: Pipeline, errors| {
        if let Some(gpus) = args.gpus {
            (pipeline.gpus, pipeline.gpus_at) = (gpus, None);
        }
        pipeline.processes = processes;
        check(pipeline, &registry, CheckOptions { errors, ..CheckOptions::default() })
    };
    // processes cannot share replicas, which is an error below
    let pipelines = if alone { replicas::read(&args.file, &args.set, &args.device, &[], None)? } else { None };
    if let Some(pipelines) = pipelines {
        if args.estimate {
            return Err(usage_error("--estimate works with a single run; use it with the pipeline of a replica"));
        }
        let plans = replicas::check_all(pipelines, check, |p| p)?;
        print(format!("{}: ok: {}\n", args.file.display(), replica_summary(&plans)))?;
        return Ok(0);
    }
    let (pipeline, errors) = read_pipeline(&args.file, &args.set, args.device.as_deref())?;
    let plan = check(pipeline, errors)?;
    let shared = if alone { String::new() } else { format!(", shared by {} processes", processes.count) };
    print(format!("{}: ok: {}{shared}\n", args.file.display(), summary(&plan)))?;
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
