//! Parquet tables: the rows of CSV, whole at any moment, and the same after a restart.

use galamost_measure::columns::{Cells, Column, read};
use galamost_tests::{galamost, program, python_with, repository, skip, words};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Every component whose tables grow, and some that replace theirs; `END` is the ending of their files.
const PIPELINE: &str = r#"(
    seed: 68,
    initial: [
        RandomPositions(count: 600, box: [5.0, 5.0, 8.0], types: {"A": 0.5, "B": 0.5}),
        LinkTypes(bonds: ["A-B"]),
        Orientations(inertia: (0.1, 0.1, 0.1), kT: 1.0),
        Velocities(kT: 1.0),
    ],
    forces: [
        Dpd(r_cut: 1.0, kT: 1.0, pairs: {
            ("A", "A"): (a: 25.0, sigma: 3.0), ("A", "B"): (a: 35.0, sigma: 3.0), ("B", "B"): (a: 25.0, sigma: 3.0) }),
        HarmonicBond(bonds: { "A-B": (k: 50.0, r0: 0.6) }),
    ],
    integrators: [ GrootWarren() ],
    updaters: [
        Reactions(every: 10, r_cut: 0.8, limits: { "A": 2, "B": 1 }, file: "events.END", reactions: [
            (kind: Join, of: ("A", "B"), p: 0.02),
            (kind: Exchange, of: ("B", "A"), p: 0.02, broken: "A-B"),
        ]),
        ReversePerturbation(every: 10, slabs: 8, report: 30, file: "momentum.END"),
    ],
    analyzers: [
        Thermo(every: 7, file: "thermo.END"),
        Gyration(every: 20, file: "chains.END", each: "each.END"),
        OrientationalOrder(every: 30, file: "order.END"),
        Clusters(every: 30, file: "clusters.END", r_bond: 0.6, sizes: "sizes.END"),
        ChainLengths(every: 20, file: "lengths.END", distribution: "distribution.END"),
        DensityProfile(every: 2, file: "slabs.END", axis: Z, bins: 20000),
        DomainSize(every: 15, file: "domains.END", positive: ["A"], negative: ["B"], q_max: 4.0),
        Rdf(every: 50, file: "rdf.END", r_max: 2.0, bins: 20),
        Profile(every: 50, file: "profile.END", geometry: Slabs(axis: Y), bins: 5),
    ],
    checkpoint: (every: 30),
    stages: [ (steps: 120, dt: 0.01) ],
)"#;

const TABLES: [&str; 13] = [
    "chains",
    "clusters",
    "distribution",
    "domains",
    "each",
    "events",
    "lengths",
    "momentum",
    "order",
    "profile",
    "rdf",
    "sizes",
    "thermo",
];

fn folder(ending: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("p.ron"), PIPELINE.replace("END", ending)).expect("written");
    folder
}

fn go(folder: &Path, args: &[&str]) {
    let out = galamost(folder, &[&["--pipeline", "p.ron", "--quiet", "--device", "cpu"], args].concat());
    assert!(out.status.success(), "{args:?}: {}", words(&out));
}

/// Names and contents of all Parquet files, also those in folders.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = vec![];
    for e in std::fs::read_dir(folder).expect("a folder").filter_map(Result::ok) {
        // what a kill before the first checkpoint left was set aside
        if e.file_name().to_string_lossy().contains(".old") {
            continue;
        }
        if e.path().is_dir() {
            all.extend(files(&e.path()).into_iter().map(|(name, bytes)| (Path::new(&e.file_name()).join(name), bytes)));
        } else if e.path().extension().is_some_and(|x| x == "parquet" || x == "part") {
            all.push((e.file_name().into(), std::fs::read(e.path()).expect("read")));
        }
    }
    all.sort();
    all
}

fn python(script: &str, args: &[&Path]) {
    let python = match python_with("pandas, pyarrow") {
        Ok(python) => python,
        Err(why) => return skip("Python with pandas and pyarrow", &why),
    };
    let out = Command::new(python).arg(repository().join("tests/python").join(script)).args(args).output();
    let out = out.expect("python runs");
    print!("{}", String::from_utf8_lossy(&out.stdout));
    assert!(out.status.success(), "{}", words(&out));
}

/// The same run with tables of both formats: pandas finds the same columns, of the same types, with the same numbers to the last digit.
#[test]
#[ignore = "10 seconds"]
fn parquet_tables_equal_csv_tables() {
    let (csv, parquet) = (folder("csv"), folder("parquet"));
    go(csv.path(), &[]);
    go(parquet.path(), &[]);
    for name in TABLES.iter().chain(&["slabs"]) {
        let text = std::fs::read_to_string(csv.path().join(format!("{name}.csv"))).expect("a table");
        let columns = read(&parquet.path().join(format!("{name}.parquet"))).expect("a table");
        let mut lines = text.lines();
        assert_eq!(
            lines.next(),
            Some(&columns.iter().map(|c| &c.name[..]).collect::<Vec<_>>().join(",")[..]),
            "{name}"
        );
        assert_eq!(lines.clone().count(), columns[0].len(), "{name}");
        assert!(!columns[0].is_empty(), "{name}");
        for (k, line) in lines.enumerate() {
            let row: Vec<String> = columns.iter().filter_map(|c| c.cell(k)).map(|c| c.text()).collect();
            assert_eq!(line, row.join(","), "{name}");
        }
    }
    // tables that grow are folders, with more than one part where they are long
    let parts = files(parquet.path()).into_iter().filter(|(name, _)| name.starts_with("slabs.parquet")).count();
    assert_eq!(parts, (61 * 20_000usize).div_ceil(65_536));
    assert!(parquet.path().join("rdf.parquet").is_file());
    python("parquet.py", &[csv.path(), parquet.path()]);
    // the instruments read both
    let said = |folder: &Path, args: &[&str]| {
        let out = galamost(folder, args);
        assert!(out.status.success(), "{args:?}: {}", words(&out));
        String::from_utf8_lossy(&out.stdout).replace("parquet", "csv")
    };
    let both = |command: &[&str], table: &str| {
        [("csv", &csv), ("parquet", &parquet)].map(|(end, folder)| {
            said(folder.path(), &[&[command[0], &format!("{table}.{end}")], &command[1..]].concat())
        })
    };
    let [a, b] = both(&["stats", "--json"], "thermo");
    assert!(a.contains("\"kT\"") && a == b, "{a}\n{b}");
    both(&["plot", "--y", "kT", "--out", "t.svg"], "thermo");
    let [a, b] = [&csv, &parquet].map(|f| std::fs::read_to_string(f.path().join("t.svg")).expect("a plot"));
    assert!(a.contains("kT") && a == b.replace("parquet", "csv"));
    let [a, b] = both(&["info"], "thermo");
    assert!(a.contains("rows:") && b.contains("Parquet") && b.contains("parts:"), "{a}\n{b}");
    let row = |text: &str| text[text.find("last row").expect("a row")..].to_string();
    assert_eq!(row(&a).lines().next(), row(&b).lines().next());
    assert!(said(parquet.path(), &["info", "rdf.parquet"]).contains("rows:"));
    said(parquet.path(), &["report", "p.ron", "--no-pictures"]);
    let page = std::fs::read_to_string(parquet.path().join("p.report.html")).expect("a page");
    assert!(page.contains("thermo.parquet (Thermo)") && page.contains("rdf.parquet (Rdf)"));
}

/// A run in pieces leaves the same files to the byte, wherever it was cut; and a new run takes nothing over.
#[test]
#[ignore = "3 seconds"]
fn restarts_leave_the_same_parts() {
    let (whole, parts) = (folder("parquet"), folder("parquet"));
    go(whole.path(), &["--threads", "1"]);
    go(parts.path(), &["--threads", "2", "--steps", "41"]);
    go(parts.path(), &["--threads", "1", "--steps", "90", "--resume"]);
    go(parts.path(), &["--threads", "2", "--resume"]);
    let (a, b) = (files(whole.path()), files(parts.path()));
    assert!(a.len() > 30, "{}", a.len());
    for ((name, x), (other, y)) in a.iter().zip(&b) {
        assert!(name == other && x == y, "{} and {} differ", name.display(), other.display());
    }
    assert_eq!(a.len(), b.len());
    go(parts.path(), &["--steps", "10"]);
    let columns = read(&parts.path().join("slabs.parquet")).expect("a table");
    assert_eq!(columns[0].len(), 6 * 20_000);
}

/// After a kill -9, wherever it comes, the table is whole and has the first rows of the run; the run goes on and leaves the files of
/// one that was never killed.
#[test]
#[ignore = "10 seconds"]
fn a_killed_run_leaves_a_readable_table() {
    let steps = |columns: &[Column]| match &columns[0].cells {
        Cells::Int(v) => v.clone(),
        other => panic!("{other:?}"),
    };
    let set = ["--set", "stages[0].steps=250"];
    let (whole, killed) = (folder("parquet"), folder("parquet"));
    go(whole.path(), &set);
    let all = read(&whole.path().join("slabs.parquet")).expect("a table");
    let mut lengths = vec![];
    let path = killed.path().join("slabs.parquet");
    for part in [0, 2, 9, 17, 26] {
        let resume: &[&str] = if lengths.is_empty() { &[] } else { &["--resume=auto"] };
        let mut child = Command::new(program())
            .args([&["--pipeline", "p.ron", "--quiet", "--device", "cpu"], &set[..], resume].concat())
            .current_dir(killed.path())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        // so many parts on, and some milliseconds, so that kills come in other places of the writing
        let (begun, next) = (Instant::now(), path.join(format!("part-{part:06}.parquet")));
        while !next.exists() && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(Duration::from_millis(part % 7));
        child.kill().expect("killed");
        child.wait().expect("ended");
        let columns = read(&path).unwrap_or_else(|e| panic!("{e}"));
        let n = columns[0].len();
        lengths.push(n);
        assert!(steps(&columns) == steps(&all)[..n], "{n} rows");
        let row = |columns: &[Column], k| columns.iter().map(|c| c.cell(k)).collect::<Vec<_>>();
        assert_eq!(row(&columns, n - 1), row(&all, n - 1));
        python("parquet_part.py", &[&path, &whole.path().join("slabs.parquet")]);
    }
    println!("rows after the kills: {lengths:?} of {}", all[0].len());
    assert!(lengths[1..].iter().all(|n| *n > 65_536 && *n < all[0].len()), "no kill was in the middle of the table");
    go(killed.path(), &[&set[..], &["--resume=auto"]].concat());
    assert!(files(whole.path()) == files(killed.path()));
}

/// A table of another run, or a file instead of the folder, is refused before any file is touched. Rows after the checkpoint do not
/// matter.
#[test]
#[ignore = "3 seconds"]
fn a_table_of_another_run_is_not_continued() {
    const RUN: &str = r#"(
        seed: SEED,
        initial: [ Lattice(lattice: Sc, cells: [6, 6, 6], density: 0.6), Velocities(kT: 1.0) ],
        integrators: [ Langevin(kT: 1.0, gamma: 0.5) ],
        analyzers: [
            Thermo(every: 10, file: "t.csv"),
            Thermo(every: 10, file: "th.parquet"),
            ParticleTable(every: 20, file: "pt.parquet", columns: ["id", "x", "vx"]),
        ],
        checkpoint: (every: 50),
        stages: [ (steps: 100, dt: 0.004) ],
    )"#;
    let [a, b, whole] = [("3", "75"), ("4", "75"), ("3", "100")].map(|(seed, steps)| {
        let f = tempfile::tempdir().expect("a folder");
        std::fs::write(f.path().join("p.ron"), RUN.replace("SEED", seed)).expect("written");
        go(f.path(), &["--steps", steps]);
        f
    });
    let refused = |expected: &str| {
        let read = || (files(a.path()), std::fs::read(a.path().join("t.csv")).expect("a table"));
        let before = read();
        // the CSV table would be cut back to step 50
        for resume in ["--resume".to_string(), format!("--resume={}", a.path().join("p.checkpoint.1").display())] {
            let out = galamost(a.path(), &["--pipeline", "p.ron", "--device", "cpu", &resume]);
            let said = words(&out);
            assert!(out.status.code() == Some(2) && said.contains(expected), "{said}");
            assert!(read() == before, "{expected}: files changed");
        }
    };
    for name in ["th.parquet", "pt.parquet"] {
        let (path, aside) = (a.path().join(name), a.path().join("aside"));
        std::fs::rename(&path, &aside).expect("renamed");
        std::fs::create_dir(&path).expect("a folder");
        for part in std::fs::read_dir(b.path().join(name)).expect("a folder").filter_map(Result::ok) {
            std::fs::copy(part.path(), path.join(part.file_name())).expect("copied");
        }
        refused(&format!("{name}: its rows are not those at the checkpoint: another run has written it"));
        std::fs::remove_dir_all(&path).expect("removed");
        std::fs::write(&path, "").expect("written");
        refused(&format!("{name}: is a file, but a growing Parquet table is a folder"));
        std::fs::remove_file(&path).expect("removed");
        std::fs::rename(&aside, &path).expect("renamed");
    }
    go(a.path(), &[&format!("--resume={}", a.path().join("p.checkpoint.1").display())]);
    assert!(files(a.path()) == files(whole.path()), "the tables differ from those of an uninterrupted run");
}

/// A link is followed as one to a CSV file is: also if it leads to a folder with another ending, or to none.
#[test]
fn a_table_may_be_a_link() {
    const RUN: &str = r#"(
        seed: 3,
        initial: [ Lattice(lattice: Sc, cells: [5, 5, 5], density: 0.6), Velocities(kT: 1.0) ],
        integrators: [ Langevin(kT: 1.0, gamma: 0.5) ],
        analyzers: [ Thermo(every: 10, file: "t.parquet") ],
        checkpoint: (every: 50),
        stages: [ (steps: 100, dt: 0.004) ],
    )"#;
    for target in ["x.parquet", "disk/table"] {
        let f = tempfile::tempdir().expect("a folder");
        let (link, real) = (f.path().join("t.parquet"), f.path().join(target));
        std::fs::write(f.path().join("p.ron"), RUN).expect("written");
        std::fs::create_dir_all(&real).expect("a folder");
        std::os::unix::fs::symlink(target, &link).expect("a link");
        for (args, rows) in [
            (&["--steps", "75"][..], 8),
            (&["--resume"], 11),
            // the earlier table is renamed or removed, and the link leads to no folder at the start
            (&[], 11),
            (&["--overwrite"], 11),
        ] {
            go(f.path(), args);
            let columns = read(&link).expect("a table");
            assert_eq!(columns[0].len(), rows, "{target} {args:?}");
            assert!(link.is_symlink() && real.join("part-000000.parquet").is_file(), "{target} {args:?}");
        }
        assert!(f.path().join(format!("{target}.old.2/part-000000.parquet")).is_file(), "{target}");
        assert!(!f.path().join("t.parquet.old").exists());
        // the name in the pipeline decides: a CSV table is no folder
        std::fs::write(f.path().join("p.ron"), RUN.replace("t.parquet", "t.csv")).expect("written");
        std::os::unix::fs::symlink(target, f.path().join("t.csv")).expect("a link");
        let out = galamost(f.path(), &["check", "p.ron"]);
        assert!(out.status.code() == Some(2) && words(&out).contains("this is a folder"), "{}", words(&out));
    }
}

/// Damaged files that libFuzzer found: the message is all that a user sees.
#[test]
fn a_damaged_table_is_an_error_without_a_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    for (damaged, command) in ["negative-range", "long-delta"].iter().flat_map(|d| [(d, "info"), (d, "stats")]) {
        let damaged = repository().join("tests/fuzz/corpus/parquet").join(damaged);
        std::fs::copy(damaged, folder.path().join("t.parquet")).expect("copied");
        let out = galamost(folder.path(), &[command, "t.parquet"]);
        let said = words(&out);
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(said.contains("t.parquet: the Parquet file is damaged") && !said.contains("panicked"), "{said}");
    }
}
