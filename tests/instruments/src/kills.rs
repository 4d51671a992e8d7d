//! Kills: runs of all examples are ended by SIGKILL at random moments and resumed, perhaps several times. All outputs must
//! be those of an uninterrupted run, byte for byte.

use crate::Folders;
use crate::process::{Outcome, copy_examples, wait_until};
use clap::Args;
use galamost_tests::fuzz::Draws;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Options of `kills`.
#[derive(Args, Debug)]
pub struct KillArgs {
    #[command(flatten)]
    folders: Folders,
    /// Number of kills; a run is killed up to four times.
    #[arg(long, value_name = "N", default_value_t = 50)]
    count: usize,
    /// Device of the runs: cpu, emulated, cuda:0.
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// Number of runs at a time.
    #[arg(long, value_name = "J", default_value_t = 1)]
    jobs: usize,
    /// Seed of the moments.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Only examples whose name begins with one of these.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    examples: Vec<String>,
    /// Seconds of an uninterrupted run; longer examples are cut.
    #[arg(long, value_name = "SECONDS", default_value_t = 4.0)]
    seconds: f64,
    /// Folder for runs that differ.
    #[arg(long, value_name = "FOLDER", default_value = "target/kills")]
    out: PathBuf,
}

/// Longest time of a run.
const LIMIT: Duration = Duration::from_secs(600);
/// Most kills of one run.
const MOST: usize = 4;

/// An example with its uninterrupted run.
struct Reference {
    /// Number of steps; nothing if the example runs to its end.
    steps: Option<u64>,
    /// Steps between checkpoints.
    every: u64,
    /// How long the run takes.
    time: Duration,
    /// Contents of all outputs by name.
    outputs: BTreeMap<String, Vec<u8>>,
}

/// What happened to the runs of an example.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    runs: usize,
    kills: usize,
    /// Runs that were over before the moment of the kill.
    early: usize,
    resumed: usize,
    different: usize,
}

struct Shared<'a> {
    args: &'a KillArgs,
    galamost: PathBuf,
    repository: PathBuf,
    out: PathBuf,
    names: Vec<String>,
    references: Vec<OnceLock<Result<Reference, String>>>,
    next: AtomicUsize,
    kills: AtomicUsize,
    tallies: Mutex<BTreeMap<String, Tally>>,
}

/// Runs the command. Returns whether all outputs were equal.
///
/// # Errors
/// Returns an error if an example does not run at all, or if a folder is missing.
pub fn run(args: &KillArgs) -> Result<bool, String> {
    let repository = args.folders.repository()?;
    std::fs::create_dir_all(&args.out).map_err(|e| format!("{}: {e}", args.out.display()))?;
    let out = args.out.canonicalize().map_err(|e| e.to_string())?;
    let list = std::fs::read_dir(repository.join("examples")).map_err(|e| e.to_string())?;
    let mut names: Vec<String> = list.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect();
    names.retain(|n| {
        n.ends_with(".ron") && (args.examples.is_empty() || args.examples.iter().any(|e| n.starts_with(e.as_str())))
    });
    names.sort();
    if names.is_empty() {
        return Err("no such examples".into());
    }
    let references = names.iter().map(|_| OnceLock::new()).collect();
    let galamost = args.folders.galamost()?;
    let shared = Shared {
        args,
        galamost,
        repository,
        out,
        names,
        references,
        next: AtomicUsize::new(0),
        kills: AtomicUsize::new(0),
        tallies: Mutex::default(),
    };
    let errors: Vec<String> = std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..args.jobs.max(1)).map(|_| scope.spawn(|| shared.job())).collect();
        jobs.into_iter().filter_map(|j| j.join().unwrap_or_else(|_| Err("a job panicked".into())).err()).collect()
    });
    let tallies = shared.tallies.lock().unwrap_or_else(PoisonError::into_inner);
    println!("{:28} {:>5} {:>6} {:>8} {:>6} {:>10}", "example", "runs", "kills", "resumed", "early", "different");
    let mut sum = Tally::default();
    for (name, t) in tallies.iter() {
        println!("{name:28} {:>5} {:>6} {:>8} {:>6} {:>10}", t.runs, t.kills, t.resumed, t.early, t.different);
        sum.runs += t.runs;
        sum.kills += t.kills;
        sum.resumed += t.resumed;
        sum.different += t.different;
    }
    println!(
        "{} runs of {} examples on {}: {} kills, {} resumed from a checkpoint, {} runs differ",
        sum.runs,
        tallies.len(),
        args.device,
        sum.kills,
        sum.resumed,
        sum.different
    );
    if errors.is_empty() { Ok(sum.different == 0) } else { Err(errors.join("\n")) }
}

impl Shared<'_> {
    fn job(&self) -> Result<(), String> {
        loop {
            if self.kills.load(Ordering::Relaxed) >= self.args.count {
                return Ok(());
            }
            let k = self.next.fetch_add(1, Ordering::Relaxed);
            let n = k % self.names.len();
            let name = &self.names[n];
            let reference = self.references[n].get_or_init(|| self.reference(name)).as_ref().map_err(Clone::clone)?;
            let tally = self.trial(name, reference, k)?;
            self.kills.fetch_add(tally.kills, Ordering::Relaxed);
            let mut all = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
            let t = all.entry(name.clone()).or_default();
            t.runs += 1;
            t.kills += tally.kills;
            t.early += tally.early;
            t.resumed += tally.resumed;
            t.different += tally.different;
        }
    }

    /// Makes an empty folder with the files of the examples.
    fn folder(&self, name: &str) -> Result<PathBuf, String> {
        let folder = self.out.join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        copy_examples(&self.repository, &folder)?;
        Ok(folder)
    }

    fn command(&self, name: &str, steps: Option<u64>, every: u64, threads: usize) -> Command {
        let mut command = Command::new(&self.galamost);
        command.args(["--pipeline", name, "--device", &self.args.device, "--quiet", "--no-record"]);
        command.args(["--threads", &threads.to_string(), "--set", &format!("checkpoint=(every: {every}, keep: 2)")]);
        if let Some(steps) = steps {
            command.args(["--steps", &steps.to_string()]);
        }
        command
    }

    /// Runs a command to its end, which must be a success.
    fn whole(&self, command: Command, folder: &Path) -> Result<Outcome, String> {
        let outcome = crate::process::run(command, folder, LIMIT)?;
        match outcome.code() {
            Some(0) => Ok(outcome),
            _ => Err(format!("{}: {:?}: {}", folder.display(), outcome.status, outcome.errors.trim_end())),
        }
    }

    /// Finds a length for an example, and runs it without interruption.
    fn reference(&self, name: &str) -> Result<Reference, String> {
        let label = format!("whole-{}", name.trim_end_matches(".ron"));
        let timed = |steps: u64| -> Result<f64, String> {
            let folder = self.folder(&label)?;
            Ok(self.whole(self.command(name, Some(steps), 1_000_000, 1), &folder)?.time.as_secs_f64())
        };
        // the length in the pipeline is not exceeded: some examples end by themselves
        let text = std::fs::read_to_string(self.repository.join("examples").join(name)).map_err(|e| e.to_string())?;
        let numbers = text.split("steps: ").skip(1).filter_map(|t| {
            let digits: String =
                t.chars().take_while(|c| c.is_ascii_digit() || *c == '_').filter(|c| *c != '_').collect();
            digits.parse::<u64>().ok()
        });
        let length: u64 = numbers.sum();
        // longer and longer runs until the start does not matter
        let (start, mut steps) = (timed(1)?, 40);
        let mut time = timed(steps)? - start;
        while time < 0.2 * self.args.seconds && (length == 0 || steps < length) {
            steps *= 4;
            time = timed(steps)? - start;
        }
        let wanted = (steps as f64 * self.args.seconds / time.max(1e-3)) as u64;
        let steps = (length == 0 || wanted < length).then_some(wanted.max(40));
        let every = (steps.unwrap_or(length) / 12).max(3);
        let folder = self.folder(&label)?;
        let time = self.whole(self.command(name, steps, every, 1), &folder)?.time;
        let outputs = outputs(&folder)?;
        let _ = std::fs::remove_dir_all(&folder);
        Ok(Reference { steps, every, time, outputs })
    }

    /// Runs an example, kills it once or several times, and compares its outputs.
    fn trial(&self, name: &str, reference: &Reference, k: usize) -> Result<Tally, String> {
        let mut draws = Draws::new(self.args.seed, name, k as u64);
        let folder = self.folder(&format!("{k:04}-{}", name.trim_end_matches(".ron")))?;
        let (mut tally, mut threads) = (Tally { runs: 1, ..Tally::default() }, 1);
        let kills = 1 + draws.below(MOST);
        let mut log = String::new();
        let mut over = false;
        for kill in 0..kills {
            let mut command = self.command(name, reference.steps, reference.every, threads);
            if kill > 0 {
                tally.resumed += usize::from(has_checkpoint(&folder, name));
                command.arg("--resume=auto");
            }
            threads = 1 + draws.below(2);
            let share = draws.below(1000) as f64 / 1000.0;
            let moment = reference.time.mul_f64(share);
            command.current_dir(&folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().map_err(|e| format!("{command:?}: {e}"))?;
            over = wait_until(&mut child, Instant::now() + moment).is_some();
            log +=
                &format!("kill {kill} after {:.3} s{}\n", moment.as_secs_f64(), if over { ": was over" } else { "" });
            if over {
                tally.early += 1;
                break;
            }
            let _ = child.kill();
            let _ = child.wait();
            tally.kills += 1;
        }
        if !over {
            tally.resumed += usize::from(has_checkpoint(&folder, name));
            let mut command = self.command(name, reference.steps, reference.every, threads);
            command.arg("--resume=auto");
            if let Err(e) = self.whole(command, &folder) {
                tally.different = 1;
                println!("{name} run {k}: the last resume failed: {e}\n{log}");
                return Ok(tally);
            }
        }
        let differences = compare(&reference.outputs, &outputs(&folder)?);
        if differences.is_empty() {
            let _ = std::fs::remove_dir_all(&folder);
        } else {
            tally.different = 1;
            println!("{name} run {k} differs: {}\n{log}    {}", differences.join("; "), folder.display());
        }
        Ok(tally)
    }
}

fn has_checkpoint(folder: &Path, name: &str) -> bool {
    folder.join(name.replace(".ron", ".checkpoint")).exists()
}

/// The outputs of a run, also in folders: everything but inputs, temporary files, logs and what an earlier run left.
fn outputs(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).map_err(|e| format!("{}: {e}", next.display()))?.filter_map(Result::ok) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
            let ignored = [".ron", ".part", ".stderr", ".run.json", ".lock", ".checkpoint.1"];
            // a run that was killed before its first checkpoint starts again and sets its files aside
            if !name.contains(".old") && !ignored.iter().any(|e| name.ends_with(e)) {
                all.insert(name, std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?);
            }
        }
    }
    Ok(all)
}

/// Returns how outputs differ.
fn compare(whole: &BTreeMap<String, Vec<u8>>, parts: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    let mut found: Vec<String> = vec![];
    for (name, bytes) in whole {
        match parts.get(name) {
            None => found.push(format!("{name} is missing")),
            Some(other) if other != bytes => {
                let at = bytes.iter().zip(other).take_while(|(a, b)| a == b).count();
                found.push(format!("{name} differs at byte {at} of {} and {}", bytes.len(), other.len()));
            }
            Some(_) => {}
        }
    }
    found.extend(parts.keys().filter(|n| !whole.contains_key(*n)).map(|n| format!("{n} is new")));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named() {
        let of = |list: &[(&str, &str)]| -> BTreeMap<String, Vec<u8>> {
            list.iter().map(|(n, b)| ((*n).to_string(), b.as_bytes().to_vec())).collect()
        };
        let whole = of(&[("a", "123"), ("b", "1"), ("c", "1")]);
        assert_eq!(compare(&whole, &whole), Vec::<String>::new());
        let found = compare(&whole, &of(&[("a", "12"), ("b", "1"), ("d", "")]));
        assert_eq!(found, ["a differs at byte 2 of 3 and 2", "c is missing", "d is new"]);
    }
}
