//! Measures one case.

use super::cases::Case;
use super::{BenchOptions, Measured};
use crate::common::parse_errors;
use galamost_engine::backend::Backend;
use galamost_engine::device::Chosen;
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::{DeviceChoice, Pipeline};
use galamost_engine::plan::{CheckOptions, Plan, check};
use galamost_engine::plugins::Registry;
use galamost_engine::profile::{Timing, add_timings};
use galamost_engine::run::{RunOptions, Summary, execute, outputs};
use galamost_plugin_api::views::Wanted;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Number of profiled steps.
const PROFILED: u64 = 64;

/// Longest time in seconds until even the largest system counts as equilibrated.
const SETTLED: f64 = 20.0;

/// Returns the pipeline of a case for the device.
pub(super) fn parse(options: &BenchOptions, chosen: &Chosen, case: &Case) -> Result<Pipeline, Failure> {
    let (path, text, set) = case.pipeline(options)?;
    let p = Pipeline::parse(&path, &text, &set).map_err(|e| parse_errors(&path, e))?;
    Ok(prepared(p, options.gpus, chosen))
}

/// Sets device and number of GPUs of a pipeline.
pub(super) fn prepared(mut p: Pipeline, gpus: u32, chosen: &Chosen) -> Pipeline {
    p.device = match chosen {
        Chosen::Cpu { .. } => DeviceChoice::Cpu,
        Chosen::Cuda { ordinal, .. } => DeviceChoice::Cuda(*ordinal),
        Chosen::Emulated => DeviceChoice::Emulated,
    };
    (p.gpus, p.gpus_at) = (gpus, None);
    p
}

/// Checks the pipeline of a case for the device.
fn plan(registry: &Registry, options: &BenchOptions, chosen: &Chosen, case: &Case) -> Result<Plan, Failure> {
    check(parse(options, chosen, case)?, registry, CheckOptions::default())
}

/// Measures a case.
///
/// # Errors
/// Returns an error if the pipeline is invalid or the run fails.
pub(super) fn measure(
    registry: &Registry,
    options: &BenchOptions,
    chosen: &Chosen,
    case: Case,
) -> Result<Measured, Failure> {
    if let Some(replicas) = case.replicas {
        super::replicas::measure(registry, options, chosen, case, replicas)
    } else if case.file.is_some() {
        measure_runs(registry, options, chosen, case)
    } else {
        measure_steps(registry, options, chosen, case)
    }
}

/// Measures the steps of the last stage of a built-in case, without analyzers and updaters.
fn measure_steps(
    registry: &Registry,
    options: &BenchOptions,
    chosen: &Chosen,
    case: Case,
) -> Result<Measured, Failure> {
    let start = Instant::now();
    let plan = plan(registry, options, chosen, &case)?;
    let mut backend = galamost_engine::run::open(&plan)?;
    let stop = AtomicBool::new(false);
    backend.begin_stage(&plan.stages[0], false)?;
    let start_up = start.elapsed().as_secs_f64();
    for stages in plan.stages.windows(2) {
        backend.advance(stages[0].stage.steps, Wanted::FORCE, &stop)?;
        backend.begin_stage(&stages[1], false)?;
    }
    settle(&mut *backend, chosen, options.window, &stop)?;
    let before = backend.list_report()?;
    let (windows, measured_steps) = windows(&mut *backend, options.window, &stop)?;
    let after = backend.list_report()?;
    let bytes = backend.memory() as f64 / case.n as f64;
    backend.begin_profile();
    backend.advance(PROFILED, Wanted::FORCE, &stop)?;
    let profile = (PROFILED, backend.end_profile()?);
    backend.advance(1, Wanted::ALL, &stop)?;
    let k = backend.sums()?.kinetic_tensor;
    let kt = (k[0] + k[3] + k[5]) / (3.0 * case.n as f64 - 3.0);
    Ok(Measured {
        case,
        precision: options.precision.clone(),
        windows,
        bytes_per_particle: bytes,
        interval: measured_steps as f64 / (after.builds - before.builds).max(1) as f64,
        neighbors: after.mean,
        buffer: after.buffer,
        kt: Some(kt),
        start_up,
        profile,
    })
}

/// Returns the steps per second in three windows, and the number of steps.
pub(super) fn windows(backend: &mut dyn Backend, window: f64, stop: &AtomicBool) -> Result<(Vec<f64>, u64), Failure> {
    // estimate the steps of a window from those of a tenth of a window
    let mut tried = 16;
    let mut speed = rate(backend, tried, stop)?;
    let more = (0.1 * speed * window) as u64;
    if more > tried {
        speed = rate(backend, more, stop)?;
        tried += more;
    }
    let steps = ((speed * window) as u64).max(16).next_multiple_of(16);
    let windows = (0..3).map(|_| rate(backend, steps, stop)).collect::<Result<_, _>>()?;
    Ok((windows, 3 * steps + tried))
}

/// Melts and equilibrates the system: at least a window, and as many steps as a particle needs to lose its memory.
pub(super) fn settle(
    backend: &mut dyn Backend,
    chosen: &Chosen,
    window: f64,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let (begun, mut warm, mut chunk) = (Instant::now(), Instant::now(), 1);
    let least = match chosen {
        Chosen::Cuda { .. } => 1000,
        Chosen::Cpu { .. } => 200,
        // its speed says nothing
        Chosen::Emulated => 16,
    };
    let mut settled = 0;
    while (settled < least && begun.elapsed().as_secs_f64() < SETTLED) || warm.elapsed().as_secs_f64() < window {
        backend.advance(chunk, Wanted::FORCE, stop)?;
        settled += chunk;
        if settled < least && begun.elapsed().as_secs_f64() < SETTLED {
            warm = Instant::now();
        }
        chunk = (chunk * 2).min(256);
    }
    Ok(())
}

/// Measures complete runs of a pipeline, with analyzers and updaters. The time of a run of `WARM` steps is subtracted,
/// which contains the time until full speed.
fn measure_runs(registry: &Registry, options: &BenchOptions, chosen: &Chosen, case: Case) -> Result<Measured, Failure> {
    const WARM: u64 = 1000;
    let quiet = |steps: u64| RunOptions { quiet: true, steps: Some(steps), ..RunOptions::default() };
    let repeated = std::cell::Cell::new(false);
    let run = |steps: u64| -> Result<(Summary, Box<dyn Backend>, f64), Failure> {
        let begun = Instant::now();
        let plan = plan(registry, options, chosen, &case)?;
        // the files of the first run are replaced, those of an earlier command are kept
        outputs::clear(&plan, repeated.replace(true), false)?;
        let mut backend = galamost_engine::run::open(&plan)?;
        let summary = execute(&plan, &mut *backend, &quiet(steps), None)?;
        let start = begun.elapsed().as_secs_f64() - summary.seconds;
        Ok((summary, backend, start))
    };
    // the first run compiles the kernels
    run(WARM)?;
    let short = [run(WARM)?.0.seconds, run(WARM)?.0.seconds].into_iter().fold(f64::INFINITY, f64::min);
    let tried = 4 * WARM;
    let speed = tried as f64 / (run(WARM + tried)?.0.seconds - short).max(1e-6);
    let steps = ((speed * options.window) as u64).max(WARM);
    let (mut windows, mut profile, mut found) = (vec![], (0, vec![]), None);
    for _ in 0..3 {
        let (summary, mut backend, start) = run(WARM + steps)?;
        windows.push(steps as f64 / (summary.seconds - short).max(1e-6));
        profile.0 += summary.component_times.steps;
        add_timings(&mut profile.1, summary.component_times.timings);
        // updaters, scaled to the number of profiled steps
        let profiled = summary.component_times.steps as f64 / summary.steps.max(1) as f64;
        for (part, seconds) in summary.component_times.others {
            add_timings(
                &mut profile.1,
                vec![Timing { part, kernel: "call".into(), calls: 1, seconds: seconds * profiled }],
            );
        }
        found = Some((backend.list_report()?, backend.memory(), start));
    }
    let (list, memory, start_up) = found.unwrap_or_default();
    Ok(Measured {
        bytes_per_particle: memory as f64 / case.n as f64,
        case,
        precision: options.precision.clone(),
        windows,
        interval: (WARM + steps) as f64 / list.builds.max(1) as f64,
        neighbors: list.mean,
        buffer: list.buffer,
        kt: None,
        start_up,
        profile,
    })
}

/// Returns the steps per second over a number of steps.
fn rate(backend: &mut dyn Backend, steps: u64, stop: &AtomicBool) -> Result<f64, Failure> {
    let start = Instant::now();
    backend.advance(steps, Wanted::FORCE, stop)?;
    Ok(rate_of(steps, start.elapsed().as_secs_f64()))
}

/// Returns the steps per second of a number of steps in this time.
pub(super) fn rate_of(steps: u64, seconds: f64) -> f64 {
    steps as f64 / seconds.max(1e-9)
}
