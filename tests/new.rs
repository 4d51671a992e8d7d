//! `galamost new` and `galamost test-plugin`: every kind of pipeline runs; every kind of crate builds, passes its tests, passes
//! the harness and runs.

use galamost_tests::{build_pair_plugin, build_plugin, galamost, has_compiler, repository, test_outside, words};
use std::path::Path;

/// Kinds of crates whose sources differ most, and the others. Pair potentials made by `new` are built by `guide.rs` and below.
const KINDS: [&str; 3] = ["integrator", "updater", "sampler"];
const OTHER_KINDS: [&str; 9] =
    ["pair", "oriented-pair", "bond", "angle", "dihedral", "improper", "force", "analyzer", "generator"];

/// Pipelines of `new pipeline`, with the table of `Thermo` and its temperature.
const PIPELINES: [(&str, Option<(&str, f64)>); 10] = [
    ("melt", Some(("melt.csv", 1.0))),
    ("liquid", Some(("liquid.csv", 1.2))),
    ("dpd", Some(("dpd.csv", 1.0))),
    ("brush", Some(("brush.csv", 1.0))),
    ("field", Some(("field.csv", 1.0))),
    ("janus", Some(("janus.csv", 1.0))),
    ("electrolyte", Some(("electrolyte.csv", 1.0))),
    ("polymerization", Some(("polymerization.csv", 1.0))),
    ("ibi", Some(("ibi.csv", 1.0))),
    ("walks", None),
];

/// Returns the mean of `kT` over the last quarter of a table.
fn late_temperature(table: &Path) -> f64 {
    let text = std::fs::read_to_string(table).expect("a table");
    let column = text.lines().next().and_then(|h| h.split(',').position(|n| n == "kT")).expect("a temperature");
    let all: Vec<f64> = text.lines().skip(1).filter_map(|l| l.split(',').nth(column)?.parse().ok()).collect();
    let late = &all[all.len() * 3 / 4..];
    late.iter().sum::<f64>() / late.len() as f64
}

#[test]
fn whole_numbers_of_cells_and_ions_are_reported() {
    let f = tempfile::tempdir().expect("a folder");
    for (kind, beads, expected) in [
        ("liquid", "1000", "864 beads instead of 1000: a whole number of lattice cells\n"),
        ("electrolyte", "1001", "beads instead of 1001: a whole number of"),
        ("liquid", "864", ""),
    ] {
        let folder = format!("{kind}-{beads}");
        let out = galamost(f.path(), &["new", "pipeline", kind, "--folder", &folder, "--beads", beads]);
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.status.success() && text.contains(expected), "{kind} {beads}: {text}");
        assert_eq!(text.contains("instead of"), !expected.is_empty(), "{kind} {beads}: {text}");
    }
}

#[test]
fn numbers_are_written_as_given() {
    let f = tempfile::tempdir().expect("a folder");
    for (kt, written) in [("0.00012345", "kT: 0.00012345"), ("0.000001", "kT: 1e-6"), ("2", "kT: 2.0")] {
        let folder = format!("kT {kt}");
        let numbers = ["--kT", kt, "--density", "0.23456789"];
        let out = galamost(f.path(), &[&["new", "pipeline", "liquid", "--folder", &folder][..], &numbers].concat());
        let shown = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.status.success() && shown.contains(&format!("    cd '{folder}'\n")), "{shown}");
        let folder = f.path().join(folder);
        let text = std::fs::read_to_string(folder.join("sim.ron")).expect("a pipeline");
        assert!(text.contains(written) && text.contains("density: 0.23456789"), "{text}");
        let out = galamost(&folder, &["check", "sim.ron", "--quiet"]);
        assert!(out.status.success(), "{kt}: {}", words(&out));
    }
}

/// Numbers within the limits give pipelines that pass their check; others are refused with the option to change.
#[test]
fn numbers_without_a_valid_pipeline_are_refused() {
    let f = tempfile::tempdir().expect("a folder");
    for (n, (numbers, message)) in [
        ("liquid --beads 8", "the box of liquid would be 3.5756 wide, but needs 6 for its cutoffs"),
        ("liquid --beads 256", ""),
        ("dpd --beads 8", "give more with --beads"),
        ("dpd --beads 25", ""),
        ("janus --beads 8", "janus needs at least 27 particles"),
        ("janus --beads 27", ""),
        ("polymerization --beads 8", "give more with --beads"),
        ("polymerization --beads 25", ""),
        ("ibi --beads 8", "give more with --beads"),
        ("melt --beads 8 --chain 2", "give more with --beads"),
        ("melt --beads 24 --chain 2", ""),
        ("melt --density 50", "the --density of melt is at most 1.2"),
        ("electrolyte --density 5", "the --density of electrolyte is at most 1.2"),
        ("electrolyte --beads 8 --density 1", "give more with --beads"),
        ("brush --density 2", "the --density of brush is at most 0.5 with chains of 20 beads"),
        (
            "brush --chain 400 --beads 4000 --density 0.3",
            "the --density of brush is at most 0.0828 with chains of 400 beads",
        ),
        ("brush --beads 4000 --density 0.3", ""),
        ("brush --beads 4000 --density 0.5", ""),
        ("brush --beads 4000 --density 0.01", ""),
        ("brush --chain 100 --beads 4000 --density 0.19", ""),
        ("brush --chain 2 --beads 300", "a chain of a brush has at least 3 beads"),
        ("brush --chain 3 --beads 300", ""),
        ("brush --chain 20 --beads 40", ""),
        ("brush --chain 20 --beads 40 --density 0.25", "give more with --beads"),
        ("field --beads 8", ""),
    ]
    .into_iter()
    .enumerate()
    {
        let folder = format!("{n}");
        let mut make = vec!["new", "pipeline"];
        make.extend(numbers.split(' '));
        make.extend(["--folder", &folder]);
        let out = galamost(f.path(), &make);
        if message.is_empty() {
            assert!(out.status.success(), "{numbers}: {}", words(&out));
            let out = galamost(&f.path().join(folder), &["check", "sim.ron", "--quiet"]);
            assert!(out.status.success(), "{numbers}: {}", words(&out));
        } else {
            assert_eq!(out.status.code(), Some(2), "{numbers}");
            assert!(words(&out).contains(message) && !f.path().join(folder).exists(), "{numbers}: {}", words(&out));
        }
    }
}

#[test]
fn every_new_pipeline_runs_without_warnings() {
    let f = tempfile::tempdir().expect("a folder");
    for (kind, _) in PIPELINES {
        let folder = f.path().join(kind);
        let make = ["new", "pipeline", kind, "--folder", kind, "--steps", "250"];
        let out = galamost(f.path(), &make);
        assert!(out.status.success() && out.stderr.is_empty(), "{kind}: {}", words(&out));
        let instructions = String::from_utf8_lossy(&out.stdout).into_owned();
        let text = std::fs::read_to_string(folder.join("sim.ron")).expect("a pipeline");
        // the changes that its comment offers
        let rows: Vec<&str> = text.lines().filter(|l| l.starts_with("// |") && l.contains("| --set ")).collect();
        assert!(!rows.is_empty(), "{kind}");
        for row in rows {
            let options = row.rsplit('|').nth(1).expect("a cell").trim().replace('\'', "");
            let mut check = vec!["check", "sim.ron", "--quiet"];
            check.extend(options.split(' '));
            let out = galamost(&folder, &check);
            assert!(out.status.success() && out.stderr.is_empty(), "{kind} {options}: {}", words(&out));
        }
        let out = galamost(&folder, &["--pipeline", "sim.ron", "--device", "cpu", "--quiet"]);
        assert!(out.status.success() && out.stderr.is_empty(), "{kind}: {}", words(&out));
        // reports draw pictures, and `ibi` runs many times: seconds each
        suggestions_succeed(&folder, &instructions, |line| {
            !line.starts_with("ibi ") && (!line.starts_with("report ") || kind == "melt")
        });
        // the file exists
        let out = galamost(f.path(), &make);
        assert_eq!(out.status.code(), Some(2), "{kind}");
    }
    // the first chapter of the book shows the pipeline of `liquid`
    let out = galamost(f.path(), &["new", "pipeline", "liquid", "--folder", "book"]);
    assert!(out.status.success(), "{}", words(&out));
    let written = std::fs::read_to_string(f.path().join("book/sim.ron")).expect("a pipeline");
    let chapter = std::fs::read_to_string(repository().join("docs/src/first-simulation.md")).expect("a chapter");
    assert!(chapter.contains(written.trim_end()), "the first chapter shows another pipeline than:\n{written}");
    let walks = std::fs::read_to_string(f.path().join("walks/walks.csv")).expect("a table");
    assert_eq!(walks.lines().count(), 48, "one row for each length from 2 on");
    for (arguments, message) in [
        (["melts", "--beads", "100"], "did you mean `melt`"),
        (["walks", "--density", "0.5"], "--density does not apply to the pipeline `walks`"),
        (["liquid", "--kT", "-1"], "kT must be a number from"),
    ] {
        let out = galamost(f.path(), &[&["new", "pipeline"][..], &arguments].concat());
        assert!(out.status.code() == Some(2) && words(&out).contains(message), "{}", words(&out));
    }
}

/// Runs the commands that `new` has suggested for after the run, as far as `wanted`.
fn suggestions_succeed(folder: &Path, instructions: &str, wanted: impl Fn(&str) -> bool) {
    for line in instructions.lines().filter_map(|l| l.strip_prefix("    galamost ")).skip(1).filter(|l| wanted(l)) {
        let out = galamost(folder, &line.split(' ').collect::<Vec<_>>());
        assert!(out.status.success(), "{}: galamost {line}: {}", folder.display(), words(&out));
    }
}

#[test]
#[ignore = "a minute"]
fn new_pipelines_reach_their_temperatures_and_have_reports() {
    let f = tempfile::tempdir().expect("a folder");
    for (kind, thermo) in PIPELINES {
        let Some((table, expected)) = thermo else { continue };
        let out = galamost(f.path(), &["new", "pipeline", kind, "--folder", kind, "--steps", "1000"]);
        assert!(out.status.success(), "{kind}: {}", words(&out));
        let instructions = String::from_utf8_lossy(&out.stdout).into_owned();
        let folder = f.path().join(kind);
        let out = galamost(&folder, &["--pipeline", "sim.ron", "--device", "cpu", "--quiet"]);
        assert!(out.status.success() && out.stderr.is_empty(), "{kind}: {}", words(&out));
        let kt = late_temperature(&folder.join(table));
        // 1000 particles and more: one sample scatters by √(2/3000) = 2.6 %, a mean over several by less
        assert!((kt / expected - 1.0).abs() < 0.077, "{kind}: kT {kt}");
        suggestions_succeed(&folder, &instructions, |_| true);
    }
}

#[test]
#[ignore = "20 seconds"]
fn new_crates_build_are_tested_and_run() {
    are_tested_and_run(&KINDS);
}

#[test]
#[ignore = "minutes"]
fn other_new_crates_build_are_tested_and_run() {
    are_tested_and_run(&OTHER_KINDS);
}

fn are_tested_and_run(kinds: &[&str]) {
    let f = tempfile::tempdir().expect("a folder");
    let api = repository().join("plugin-api").canonicalize().expect("the plugin API");
    for kind in kinds.iter().copied() {
        let name = format!("my-{kind}");
        let out = galamost(f.path(), &["new", kind, &name, "--api", &api.to_string_lossy()]);
        assert!(out.status.success(), "{}", words(&out));
        let instructions = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(
            instructions.contains("cargo build --release") && instructions.contains("test-plugin"),
            "{instructions}"
        );
        let folder = f.path().join(&name);
        let build = if kind.ends_with("pair") { build_pair_plugin } else { build_plugin };
        let library = build(&folder, &name.replace('-', "_"));
        test_outside(&folder);
        std::fs::create_dir(folder.join("built")).expect("a folder");
        let dropped = folder.join("built").join(library.file_name().expect("a name"));
        std::fs::copy(&library, &dropped).expect("copied");
        let pipeline = format!("{name}.ron");
        let mut devices = vec!["cpu"];
        // `test-plugin` below compares every kind on both devices; the pipelines of these kinds differ most
        if ["pair", "integrator", "updater"].contains(&kind) && has_compiler() {
            devices.push("emulated");
        }
        for device in devices {
            let run = ["--pipeline", &pipeline, "--plugin-dir", "built", "--device", device, "-q", "--steps", "100"];
            let out = galamost(&folder, &run);
            assert!(out.status.success(), "{kind} on {device}: {}", words(&out));
            let csv = std::fs::read_to_string(folder.join(format!("{name}.csv"))).expect("its output");
            assert!(csv.lines().count() >= 2 && !csv.contains("NaN"), "{csv}");
        }
        let library = dropped.to_string_lossy().into_owned();
        let out = galamost(&folder, &["test-plugin", &library, "--quiet"]);
        let table = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.status.success(), "{table}{}", words(&out));
        println!("{table}");
        let named = |what: &str| assert!(table.contains(what), "{kind}: no `{what}` in\n{table}");
        match kind {
            "pair" => ["force against gradient", "r → 0", "Smooth", "1 thread = 4 threads", "Lennard-Jones"]
                .map(named)
                .to_vec(),
            "oriented-pair" => {
                ["torque against gradient", "torques", "virial of each axis", "NVE, 1000 steps", "2n = n"]
                    .map(named)
                    .to_vec()
            }
            "bond" | "angle" | "dihedral" | "improper" => {
                ["virial of each axis", "NVE, 1000 steps", "2n = n + restart + n"].map(named).to_vec()
            }
            "force" => ["virial of each axis", "against Σ r F", "2n = n + restart + n"].map(named).to_vec(),
            "updater" if has_compiler() => ["device double: links", "2n = n + restart + n"].map(named).to_vec(),
            "analyzer" => ["files: 1 thread", "files: 2n = n + restart + n"].map(named).to_vec(),
            "integrator" => ["positions, 20 steps", "2n = n + restart + n"].map(named).to_vec(),
            "sampler" => ["CPU, one thread: bytes that differ", "restart: bytes that differ"].map(named).to_vec(),
            _ => vec![],
        };
        // the folder already exists
        let out = galamost(f.path(), &["new", kind, &name]);
        assert_eq!(out.status.code(), Some(2));
    }
}

#[test]
#[ignore = "10 seconds"]
fn a_faulty_plugin_fails_its_harness() {
    let f = tempfile::tempdir().expect("a folder");
    let api = repository().join("plugin-api").canonicalize().expect("the plugin API");
    let out = galamost(f.path(), &["new", "pair", "wrong-force", "--api", &api.to_string_lossy()]);
    assert!(out.status.success(), "{}", words(&out));
    let folder = f.path().join("wrong-force");
    let source = std::fs::read_to_string(folder.join("src/lib.rs")).expect("a source");
    let wrong = source.replace("p.kappa * r + 1.0", "p.kappa * r + 2.0");
    assert_ne!(source, wrong);
    std::fs::write(folder.join("src/lib.rs"), wrong).expect("written");
    let library = build_pair_plugin(&folder, "wrong_force").to_string_lossy().into_owned();
    let out = galamost(&folder, &["test-plugin", &library, "--device", "cpu", "--quiet"]);
    let table = String::from_utf8_lossy(&out.stdout).into_owned();
    assert_eq!(out.status.code(), Some(1), "{table}");
    let failed = |check: &str| table.lines().any(|l| l.contains(check) && l.contains("FAILED"));
    assert!(failed("force against gradient") && failed("NVE, 1000 steps"), "{table}");
    let out = galamost(&folder, &["test-plugin", &library, "--device", "cpu", "--quiet", "--json"]);
    assert!(String::from_utf8_lossy(&out.stdout).contains("\"failed\": true"));
    let out = galamost(&folder, &["test-plugin", "src/lib.rs", "--quiet"]);
    assert_eq!(out.status.code(), Some(2), "{}", words(&out));
}

#[test]
fn component_pages_are_printed_as_json() {
    let out = galamost(Path::new("."), &["plugins", "--json"]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success() && text.contains("\"name\": \"LennardJones\""), "{text}");
    for wanted in ["\"unit\": \"energy\"", "\"range\"", "\"example\"", "\"list\": \"forces\"", "\"default\": \"1.0\""] {
        assert!(text.contains(wanted), "no {wanted}");
    }
}
