//! Hostile input. Most inputs run inside of worker processes, thousands in a second; commands run as children of their own.
//! An input is defined by the seed, its target and its number, so every finding can be made again.

mod commands;
mod findings;
mod worker;

pub use worker::{WorkerArgs, work};

use crate::{Folders, minutes};
use clap::Args;
use commands::Commands;
use findings::{Finding, Findings};
use galamost_tests::fuzz::{TARGETS, seeds};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Options of `hostile`.
#[derive(Args, Debug)]
pub struct HostileArgs {
    #[command(flatten)]
    folders: Folders,
    /// Minutes to run.
    #[arg(long, value_name = "N", value_parser = minutes, default_value = "1")]
    minutes: Duration,
    /// Number of processes.
    #[arg(long, value_name = "J", default_value_t = 1)]
    jobs: usize,
    /// Seed: the same seed makes the same inputs.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Only these targets.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    targets: Vec<String>,
    /// Folder for findings.
    #[arg(long, value_name = "FOLDER", default_value = "target/hostile")]
    out: PathBuf,
}

/// How long a worker runs before it is replaced.
const SLICE: Duration = Duration::from_secs(10);
/// Numbers of inputs reserved for a slice.
const NUMBERS: u64 = 1 << 24;
/// The targets that run as commands.
const COMMANDS: &str = "commands";
/// Shares of the time; all other targets have 1.
const WEIGHTS: [(&str, usize); 3] = [("pipeline", 10), ("generators", 2), (COMMANDS, 6)];

/// What happened to the inputs of a target.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Number of inputs.
    pub count: u64,
    /// Number of inputs that were accepted.
    pub accepted: u64,
    /// Longest time of an input, in microseconds.
    pub slowest: u64,
    /// Processor time, in microseconds.
    pub time: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.accepted += other.accepted;
        self.slowest = self.slowest.max(other.slowest);
        self.time += other.time;
    }
}

/// What all jobs share.
struct Shared<'a> {
    args: &'a HostileArgs,
    /// Folder with everything that is written.
    out: PathBuf,
    /// Each target once for each share of the time.
    schedule: Vec<String>,
    seeds: BTreeMap<String, Vec<Vec<u8>>>,
    next: AtomicU64,
    end: Instant,
    tallies: Mutex<BTreeMap<String, Tally>>,
    findings: Findings,
}

/// Runs the command. Returns whether nothing was found.
///
/// # Errors
/// Returns an error if the program or a folder is missing.
pub fn run(args: &HostileArgs) -> Result<bool, String> {
    let begun = Instant::now();
    let shared = prepare(args)?;
    std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..args.jobs.max(1))
            .map(|job| {
                scope.spawn({
                    let shared = &shared;
                    move || shared.job(job)
                })
            })
            .collect();
        jobs.into_iter()
            .map(|j| j.join().unwrap_or_else(|_| Err("a job panicked".into())))
            .collect::<Result<Vec<()>, _>>()
    })?;
    let found = shared.findings.finish(args)?;
    let tallies = shared.tallies.lock().unwrap_or_else(PoisonError::into_inner);
    println!(
        "{:16} {:>12} {:>9} {:>10} {:>12} {:>9}",
        "target", "inputs", "accepted", "inputs/s", "slowest", "findings"
    );
    let mut all = 0;
    for (name, t) in tallies.iter() {
        let rate = t.count as f64 / (t.time as f64 / 1e6).max(1e-9);
        let share = 100.0 * t.accepted as f64 / t.count.max(1) as f64;
        let n = found.iter().filter(|f| f.target == *name).count();
        println!("{name:16} {:>12} {share:>8.1}% {rate:>10.0} {:>9.3} s {n:>9}", t.count, t.slowest as f64 / 1e6);
        all += t.count;
    }
    let (minutes, n) = (begun.elapsed().as_secs_f64() / 60.0, found.len());
    println!("{all} inputs in {minutes:.1} minutes, {} jobs, seed {}: {n} different findings", args.jobs, args.seed);
    for f in &found {
        println!("{f}");
    }
    Ok(found.is_empty())
}

/// Makes the seeds and the schedule.
fn prepare(args: &HostileArgs) -> Result<Shared<'_>, String> {
    let (repository, program) = (args.folders.repository()?, args.folders.galamost()?);
    galamost_tests::use_folders(args.folders.program(), repository.clone());
    let make = |folder: &Path| std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()));
    make(&args.out)?;
    let out = args.out.canonicalize().map_err(|e| format!("{}: {e}", args.out.display()))?;
    let names: Vec<&str> = TARGETS.iter().map(|t| t.0).chain([COMMANDS]).collect();
    if let Some(unknown) = args.targets.iter().find(|t| !names.contains(&t.as_str())) {
        return Err(format!("unknown target `{unknown}`; the targets are {}", names.join(", ")));
    }
    let chosen = |name: &&str| args.targets.is_empty() || args.targets.iter().any(|t| t == name);
    let mut schedule: Vec<String> = vec![];
    let (mut all, most) = (BTreeMap::new(), WEIGHTS.iter().map(|w| w.1).max().unwrap_or(1));
    for name in &names {
        let inputs = if *name == COMMANDS { vec![] } else { seeds(name) };
        make(&out.join("seeds").join(name))?;
        for (k, input) in inputs.iter().enumerate() {
            let path = out.join("seeds").join(name).join(format!("{k:03}"));
            std::fs::write(&path, input).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        all.insert((*name).to_string(), inputs);
    }
    for round in 0..most {
        let due = |name: &&&str| WEIGHTS.iter().find(|w| w.0 == **name).map_or(1, |w| w.1) > round;
        schedule.extend(names.iter().filter(|n| chosen(n)).filter(due).map(|n| (*n).to_string()));
    }
    let findings = Findings::new(&out, &program)?;
    Ok(Shared {
        args,
        out,
        schedule,
        seeds: all,
        next: AtomicU64::new(0),
        end: Instant::now() + args.minutes,
        tallies: Mutex::default(),
        findings,
    })
}

impl Shared<'_> {
    /// Runs slices until the time is over.
    fn job(&self, job: usize) -> Result<(), String> {
        while Instant::now() < self.end {
            let slice = self.next.fetch_add(1, Ordering::Relaxed);
            let target = &self.schedule[slice as usize % self.schedule.len()];
            let folder = self.out.join(format!("job-{job}"));
            let _ = std::fs::remove_dir_all(&folder);
            std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
            let end = self.end.min(Instant::now() + SLICE);
            let tally = if target == COMMANDS {
                self.commands(slice * NUMBERS, &folder, end)?
            } else {
                self.workers(target, slice * NUMBERS, &folder, end)?
            };
            let _ = std::fs::remove_dir_all(&folder);
            self.tallies.lock().unwrap_or_else(PoisonError::into_inner).entry(target.clone()).or_default().add(tally);
        }
        Ok(())
    }

    /// Runs commands of the program until a moment.
    fn commands(&self, first: u64, folder: &Path, end: Instant) -> Result<Tally, String> {
        let commands = Commands::new(self.args, &self.seeds)?;
        let mut tally = Tally::default();
        while Instant::now() < end {
            let number = first + tally.count;
            let begun = Instant::now();
            match commands.one(self.args.seed, number, folder)? {
                Ok(accepted) => tally.accepted += u64::from(accepted),
                Err((message, input)) => {
                    self.findings.add(
                        Finding { target: COMMANDS.into(), number, message, file: PathBuf::new(), count: 1 },
                        &input,
                    )?;
                }
            }
            let took = begun.elapsed().as_micros() as u64;
            tally.add(Tally { count: 1, slowest: took, time: took, accepted: 0 });
        }
        Ok(tally)
    }

    /// Runs workers until a moment; a worker that dies is replaced by one that begins behind its input.
    fn workers(&self, target: &str, mut first: u64, folder: &Path, end: Instant) -> Result<Tally, String> {
        let mut tally = Tally::default();
        while let Some(left) = end.checked_duration_since(Instant::now()).filter(|t| *t > Duration::from_millis(300)) {
            let ended = worker::supervise(self.args, &self.out, target, first, folder, left)?;
            tally.add(ended.tally);
            first = ended.next;
            for (number, message) in ended.findings {
                let input = worker::input(self.args.seed, target, number, &self.seeds[target]);
                self.findings
                    .add(Finding { target: target.into(), number, message, file: PathBuf::new(), count: 1 }, &input)?;
            }
        }
        Ok(tally)
    }
}
