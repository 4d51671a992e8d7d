//! The command line as a shell uses it: standard output and error that are closed or full, paths that are not UTF-8, and
//! messages for wrong calls.

use galamost_tests::{fixture, galamost, program, repository, words};
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const PIPELINE: &str = r#"(
    seed: 4,
    initial: [ Lattice(lattice: Fcc, cells: [3, 3, 3], density: 0.7), Velocities(kT: 1.0) ],
    forces: [ LennardJones(r_cut: 2.0, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0) }) ],
    integrators: [ VelocityVerlet() ],
    analyzers: [ Thermo(every: 1, file: "t.csv"), Gsd(every: 20, file: "t.gsd") ],
    checkpoint: (every: 20),
    stages: [ (steps: 40, dt: 0.002) ],
)"#;

/// A folder with a pipeline and its finished run.
fn folder() -> tempfile::TempDir {
    let f = tempfile::tempdir().expect("a folder");
    std::fs::write(f.path().join("p.ron"), PIPELINE).expect("written");
    let out = galamost(f.path(), &["--pipeline", "p.ron", "--device", "cpu", "-q"]);
    assert!(out.status.success(), "{}", words(&out));
    f
}

/// Runs a command of the shell, in which `$G` is the program.
fn shell(folder: &Path, command: &str) -> Output {
    let out = Command::new("bash").args(["-c", command]).env("G", program()).current_dir(folder).output();
    out.expect("bash runs")
}

/// Commands that print.
const PRINTING: [&str; 15] = [
    "plugins",
    "plugins --json",
    "plugins Thermo",
    "plugins --markdown pages --overwrite",
    "check p.ron",
    "info t.gsd",
    "info p.checkpoint",
    "convert t.gsd new.xml --overwrite",
    "stats t.csv",
    "plot t.csv --overwrite",
    "report p.ron --overwrite",
    "watch p.ron",
    "table make --pair A A 'LennardJones(r_cut: 2.5, pairs: {(\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0)})'",
    "--help",
    "--version",
];

#[test]
#[ignore = "10 seconds"]
fn a_closed_or_full_standard_output_is_no_crash() {
    let f = folder();
    for command in PRINTING {
        // a reader that ends at once
        let out = shell(f.path(), &format!("set -o pipefail; \"$G\" {command} | true"));
        assert!(out.status.success() && !words(&out).contains("error"), "{command}: {}", words(&out));
        let out = shell(f.path(), &format!("\"$G\" {command} >&-"));
        assert!(out.status.success(), "{command}: {}", words(&out));
        let out = shell(f.path(), &format!("\"$G\" {command} > /dev/full"));
        assert_eq!(out.status.code(), Some(1), "{command}: {}", words(&out));
        assert!(words(&out).contains("error: standard output: No space left on device"), "{command}: {}", words(&out));
        assert!(!words(&out).contains("panicked"), "{command}: {}", words(&out));
    }
}

/// Commands that write a file, and the file.
const WRITING: [(&str, &str); 12] = [
    ("plot t.csv", "t.svg"),
    ("report p.ron", "p.report.html"),
    ("report p.ron --out r.html", "r.html"),
    ("render t.gsd --size 64x64", "t.png"),
    ("render t.gsd --size 64x64 --movie m.png", "m.png"),
    ("stats t.csv --columns kT --blocks b.svg", "b.svg"),
    ("stats t.csv --out s.csv", "s.csv"),
    ("stats t.csv t.csv --out s.csv", "s.csv"),
    (
        "table make --n 50 --pair A A 'LennardJones(r_cut: 2.5, pairs: {(\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0)})' --out f.xml",
        "f.xml",
    ),
    ("bench 'lj 8000' --device cpu --window 0.01 --max 8000 --out b.json", "b.json"),
    ("bench 'lj 8000' --device cpu --window 0.01 --max 8000 --plot b.svg", "b.svg"),
    ("plugins --markdown .", "README.md"),
];

#[test]
#[ignore = "10 seconds"]
fn commands_do_not_replace_files() {
    let f = folder();
    for (command, file) in WRITING {
        let file = f.path().join(file);
        std::fs::write(&file, "precious").expect("written");
        let out = shell(f.path(), &format!("\"$G\" {command}"));
        assert_eq!(out.status.code(), Some(2), "{command}: {}", words(&out));
        assert!(
            words(&out).contains("exists; remove it, choose another name, or replace it with --overwrite"),
            "{command}: {}",
            words(&out)
        );
        assert_eq!(std::fs::read(&file).expect("bytes"), b"precious", "{command}");
        let out = shell(f.path(), &format!("\"$G\" {command} --overwrite"));
        assert!(out.status.success(), "{command}: {}", words(&out));
        assert_ne!(std::fs::read(&file).expect("bytes"), b"precious", "{command}");
    }
    std::fs::write(f.path().join("f.table"), "precious").expect("written");
    let out = shell(
        f.path(),
        "\"$G\" table make --n 50 --pair A A 'LennardJones(r_cut: 2.5, pairs: {(\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0)})' --out f.csv",
    );
    assert!(out.status.success(), "{}", words(&out));
    for command in ["convert f.csv", "differentiate f.csv", "plot f.csv"] {
        let to = if command.starts_with("plot") { "f.svg" } else { "f.table" };
        std::fs::write(f.path().join(to), "precious").expect("written");
        let out = shell(f.path(), &format!("\"$G\" table {command} --out {to}"));
        assert_eq!(out.status.code(), Some(2), "{command}: {}", words(&out));
        assert_eq!(std::fs::read(f.path().join(to)).expect("bytes"), b"precious", "{command}");
    }
}

/// A file that cannot be written leaves the old one, and `new pipeline` no part of its files.
#[test]
fn a_full_disk_keeps_the_file_that_a_command_would_replace() {
    let f = folder();
    let names = || {
        let entries = std::fs::read_dir(f.path()).expect("a folder").map(|e| e.expect("an entry").file_name());
        entries.collect::<std::collections::BTreeSet<_>>()
    };
    for (command, file) in [
        ("plot t.csv --out o.svg", "o.svg"),
        ("stats t.csv --columns kT --blocks o.svg", "o.svg"),
        ("stats t.csv --out o.csv", "o.csv"),
        ("report p.ron --no-pictures --out o.html", "o.html"),
        ("render t.gsd --size 64x64 --out o.png", "o.png"),
    ] {
        let path = f.path().join(file);
        std::fs::write(&path, "precious").expect("written");
        let before = names();
        // a limit for files takes the place of a full disk
        let out = shell(f.path(), &format!("ulimit -f 0; \"$G\" {command} --overwrite"));
        assert_eq!(out.status.code(), Some(1), "{command}: {}", words(&out));
        assert!(words(&out).contains(&format!("{file}: File too large")), "{command}: {}", words(&out));
        assert_eq!(std::fs::read(&path).expect("bytes"), b"precious", "{command}");
        assert_eq!(names(), before, "{command}");
    }
    let out = shell(f.path(), "ulimit -f 0; \"$G\" new pipeline liquid --folder new");
    assert_eq!(out.status.code(), Some(1), "{}", words(&out));
    assert_eq!(std::fs::read_dir(f.path().join("new")).expect("a folder").count(), 0);
}

/// Other ways of printing panic if standard output or error is closed.
#[test]
fn commands_print_through_one_function() {
    let mut folders = vec![repository().join("engine")];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).expect("a folder").filter_map(|e| Some(e.ok()?.path())) {
            // hidden folders hold what was built
            let hidden = path.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"."));
            if path.is_dir() {
                folders.extend((!hidden).then_some(path));
            } else if path.extension().is_some_and(|e| e == "rs") {
                files += 1;
                let text = std::fs::read_to_string(&path).expect("a text");
                let found = text.lines().find(|l| ["println!(", "print!("].iter().any(|p| l.contains(p)));
                assert!(found.is_none(), "{}: {found:?}", path.display());
            }
        }
    }
    assert!(files > 100, "{files} files");
}

#[test]
fn a_closed_or_full_standard_error_does_not_change_the_outcome() {
    let f = folder();
    let rows = std::fs::read(f.path().join("t.csv")).expect("rows");
    for to in ["2>/dev/full", "2>&-", "2> >(true)"] {
        for (command, status) in [
            ("--pipeline p.ron --device cpu", 0),
            ("--pipeline p.ron --device cpu --log json", 0),
            ("--pipeline p.ron --device cpu --set integrators[0].x=1", 2),
            ("check missing.ron", 2),
            ("no-command", 2),
        ] {
            let out = shell(f.path(), &format!("\"$G\" {command} {to}"));
            assert_eq!(out.status.code(), Some(status), "{command} {to}: {}", words(&out));
        }
        assert!(std::fs::read(f.path().join("t.csv")).expect("rows") == rows, "{to}");
    }
}

#[test]
#[ignore = "10 seconds"]
fn paths_that_are_not_utf8_work_or_are_refused() {
    let f = tempfile::tempdir().expect("a folder");
    let name = |bytes: &[u8]| f.path().join(OsStr::from_bytes(bytes));
    let run = |folder: &Path, args: &[&OsStr]| {
        Command::new(program()).args(args).args(["--device", "cpu"]).current_dir(folder).output().expect("it runs")
    };
    let flag = OsStr::new("--pipeline");
    // the name of the pipeline, and the working directory
    let odd = name(b"folder\xff");
    std::fs::create_dir(&odd).expect("a folder");
    for file in [&b"p.ron"[..], b"\xffp.ron"] {
        std::fs::write(odd.join(OsStr::from_bytes(file)), PIPELINE).expect("written");
        for log in ["text", "json"] {
            let out = run(&odd, &[flag, OsStr::from_bytes(file), OsStr::new("--log"), OsStr::new(log)]);
            assert!(out.status.success(), "{}", words(&out));
            let out = run(&odd, &[flag, OsStr::from_bytes(file), OsStr::new("--resume"), OsStr::new("--log=json")]);
            assert!(out.status.success(), "{}", words(&out));
        }
        let report = Command::new(program()).arg("report").arg(OsStr::from_bytes(file)).current_dir(&odd).output();
        assert!(report.as_ref().is_ok_and(|r| r.status.success()), "{report:?}");
    }
    assert!(odd.join(OsStr::from_bytes(b"\xffp.checkpoint")).is_file() && odd.join("t.csv").is_file());
    // components get the folder of the pipeline as text
    let out = run(f.path(), &[flag, odd.join("p.ron").as_os_str()]);
    assert_eq!(out.status.code(), Some(2), "{}", words(&out));
    assert!(words(&out).contains("the name of the folder is not UTF-8"), "{}", words(&out));
    // libraries in such a folder
    let libraries = name(b"plugins\xff");
    std::fs::create_dir(&libraries).expect("a folder");
    for plugin in ["analyzers", "formats", "generators", "integrators", "pairs"] {
        let file = format!("lib{plugin}.so");
        std::fs::copy(program().with_file_name(&file), libraries.join(&file)).expect("copied");
    }
    std::fs::write(f.path().join("p.ron"), PIPELINE).expect("written");
    let out = run(f.path(), &[OsStr::new("--plugin-dir"), libraries.as_os_str(), flag, OsStr::new("p.ron")]);
    assert!(out.status.success() && f.path().join("p.checkpoint").exists(), "{}", words(&out));
    // texts must be UTF-8
    let out = run(f.path(), &[flag, OsStr::new("p.ron"), OsStr::new("--set"), OsStr::from_bytes(b"seed=\xff")]);
    assert!(out.status.code() == Some(2) && words(&out).contains("UTF-8"), "{}", words(&out));
    // other commands name the file
    for command in [&["info"][..], &["stats"], &["check"], &["render"], &["report"], &["plot"]] {
        let args: Vec<&OsStr> = command.iter().map(OsStr::new).chain([OsStr::from_bytes(b"no\xff.csv")]).collect();
        let out = Command::new(program()).args(&args).current_dir(f.path()).output().expect("it runs");
        assert_eq!(out.status.code(), Some(2), "{args:?}: {}", words(&out));
        assert!(words(&out).contains("no\u{fffd}.csv: "), "{args:?}: {}", words(&out));
    }
}

#[test]
fn wrong_calls_say_what_to_do() {
    let f = folder();
    std::fs::write(f.path().join("s.csv"), "step;kT\n0;1.0\n1;2.0\n").expect("written");
    for (args, said) in [
        (&["p.ron"][..], "to run a pipeline, use `galamost --pipeline p.ron`"),
        (&["other.ron"], "to run a pipeline, use `galamost --pipeline other.ron`"),
        (&["--pipeline", "p.ron", "--threads", "100000"], "100000 is not in 1..=1024"),
        (&["--pipeline", "p.ron", "--threads", "0"], "0 is not in 1..=1024"),
        (&["--pipeline", "p.ron", "--sweep", "stages[0].dt=0.001,0.002"], "write it as path=[value, …]"),
        (&["report", "t.csv"], "t.csv: this is not a pipeline; give the pipeline (.ron) of the run, or its folder"),
        (&["stats", "s.csv"], "s.csv:1:1: the columns are separated by semicolons; separate them by commas"),
    ] {
        let out = galamost(f.path(), args);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {}", words(&out));
        assert!(words(&out).contains(said), "{args:?}: {}", words(&out));
    }
    assert!(!words(&galamost(f.path(), &["plugin"])).contains("to run a pipeline"));
}

#[test]
fn numbers_have_their_nouns() {
    let f = folder();
    let out = galamost(f.path(), &["check", "p.ron"]);
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert_eq!(said, "p.ron: ok: 108 particles, 1 type, 0 bonds, 4 components of 5 plugins, 40 steps in 1 stage\n");
    let out = galamost(f.path(), &["--pipeline", "p.ron", "--device", "cpu", "--threads", "1", "--steps", "1"]);
    let said = words(&out);
    for part in ["device: CPU, 1 thread,", "108 particles, 0 bonds,", ": 1 step, dt", "INFO 1 step in "] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// The list of components has whole sentences.
#[test]
fn summaries_of_components_are_sentences() {
    let f = tempfile::tempdir().expect("a folder");
    let out = galamost(f.path(), &["plugins"]);
    let list = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(list.lines().count() > 100, "{list}");
    for line in list.lines() {
        let (summary, _) = line.rsplit_once("  [").unwrap_or_else(|| panic!("{line}"));
        assert!(summary.ends_with(['.', ':', ')']), "{line}");
    }
}

/// Sends signals to a run whose first step takes so many seconds, each after a pause in milliseconds. Returns the exit status, the log
/// after the start, and whether there is a checkpoint.
fn signaled(seconds: f64, signals: &[(u64, libc::c_int)]) -> (Option<i32>, String, bool) {
    let f = tempfile::tempdir().expect("a folder");
    std::fs::write(f.path().join("p.ron"), PIPELINE).expect("written");
    let sleeper = format!("updaters=[Sleeper(step: 0, seconds: {seconds})]");
    let mut run = Command::new(program())
        .args(["--pipeline", "p.ron", "--device", "cpu", "--threads", "1", "--set", &sleeper, "--plugin-dir"])
        .arg(fixture())
        .current_dir(f.path())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut lines = BufReader::new(run.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.any(|l| l.contains("stage `run`")), "the run has ended");
    // the line precedes the first forces and the first row
    std::thread::sleep(Duration::from_millis(500));
    for (pause, signal) in signals {
        std::thread::sleep(Duration::from_millis(*pause));
        // SAFETY: this only sends a signal; the child has not been waited for, so the number is not that of another process
        let sent = unsafe { libc::kill(run.id() as libc::pid_t, *signal) };
        assert_eq!(sent, 0);
    }
    let said: Vec<String> = lines.collect();
    (run.wait().expect("ended").code(), said.join("\n"), f.path().join("p.checkpoint").exists())
}

/// GNU `timeout` signals the program and then its process group.
#[test]
fn signals_within_a_second_are_one() {
    let signals = [(0, libc::SIGTERM), (1, libc::SIGTERM), (100, libc::SIGINT)];
    let (code, said, saved) = signaled(2.0, &signals);
    assert_eq!(code, Some(0), "{said}");
    assert!(saved && said.contains("stopped; resume with: galamost --pipeline p.ron --resume"), "{said}");
    let begun = Instant::now();
    let (code, said, saved) = signaled(60.0, &[(0, libc::SIGTERM), (1200, libc::SIGTERM)]);
    assert!(code == Some(130) && !saved, "{code:?} {said}");
    assert!(begun.elapsed() < Duration::from_secs(50), "{:?}", begun.elapsed());
}

/// Signals during the start, before the run takes its lock, are requests to the run: it saves the state and stops.
#[test]
fn signals_during_the_start_stop_the_run() {
    let f = tempfile::tempdir().expect("a folder");
    // chains take a while
    let text = PIPELINE.replace(
        "Lattice(lattice: Fcc, cells: [3, 3, 3], density: 0.7)",
        "Polymers(box: [50.0, 50.0, 50.0], molecules: [(molecule: \"A100\", count: 500)], distance: 0.9)",
    );
    std::fs::write(f.path().join("p.ron"), text).expect("written");
    let run = Command::new(program())
        .args(["--pipeline", "p.ron", "--device", "cpu", "--threads", "1", "--set", "stages[0].steps=1_000_000"])
        .current_dir(f.path())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let caught = |signal: libc::c_int| {
        let status = std::fs::read_to_string(format!("/proc/{}/status", run.id())).unwrap_or_default();
        let mask = status.lines().find_map(|l| u64::from_str_radix(l.strip_prefix("SigCgt:")?.trim(), 16).ok());
        mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
    };
    let begun = Instant::now();
    // the last one that the program catches
    while !caught(libc::SIGUSR1) {
        assert!(begun.elapsed() < Duration::from_secs(60), "signals are not caught");
        std::thread::yield_now();
    }
    assert!(!f.path().join("p.checkpoint.lock").exists(), "the run has started already");
    for signal in [libc::SIGUSR1, libc::SIGUSR2] {
        // SAFETY: this only sends a signal; the child has not been waited for, so the number is not that of another process
        assert_eq!(unsafe { libc::kill(run.id() as libc::pid_t, signal) }, 0);
    }
    let out = run.wait_with_output().expect("ended");
    assert_eq!(out.status.code(), Some(0), "{}", words(&out));
    assert!(words(&out).contains("stopped; resume with") && f.path().join("p.checkpoint").exists(), "{}", words(&out));
}

#[test]
fn pipelines_from_pipes_are_refused() {
    let f = tempfile::tempdir().expect("a folder");
    std::fs::write(f.path().join("p.ron"), PIPELINE).expect("written");
    for (command, file) in [
        ("cat p.ron | \"$G\" check /dev/stdin", "/dev/stdin"),
        ("cat p.ron | \"$G\" --pipeline /dev/stdin", "/dev/stdin"),
        ("mkfifo f.ron; \"$G\" check f.ron", "f.ron"),
    ] {
        let out = shell(f.path(), command);
        assert_eq!(out.status.code(), Some(2), "{command}: {}", words(&out));
        let expected = format!("{file}: is a device or a pipe, expected a file; copy its contents to a file first");
        assert!(words(&out).contains(&expected), "{command}: {}", words(&out));
    }
}
