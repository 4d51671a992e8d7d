//! Commands that say how to continue, that refuse to destroy what they read, and that attribute files to runs.

use galamost_tests::{galamost, program, repository, words};
use std::path::Path;
use std::process::Command;
use tempfile::{TempDir, tempdir};

const PIPELINE: &str = r#"(
    device: Cpu, seed: SEED,
    initial: [ Lattice(lattice: Sc, cells: [6, 6, 6], density: 0.7), Velocities(kT: 1.0) ],
    forces: [ Wca(pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0) }) ],
    integrators: [ Langevin(kT: KT, gamma: 1.0) ],
    checkpoint: (every: 100),
    analyzers: [ ANALYZERS ],
    stages: [ (steps: STEPS, dt: 0.004) ],
)"#;

fn write(folder: &Path, name: &str, fields: [(&str, &str); 4]) {
    let text = fields.iter().fold(PIPELINE.to_string(), |text, (field, value)| text.replace(field, value));
    std::fs::write(folder.join(name), text).expect("written");
}

/// A folder with the pipeline `s.ron`.
fn folder(steps: &str, analyzers: &str) -> TempDir {
    let f = tempdir().expect("a folder");
    write(f.path(), "s.ron", [("SEED", "1"), ("KT", "1.0"), ("STEPS", steps), ("ANALYZERS", analyzers)]);
    f
}

/// Runs the program and returns its words.
#[track_caller]
fn go(folder: &Path, args: &[&str], code: i32) -> String {
    let out = galamost(folder, args);
    assert_eq!(out.status.code(), Some(code), "{args:?}: {}", words(&out));
    words(&out)
}

#[test]
#[ignore = "3 seconds"]
fn the_printed_command_resumes_a_run_with_its_settings() {
    let f = folder("400_000_000", "");
    let said = go(f.path(), &["--pipeline", "s.ron", "--set", "integrators[0].kT=2.0", "--walltime", "0:02"], 0);
    let expected = "resume with: galamost --pipeline s.ron --resume --set 'integrators[0].kT=2.0'";
    let command = said.lines().find_map(|l| l.split_once("resume with: ")).expect("a command").1.trim();
    assert!(said.contains(expected), "{said}");
    let pasted = format!("{} --walltime 0:02", command.replacen("galamost", "\"$G\"", 1));
    let out = Command::new("bash").args(["-c", &pasted]).env("G", program()).current_dir(f.path()).output();
    let out = out.expect("bash runs");
    assert!(out.status.success(), "{pasted}: {}", words(&out));
}

#[test]
fn replicas_do_not_resume_as_a_single_run() {
    let f = folder("100", "Thermo(every: 50, file: \"t{replica}.csv\")");
    let sweep = ["--pipeline", "s.ron", "--sweep", "integrators[0].kT=[0.8, 0.9]"];
    go(f.path(), &sweep, 0);
    for resume in ["--resume", "--resume=auto"] {
        let said = go(f.path(), &["--pipeline", "s.ron", resume], 2);
        assert!(said.contains("s.0.checkpoint") && said.contains("--sweep, --set and --replicas"), "{said}");
    }
    assert!(!f.path().join("s.checkpoint").exists() && !f.path().join("s.run.json").exists());
    go(f.path(), &[&sweep[..], &["--resume"]].concat(), 0);
}

#[test]
fn commands_do_not_replace_what_they_read() {
    let f = folder("100", "Thermo(every: 10, file: \"t.csv\")");
    go(f.path(), &["--pipeline", "s.ron"], 0);
    std::fs::write(f.path().join("p.csv"), "r,U\n1.0,3.0\n1.1,2.0\n1.2,1.0\n1.3,0.5\n1.4,0.0\n").expect("written");
    std::os::unix::fs::symlink("t.csv", f.path().join("link.csv")).expect("a link");
    for (args, file) in [
        (&["stats", "t.csv", "t.csv", "--out", "t.csv"][..], "t.csv"),
        (&["stats", "t.csv", "--out", "link.csv"], "t.csv"),
        (&["table", "convert", "p.csv", "--out", "p.csv"], "p.csv"),
        (&["table", "differentiate", "p.csv", "--out", "./p.csv"], "p.csv"),
        (&["report", "s.ron", "--no-pictures", "--out", "s.ron"], "s.ron"),
        (&["report", "s.ron", "--no-pictures", "--out", "t.csv"], "t.csv"),
    ] {
        let before = std::fs::read(f.path().join(file)).expect("a file");
        let said = go(f.path(), &[args, &["--overwrite"]].concat(), 2);
        assert!(said.contains("input and output are the same file"), "{args:?}: {said}");
        assert!(std::fs::read(f.path().join(file)).expect("a file") == before, "{args:?}");
    }
}

/// The second run has renamed the table of the first one and written its own under the same name.
#[test]
fn a_table_belongs_to_the_run_that_wrote_it_last() {
    let f = folder("100", "");
    let table = "Thermo(every: 10, file: \"t.csv\")";
    for (name, seed, kt, analyzers) in
        [("a", "1", "2.0", table), ("z", "2", "0.5", table), ("b", "3", "1.5", "Thermo(every: 10, file: \"u.csv\")")]
    {
        let file = format!("{name}.ron");
        write(f.path(), &file, [("SEED", seed), ("KT", kt), ("STEPS", "100"), ("ANALYZERS", analyzers)]);
        go(f.path(), &["--pipeline", &file], 0);
    }
    let out = galamost(f.path(), &["stats", "t.csv", "u.csv"]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let row = text.lines().find(|l| l.starts_with("t.csv,")).unwrap_or_else(|| panic!("no row: {text}"));
    let cells: Vec<&str> = row.split(',').collect();
    assert!(cells.contains(&"0.5") && !cells.contains(&"2.0"), "{text}");
    let report = |name: &str| {
        go(f.path(), &["report", &format!("{name}.ron"), "--no-pictures"], 0);
        std::fs::read_to_string(f.path().join(format!("{name}.report.html"))).expect("a report")
    };
    let of_first = report("a");
    assert!(of_first.contains("t.csv belongs to another run, z.ron") && !of_first.contains("Energy, temperature"));
    let of_last = report("z");
    assert!(!of_last.contains("belongs to another run") && of_last.contains("Energy, temperature"));
}

#[test]
fn outputs_are_not_compressed() {
    for ending in ["gz", "XZ", "zst"] {
        let f = folder("100", &format!("Thermo(every: 10, file: \"t.csv.{ending}\")"));
        let said = go(f.path(), &["check", "s.ron"], 2);
        assert!(said.contains("cannot be written: outputs are not compressed; remove `."), "{said}");
    }
}

#[test]
fn files_that_are_replaced_keep_their_links() {
    let analyzers = "Rdf(every: 50, r_max: 2.0, file: \"rdf.csv\"), GalamostXml(every: 50, file: \"x.xml\")";
    let f = folder("100", analyzers);
    std::fs::create_dir(f.path().join("disk")).expect("a folder");
    for name in ["rdf.csv", "x.xml"] {
        std::fs::write(f.path().join("disk").join(name), "old").expect("written");
        std::os::unix::fs::symlink(format!("disk/{name}"), f.path().join(name)).expect("a link");
    }
    go(f.path(), &["--pipeline", "s.ron"], 0);
    for name in ["rdf.csv", "x.xml"] {
        assert!(f.path().join(name).is_symlink(), "{name}");
        let text = std::fs::read_to_string(f.path().join("disk").join(name)).expect("a file");
        assert!(text.len() > 100, "{name}: {text}");
    }
}

#[test]
fn samplers_that_write_one_file_do_not_hear_of_stages() {
    let f = tempdir().expect("a folder");
    let sampler = |file: &str| format!("Rosenbluth(lattice: Cubic, monomers: 8, chains: 100, file: \"{file}\")");
    let text = format!("(device: Cpu, ensemble: [\n{},\n{} ])", sampler("a.csv"), sampler("a-fit.csv"));
    std::fs::write(f.path().join("c.ron"), text).expect("written");
    let said = go(f.path(), &["check", "c.ron"], 2);
    assert!(said.contains("is also written by Rosenbluth") && said.contains("choose another file"), "{said}");
    assert!(!said.contains("stages"), "{said}");
}

#[test]
fn samplers_refuse_several_gpus() {
    let f = tempdir().expect("a folder");
    let sampler = "Rosenbluth(lattice: Cubic, monomers: 8, chains: 100, file: \"a.csv\")";
    std::fs::write(f.path().join("c.ron"), format!("(device: Cpu, ensemble: [{sampler}])")).expect("written");
    for args in [["--pipeline", "c.ron", "--gpus", "2"], ["check", "c.ron", "--gpus", "2"]] {
        let said = go(f.path(), &args, 2);
        assert!(said.contains("2 GPUs; a pipeline of samplers runs on one device"), "{said}");
    }
    assert!(!f.path().join("a.csv").exists());
}

#[test]
fn variables_with_wrong_values_are_errors() {
    for (name, value) in [
        ("GALAMOST_PATIENCE", "abc"),
        ("GALAMOST_PATIENCE", "0"),
        ("GALAMOST_ISA", "foo"),
        ("GALAMOST_LIST", "plain"),
        ("GALAMOST_GHOSTS", "abc"),
        ("GALAMOST_EMULATED_FAULT", "lost:abc"),
    ] {
        let out = Command::new(program()).args(["plugins"]).env(name, value).output().expect("the program starts");
        assert_eq!(out.status.code(), Some(2), "{name}: {}", words(&out));
        assert!(words(&out).contains(&format!("{name}: `{value}` is not ")), "{}", words(&out));
    }
    let out = Command::new(program()).args(["plugins"]).env("GALAMOST_PATIENCE", "").output();
    assert!(out.expect("the program starts").status.success());
}

#[test]
#[ignore = "5 seconds"]
fn options_without_effect_are_refused() {
    let f = folder("100", "Gsd(every: 50, file: \"t.gsd\")");
    go(f.path(), &["--pipeline", "s.ron"], 0);
    let missing = "cannot be read: No such file";
    for (args, part) in [
        (&["convert", "t.gsd", "o.xyz", "--frames", ""][..], "--frames: expected FIRST[:LAST[:EVERY]]"),
        (&["render", "t.gsd", "--out", "o.png", "--range", "0,1"], "a range is that of the color scale of a property"),
        (&["render", "t.gsd", "--out", "o.png", "--slice", "x,100,200"], "t.gsd: no particle is drawn"),
        (&["render", "t.gsd", "--out", "o.png", "--radius", "0"], "t.gsd: no particle is drawn"),
        (&["render", "t.gsd", "--out", "o.png", "--radius", "1e-9"], "t.gsd: no particle is drawn"),
        (&["render", "t.gsd", "--movie", "o.png", "--radius", "0"], "no particle is drawn in any frame"),
        (&["render", "t.gsd", "--out", "o.png", "--radius", "A=2,A=3"], "has two values for the type `A`"),
        (&["selftest", "LennardJones", "--timeout", "0"], "0 is not in 1.."),
        (&["ibi", "spec.ron", "--iterations", "0"], "0 is not in 1..=999"),
        (&["ibi", "spec.ron", "--iterations", "5000", "--check"], "5000 is not in 1..=999"),
        (&["report", "s.ron", "--no-pictures", "--out", "o.txt"], "o.txt: the report is a web page"),
        (&["report", "none.xml"], missing),
        (&["watch", "none.xml"], missing),
        (&["info", "."], ".: is a folder, not a particle file"),
        (&["info", "/dev/zero"], "/dev/zero: is a device or a pipe"),
    ] {
        let said = go(f.path(), args, 2);
        assert!(said.contains(part), "{args:?}: {said}");
    }
    let left = std::fs::read_dir(f.path()).expect("a folder").filter_map(Result::ok);
    let left: Vec<_> = left.map(|e| e.file_name()).filter(|n| n.to_string_lossy().starts_with("o.")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A format without particles is drawn with those of another file; the other formats need none.
#[test]
fn trajectories_without_particles_are_drawn() {
    let analyzers =
        ["Gsd(every: 50, file: \"t.gsd\")", "Xtc(every: 50, file: \"t.xtc\")", "Dcd(every: 50, file: \"t.dcd\")"];
    let f = folder("100", &analyzers.join(", "));
    go(f.path(), &["--pipeline", "s.ron"], 0);
    for file in ["t.xtc", "t.dcd"] {
        let picture = ["render", file, "--size", "64x48", "--overwrite", "--out", "o.png"];
        let said = go(f.path(), &picture, 2);
        assert!(said.contains("do not define particles") && said.contains("--topology"), "{said}");
        let said = go(f.path(), &[&picture[..], &["--topology", "s.ron"]].concat(), 2);
        assert!(said.contains("s.ron: is a pipeline; --topology needs a particle file"), "{said}");
        go(f.path(), &[&picture[..], &["--topology", "t.gsd"]].concat(), 0);
        let movie = ["render", file, "--size", "64x48", "--overwrite", "--movie", "m.png", "--topology", "t.gsd"];
        go(f.path(), &movie, 0);
        assert!(f.path().join("o.png").is_file() && f.path().join("m.png").is_file());
    }
    for args in [&["render", "t.gsd"][..], &["convert", "t.gsd", "o.xyz"], &["info", "t.gsd"]] {
        let said = go(f.path(), &[args, &["--topology", "t.gsd"]].concat(), 2);
        assert!(said.contains("Gsd files have their particles themselves; leave out --topology"), "{args:?}: {said}");
    }
    let said = go(f.path(), &["render", "s.ron", "--topology", "t.gsd"], 2);
    assert!(said.contains("leave out --topology"), "{said}");
}

#[test]
#[ignore = "3 seconds"]
fn tables_of_an_earlier_run_are_neither_renamed_by_estimates_nor_read_without_a_part() {
    let f = folder("100", "Thermo(every: 10, file: \"t.parquet\")");
    go(f.path(), &["--pipeline", "s.ron"], 0);
    let said = go(f.path(), &["check", "s.ron", "--estimate"], 0);
    assert!(!said.contains("earlier run"), "{said}");
    go(f.path(), &["report", "s.ron", "--no-pictures"], 0);
    let page = std::fs::read_to_string(f.path().join("s.report.html")).expect("a report");
    assert!(page.contains("t.parquet (Thermo): ") && !page.contains("CSV table"), "the caption");
    let part = |k: u32| f.path().join(format!("t.parquet/part-00000{k}.parquet"));
    std::fs::copy(part(0), part(2)).expect("copied");
    for command in ["info", "stats"] {
        let said = go(f.path(), &[command, "t.parquet"], 2);
        assert!(said.contains("part-000001.parquet is missing"), "{command}: {said}");
    }
    std::fs::copy(part(0), part(1)).expect("copied");
    go(f.path(), &["info", "t.parquet"], 0);
}

#[test]
fn the_advice_after_a_conversion_can_be_pasted() {
    let (f, data) = (tempdir().expect("a folder"), repository().join("tests/data/force_field"));
    let [field, structure] = ["system.force_field", "system.xml"].map(|n| data.join(n).to_string_lossy().into_owned());
    let options = ["--r-cut", "1.2", "--r-shift", "0.9", "--epsilon-r", "15", "--exclude", "bonds,angles,sites"];
    let out = galamost(
        f.path(),
        &[&["convert", field.as_str(), "a b.ron", "--coordinates", &structure][..], &options].concat(),
    );
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(said.contains("`galamost check 'a b.ron'`"), "{said}{}", words(&out));
}

#[test]
#[ignore = "10 seconds"]
fn reports_draw_the_initial_state_if_no_output_has_particles() {
    for analyzers in ["", "Dcd(every: 50, file: \"t.dcd\"), Xtc(every: 50, file: \"t.xtc\")"] {
        let f = folder("100", &format!("Thermo(every: 10, file: \"t.csv\"), {analyzers}"));
        // before the run there is no record either
        for run in [false, true] {
            if run {
                go(f.path(), &["--pipeline", "s.ron"], 0);
            }
            let said = go(f.path(), &["report", "s.ron", "--overwrite"], 0);
            assert!(!said.contains("WARN"), "{said}");
            let page = std::fs::read_to_string(f.path().join("s.report.html")).expect("a report");
            assert!(page.contains("<figcaption>s.ron: step 0"), "no picture after {run} with `{analyzers}`");
        }
    }
}

#[test]
fn a_report_names_a_record_that_cannot_be_read() {
    let f = folder("100", "");
    std::fs::write(f.path().join("s.run.json"), "{").expect("written");
    let said = go(f.path(), &["report", "s.ron", "--no-pictures"], 0);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "s.run.json cannot be read as the record of a run";
    assert!(said.contains(expected), "{said}");
    let page = std::fs::read_to_string(f.path().join("s.report.html")).expect("a report");
    assert!(page.contains(expected) && !page.contains("There is no record"), "the header");
}

#[test]
#[ignore = "3 seconds"]
fn estimates_name_writers_of_the_last_step() {
    let f = folder("100", "GalamostXml(at_end: true, file: \"end.xml\")");
    let out = galamost(f.path(), &["check", "s.ron", "--estimate"]);
    let printed = String::from_utf8_lossy(&out.stdout);
    assert!(printed.contains("GalamostXml at the end: ") && !printed.contains("18446744073709551615"), "{printed}");
}

/// Components that need a start, such as forces on single particles, take part in the test run.
#[test]
#[ignore = "3 seconds"]
fn estimates_start_all_forces() {
    let f = folder("100", "");
    let force = "forces=[BodyForce(force: (0.1, 0.0, 0.0))]";
    let out = galamost(f.path(), &["check", "s.ron", "--estimate", "--set", force]);
    let printed = String::from_utf8_lossy(&out.stdout);
    assert!(printed.contains(" TPS, ") && !printed.contains("not measured"), "{printed}{}", words(&out));
}

#[test]
fn columns_are_selected_once_and_those_of_text_are_named() {
    let f = tempdir().expect("a folder");
    let cell = |k: u32| -> String { if k < 3 { "x".into() } else { k.to_string() } };
    let mixed: String = (0..40).map(|k| format!("{k},{},{}\n", (k * 7) % 5, cell(k))).collect();
    std::fs::write(f.path().join("t.csv"), format!("step,\"x,y\",b\n{mixed}")).expect("written");
    let said = go(f.path(), &["stats", "t.csv"], 0).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("column left out: `b` has 3 rows with text, such as `x`, and 37 rows with numbers"),
        "{said}"
    );
    let out = galamost(f.path(), &["stats", "t.csv", "--columns", "x,y", "--columns", "x,y"]);
    let printed = String::from_utf8_lossy(&out.stdout);
    assert_eq!(printed.matches("x,y ").count(), 1, "{printed}");
    let said = go(f.path(), &["stats", "t.csv", "--columns", ""], 2);
    assert!(said.contains("--columns has an empty name"), "{said}");
    go(f.path(), &["plot", "t.csv", "--y", "x,y", "--out", "t.svg"], 0);
}

/// Values that are left out are named, and ranges and formulas mean what they say.
#[test]
fn fits_and_ranges_of_tables() {
    let f = tempdir().expect("a folder");
    let row = |k: i32| {
        let x = 100.0 * f64::from(k);
        let error = if k < 3 { -f64::from(k) } else { 0.1 };
        let b = if k == 7 { "inf".to_string() } else { f64::from(k * 7 % 5).to_string() };
        format!("{x},{},{error},{},{b}\n", 2.0 * (-x / 1000.0).exp(), (-x * x / 1e6).exp())
    };
    let rows: String = (0..50).map(row).collect();
    std::fs::write(f.path().join("t.csv"), format!("time,y,y_error,z,b\n{rows}")).expect("written");
    let printed = |args: &[&str]| {
        let out = galamost(f.path(), &[&["stats", "t.csv"], args].concat());
        assert_eq!(out.status.code(), Some(0), "{}", words(&out));
        (String::from_utf8_lossy(&out.stdout).into_owned(), words(&out))
    };
    let fitted = |args: &[&str], expected: [f64; 2]| {
        let (out, said) = printed(&[args, &["--json"]].concat());
        let found: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        for (k, value) in expected.into_iter().enumerate() {
            let found = found["parameters"][k]["value"].as_f64().expect("a number");
            // derivatives by differences have errors of 10⁻¹⁰, and χ² is flat at its minimum: their root, and a margin
            assert!((found / value - 1.0).abs() < 1e-6, "{args:?}: {out}");
        }
        said
    };
    let said = fitted(&["--fit", "a*exp(-x/tau)", "--y", "y"], [2.0, 1000.0]);
    assert!(said.contains("--fit leaves out 3 points whose standard error of `y` is not a positive number"), "{said}");
    fitted(&["--fit", "a*exp(-x^2/s)", "--y", "z"], [1.0, 1e6]);
    fitted(&["--fit", "a*exp(-x/tau)", "--y", "y", "--start", "tau=500"], [2.0, 1000.0]);
    let said = go(f.path(), &["stats", "t.csv", "--fit", "a*x", "--y", "y", "--start", "b"], 2);
    assert!(said.contains("`b` is no start value"), "{said}");
    let (_, said) = printed(&["--fit", "a*x", "--y", "b", "--range", "200,1000"]);
    assert!(said.contains("t.csv: --fit leaves out 1 point with an infinite value of `time` or `b`"), "{said}");
    let (_, said) = printed(&["--fit", "a*x", "--y", "b", "--range", "800,1000"]);
    assert!(!said.contains("infinite"), "{said}");
    let (_, said) = printed(&["--columns", "b"]);
    assert!(said.contains("`b` has 1 infinite value, left out of its statistics"), "{said}");
    let rows: String =
        ["1", "nan", "", "2", "1.5", "1.2", "0.9"].iter().zip(0..).map(|(x, k)| format!("{k},{x}\n")).collect();
    std::fs::write(f.path().join("n.csv"), format!("time,a\n{rows}")).expect("written");
    let said = words(&galamost(f.path(), &["stats", "n.csv"]));
    assert!(said.contains("`a` has 2 NaN or empty values, left out of its statistics"), "{said}");
    let said = go(f.path(), &["plot", "t.csv", "--y", "y", "--range-x", "9000,9900"], 2);
    assert!(said.contains("9000,9900 is outside of the tables: `time` is between 0 and 4900"), "{said}");
}

/// The rows of a Parquet table have the size that they take in a long run.
#[test]
#[ignore = "3 seconds"]
fn estimates_of_parquet_tables_are_those_of_their_rows() {
    let f = folder("1000", "Thermo(every: 1, file: \"t.parquet\")");
    let out = galamost(f.path(), &["check", "s.ron", "--estimate"]);
    let printed = String::from_utf8_lossy(&out.stdout);
    let later = printed.split(" for the first sample, ").nth(1).and_then(|t| t.split(" B for each").next());
    let later: f64 = later.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{printed}{}", words(&out)));
    go(f.path(), &["--pipeline", "s.ron"], 0);
    let parts = std::fs::read_dir(f.path().join("t.parquet")).expect("a table");
    let written: u64 = parts.map(|e| e.and_then(|e| e.metadata()).expect("a file").len()).sum();
    let ratio = 1000.0 * later / written as f64;
    assert!((0.5..2.0).contains(&ratio), "{later} B, and {written} B in 1000 rows");
}

/// Nothing will come after a run without a record that has ended.
#[test]
fn a_run_without_a_record_that_has_ended_is_not_waited_for() {
    let f = folder("100", "Thermo(every: 10, file: \"t.csv\")");
    go(f.path(), &["--pipeline", "s.ron", "--no-record"], 0);
    let mut watch = Command::new("timeout");
    watch.arg("60").arg(program()).args(["watch", "s.ron", "--every", "0.5"]).current_dir(f.path());
    let out = watch.output().expect("the program runs");
    let said = words(&out);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(
        said.contains("a run that has ended wrote t.csv without a record") && said.contains("--no-record"),
        "{said}"
    );
}
