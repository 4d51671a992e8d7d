//! `galamost check --estimate`: what a run would cost, from a short probe that leaves no files.
//!
//! The probe does steps of every stage for a while, one stage after the other, from the initial state on, without analyzers and
//! updaters. Then every analyzer looks at the state a few times, in a folder that is deleted: how long that takes, and how much it
//! writes.

use galamost_engine::backend::Backend;
use galamost_engine::checkpoint::{Checkpoint, Place};
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::{Entry, Pipeline};
use galamost_engine::plan::{CheckOptions, Plan, StagePlan, check};
use galamost_engine::plugins::Registry;
use galamost_engine::run::{RunOptions, duration, execute};
use galamost_plugin_api::error::Result;
use galamost_plugin_api::views::Wanted;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Seconds of steps that are measured, all stages together.
const MEASURED: f64 = 2.0;
/// Seconds before them in which caches, clocks and lists settle.
const SETTLED: f64 = 0.5;

/// What the probe of a stage found.
struct Probe {
    /// Seconds of a step.
    step: f64,
    /// Steps measured.
    steps: u64,
    /// Builds of the list in these steps.
    builds: u64,
}

/// What an analyzer costs.
struct Cost {
    name: String,
    every: u64,
    /// Looks in the whole run.
    looks: u64,
    /// Seconds of a look and bytes of the first and of every further one; or why they are not known.
    measured: std::result::Result<(f64, u64, u64), String>,
}

fn size(bytes: f64) -> String {
    match bytes {
        b if b < 1e4 => format!("{b:.0} B"),
        b if b < 1e7 => format!("{:.1} kB", b / 1e3),
        b if b < 1e10 => format!("{:.1} MB", b / 1e6),
        b => format!("{:.1} GB", b / 1e9),
    }
}

/// Steps of one stage until their time is over.
fn probe(backend: &mut dyn Backend, stage: &StagePlan, seconds: f64) -> Result<Probe> {
    let stop = AtomicBool::new(false);
    backend.begin_stage(stage, false)?;
    let (begun, mut chunk) = (Instant::now(), 1);
    while begun.elapsed().as_secs_f64() < seconds * SETTLED / MEASURED {
        backend.advance(chunk, Wanted::FORCE, &stop)?;
        galamost_engine::activity::beat();
        chunk = (2 * chunk).min(256);
    }
    let before = backend.list_report()?.builds;
    let (begun, mut steps, mut chunk) = (Instant::now(), 0, 16);
    while begun.elapsed().as_secs_f64() < seconds {
        let tick = Instant::now();
        steps += backend.advance(chunk, Wanted::FORCE, &stop)?;
        galamost_engine::activity::beat();
        if tick.elapsed().as_secs_f64() < 0.05 {
            chunk = (2 * chunk).min(4096);
        }
    }
    // what was launched is done when the list can be read
    let builds = backend.list_report()?.builds - before;
    Ok(Probe { step: begun.elapsed().as_secs_f64() / steps as f64, steps, builds })
}

/// A pipeline without what looks at the state or changes it between steps.
fn bare(pipeline: &Pipeline) -> Pipeline {
    let mut p = pipeline.clone();
    (p.analyzers, p.updaters) = (vec![], vec![]);
    for s in &mut p.stages {
        (s.analyzers, s.updaters) = (None, None);
    }
    p
}

/// A folder of the system's, deleted with all that is in it.
struct Folder(PathBuf);

impl Folder {
    fn new(like: &Path) -> std::io::Result<Self> {
        let path = std::env::temp_dir().join(format!("galamost-estimate-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path)?;
        // files may go into folders that are there
        for e in
            std::fs::read_dir(like).into_iter().flatten().filter_map(|e| e.ok()).filter(|e| e.path().is_dir()).take(100)
        {
            let _ = std::fs::create_dir(path.join(e.file_name()));
        }
        Ok(Self(path))
    }

    /// Bytes of all files.
    fn bytes(&self) -> u64 {
        fn of(path: &Path) -> u64 {
            let entries = std::fs::read_dir(path).into_iter().flatten().filter_map(|e| e.ok());
            entries.map(|e| if e.path().is_dir() { of(&e.path()) } else { e.metadata().map_or(0, |m| m.len()) }).sum()
        }
        of(&self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The entry with a period of one step.
fn in_every_step(entry: &Entry) -> Option<Entry> {
    let at = entry.text.find("every:")? + "every:".len();
    let value = entry.text[at..].trim_start();
    let begin = entry.text.len() - value.len();
    let end = begin + value.find(|c: char| !(c.is_ascii_digit() || c == '_'))?;
    (end > begin).then(|| Entry { text: format!("{}1{}", &entry.text[..begin], &entry.text[end..]), ..entry.clone() })
}

/// Lets one analyzer look at the initial state `looks` times, in a folder that is deleted; seconds and bytes.
fn look(plan: &Plan, entry: &Entry, registry: &Registry, looks: u64) -> std::result::Result<(f64, u64), String> {
    let folder = Folder::new(&plan.pipeline.directory()).map_err(|e| e.to_string())?;
    let words = |f: Failure| match f {
        Failure::Input(list) => list.first().map_or_else(String::new, |d| d.message.clone()),
        Failure::Run(m, _) => m,
    };
    let mut p = bare(&plan.pipeline);
    p.path = folder.0.join("probe.ron");
    (p.checkpoint.every, p.checkpoint.minutes, p.checkpoint.file) = (None, None, None);
    // nothing moves, so steps cost nothing
    (p.initial, p.forces, p.integrators) = (vec![], vec![], vec![]);
    p.analyzers = vec![entry.clone()];
    p.stages.truncate(1);
    for s in &mut p.stages {
        (s.forces, s.integrators, s.steps) = (None, None, 0);
    }
    let options = CheckOptions { snapshot: Some(plan.snapshot.clone()), ..CheckOptions::default() };
    let one = check(p, registry, options).map_err(words)?;
    if one.components.iter().any(|c| c.needs.period != 1) {
        return Err("it does not look in every step".into());
    }
    let mut backend = galamost_engine::run::open(&one).map_err(words)?;
    let options = RunOptions { steps: Some(looks - 1), quiet: true, ..RunOptions::default() };
    let done = execute(&one, &mut *backend, &options, None).map_err(words)?;
    Ok((done.shares.analyzers, folder.bytes()))
}

/// Seconds of a look, bytes of the first one and of each further one.
fn looks_of(plan: &Plan, entry: &Entry, registry: &Registry) -> std::result::Result<(f64, u64, u64), String> {
    // what it writes must stay in the folder that is deleted
    if entry.text.split('"').skip(1).step_by(2).any(|t| t.starts_with('/') || t.split('/').any(|part| part == "..")) {
        return Err("it has files outside of the pipeline's folder".into());
    }
    let entry = in_every_step(entry).ok_or("it has no `every`")?;
    let (one, first) = look(plan, &entry, registry, 1)?;
    let (three, all) = look(plan, &entry, registry, 3)?;
    Ok(((three - one).max(0.0) / 2.0, first, all.saturating_sub(first) / 2))
}

/// Bytes of a checkpoint.
fn checkpoint(plan: &Plan, backend: &mut dyn Backend) -> Result<u64> {
    let state = backend.export()?;
    let image = Checkpoint {
        place: Place::default(),
        last_due: BTreeMap::new(),
        sums: None,
        state,
        components: BTreeMap::new(),
    };
    Ok(image.image(plan)?.len())
}

/// Estimates what a plan that passed its check would cost; the text says what was measured and what follows from it.
///
/// # Errors
/// The device cannot be used.
pub fn estimate(plan: &Plan, registry: &Registry) -> std::result::Result<String, Failure> {
    let mut out = String::new();
    if !plan.pipeline.ensemble.is_empty() {
        let batches: u64 = plan.components.iter().map(|c| c.needs.batches).sum();
        let _ = writeln!(
            out,
            "an ensemble has no time steps: {batches} batches; run it with --steps 2 to see how long one takes"
        );
        return Ok(out);
    }
    // a run of its own: components know nothing of the probe
    let options = CheckOptions::default();
    let probed = check(bare(&plan.pipeline), registry, options)?;
    let begun = Instant::now();
    let mut backend = galamost_engine::run::open(&probed)?;
    let mut probes: Vec<Option<Probe>> = vec![];
    let mut start_up = 0.0;
    let seconds = MEASURED / probed.stages.len() as f64;
    let _ = writeln!(
        out,
        "measured on {}, {} particles, from the initial state on:",
        galamost_engine::run::record::device(plan),
        plan.snapshot.len()
    );
    let mut broken = false;
    for stage in &probed.stages {
        if broken {
            probes.push(None);
            continue;
        }
        match probe(&mut *backend, stage, seconds) {
            Ok(p) => {
                if start_up == 0.0 {
                    start_up = begun.elapsed().as_secs_f64() - p.step * p.steps as f64;
                }
                let rebuilds = if p.builds > 0 {
                    format!(", list built every {:.1} steps", p.steps as f64 / p.builds as f64)
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
            // the stages before it were cut short, so this one may begin where it never would
            Err(e) => {
                let _ = writeln!(out, "  stage `{}`: no measurement, the probe broke: {e}", stage.stage.name);
                probes.push(None);
                broken = true;
            }
        }
    }
    if let Ok(l) = backend.list_report()
        && l.r_list > 0.0
    {
        let _ = writeln!(
            out,
            "  neighbors: {:.1} a particle, at most {}, within {:.3} (buffer {:.3})",
            l.mean, l.longest, l.r_list, l.buffer
        );
    }
    let n = plan.snapshot.len() as f64;
    let _ = writeln!(
        out,
        "  memory: {} for the state and the list ({:.0} bytes a particle), {} of the whole program",
        size(backend.memory() as f64),
        backend.memory() as f64 / n,
        resident().map_or_else(|| "?".into(), |b| size(b as f64))
    );
    let file = checkpoint(&probed, &mut *backend).ok();
    drop(backend);
    let costs = costs(plan, registry);
    write_costs(&mut out, &costs);
    write_totals(&mut out, plan, &probes, start_up, &costs, file);
    Ok(out)
}

/// Bytes that the program has in memory.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    Some(1024 * line.split_whitespace().next()?.parse::<u64>().ok()?)
}

fn costs(plan: &Plan, registry: &Registry) -> Vec<Cost> {
    let mut list: Vec<(&Entry, u64, u64)> = vec![];
    let mut first = plan.snapshot.step;
    for (stage, own) in plan.stages.iter().zip(&plan.pipeline.stages) {
        let entries = own.analyzers.as_ref().unwrap_or(&plan.pipeline.analyzers);
        let last = first + stage.stage.steps;
        for (entry, component) in entries.iter().zip(&stage.analyzers) {
            let every = component.needs.period.max(1);
            let known = list.iter_mut().find(|l| l.0 == entry);
            // both ends are looked at; a border of two stages belongs to the first
            let looks = last / every - first / every + u64::from(first.is_multiple_of(every) && known.is_none());
            match known {
                Some(l) => l.2 += looks,
                None => list.push((entry, every, looks)),
            }
        }
        first = last;
    }
    let cost = |(entry, every, looks): (&Entry, u64, u64)| Cost {
        name: entry.name.clone(),
        every,
        looks,
        measured: looks_of(plan, entry, registry),
    };
    list.into_iter().map(cost).collect()
}

fn write_costs(out: &mut String, costs: &[Cost]) {
    for c in costs {
        let _ = match &c.measured {
            Ok((seconds, first, further)) => writeln!(
                out,
                "  {} every {} steps: {:.2} ms a look, {} first, {} with each further one",
                c.name,
                c.every,
                1e3 * seconds,
                size(*first as f64),
                size(*further as f64)
            ),
            Err(e) => writeln!(out, "  {} every {} steps: not measured: {e}", c.name, c.every),
        };
    }
}

fn write_totals(
    out: &mut String,
    plan: &Plan,
    probes: &[Option<Probe>],
    start_up: f64,
    costs: &[Cost],
    file: Option<u64>,
) {
    let slowest = probes.iter().flatten().map(|p| p.step).fold(0.0, f64::max);
    let _ = writeln!(out, "extrapolated to the whole run:");
    if slowest == 0.0 {
        let _ = writeln!(out, "  nothing: no stage could be measured");
        return;
    }
    let mut total = start_up;
    for (stage, p) in plan.stages.iter().zip(probes) {
        let t = stage.stage.steps as f64 * p.as_ref().map_or(slowest, |p| p.step);
        total += t;
        let how = if p.is_some() { "" } else { ", taken as slow as the slowest stage that was measured" };
        let _ = writeln!(out, "  stage `{}`: {} for {} steps{how}", stage.stage.name, duration(t), stage.stage.steps);
    }
    let looking: f64 = costs.iter().filter_map(|c| Some(c.looks as f64 * c.measured.as_ref().ok()?.0)).sum();
    let looking = looking + 0.0; // the sum of nothing is −0
    total += looking;
    let _ = writeln!(
        out,
        "  time: {} in all, {} of it for analyzers and {} to begin",
        duration(total),
        duration(looking),
        duration(start_up)
    );
    let volume: f64 = costs
        .iter()
        .filter_map(|c| c.measured.as_ref().ok().map(|m| m.1 as f64 + c.looks.saturating_sub(1) as f64 * m.2 as f64))
        .sum();
    let unknown = costs.iter().filter(|c| c.measured.is_err()).count();
    let but = if unknown > 0 { format!(", without {unknown} that could not be measured") } else { String::new() };
    let _ = writeln!(out, "  disk: {} by analyzers{but}", size(volume + 0.0));
    if let Some(bytes) = file {
        let keep = plan.pipeline.checkpoint.keep;
        let _ = writeln!(out, "  checkpoints: {} each, {keep} kept", size(bytes as f64));
    }
    let updaters = plan.stages.iter().any(|s| !s.updaters.is_empty());
    let _ = writeln!(
        out,
        "not in it: energies and virials at the samples that want them{}; a state that becomes denser, or neighbors that change",
        if updaters { ", updaters" } else { "" }
    );
}
