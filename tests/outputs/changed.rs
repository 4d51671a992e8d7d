//! Output files that another program changes during a run, or before it resumes.

use super::{folder, go, growing};
use galamost_tests::program;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

type Change = fn(&Path) -> std::io::Result<()>;

fn remove(path: &Path) -> std::io::Result<()> {
    std::fs::remove_file(path)
}

/// As `sed -i` does.
fn replace(path: &Path) -> std::io::Result<()> {
    let copy = path.with_extension("copy");
    std::fs::copy(path, &copy)?;
    std::fs::rename(copy, path)
}

fn empty(path: &Path) -> std::io::Result<()> {
    std::fs::write(path, "")
}

/// Starts an endless run and waits until it has written its first checkpoint. Its messages go to the file `log`.
fn started(folder: &Path) -> Child {
    let mut run = Command::new(program())
        .args(["--pipeline", "p.ron", "--threads", "1", "--quiet"])
        .current_dir(folder)
        .stderr(File::create(folder.join("log")).expect("a file"))
        .spawn()
        .expect("started");
    let begun = Instant::now();
    while !folder.join("p.checkpoint").exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no checkpoint");
        assert!(run.try_wait().expect("a state").is_none(), "the run has ended");
        std::thread::sleep(Duration::from_millis(5));
    }
    run
}

const ENDLESS: &str = "checkpoint: (every: 200), stages: [ (steps: 100000000, dt: 0.002) ], \
    analyzers: [ Thermo(every: 20, file: \"t.csv\"), Gsd(every: 50, file: \"t.gsd\"), Dcd(every: 50, file: \"t.dcd\") ],";

/// The error names component, file and what has happened, and the last checkpoint of whole files.
#[test]
fn a_file_that_is_changed_during_a_run_ends_it() {
    for (owner, file, change, expected) in [
        ("Thermo", "t.csv", remove as Change, "was removed or moved while the run was writing it"),
        ("Gsd", "t.gsd", replace as Change, "was replaced by another file while the run was writing it"),
        ("Thermo", "t.csv", empty as Change, "was shortened "),
        ("Gsd", "t.gsd", empty as Change, "was shortened "),
        ("Dcd", "t.dcd", empty as Change, "was shortened "),
    ] {
        let f = folder(ENDLESS);
        let mut run = started(f.path());
        change(&f.path().join(file)).expect("changed");
        // it may have ended by now
        let _ = Command::new("kill").args(["-TERM", &run.id().to_string()]).status();
        let status = run.wait().expect("ended");
        let said = std::fs::read_to_string(f.path().join("log")).expect("messages");
        assert_eq!(status.code(), Some(1), "{file}: {said}");
        assert!(said.contains(&format!("{owner}: ")) && said.contains(&format!("{file}: {expected}")), "{said}");
        // the library of GSD files cannot complete one that is too short
        let cannot = owner == "Gsd" && expected.starts_with("was shortened");
        let kept = if cannot { "an earlier checkpoint is in p.checkpoint" } else { "is saved in p.checkpoint" };
        assert!(said.contains(kept) && said.contains("resume with"), "{said}");
        // the state is not lost, and a missing file is noticed; a copy may be complete, and one that is empty would be begun again
        if expected.starts_with("was removed") {
            let said = go(f.path(), &["--pipeline", "p.ron", "--resume", "--steps", "1000000"], 2);
            assert!(said.contains(file) && said.contains("nothing was done"), "{said}");
        }
        let record = std::fs::read_to_string(f.path().join("p.run.json")).expect("a record");
        assert!(record.contains("\"status\": \"failed\""), "{record}");
    }
}

/// Commands do not replace what a run writes.
#[test]
fn files_of_a_run_in_progress_are_refused_as_outputs_of_commands() {
    let f = folder(ENDLESS);
    std::fs::write(f.path().join("own.csv"), "step,x\n0,1\n1,2\n2,3\n3,4\n4,5\n").expect("written");
    std::fs::create_dir(f.path().join("d.xml")).expect("a folder");
    let mut run = started(f.path());
    let who = format!("is in use by process {} on ", run.id());
    for args in [
        &["stats", "own.csv", "--skip", "0", "--out", "t.csv", "--overwrite"][..],
        &["convert", "t.gsd", "t.dcd", "--overwrite"],
    ] {
        let said = go(f.path(), args, 2);
        assert!(said.contains(&who), "{said}");
    }
    run.kill().expect("killed");
    run.wait().expect("ended");
    go(f.path(), &["stats", "own.csv", "--skip", "0", "--out", "t.csv", "--overwrite"], 0);
    let said = go(f.path(), &["convert", "t.gsd", "d.xml", "--overwrite"], 2);
    assert!(said.contains("d.xml: this is a folder; remove it, or choose another name"), "{said}");
}

/// Every growing file that had content is named.
#[test]
fn emptied_files_are_begun_again_with_a_warning() {
    let f = folder(&format!("checkpoint: (every: 10), analyzers: [ {} ],", growing(5)));
    go(f.path(), &["--pipeline", "p.ron", "--steps", "20"], 0);
    let names =
        ["t.csv", "t.gsd", "t.dcd", "t.xyz", "t.dump", "t.pdb", "t.gro", "t.xtc", "t.trr", "t.mst", "t.parquet"];
    for name in names {
        let path = f.path().join(name);
        match path.is_dir() {
            true => std::fs::remove_dir_all(&path).and_then(|()| std::fs::create_dir(&path)).expect("emptied"),
            false => empty(&path).expect("emptied"),
        }
    }
    let said = go(f.path(), &["--pipeline", "p.ron", "--resume"], 0);
    for name in names {
        let warning = format!("{name} is empty, but had content at the checkpoint: it is begun again");
        assert_eq!(said.matches(&warning).count(), 1, "{name}: {said}");
    }
}

/// What a resumed run could not write is found before its first step.
#[test]
fn files_that_a_resumed_run_cannot_write_are_errors_of_the_check() {
    let f = folder(r#"checkpoint: (every: 10), analyzers: [ Thermo(every: 5, file: "t.csv") ],"#);
    go(f.path(), &["--pipeline", "p.ron", "--steps", "30"], 0);
    let resume = |code: i32| go(f.path(), &["--pipeline", "p.ron", "--resume"], code);
    let table = f.path().join("t.csv");
    let text = std::fs::read_to_string(&table).expect("a table");
    std::fs::write(&table, text.replacen("step", "Step", 1)).expect("edited");
    let said = resume(2);
    assert!(said.contains("./t.csv: its first line is not that at the checkpoint"), "{said}");
    std::fs::write(&table, text).expect("restored");
    resume(0);
}
