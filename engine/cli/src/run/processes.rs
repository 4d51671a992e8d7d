//! A run that several processes share, started by `mpiexec` or `srun`. The first process runs the loop, writes the files and
//! reports errors; the others are silent.

use super::{PreparedRun, ReplicaPart, RunArgs, check_one, make_room, run_one, watch};
use crate::common::{Context, input_error, usage_error, variables};
use crate::terminal::{self, crash, log};
use galamost_engine::diagnostic::Failure;
use galamost_engine::log::event;
use galamost_engine::pipeline::Processes;
use galamost_engine::plan::Plan;
use galamost_engine::processes::{Launch, Messages as _, Mpi};
use galamost_engine::run::processes;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tracing::info;

/// Time that a process other than the first waits before it reports that it cannot join.
const JOINING: Duration = Duration::from_secs(3);

/// Runs a pipeline in several processes and returns the exit status.
///
/// # Errors
/// Returns an error before the processes have joined. Later errors are returned in the first process.
pub(super) fn run(args: &RunArgs, context: &Context, launch: &Launch) -> Result<u8, Failure> {
    match Mpi::join(launch) {
        Ok(mpi) => joined(args, context, &Arc::new(mpi)),
        Err(e) => {
            if launch.rank > 0 {
                // if the first process cannot join either, it reports that and the launcher ends the others
                std::thread::sleep(JOINING);
                context.report_as_chosen();
            }
            Err(input_error("galamost", e.to_string()))
        }
    }
}

/// Checks variables and options, and returns the pipeline. Processes may have different options.
///
/// # Errors
/// Returns an error if a variable cannot be read, or if an option is one of several runs.
fn pipeline(args: &RunArgs) -> Result<&Path, Failure> {
    variables::check()?;
    let [file] = &args.pipeline[..] else {
        return Err(usage_error("several processes share one pipeline; start one process for several pipelines"));
    };
    if args.replicas.is_some() || !args.sweep.is_empty() {
        return Err(usage_error("--replicas and --sweep work in one process; start each run by itself"));
    }
    if args.device.len() > 1 {
        return Err(usage_error(
            "the processes of a run need one --device: the first process of a host uses it, and the next ones use the \
             following GPUs; remove the others from the list",
        ));
    }
    Ok(file)
}

/// Returns the options that must be the same in all processes.
fn common_options(args: &RunArgs) -> [(&'static str, String); 2] {
    let steps = args.steps.map_or_else(|| "not given".into(), |n| n.to_string());
    let resume = match args.resume.as_deref() {
        None => "not given".into(),
        Some("") => "given without a file".into(),
        Some(value) => value.into(),
    };
    [("--steps", steps), ("--resume", resume)]
}

/// Runs the pipeline when the processes have joined.
fn joined(args: &RunArgs, context: &Context, mpi: &Arc<Mpi>) -> Result<u8, Failure> {
    let first = mpi.rank() == 0;
    crash::set_process(mpi.name(mpi.rank()));
    let registry = context.registry();
    let own = Processes { count: mpi.ranks() as u32, rank: mpi.rank() as u32, local: mpi.local_rank() as u32 };
    let ready = pipeline(args)
        .and_then(|file| check_one(file, 0, args, &registry, own))
        .and_then(|checked| PreparedRun::new(checked, args, first));
    let plan = ready.as_ref().map(|r| &r.plan);
    // an error of the first process is that of all; one that only another process has is reported with its name
    let agreed = processes::agree(mpi, &args.pipeline[0], &common_options(args), plan);
    if let Err(failure) = agreed {
        return left(mpi, context, failure);
    }
    let mut prepared = match ready {
        Ok(prepared) => prepared,
        Err(failure) => return left(mpi, context, failure),
    };
    if !first {
        return serve(&prepared, context, mpi);
    }
    info!("{} processes share the run: {}", mpi.ranks(), mpi.hosts().join(", "));
    let _watch = watch(&prepared, args, context.started, true);
    let made = make_room(std::slice::from_mut(&mut prepared), &[], args);
    let open = |plan: &Plan| processes::open(plan, mpi);
    let done = made.and_then(|()| run_one(prepared, args, context, ReplicaPart::default(), open));
    let status = match &done {
        Ok(_) => 0,
        Err(failure) => {
            log::failure(failure);
            failure.exit_code()
        }
    };
    if mpi.is_broken() {
        abort(mpi, status);
    }
    processes::end(mpi, status)?;
    Ok(status)
}

/// Leaves the other processes, which have failed as well, and reports the failure in the first one.
fn left(mpi: &Mpi, context: &Context, failure: Failure) -> Result<u8, Failure> {
    if mpi.is_broken() {
        end_all(mpi, context, &failure);
    }
    mpi.leave()?;
    if mpi.rank() == 0 { Err(failure) } else { Ok(failure.exit_code()) }
}

/// Does what the first process tells.
fn serve(prepared: &PreparedRun, context: &Context, mpi: &Arc<Mpi>) -> Result<u8, Failure> {
    // the first process decides what a signal does
    terminal::ignore_signals()?;
    match processes::serve(&prepared.plan, mpi) {
        Ok(status) => {
            mpi.leave()?;
            Ok(status)
        }
        Err(e) => end_all(mpi, context, &Failure::run(e)),
    }
}

/// Ends all processes. One of them reports the failure: others only if that one does not end them.
fn end_all(mpi: &Mpi, context: &Context, failure: &Failure) -> ! {
    mpi.wait_for_report();
    context.report_as_chosen();
    log::failure(failure);
    abort(mpi, failure.exit_code())
}

/// Ends all processes after a failure. The program does not return to its end, so the last line of a log in JSON is written here.
fn abort(mpi: &Mpi, status: u8) -> ! {
    event("end", serde_json::json!({"status": status}));
    mpi.abort(status)
}
