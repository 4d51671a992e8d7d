//! `galamost bench` without a GPU: its cases run and its table is complete.

use galamost_tests::{galamost, has_compiler, program, repository, words};
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn a_benchmark_case_has_a_row_its_parts_and_a_plot() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = galamost(
        folder.path(),
        &["bench", "lj 1000", "--all", "--device", "cpu", "--window", "0.05", "--plot", "b.svg", "--out", "b.json"],
    );
    assert!(out.status.success(), "{}", words(&out));
    let table = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(table.contains("| lj | 1000 |") && table.contains("neighbor list"), "{table}");
    let text = std::fs::read_to_string(folder.path().join("b.json")).expect("a table for programs");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["cases"].as_array().map(Vec::len), Some(1));
    let case = &json["cases"][0];
    assert!(case["windows"].as_array().is_some_and(|w| w.len() == 3 && w.iter().all(|t| t.as_f64() > Some(0.0))));
    assert!((case["kT"].as_f64().expect("kT") - 1.2).abs() < 0.3, "{case}");
    let kernels = case["profile"]["kernels"].as_array().expect("parts");
    let seconds = |part: &str| -> f64 {
        kernels.iter().filter(|k| k["part"] == part).filter_map(|k| k["seconds"].as_f64()).sum()
    };
    assert!(seconds("LennardJones") > 0.0 && seconds("NoseHoover") > 0.0, "{kernels:?}");
    assert!(std::fs::read_to_string(folder.path().join("b.svg")).expect("a plot").starts_with("<svg"));
}

/// Cases that start from overlapping beads are measured at their temperature. A bond of R₀ would have ended the run.
#[test]
#[ignore = "5 seconds"]
fn dense_cases_are_measured_at_their_temperature() {
    are_measured_at_their_temperature(&[
        ("kremer-grest 8000", 8000.0, 1.0, 900.0 * 0.006 * 0.006 / 4.0),
        ("wca 8000", 8000.0, 1.2, 600.0 * 0.005 * 0.005 / 4.0),
        ("lj-dense 8000", 8000.0, 1.2, 600.0 * 0.005 * 0.005 / 4.0),
    ]);
}

#[test]
#[ignore = "half a minute"]
fn long_chains_are_measured_at_their_temperature() {
    are_measured_at_their_temperature(&[("chain 32000", 32_000.0, 1.0, 900.0 * 0.012 * 0.012 / 4.0)]);
}

/// With positions at kT, velocity Verlet has a kinetic temperature that is lower by Ω² dt²/4, where Ω² is the mean of the squared frequencies of
/// a particle: about 600 in the liquids, and 900 in chains, whose bonds have U″ of 870. A case has a label, a number of particles, kT and
/// this part of it.
fn are_measured_at_their_temperature(cases: &[(&str, f64, f64, f64)]) {
    let folder = tempfile::tempdir().expect("a folder");
    for (label, n, kt, lowered) in cases.iter().copied() {
        let out = galamost(folder.path(), &["bench", label, "--all", "--device", "cpu", "--window", "0.05", "--json"]);
        assert!(out.status.success(), "{label}: {}", words(&out));
        let json: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
        let cases = json["cases"].as_array().expect("cases");
        let case = cases.iter().find(|c| c["n"] == n as u64).expect("the case");
        assert!(case["windows"].as_array().is_some_and(|w| w.iter().all(|t| t.as_f64() > Some(0.0))), "{case}");
        // five standard deviations of the kinetic energy of 3N degrees of freedom
        let scatter = 5.0 * (2.0_f64 / (3.0 * n)).sqrt();
        let found = case["kT"].as_f64().expect("kT") / kt;
        assert!(1.0 - lowered - scatter < found && found < 1.0 + scatter, "{label}: kT {found} of {kt}");
    }
}

/// A pipeline is measured once for each value of a field; the table has the parameters that components chose.
#[test]
fn a_pipeline_is_measured_with_several_values() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "(seed: 1, initial: [RandomPositions(count: 64, box: [6.0, 6.0, 6.0], types: {\"C\": 1.0, \"A\": 1.0}, \
         charges: {\"C\": 1.0, \"A\": -1.0}), Velocities(kT: 1.0)], forces: [Pppm(accuracy: 1e-2, charges: Gaussian(0.3))], \
         integrators: [Langevin(kT: 1.0, gamma: 1.0)], analyzers: [Thermo(every: 1, file: \"t.csv\")], \
         stages: [(steps: 1, dt: 0.005)])";
    std::fs::write(folder.path().join("ions.ron"), text).expect("a pipeline");
    let bench = |more: &[&str]| {
        galamost(folder.path(), &[&["bench", "ions.ron", "--device", "cpu", "--window", "0.01"], more].concat())
    };
    let out = bench(&["--sweep", "forces[0].r_cut=[2.0, 2.5]", "--set", "precision=Double", "--out", "table.md"]);
    assert!(out.status.success(), "{}", words(&out));
    let table = String::from_utf8_lossy(&out.stdout).into_owned();
    assert_eq!(std::fs::read_to_string(folder.path().join("table.md")).expect("the table"), table);
    for value in ["2.0", "2.5"] {
        let row = table.lines().find(|l| l.starts_with(&format!("| forces[0].r_cut={value} |"))).expect("a row");
        let speed: f64 = row.split('|').nth(2).and_then(|x| x.trim().parse().ok()).expect("a speed");
        assert!(speed > 0.0 && row.contains(&format!("Pppm: r_cut: {value}, alpha: ")), "{row}");
    }
    let fastest = table.lines().find(|l| l.starts_with("fastest: forces[0].r_cut=2.")).expect("the fastest");
    let parameters = table.lines().last().expect("its parameters");
    assert!(parameters.contains(&format!("r_cut: {},", &fastest[fastest.len() - 3..])), "{table}");
    // analyzers are not called
    assert!(!folder.path().join("t.csv").exists());
    for (wrong, message) in [
        (["--sweep", "forces[0].r_cut"], "path=[value"),
        (["--sweep", "forces[0].r_cut=[]"], "with a value for each"),
        (["--sweep", "forces[0].r_cut=[9.0]"], "half"),
        (["--sweep", "forces[0].cut=[2.0]"], "cut"),
    ] {
        let out = bench(&wrong);
        assert!(out.status.code() == Some(2) && words(&out).contains(message), "{wrong:?}: {}", words(&out));
    }
}

/// Forces with kernels of their own start on every GPU; one that started on the first only would wait for the others.
#[test]
fn a_pipeline_with_fields_is_measured_on_several_gpus() {
    if !has_compiler() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let text = "(seed: 1, initial: [RandomPositions(count: 512, box: [6.0, 6.0, 6.0], types: {\"A\": 1.0, \"B\": 1.0}), \
         Velocities(kT: 1.0)], forces: [MdScf(grid: [4, 4, 4], kappa: 0.2, scheme: Paper, chi: {(\"A\", \"A\"): 0.0, (\"A\", \"B\"): 4.0, \
         (\"B\", \"B\"): 0.0})], integrators: [Langevin(kT: 1.0, gamma: 1.0)], stages: [(steps: 1, dt: 0.01)])";
    std::fs::write(folder.path().join("field.ron"), text).expect("a pipeline");
    let out = Command::new(program())
        .args(["bench", "field.ron", "--device", "emulated", "--gpus", "2", "--window", "0.01", "--sweep", "seed=[1]"])
        .current_dir(folder.path())
        .output()
        .expect("the program starts");
    let table = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && table.contains("fastest: seed=1"), "{table}{}", words(&out));
}

/// Replicas count as one case of all their particles.
#[test]
#[ignore = "5 seconds"]
fn replicas_are_measured_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let args = ["bench", "replicas 64000", "--all", "--device", "cpu", "--window", "0.01", "--json"];
    let out = galamost(folder.path(), &args);
    assert!(out.status.success(), "{}", words(&out));
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let case = &json["cases"][0];
    assert!(case["windows"].as_array().is_some_and(|w| w.len() == 3 && w.iter().all(|t| t.as_f64() > Some(0.0))));
    assert!((case["kT"].as_f64().expect("kT") - 1.2).abs() < 0.3, "{case}");
    assert!(case["bytes_per_particle"].as_f64() > Some(0.0), "{case}");
}

/// The particles attract each other, so the lists of replicas grow, and at different steps: some replicas are behind when
/// others have done theirs.
#[test]
#[ignore = "5 seconds"]
fn replicas_that_are_behind_are_measured() {
    if !has_compiler() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(
        folder.path().join("replicas.ron"),
        "(seed: 1, neighbors: (buffer: 0.6), initial: [RandomPositions(count: 256, box: [8.0, 8.0, 8.0]), Velocities(kT: 1.0)], \
         forces: [Gaussian(r_cut: 2.5, pairs: { (\"*\", \"*\"): (epsilon: -1.0, sigma: 1.0) })], \
         integrators: [NoseHoover(kT: 1.0, tau: 0.5)], stages: [(steps: 1, dt: 0.01)])",
    )
    .expect("a pipeline");
    let args =
        ["bench", "replicas 4000", "--all", "--device", "emulated", "--window", "0.01", "--json", "--cases", "."];
    let mut bench = Command::new(program()).args(args).current_dir(folder.path()).spawn().expect("the program runs");
    // the kernels are compiled first, beside other tests
    let deadline = Instant::now() + Duration::from_secs(240);
    let status = loop {
        if let Some(status) = bench.try_wait().expect("a status") {
            break status;
        }
        if Instant::now() > deadline {
            bench.kill().expect("it ends");
            panic!("the measurement has stopped");
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(status.success());
}

/// The pipelines of cases pass their check, with the values that rows replace.
#[test]
fn pipelines_of_cases_are_sound() {
    let data = repository().join("tests/data/dppc-water-21216.xml.xz");
    let file = format!("initial[0].file={:?}", data.to_string_lossy());
    let check = |args: &[&str]| {
        let out = galamost(&repository(), &[&["check"], args].concat());
        assert!(out.status.success(), "{args:?}: {}", words(&out));
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    // the sizes of `benches/peers.toml`
    let ball = ["initial[0].surface=Sphere(radius: 45.0)", "initial[0].box=[170.3, 170.3, 170.3]"];
    assert!(check(&["benches/cases/polymerization.ron"]).contains(" 81377 particles"));
    let large = check(&["benches/cases/polymerization.ron", "--set", ball[0], "--set", ball[1]]);
    assert!(large.contains(" 3899197 particles"), "{large}");
    check(&[
        "benches/cases/md-scf.ron",
        "--set",
        &file,
        "--set",
        "initial[1].times=[2, 1, 1]",
        "--set",
        "forces[3].grid=[44, 22, 22]",
        "--set",
        "precision=Mixed",
    ]);
}

#[test]
fn benchmark_cases_without_their_files_are_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = galamost(folder.path(), &["bench", "polymerization", "--all", "--device", "cpu", "--cases", "nowhere"]);
    let table = String::from_utf8_lossy(&out.stdout).into_owned();
    assert_eq!(out.status.code(), Some(1), "{}", words(&out));
    assert!(table.contains("not measured: polymerization 81377") && table.contains("nowhere"), "{table}");
}

/// Mistakes are found before anything is measured.
#[test]
fn options_that_cannot_be_measured_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for (args, message) in [
        (&["nosuch"][..], "the options select no case; cases: lj"),
        (&["lj 1000", "--max", "10"], "the options select no case"),
        (&["lj 1000", "--window", "nan"], "--window: NaN is not a positive number of seconds"),
        (&["lj 1000", "--window", "0"], "--window: 0 is not a positive number of seconds"),
        (&["sim.ron", "--window", "inf", "--sweep", "seed=[1]"], "--window: inf is not a positive number"),
        (&["lj 1000", "--out", "no/b.json"], "no/b.json: there is no folder no"),
        (&["lj 1000", "--plot", "no/b.svg"], "no/b.svg: there is no folder no"),
    ] {
        let out = galamost(folder.path(), &[&["bench", "--device", "cpu"][..], args].concat());
        assert!(out.status.code() == Some(2) && out.stdout.is_empty(), "{args:?}: {}", words(&out));
        assert!(words(&out).contains(message), "{args:?}: {}", words(&out));
    }
}
