//! Checkpoints: when they are written, how many are kept, which one a run resumes from, and what may change between runs.

use galamost_tests::{csv, galamost, has_compiler, program, repository, words};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A liquid that is never done.
const PIPELINE: &str = r#"(
    seed: 4,
    initial: [ Lattice(lattice: Fcc, cells: [5, 5, 5], density: 0.7), Velocities(kT: 1.0) ],
    forces: [ LennardJones(r_cut: 2.5, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0) }) ],
    integrators: [ NoseHoover(kT: 1.0, tau: 0.5) ],
    analyzers: [ Thermo(every: 10, file: "t.csv") ],
    checkpoint: (every: 20),
    stages: [ (steps: 100, dt: 0.004) ],
)"#;

fn folder() -> tempfile::TempDir {
    let f = tempfile::tempdir().expect("a folder");
    std::fs::write(f.path().join("p.ron"), PIPELINE).expect("written");
    f
}

/// Runs, and returns what was said; `status` is the exit status wanted.
fn go(folder: &Path, args: &[&str], status: i32) -> String {
    let out = galamost(folder, &[&["--pipeline", "p.ron", "--device", "cpu"], args].concat());
    let said = words(&out);
    assert_eq!(out.status.code(), Some(status), "{args:?}: {said}");
    said
}

fn same(a: &Path, b: &Path) {
    for file in ["t.csv", "p.checkpoint"] {
        let read = |f: &Path| std::fs::read(f.join(file)).expect(file);
        assert!(read(a) == read(b), "{file} differs");
    }
}

fn damage(path: &Path) {
    let mut bytes = std::fs::read(path).expect("a checkpoint");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(path, &bytes).expect("written");
}

#[test]
fn the_newest_valid_checkpoint_is_resumed() {
    let (whole, f) = (folder(), folder());
    go(whole.path(), &[], 0);
    go(f.path(), &["--set", "checkpoint=(every: 20, keep: 3)", "--steps", "90"], 0);
    let at = |name: &str| f.path().join(name);
    assert!(["p.checkpoint", "p.checkpoint.1", "p.checkpoint.2"].iter().all(|n| at(n).is_file()));
    assert!(!at("p.checkpoint.3").exists() && !at(".galamost.p.checkpoint.part").exists());
    // of steps 90, 80 and 60: the first is damaged, the second is cut off
    damage(&at("p.checkpoint"));
    let bytes = std::fs::read(at("p.checkpoint.1")).expect("a checkpoint");
    std::fs::write(at("p.checkpoint.1"), &bytes[..bytes.len() / 3]).expect("written");
    let said = go(f.path(), &["--resume"], 0);
    assert!(said.contains("p.checkpoint: is damaged or truncated"), "{said}");
    assert!(said.contains("p.checkpoint.1: is damaged or truncated"), "{said}");
    assert!(said.contains("resuming from step 60 of p.checkpoint.2"), "{said}");
    same(whole.path(), f.path());
    // this run keeps two
    assert!(at("p.checkpoint.1").is_file() && !at("p.checkpoint.2").exists());
    for name in ["p.checkpoint", "p.checkpoint.1"] {
        damage(&at(name));
    }
    let said = go(f.path(), &["--resume"], 2);
    assert!(said.contains("p.checkpoint.1: is damaged") && said.contains("2 errors"), "{said}");
    std::fs::write(at("p.checkpoint"), "something else").expect("written");
    std::fs::remove_file(at("p.checkpoint.1")).expect("removed");
    assert!(go(f.path(), &["--resume"], 2).contains("is not a checkpoint of this engine"));
    std::fs::write(at("p.checkpoint"), "GALAMOST checkpoint 1\nand more").expect("written");
    assert!(go(f.path(), &["--resume"], 2).contains("was written by another version of the engine"));
}

#[test]
fn a_run_starts_or_resumes_as_requested() {
    let (whole, f) = (folder(), folder());
    go(whole.path(), &[], 0);
    // `auto` starts, and then resumes
    assert!(!go(f.path(), &["--resume=auto", "--steps", "50"], 0).contains("going on"));
    std::fs::copy(f.path().join("p.checkpoint"), f.path().join("half")).expect("copied");
    assert!(go(f.path(), &["--resume=auto"], 0).contains("resuming from step 50 of p.checkpoint\n"));
    same(whole.path(), f.path());
    // from a file of the user's choice, outputs are cut back again
    let said = go(f.path(), &[&format!("--resume={}", f.path().join("half").display())], 0);
    assert!(said.contains("resuming from step 50 of "), "{said}");
    same(whole.path(), f.path());
    assert_eq!(csv(&f.path().join("t.csv"))["step"].len(), 11);
    // start from scratch: checkpoints of an earlier run are not used
    let said = go(f.path(), &["--steps", "10", "--set", "checkpoint=(every: 1000)"], 0);
    assert!(said.contains("p.run.json, t.csv of an earlier run renamed: `.old` is appended"), "{said}");
    let out = galamost(f.path(), &["--pipeline", "p.ron", "--resume-changed"]);
    assert_eq!(out.status.code(), Some(2), "{}", words(&out));
}

/// Another seed or precision is refused, or taken if the user says so.
#[test]
fn changes_to_a_resumed_run_are_accepted_on_request() {
    let f = folder();
    go(f.path(), &["--steps", "60"], 0);
    let keep = f.path().join("keep");
    std::fs::copy(f.path().join("p.checkpoint"), &keep).expect("copied");
    let resume = format!("--resume={}", keep.display());
    let set = ["--set", "precision=Double", "--set", "seed=5", "--set", "analyzers[0].every=1"];
    let said = go(f.path(), &[&set[..], &[&resume]].concat(), 2);
    assert!(said.contains("precision was Mixed, is Double; seed was 4, is 5; --resume-changed accepts it"), "{said}");
    let mut energies = vec![];
    for precision in ["Mixed", "Double", "Single"] {
        let set = [&format!("precision={precision}") as &str, "seed=5", "analyzers[0].every=1"];
        let set = set.iter().flat_map(|s| ["--set", s]).collect::<Vec<_>>();
        let more = [resume.as_str(), "--resume-changed", "--steps", "70"];
        let said = go(f.path(), &[&set[..], &more].concat(), 0);
        assert!(
            said.contains("seed was 4, is 5: the results will differ from those of an uninterrupted run"),
            "{said}"
        );
        let t = csv(&f.path().join("t.csv"));
        let rows = t["step"].iter().zip(&t["potential"]).filter(|(s, _)| **s > 60.0);
        energies.push(rows.map(|(s, u)| (*s, *u)).unzip::<_, _, Vec<f64>, Vec<f64>>());
        // an empty file is begun again
        std::fs::write(f.path().join("t.csv"), "").expect("emptied");
    }
    let (steps, mixed) = &energies[0];
    assert!(steps.len() == 10, "{steps:?}");
    for (_, other) in &energies[1..] {
        let worst = mixed.iter().zip(other).fold(0.0f64, |m, (a, b)| m.max((a / b - 1.0).abs()));
        // ten steps: positions of the single-precision run are rounded to 5e-7, which changes energies by 1e-5 at most
        assert!(worst < 1e-4, "{worst}: {energies:?}");
    }
    // back again: from Double, whose checkpoint this run has written
    let set = ["--set", "precision=Double", "--set", "seed=4"];
    go(f.path(), &[&set[..], &[&resume, "--resume-changed", "--steps", "70"]].concat(), 0);
    go(f.path(), &["--resume", "--resume-changed", "--steps", "80"], 0);
    // what is no matter of taste is refused all the same
    let said = go(f.path(), &[&resume, "--resume-changed", "--set", "integrators=[VelocityVerlet()]"], 2);
    assert!(said.contains("component number") && !said.contains("--resume-changed accepts"), "{said}");
}

/// All files of a folder.
fn files(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).expect("a folder").filter_map(|e| Some(e.ok()?.path()));
    let mut all: Vec<_> =
        entries.filter(|p| p.is_file()).map(|p| (p.clone(), std::fs::read(p).expect("a file"))).collect();
    all.sort();
    all
}

/// Changed settings are named with both values, and nothing is touched; values that do not change the trajectory may change.
#[test]
fn changed_settings_are_named_before_anything_runs() {
    let f = folder();
    go(f.path(), &["--steps", "50"], 0);
    let before = files(f.path());
    for (sets, expected) in [
        (&["integrators[0].kT=1.2"][..], &["kT of NoseHoover 1.0 → 1.2"][..]),
        (&["forces[0].pairs[0].epsilon=1.5"], &["pairs[(\"A\", \"A\")].epsilon of LennardJones 1.0 → 1.5"]),
        (
            &["stages[0].dt=0.002", "forces[0].r_cut=2.2"],
            &["dt of stage 1 0.004 → 0.002", "r_cut of LennardJones 2.5 → 2.2"],
        ),
        (&["neighbors=(buffer: 0.4)"], &["neighbors absent → (buffer: 0.4)"]),
        (&["initial[1].kT=2.0"], &["kT of Velocities 1.0 → 2.0"]),
        (&["updaters=[ZeroMomentum(every: 10)]"], &["ZeroMomentum added to updaters"]),
    ] {
        let set: Vec<&str> = sets.iter().flat_map(|s| ["--set", s]).collect();
        let said = go(f.path(), &[&set[..], &["--resume"]].concat(), 2);
        for text in expected {
            assert!(said.contains(text), "{text}: {said}");
        }
        assert!(said.contains("--resume-changed accepts it"), "{said}");
        assert!(before == files(f.path()), "{sets:?} changed files");
    }
    let said = go(f.path(), &["--resume", "--resume-changed", "--steps", "60", "--set", "integrators[0].kT=1.2"], 0);
    assert!(said.contains("kT of NoseHoover 1.0 → 1.2: the results will differ"), "{said}");
    // the new checkpoint has the new value
    go(f.path(), &["--resume", "--steps", "70", "--set", "integrators[0].kT=1.2"], 0);
    let free = ["analyzers[0].every=5", "stages[0].steps=80", "checkpoint=(every: 10)", "integrators[0].kT=1.2"];
    let free: Vec<&str> = free.iter().flat_map(|s| ["--set", s]).collect();
    let said = go(f.path(), &[&free[..], &["--resume"]].concat(), 0);
    assert!(said.contains("changed since p.checkpoint was written: every of Thermo 10 → 5"), "{said}");
    assert!(said.contains("steps of stage 1 100 → 80") && said.contains("checkpoint.every 20 → 10"), "{said}");
}

/// Outputs that are missing or shorter than at the checkpoint are named, and nothing is touched.
#[test]
#[ignore = "3 seconds"]
fn outputs_that_cannot_be_continued_are_refused() {
    let f = folder();
    let names =
        ["t.csv", "t.gsd", "t.dcd", "t.xyz", "t.dump", "t.pdb", "t.gro", "t.xtc", "t.trr", "t.mst", "t.parquet"];
    let writers = ["Thermo", "Gsd", "Dcd", "ExtendedXyz", "LammpsDump", "Pdb", "Gro", "Xtc", "Trr", "Mst", "Thermo"];
    let list = writers.iter().zip(names).map(|(w, n)| format!("{w}(every: 10, file: \"{n}\"), ")).collect::<String>();
    let set = format!("analyzers=[{list}]");
    let run = |more: &[&str], status: i32| go(f.path(), &[&["--set", &set], more].concat(), status);
    run(&["--steps", "50"], 0);
    for (k, name) in names.iter().enumerate() {
        let path = f.path().join(name);
        let aside = path.with_extension("aside");
        let before = files(f.path());
        std::fs::rename(&path, &aside).expect("renamed");
        let said = run(&["--resume"], 2);
        assert!(said.contains(&format!("{name}: is missing; it had ")), "{name}: {said}");
        assert!(said.contains("p.ron:") && said.contains("nothing was done"), "{name}: {said}");
        assert!(!path.exists(), "{name} was made");
        std::fs::rename(&aside, &path).expect("renamed");
        assert!(before == files(f.path()), "{name}: files changed");
        if path.is_dir() {
            continue;
        }
        let bytes = std::fs::read(&path).expect("bytes");
        std::fs::write(&path, &bytes[..bytes.len() / 2]).expect("written");
        let before = files(f.path());
        let said = run(&["--resume"], 2);
        assert!(said.contains(name) && said.contains("nothing was done"), "{name}: {said}");
        assert!(before == files(f.path()), "{name}: files changed");
        // empty files are begun again
        std::fs::write(&path, "").expect("emptied");
        run(&["--resume", "--steps", &format!("{}", 60 + 10 * k)], 0);
        assert!(std::fs::metadata(&path).expect("a file").len() > 0, "{name}");
    }
    run(&["--resume", "--steps", "170"], 0);
}

/// A checkpoint beyond the end of the run is an error; the summary counts the steps before the checkpoint.
#[test]
fn a_checkpoint_beyond_the_end_is_refused() {
    let (whole, f) = (folder(), folder());
    let list = |said: &str| said.lines().find(|l| l.contains("rebuilds, one every")).map(String::from).expect("a line");
    let expected = list(&go(whole.path(), &[], 0));
    go(f.path(), &["--steps", "90"], 0);
    let before = files(f.path());
    let said = go(f.path(), &["--resume", "--steps", "89"], 2);
    assert!(said.contains("the checkpoint is at step 90, which is beyond --steps 89"), "{said}");
    let said = go(f.path(), &["--resume", "--set", "stages[0].steps=80"], 2);
    assert!(said.contains("step 90, which is beyond the 80 steps of the pipeline; give --steps"), "{said}");
    assert!(before == files(f.path()));
    // at the end there is nothing to do
    go(f.path(), &["--resume", "--steps", "90"], 0);
    let said = go(f.path(), &["--resume"], 0);
    assert!(said.contains("10 steps in ") && said.contains("100 steps in total"), "{said}");
    assert_eq!(list(&said), expected);
    same(whole.path(), f.path());
}

/// A run without end, with its words.
fn start(folder: &Path, args: &[&str]) -> Child {
    Command::new(program())
        .args(["--pipeline", "p.ron", "--device", "cpu", "--threads", "1", "--steps", "100000000"])
        .args(args)
        .current_dir(folder)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

fn wait_for(what: impl Fn() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it did not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn ended(child: Child) -> String {
    let out = child.wait_with_output().expect("ended");
    let said = words(&out);
    assert_eq!(out.status.code(), Some(0), "{said}");
    said
}

#[test]
fn a_signal_writes_a_checkpoint_and_the_run_continues() {
    let f = folder();
    let rows = || std::fs::read_to_string(f.path().join("t.csv")).map_or(0, |t| t.lines().count());
    let child = start(f.path(), &["--set", "checkpoint=(every: 1000000000)"]);
    let id = child.id().to_string();
    let send = |signal: &str| assert!(Command::new("kill").args([signal, &id]).status().expect("kill").success());
    wait_for(|| rows() > 3);
    send("-USR1");
    wait_for(|| f.path().join("p.checkpoint").exists());
    let then = rows();
    wait_for(|| rows() > then + 3);
    send("-TERM");
    let said = ended(child);
    assert_eq!(said.matches("written to p.checkpoint").count(), 2, "{said}");
}

#[test]
#[ignore = "20 seconds"]
fn checkpoints_are_written_by_wall_time() {
    let f = folder();
    let child = start(f.path(), &["--set", "checkpoint=(minutes: 0.003, keep: 1)", "--walltime", "0:10"]);
    let begun = Instant::now();
    let said = ended(child);
    assert!(begun.elapsed() < Duration::from_secs(20), "it took {:?}", begun.elapsed());
    assert!(said.contains("the wall time is nearly over") && said.contains("stopped; resume with"), "{said}");
    assert!(said.matches("written to p.checkpoint").count() > 5, "{said}");
    assert!(!f.path().join("p.checkpoint.1").exists());
    // one early on, to see how long it takes, and one at the end
    let said = ended(start(f.path(), &["--resume", "--set", "checkpoint=()", "--walltime", "0:10"]));
    assert_eq!(said.matches("written to p.checkpoint").count(), 2, "{said}");
    for wrong in ["soon", "0", "1:2:3:4"] {
        assert!(go(f.path(), &["--walltime", wrong], 2).contains("is not a time"));
    }
}

/// Files of a limited size, as on a full disk.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_ends_the_run_and_keeps_the_earlier_checkpoint() {
    let f = folder();
    go(f.path(), &["--steps", "50"], 0);
    let before = std::fs::read(f.path().join("p.checkpoint")).expect("a checkpoint");
    // 8 blocks of 1024 bytes: the rows fit, the checkpoint does not
    let command = format!(
        "ulimit -f 8; exec {} --pipeline p.ron --device cpu --quiet --resume --steps 1000",
        program().display()
    );
    let out = Command::new("bash").args(["-c", &command]).current_dir(f.path()).output().expect("bash");
    let said = words(&out);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("p.checkpoint: the checkpoint cannot be written: File too large"), "{said}");
    assert!(said.contains("an earlier checkpoint is in p.checkpoint"), "{said}");
    assert!(said.contains("galamost --pipeline p.ron --resume"), "{said}");
    assert!(before == std::fs::read(f.path().join("p.checkpoint")).expect("a checkpoint"));
    assert!(!f.path().join(".galamost.p.checkpoint.part").exists(), "half a file was left");
    // with room again, the run is the one that it would have been
    let whole = folder();
    go(whole.path(), &[], 0);
    go(f.path(), &["--resume"], 0);
    same(whole.path(), f.path());
    // a place that cannot be written is found before the first step
    for file in ["/proc/x.checkpoint", "not-there/x.checkpoint"] {
        let said = go(f.path(), &["--set", &format!("checkpoint=(every: 10, file: \"{file}\")")], 2);
        assert!(said.contains("cannot write a checkpoint here") && said.contains("nothing was done"), "{said}");
    }
}

/// Makes a library in which this C++ statement precedes each `fsync` of a checkpoint.
#[cfg(target_os = "linux")]
fn slow_disk(folder: &Path, pause: &str) -> std::path::PathBuf {
    let (source, library) = (folder.join("slow.cpp"), folder.join("slow.so"));
    let text = format!(
        "#include <dlfcn.h>\n#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\n\
         extern \"C\" int fsync(int fd) {{\n\
         char link[64], name[4096] = {{0}};\n\
         snprintf(link, sizeof link, \"/proc/self/fd/%d\", fd);\n\
         if (readlink(link, name, sizeof name - 1) > 0 && strstr(name, \"checkpoint.part\")) {pause};\n\
         return reinterpret_cast<int (*)(int)>(dlsym(RTLD_NEXT, \"fsync\"))(fd);\n}}\n"
    );
    std::fs::write(&source, text).expect("written");
    let out = Command::new("g++")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(&source)
        .arg("-ldl")
        .output()
        .expect("g++");
    assert!(out.status.success(), "{}", words(&out));
    library
}

/// The run continues while a slow disk takes a checkpoint; a kill meanwhile costs no more than that one; and the end before a
/// wall-time limit comes early enough for the disk.
#[test]
#[cfg(target_os = "linux")]
fn a_slow_disk_delays_only_the_end_of_a_run() {
    if !has_compiler() {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let start = |f: &Path, pause: &str, args: &[&str]| {
        Command::new(program())
            .args(["--pipeline", "p.ron", "--device", "cpu", "--threads", "1"])
            .args(args)
            .env("LD_PRELOAD", slow_disk(place.path(), pause))
            .current_dir(f)
            .stderr(Stdio::piped())
            .spawn()
            .expect("started")
    };
    let f = folder();
    // this disk takes a checkpoint when there is a file `go`, which it removes; after a minute, the run is given up
    let held = "for (int k = 0; k < 60000 && unlink(\"go\") != 0; ++k) usleep(1000)";
    let mut child = start(f.path(), held, &["--set", "checkpoint=(every: 4000)", "--steps", "200000"]);
    let (at, begun) = (|name: &str| f.path().join(name), Instant::now());
    let wait = |what: &str, there: &dyn Fn() -> bool| {
        while !there() {
            assert!(begun.elapsed() < Duration::from_secs(50), "{what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    // the header and the samples up to the first checkpoint
    let rows = || std::fs::read_to_string(at("t.csv")).map_or(0, |t| t.lines().count());
    wait("the run waited for the disk", &|| rows() > 402);
    assert!(!at("p.checkpoint").exists());
    std::fs::write(at("go"), "").expect("written");
    wait("no second checkpoint", &|| at("p.checkpoint").exists() && at(".galamost.p.checkpoint.part").exists());
    child.kill().expect("killed");
    child.wait().expect("ended");
    let said = go(f.path(), &["--set", "checkpoint=(every: 4000)", "--steps", "8000", "--resume"], 0);
    assert!(said.contains("step 4000"), "{said}");
    let whole = folder();
    go(whole.path(), &["--set", "checkpoint=(every: 4000)", "--steps", "8000"], 0);
    same(whole.path(), f.path());
    // two seconds for each one: a run that does not reckon with them ends 1.5 s before the limit
    let f = folder();
    let out = start(
        f.path(),
        "sleep(2)",
        &["--set", "checkpoint=(minutes: 60.0)", "--steps", "1000000000", "--walltime", "0:10"],
    );
    let out = out.wait_with_output().expect("ended");
    assert!(out.status.success(), "{}", words(&out));
    let record = std::fs::read_to_string(f.path().join("p.run.json")).expect("a record");
    let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
    let ended: f64 = ["start_up", "seconds"].iter().filter_map(|k| record["runs"][0][k].as_f64()).sum();
    println!("the last checkpoint began after {ended:.2} s of 10");
    assert!(ended > 0.0 && ended + 2.0 <= 10.0, "{ended} s");
    assert!(words(&out).contains("written to p.checkpoint") && f.path().join("p.checkpoint").exists());
}

/// A table, and a file that the topology includes; a comment in the latter changes nothing.
#[test]
fn other_contents_of_input_files_are_noticed() {
    for (example, file, then, now, expected) in [
        ("38-table", "38-table.xml", "</", " </", "`38-table.xml` of PairTable has other contents"),
        ("95-gromacs", "95-molecules.itp", "; a chain", "; one chain", ""),
        ("95-gromacs", "95-molecules.itp", "SC    45.0", "SC    46.0", "initial state has other contents"),
    ] {
        let (folder, set) = (tempfile::tempdir().expect("a folder"), ["--set", "checkpoint=(every: 10)"]);
        for e in std::fs::read_dir(repository().join("examples")).expect("examples").flatten() {
            if e.file_name().to_string_lossy().starts_with(&example[..2]) {
                std::fs::copy(e.path(), folder.path().join(e.file_name())).expect("copied");
            }
        }
        std::fs::copy(folder.path().join(format!("{example}.ron")), folder.path().join("p.ron")).expect("copied");
        go(folder.path(), &[&set[..], &["--steps", "20"]].concat(), 0);
        let path = folder.path().join(file);
        let text = std::fs::read_to_string(&path).expect("text");
        assert!(text.contains(then), "{then}");
        std::fs::write(&path, text.replacen(then, now, 1)).expect("written");
        let more = [set[0], set[1], "--resume", "--steps", "30"];
        if expected.is_empty() {
            go(folder.path(), &more, 0);
            continue;
        }
        let said = go(folder.path(), &more, 2);
        assert!(said.contains(&format!("other settings: {expected}; --resume-changed accepts it")), "{said}");
        let said = go(folder.path(), &[&more[..], &["--resume-changed"]].concat(), 0);
        assert!(said.contains(&format!("{expected}: the results will differ")), "{said}");
    }
}

/// A file with the name of a particle type is no input, unless a field names it; it may also be an output.
#[test]
fn names_of_types_are_no_input_files() {
    let f = folder();
    std::fs::write(f.path().join("A"), "one").expect("written");
    go(f.path(), &["--steps", "20"], 0);
    std::fs::write(f.path().join("A"), "another").expect("written");
    go(f.path(), &["--resume", "--steps", "40"], 0);
    let table = ["--set", "analyzers[0].file=\"A\"", "--overwrite"];
    go(f.path(), &[&table[..], &["--steps", "20"]].concat(), 0);
    go(f.path(), &[table[0], table[1], "--resume"], 0);
    assert_eq!(csv(&f.path().join("A"))["step"].last(), Some(&100.0));
}

/// A GPU that is lost, or has no more memory, in the middle of a run.
#[test]
fn a_failing_device_is_reported() {
    if !has_compiler() {
        return;
    }
    let f = folder();
    let run = |fault: &str, args: &[&str]| {
        let out = Command::new(program())
            .args(["--pipeline", "p.ron", "--device", "emulated", "--quiet"])
            .args(args)
            .env("GALAMOST_EMULATED_FAULT", fault)
            .current_dir(f.path())
            .output()
            .expect("the program starts");
        (out.status.code(), words(&out))
    };
    let (code, said) = run("lost:320", &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("error: step ") && said.contains("the device is lost"), "{said}");
    assert!(said.contains("an earlier checkpoint is in p.checkpoint"), "{said}");
    let (code, said) = run("lost:100000000", &["--resume"]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = run("memory:20000", &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("out of memory"), "{said}");
    let (code, said) = run("what", &[]);
    assert_eq!(code, Some(2), "{said}");
}
