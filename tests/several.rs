//! Several pipelines at once on one device.

use galamost_engine::pipeline::DeviceChoice;
use galamost_tests::{galamost, has_compiler, words};
use std::path::Path;

fn write(folder: &Path, name: &str, seed: u32, kt: f64, more: &str) {
    let text = format!(
        "(seed: {seed}, checkpoint: (every: 50), initial: [Lattice(lattice: Sc, cells: [6, 6, 6], density: 0.7), Velocities(kT: {kt:?})], \
         forces: [LennardJones(r_cut: 2.0, pairs: {{ (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0) }})], \
         integrators: [Langevin(kT: {kt:?}, gamma: 1.0{more})], analyzers: [Thermo(every: 10, file: \"{name}.csv\"), \
         Gsd(every: 40, file: \"{name}.gsd\")], stages: [(steps: 120, dt: 0.005)])"
    );
    std::fs::write(folder.join(format!("{name}.ron")), text).expect("written");
}

fn same_files(a: &Path, b: &Path, names: &[&str]) {
    for name in names {
        for kind in ["csv", "gsd", "checkpoint"] {
            let file = format!("{name}.{kind}");
            let read = |f: &Path| std::fs::read(f.join(&file)).unwrap_or_else(|e| panic!("{file}: {e}"));
            assert!(read(a) == read(b), "{file} is another one than that of the run alone");
        }
    }
}

/// Runs at once leave what each leaves alone; so do runs that are stopped and go on together.
#[test]
#[ignore = "10 seconds"]
fn concurrent_runs_equal_single_runs() {
    let devices =
        if has_compiler() { vec![DeviceChoice::Cpu, DeviceChoice::Emulated] } else { vec![DeviceChoice::Cpu] };
    for device in devices {
        let name = if device == DeviceChoice::Cpu { "cpu" } else { "emulated" };
        let folders = [(); 3].map(|()| tempfile::tempdir().expect("a folder"));
        let names = ["a", "b", "c"];
        for folder in &folders {
            for (k, n) in names.iter().enumerate() {
                write(folder.path(), n, 7 + k as u32, 0.8 + 0.1 * k as f64, "");
            }
        }
        let run = |folder: &Path, args: &[&str]| {
            let out = galamost(folder, &[args, &["--device", name, "--threads", "2"]].concat());
            assert!(out.status.success(), "{args:?}: {}", words(&out));
            words(&out)
        };
        for n in ["a.ron", "b.ron", "c.ron"] {
            run(folders[0].path(), &["--pipeline", n]);
        }
        let all = ["--pipeline", "a.ron", "b.ron", "c.ron"];
        let told = run(folders[1].path(), &all);
        assert!(told.contains("3 runs of 648 particles in") && told.contains("b.ron"), "{told}");
        same_files(folders[0].path(), folders[1].path(), &names);
        run(folders[2].path(), &[&all[..], &["--steps", "70"]].concat());
        run(folders[2].path(), &[&all[..], &["--resume"]].concat());
        same_files(folders[0].path(), folders[2].path(), &names);
    }
}

/// A list of devices is used in turn, and one pipeline takes one device.
#[test]
#[ignore = "3 seconds"]
fn pipelines_are_spread_over_devices() {
    if !has_compiler() {
        return;
    }
    let [together, alone] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let names = ["a", "b", "c"];
    for folder in [&together, &alone] {
        for (k, n) in names.iter().enumerate() {
            write(folder.path(), n, 7 + k as u32, 1.0, "");
        }
    }
    let run = |folder: &Path, args: &[&str]| {
        let out = galamost(folder, args);
        assert!(out.status.success(), "{args:?}: {}", words(&out));
    };
    run(together.path(), &["--pipeline", "a.ron", "b.ron", "c.ron", "--device", "cpu,emulated"]);
    for (name, device) in names.iter().zip(["cpu", "emulated", "cpu"]) {
        run(alone.path(), &["--pipeline", &format!("{name}.ron"), "--device", device]);
        let record = std::fs::read_to_string(together.path().join(format!("{name}.run.json"))).expect("a record");
        let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
        let used = &record["runs"][0]["device"];
        assert!(used.to_string().to_lowercase().contains(device), "{used}");
    }
    same_files(together.path(), alone.path(), &names);
    let out = galamost(alone.path(), &["--pipeline", "a.ron", "--device", "cpu,emulated"]);
    assert_eq!(out.status.code(), Some(2), "{}", words(&out));
    assert!(words(&out).contains("one pipeline runs on one device"), "{}", words(&out));
}

/// Mistakes in all pipelines are reported before the first run starts; a failing run does not stop the others.
#[test]
fn errors_of_one_of_several_runs_are_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "good", 1, 1.0, "");
    write(folder.path(), "bad", 1, 1.0, ", gama: 2.0");
    write(folder.path(), "worse", 1, -1.0, "");
    let out =
        galamost(folder.path(), &["--pipeline", "good.ron", "bad.ron", "worse.ron", "good.ron", "--device", "cpu"]);
    let told = words(&out);
    assert_eq!(out.status.code(), Some(2), "{told}");
    for part in ["bad.ron:1:", "gama", "worse.ron:1:", "kT", "good.ron", "is given twice"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!folder.path().join("good.csv").exists());
    // a failing run is named
    let out = galamost(folder.path(), &["--pipeline", "good.ron", "nothere.ron", "--device", "cpu"]);
    assert!(words(&out).contains("nothere.ron: cannot be read"), "{}", words(&out));
    // particles on top of each other: this run breaks, the other one ends
    let text = std::fs::read_to_string(folder.path().join("good.ron")).expect("read");
    let breaks = text.replace("dt: 0.005", "dt: 5.0").replace("good.", "breaks.");
    std::fs::write(folder.path().join("breaks.ron"), breaks).expect("written");
    let out = galamost(folder.path(), &["--pipeline", "breaks.ron", "good.ron", "--device", "cpu", "-q"]);
    assert!(words(&out).starts_with("breaks.ron: error: step "), "{}", words(&out));
    let out = galamost(folder.path(), &["--pipeline", "breaks.ron", "good.ron", "--device", "cpu", "--log", "json"]);
    let told = words(&out);
    assert_eq!(out.status.code(), Some(1), "{told}");
    let lines: Vec<serde_json::Value> = told.lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
    assert!(lines.iter().any(|l| l["event"] == "error" && l["pipeline"] == "breaks.ron"), "{told}");
    assert!(
        lines.iter().any(|l| l["event"] == "summary" && l["pipeline"] == "good.ron" && l["steps"] == 120),
        "{told}"
    );
}
