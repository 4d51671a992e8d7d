//! A run that several processes share, started by `mpiexec` or `srun`. The first process runs the loop, writes the files and
//! reports errors; the others are silent.

use super::{PreparedRun, ReplicaPart, RunArgs, check_one, make_room, run_one, watch};
use crate::common::{Context, input_error, usage_error};
use crate::terminal::{self, log};
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::Processes;
use galamost_engine::plan::Plan;
use galamost_engine::processes::{Launch, Messages as _, Mpi, launch};
use galamost_engine::run::processes;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tracing::info;

/// Time that a process other than the first waits before it reports that it cannot join.
const JOINING: Duration = Duration::from_secs(3);

/// Returns whether this is a process of a run other than the first.
pub(crate) fn is_silent(args: &RunArgs) -> bool {
    !args.pipeline.is_empty() && launch().is_some_and(|l| l.rank > 0)
}

/// Runs a pipeline in several processes and returns the exit status.
///
/// # Errors
/// Returns an error before the processes have joined, in the first process.
pub(super) fn run(args: &RunArgs, context: &Context, launch: &Launch) -> Result<u8, Failure> {
    // all processes have the same errors of the command line, which one reports
    let silent = |failure: Failure| match launch.rank {
        0 => Err(failure),
        _ => Ok(failure.exit_code()),
    };
    let [file] = &args.pipeline[..] else {
        return silent(usage_error("several processes share one pipeline; start one process for several pipelines"));
    };
    if args.replicas.is_some() || !args.sweep.is_empty() {
        return silent(usage_error("--replicas and --sweep work in one process; start each run by itself"));
    }
    match Mpi::join(launch) {
        Ok(mpi) => joined(file, args, context, &Arc::new(mpi)),
        Err(e) => {
            if launch.rank > 0 {
                // if the first process cannot join either, it reports that and the launcher ends the others
                std::thread::sleep(JOINING);
            }
            Err(input_error("galamost", e.to_string()))
        }
    }
}

/// Runs the pipeline when the processes have joined.
fn joined(file: &Path, args: &RunArgs, context: &Context, mpi: &Arc<Mpi>) -> Result<u8, Failure> {
    let first = mpi.rank() == 0;
    let registry = context.registry();
    let own = Processes { count: mpi.ranks() as u32, rank: mpi.rank() as u32, local: mpi.local_rank() as u32 };
    let ready = check_one(file, 0, args, &registry, own).and_then(|checked| match checked.plan.pipeline.ensemble[..] {
        [] => Ok(checked),
        _ => Err(input_error(file, "samplers run in one process")),
    });
    let ready = ready.and_then(|checked| PreparedRun::new(checked, args, first));
    if let Err(failure) = processes::agree(mpi, file, ready.as_ref().map(|r| &r.plan)) {
        return left(mpi, failure);
    }
    let mut prepared = match ready {
        Ok(prepared) => prepared,
        Err(failure) => return left(mpi, failure),
    };
    if !first {
        return serve(&prepared, mpi);
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
    processes::end(mpi, status)?;
    Ok(status)
}

/// Leaves the other processes, which have failed as well, and reports the failure in the first one.
fn left(mpi: &Mpi, failure: Failure) -> Result<u8, Failure> {
    if mpi.is_broken() {
        end_all(mpi, &failure);
    }
    mpi.leave()?;
    if mpi.rank() == 0 { Err(failure) } else { Ok(failure.exit_code()) }
}

/// Does what the first process tells.
fn serve(prepared: &PreparedRun, mpi: &Arc<Mpi>) -> Result<u8, Failure> {
    // the first process decides what a signal does
    let _flags = terminal::signals()?;
    match processes::serve(&prepared.plan, mpi) {
        Ok(status) => {
            mpi.leave()?;
            Ok(status)
        }
        Err(e) => end_all(mpi, &Failure::run(e)),
    }
}

/// Ends all processes. One of them reports the failure: others only if that one does not end them.
fn end_all(mpi: &Mpi, failure: &Failure) -> ! {
    mpi.wait_for_report();
    log::failure(failure);
    mpi.abort(failure.exit_code())
}
