//! Runs of several processes, with the kernels emulated on the CPU: their files are those of one process, and no process
//! outlives a failure.

mod divided;
mod faults;
mod hosts;
mod launches;
mod nccl;
mod overlap;
mod rebuilds;

use galamost_tests::{galamost, has_compiler, output, program, repository, skip, words};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// `mpiexec` of an MPI library with the standard ABI: `GALAMOST_MPIEXEC`, that beside `GALAMOST_PYTHON`, or that of the
/// search path. Reports a skip if there is none, or no compiler for the emulated device.
fn mpiexec() -> Option<PathBuf> {
    let named = std::env::var_os("GALAMOST_MPIEXEC").map(PathBuf::from);
    let beside = std::env::var_os("GALAMOST_PYTHON").map(|p| Path::new(&p).with_file_name("mpiexec"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut all = named.into_iter().chain(beside).chain(std::env::split_paths(&path).map(|f| f.join("mpiexec")));
    let found = all.find(|p| p.exists());
    if found.is_none() {
        skip("MPICH 5 (Python package mpich)", "there is no mpiexec beside GALAMOST_PYTHON or on the search path");
    }
    found.filter(|_| has_compiler())
}

/// An empty folder.
fn folder(name: &str) -> PathBuf {
    let folder = output().join(format!("processes-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// The command that starts `galamost` in several processes; `parts` are the numbers of processes and their arguments.
fn launcher(mpiexec: &Path, folder: &Path, parts: &[(u32, &[&str])]) -> Command {
    let mut command = Command::new(mpiexec);
    for (k, (n, args)) in parts.iter().enumerate() {
        command.args([":"].iter().take(k.min(1))).args(["-n", &n.to_string()]).arg(program()).args(*args);
    }
    command.env("PATH", path_with(mpiexec)).current_dir(folder);
    command
}

/// The search path with the folder of `mpiexec`; the library is in the folder `lib` beside it.
fn path_with(mpiexec: &Path) -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{}:{path}", mpiexec.parent().expect("a folder").display())
}

fn launch(mpiexec: &Path, folder: &Path, n: u32, args: &[&str]) -> Output {
    launcher(mpiexec, folder, &[(n, args)]).output().expect("mpiexec starts")
}

/// Checks that a run of several processes has failed. The program ends all of them with status 1, but `mpiexec` chooses its own status:
/// that of MPICH 5.0.2 ended once in about 90 runs with 2.
fn check_aborted(status: Option<i32>, said: &str) {
    assert!(status.is_some_and(|s| s != 0), "{status:?}: {said}");
}

/// What a run left in its folder, without its pipeline and checkpoints.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let all = entries.map(|e| (e.file_name().to_string_lossy().into_owned(), e.path()));
    let outputs = all.filter(|(name, _)| !name.ends_with(".ron") && !name.contains("checkpoint"));
    outputs.map(|(name, path)| (name, std::fs::read(path).expect("a file"))).collect()
}

const LJ: &str = "LennardJones(r_cut: 2.5, pairs: { (\"*\", \"*\"): (epsilon: 1.0, sigma: 1.0) })";
const DPD: &str = "Dpd(r_cut: 1.6, kT: 1.0, pairs: { (\"*\", \"*\"): (a: 25.0, sigma: 3.0) })";

fn pipeline(forces: &str, integrators: &str, more: &str) -> String {
    format!(
        "(seed: 3, initial: [
            Lattice(lattice: Sc, cells: [10, 10, 10], density: 0.85, types: {{ \"A\": 0.5, \"B\": 0.5 }}), Velocities(kT: 1.2)],
          forces: [{forces}], integrators: [{integrators}], analyzers: [Thermo(every: 2, file: \"t.csv\"), Gsd(every: 8, file: \"t.gsd\")],
          stages: [(name: \"a\", steps: 12, dt: 0.005), (name: \"b\", steps: 12, dt: 0.004)], {more})"
    )
}

fn lj() -> String {
    pipeline(LJ, "NoseHoover(kT: 1.2, tau: 0.5)", "neighbors: (buffer: 0.15)")
}

const OPTIONS: [&str; 6] = ["--pipeline", "p.ron", "--device", "emulated", "--no-record", "--quiet"];
const CPU: [&str; 8] = ["--pipeline", "p.ron", "--device", "cpu", "--no-record", "--quiet", "--threads", "1"];

/// Compares the files of one process with those of several.
fn compare(mpiexec: &Path, name: &str, prepare: impl Fn(&Path), args: &[&str], processes: &[u32]) {
    compare_with(name, prepare, args, processes, &|folder, n, args| launch(mpiexec, folder, n, args));
}

/// As [`compare`]; `launch` runs several processes in a folder.
fn compare_with(
    name: &str,
    prepare: impl Fn(&Path),
    args: &[&str],
    processes: &[u32],
    launch: &dyn Fn(&Path, u32, &[&str]) -> Output,
) {
    let run = |n: u32| {
        let folder = folder(&format!("{name}-{n}"));
        prepare(&folder);
        let done = if n == 1 { galamost(&folder, args) } else { launch(&folder, n, args) };
        assert!(done.status.success(), "{name}, {n} processes: {}", words(&done));
        files(&folder)
    };
    let one = run(1);
    let rows = one.values().map(|f| f.iter().filter(|b| **b == b'\n').count()).max();
    assert!(rows > Some(5), "{name} wrote no rows: {rows:?}");
    for n in processes {
        let several = run(*n);
        let differ: Vec<_> = one.keys().filter(|file| several.get(*file) != one.get(*file)).collect();
        assert!(differ.is_empty() && several.len() == one.len(), "{name}, {n} processes: {differ:?} differ");
    }
}

#[test]
#[ignore = "5 seconds"]
fn liquids_have_the_same_bits_on_any_number_of_processes() {
    let Some(mpiexec) = mpiexec() else { return };
    let buffer = "neighbors: (buffer: 0.15)";
    let staged = "neighbors: (buffer: 0.15, list: Staged)";
    let dpd_twice = pipeline(DPD, "DpdVerlet()", buffer);
    same_files(&mpiexec, "dpd-twice", &dpd_twice, &[], &[4]);
    let npt = pipeline(LJ, "MtkNpt(kT: 1.2, tau: 0.5, pressure: 1.0, tau_p: 1.0)", buffer);
    same_files(&mpiexec, "npt", &npt, &[3], &[2, 3]);
    same_files(&mpiexec, "staged", &pipeline(DPD, "Bussi(kT: 1.0, tau: 0.5)", staged), &[3], &[]);
}

#[test]
#[ignore = "a minute"]
fn other_liquids_have_the_same_bits_on_any_number_of_processes() {
    let Some(mpiexec) = mpiexec() else { return };
    let buffer = "neighbors: (buffer: 0.15)";
    let npt = "MtkNpt(kT: 1.2, tau: 0.5, pressure: 1.0, tau_p: 1.0)";
    same_files(&mpiexec, "lj", &lj(), &[2, 3, 4], &[2, 3, 4]);
    same_files(&mpiexec, "dpd", &pipeline(DPD, "GrootWarren()", buffer), &[2, 4], &[2, 3, 4]);
    same_files(&mpiexec, "dpd-twice", &pipeline(DPD, "DpdVerlet()", buffer), &[3], &[2, 3]);
    same_files(&mpiexec, "double", &pipeline(LJ, npt, "precision: Double"), &[2], &[2, 3, 4]);
}

/// Compares the files of one process with those of several, on the emulated device and on the CPU.
fn same_files(mpiexec: &Path, name: &str, text: &str, emulated: &[u32], cpu: &[u32]) {
    let write = |f: &Path| std::fs::write(f.join("p.ron"), text).expect("written");
    for (name, options, processes) in [(name.to_string(), &OPTIONS[..], emulated), (format!("cpu-{name}"), &CPU, cpu)] {
        if !processes.is_empty() {
            compare(mpiexec, &name, write, options, processes);
        }
    }
}

/// New angles have members that are no neighbors: their positions come from other processes from then on.
#[test]
#[ignore = "3 seconds"]
fn reactions_have_the_same_bits_in_several_processes() {
    let Some(mpiexec) = mpiexec() else { return };
    let text = crate::reaction_laws::stars(200, "Mixed", "Each", 4, 20);
    let write = |f: &Path| std::fs::write(f.join("p.ron"), &text).expect("written");
    compare(&mpiexec, "reactions", write, &OPTIONS, &[2, 4]);
    compare(&mpiexec, "cpu-reactions", write, &CPU, &[2, 3, 4]);
}

/// A table that only the first process writes is no input of the others.
#[test]
#[ignore = "3 seconds"]
fn reactions_with_a_table_resume_in_several_processes() {
    let Some(mpiexec) = mpiexec() else { return };
    let folder = folder("events");
    let joins = "updaters: [Reactions(every: 4, r_cut: 1.25, file: \"events.csv\", reactions: [ \
                 (kind: Join, of: (\"A\", \"B\"), p: 0.2)])], checkpoint: (every: 8)";
    let text = pipeline(LJ, "Langevin(kT: 1.2, gamma: 1.0)", joins);
    let links = "Velocities(kT: 1.2), LinkTypes(bonds: [\"A-B\"])";
    std::fs::write(folder.join("p.ron"), text.replace("Velocities(kT: 1.2)", links)).expect("written");
    let run = |n: u32, more: &[&str]| {
        let done = launch(&mpiexec, &folder, n, &[&CPU, more].concat());
        assert!(done.status.success(), "{n} processes, {more:?}: {}", words(&done));
        std::fs::read_to_string(folder.join("events.csv")).expect("events")
    };
    run(2, &["--steps", "11"]);
    let parts = run(2, &["--resume"]);
    assert!(parts.lines().count() > 20, "{parts}");
    assert_eq!(parts, run(3, &[]));
    run(1, &["--resume"]);
}

#[test]
#[ignore = "5 seconds"]
fn constraints_have_the_same_bits_in_several_processes() {
    let Some(mpiexec) = mpiexec() else { return };
    for (name, list) in [("plain", "Plain"), ("staged", "Staged")] {
        let more = format!(
            "neighbors: (buffer: 0.1, exclude: [Bonds], list: {list}), analyzers: [Thermo(every: 2, file: \"t.csv\")]"
        );
        let text = crate::ranks::placed::constrained("MtkNpt(kT: 1.0, tau: 0.3, pressure: 1.0, tau_p: 0.5)", &more);
        let write = |f: &Path| std::fs::write(f.join("p.ron"), &text).expect("written");
        compare(&mpiexec, &format!("constraints-{name}"), write, &OPTIONS, &[3]);
        if list == "Plain" {
            compare(&mpiexec, "cpu-constraints", write, &CPU, &[3]);
        }
    }
}

/// Reactions that change the topology, placed particles.
#[test]
fn examples_write_the_same_files_in_several_processes() {
    examples_are_the_same(&[("31-network", 24), ("74-rigid-bodies", 20)]);
}

/// Bonds, orientations, fields computed by the first rank, sites.
#[test]
#[ignore = "a minute"]
fn more_examples_write_the_same_files_in_several_processes() {
    examples_are_the_same(&[
        ("06-kremer-grest-melt", 16),
        ("13-janus", 20),
        ("34-field-blend", 6),
        ("76-impropers", 12),
        ("77-virtual-sites", 20),
    ]);
}

fn examples_are_the_same(examples: &[(&str, u32)]) {
    let Some(mpiexec) = mpiexec() else { return };
    for (example, steps) in examples {
        let prepare = |folder: &Path| {
            let from = repository().join("examples");
            std::fs::copy(from.join(format!("{example}.ron")), folder.join("p.ron")).expect("copied");
            let xml = format!("{example}.xml");
            if from.join(&xml).exists() {
                std::fs::copy(from.join(&xml), folder.join(&xml)).expect("copied");
            }
        };
        // the first analyzer is `Thermo`, whose rows have all digits
        let more = ["--steps", &steps.to_string(), "--set", "analyzers[0].every=1"];
        compare(&mpiexec, example, prepare, &[&OPTIONS[..], &more].concat(), &[3]);
        compare(&mpiexec, &format!("cpu-{example}"), prepare, &[&CPU[..], &more].concat(), &[2, 3]);
    }
}

#[test]
#[ignore = "3 seconds"]
fn a_run_resumes_on_another_number_of_processes() {
    let Some(mpiexec) = mpiexec() else { return };
    let write = |name: &str| {
        let folder = folder(name);
        let checkpoint = "neighbors: (buffer: 0.15), checkpoint: (every: 8)";
        let text = pipeline(LJ, "NoseHoover(kT: 1.2, tau: 0.5)", checkpoint);
        std::fs::write(folder.join("p.ron"), text).expect("written");
        folder
    };
    let (whole, parts) = (write("whole"), write("parts"));
    let done = galamost(&whole, &OPTIONS);
    assert!(done.status.success(), "{}", words(&done));
    let run = |n: u32, more: &[&str]| {
        let done = launch(&mpiexec, &parts, n, &[&OPTIONS, more].concat());
        assert!(done.status.success(), "{n} processes: {}", words(&done));
    };
    run(3, &["--steps", "11"]);
    assert!(parts.join("p.checkpoint").exists());
    run(2, &["--resume", "--steps", "17"]);
    let done = galamost(&parts, &[&OPTIONS[..], &["--resume"]].concat());
    assert!(done.status.success(), "{}", words(&done));
    assert_eq!(files(&whole), files(&parts));
}

/// The first process writes the last line of the log before it ends all processes.
#[test]
fn a_log_in_json_ends_with_the_status_of_a_fault() {
    let Some(mpiexec) = mpiexec() else { return };
    let folder = folder("fault-json");
    std::fs::write(folder.join("p.ron"), lj().replace("dt: 0.005", "dt: 1.0").replace("tau: 0.5", "tau: 5.0"))
        .expect("written");
    let out = launch(&mpiexec, &folder, 2, &[&CPU[..], &["--log", "json"]].concat());
    check_aborted(out.status.code(), &words(&out));
    let events: Vec<serde_json::Value> = words(&out).lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
    let named = |name: &str| events.iter().filter(|e| e["event"] == name).collect::<Vec<_>>();
    let (errors, ends) = (named("error"), named("end"));
    assert!(errors.len() == 1 && ends.len() == 1, "{}", words(&out));
    assert_eq!(ends[0]["status"], 1);
    let notes = errors[0]["notes"].to_string();
    assert!(notes.contains("the same run in one process has the same bits"), "{notes}");
}

/// A run of three processes that would take long.
struct Running {
    mpiexec: Child,
    pipeline: String,
}

impl Running {
    fn start(mpiexec: &Path, name: &str) -> Self {
        let folder = folder(name);
        let pipeline = folder.join("p.ron").display().to_string();
        std::fs::write(&pipeline, lj().replace("steps: 12", "steps: 1000000")).expect("written");
        let args = ["--pipeline", &pipeline, "--device", "emulated", "--no-record", "--quiet"];
        let mut command = launcher(mpiexec, &folder, &[(3, &args)]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("mpiexec starts");
        let running = Self { mpiexec: child, pipeline };
        let rows = || std::fs::read_to_string(folder.join("t.csv")).map_or(0, |t| t.lines().count());
        let begun = Instant::now();
        while rows() < 5 {
            assert!(begun.elapsed() < Duration::from_secs(300), "the run does not start");
            std::thread::sleep(Duration::from_millis(100));
        }
        running
    }

    /// The processes with their ranks.
    fn processes(&self) -> BTreeMap<u32, u32> {
        let mut found = BTreeMap::new();
        for entry in std::fs::read_dir("/proc").expect("processes").flatten() {
            let read = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
            let has = |bytes: &[u8], what: &str| bytes.split(|b| *b == 0).any(|part| part == what.as_bytes());
            let is_program = std::fs::read_link(entry.path().join("exe")).is_ok_and(|p| p.ends_with("galamost"));
            if is_program && has(&read("cmdline"), &self.pipeline) {
                let environment = read("environ");
                let rank = (0..3).find(|r| has(&environment, &format!("PMI_RANK={r}")));
                let pid = entry.file_name().to_string_lossy().parse();
                found.extend(rank.zip(pid.ok()));
            }
        }
        found
    }

    fn signal(&self, rank: u32, signal: &str) {
        let pid = self.processes()[&rank].to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().expect("kill").success());
    }

    /// Waits for the end within 60 seconds, and returns the exit status and what was said.
    fn end(mut self) -> (Option<i32>, String) {
        let begun = Instant::now();
        // killed processes may be left for a moment after mpiexec has ended
        while self.mpiexec.try_wait().expect("a status").is_none() || !self.processes().is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(60), "the run does not end");
            std::thread::sleep(Duration::from_millis(100));
        }
        let (mut said, mut printed) = (String::new(), String::new());
        self.mpiexec.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
        self.mpiexec.stdout.take().expect("a pipe").read_to_string(&mut printed).expect("text");
        (self.mpiexec.wait().expect("a status").code(), said + &printed)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.mpiexec.kill();
        for pid in self.processes().values() {
            let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        }
    }
}

#[test]
fn a_signal_ends_all_processes_with_a_checkpoint() {
    let Some(mpiexec) = mpiexec() else { return };
    let running = Running::start(&mpiexec, "signal");
    assert_eq!(running.processes().len(), 3);
    let checkpoint = Path::new(&running.pipeline).with_file_name("p.checkpoint");
    // another process leaves it to the first one, also if the signal is repeated after more than a second
    running.signal(1, "-TERM");
    std::thread::sleep(Duration::from_millis(1100));
    running.signal(1, "-TERM");
    assert!(!checkpoint.exists());
    running.signal(0, "-TERM");
    let (status, said) = running.end();
    assert_eq!(status, Some(0), "{said}");
    assert!(checkpoint.exists());
}

#[test]
#[ignore = "3 seconds"]
fn no_process_outlives_a_killed_one() {
    let Some(mpiexec) = mpiexec() else { return };
    for rank in [0, 2] {
        let running = Running::start(&mpiexec, &format!("killed-{rank}"));
        running.signal(rank, "-KILL");
        let (status, said) = running.end();
        assert_ne!(status, Some(0), "{said}");
    }
}

#[test]
fn a_process_that_stops_answering_is_named() {
    let Some(mpiexec) = mpiexec() else { return };
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("the name of the host");
    for rank in [0, 1] {
        let running = Running::start(&mpiexec, &format!("stopped-{rank}"));
        running.signal(rank, "-STOP");
        let (status, said) = running.end();
        check_aborted(status, &said);
        let message = format!("rank {rank} on host {} has stopped answering", host.trim());
        assert_eq!(said.matches(&message).count(), 1, "{said}");
    }
}
