//! Runs on two hosts: namespaces of this machine with separate networks, names and shared memory; see hosts.sh.

use super::{CPU, OPTIONS, check_aborted, compare_with, folder, lj, mpiexec, path_with};
use galamost_tests::{galamost, program, repository, skip_rare, words};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const UNSHARE: [&str; 9] =
    ["--user", "--map-root-user", "--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--kill-child"];

/// Returns `mpiexec` if this user may create such hosts and it starts processes on both; reports a skip if not.
fn hosts() -> Option<PathBuf> {
    static PROBLEM: OnceLock<Option<String>> = OnceLock::new();
    let mpiexec = mpiexec()?;
    let probe = || {
        let made = on_two_hosts(&mpiexec, &folder("hosts-probe"), 2, Path::new("true"), &[]).output();
        match made {
            Ok(done) if done.status.success() => None,
            Ok(done) => Some(words(&done)),
            Err(e) => Some(e.to_string()),
        }
    };
    if let Some(why) = PROBLEM.get_or_init(probe) {
        skip_rare("unshare, nsenter, hostname and ip with user namespaces", why);
        return None;
    }
    Some(mpiexec)
}

/// Ends the run if a test fails; its namespaces end with it. The command is `timeout`, which passes the signal on.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = Command::new("kill").arg(self.0.id().to_string()).status();
            let _ = self.0.wait();
        }
    }
}

/// The command that runs a program in `n` processes on two hosts in turn, for at most three minutes.
fn on_two_hosts(mpiexec: &Path, folder: &Path, n: u32, program: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "180", "unshare"]).args(UNSHARE).args(["--mount-proc", "sh"]);
    command.arg(repository().join("tests/processes/hosts.sh")).arg(folder);
    command.arg(mpiexec).args(["-launcher", "ssh", "-launcher-exec"]).arg(folder.join("ssh"));
    command.args(["-hosts", "first,second", "-n", &n.to_string()]).arg(program).args(args);
    // otherwise the launcher and its processes read from this terminal
    command.env("PATH", path_with(mpiexec)).current_dir(folder).stdin(Stdio::null());
    command
}

#[test]
fn two_hosts_have_the_same_bits_as_one() {
    let Some(mpiexec) = hosts() else { return };
    let prepare = |folder: &Path| std::fs::write(folder.join("p.ron"), lj()).expect("written");
    for (name, options) in [("hosts", &OPTIONS[..]), ("hosts-cpu", &CPU)] {
        // without --quiet, the log names the hosts
        let args: Vec<_> = options.iter().copied().filter(|a| *a != "--quiet").collect();
        compare_with(name, prepare, &args, &[3], &|folder, n, args| {
            let done = on_two_hosts(&mpiexec, folder, n, &program(), args).output().expect("unshare starts");
            assert!(words(&done).contains("3 processes share the run: first, second, first"), "{}", words(&done));
            for file in ["hosts", "ssh", "first.pid", "second.pid", "ended"] {
                std::fs::remove_file(folder.join(file)).expect("a file of hosts.sh");
            }
            done
        });
    }
}

/// The connection between two hosts ends. Nothing reaches the processes of the second one, which end by themselves.
#[test]
#[ignore = "a minute"]
fn a_network_that_ends_ends_the_processes_of_all_hosts() {
    let Some(mpiexec) = hosts() else { return };
    let folder = folder("network");
    let text = lj().replace("steps: 12, dt: 0.005", "steps: 3_000_000, dt: 0.001").replace("every: 8", "every: 1_000");
    std::fs::write(folder.join("p.ron"), text.replace("analyzers:", "checkpoint: (every: 20), analyzers:"))
        .expect("written");
    let said = std::fs::File::create(folder.join("said.txt")).expect("a file");
    let mut run = on_two_hosts(&mpiexec, &folder, 4, &program(), &CPU);
    let run = run.stdout(Stdio::null()).stderr(said).spawn().expect("unshare starts");
    let mut run = Ending(run);
    let wait_for = |file: &str, limit: u64| {
        let begun = Instant::now();
        while !folder.join(file).exists() {
            assert!(begun.elapsed() < Duration::from_secs(limit), "no {file} after {limit} s");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    wait_for("p.checkpoint.1", 60);
    std::fs::write(folder.join("cut"), "").expect("written");
    // the first rank waits 30 s for the others, which wait longer for it; where processors are busy, both take longer
    wait_for("ended", 90);
    let status = run.0.wait().expect("unshare ends").code();
    let said = std::fs::read_to_string(folder.join("said.txt")).expect("a file");
    check_aborted(status, &said);
    assert_eq!(said.matches("error:").count(), 1, "{said}");
    assert!(said.contains("on host second has stopped answering"), "{said}");
    let args: Vec<_> =
        CPU.iter().copied().filter(|a| *a != "--quiet").chain(["--resume", "--walltime", "0:04"]).collect();
    let resumed = galamost(&folder, &args);
    assert!(resumed.status.success(), "{}", words(&resumed));
    assert!(words(&resumed).contains("including those before the checkpoint"), "{}", words(&resumed));
}
