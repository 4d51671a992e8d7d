//! Files that a run has not written are kept: of earlier runs, of other runs between two parts, and of the user.

use super::{contents, folder, go, write};
use std::path::Path;
use std::time::{Duration, SystemTime};

const REPLACED: &str = r#"checkpoint: (every: 20), analyzers: [ Rdf(every: 5, file: "r.csv", r_max: 2.0), GalamostXml(every: 10, file: "last.xml"),
    GalamostXml(every: 10, file: "{step}.xml") ],"#;

fn read(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Returns the names of files that were set aside, sorted.
fn aside(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").file_name());
    let mut names: Vec<String> =
        names.map(|n| n.to_string_lossy().into_owned()).filter(|n| n.contains(".old")).collect();
    names.sort();
    names
}

/// `--overwrite` removes the files of an earlier run together: if one cannot be removed, none is.
#[test]
fn all_files_are_overwritten_or_none() {
    let lines = "checkpoint: (every: 10), analyzers: [ Thermo(every: 5, file: \"t.csv\"), Thermo(every: 5, file: \"t.parquet\"), \
                 GalamostXml(every: 40, file: \"{step}.xml\") ],";
    let f = folder(lines);
    go(f.path(), &["--pipeline", "p.ron"], 0);
    std::fs::remove_file(f.path().join("0000000040.xml")).expect("removed");
    for name in ["t.parquet", "0000000040.xml"] {
        let note = f.path().join(name).join("note.txt");
        std::fs::create_dir_all(f.path().join(name)).expect("a folder");
        std::fs::write(&note, "mine").expect("written");
        let before = contents(f.path());
        let said = go(f.path(), &["--pipeline", "p.ron", "--overwrite", "--steps", "20"], 2);
        let expected = format!("{name}: is a folder that has other files than a table, such as note.txt");
        assert!(said.contains(&expected) && said.contains("nothing was done"), "{said}");
        assert!(contents(f.path()) == before, "{name}: files have changed");
        std::fs::remove_file(&note).expect("removed");
    }
    go(f.path(), &["--pipeline", "p.ron", "--overwrite", "--steps", "20"], 0);
    assert!(aside(f.path()).is_empty() && !f.path().join("0000000040.xml").exists());
}

/// Several pipelines of one command: if the files of one cannot be removed, none runs and all files are kept.
#[test]
fn all_pipelines_of_a_command_begin_or_none() {
    let f = folder("checkpoint: (every: 10), analyzers: [ Thermo(every: 5, file: \"t.csv\") ],");
    write(f.path(), "q", "analyzers: [ Thermo(every: 5, file: \"u.parquet\") ],");
    let both = ["--pipeline", "p.ron", "q.ron"];
    go(f.path(), &both, 0);
    std::fs::write(f.path().join("u.parquet/note.txt"), "mine").expect("written");
    let before = contents(f.path());
    let said = go(f.path(), &[&both[..], &["--overwrite", "--steps", "20"]].concat(), 2);
    assert!(said.contains("note.txt") && said.contains("nothing was done"), "{said}");
    assert!(contents(f.path()) == before, "a pipeline has run");
}

/// Between two parts of a run, another run and the user write files with the names of outputs that do not grow.
#[test]
fn a_resumed_run_keeps_what_others_have_written() {
    let (whole, f) = (folder(REPLACED), folder(REPLACED));
    go(whole.path(), &["--pipeline", "p.ron"], 0);
    let resume = ["--pipeline", "p.ron", "--resume"];
    // a stopped run resumes without a word, also if nothing is left to do
    go(f.path(), &["--pipeline", "p.ron", "--steps", "20"], 0);
    for _ in 0..3 {
        let said = go(f.path(), &resume, 0);
        assert!(!said.contains("set aside: ") && aside(f.path()).is_empty(), "{said}");
    }
    let f = folder(REPLACED);
    go(f.path(), &["--pipeline", "p.ron", "--steps", "20"], 0);
    write(f.path(), "q", REPLACED);
    go(f.path(), &["--pipeline", "q.ron", "--set", "seed=9"], 0);
    std::fs::write(f.path().join("0000000030.xml"), "mine").expect("written");
    std::fs::create_dir(f.path().join("0000000050.xml")).expect("a folder");
    let names = ["0000000040.xml", "last.xml", "r.csv"];
    let other = names.map(|name| read(f.path(), name));
    let said = go(f.path(), &resume, 0);
    assert!(
        said.contains("which this run has not written or which were edited: `.old.2` is appended to each name"),
        "{said}"
    );
    for (name, other) in names.iter().zip(other) {
        assert!(read(f.path(), &format!("{name}.old.2")) == other, "{name}");
        assert!(read(f.path(), name) == read(whole.path(), name), "{name}");
    }
    assert_eq!(read(f.path(), "0000000030.xml.old.2"), b"mine");
    assert!(f.path().join("0000000050.xml.old.2").is_dir());
}

/// A run that is killed has written files after its last checkpoint. They are replaced, but not what was written after the kill.
#[test]
fn files_of_a_killed_run_are_replaced() {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    // no process has this number
    let left = |since: u64| {
        let process = format!(r#"{{"host":"{}","pid":{},"started":"then""#, host.trim(), 1 << 30);
        format!(r#"{process},"since":{since}}}"#)
    };
    let hour = Duration::from_secs(3600);
    let now = SystemTime::now();
    let late = now.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs() + 3600;
    for (lock, time, kept) in [
        (Some(left(0)), now + hour, true),
        // it wrote before that
        (Some(left(0)), now - hour, false),
        // it had not resumed, and the checkpoints are older
        (Some(left(late)), now + hour, false),
        (None, now, false),
    ] {
        let f = folder(REPLACED);
        go(f.path(), &["--pipeline", "p.ron"], 0);
        let at = |name: &str| f.path().join(name);
        let set_time = |name: &str, time| {
            std::fs::File::options().write(true).open(at(name)).and_then(|f| f.set_modified(time)).expect("set");
        };
        // the run was killed after the checkpoint of step 20
        std::fs::rename(at("p.checkpoint.1"), at("p.checkpoint")).expect("renamed");
        set_time("p.checkpoint", now - Duration::from_secs(60));
        if let Some(text) = &lock {
            std::fs::write(at("p.checkpoint.lock"), text).expect("written");
            set_time("p.checkpoint.lock", time);
        }
        let said = go(f.path(), &["--pipeline", "p.ron", "--resume"], 0);
        let expected = ["0000000030.xml.old", "0000000040.xml.old", "last.xml.old", "r.csv.old"];
        assert_eq!(
            aside(f.path()),
            if kept { vec![] } else { expected.map(String::from).to_vec() },
            "{lock:?}: {said}"
        );
    }
}

/// What has the name of the lock and is none is neither written nor removed.
#[test]
fn other_files_are_not_taken_for_locks() {
    let f = folder("analyzers: [ Thermo(every: 5, file: \"t.csv\") ],");
    let lock = f.path().join("p.checkpoint.lock");
    std::fs::write(f.path().join("data.txt"), "mine").expect("written");
    std::os::unix::fs::symlink("data.txt", &lock).expect("a link");
    for what in ["a link", "a file"] {
        let said = go(f.path(), &["--pipeline", "p.ron"], 2);
        assert!(said.contains("p.checkpoint.lock: is no lock of a run") && said.contains("nothing was done"), "{said}");
        assert!(read(f.path(), "data.txt") == b"mine" && std::fs::read(&lock).is_ok_and(|b| b == b"mine"), "{what}");
        std::fs::remove_file(&lock).expect("removed");
        std::fs::write(&lock, "mine").expect("written");
    }
}

/// The pipelines of replicas are written again by each run, but not over what the user has edited.
#[test]
fn edited_pipelines_of_replicas_are_set_aside() {
    let f = folder("");
    write(f.path(), "rep", "replicas: 2, analyzers: [ Thermo(every: 5, file: \"t.{replica}.csv\") ],");
    let run = ["--pipeline", "rep.ron", "--overwrite", "--steps", "10"];
    go(f.path(), &run, 0);
    // other values in the pipeline are no edit of the replicas' ones
    go(f.path(), &[&run[..], &["--set", "seed=7"]].concat(), 0);
    assert!(aside(f.path()).is_empty());
    let edited = [read(f.path(), "rep.1.ron"), b"// mine\n".to_vec()].concat();
    std::fs::write(f.path().join("rep.1.ron"), &edited).expect("written");
    let said = go(f.path(), &run, 0);
    assert!(
        said.contains("rep.1.ron, which this run has not written or which were edited: `.old` is appended"),
        "{said}"
    );
    assert_eq!(aside(f.path()), ["rep.1.ron.old"]);
    assert!(read(f.path(), "rep.1.ron.old") == edited);
}

/// Names to which an ending is appended leave room for it.
#[test]
fn names_that_are_too_long_are_errors_of_the_check() {
    let file = "r".repeat(246);
    let f = folder(&format!("analyzers: [ Rdf(every: 5, file: \"{file}.csv\", r_max: 2.0) ],"));
    let said = go(f.path(), &["check", "p.ron"], 2);
    assert!(
        said.contains("p.ron:5:38: Rdf: the output file") && said.contains("has 250 bytes, and 240 is the most"),
        "{said}"
    );
    assert!(said.contains("choose a shorter name"), "{said}");
    let name = "p".repeat(240);
    write(f.path(), &name, "");
    let said = go(f.path(), &["check", &format!("{name}.ron")], 2);
    assert!(
        said.contains("cannot write a checkpoint here") && said.contains("has 251 bytes, and 237 is the most"),
        "{said}"
    );
}

/// A run does not start from scratch beside a checkpoint that has the earlier name.
#[test]
fn a_checkpoint_with_an_earlier_name_is_found() {
    let lines =
        |file: &str| format!("checkpoint: (every: 10{file}), analyzers: [ Thermo(every: 5, file: \"t.csv\") ],");
    for (then, earlier, now) in [
        (String::new(), "p.checkpoint", ", file: \"b.ck\""),
        (", file: \"a.ck\"".into(), "a.ck", ", file: \"b.ck\""),
        (", file: \"a.ck\"".into(), "a.ck", ""),
    ] {
        let f = folder(&lines(&then));
        go(f.path(), &["--pipeline", "p.ron", "--steps", "20"], 0);
        write(f.path(), "p", &lines(now));
        let before = contents(f.path());
        for resume in ["--resume", "--resume=auto"] {
            let said = go(f.path(), &["--pipeline", "p.ron", resume], 2);
            assert!(said.contains(&format!("{earlier} of an earlier run of this pipeline")), "{said}");
            assert!(contents(f.path()) == before, "files have changed");
        }
        go(f.path(), &["--pipeline", "p.ron", &format!("--resume={earlier}")], 0);
    }
}

/// A table that two stages continue is one file.
#[test]
fn a_missing_table_of_two_stages_is_one_error() {
    for file in ["t.csv", "t.gsd"] {
        let analyzer = if file == "t.csv" { "Thermo" } else { "Gsd" };
        let stage = format!("(steps: 20, dt: 0.002, analyzers: [ {analyzer}(every: 5, file: \"{file}\") ])");
        let f = folder(&format!("checkpoint: (every: 10), stages: [ {stage}, {stage} ],"));
        go(f.path(), &["--pipeline", "p.ron", "--steps", "30"], 0);
        std::fs::remove_file(f.path().join(file)).expect("removed");
        let said = go(f.path(), &["--pipeline", "p.ron", "--resume"], 2);
        assert!(said.contains("is missing") && said.contains("1 error;"), "{said}");
    }
}
