//! What a resumed run notices: other lags and parameters of analyzers, and other contents of files that plugins declare as inputs.

use galamost_tests::{csv, fixture, galamost, words};
use std::path::Path;

const PIPELINE: &str = r#"(
    seed: 4,
    initial: [ Lattice(lattice: Fcc, cells: [5, 5, 5], density: 0.7), Velocities(kT: 1.0) ],
    forces: [ LennardJones(r_cut: 2.5, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0) }) ],
    integrators: [ NoseHoover(kT: 1.0, tau: 0.5) ],
    checkpoint: (every: 20),
    stages: [ (steps: 100, dt: 0.004) ],
)"#;

fn folder() -> tempfile::TempDir {
    let f = tempfile::tempdir().expect("a folder");
    std::fs::write(f.path().join("p.ron"), PIPELINE).expect("written");
    f
}

/// Runs, and returns what was said; `status` is the exit status wanted.
fn go(folder: &Path, args: &[&str], status: i32) -> String {
    let out = galamost(folder, &[&["--pipeline", "p.ron", "--device", "cpu"], args].concat());
    let said = words(&out);
    assert_eq!(out.status.code(), Some(status), "{args:?}: {said}");
    said
}

/// Lags of another time step, or of another number of steps, are not mixed with those before: the analyzers start anew.
#[test]
fn other_lags_start_anew() {
    let analyzers = "analyzers=[Msd(every: 10, file: \"m.csv\", points: 4, levels: 1), Vacf(every: 5, file: \"v.csv\", points: 4, levels: 1), \
                     StressCorrelation(every: 10, file: \"s.csv\", longest: 4)]";
    let f = folder();
    go(f.path(), &["--steps", "40", "--set", analyzers], 0);
    let keep = f.path().join("keep");
    std::fs::copy(f.path().join("p.checkpoint"), &keep).expect("copied");
    let resume = format!("--resume={}", keep.display());
    let said = go(f.path(), &[&resume, "--resume-changed", "--set", analyzers, "--set", "stages[0].dt=0.002"], 0);
    for name in ["Msd", "StressCorrelation"] {
        let expected = format!(
            "{name} had samples every 10 × 0.004 time units (steps × dt), now every 10 × 0.002: it starts anew"
        );
        assert!(said.contains(&expected), "{said}");
    }
    for (file, first) in [("m.csv", 0.02), ("v.csv", 0.01), ("s.csv", 0.02)] {
        let times = csv(&f.path().join(file))["time"].clone();
        // with samples of two lags, these are means of both
        assert!(times.iter().all(|t| (t / first - (t / first).round()).abs() < 1e-9), "{file}: {times:?}");
        assert!(times.iter().any(|t| (t / first - 1.0).abs() < 1e-9), "{file}: {times:?}");
    }
    // one analyzer with another interval: only this one, and without a further option
    let other = analyzers.replacen("every: 10", "every: 20", 1);
    let said = go(f.path(), &[&resume, "--set", &other], 0);
    assert!(said.contains("Msd had samples every 10 × 0.004") && !said.contains("Vacf had"), "{said}");
    assert!((csv(&f.path().join("m.csv"))["time"][0] / 0.08 - 1.0).abs() < 1e-9);
    let said = go(f.path(), &[&resume, "--set", analyzers], 0);
    assert!(!said.contains("starts anew"), "{said}");
}

/// Samples of other parameters are not mixed with those before: the table is that of an analyzer that begins after the checkpoint.
#[test]
#[ignore = "3 seconds"]
fn other_parameters_start_anew() {
    for (then, now) in [
        (
            "Rdf(every: 20, file: \"t.csv\", r_max: 2.0, bins: 50)",
            "Rdf(every: 20, file: \"t.csv\", r_max: 1.5, bins: 50)",
        ),
        (
            "Rdf(every: 20, file: \"t.csv\", r_max: 2.0, bins: 50)",
            "Rdf(every: 20, file: \"t.csv\", r_max: 2.0, bins: 40)",
        ),
        (
            "Profile(every: 20, file: \"t.csv\", geometry: Slabs(axis: Z), bins: 5)",
            "Profile(every: 20, file: \"t.csv\", geometry: Slabs(axis: X), bins: 5)",
        ),
        (
            "StructureFactor(every: 20, file: \"t.csv\", q_max: 4.0)",
            "StructureFactor(every: 20, file: \"t.csv\", q_max: 3.0)",
        ),
        (
            "Msd(every: 20, file: \"t.csv\", points: 4)",
            "Msd(every: 20, file: \"t.csv\", points: 4, remove_drift: true)",
        ),
    ] {
        let set = |analyzer: &str| format!("analyzers=[{analyzer}]");
        let f = folder();
        go(f.path(), &["--steps", "40", "--set", &set(then)], 0);
        let said = go(f.path(), &["--resume", "--set", &set(now)], 0);
        assert!(said.contains(" had other parameters: ") && said.contains(": it starts anew, and its table"), "{said}");
        let whole = folder();
        let late = now.replace("every: 20", "every: 20, start: 60");
        go(whole.path(), &["--set", &set(&late)], 0);
        let [a, b] = [&f, &whole].map(|f| csv(&f.path().join("t.csv")));
        assert_eq!(a, b, "{then} → {now}");
    }
}

/// A table that continues has one kind of rows. The check says so before anything runs, and says what is missing for other analyzers.
#[test]
fn other_parameters_do_not_continue_a_table() {
    let set = |analyzers: &str| format!("analyzers=[{analyzers}]");
    let f = folder();
    let thermo = "Thermo(every: 10, file: \"t.csv\")";
    go(f.path(), &["--steps", "40", "--set", &set(thermo)], 0);
    let before = std::fs::read(f.path().join("t.csv")).expect("a table");
    let other = thermo.replace(")", ", by_type: true)");
    let said = go(f.path(), &["--resume", "--set", &set(&other)], 2);
    let expected = "Thermo: `t.csv` continues that of the checkpoint, but by_type absent → true; only every, offset, from_stage, at_end and \
                    names of files may differ; choose another file";
    assert!(said.contains(expected), "{said}");
    let said = go(f.path(), &["--resume", "--set", &set(&format!("Vacf(every: 5, file: \"v.csv\"), {thermo}"))], 2);
    assert!(
        said.contains("was Analyzer Thermo, is Analyzer Vacf (new analyzers go to the end of their list"),
        "{said}"
    );
    assert_eq!(std::fs::read(f.path().join("t.csv")).expect("a table"), before);
    go(f.path(), &["--resume", "--set", &set(&other.replace("t.csv", "u.csv").replace("every: 10", "every: 20"))], 0);
    assert_eq!(csv(&f.path().join("u.csv"))["step"], [60.0, 80.0, 100.0]);
    assert_eq!(std::fs::read(f.path().join("t.csv")).expect("a table"), before);
}

/// An array of particles that no component needed before is not in the checkpoint; the check says so.
#[test]
fn a_missing_array_is_named() {
    let f = folder();
    let chains = "initial=[Polymers(box: [8.0, 8.0, 8.0], molecules: [ (molecule: \"A2\", count: 40) ], bond_length: 0.97, \
                  distance: 0.8), Velocities(kT: 1.0)]";
    let forces = "forces=[Wca(pairs: { (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0) }), Fene(bonds: { \"A-A\": (k: 30.0, R0: 1.5) })]";
    let common = ["--set", chains, "--set", forces];
    go(f.path(), &[&common[..], &["--steps", "40"]].concat(), 0);
    let rdf = "analyzers=[Rdf(every: 10, file: \"r.csv\", r_max: 2.0, only: OtherMolecules)]";
    let said = go(f.path(), &[&common[..], &["--resume", "--set", rdf]].concat(), 2);
    assert!(said.contains("Rdf needs `molecule` of the particles, which the checkpoint does not have"), "{said}");
}

/// A plugin declares that a field with any name is an input file.
#[test]
fn other_contents_of_declared_input_files_are_noticed() {
    let (f, plugins) = (folder(), fixture());
    std::fs::write(f.path().join("numbers.prm"), "1.0").expect("written");
    let plugins = plugins.to_string_lossy();
    let more = ["--plugin-dir", &*plugins, "--set", "forces=[Numbers(table: \"numbers.prm\")]"];
    go(f.path(), &[&more[..], &["--steps", "40"]].concat(), 0);
    go(f.path(), &[&more[..], &["--steps", "60", "--resume"]].concat(), 0);
    std::fs::write(f.path().join("numbers.prm"), "1.1").expect("written");
    let said = go(f.path(), &[&more[..], &["--steps", "80", "--resume"]].concat(), 2);
    assert!(said.contains("`numbers.prm` of Numbers has other contents; --resume-changed accepts it"), "{said}");
}

/// Stages have lists of analyzers: one more at the end of any of them leaves the others as they are, and stages that have not begun may
/// have other ones.
#[test]
#[ignore = "5 seconds"]
fn lists_of_analyzers_are_independent() {
    let f = folder();
    let stages = |a: &str, b: &str| {
        let stage = |name: &str, more: &str| {
            format!(
                "(name: \"{name}\", steps: 40, dt: 0.004, analyzers: [Thermo(every: 10, file: \"{name}.csv\"){more}])"
            )
        };
        format!("stages=[{}, {}]", stage("a", a), stage("b", b))
    };
    let whole = |args: &[&str]| {
        go(f.path(), args, 0);
        ["a.csv", "b.csv"].map(|name| std::fs::read_to_string(f.path().join(name)).expect(name))
    };
    let expected = whole(&["--set", &stages("", "")]);
    let begin = || go(f.path(), &["--overwrite", "--steps", "20", "--set", &stages("", "")], 0);
    let msd = ", Msd(every: 10, file: \"new.csv\", points: 4)";
    for set in [stages(msd, ""), stages("", msd)] {
        begin();
        assert_eq!(whole(&["--resume", "--set", &set]), expected, "{set}");
        assert!(f.path().join("new.csv").exists());
        std::fs::remove_file(f.path().join("new.csv")).expect("removed");
    }
    // other analyzers of the later stage; the state of `Thermo` is not that of `Msd`
    for instead in ["Msd(every: 10, file: \"b.csv\", points: 4)", ""] {
        begin();
        let set = stages("", "").replace("Thermo(every: 10, file: \"b.csv\")", instead);
        go(f.path(), &["--resume", "--set", &set], 0);
        assert_eq!(std::fs::read_to_string(f.path().join("a.csv")).expect("a.csv"), expected[0], "{set}");
    }
    // other integrators and forces of the later stage, or a stage after it
    let wca = "forces: [Wca(pairs: { (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0) })]";
    for (from, to) in [
        ("name: \"b\", ", "name: \"b\", integrators: [Langevin(kT: 1.0, gamma: 1.0)], "),
        ("name: \"b\", ", &format!("name: \"b\", {wca}, ")),
        (")])]", ")]), (steps: 10, dt: 0.004, integrators: [Bussi(kT: 1.0, tau: 0.1)])]"),
    ] {
        begin();
        let set = stages("", "").replace(from, to);
        go(f.path(), &["--resume", "--set", &set], 0);
        assert_eq!(std::fs::read_to_string(f.path().join("a.csv")).expect("a.csv"), expected[0], "{set}");
    }
    let other = |integrator: &str| {
        stages("", "").replace("name: \"b\", ", &format!("name: \"b\", integrators: [{integrator}], "))
    };
    go(f.path(), &["--overwrite", "--steps", "20", "--set", &other("Bussi(kT: 1.0, tau: 0.1)")], 0);
    go(f.path(), &["--resume", "--set", &other("Langevin(kT: 1.0, gamma: 1.0)")], 0);
    // the common integrator has begun
    begin();
    let said = go(f.path(), &["--resume", "--set", "integrators=[VelocityVerlet()]", "--set", &stages("", "")], 2);
    assert!(said.contains("was Integrator NoseHoover, is Integrator VelocityVerlet"), "{said}");
    // in the middle of a list
    begin();
    let set = stages("", "")
        .replace("[Thermo(every: 10, file: \"a", "[Msd(every: 10, file: \"new.csv\"), Thermo(every: 10, file: \"a");
    let said = go(f.path(), &["--resume", "--set", &set], 2);
    assert!(said.contains("new analyzers go to the end of their list"), "{said}");
}

/// The steps of a stage that is complete cannot change, so `--steps` is the number of all steps.
#[test]
fn the_length_of_a_complete_stage_is_fixed() {
    let f = folder();
    let stages = "stages=[(name: \"a\", steps: 30, dt: 0.004), (name: \"b\", steps: 30, dt: 0.004)]";
    go(f.path(), &["--set", stages], 0);
    for steps in [50, 10] {
        let set = stages.replacen("steps: 30", &format!("steps: {steps}"), 1);
        let said = go(f.path(), &["--resume", "--resume-changed", "--set", &set, "--steps", "90"], 2);
        let expected = format!("p.ron: stage `a` is complete with 30 steps, but the pipeline has {steps} steps");
        assert!(said.contains(&expected), "{said}");
    }
    let said = go(f.path(), &["--resume", "--set", stages, "--steps", "90"], 0);
    assert!(said.contains("30 steps in ") && said.contains("90 steps in total"), "{said}");
    // a stage that was extended, and is not the last one any more
    let f = folder();
    go(f.path(), &["--set", "stages=[(name: \"a\", steps: 30, dt: 0.004)]", "--steps", "40"], 0);
    let said = go(f.path(), &["--resume", "--set", stages], 2);
    let expected = "it was at step 40 of stage `a`, which now has 30 steps";
    assert!(said.contains(expected), "{said}");
}

/// A run stops, another one renames its files and writes its own with the same names: the first one does not continue them.
#[test]
#[ignore = "5 seconds"]
fn files_of_another_run_are_not_continued() {
    let analyzers = [
        ("Thermo(every: 10, file: \"t.csv\")", "t.csv"),
        ("Gsd(every: 10, file: \"t.gsd\")", "t.gsd"),
        ("ExtendedXyz(every: 10, file: \"t.xyz\")", "t.xyz"),
        ("LammpsDump(every: 10, file: \"t.dump\")", "t.dump"),
        ("Dcd(every: 10, file: \"t.dcd\")", "t.dcd"),
    ];
    for (analyzer, file) in analyzers {
        let f = folder();
        let (path, set) = (f.path().join(file), format!("analyzers=[{analyzer}]"));
        go(f.path(), &["--steps", "40", "--set", &set], 0);
        std::fs::write(f.path().join("hot.ron"), PIPELINE.replace("kT: 1.0", "kT: 2.0")).expect("written");
        let out = galamost(f.path(), &["--pipeline", "hot.ron", "--device", "cpu", "--set", &set]);
        assert!(out.status.success(), "{}", words(&out));
        let hot = std::fs::read(&path).expect("a file");
        let said = go(f.path(), &["--resume", "--set", &set], 2);
        assert!(said.contains("another run has written") && said.contains("begin it again"), "{said}");
        assert_eq!(std::fs::read(&path).expect("a file"), hot, "{file} was touched");
        // its own file
        std::fs::rename(f.path().join(format!("{file}.old")), &path).expect("renamed");
        go(f.path(), &["--resume", "--set", &set], 0);
        let whole = folder();
        go(whole.path(), &["--set", &set], 0);
        let [one, two] = [&f, &whole].map(|f| std::fs::read(f.path().join(file)).expect("a file"));
        assert!(one == two, "{file} differs from that of an uninterrupted run");
    }
}

/// Analyzers that are new after a checkpoint neither continue nor replace files that exist.
#[test]
fn new_analyzers_leave_existing_files_alone() {
    let thermo = "Thermo(every: 10, file: \"t.csv\")";
    let f = folder();
    go(f.path(), &["--steps", "40", "--set", &format!("analyzers=[{thermo}]")], 0);
    for (new, file) in [
        ("Thermo(every: 10, file: \"u.csv\")", "u.csv"),
        ("Rdf(every: 10, file: \"u.csv\", r_max: 2.0, bins: 50)", "u.csv"),
        ("GalamostXml(every: 10, file: \"u.{step}.xml\")", "u.0000000007.xml"),
        ("Gsd(every: 10, file: \"u.gsd\")", "u.gsd"),
    ] {
        let path = f.path().join(file);
        std::fs::write(&path, "mine\n").expect("written");
        let said = go(f.path(), &["--resume", "--set", &format!("analyzers=[{thermo}, {new}]")], 2);
        assert!(said.contains("exists, but the run of the checkpoint has not written it; move it away"), "{said}");
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "mine\n", "{new}");
        std::fs::remove_file(&path).expect("removed");
    }
    // a file with a new name, too, unless it is the earlier file
    std::fs::copy(f.path().join("t.csv"), f.path().join("w.csv")).expect("copied");
    go(
        f.path(),
        &["--resume", "--steps", "50", "--set", &format!("analyzers=[{}]", thermo.replace("t.csv", "w.csv"))],
        0,
    );
    assert_eq!(csv(&f.path().join("w.csv"))["step"].len(), 6);
    std::fs::write(f.path().join("v.csv"), "mine\n").expect("written");
    let renamed = thermo.replace("t.csv", "v.csv");
    let said = go(f.path(), &["--resume", "--set", &format!("analyzers=[{renamed}]")], 2);
    assert!(said.contains("v.csv exists, but"), "{said}");
    std::fs::write(f.path().join("v.csv"), "").expect("emptied");
    go(f.path(), &["--resume", "--set", &format!("analyzers=[{renamed}]")], 0);
    assert_eq!(csv(&f.path().join("v.csv"))["step"], [60.0, 70.0, 80.0, 90.0, 100.0]);
}

/// A run that stopped, resumed, and was killed before the next checkpoint resumes again, also with files whose last record the next
/// frame replaces. After a run from an older checkpoint, the file written last is the newest, whatever its step.
#[test]
fn a_branch_is_followed() {
    let set = "analyzers=[Pdb(every: 10, file: \"t.pdb\"), Thermo(every: 10, file: \"t.csv\")]";
    let f = folder();
    let keep = ["--set", set, "--set", "checkpoint=(every: 20, keep: 4)"];
    go(f.path(), &[&["--steps", "40"], &keep[..]].concat(), 0);
    let saved = std::fs::read(f.path().join("p.checkpoint")).expect("a checkpoint");
    go(f.path(), &[&["--resume", "--steps", "50"], &keep[..]].concat(), 0);
    // as if this part had been killed
    std::fs::write(f.path().join("p.checkpoint"), saved).expect("written");
    go(f.path(), &[&["--resume", "--steps", "90"], &keep[..]].concat(), 0);
    let older = format!("--resume={}", f.path().join("p.checkpoint.2").display());
    let said = go(f.path(), &[&[&older, "--steps", "70"], &keep[..]].concat(), 0);
    assert!(said.contains("resuming from step 60"), "{said}");
    let said = go(f.path(), &[&["--resume"], &keep[..]].concat(), 0);
    assert!(said.contains("resuming from step 70"), "{said}");
    let whole = folder();
    go(whole.path(), &keep, 0);
    for file in ["t.pdb", "t.csv"] {
        let [one, two] = [&f, &whole].map(|f| std::fs::read(f.path().join(file)).expect("a file"));
        assert!(one == two, "{file} differs from that of an uninterrupted run");
    }
}

/// A part with a new analyzer that is killed before its first regular checkpoint resumes again: one is written as soon as it begins.
#[test]
fn a_killed_part_with_a_new_analyzer_resumes() {
    let f = folder();
    let thermo = "Thermo(every: 10, file: \"t.csv\")";
    go(f.path(), &["--steps", "40", "--set", &format!("analyzers=[{thermo}]")], 0);
    let both = format!("analyzers=[{thermo}, Thermo(every: 5, file: \"u.csv\")]");
    let rare = ["--set", &both, "--set", "checkpoint=(every: 1_000_000, keep: 4)"];
    go(f.path(), &[&["--resume", "--steps", "50"], &rare[..]].concat(), 0);
    // the newest is that of the end
    let names = ["p.checkpoint.1", "p.checkpoint"].map(|n| f.path().join(n));
    std::fs::rename(&names[0], &names[1]).expect("the first checkpoint of this part");
    let said = go(f.path(), &[&["--resume"], &rare[..]].concat(), 0);
    assert!(said.contains("resuming from step 40"), "{said}");
    assert_eq!(csv(&f.path().join("u.csv"))["step"], (8..=20).map(|k| f64::from(5 * k)).collect::<Vec<_>>());
}

/// A part from an older checkpoint cuts outputs back. If it is killed before its first regular checkpoint, the next part does not take the
/// newer one, which expects more of them: a checkpoint is written as soon as it begins.
#[test]
fn a_killed_part_from_an_older_checkpoint_resumes() {
    let thermo =
        ["--set", "analyzers=[Thermo(every: 10, file: \"t.csv\")]", "--set", "checkpoint=(every: 20, keep: 5)"];
    let f = folder();
    go(f.path(), &thermo, 0);
    let whole = std::fs::read(f.path().join("t.csv")).expect("a table");
    let older = format!("--resume={}", f.path().join("p.checkpoint.2").display());
    let rare = ["--steps", "75", "--set", thermo[1], "--set", "checkpoint=(every: 1_000_000, keep: 5)"];
    let said = go(f.path(), &[&[older.as_str()], &rare[..]].concat(), 0);
    assert!(said.contains("resuming from step 60"), "{said}");
    // the newest is that of the end
    let names = ["p.checkpoint.1", "p.checkpoint"].map(|n| f.path().join(n));
    std::fs::rename(&names[0], &names[1]).expect("the first checkpoint of this part");
    let said = go(f.path(), &[&["--resume"], &thermo[..]].concat(), 0);
    assert!(said.contains("resuming from step 60"), "{said}");
    assert!(std::fs::read(f.path().join("t.csv")).expect("a table") == whole);
}

/// A folder with outputs gets another name, in the pipeline and on the disk: tables of averages and files with `{step}` are recognized, as
/// tables that grow are. Files of the same names beside the earlier ones are not.
#[test]
fn a_renamed_folder_of_outputs_is_recognized() {
    let set = |folder: &str| {
        format!(
            "analyzers=[Thermo(every: 10, file: \"{folder}/t.csv\"), Rdf(every: 20, file: \"{folder}/r.csv\", r_max: 2.0, bins: 50), \
             GalamostXml(every: 20, file: \"{folder}/{{step}}.xml\")]"
        )
    };
    let (f, whole) = (folder(), folder());
    std::fs::create_dir(f.path().join("out")).expect("a folder");
    std::fs::create_dir(whole.path().join("results")).expect("a folder");
    go(f.path(), &["--steps", "40", "--set", &set("out")], 0);
    // beside the earlier folder
    std::fs::create_dir(f.path().join("results")).expect("a folder");
    std::fs::write(f.path().join("results/r.csv"), "mine").expect("written");
    let said = go(f.path(), &["--resume", "--set", &set("results")], 2);
    assert!(said.contains("r.csv exists, but the run of the checkpoint has not written it"), "{said}");
    std::fs::remove_dir_all(f.path().join("results")).expect("removed");
    std::fs::rename(f.path().join("out"), f.path().join("results")).expect("renamed");
    go(f.path(), &["--resume", "--set", &set("results")], 0);
    go(whole.path(), &["--set", &set("results")], 0);
    for file in ["results/t.csv", "results/r.csv", "results/0000000040.xml", "results/0000000100.xml"] {
        let [one, two] = [&f, &whole].map(|f| std::fs::read(f.path().join(file)).expect(file));
        assert!(one == two, "{file} differs from that of an uninterrupted run");
    }
}

/// `--resume-changed` is recommended where it helps. Otherwise the message has what is wrong all the same.
#[test]
fn the_option_is_recommended_only_where_it_is_accepted() {
    const HINT: &str = "; --resume-changed accepts it";
    let f = folder();
    let dcd = "analyzers=[Dcd(every: 10, file: \"t.dcd\")]";
    go(f.path(), &["--steps", "40", "--set", dcd], 0);
    let resume = |sets: &[&str], option: bool, status: i32| {
        let set: Vec<&str> = sets.iter().flat_map(|s| ["--set", s]).collect();
        let option = if option { &["--resume-changed"][..] } else { &[] };
        go(f.path(), &[&["--resume"], option, &set[..]].concat(), status)
    };
    let (rare, hot) = (dcd.replace("every: 10", "every: 20"), "integrators[0].kT=1.2");
    for (sets, changed) in [
        (&[dcd, "stages[0].dt=0.002"][..], "dt of stage 1 0.004 → 0.002"),
        (&[rare.as_str(), hot], "kT of NoseHoover 1.0 → 1.2"),
    ] {
        let said = resume(sets, false, 2);
        assert!(said.contains(changed) && !said.contains(HINT) && said.contains("choose another"), "{said}");
        resume(sets, true, 2);
    }
    let said = resume(&[dcd, hot], false, 2);
    assert!(said.contains("kT of NoseHoover 1.0 → 1.2; --resume-changed accepts it"), "{said}");
    resume(&[dcd, hot], true, 0);
    // the steps of a complete stage
    let f = folder();
    let stages = "stages=[(name: \"a\", steps: 30, dt: 0.004), (name: \"b\", steps: 30, dt: 0.004)]";
    go(f.path(), &["--set", stages], 0);
    let said = go(f.path(), &["--resume", "--set", &stages.replacen("steps: 30", "steps: 10", 1)], 2);
    assert!(said.contains("steps of stage \"a\" 30 → 10") && !said.contains(HINT), "{said}");
    assert!(said.contains("stage `a` is complete with 30 steps"), "{said}");
    // chains that are drawn
    let sampler = "Rosenbluth(lattice: Cubic, monomers: 12, chains: 384, batch: 128, file: \"a.csv\")";
    let text = format!("(seed: 3, checkpoint: (every: 1), ensemble: [{sampler}])");
    std::fs::write(f.path().join("e.ron"), text).expect("written");
    let run = |args: &[&str]| galamost(f.path(), &[&["--pipeline", "e.ron", "--device", "cpu"], args].concat());
    assert!(run(&[]).status.success());
    for (chains, accepted) in [("100", false), ("600", true)] {
        let out = run(&["--resume", "--set", &format!("ensemble[0].chains={chains}")]);
        let said = words(&out);
        assert_eq!((out.status.code(), said.contains(HINT)), (Some(2), accepted), "{chains}: {said}");
        assert_eq!(said.contains("restore the earlier `chains`"), !accepted, "{chains}: {said}");
    }
}
