//! Measures the steps of replicas: many small systems that share every launch.

use super::cases::Case;
use super::measure::{parse, rate_of};
use super::{BenchOptions, Measured};
use galamost_engine::backend::ListReport;
use galamost_engine::device::{Chosen, ReplicaDevice};
use galamost_engine::diagnostic::Failure;
use galamost_engine::plan::{CheckOptions, Plan, check};
use galamost_engine::plugins::Registry;
use galamost_engine::run::{open_replica, open_replica_devices};
use galamost_plugin_api::views::Wanted;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, mpsc};
use std::time::Instant;

/// Steps until the systems have melted.
const SETTLED: u64 = 2000;

/// What the threads of replicas do next.
struct Orders {
    /// Steps to do; 0 ends the measurement.
    steps: AtomicU64,
    /// Passed before and after these steps.
    barrier: Barrier,
}

/// What a replica reports at the beginning and at the end.
struct Report {
    list: ListReport,
    memory: u64,
    kt: f64,
}

/// Measures a case of replicas.
///
/// # Errors
/// Returns an error if the pipeline is invalid or a replica fails.
pub(super) fn measure(
    registry: &Registry,
    options: &BenchOptions,
    chosen: &Chosen,
    case: Case,
    replicas: u64,
) -> Result<Measured, Failure> {
    let start = Instant::now();
    let plans = (0..replicas)
        .map(|k| {
            let mut pipeline = parse(options, chosen, &case)?;
            pipeline.seed += k;
            check(pipeline, registry, CheckOptions::default())
        })
        .collect::<Result<Vec<_>, Failure>>()?;
    let mut devices = open_replica_devices(&plans.iter().collect::<Vec<_>>())?.into_iter();
    let orders = Orders { steps: AtomicU64::new(0), barrier: Barrier::new(plans.len() + 1) };
    let (sender, reports) = mpsc::channel();
    let (mut windows, mut start_up, mut steps) = (vec![], 0.0, 0);
    let results: Vec<Result<(), Failure>> = std::thread::scope(|scope| {
        let threads: Vec<_> = plans
            .iter()
            .map(|plan| {
                let (device, orders, sender) = (devices.next(), &orders, sender.clone());
                scope.spawn(move || replica(plan, device, orders, &sender))
            })
            .collect();
        let run = |steps: u64| {
            orders.steps.store(steps, Ordering::Relaxed);
            orders.barrier.wait();
            let begun = Instant::now();
            orders.barrier.wait();
            begun.elapsed().as_secs_f64()
        };
        run(1);
        start_up = start.elapsed().as_secs_f64();
        let settled = if matches!(chosen, Chosen::Cuda { .. }) { SETTLED } else { SETTLED / 10 };
        let speed = rate_of(settled, run(settled));
        // estimate the steps of a window from those of a tenth of a window
        let tried = ((0.1 * speed * options.window) as u64).max(16);
        let speed = rate_of(tried, run(tried));
        let window = ((speed * options.window) as u64).max(16);
        windows = (0..3).map(|_| rate_of(window, run(window))).collect();
        steps = 1 + settled + tried + 3 * window;
        orders.steps.store(0, Ordering::Relaxed);
        orders.barrier.wait();
        let panicked = |_| Err(Failure::run("a replica has panicked"));
        threads.into_iter().map(|t| t.join().unwrap_or_else(panicked)).collect()
    });
    results.into_iter().collect::<Result<Vec<()>, Failure>>()?;
    drop(sender);
    let reports: Vec<Report> = reports.into_iter().collect();
    let mean = |of: &dyn Fn(&Report) -> f64| reports.iter().map(of).sum::<f64>() / reports.len().max(1) as f64;
    Ok(Measured {
        bytes_per_particle: mean(&|r| r.memory as f64 * replicas as f64) / case.n as f64,
        interval: steps as f64 / mean(&|r| r.list.builds as f64).max(1.0),
        neighbors: mean(&|r| r.list.mean),
        buffer: mean(&|r| r.list.buffer),
        kt: Some(mean(&|r| r.kt)),
        precision: options.precision.clone(),
        case,
        windows,
        start_up,
        profile: (0, vec![]),
    })
}

/// Runs a replica in this thread. After an error it only passes the barriers.
fn replica(
    plan: &Plan,
    device: Option<ReplicaDevice>,
    orders: &Orders,
    reports: &mpsc::Sender<Report>,
) -> Result<(), Failure> {
    let stop = AtomicBool::new(false);
    let begun = open_replica(plan, device).and_then(|mut backend| {
        backend.begin_stage(&plan.stages[0], false)?;
        Ok(backend)
    });
    let mut state = begun;
    loop {
        orders.barrier.wait();
        let steps = orders.steps.load(Ordering::Relaxed);
        if steps == 0 {
            break;
        }
        if let Ok(backend) = &mut state {
            let mut left = steps;
            // The last call takes no steps: it waits until every replica has taken its steps. A replica that is behind needs the
            // others for its launches, and would get no answer from one that waits at the barrier.
            let done = loop {
                match backend.advance(left, Wanted::FORCE, &stop) {
                    Ok(_) if left == 0 => break Ok(()),
                    Ok(done) => left -= done,
                    Err(e) => break Err(e),
                }
            };
            if let Err(e) = done {
                // dropping the backend lets the other replicas continue
                state = Err(e.into());
            }
        }
        orders.barrier.wait();
    }
    let mut backend = state?;
    backend.advance(1, Wanted::ALL, &stop)?;
    let k = backend.sums()?.kinetic_tensor;
    let kt = (k[0] + k[3] + k[5]) / (3.0 * plan.snapshot.len() as f64 - 3.0);
    let report = Report { list: backend.list_report()?, memory: backend.memory(), kt };
    reports.send(report).map_err(Failure::run)
}
