//! Short test runs that measure the cost of stages and analyzers and leave no files.

use crate::output::series::is_parquet;
use galamost_engine::backend::Backend;
use galamost_engine::checkpoint::outputs::Outputs;
use galamost_engine::checkpoint::{Checkpoint, RunPosition};
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::{Entry, Pipeline};
use galamost_engine::plan::{CheckOptions, Plan, StagePlan, check};
use galamost_engine::plugins::Registry;
use galamost_engine::run::{Change, RunOptions, Session, execute};
use galamost_measure::columns::{self, Cells, Column};
use galamost_plugin_api::error::Result;
use galamost_plugin_api::views::Wanted;
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Measured seconds, divided among the stages.
pub(super) const MEASURED: f64 = 2.0;
/// Seconds of warm-up before them, in which caches, clocks and the neighbor list settle.
const SETTLED: f64 = 0.5;

/// The measured speed of a stage.
pub(super) struct StageProbe {
    /// Seconds per step.
    pub step: f64,
    /// Measured steps.
    pub steps: u64,
    /// Rebuilds of the neighbor list in these steps.
    pub builds: u64,
}

/// The cost of one sample of an analyzer.
pub(super) struct SampleCost {
    /// Seconds per sample.
    pub seconds: f64,
    /// Bytes written by the first sample.
    pub first_bytes: u64,
    /// Bytes written by each later sample.
    pub later_bytes: u64,
}

/// Measures a stage for the given time after a warm-up.
pub(super) fn probe_stage(backend: &mut dyn Backend, stage: &StagePlan, seconds: f64) -> Result<StageProbe> {
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
    // reading the list waits until all launched work is done
    let builds = backend.list_report()?.builds - before;
    Ok(StageProbe { step: begun.elapsed().as_secs_f64() / steps as f64, steps, builds })
}

/// Returns a pipeline without analyzers and updaters.
pub(super) fn bare(pipeline: &Pipeline) -> Pipeline {
    let mut p = pipeline.clone();
    (p.analyzers, p.updaters) = (vec![], vec![]);
    for s in &mut p.stages {
        (s.analyzers, s.updaters) = (None, None);
    }
    p
}

/// A temporary folder, which is deleted with its contents.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Creates a folder with the same subfolders as `template`, into which components may write files. Folders that are Parquet
    /// tables are left out: they would be outputs of an earlier run.
    fn new(template: &Path) -> std::io::Result<Self> {
        let path = std::env::temp_dir().join(format!("galamost-estimate-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path)?;
        let entries = std::fs::read_dir(template).into_iter().flatten().filter_map(|e| e.ok());
        for e in entries.filter(|e| e.path().is_dir() && !is_parquet(&e.path())).take(100) {
            let _ = std::fs::create_dir(path.join(e.file_name()));
        }
        Ok(Self(path))
    }

    /// Returns the total size of all files in bytes, with [`row_bytes`] of growing Parquet tables.
    fn bytes(&self) -> u64 {
        fn of(path: &Path) -> u64 {
            let entries = std::fs::read_dir(path)
                .into_iter()
                .flatten()
                .flatten()
                .filter_map(|e| Some((e.path(), e.metadata().ok()?)));
            let size = |(path, m): (PathBuf, Metadata)| match m.is_dir() {
                true if is_parquet(&path) => columns::read(&path).map_or(0, |table| row_bytes(&table)),
                true => of(&path),
                false => m.len(),
            };
            entries.map(size).sum()
        }
        of(&self.0)
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the bytes that the rows of a growing Parquet table take in a long run. The file of a short one consists of names and offsets,
/// and equal rows are compressed. Integers are stored as differences.
fn row_bytes(table: &[Column]) -> u64 {
    let of = |c: &Column| match &c.cells {
        Cells::Int(v) => v.len(),
        Cells::Number(v) => size_of::<f64>() * v.iter().flatten().count(),
        Cells::Text(v) => v.iter().flatten().map(String::len).sum(),
    };
    table.iter().map(of).sum::<usize>() as u64
}

/// Returns the entry with `every: 1`.
fn with_every_step(entry: &Entry) -> Option<Entry> {
    let at = entry.text.find("every:")? + "every:".len();
    let value = entry.text[at..].trim_start();
    let begin = entry.text.len() - value.len();
    let end = begin + value.find(|c: char| !(c.is_ascii_digit() || c == '_'))?;
    (end > begin).then(|| Entry { text: format!("{}1{}", &entry.text[..begin], &entry.text[end..]), ..entry.clone() })
}

/// Takes samples with one analyzer, in a temporary folder: `still` samples of the initial state, then `moved` of particles that
/// cross the boundary between them, because some formats write only what changes. Returns seconds and bytes.
fn take_samples(
    plan: &Plan,
    entry: &Entry,
    registry: &Registry,
    [still, moved]: [u64; 2],
) -> std::result::Result<(f64, u64), String> {
    let folder = TemporaryFolder::new(&plan.pipeline.directory()).map_err(|e| e.to_string())?;
    let message = |f: Failure| match f {
        Failure::Input(list) => list.first().map_or_else(String::new, |d| d.message.clone()),
        Failure::Run(m, _) => m,
    };
    let mut p = bare(&plan.pipeline);
    p.path = folder.0.join("probe.ron");
    (p.checkpoint.every, p.checkpoint.minutes, p.checkpoint.file) = (None, None, None);
    // no forces and no integrator: the steps themselves cost nothing
    (p.initial, p.forces, p.integrators) = (vec![], vec![], vec![]);
    p.analyzers = vec![entry.clone()];
    p.stages.truncate(1);
    for s in &mut p.stages {
        (s.forces, s.integrators, s.steps) = (None, None, 0);
    }
    let options = CheckOptions { snapshot: Some(plan.snapshot.clone()), ..CheckOptions::default() };
    let probe = check(p, registry, options).map_err(message)?;
    if probe.components.iter().any(|c| c.needs.period != 1) {
        return Err("it cannot sample every step".into());
    }
    let mut backend = galamost_engine::run::open(&probe).map_err(message)?;
    let options = RunOptions { steps: Some(still - 1), quiet: true, ..RunOptions::default() };
    if moved == 0 {
        let done = execute(&probe, &mut *backend, &options, None).map_err(message)?;
        return Ok((done.loop_times.analyzers, folder.bytes()));
    }
    let mut session = Session::start(&probe, &mut *backend, &options, None).map_err(message)?;
    session.advance(still - 1).map_err(message)?;
    let mut image = probe.snapshot.image.clone();
    for _ in 0..moved {
        image.iter_mut().for_each(|i| i[0] += 1);
        session.replace(Change { image: Some(image.clone()), ..Change::default() }).map_err(message)?;
        session.advance(1).map_err(message)?;
    }
    let done = session.end().map_err(message)?;
    Ok((done.loop_times.analyzers, folder.bytes()))
}

/// Measures the cost of an analyzer.
///
/// # Errors
/// Returns the reason if the cost cannot be measured.
pub(super) fn sample_cost(plan: &Plan, entry: &Entry, registry: &Registry) -> std::result::Result<SampleCost, String> {
    // all output must stay in the temporary folder
    if entry.text.split('"').skip(1).step_by(2).any(|t| t.starts_with('/') || t.split('/').any(|part| part == "..")) {
        return Err("it uses files outside the pipeline's folder".into());
    }
    let entry = with_every_step(entry).ok_or("it has no `every`")?;
    let (_, first_bytes) = take_samples(plan, &entry, registry, [1, 0])?;
    let (two, before) = take_samples(plan, &entry, registry, [2, 0])?;
    let (four, all) = take_samples(plan, &entry, registry, [2, 2])?;
    let seconds = (four - two).max(0.0) / 2.0;
    Ok(SampleCost { seconds, first_bytes, later_bytes: all.saturating_sub(before) / 2 })
}

/// Returns the size of a checkpoint in bytes.
pub(super) fn checkpoint_size(plan: &Plan, backend: &mut dyn Backend) -> Result<u64> {
    let state = backend.export()?;
    let image = Checkpoint {
        position: RunPosition::default(),
        last_due: BTreeMap::new(),
        sums: None,
        exchange: None,
        state,
        components: BTreeMap::new(),
        save_soon: false,
    };
    Ok(image.encode(plan, Outputs::new())?.len())
}

/// Returns the resident memory of the program in bytes.
pub(super) fn resident_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    Some(1024 * line.split_whitespace().next()?.parse::<u64>().ok()?)
}
