//! A soak: one run with many analyzers, reactions and checkpoints. Its memory must stay constant, and at its end it must be as
//! fast as a new run of the same pipeline.

use crate::process::processor_time;
use crate::{Folders, minutes};
use clap::Args;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Options of `soak`.
#[derive(Args, Debug)]
pub struct SoakArgs {
    #[command(flatten)]
    folders: Folders,
    /// Minutes to run.
    #[arg(long, value_name = "N", value_parser = minutes, default_value = "10")]
    minutes: Duration,
    /// Device of the run: cpu, emulated, cuda:0.
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// Threads of the run.
    #[arg(long, value_name = "N", default_value_t = 2)]
    threads: usize,
    /// Pipeline to run instead of the built-in one; its first output must be `thermo.csv` with the step.
    #[arg(long, value_name = "FILE")]
    pipeline: Option<PathBuf>,
    /// Seconds between samples.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    interval: f64,
    /// Folder of the run.
    #[arg(long, value_name = "FOLDER", default_value = "target/soak")]
    out: PathBuf,
}

/// Largest change of memory between a tenth of the run and its end.
const MEMORY: f64 = 0.01;

/// Largest difference between the speeds of the run and of a new one.
const SPEED: f64 = 0.02;

/// Windows in which the run and a new one are measured in turn. Each is shorter than the time after which ranks give up.
const WINDOWS: usize = 5;

/// Seconds of a window.
const WINDOW: f64 = 12.0;

/// Seconds in which a new run reaches its equilibrium: a few times ten thousand steps.
const WARM_UP: f64 = 15.0;

/// One look at the run.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    /// Seconds since the start.
    time: f64,
    /// Seconds that the run has worked: processor time on the CPU, so that other programs do not count.
    work: f64,
    /// Resident memory in MiB.
    memory: f64,
    /// Memory on the GPU in MiB.
    gpu: Option<f64>,
    /// Step of the newest row of `thermo.csv`.
    step: f64,
}

/// Runs the command. Returns whether memory and speed are constant.
///
/// # Errors
/// Returns an error if the run does not start, or ends too early.
pub fn run(args: &SoakArgs) -> Result<bool, String> {
    let fail = |e: std::io::Error| format!("{}: {e}", args.out.display());
    let _ = std::fs::remove_dir_all(&args.out);
    std::fs::create_dir_all(&args.out).map_err(fail)?;
    let folder = args.out.canonicalize().map_err(fail)?;
    let text = match &args.pipeline {
        Some(path) => std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?,
        None => include_str!("soak.ron").into(),
    };
    std::fs::write(folder.join("soak.ron"), text).map_err(fail)?;
    let begun = Instant::now();
    let mut child = start(args, &folder)?;
    let samples = watch(args, &folder, &mut child, begun)?;
    let ratios = beside_new_run(args, &folder, &child)?;
    end(&mut child, &folder)?;
    let (constant, steady) = (judge(&samples)?, as_fast(&ratios));
    Ok(constant && steady)
}

/// Starts the pipeline of a folder there.
fn start(args: &SoakArgs, folder: &Path) -> Result<Child, String> {
    let log = File::create(folder.join("log")).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut command = Command::new(args.folders.galamost()?);
    command.args(["--pipeline", "soak.ron", "--device", &args.device, "--threads", &args.threads.to_string()]);
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command.spawn().map_err(|e| format!("{command:?}: {e}"))
}

/// Asks a run to stop; it writes a checkpoint and ends with status 0.
fn end(child: &mut Child, folder: &Path) -> Result<(), String> {
    signal(child, "-TERM")?;
    let status = child.wait().map_err(|e| e.to_string())?;
    if status.success() {
        return Ok(());
    }
    let said = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
    Err(format!("the run ended with {status}: {said}"))
}

/// Sends a signal.
fn signal(child: &Child, name: &str) -> Result<(), String> {
    let asked = Command::new("kill").args([name, &child.id().to_string()]).status();
    asked.map(|_| ()).map_err(|e| format!("kill: {e}"))
}

/// Speeds of the run relative to a new run of the same pipeline, measured in turn while the other one is stopped: the speed of
/// the machine, and other work on it, are the same for both.
fn beside_new_run(args: &SoakArgs, folder: &Path, old: &Child) -> Result<Vec<f64>, String> {
    let fresh = folder.join("new");
    std::fs::create_dir(&fresh).map_err(|e| format!("{}: {e}", fresh.display()))?;
    std::fs::copy(folder.join("soak.ron"), fresh.join("soak.ron")).map_err(|e| e.to_string())?;
    signal(old, "-STOP")?;
    let mut new = start(args, &fresh)?;
    std::thread::sleep(Duration::from_secs_f64(WARM_UP));
    let mut ratios = vec![];
    println!("{:>9} {:>12} {:>12} {:>9}", "window", "the run", "a new run", "ratio");
    for window in 0..WINDOWS {
        let of_new = speed_of(args, &fresh, &new)?;
        signal(&new, "-STOP")?;
        signal(old, "-CONT")?;
        let of_old = speed_of(args, folder, old)?;
        signal(old, "-STOP")?;
        signal(&new, "-CONT")?;
        ratios.push(of_old / of_new);
        println!("{window:>9} {of_old:>12.1} {of_new:>12.1} {:>9.4}", of_old / of_new);
    }
    end(&mut new, &fresh)?;
    signal(old, "-CONT")?;
    Ok(ratios)
}

/// Steps per second of one window; per second of processor time on a CPU.
fn speed_of(args: &SoakArgs, folder: &Path, child: &Child) -> Result<f64, String> {
    let look = |begun: Instant| {
        let work = if on_gpu(args) { begun.elapsed().as_secs_f64() } else { processor_time(child).as_secs_f64() };
        last_step(&folder.join("thermo.csv")).map(|step| (work, step)).ok_or("the run has no step")
    };
    // the first second belongs to the start after a stop
    std::thread::sleep(Duration::from_secs(1));
    let begun = Instant::now();
    let first = look(begun)?;
    std::thread::sleep(Duration::from_secs_f64(WINDOW));
    let last = look(begun)?;
    Ok((last.1 - first.1) / (last.0 - first.0))
}

fn on_gpu(args: &SoakArgs) -> bool {
    args.device.starts_with("cuda") || args.device == "auto"
}

/// Whether the run is as fast as a new one.
fn as_fast(ratios: &[f64]) -> bool {
    let n = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / n;
    let error = (ratios.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (n * (n - 1.0))).sqrt();
    let steady = (mean - 1.0).abs() <= SPEED;
    println!(
        "the run is {mean:.4} ± {error:.4} times as fast as a new one, {}",
        if steady { "within 2 %" } else { "NOT within 2 %" }
    );
    steady
}

/// Samples until the time is over.
fn watch(args: &SoakArgs, folder: &Path, child: &mut Child, begun: Instant) -> Result<Vec<Sample>, String> {
    let on_gpu = on_gpu(args);
    let mut samples: Vec<Sample> = vec![];
    let per = if on_gpu { "steps/s" } else { "steps/CPU s" };
    println!("{:>9} {:>12} {:>12} {:>14} {per:>12}", "seconds", "memory/MiB", "gpu/MiB", "step");
    while begun.elapsed() < args.minutes {
        std::thread::sleep(Duration::from_secs_f64(args.interval).min(args.minutes));
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            let said = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
            return Err(format!("the run ended early with {status}: {said}"));
        }
        let Some(memory) = resident(child.id()) else { continue };
        let time = begun.elapsed().as_secs_f64();
        let gpu = if on_gpu { gpu_memory(child.id()) } else { None };
        let work = if on_gpu { time } else { processor_time(child).as_secs_f64() };
        let sample = Sample { time, work, memory, gpu, step: last_step(&folder.join("thermo.csv")).unwrap_or(0.0) };
        let speed = samples.last().map_or(0.0, |s| (sample.step - s.step) / (sample.work - s.work));
        let gpu = sample.gpu.map_or("-".into(), |g| format!("{g:.0}"));
        println!("{time:>9.0} {memory:>12.2} {gpu:>12} {:>14} {speed:>12.1}", sample.step);
        samples.push(sample);
    }
    Ok(samples)
}

/// Resident memory of a process in MiB.
fn resident(process: u32) -> Option<f64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<f64>().ok().map(|k| k / 1024.0)
}

/// Memory of a process on the GPU in MiB, as the driver's tool reports it; that of the whole GPU if it names no process.
fn gpu_memory(process: u32) -> Option<f64> {
    let ask = |query: &str| {
        let out = Command::new("nvidia-smi").args([query, "--format=csv,noheader,nounits"]).output().ok()?;
        Some(String::from_utf8_lossy(&out.stdout).into_owned())
    };
    let list = ask("--query-compute-apps=pid,used_memory")?;
    let own = list.lines().find_map(|l| {
        let (id, memory) = l.split_once(',')?;
        (id.trim().parse() == Ok(process)).then(|| memory.trim().parse().ok())?
    });
    own.or_else(|| ask("--query-gpu=memory.used")?.lines().next()?.trim().parse().ok())
}

/// The first number of the last complete line of a table.
fn last_step(path: &Path) -> Option<f64> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(8192))).ok()?;
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    let complete = text.rsplit_once('\n')?.0;
    complete.rsplit('\n').next()?.split(',').next()?.parse().ok()
}

/// Compares the memory after a tenth of the run with that at its end, each a mean of several samples, since the threads that write
/// checkpoints and pictures come and go. Prints the speeds of the first and the last third; the load of the machine is part of both.
fn judge(samples: &[Sample]) -> Result<bool, String> {
    if samples.len() < 20 {
        return Err(format!("{} samples are too few to judge; run longer or sample more often", samples.len()));
    }
    let after = &samples[samples.len() / 10..];
    let few = (after.len() / 10).max(3);
    let mean = |list: &[Sample], f: &dyn Fn(&Sample) -> f64| list.iter().map(f).sum::<f64>() / list.len() as f64;
    let change = |f: &dyn Fn(&Sample) -> f64| {
        let (begin, end) = (mean(&after[..few], f), mean(&after[after.len() - few..], f));
        (begin, end, end / begin - 1.0)
    };
    let third = after.len() / 3;
    let speed = |list: &[Sample]| {
        let (a, b) = (list[0], list[list.len() - 1]);
        (b.step - a.step) / (b.work - a.work)
    };
    let (early, late) = (speed(&after[..=third]), speed(&after[after.len() - 1 - third..]));
    let slower = late / early - 1.0;
    let (begin, end, memory) = change(&|s| s.memory);
    println!("memory: {begin:.2} → {end:.2} MiB from 10 % of the run to its end, {:+.2} %", 100.0 * memory);
    let mut good = memory.abs() <= MEMORY;
    if after.iter().all(|s| s.gpu.is_some()) {
        let (begin, end, gpu) = change(&|s| s.gpu.unwrap_or(0.0));
        println!("memory of the GPU: {begin:.0} → {end:.0} MiB, {:+.2} %", 100.0 * gpu);
        good &= gpu.abs() <= MEMORY;
    }
    println!("{}", if good { "memory is constant within 1 %" } else { "memory is NOT constant within 1 %" });
    println!("speed: {early:.1} → {late:.1} steps/s from the first to the last third, {:+.2} %", 100.0 * slower);
    Ok(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_found() {
        let of = |growth: f64| -> Vec<Sample> {
            let one = |k: usize| Sample {
                time: 10.0 * k as f64,
                work: 20.0 * k as f64,
                memory: 100.0 * (1.0 + growth * k as f64 / 100.0),
                gpu: None,
                step: 50.0 * k as f64,
            };
            (0..100).map(one).collect()
        };
        assert_eq!(judge(&of(0.0)), Ok(true));
        assert_eq!(judge(&of(0.03)), Ok(false));
        assert!(judge(&of(0.0)[..10]).is_err());
    }

    #[test]
    fn a_slower_run_is_found() {
        assert!(as_fast(&[0.97, 1.02, 0.99, 1.03]));
        assert!(!as_fast(&[0.97, 0.98, 0.96, 0.99]));
    }

    #[test]
    fn the_last_complete_row_counts() {
        let f = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(f.path(), "step,a\n10,1\n20,2\n30").expect("written");
        assert_eq!(last_step(f.path()), Some(20.0));
    }
}
