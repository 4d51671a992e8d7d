//! Launches of several processes that are errors before step 0, and commands that are no runs.

use super::{CPU, files, folder, launcher, lj, mpiexec, path_with};
use galamost_tests::{program, words};
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Runs the program without a launcher, with the variables of one.
fn with(folder: &Path, variables: &[(&str, &str)], args: &[&str]) -> Output {
    let mut command = Command::new(program());
    for name in ["PMI_RANK", "PMI_SIZE", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "RANK", "WORLD_SIZE"] {
        command.env_remove(name);
    }
    command.args(args).envs(variables.iter().copied()).current_dir(folder).output().expect("the program starts")
}

const FIRST: [(&str, &str); 2] = [("PMI_RANK", "0"), ("PMI_SIZE", "2")];
const SECOND: [(&str, &str); 2] = [("PMI_RANK", "1"), ("PMI_SIZE", "2")];

/// Checks that a launch fails before step 0 with a message that is printed once.
fn refused(mpiexec: &Path, folder: &Path, parts: &[(u32, &[&str])], message: &str) {
    let done = launcher(mpiexec, folder, parts).output().expect("mpiexec starts");
    let said = words(&done);
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert_eq!(said.matches("nothing was done").count(), 1, "{said}");
    assert!(said.contains(message), "`{message}` is not in: {said}");
    assert!(files(folder).is_empty(), "{:?}", files(folder).keys());
}

#[test]
#[ignore = "10 seconds"]
fn wrong_launches_are_errors_before_step_0() {
    let Some(mpiexec) = mpiexec() else { return };
    let folder = folder("wrong");
    std::fs::write(folder.join("p.ron"), lj()).expect("written");
    std::fs::write(folder.join("q.ron"), lj().replace("seed: 3", "seed: 4")).expect("written");
    let of = |file: &'static str, device: &'static str| ["--pipeline", file, "--device", device, "--no-record"];
    let (p, q) = (of("p.ron", "emulated"), of("q.ron", "emulated"));
    refused(&mpiexec, &folder, &[(5, &p)], "1000 particles are too few for 5 processes");
    refused(&mpiexec, &folder, &[(2, &p), (1, &of("p.ron", "cpu"))], "need the same device");
    let gpus = [&p[..], &["--gpus", "2"]].concat();
    refused(&mpiexec, &folder, &[(2, &gpus)], "each of 2 processes uses one GPU, not 2");
    refused(&mpiexec, &folder, &[(2, &p), (1, &q)], "on rank 2 on host");
    refused(&mpiexec, &folder, &[(2, &p), (1, &of("missing.ron", "emulated"))], "missing.ron: cannot be read");
    // `gpus` is not in the pipeline
    let alone = "need one process; start `galamost` without `mpiexec`";
    let special = [&p[..], &["--set", "neighbors=(special: { \"1-2\": 0.5 })"]].concat();
    refused(&mpiexec, &folder, &[(2, &special)], alone);
    let both = [&p[..], &["--pipeline", "q.ron"]].concat();
    refused(&mpiexec, &folder, &[(2, &both)], "several processes share one pipeline");
    // one process finds no library, which it reports; the others, which wait with a busy processor, do not wait for ever
    let missing = ["-n", "1", "-env", "GALAMOST_MPI", "/missing.so"];
    let mut command = Command::new(&mpiexec);
    command.args(missing).arg(program()).args(p).args([":", "-n", "1"]).arg(program()).args(p);
    let begun = Instant::now();
    command.current_dir(&folder).env("PATH", path_with(&mpiexec)).env("GALAMOST_PATIENCE", "4");
    let done = command.output().expect("mpiexec starts");
    let said = words(&done);
    assert!(!done.status.success() && begun.elapsed() < Duration::from_secs(50), "{said}");
    for message in ["/missing.so cannot be loaded", "not all have started after 4 s"] {
        assert!(said.contains(&format!("cannot join the others: {message}")), "{said}");
    }
    // the program was started by another launcher than that of the library
    let mut alone = Command::new(program());
    let path = format!("{}:/usr/bin:/bin", mpiexec.parent().expect("a folder").display());
    let alone = alone.args(p).env("PATH", path).env("RANK", "0").env("WORLD_SIZE", "2").current_dir(&folder);
    let said = words(&alone.output().expect("the program starts"));
    assert!(said.contains("process 0 of 2 (RANK, WORLD_SIZE) cannot join the others"), "{said}");
}

/// The error of a process that is not the first names it.
#[test]
fn options_that_differ_are_errors_before_step_0() {
    let Some(mpiexec) = mpiexec() else { return };
    let folder = folder("options");
    std::fs::write(folder.join("p.ron"), lj()).expect("written");
    let p = ["--pipeline", "p.ron", "--device", "cpu", "--no-record"];
    let cases: [(&[&str], &str); 4] = [
        (&["--steps", "3"], "need the same --steps, which is 3 on rank 1 on host"),
        (&["--resume=auto"], "need the same --resume, which is auto on rank 1 on host"),
        (&["--replicas", "2"], "--replicas and --sweep work in one process"),
        (&["--pipeline", "q.ron"], "several processes share one pipeline"),
    ];
    for (more, message) in cases {
        refused(&mpiexec, &folder, &[(1, &p), (1, &[&p[..], more].concat())], message);
    }
    let devices = ["--pipeline", "p.ron", "--device", "cpu,emulated", "--no-record"];
    refused(&mpiexec, &folder, &[(2, &devices)], "the processes of a run need one --device");
}

#[test]
fn nccl_that_is_missing_is_an_error_before_step_0() {
    let Some(mpiexec) = mpiexec() else { return };
    let folder = folder("nccl-missing");
    std::fs::write(folder.join("p.ron"), lj()).expect("written");
    std::fs::write(folder.join("t.csv"), "old").expect("written");
    let args = ["--pipeline", "p.ron", "--device", "emulated", "--no-record", "--overwrite"];
    let cases = [
        (["0", "/missing.so"], "need the same GALAMOST_NCCL, which is set on rank 1 on host"),
        (["/missing.so", "/missing.so"], "NCCL: /missing.so: "),
    ];
    for (values, message) in cases {
        let mut command = Command::new(&mpiexec);
        for (k, value) in values.into_iter().enumerate() {
            command.args([":"].iter().take(k)).args(["-n", "1", "-env", "GALAMOST_NCCL", value]);
            command.arg(program()).args(args);
        }
        let done = command.env("PATH", path_with(&mpiexec)).current_dir(&folder).output().expect("mpiexec starts");
        let said = words(&done);
        assert_eq!(done.status.code(), Some(2), "{said}");
        assert!(said.contains(message) && said.contains("nothing was done"), "{said}");
        assert_eq!(std::fs::read_to_string(folder.join("t.csv")).expect("the old file"), "old");
    }
    // NCCL connects GPUs only
    let args = [&CPU[..], &["--steps", "2", "--overwrite"]].concat();
    let mut command = launcher(&mpiexec, &folder, &[(2, &args)]);
    let done = command.env("GALAMOST_NCCL", "1").output().expect("mpiexec starts");
    assert!(done.status.success(), "{}", words(&done));
    assert_eq!(words(&done).matches("GALAMOST_NCCL has no effect").count(), 1, "{}", words(&done));
}

#[test]
fn commands_that_are_no_runs_are_refused_in_several_processes() {
    let folder = folder("commands");
    let commands: [&[&str]; 5] = [
        &["ibi", "spec.ron"],
        &["ibi", "spec.ron", "--check"],
        &["bench"],
        &["selftest"],
        &["new", "pipeline", "liquid"],
    ];
    for args in commands {
        let [first, second] = [FIRST, SECOND].map(|variables| with(&folder, &variables, args));
        assert_eq!([first.status.code(), second.status.code()], [Some(2); 2], "{}", words(&first));
        let message = format!("`galamost {}` works in one process, but this is one of 2 (PMI_RANK, PMI_SIZE)", args[0]);
        // a script may start commands in any process
        assert!(words(&first).contains(&message) && words(&second).contains(&message), "{}", words(&second));
        assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 0);
    }
    // small tools work in each process
    for args in [&["plugins"][..], &["plugins", "Dpd"]] {
        let done = with(&folder, &SECOND, args);
        assert!(done.status.success() && !done.stdout.is_empty(), "{}", words(&done));
    }
}

#[test]
fn a_check_is_that_of_the_run_on_several_ranks() {
    let folder = folder("check");
    std::fs::write(folder.join("p.ron"), lj()).expect("written");
    let p = ["check", "p.ron", "--device", "cpu"];
    let done = with(&folder, &FIRST, &p);
    let printed = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success() && printed.contains("shared by 2 processes"), "{printed}{}", words(&done));
    let done = with(&folder, &SECOND, &p);
    assert!(done.status.success() && done.stdout.is_empty() && words(&done).trim().is_empty(), "{}", words(&done));
    let many = [("PMI_RANK", "0"), ("PMI_SIZE", "33")];
    let special = ["--set", "neighbors=(special: { \"1-2\": 0.5 })"];
    let cases: [(&[(&str, &str)], &[&str], &str); 5] = [
        (&FIRST, &special, "need one process"),
        (&FIRST, &["--set", "replicas=2"], "replicas run in one process"),
        (&FIRST, &["--estimate"], "--estimate works in one process"),
        (&many, &[], "33 processes; a run can use 1 to 32"),
        (&[], &["--gpus", "2"], "not 2 GPUs"),
    ];
    for (variables, more, message) in cases {
        let done = with(&folder, variables, &[&p[..], more].concat());
        assert_eq!(done.status.code(), Some(2), "{message}: {}", words(&done));
        assert!(words(&done).contains(message), "{message}: {}", words(&done));
    }
}

#[test]
fn impossible_variables_of_launchers_are_errors() {
    let folder = folder("variables");
    std::fs::write(folder.join("p.ron"), lj()).expect("written");
    let args = [&CPU[..], &["--steps", "2"]].concat();
    let cases: [(&[(&str, &str)], &str); 5] = [
        (&[("RANK", "2"), ("WORLD_SIZE", "2")], "RANK=2 and WORLD_SIZE=2 do not describe"),
        (&[("RANK", "0"), ("WORLD_SIZE", "abc")], "RANK=0 and WORLD_SIZE=abc do not describe"),
        (&[("SLURM_PROCID", "5"), ("SLURM_STEP_NUM_TASKS", "2")], "SLURM_PROCID=5 and SLURM_STEP_NUM_TASKS=2 do not"),
        (&[("PMI_RANK", "0")], "PMI_RANK=0 is set without PMI_SIZE"),
        (&[("OMPI_COMM_WORLD_RANK", "0")], "OMPI_COMM_WORLD_RANK=0 is set without"),
    ];
    for (variables, message) in cases {
        let done = with(&folder, variables, &args);
        assert_eq!(done.status.code(), Some(2), "{message}: {}", words(&done));
        assert!(words(&done).contains(message) && files(&folder).is_empty(), "{message}: {}", words(&done));
    }
    let done = with(&folder, &[("RANK", "abc"), ("SLURM_PROCID", "0")], &args);
    assert!(done.status.success(), "{}", words(&done));
    assert!(words(&done).contains("RANK=abc is ignored because WORLD_SIZE is not set"), "{}", words(&done));
}
