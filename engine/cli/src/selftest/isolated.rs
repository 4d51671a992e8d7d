//! Each component is tested in a separate process: a crash or a hang is reported with the last call, and the other
//! components are still tested.

use super::{Checks, Test, TestRow};
use crate::common::file_failure;
use crate::terminal::crash;
use galamost_engine::activity::observe;
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::plugins::Registry;
use galamost_plugin_api::component::{ComponentInfo, Kind};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Bytes of the file that contains the last call.
const CALL_BYTES: usize = 256;

/// What a child process tests. The parent passes it as RON, after its own arguments.
#[derive(Debug, Serialize, Deserialize)]
struct Job {
    component: String,
    kind: Kind,
    device: DeviceChoice,
    checks: Checks,
    folder: PathBuf,
}

impl Job {
    /// The results, one line each.
    fn rows(&self) -> PathBuf {
        self.folder.join("rows")
    }
    /// Number and name of the last call of a component's method.
    fn last_call(&self) -> PathBuf {
        self.folder.join("call")
    }
    /// A file that exists once the test is complete: a plugin may end the process with status 0.
    fn complete(&self) -> PathBuf {
        self.folder.join("complete")
    }
    /// The folder in which the component writes.
    fn output(&self) -> PathBuf {
        self.folder.join("output")
    }
}

/// Tests the component of a job in this process.
///
/// # Errors
/// Returns an error if the job is invalid or its files cannot be written.
pub(super) fn run_job(text: &str, registry: &Registry) -> Result<(), Failure> {
    crash::release();
    let job: Job = ron::from_str(text).map_err(|e| Failure::run(format!("--job: {e}")))?;
    let Some((_, c)) = registry.find(job.kind, &job.component) else {
        return Err(Failure::run(format!("--job: unknown component `{}`", job.component)));
    };
    let create = |path: PathBuf| File::create(&path).map_err(|e| file_failure(&path, e));
    let calls = create(job.last_call())?;
    let number = std::sync::atomic::AtomicU64::new(0);
    observe(move |component, method| {
        let n = number.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let line = format!("{:CALL_BYTES$}", format!("{n} `{method}` of {component}"));
        // without this file, only the name of the last call is missing in a report
        let _ = calls.write_all_at(line.as_bytes(), 0);
    });
    let mut test = Test {
        registry,
        device: job.device,
        has_device: job.device != DeviceChoice::Cpu,
        folder: job.output(),
        checks: job.checks,
        failed: false,
        rows: create(job.rows())?,
        lost: None,
    };
    test.component(c);
    if let Some(e) = test.lost {
        return Err(file_failure(&job.rows(), e));
    }
    create(job.complete()).map(drop)
}

/// Tests a component in a child process, in an empty folder.
///
/// # Errors
/// Returns an error if the process cannot be started.
pub(super) fn test(
    c: &ComponentInfo,
    device: DeviceChoice,
    checks: Checks,
    folder: &Path,
    timeout: Duration,
) -> Result<Vec<TestRow>, Failure> {
    let job = Job { component: c.name.clone(), kind: c.kind, device, checks, folder: folder.into() };
    std::fs::create_dir_all(job.output()).map_err(|e| file_failure(folder, e))?;
    let text = ron::to_string(&job).map_err(|e| Failure::run(e.to_string()))?;
    let program = std::env::current_exe().map_err(|e| Failure::run(format!("cannot find this program: {e}")))?;
    let child = Command::new(&program)
        .args(std::env::args_os().skip(1))
        .args(["--job", &text])
        // warnings about the test system are of no use
        .env("GALAMOST_LOG", std::env::var_os("GALAMOST_LOG").unwrap_or_else(|| "error".into()))
        .stdin(Stdio::null())
        // what a plugin prints must not mix with the results
        .stdout(std::io::stderr())
        .spawn()
        .map_err(|e| file_failure(&program, e))?;
    let end = wait(child, &job, timeout)?;
    let lines = std::fs::read_to_string(job.rows()).unwrap_or_default();
    // a crash may leave an incomplete last line
    let mut rows: Vec<TestRow> = lines.lines().filter_map(|l| ron::from_str(l).ok()).collect();
    let last_call = || {
        let call = std::fs::read_to_string(job.last_call()).unwrap_or_default();
        call.split_once(' ').map_or("none", |(_, name)| name.trim()).to_string()
    };
    let crashed = match end {
        End::Exit(status) if status.success() && job.complete().exists() => return Ok(rows),
        End::Exit(status) if status.success() => format!("ended the process in {}, exit status 0", last_call()),
        End::Exit(status) => format!("the test ended with {status}; last call: {}", last_call()),
        End::Hang => format!("no call for {} s; last call: {}", timeout.as_secs(), last_call()),
    };
    rows.push(TestRow::new(c, "runs", f64::NAN, 0.0, crashed));
    Ok(rows)
}

/// How a child process ended.
enum End {
    Exit(ExitStatus),
    /// It was killed because it made no progress.
    Hang,
}

/// Waits for a child process, or ends it after `timeout` without a call.
fn wait(mut child: Child, job: &Job, timeout: Duration) -> Result<End, Failure> {
    let progress = || (std::fs::read(job.last_call()).ok(), std::fs::metadata(job.rows()).map(|m| m.len()).ok());
    let (mut last, mut since) = (progress(), Instant::now());
    let mut pause = Duration::from_millis(2);
    loop {
        if let Some(status) = child.try_wait().map_err(Failure::run)? {
            return Ok(End::Exit(status));
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(Duration::from_millis(100));
        let now = progress();
        if now != last {
            (last, since) = (now, Instant::now());
        } else if since.elapsed() >= timeout {
            child.kill().and_then(|()| child.wait()).map_err(Failure::run)?;
            return Ok(End::Hang);
        }
    }
}

impl Test<'_> {
    /// Writes a result to the parent's file at once, so that a crash does not lose it.
    pub(super) fn record(&mut self, row: &TestRow) {
        self.failed |= row.failed();
        let line = ron::to_string(row).map_err(std::io::Error::other);
        if let Err(e) = line.and_then(|line| writeln!(self.rows, "{line}")) {
            self.lost = Some(e);
        }
    }
}
