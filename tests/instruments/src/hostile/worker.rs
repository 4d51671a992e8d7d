//! Worker processes: inputs of one target, one after another. The number of the current input is in a file, so that the
//! input is known if the process dies.

use super::{HostileArgs, Tally};
use crate::process::{BLOCKED, HANG, limited, processor_time, wait_until};
use clap::Args;
use galamost_tests::fuzz::{Draws, TARGETS, mutated};
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Most memory of a worker, in KiB.
const MEMORY: u64 = 2 << 20;
/// Exit status of a worker that found something with a single input.
pub const FOUND: i32 = 3;

/// Options of `worker`.
#[derive(Args, Debug)]
pub struct WorkerArgs {
    #[command(flatten)]
    folders: crate::Folders,
    /// Name of the target.
    #[arg(long)]
    target: String,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of the first input.
    #[arg(long, default_value_t = 0)]
    first: u64,
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Folder with the seeds.
    #[arg(long, default_value = "")]
    seeds: PathBuf,
    /// File for the state of the work.
    #[arg(long, default_value = "status")]
    status: PathBuf,
    /// File for findings.
    #[arg(long, default_value = "found")]
    found: PathBuf,
    /// Run this file instead of mutated seeds.
    #[arg(long)]
    input: Option<PathBuf>,
}

/// Makes an input again.
pub fn input(seed: u64, target: &str, number: u64, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut draws = Draws::new(seed, target, number);
    mutated(&seeds[draws.below(seeds.len())], seeds, &mut draws)
}

/// The text of a panic.
fn text_of(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a text").to_string()
}

/// Largest memory of this process so far, in KiB.
fn peak() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or(0)
}

/// Runs the command `worker`.
///
/// # Errors
/// Returns an error if the target or a file is missing.
pub fn work(args: &WorkerArgs) -> Result<bool, String> {
    galamost_tests::use_folders(args.folders.program(), args.folders.repository()?);
    let (_, target) = TARGETS.iter().find(|t| t.0 == args.target).ok_or("unknown target")?;
    std::panic::set_hook(Box::new(|_| {}));
    if let Some(path) = &args.input {
        let bytes = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| target(&bytes))) {
            eprintln!("panic: {}", text_of(&*payload));
            std::process::exit(FOUND);
        }
        return Ok(true);
    }
    let mut names: Vec<PathBuf> = std::fs::read_dir(&args.seeds)
        .map_err(|e| format!("{}: {e}", args.seeds.display()))?
        .filter_map(|e| Some(e.ok()?.path()))
        .collect();
    names.sort();
    let seeds: Vec<Vec<u8>> = names.iter().filter_map(|p| std::fs::read(p).ok()).collect();
    let create = |p: &Path| File::create(p).map_err(|e| format!("{}: {e}", p.display()));
    let (status, mut found) = (create(&args.status)?, create(&args.found)?);
    // the first use loads the plugins
    target(&seeds[0]);
    let (begun, mut tally, mut number) = (Instant::now(), Tally::default(), args.first);
    while begun.elapsed().as_secs_f64() < args.seconds {
        let state = [number, tally.count, tally.accepted, tally.slowest].map(u64::to_le_bytes).concat();
        status.write_all_at(&state, 0).map_err(|e| e.to_string())?;
        let bytes = input(args.seed, &args.target, number, &seeds);
        let start = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| target(&bytes)));
        let took = start.elapsed();
        let mut note = |text: &str| {
            let line = text.trim_end().replace('\n', "\\n");
            writeln!(found, "{number} {line}").map_err(|e| e.to_string())
        };
        match result {
            Ok(accepted) => tally.accepted += u64::from(accepted),
            Err(payload) => note(&format!("panic: {}", text_of(&*payload)))?,
        }
        let much = took > Duration::from_millis(20) && peak() > MEMORY;
        if much {
            note(&format!("memory: {} MiB", peak() >> 10))?;
        }
        number += 1;
        tally.count += 1;
        tally.slowest = tally.slowest.max(took.as_micros() as u64);
        if much {
            break;
        }
    }
    let state = [number, tally.count, tally.accepted, tally.slowest].map(u64::to_le_bytes).concat();
    status.write_all_at(&state, 0).map_err(|e| e.to_string())?;
    Ok(true)
}

/// How a worker ended.
pub struct Ended {
    pub tally: Tally,
    /// Number of the input to go on with.
    pub next: u64,
    /// Numbers of inputs, and what happened.
    pub findings: Vec<(u64, String)>,
}

/// The numbers in the file of a worker.
fn state(path: &Path) -> Option<[u64; 4]> {
    let bytes = std::fs::read(path).ok().filter(|b| b.len() == 32)?;
    Some(std::array::from_fn(|k| u64::from_le_bytes(std::array::from_fn(|b| bytes[8 * k + b]))))
}

/// Runs one worker for some time, and kills it if an input takes too long.
///
/// # Errors
/// Returns an error if the worker cannot be started or does not work at all.
pub fn supervise(
    args: &HostileArgs,
    out: &Path,
    target: &str,
    first: u64,
    folder: &Path,
    time: Duration,
) -> Result<Ended, String> {
    let (status, found, errors) = (folder.join("status"), folder.join("found"), folder.join("errors"));
    let _ = std::fs::remove_file(&status);
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut command = limited(&own);
    command.args(["worker", "--target", target]);
    command.arg("--seed").arg(args.seed.to_string()).arg("--first").arg(first.to_string());
    command.arg("--seconds").arg(time.as_secs_f64().to_string());
    command.arg("--program").arg(args.folders.program()).arg("--repository").arg(args.folders.repository()?);
    command.arg("--seeds").arg(out.join("seeds").join(target)).arg("--status").arg(&status).arg("--found").arg(&found);
    command.current_dir(folder).env("TMPDIR", folder).stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(File::create(&errors).map_err(|e| e.to_string())?);
    let begun = Instant::now();
    let mut child = command.spawn().map_err(|e| format!("{command:?}: {e}"))?;
    let (mut last, mut since, mut used) = (None, Instant::now(), Duration::ZERO);
    let ended = loop {
        if let Some(status) = wait_until(&mut child, Instant::now() + Duration::from_millis(200)) {
            break Some(status);
        }
        let now = state(&status).map(|s| s[0]);
        if now != last {
            (last, since, used) = (now, Instant::now(), processor_time(&child));
        }
        if processor_time(&child).saturating_sub(used) > HANG || since.elapsed() > BLOCKED {
            let _ = child.kill();
            let _ = child.wait();
            break None;
        }
    };
    let said = String::from_utf8_lossy(&std::fs::read(&errors).unwrap_or_default()).into_owned();
    let said = said.lines().rfind(|l| !l.trim().is_empty()).unwrap_or_default().to_string();
    let Some([number, count, accepted, slowest]) = state(&status) else {
        return Err(format!("the worker of {target} does not start: {said}"));
    };
    let text = std::fs::read_to_string(&found).unwrap_or_default();
    let line = |l: &str| l.split_once(' ').and_then(|(n, m)| Some((n.parse().ok()?, m.to_string())));
    let mut findings: Vec<(u64, String)> = text.lines().filter_map(line).collect();
    let died = match ended {
        None => Some(format!("hang: more than {} s", HANG.as_secs())),
        Some(s) if s.success() => None,
        Some(s) => Some(match s.signal() {
            Some(signal) => format!("signal {signal}: {said}"),
            None => format!("{s}: {said}"),
        }),
    };
    let time = begun.elapsed().as_micros() as u64;
    let tally = Tally { count: count + u64::from(died.is_some()), accepted, slowest, time };
    let next = number + u64::from(died.is_some());
    findings.extend(died.map(|m| (number, m)));
    Ok(Ended { tally, next, findings })
}
