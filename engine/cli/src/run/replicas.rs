//! Runs the replicas of a pipeline.

use super::room::{make_room, of_begun};
use super::{CheckedRun, PreparedRun, ReplicaPart, RunArgs, run_one, watch};
use crate::common::{Context, input_error, parse_device, usage_error, write_file};
use crate::terminal::log;
use galamost_engine::activity::Watch;
use galamost_engine::backend::check_replicas;
use galamost_engine::checkpoint::{exchange, files};
use galamost_engine::diagnostic::{Diagnostic, Failure, counted};
use galamost_engine::log::set_run_name;
use galamost_engine::pipeline::{Pipeline, REPLICA_MARK, is_edited, read_replicas};
use galamost_engine::plan::Plan;
use galamost_engine::plugins::Registry;
use galamost_engine::run;
use galamost_engine::run::exchange::{ExchangeSeat, Meeting, log_exchange};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use tracing::{info, warn};

/// The pipelines of replicas, with the errors of their fields.
type Pipelines = Vec<(Pipeline, Vec<Diagnostic>)>;

/// Returns the pipelines of the replicas of a file; `None` if it has none.
///
/// # Errors
/// Returns an error if the file or an option is invalid.
pub(crate) fn read(
    file: &Path,
    set: &[String],
    device: impl IntoIterator<Item = impl AsRef<str>>,
    sweep: &[String],
    replicas: Option<u32>,
) -> Result<Option<Pipelines>, Failure> {
    let Some(mut all) = read_replicas(file, set, sweep, replicas)? else { return Ok(None) };
    let devices: Vec<_> = device.into_iter().collect();
    if devices.len() > 1 {
        return Err(usage_error("the replicas of a pipeline run on one device"));
    }
    for (pipeline, _) in &mut all {
        if let Some(d) = devices.first() {
            (pipeline.device, pipeline.device_at) = (parse_device(d.as_ref())?, None);
        }
    }
    Ok(Some(all))
}

/// Checks the pipelines of replicas and returns the errors of all, each once: an error of a replica is left out if an earlier
/// replica has it, too.
///
/// # Errors
/// See above.
pub(crate) fn check_all<T>(
    pipelines: Pipelines,
    mut check: impl FnMut(Pipeline, Vec<Diagnostic>) -> Result<T, Failure>,
    plan: impl Fn(&T) -> &Plan,
) -> Result<Vec<T>, Failure> {
    let (mut checked, mut once) = (vec![], Vec::<Diagnostic>::new());
    for (pipeline, own) in pipelines {
        match check(pipeline, own) {
            Ok(c) => checked.push(c),
            Err(Failure::Input(list)) => add_new(&mut once, list),
            Err(other) => return Err(other),
        }
    }
    if once.is_empty() {
        let plans: Vec<&Plan> = checked.iter().map(plan).collect();
        once = check_replicas(&plans)?;
        let late = plans.first().and_then(|p| late_exchange(p));
        late.iter().for_each(|warning| warn!("{warning}"));
        let mut warnings = vec![];
        plans.iter().for_each(|p| add_new(&mut warnings, p.warnings.clone()));
        warnings.iter().for_each(|warning| warn!("{warning}"));
    }
    if once.is_empty() { Ok(checked) } else { Err(Failure::Input(once)) }
}

/// Adds the diagnostics of a replica that no earlier replica has.
fn add_new(all: &mut Vec<Diagnostic>, own: Vec<Diagnostic>) {
    let earlier = all.len();
    for d in own {
        if !all.contains(&d) && !all[..earlier].iter().any(|other| is_repeated(other, &d)) {
            all.push(d);
        }
    }
}

/// Returns whether two replicas have the same diagnostic: texts at one place may differ in numbers, such as that of the replica in
/// the name of a file.
fn is_repeated(a: &Diagnostic, b: &Diagnostic) -> bool {
    let words = |d: &Diagnostic| d.message.replace(|c: char| c.is_ascii_digit(), "");
    a.at.is_some() && (&a.file, a.at, &a.component) == (&b.file, b.at, &b.component) && words(a) == words(b)
}

/// Returns a warning if the replicas end before they attempt to exchange particles.
fn late_exchange(plan: &Plan) -> Option<Diagnostic> {
    let exchange = plan.pipeline.exchange.as_ref()?;
    let begin = plan.snapshot.step;
    let end = plan.stages.iter().fold(begin, |n, s| n.saturating_add(s.stage.steps));
    let first = (begin / exchange.every).saturating_add(1).saturating_mul(exchange.every);
    let message = format!(
        "the replicas do not exchange particles: the first attempt is at step {first}, and the run ends at step {end}; an attempt \
         needs an `every` below the number of steps"
    );
    (first >= end).then(|| plan.pipeline.locate(Diagnostic::new(&plan.pipeline.path, Some(exchange.at), message)))
}

/// Runs the replicas of a pipeline, each in its own thread. Returns the exit status of the worst failure.
///
/// # Errors
/// Returns all errors of the pipelines.
pub(super) fn run(
    file: &Path,
    pipelines: Pipelines,
    args: &RunArgs,
    context: &Context,
    registry: &Registry,
) -> Result<u8, Failure> {
    if args.resume.as_deref().is_some_and(|r| !matches!(r, "" | "auto")) {
        return Err(usage_error(
            "--resume=FILE works with one run only; without FILE, each replica resumes from its newest checkpoint",
        ));
    }
    let mut from = common_checkpoints(file, &pipelines, args)?.map(Vec::into_iter);
    let check = |pipeline, errors| {
        let from = from.as_mut().map(|f| f.next().unwrap_or_default());
        super::check_pipeline(pipeline, errors, args, registry, from)
    };
    let checked = check_all(pipelines, check, |c| &c.plan)?;
    let mut prepared = prepare(checked, args)?;
    let edited = edited_pipelines(&prepared)?;
    let meeting = meeting(&prepared)?;
    let plans: Vec<&Plan> = prepared.iter().map(|p| &p.plan).collect();
    let mut devices = run::open_replica_devices(&plans)?.into_iter();
    let (n, particles) = (prepared.len(), plans.iter().map(|p| p.snapshot.len() as f64).sum::<f64>());
    make_room(&mut prepared, &edited, args)?;
    write_pipelines(&prepared).map_err(of_begun)?;
    // the CPU: every replica has separate threads, so none waits for another
    let threads = (rayon::current_num_threads() / n).max(1);
    let _watches: Vec<Watch> = prepared.iter().map(|r| watch(r, args, context.started, false)).collect();
    info!("{} of {}", counted(n as u64, "replica"), file.display());
    let begun = Instant::now();
    let done: Vec<Result<f64, Failure>> = std::thread::scope(|scope| {
        let start = |(k, run): (usize, PreparedRun)| {
            let device = devices.next();
            let name = run.plan.pipeline.path.display().to_string();
            let exchange = meeting.as_ref().map(|m| Arc::new(ExchangeSeat::new(m.clone(), k)));
            let part = ReplicaPart { brief: k > 0, exchange };
            let replica = move || {
                set_run_name(&name);
                let _span = tracing::info_span!("run", "{name}").entered();
                let pool =
                    device.is_none().then(|| rayon::ThreadPoolBuilder::new().num_threads(threads).use_current_thread());
                let _pool = pool.map(rayon::ThreadPoolBuilder::build).transpose().map_err(Failure::run)?;
                let open = |plan: &Plan| run::open_replica(plan, device);
                run_one(run, args, context, part, open).map_err(of_begun).inspect_err(log::failure)
            };
            std::thread::Builder::new().name(format!("replica {k}")).spawn_scoped(scope, replica)
        };
        let threads: Vec<_> = prepared.into_iter().enumerate().map(start).collect();
        let ended = |t: std::io::Result<std::thread::ScopedJoinHandle<'_, _>>| {
            let panicked = |_| Err(Failure::run("a replica has panicked")).inspect_err(log::failure);
            t.map_err(|e| Failure::run(format!("a thread cannot be started: {e}")))?.join().unwrap_or_else(panicked)
        };
        threads.into_iter().map(ended).collect()
    });
    let failed: Vec<&Failure> = done.iter().filter_map(|d| d.as_ref().err()).collect();
    let particle_steps: f64 = done.iter().filter_map(|d| d.as_ref().ok()).sum();
    let seconds = begun.elapsed().as_secs_f64();
    info!(
        "{n} replicas of {particles} particles in {seconds:.2} s: {:.2} million particle-steps/s in total",
        particle_steps / seconds / 1e6
    );
    if let Some(meeting) = &meeting {
        log_exchange(meeting);
    }
    if !failed.is_empty() {
        let others =
            if meeting.is_some() { "the others ended at the next exchange" } else { "the others are complete" };
        info!("{} of {n} replicas failed; {others}", failed.len());
    }
    Ok(failed.into_iter().map(Failure::exit_code).max().unwrap_or(0))
}

/// Returns the checkpoints with which replicas that exchange particles resume together; `None` if replicas resume separately.
///
/// # Errors
/// Returns an error if there are none for all of them, unless `--resume=auto` allows it.
fn common_checkpoints(
    file: &Path,
    pipelines: &Pipelines,
    args: &RunArgs,
) -> Result<Option<Vec<Vec<PathBuf>>>, Failure> {
    let exchanging = pipelines.iter().all(|(p, _)| p.exchange.is_some());
    let Some(choice) = args.resume.as_deref().filter(|_| exchanging) else { return Ok(None) };
    let present: Vec<Vec<PathBuf>> = pipelines.iter().map(|(p, _)| files::present(&p.checkpoint_path())).collect();
    match exchange::common(&present) {
        None if choice.is_empty() => {
            Err(input_error(file, "the replicas have no checkpoints of the same attempt to exchange"))
        }
        found => Ok(Some(found.unwrap_or_else(|| vec![vec![]; pipelines.len()]))),
    }
}

/// Returns where replicas that exchange particles meet, in the state of their checkpoints.
///
/// # Errors
/// Returns an error if the checkpoints belong to different runs.
fn meeting(prepared: &[PreparedRun]) -> Result<Option<Arc<Meeting>>, Failure> {
    let plans: Vec<&Plan> = prepared.iter().map(|p| &p.plan).collect();
    let Some(first) = prepared.first().filter(|p| p.plan.pipeline.exchange.is_some()) else { return Ok(None) };
    let state = |p: &PreparedRun| p.resume.as_ref().and_then(|c| c.exchange.clone());
    if let Some(other) = prepared.iter().find(|p| state(p) != state(first)) {
        let message = "its checkpoint belongs to another run than that of replica 0";
        return Err(input_error(&other.plan.pipeline.path, message));
    }
    Ok(Some(Meeting::new(&plans, state(first))?))
}

/// Prepares the runs and returns the errors of all of them.
fn prepare(checked: Vec<CheckedRun>, args: &RunArgs) -> Result<Vec<PreparedRun>, Failure> {
    let (mut prepared, mut errors) = (vec![], vec![]);
    for run in checked {
        match PreparedRun::new(run, args, true) {
            Ok(run) => prepared.push(run),
            Err(Failure::Input(list)) => add_new(&mut errors, list),
            Err(other) => return Err(other),
        }
    }
    if errors.is_empty() { Ok(prepared) } else { Err(Failure::Input(errors)) }
}

/// Returns the pipelines of replicas that have been edited since an earlier run wrote them.
///
/// # Errors
/// Returns an error if a file with the name of one is another file.
fn edited_pipelines(prepared: &[PreparedRun]) -> Result<Vec<PathBuf>, Failure> {
    let mut edited = vec![];
    for Pipeline { path, text, .. } in prepared.iter().map(|p| &p.plan.pipeline) {
        match std::fs::read_to_string(path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Ok(found) if found == *text => {}
            Ok(found) if found.starts_with(REPLICA_MARK) => edited.extend(is_edited(&found).then(|| path.clone())),
            _ => return Err(input_error(path, "the pipeline of a replica would be written here; move this file away")),
        }
    }
    Ok(edited)
}

/// Writes the pipeline of each replica, which runs it alone and which reports refer to.
///
/// # Errors
/// Returns the error of the file system.
fn write_pipelines(prepared: &[PreparedRun]) -> Result<(), Failure> {
    prepared.iter().try_for_each(|run| write_file(&run.plan.pipeline.path, &run.plan.pipeline.text))
}
