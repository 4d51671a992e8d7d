//! `galamost check --estimate`: time, memory and disk space of a run, extrapolated from a short test run.
//!
//! The test run executes steps of every stage in turn, starting from the initial state, without analyzers and updaters.
//! Every analyzer then samples the initial state a few times in a temporary folder.

use super::probe::{
    MEASURED, SampleCost, StageProbe, bare, checkpoint_size, probe_stage, resident_memory, sample_cost,
};
use galamost_engine::backend::Backend;
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::Entry;
use galamost_engine::plan::{CheckOptions, Plan, check};
use galamost_engine::plugins::Registry;
use galamost_engine::run::duration;
use std::fmt::Write as _;
use std::time::Instant;

/// The cost of an analyzer over the whole run.
struct AnalyzerCost {
    name: String,
    every: u64,
    /// Samples in the whole run.
    samples: u64,
    /// The cost of a sample, or why it is unknown.
    sample: Result<SampleCost, String>,
}

/// What the test run measured.
struct Measurements {
    /// One per stage; `None` where the test run failed.
    stages: Vec<Option<StageProbe>>,
    /// Seconds from opening the device to the first step.
    start_up: f64,
    analyzers: Vec<AnalyzerCost>,
    /// Bytes of a checkpoint.
    checkpoint: Option<u64>,
}

fn size(bytes: f64) -> String {
    match bytes {
        b if b < 1e4 => format!("{b:.0} B"),
        b if b < 1e7 => format!("{:.1} kB", b / 1e3),
        b if b < 1e10 => format!("{:.1} MB", b / 1e6),
        b => format!("{:.1} GB", b / 1e9),
    }
}

/// Estimates the cost of a valid plan. Returns the measurements and the extrapolation as text.
///
/// # Errors
/// Returns an error if the device cannot be used.
pub(super) fn estimate(plan: &Plan, registry: &Registry) -> Result<String, Failure> {
    let mut out = String::new();
    if !plan.pipeline.ensemble.is_empty() {
        let batches: u64 = plan.components.iter().map(|c| c.needs.batches).sum();
        let _ = writeln!(
            out,
            "an ensemble has no time steps: {batches} batches; run it with --steps 2 to measure the time of a batch"
        );
        return Ok(out);
    }
    // components of a separate plan: the test run leaves those of `plan` untouched
    let probed = check(bare(&plan.pipeline), registry, CheckOptions::default())?;
    let begun = Instant::now();
    let mut backend = galamost_engine::run::open(&probed)?;
    probed.components.iter().try_for_each(|c| backend.start(c))?;
    let _ = writeln!(
        out,
        "measured on {}, {} particles, starting from the initial state:",
        galamost_engine::run::record::device(plan),
        plan.snapshot.len()
    );
    let (stages, start_up) = probe_stages(&mut out, &probed, &mut *backend, begun);
    write_memory(&mut out, plan.snapshot.len() as f64, &mut *backend);
    let checkpoint = checkpoint_size(&probed, &mut *backend).ok();
    drop(backend);
    let measured = Measurements { stages, start_up, analyzers: analyzer_costs(plan, registry), checkpoint };
    write_analyzers(&mut out, &measured.analyzers);
    write_totals(&mut out, plan, &measured);
    Ok(out)
}

/// Measures every stage and writes a line for each. Returns the measurements and the start-up time in seconds.
fn probe_stages(
    out: &mut String,
    plan: &Plan,
    backend: &mut dyn Backend,
    begun: Instant,
) -> (Vec<Option<StageProbe>>, f64) {
    let mut probes: Vec<Option<StageProbe>> = vec![];
    let mut start_up = 0.0;
    let seconds = MEASURED / plan.stages.len() as f64;
    let mut failed = false;
    for stage in &plan.stages {
        if failed {
            probes.push(None);
            continue;
        }
        match probe_stage(backend, stage, seconds) {
            Ok(p) => {
                if start_up == 0.0 {
                    start_up = begun.elapsed().as_secs_f64() - p.step * p.steps as f64;
                }
                let rebuilds = if p.builds > 0 {
                    format!(", list rebuilt every {:.1} steps", p.steps as f64 / p.builds as f64)
                } else {
                    String::new()
                };
                let _ = writeln!(
                    out,
                    "  stage `{}`: {:.1} TPS, {:.2} million particle-steps/s ({} steps{rebuilds})",
                    stage.stage.name,
                    1.0 / p.step,
                    plan.snapshot.len() as f64 / p.step / 1e6,
                    p.steps
                );
                probes.push(Some(p));
            }
            // earlier stages were shortened, so this stage may start from a state that the full run never reaches
            Err(e) => {
                let _ = writeln!(out, "  stage `{}`: not measured, the test run failed: {e}", stage.stage.name);
                probes.push(None);
                failed = true;
            }
        }
    }
    (probes, start_up)
}

/// Writes the statistics of the neighbor list and the memory of `n` particles.
fn write_memory(out: &mut String, n: f64, backend: &mut dyn Backend) {
    if let Ok(l) = backend.list_report()
        && l.r_list > 0.0
    {
        let _ = writeln!(
            out,
            "  neighbors: {:.1} per particle, at most {}, within {:.3} (buffer {:.3})",
            l.mean, l.longest, l.r_list, l.buffer
        );
    }
    let _ = writeln!(
        out,
        "  memory: {} for the state and the list ({:.0} bytes per particle), {} for the whole program",
        size(backend.memory() as f64),
        backend.memory() as f64 / n,
        resident_memory().map_or_else(|| "?".into(), |b| size(b as f64))
    );
}

/// Counts the samples of every analyzer and measures the cost of one.
fn analyzer_costs(plan: &Plan, registry: &Registry) -> Vec<AnalyzerCost> {
    let mut list: Vec<(&Entry, u64, u64, Option<&str>)> = vec![];
    let mut first = plan.snapshot.step;
    for (stage, own) in plan.stages.iter().zip(&plan.pipeline.stages) {
        let entries = own.analyzers.as_ref().unwrap_or(&plan.pipeline.analyzers);
        let last = first + stage.stage.steps;
        for (entry, component) in entries.iter().zip(&stage.analyzers) {
            let every = component.needs.period.max(1);
            let known = list.iter_mut().find(|l| l.0 == entry);
            // both ends of a stage are sampled; the boundary of two stages belongs to the first
            let needs = &component.needs;
            let before = |step: u64| step.checked_sub(needs.first_due(first)).map_or(0, |s| s / every + 1);
            let at_first = u64::from(needs.is_due(first, first, u64::MAX) && known.is_none());
            let at_end = u64::from(needs.at_end && !needs.is_due(last, first, u64::MAX));
            let samples = before(last) - before(first) + at_first + at_end;
            match known {
                Some(l) => l.2 += samples,
                None => {
                    list.push((entry, every, samples, own.analyzers.is_some().then_some(stage.stage.name.as_str())))
                }
            }
        }
        first = last;
    }
    let cost = |(entry, every, samples, stage): (&Entry, u64, u64, Option<&str>)| AnalyzerCost {
        name: stage.map_or_else(|| entry.name.clone(), |s| format!("{} of stage `{s}`", entry.name)),
        every,
        samples,
        sample: sample_cost(plan, entry, registry),
    };
    list.into_iter().map(cost).collect()
}

fn write_analyzers(out: &mut String, costs: &[AnalyzerCost]) {
    for c in costs {
        // the period of components that write only at the end of a stage
        let when = if c.every == u64::MAX { "at the end".into() } else { format!("every {} steps", c.every) };
        let _ = match &c.sample {
            Ok(s) => writeln!(
                out,
                "  {} {when}: {:.2} ms per sample, {} for the first sample, {} for each later one",
                c.name,
                1e3 * s.seconds,
                size(s.first_bytes as f64),
                size(s.later_bytes as f64)
            ),
            Err(e) => writeln!(out, "  {} {when}: not measured: {e}", c.name),
        };
    }
}

/// Extrapolates the measurements to the whole run.
fn write_totals(out: &mut String, plan: &Plan, measured: &Measurements) {
    let slowest = measured.stages.iter().flatten().map(|p| p.step).fold(0.0, f64::max);
    let _ = writeln!(out, "extrapolated to the whole run:");
    if slowest == 0.0 {
        let _ = writeln!(out, "  nothing: no stage could be measured");
        return;
    }
    let mut total = measured.start_up;
    for (stage, p) in plan.stages.iter().zip(&measured.stages) {
        let t = stage.stage.steps as f64 * p.as_ref().map_or(slowest, |p| p.step);
        total += t;
        let how = if p.is_some() { "" } else { ", assuming the speed of the slowest measured stage" };
        let _ = writeln!(out, "  stage `{}`: {} for {} steps{how}", stage.stage.name, duration(t), stage.stage.steps);
    }
    let costs = &measured.analyzers;
    let sampling: f64 = costs.iter().filter_map(|c| Some(c.samples as f64 * c.sample.as_ref().ok()?.seconds)).sum();
    let sampling = sampling + 0.0; // the sum of nothing is −0
    total += sampling;
    let _ = writeln!(
        out,
        "  time: {} in total, including {} for analyzers and {} for start-up",
        duration(total),
        duration(sampling),
        duration(measured.start_up)
    );
    let bytes = |c: &AnalyzerCost| {
        let s = c.sample.as_ref().ok()?;
        Some(s.first_bytes as f64 + c.samples.saturating_sub(1) as f64 * s.later_bytes as f64)
    };
    let volume: f64 = costs.iter().filter_map(bytes).sum();
    let unknown = costs.iter().filter(|c| c.sample.is_err()).count();
    let but = if unknown > 0 { format!(", without {unknown} that could not be measured") } else { String::new() };
    let _ = writeln!(out, "  disk: {} by analyzers{but}", size(volume + 0.0));
    if let Some(bytes) = measured.checkpoint {
        let keep = plan.pipeline.checkpoint.keep;
        let _ = writeln!(
            out,
            "  checkpoints: {} each, and what analyzers such as Msd collect; {keep} kept",
            size(bytes as f64)
        );
    }
    let updaters = plan.stages.iter().any(|s| !s.updaters.is_empty());
    let _ = writeln!(
        out,
        "not included: energies and virials at samples that need them{}; changes of density or of the neighbor count",
        if updaters { ", updaters" } else { "" }
    );
}
