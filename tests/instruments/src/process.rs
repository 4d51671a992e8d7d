//! Child processes with limits of memory and time.

use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Limit of the address space of a child, in KiB: twice what an input may make the program use, since mapped libraries and
/// stacks of threads count too.
const ADDRESS_SPACE: u64 = 4 << 20;

/// How a child ended.
#[derive(Debug)]
pub struct Outcome {
    /// Exit status; `None` if it was killed because it took too long.
    pub status: Option<ExitStatus>,
    /// What it wrote to standard error.
    pub errors: String,
    /// How long it ran.
    pub time: Duration,
}

impl Outcome {
    /// Returns the exit code, if the child exited.
    pub fn code(&self) -> Option<i32> {
        self.status.and_then(|s| s.code())
    }

    /// Returns what ended the child, if it did not exit by itself with a status of the program.
    pub fn crash(&self) -> Option<String> {
        let last = self.errors.lines().rfind(|l| !l.trim().is_empty()).unwrap_or_default();
        match self.status {
            None => Some("hang: it was killed".into()),
            Some(s) => s.signal().map(|signal| format!("signal {signal}: {last}")),
        }
    }
}

/// Returns a command whose memory is limited, with one thread for each pool.
pub fn limited(program: &Path) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("ulimit -v {ADDRESS_SPACE}; ulimit -c 0; exec \"$@\"")).arg("sh").arg(program);
    command.env("RAYON_NUM_THREADS", "1");
    command
}

/// Longest processor time of an input.
pub const HANG: Duration = Duration::from_secs(10);
/// Longest time of an input that does nothing. Other programs may keep the processors busy.
pub const BLOCKED: Duration = Duration::from_secs(100);

/// Returns the processor time that a child has used. A busy machine delays a child, but that is no hang.
pub fn processor_time(child: &Child) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    // behind the name in brackets; ticks of 10 ms
    let fields: Vec<&str> = text.rsplit_once(')').map_or("", |(_, f)| f).split_whitespace().collect();
    let ticks = |k: usize| fields.get(k).and_then(|f| f.parse::<u64>().ok()).unwrap_or(0);
    Duration::from_millis(10 * (ticks(11) + ticks(12)))
}

/// Waits for a child until a moment. Returns nothing if it still runs.
pub fn wait_until(child: &mut Child, end: Instant) -> Option<ExitStatus> {
    let mut pause = Duration::from_millis(1);
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(pause.min(end.saturating_duration_since(Instant::now())));
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Runs a command in a folder, for at most `limit` of processor time. What it writes to standard error goes through a file there.
///
/// # Errors
/// Returns an error if the command cannot be started.
pub fn run(mut command: Command, folder: &Path, limit: Duration) -> Result<Outcome, String> {
    let path = folder.join(".stderr");
    let file = File::create(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    let begun = Instant::now();
    let mut child = command.spawn().map_err(|e| format!("{command:?}: {e}"))?;
    let status = loop {
        if let Some(status) = wait_until(&mut child, Instant::now() + Duration::from_millis(200)) {
            break Some(status);
        }
        if processor_time(&child) > limit || begun.elapsed() > limit + BLOCKED {
            let _ = child.kill();
            let _ = child.wait();
            break None;
        }
    };
    let errors = String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_default()).into_owned();
    Ok(Outcome { status, errors, time: begun.elapsed() })
}

/// Copies the files of a folder that an example needs: pipelines and particle files, not the outputs of earlier runs.
///
/// # Errors
/// Returns the operating system's error.
pub fn copy_examples(repository: &Path, to: &Path) -> Result<(), String> {
    let fail = |e: std::io::Error| format!("{}: {e}", to.display());
    for entry in std::fs::read_dir(repository.join("examples")).map_err(fail)?.filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let ending = name.split_once('.').map_or("", |(_, e)| e);
        if ["ron", "xml", "xml.gz", "dump", "pdb"].contains(&ending) {
            std::fs::copy(entry.path(), to.join(&name)).map_err(fail)?;
        }
    }
    Ok(())
}
