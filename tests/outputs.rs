//! Output files: nothing that a run writes destroys something else, and stages and runs continue files or keep them apart.

mod changed;
mod kept;
mod links;
mod stages;

use galamost_tests::{csv, galamost, program, skip, words};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::{TempDir, tempdir};

const SYSTEM: &str = r#"seed: 4, device: Cpu, initial: [ Lattice(lattice: Fcc, cells: [5, 5, 5], density: 0.7), Velocities(kT: 1.0) ],
    forces: [ LennardJones(r_cut: 2.0, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0) }) ],
    integrators: [ Langevin(kT: 1.0, gamma: 1.0) ],"#;

/// A folder with a pipeline `p.ron` of the system and these lines.
fn folder(lines: &str) -> TempDir {
    let f = tempdir().expect("a folder");
    write(f.path(), "p", lines);
    f
}

fn write(folder: &Path, name: &str, lines: &str) {
    let stages = if lines.contains("stages:") { "" } else { "stages: [ (steps: 40, dt: 0.002) ]," };
    std::fs::write(folder.join(format!("{name}.ron")), format!("(\n    {SYSTEM}\n    {lines}\n    {stages}\n)\n"))
        .expect("written");
}

/// Runs the program and returns its words.
#[track_caller]
fn go(folder: &Path, args: &[&str], code: i32) -> String {
    let out = galamost(folder, args);
    assert_eq!(out.status.code(), Some(code), "{args:?}: {}", words(&out));
    words(&out)
}

/// Names and contents of all files of a folder, except the record, which holds times.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = vec![];
    let mut folders = vec![folder.to_path_buf()];
    while let Some(f) = folders.pop() {
        for e in std::fs::read_dir(f).expect("a folder") {
            let path = e.expect("an entry").path();
            let name = path.strip_prefix(folder).expect("inside").to_string_lossy().into_owned();
            match path.is_dir() {
                true => folders.push(path),
                false if name.contains(".run.json") => {}
                false => all.push((name, std::fs::read(&path).expect("a file"))),
            }
        }
    }
    all.sort();
    all
}

/// Paths of outputs that exclude each other, an input, or a file of the engine are errors of the check that name both
/// sides with their positions; nothing is changed.
#[test]
fn collisions_are_errors_before_the_run() {
    // `0:10` is the position of the system's last line
    for (lines, expected) in [
        (
            "analyzers: [ Thermo(every: 5, file: \"t.csv\"),\n Gsd(every: 5, file: \"t.csv\") ],",
            "p.ron:6:22: Gsd: `t.csv` is also written by Thermo (p.ron:5:41); choose another file",
        ),
        (
            "analyzers: [ Thermo(every: 5, file: \"t.csv\"),\n Thermo(every: 10, file: \"sub/.././t.csv\") ],",
            "p.ron:6:26: Thermo: `sub/.././t.csv` is also written by Thermo (p.ron:5:41); only stages that follow each other",
        ),
        (
            "analyzers: [ Thermo(every: 5, file: \"sub/link.csv\"),\n Gsd(every: 5, file: \"target.csv\") ],",
            "Gsd: `target.csv` is also written by Thermo (p.ron:5:41)",
        ),
        (
            "analyzers: [ GalamostXml(every: 5, file: \"{step}.xml\"),\n Thermo(every: 5, file: \"0000000010.xml\") ],",
            "Thermo: `0000000010.xml` is also written by GalamostXml (p.ron:5:46)",
        ),
        ("analyzers: [ Thermo(every: 5, file: \"p.ron\") ],", "p.ron:5:41: Thermo: `p.ron` is the pipeline (p.ron)"),
        (
            "analyzers: [ Thermo(every: 5, file: \"p.checkpoint\") ],",
            "Thermo: `p.checkpoint` is the checkpoint (p.ron)",
        ),
        (
            "analyzers: [ Thermo(every: 5, file: \"p.checkpoint.1\") ],",
            "`p.checkpoint.1` is an older checkpoint (p.ron)",
        ),
        ("analyzers: [ Thermo(every: 5, file: \"p.run.json\") ],", "`p.run.json` is the record of the run (p.ron)"),
        ("checkpoint: (every: 10, file: \"p.ron\"),", "p.ron:5:35: `p.ron` is the pipeline (p.ron)"),
        (
            "checkpoint: (every: 10, file: \"c\"), analyzers: [ Thermo(every: 5, file: \"c\") ],",
            "Thermo: `c` is the checkpoint (p.ron:5:35)",
        ),
        (
            "analyzers: [ Thermo(every: 5, file: \"/dev/stdout\") ],",
            "the output file `/dev/stdout` cannot be written: devices",
        ),
        (
            "analyzers: [ Thermo(every: 5, file: \"fifo\") ],",
            "`fifo` cannot be written: this is a pipe, a socket or a device",
        ),
        ("analyzers: [ Thermo(every: 5, file: \"sub\") ],", "`sub` cannot be written: this is a folder"),
        (
            "analyzers: [ Thermo(every: 5, file: \"none/t.csv\") ],",
            "p.ron:5:41: Thermo: the output file `none/t.csv` cannot be written: there is no folder",
        ),
        (
            "updaters: [ ReversePerturbation(every: 10, report: 10, file: \"none/r.csv\") ],",
            "ReversePerturbation: the output file `none/r.csv`",
        ),
        (
            "checkpoint: (every: 10, file: \"none/c\"),",
            "p.ron:5:35: cannot write a checkpoint here: ./none/c: there is no folder",
        ),
    ] {
        refused(lines, expected);
    }
}

/// A file that is written under a temporary name keeps other outputs from it.
#[test]
fn names_of_files_while_they_are_written_are_taken() {
    for (lines, expected) in [
        (
            "analyzers: [ GalamostXml(every: 5, file: \"x.xml\"),\n Thermo(every: 5, file: \".galamost.x.xml.part\") ],",
            "p.ron:6:25: Thermo: `.galamost.x.xml.part` is the name of `x.xml` of GalamostXml (p.ron:5:46) while it is written",
        ),
        (
            "analyzers: [ Thermo(every: 5, file: \".galamost.0000000010.xml.part\"),\n GalamostXml(every: 5, file: \"{step}.xml\") ],",
            "p.ron:6:30: GalamostXml: `.galamost.{step}.xml.part`, the name of `{step}.xml` while it is written, is also written by \
             Thermo (p.ron:5:41)",
        ),
        (
            "analyzers: [ Thermo(every: 5, file: \".galamost.p.run.json.part\") ],",
            "`.galamost.p.run.json.part` is the record of the run while it is written (p.ron)",
        ),
    ] {
        refused(lines, expected);
    }
}

/// The check and the run of a pipeline with these lines end with one error, and nothing is changed.
#[track_caller]
fn refused(lines: &str, expected: &str) {
    let f = folder(lines);
    std::fs::create_dir(f.path().join("sub")).expect("a folder");
    std::os::unix::fs::symlink("../target.csv", f.path().join("sub/link.csv")).expect("a link");
    assert!(Command::new("mkfifo").arg(f.path().join("fifo")).status().expect("mkfifo").success());
    let before = std::fs::read(f.path().join("p.ron")).expect("the pipeline");
    for args in [&["check", "p.ron"][..], &["--pipeline", "p.ron"]] {
        let said = go(f.path(), args, 2);
        assert!(said.contains(expected), "{lines}: expected {expected}, found {said}");
        assert!(said.contains("1 error; nothing was done"), "{said}");
    }
    assert_eq!(std::fs::read(f.path().join("p.ron")).expect("the pipeline"), before);
    assert!(!f.path().join("t.csv").exists() && !f.path().join("target.csv").exists());
}

/// An output that is the input, by its name, a pattern or a link, is an error; the input is unchanged.
#[test]
fn inputs_are_not_overwritten() {
    let f = folder("analyzers: [ GalamostXml(every: 40, file: \"{step}.xml\") ],");
    go(f.path(), &["--pipeline", "p.ron"], 0);
    let input = f.path().join("0000000040.xml");
    let text = std::fs::read(&input).expect("a file");
    std::fs::hard_link(&input, f.path().join("same.xml")).expect("a link");
    for output in [
        "GalamostXml(every: 10, file: \"{step}.xml\")",
        "ExtendedXyz(every: 10, file: \"./0000000040.xml\")",
        "ExtendedXyz(every: 10, file: \"same.xml\")",
    ] {
        let text = format!(
            "(initial: [ GalamostXml(file: \"0000000040.xml\") ], analyzers: [ {output} ], stages: [ (steps: 0, dt: 0.01) ])"
        );
        std::fs::write(f.path().join("q.ron"), text).expect("written");
        let said = go(f.path(), &["--pipeline", "q.ron", "--device", "cpu"], 2);
        assert!(said.contains("is also read by GalamostXml (q.ron:1:31), and this would overwrite it"), "{said}");
    }
    assert_eq!(std::fs::read(&input).expect("a file"), text);
}

/// Runs `check p.ron` without the capability with which the administrator writes everywhere. Other users do not have it.
fn check_without_privilege(folder: &Path) -> std::io::Result<std::process::Output> {
    use std::os::unix::process::CommandExt as _;
    /// Number of the capability to ignore permissions of files and folders, see capabilities(7).
    const CAP_DAC_OVERRIDE: libc::c_ulong = 1;
    let mut command = Command::new(program());
    command.args(["check", "p.ron"]).current_dir(folder);
    // SAFETY: between fork and exec, the closure only makes system calls: it neither allocates nor takes locks
    unsafe {
        command.pre_exec(|| {
            // a program that the administrator starts gets all capabilities of the bounding set
            if libc::geteuid() == 0 && libc::prctl(libc::PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            Ok(())
        });
    }
    command.output()
}

/// A folder in which no file can be created is an error of the check.
#[test]
fn folders_without_permission_are_errors_of_the_check() {
    use std::os::unix::fs::PermissionsExt as _;
    let f = folder("analyzers: [ Thermo(every: 5, file: \"closed/t.csv\") ],");
    let closed = f.path().join("closed");
    std::fs::create_dir(&closed).expect("a folder");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o500)).expect("set");
    let found = check_without_privilege(f.path());
    if tempfile::tempfile_in(&closed).is_ok() {
        // the administrator may write everywhere
        go(f.path(), &["check", "p.ron"], 0);
    }
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).expect("set");
    let out = match found {
        Ok(out) => out,
        Err(why) => return skip("the right to drop CAP_DAC_OVERRIDE", &why.to_string()),
    };
    let said = words(&out);
    assert_eq!(out.status.code(), Some(2), "{said}");
    let expected = "p.ron:5:41: Thermo: the output file `closed/t.csv` cannot be written: no file can be created";
    assert!(said.contains(expected), "{said}");
}

/// Pipelines of one command cannot write the same file, nor read what another writes.
#[test]
fn pipelines_of_one_command_have_different_files() {
    let f = folder("analyzers: [ Thermo(every: 5, file: \"t.csv\") ],");
    write(f.path(), "q", "analyzers: [ Thermo(every: 5, file: \"./t.csv\") ],");
    write(f.path(), "r", "checkpoint: (file: \"p.checkpoint\"),");
    let said = go(f.path(), &["--pipeline", "p.ron", "q.ron"], 2);
    assert!(said.contains("q.ron:5:41: Thermo: `./t.csv` is also written by Thermo (p.ron:5:41)"), "{said}");
    let said = go(f.path(), &["--pipeline", "p.ron", "r.ron"], 2);
    assert!(said.contains("`p.checkpoint` is the checkpoint (p"), "{said}");
    assert_eq!(std::fs::read_dir(f.path()).expect("a folder").count(), 3, "something was written");
}

/// All growing formats, each with this period.
fn growing(every: u32) -> String {
    let of = |name: &str, file: &str| format!("{name}(every: {every}, file: \"{file}\")");
    [
        of("Thermo", "t.csv"),
        of("Thermo", "t.parquet"),
        of("Gsd", "t.gsd"),
        of("Dcd", "t.dcd"),
        of("ExtendedXyz", "t.xyz"),
        of("LammpsDump", "t.dump"),
        of("Pdb", "t.pdb"),
        of("Gro", "t.gro"),
        of("Xtc", "t.xtc"),
        of("Trr", "t.trr"),
        of("Mst", "t.mst"),
        of("GalamostXml", "{step}.xml"),
    ]
    .join(", ")
}

/// A new run renames the files of an earlier one together. Renamed back, the earlier run can be resumed.
#[test]
fn a_new_run_keeps_the_files_of_an_earlier_one() {
    let lines =
        format!("checkpoint: (every: 10), analyzers: [ {}, Rdf(every: 5, file: \"r.csv\", r_max: 2.0) ],", growing(5));
    let (whole, f) = (folder(&lines), folder(&lines));
    go(whole.path(), &["--pipeline", "p.ron"], 0);
    go(f.path(), &["--pipeline", "p.ron", "--steps", "20"], 0);
    let first = contents(f.path());
    let record = std::fs::read(f.path().join("p.run.json")).expect("a record");
    // a file that no run has written counts too
    std::fs::write(f.path().join("0000000003.xml"), "mine").expect("written");
    let said = go(f.path(), &["--pipeline", "p.ron", "--steps", "30"], 0);
    assert_eq!(said.matches("of an earlier run renamed: `.old` is appended to each name").count(), 1, "{said}");
    assert_eq!(std::fs::read(f.path().join("0000000003.xml.old")).expect("a file"), b"mine");
    assert_eq!(std::fs::read(f.path().join("p.run.json.old")).expect("a record"), record);
    let renamed = |name: &str, suffix: &str| match name.split_once(".parquet/") {
        Some((table, part)) => format!("{table}.parquet{suffix}/{part}"),
        None => format!("{name}{suffix}"),
    };
    for (name, bytes) in first.iter().filter(|(n, _)| n != "p.ron") {
        let old = renamed(name, ".old");
        assert!(std::fs::read(f.path().join(&old)).is_ok_and(|b| b == *bytes), "{old}");
    }
    assert!(go(f.path(), &["--pipeline", "p.ron", "--steps", "10"], 0).contains("`.old.2` is appended"));
    assert!(csv(&f.path().join("t.csv.old.2"))["step"].len() == 7 && csv(&f.path().join("t.csv"))["step"].len() == 3);
    // the outputs beside the old checkpoint are those of another run
    let said = go(f.path(), &["--pipeline", "p.ron", "--resume=p.checkpoint.old"], 2);
    assert!(said.contains("rename all of them back"), "{said}");
    for e in std::fs::read_dir(f.path()).expect("a folder") {
        let path = e.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        match name.strip_suffix(".old") {
            None if name == "p.ron" || name.contains(".old") => {}
            None if path.is_dir() => std::fs::remove_dir_all(&path).expect("removed"),
            None => std::fs::remove_file(&path).expect("removed"),
            Some(_) => {}
        }
    }
    for e in std::fs::read_dir(f.path()).expect("a folder") {
        let path = e.expect("an entry").path();
        if path.extension().is_some_and(|e| e == "old") {
            std::fs::rename(&path, path.with_extension("")).expect("renamed");
        }
    }
    go(f.path(), &["--pipeline", "p.ron", "--resume"], 0);
    for (name, bytes) in contents(whole.path()) {
        assert!(std::fs::read(f.path().join(&name)).is_ok_and(|b| b == bytes), "{name}");
    }
    // replaced on request
    let said = go(f.path(), &["--pipeline", "p.ron", "--overwrite", "--steps", "10"], 0);
    assert!(said.contains("--overwrite: ") && said.contains("of an earlier run removed"), "{said}");
    assert_eq!(csv(&f.path().join("t.csv"))["step"].len(), 3);
    assert!(!f.path().join("t.csv.old").exists() && !f.path().join("0000000040.xml").exists());
}

/// Starts a run and waits until it has begun.
fn started(folder: &Path, pipeline: &str) -> Child {
    let mut run = Command::new(program())
        .args(["--pipeline", pipeline, "--threads", "1"])
        .current_dir(folder)
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut lines = BufReader::new(run.stderr.take().expect("piped")).lines();
    assert!(lines.any(|l| l.is_ok_and(|l| l.contains("stage `run`"))), "the run has ended");
    run
}

/// While a process writes a file, a run of another pipeline that would write it is refused with the host and the number of
/// the first; other files of the same folder are free, and a killed process keeps no file.
#[test]
fn a_file_is_written_by_one_process() {
    let f = tempdir().expect("a folder");
    let endless = "stages: [ (steps: 100000000, dt: 0.002) ],";
    let folders = ["a", "b", "out"].map(|n| f.path().join(n));
    folders.iter().for_each(|p| std::fs::create_dir(p).expect("a folder"));
    let [a, b, out] = &folders;
    let outputs = r#"Thermo(every: 100, file: "../out/t.csv"), GalamostXml(every: 100000, file: "../out/{step}.xml")"#;
    write(a, "p", &format!("analyzers: [ {outputs} ], {endless}"));
    let mut first = started(a, "p.ron");
    let before = std::fs::read(out.join("t.csv")).expect("a table");
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    let who = format!("is in use by process {} on {}, started 2", first.id(), host.trim());
    for (folder, file) in [
        (b, r#"Gsd(every: 5, file: "../out/t.csv")"#),
        (b, r#"Thermo(every: 5, file: "../a/../out/./0000000010.xml")"#),
        (b, r#"Thermo(every: 5, file: "../out/.galamost.0000000010.xml.part")"#),
        (out, r#"Gsd(every: 5, file: "t.csv")"#),
    ] {
        write(folder, "q", &format!("analyzers: [ {file} ],"));
        for more in ["--threads=1", "--overwrite"] {
            let said = go(folder, &["--pipeline", "q.ron", more], 2);
            assert!(said.contains("q.ron:5:") && said.contains(&who), "{file}: {said}");
        }
    }
    assert!(std::fs::read(out.join("t.csv")).expect("a table").starts_with(&before));
    assert!(!out.join("t.csv.old").exists());
    write(b, "q", "analyzers: [ Thermo(every: 5, file: \"../out/u.csv\") ],");
    go(b, &["--pipeline", "q.ron"], 0);
    first.kill().expect("killed");
    first.wait().expect("ended");
    write(b, "q", "analyzers: [ Thermo(every: 5, file: \"../out/t.csv\") ],");
    go(b, &["--pipeline", "q.ron"], 0);
    assert_eq!(csv(&out.join("t.csv"))["step"].len(), 9);
    let left = std::fs::read_dir(out).expect("a folder").map(|e| e.expect("an entry").file_name());
    assert!(left.into_iter().all(|n| !n.to_string_lossy().ends_with(".lock")));
}

/// While a process runs a pipeline, another one is refused with the host and the number of the first; a killed process
/// leaves no lock behind.
#[test]
fn a_run_is_locked_while_it_is_in_progress() {
    let f = folder("analyzers: [ Thermo(every: 100, file: \"t.csv\") ], stages: [ (steps: 100000000, dt: 0.002) ],");
    let mut first = started(f.path(), "p.ron");
    let before = std::fs::read(f.path().join("t.csv")).expect("a table");
    for args in [
        &["--pipeline", "p.ron"][..],
        &["--pipeline", "p.ron", "--resume=auto"],
        &["--pipeline", "p.ron", "--overwrite"],
    ] {
        let said = go(f.path(), args, 2);
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
        let who = format!("this run is in use by process {} on {}, started 2", first.id(), host.trim());
        assert!(said.contains(&who) && said.contains("p.checkpoint.lock"), "{said}");
    }
    assert!(std::fs::read(f.path().join("t.csv")).expect("a table").starts_with(&before));
    assert!(!f.path().join("t.csv.old").exists());
    first.kill().expect("killed");
    first.wait().expect("ended");
    // the sign of life, by which files that are written after the last checkpoint are recognized
    let lock = std::fs::read_to_string(f.path().join("p.checkpoint.lock")).expect("a lock");
    assert!(lock.contains("\"since\":"), "{lock}");
    go(f.path(), &["--pipeline", "p.ron", "--steps", "10"], 0);
    assert!(!f.path().join("p.checkpoint.lock").exists());
}

/// Errors of fields and of components are reported together, in the order of the file, each once.
#[test]
fn errors_are_reported_together_in_the_order_of_the_file() {
    let f = tempdir().expect("a folder");
    let text = r#"(
    seed: -1,
    initial: [ Lattice(lattice: Fcc, cells: [3, 3, 3], density: 0.7) ],
    stages: [
        (steps: "ten", dt: 0.01),
        (steps: 10, dt: 0.01, analyzers: [ Thermo(every: 0, file: "t.csv") ]),
    ],
    analyzers: [ Thermo(evry: 1, file: "u.csv") ],
    forces: [ LennardJones(r_cut: 2.0, pairs: { ("A", "B"): (epsilon: 1.0, sigma: 1.0) }) ],
    integrators: [ VelocityVerlet(), VelocityVerlet() ],
)"#;
    std::fs::write(f.path().join("p.ron"), text).expect("written");
    let said = go(f.path(), &["check", "p.ron", "--device", "cpu"], 2);
    let lines: Vec<u32> =
        said.lines().filter_map(|l| l.strip_prefix("p.ron:")?.split(':').next()?.parse().ok()).collect();
    let mut sorted = lines.clone();
    sorted.sort_unstable();
    assert_eq!(lines, sorted, "{said}");
    for line in [2, 5, 6, 8, 9] {
        assert!(lines.contains(&line), "line {line}: {said}");
    }
    // a mistake of common components in two stages
    let text = text
        .replace("-1", "1")
        .replace("\"ten\"", "10")
        .replace("every: 0", "every: 1")
        .replace("evry", "every")
        .replace("\"B\"", "\"A\"");
    std::fs::write(f.path().join("p.ron"), text).expect("written");
    let said = go(f.path(), &["check", "p.ron", "--device", "cpu"], 2);
    assert!(said.contains("both move particle 0") && said.contains("1 error;"), "{said}");
}

/// A table in Parquet is a folder, in which no other file of a run may be.
#[test]
fn files_inside_a_table_are_refused() {
    let table = "Thermo(every: 1, file: \"t.parquet\")";
    for (lines, expected) in [
        (
            format!("analyzers: [ {table},\n Gsd(every: 5, file: \"t.parquet/x.gsd\") ],"),
            "p.ron:6:22: Gsd: `t.parquet/x.gsd` is inside the folder `t.parquet`, a table of Thermo (p.ron:5:41)",
        ),
        (
            format!("analyzers: [ {table},\n Thermo(every: 5, file: \"t.parquet/part-000000.parquet\") ],"),
            "`t.parquet/part-000000.parquet` is inside the folder `t.parquet`, a table of Thermo (p.ron:5:41)",
        ),
        (
            format!("analyzers: [ Gsd(every: 5, file: \"t.parquet/x.gsd\"),\n {table} ],"),
            "Thermo: `t.parquet` is a folder with the file `t.parquet/x.gsd` of Gsd (p.ron:5:38); choose another file",
        ),
        (
            format!("analyzers: [ {table},\n GalamostXml(every: 5, file: \"t.parquet/{{step}}.xml\") ],"),
            "GalamostXml: `t.parquet/{step}.xml` is inside the folder `t.parquet`",
        ),
        (
            format!("checkpoint: (every: 10, file: \"t.parquet/c\"), analyzers: [ {table} ],"),
            "Thermo: `t.parquet` is a folder with the file `c` of the checkpoint (p.ron:5:35)",
        ),
    ] {
        let f = folder(&lines);
        std::fs::create_dir(f.path().join("t.parquet")).expect("a folder");
        for args in [&["check", "p.ron"][..], &["--pipeline", "p.ron"]] {
            let said = go(f.path(), args, 2);
            assert!(said.contains(expected), "{lines}: expected {expected}, found {said}");
            assert!(said.contains("1 error; nothing was done"), "{said}");
        }
        assert_eq!(std::fs::read_dir(f.path().join("t.parquet")).expect("a folder").count(), 0, "{lines}");
    }
}
