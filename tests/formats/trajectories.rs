//! Trajectories of resumed and killed runs.

use super::{done, go, needs_topology, read};
use galamost::files;
use galamost_plugin_api::snapshot::Snapshot;
use galamost_tests::{program, registry};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const TRAJECTORIES: [&str; 9] = ["t.gsd", "t.dump", "t.xyz", "t.mst", "t.dcd", "t.pdb", "t.gro", "t.xtc", "t.trr"];

/// A stopped and resumed run writes the same files as an uninterrupted one.
#[test]
fn trajectories_continue_after_a_restart() {
    let (whole, parts) = (done("Mixed"), done("Mixed"));
    go(whole.path(), &["--pipeline", "p.ron", "--device", "cpu", "--quiet"]);
    go(parts.path(), &["--pipeline", "p.ron", "--device", "cpu", "--quiet", "--steps", "25"]);
    // killed later than the checkpoint: rows and half a frame too many
    for name in TRAJECTORIES.into_iter().filter(|n| *n != "t.gsd") {
        let path = parts.path().join(name);
        let mut bytes = std::fs::read(&path).expect("a file");
        bytes.extend_from_within(bytes.len() / 2..);
        std::fs::write(&path, bytes).expect("written");
    }
    go(parts.path(), &["--pipeline", "p.ron", "--device", "cpu", "--quiet", "--resume"]);
    for name in TRAJECTORIES.into_iter().chain(["0000000060.data", "0000000060.pdb", "first.csv"]) {
        let [a, b] = [&whole, &parts].map(|f| std::fs::read(f.path().join(name)).expect(name));
        assert!(!a.is_empty() && a == b, "{name} differs: {} and {} bytes", a.len(), b.len());
    }
    let steps = |name: &str| {
        let reader = files::Reader::open(&whole.path().join(name), registry()).expect("a reader");
        let base =
            if needs_topology(&name[2..]) { read(&whole.path().join("in.xml"), None) } else { Snapshot::default() };
        let n = reader.frames().expect("frames").expect("a trajectory");
        let step = |k: u64| reader.read_over(Some(k as i64), base.clone()).map(|s| s.step);
        (0..n).map(|k| step(k).unwrap_or_else(|e| panic!("{}", e.render()))).collect::<Vec<_>>()
    };
    for name in TRAJECTORIES {
        assert_eq!(steps(name), [0, 10, 20, 30, 40, 50, 60], "{name}");
    }
}

/// A run is killed while it writes a frame at every step: every whole frame can be read, and says where the particles were.
#[test]
fn a_killed_run_leaves_files_of_complete_frames() {
    let f = tempfile::tempdir().expect("a folder");
    // free flight: a particle's place is known at every step
    let text = r#"(
        seed: 3, precision: Double, device: Cpu, initial: [ Lattice(lattice: Sc, cells: [12, 12, 12], density: 1.0), Velocities(kT: 1.0) ],
        integrators: [ VelocityVerlet() ],
        analyzers: [ Gsd(every: 1, file: "t.gsd"), LammpsDump(every: 1, file: "t.dump"), ExtendedXyz(every: 1, file: "t.xyz"),
            Mst(every: 1, file: "t.mst"), Dcd(every: 1, file: "t.dcd", unwrapped: true), Pdb(every: 1, file: "t.pdb"), Gro(every: 1, file: "t.gro"),
            Xtc(every: 1, file: "t.xtc"), Trr(every: 1, file: "t.trr"), LammpsData(every: 1, file: "s.data") ],
        stages: [ (steps: 1000000, dt: 0.25) ],
    )"#;
    std::fs::write(f.path().join("p.ron"), text).expect("written");
    go(
        f.path(),
        &[
            "--pipeline",
            "p.ron",
            "--quiet",
            "--steps",
            "0",
            "--set",
            "analyzers=[GalamostXml(every: 1, file: \"start.xml\", digits: 17)]",
        ],
    );
    let start = read(&f.path().join("start.xml"), None);
    let mut child = Command::new(program())
        .args(["--pipeline", "p.ron", "--quiet"])
        .current_dir(f.path())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let (begun, size) = (Instant::now(), |name: &str| f.path().join(name).metadata().map_or(0, |m| m.len()));
    while size("t.dump") < 3_000_000 && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(3));
    }
    child.kill().expect("killed");
    assert!(!child.wait().expect("ended").success(), "the run was over before it could be killed");
    // the state file is the whole one of some step
    assert_eq!(read(&f.path().join("s.data"), None).len(), 1728);
    let l = start.box_length[0];
    for name in TRAJECTORIES {
        let reader = files::Reader::open(&f.path().join(name), registry()).unwrap_or_else(|e| panic!("{}", e.render()));
        let base = if needs_topology(&name[2..]) { start.clone() } else { Snapshot::default() };
        let n = reader.frames().unwrap_or_else(|e| panic!("{}", e.render())).expect("a trajectory");
        assert!(n >= 1 && (n > 5 || name == "t.gsd"), "{name}: {n} frames");
        // frames of GSD gather for two seconds; those of the others are there at once
        for k in [0, n / 2, n - 1] {
            let s = reader.read_over(Some(k as i64), base.clone()).unwrap_or_else(|e| panic!("{}", e.render()));
            assert_eq!((s.step, s.len()), (k, 1728), "{name}");
            for (tag, x) in s.position.iter().enumerate() {
                let there = start.position[tag][0] + start.velocity[tag][0] * 0.25 * k as f64;
                let d = x[0] - there;
                // formats with three decimals
                assert!((d - l * (d / l).round()).abs() < 1e-3, "{name}: frame {k}, particle {tag}");
            }
        }
    }
}
