//! Replicas of a pipeline: each has the bits of a single run, on every device, also if the run is cut in two.

use galamost_tests::{galamost, has_compiler, program, words};
use std::path::Path;
use std::process::Command;

/// The values by which three replicas differ, for `Each`.
struct Sweep {
    precision: &'static str,
    /// Density, forces, integrators and updaters, in which `V` stands for the values.
    density: &'static str,
    forces: &'static str,
    integrators: &'static str,
    updaters: &'static str,
    values: [&'static str; 3],
}

const SOFT: &str = r#"HarmonicRepulsion(r_cut: 1.0, pairs: {
    ("A", "A"): (alpha: 12.5), ("A", "B"): (alpha: 20.0), ("B", "B"): (alpha: 12.5) })"#;
const DPD: &str = r#"Dpd(r_cut: 1.0, kT: 1.0, pairs: {
    ("A", "A"): (a: 25.0, sigma: 3.0), ("A", "B"): (a: 40.0, sigma: 3.0), ("B", "B"): (a: 25.0, sigma: 3.0) })"#;

const SWEEPS: [Sweep; 5] = [
    // a thermostat with sums, and its temperature
    Sweep {
        precision: "Mixed",
        density: "2.0",
        forces: SOFT,
        integrators: "NoseHoover(kT: V, tau: 0.5)",
        updaters: "",
        values: ["0.7", "1.0", "1.3"],
    },
    // other boxes: other cell grids and lists
    Sweep {
        precision: "Double",
        density: "V",
        forces: SOFT,
        integrators: "Langevin(kT: Ramp(from: 1.0, to: 2.0, steps: 20), gamma: 1.0, group: Types([\"A\"])), \
                      NoseHooverChain(kT: 1.0, tau: 0.5, group: Types([\"B\"]))",
        updaters: "",
        values: ["1.6", "2.0", "3.0"],
    },
    // boxes that change
    Sweep {
        precision: "Mixed",
        density: "3.0",
        forces: DPD,
        integrators: "MtkNpt(kT: 1.0, tau: 0.5, pressure: V, tau_p: 0.3)",
        updaters: "",
        values: ["15.0", "25.0", "35.0"],
    },
    // images that slide, and a macro of the kernels
    Sweep {
        precision: "Single",
        density: "3.0",
        forces: DPD,
        integrators: "GrootWarren(), LeesEdwards(rate: V)",
        updaters: "",
        values: ["0.4", "0.7", "0.9"],
    },
    // a force with a kernel of a plugin, bonds that reactions make: tables and lists that grow
    Sweep {
        precision: "Mixed",
        density: "2.0",
        forces: r#"HarmonicRepulsion(r_cut: 1.0, pairs: {
            ("A", "A"): (alpha: 12.5), ("A", "B"): (alpha: 20.0), ("B", "B"): (alpha: 12.5) }),
            HarmonicBond(bonds: { "A-B": (k: 20.0, r0: 0.8) }), BodyForce(force: [V, 0.0, 0.0])"#,
        integrators: "Langevin(kT: 1.0, gamma: 1.0)",
        updaters: r#"Reactions(every: 7, r_cut: 0.8, limits: { "A": 2, "B": 2 },
            reactions: [(kind: Join, of: ("A", "B"), p: 0.3)])"#,
        values: ["0.1", "0.2", "0.5"],
    },
];

impl Sweep {
    /// Returns a pipeline with this seed and this value; `name` is the stem of its outputs.
    fn pipeline(&self, seed: u32, value: &str, name: &str) -> String {
        let of = |text: &str| text.replace('V', value);
        let generators = "Velocities(kT: 1.0), LinkTypes(bonds: [\"A-B\"])";
        format!(
            "(seed: {seed}, precision: {}, neighbors: (buffer: 0.15), checkpoint: (every: 25),\n\
             initial: [Lattice(lattice: Sc, cells: [6, 7, 6], density: {}, types: {{\"A\": 0.5, \"B\": 0.5}}), {generators}],\n\
             forces: [{}],\nintegrators: [{}],\nupdaters: [{}],\n\
             analyzers: [Thermo(every: 7, file: \"{name}.csv\"), Gsd(every: 20, file: \"{name}.gsd\")],\n\
             stages: [(name: \"one\", steps: 40, dt: 0.01), (name: \"two\", steps: 9, dt: 0.02)])",
            self.precision,
            of(self.density),
            of(self.forces),
            of(self.integrators),
            self.updaters
        )
    }

    /// Writes the pipeline of all replicas.
    fn write(&self, folder: &Path) {
        let each = format!("Each([{}])", self.values.join(", "));
        std::fs::write(folder.join("p.ron"), self.pipeline(5, &each, "t.{replica}")).expect("written");
    }
}

/// Runs on a device; `blocks` is the number of blocks of the persistent kernel on the emulated one.
fn go(folder: &Path, device: &str, blocks: u32, args: &[&str]) {
    let mut c = Command::new(program());
    c.current_dir(folder).args(["--quiet", "--threads", "2", "--device", device]).args(args);
    if blocks > 0 {
        c.env("GALAMOST_EMULATED_STEPS", blocks.to_string());
    }
    let out = c.output().expect("started");
    assert!(out.status.success(), "{args:?}: {}", words(&out));
}

fn same(what: &str, a: &Path, b: &Path, files: &[String]) {
    for file in files {
        let read = |f: &Path| std::fs::read(f.join(file)).unwrap_or_else(|e| panic!("{what}: {file}: {e}"));
        let (x, y) = (read(a), read(b));
        assert!(!x.is_empty() && x == y, "{what}: {file} differs from that of the single run");
    }
}

fn outputs(replica: usize) -> Vec<String> {
    ["t.#.csv", "t.#.gsd", "p.#.checkpoint", "p.#.checkpoint.1"].map(|n| n.replace('#', &replica.to_string())).to_vec()
}

/// Compares replicas with single runs, all their files byte for byte.
fn compare(sweep: &Sweep, device: &str, blocks: &[u32]) {
    let what = format!("{} on {device}", sweep.integrators);
    let [alone, cut] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    for &blocks in blocks {
        let together = tempfile::tempdir().expect("a folder");
        sweep.write(together.path());
        go(together.path(), device, blocks, &["--pipeline", "p.ron"]);
        for (k, value) in sweep.values.iter().enumerate() {
            if !alone.path().join(format!("p.{k}.ron")).exists() {
                // a pipeline that knows nothing of replicas, and the one that the replicas have written
                let name = format!("own.{k}");
                std::fs::write(alone.path().join(format!("{name}.ron")), sweep.pipeline(5 + k as u32, value, &name))
                    .expect("written");
                let written = format!("p.{k}.ron");
                std::fs::copy(together.path().join(&written), alone.path().join(&written)).expect("copied");
                for pipeline in [format!("{name}.ron"), written] {
                    go(alone.path(), device, 0, &["--pipeline", &pipeline]);
                }
                for kind in ["csv", "gsd"] {
                    let read = |n: String| std::fs::read(alone.path().join(n)).expect("a file");
                    assert!(read(format!("{name}.{kind}")) == read(format!("t.{k}.{kind}")), "{what}: {name}.{kind}");
                }
            }
            same(&format!("{what}, {blocks} blocks"), together.path(), alone.path(), &outputs(k));
        }
    }
    sweep.write(cut.path());
    go(cut.path(), device, blocks[0], &["--pipeline", "p.ron", "--steps", "31"]);
    go(cut.path(), device, blocks[0], &["--pipeline", "p.ron", "--resume"]);
    for k in 0..3 {
        same(&format!("{what}, in two parts"), cut.path(), alone.path(), &outputs(k)[..3]);
    }
}

#[test]
#[ignore = "10 seconds"]
fn replicas_equal_single_runs_on_the_cpu() {
    for sweep in &SWEEPS {
        compare(sweep, "cpu", &[0]);
    }
}

#[test]
#[ignore = "5 seconds"]
fn replicas_equal_single_runs_on_the_emulated_device() {
    if has_compiler() {
        // kernels of plugins, tables and lists that grow
        compare(&SWEEPS[4], "emulated", &[0]);
    }
}

#[test]
#[ignore = "a minute"]
fn replicas_with_other_integrators_equal_single_runs_on_the_emulated_device() {
    if has_compiler() {
        for sweep in &SWEEPS[..4] {
            compare(sweep, "emulated", &[0]);
        }
        compare(&SWEEPS[0], "emulated", &[7]);
        compare(&SWEEPS[2], "emulated", &[7, 2]);
    }
}

/// The persistent kernel of each replica has two blocks, which wait for each other and not for those of other replicas.
#[test]
#[ignore = "10 seconds"]
fn replicas_in_the_persistent_kernel_equal_single_runs() {
    if has_compiler() {
        // with two resident blocks, the replicas follow each other in two launches
        compare(&SWEEPS[0], "emulated", &[2]);
    }
}

/// Options give the values as the file does.
#[test]
fn options_sweep_values() {
    let f = tempfile::tempdir().expect("a folder");
    let sweep = &SWEEPS[0];
    sweep.write(f.path());
    go(f.path(), "cpu", 0, &["--pipeline", "p.ron"]);
    std::fs::write(f.path().join("q.ron"), sweep.pipeline(5, "9.0", "t.{replica}").replace("\"t.", "\"q."))
        .expect("written");
    go(f.path(), "cpu", 0, &["--pipeline", "q.ron", "--sweep", "integrators[0].kT=[0.7, 1.0, 1.3]", "--replicas", "3"]);
    for k in 0..3 {
        let read = |n: String| std::fs::read(f.path().join(n)).expect("a file");
        assert!(read(format!("q.{k}.csv")) == read(format!("t.{k}.csv")), "replica {k}");
    }
    // the pipeline of one replica belongs to an ordinary run, which replaces the files of that replica
    let before = std::fs::read(f.path().join("t.1.csv")).expect("a file");
    go(f.path(), "cpu", 0, &["--pipeline", "p.1.ron", "--overwrite"]);
    assert!(before == std::fs::read(f.path().join("t.1.csv")).expect("a file"));
}

/// A replica that fails is named with step, particle and cause. The others end as if it did not exist.
#[test]
#[ignore = "3 seconds"]
fn a_replica_that_fails_does_not_stop_the_others() {
    let devices = if has_compiler() { vec!["cpu", "emulated"] } else { vec!["cpu"] };
    for device in devices {
        let [f, alone] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let text = SWEEPS[0].pipeline(5, "1.0", "t.{replica}").replace("dt: 0.02", "dt: Each([0.02, 9.0, 0.02])");
        // no time constant may be shorter than the longest time step
        let text = text.replace("tau: 0.5", "tau: 20.0");
        std::fs::write(f.path().join("p.ron"), text).expect("written");
        let out = galamost(f.path(), &["--pipeline", "p.ron", "--device", device]);
        assert_eq!(out.status.code(), Some(1), "{}", words(&out));
        let log = words(&out);
        assert!(log.contains("p.1.ron: error: step 4") && log.contains("1 of 3 replicas failed"), "{log}");
        assert!(!log.contains("p.0.ron: error") && !log.contains("p.2.ron: error"), "{log}");
        let fault = log.lines().find(|l| l.contains("p.1.ron: error")).expect("the error");
        assert!(fault.contains("particle ") && fault.contains("NoseHoover: "), "{fault}");
        let record = std::fs::read_to_string(f.path().join("p.1.run.json")).expect("a record");
        assert!(record.contains("\"failed\""), "{record}");
        for k in [0, 2] {
            std::fs::copy(f.path().join(format!("p.{k}.ron")), alone.path().join(format!("p.{k}.ron")))
                .expect("copied");
            go(alone.path(), device, 0, &["--pipeline", &format!("p.{k}.ron")]);
            same(device, f.path(), alone.path(), &outputs(k));
        }
    }
}

/// Every mistake is found before the first step and has its place in the file.
#[test]
#[ignore = "3 seconds"]
fn mistakes_are_located() {
    let f = tempfile::tempdir().expect("a folder");
    let good = SWEEPS[0].pipeline(5, "Each([0.7, 1.0, 1.3])", "t.{replica}");
    let place = |text: &str, part: &str| {
        let (k, line) = text.lines().enumerate().find(|(_, l)| l.contains(part)).expect(part);
        format!("{}:{}:", k + 1, line.find(part).expect(part) + 1)
    };
    let check = |text: &str, args: &[&str], at: Option<&str>, message: &str| {
        std::fs::write(f.path().join("p.ron"), text).expect("written");
        let out = galamost(f.path(), &[&["--pipeline", "p.ron", "--device", "cpu"], args].concat());
        let printed = words(&out);
        assert_eq!(out.status.code(), Some(2), "{message}: {printed}");
        let at = at.map_or(String::new(), |part| format!("p.ron:{}", place(text, part)));
        assert!(printed.lines().any(|l| l.starts_with(&at) && l.contains(message)), "{at} {message}\n{printed}");
        assert_eq!(printed.matches(message).count(), 1, "once: {printed}");
        assert!(!f.path().join("t.0.csv").exists() && !f.path().join("p.0.ron").exists());
    };
    let shared = good.replace("t.{replica}.csv", "t.csv");
    check(
        &shared,
        &[],
        Some("\"t.csv\""),
        "every replica would write `t.csv`; add {replica} to the name, as in `t.{replica}.csv`",
    );
    let shared = good.replace("(every: 25)", "(every: 25, file: \"c\")");
    check(&shared, &[], Some("\"c\""), "every replica would write `c`");
    let wrong = good.replace("1.0, 1.3", "-1.0, 1.3");
    check(&wrong, &[], Some("-1.0"), "NoseHoover: -1 is not allowed here");
    let short = good.replace("seed: 5", "seed: Each([1, 2])");
    check(&short, &[], Some("Each([0"), "`Each` has 3 values, but there are 2 replicas");
    let few = good.replace("seed: 5", "seed: 5, replicas: 4");
    check(&few, &[], Some("Each([0"), "but there are 4 replicas");
    check(&few.replace("replicas: 4", "replicas: 0"), &[], Some("0, precision"), "0 replicas; a run can have 1 to");
    check(&good.replace("Each([0.7, 1.0, 1.3])", "Each(0.7)"), &[], Some("Each"), "expected `Each([value, …])`");
    // a word `Each` without parentheses is a value, as in `partners: Each` of `Reactions`
    check(&good.replace("seed: 5", "seed: 5, name: Each"), &[], Some("name: Each"), "unknown field `name`");
    check(&good.replace("precision:", "gpus: 2, precision:"), &[], Some("2, precision"), "not 2 GPUs");
    // another reason on the same line does not hide that replicas share no GPUs
    check(&good, &["--gpus", "2"], None, "2 GPUs; replicas run on one device");
    check(&good, &["--sweep", "stages[0].dt"], None, "write it as path=[value, …]");
    check(
        &good,
        &["--sweep", "stages[0].dt=[0.1, -0.1, 0.1]"],
        None,
        "--sweep stages[0].dt=[0.1, -0.1, 0.1]: -0.1 is not allowed here",
    );
    let path = "--sweep stages[3].dt=[0.1, 0.1, 0.1]: `stages` has 2 elements";
    check(&good, &["--sweep", "stages[3].dt=[0.1, 0.1, 0.1]"], None, path);
    check(&good, &["--sweep", "stages[0].dt=[0.1, 0.2]"], None, "--sweep stages[0].dt=[0.1, 0.2]: `Each` has 2 values");
    let seeds = ["--sweep", "seed=[1, 2, 3]"];
    let twice = "--set seed and --sweep seed: both options give the same value; remove one of them";
    check(&good, &[&["--set", "seed=2"][..], &seeds].concat(), None, twice);
    let twice = "--sweep seed and --sweep seed: both options give the same value; remove one of them";
    check(&good, &[seeds, seeds].concat(), None, twice);
    check(&good, &["--resume=c"], None, "--resume=FILE works with one run only");
    check(&good, &["--device", "cuda:0"], None, "run on one device");
    // a file of the user has the name of a replica's pipeline
    std::fs::write(f.path().join("p.2.ron"), "(mine)").expect("written");
    check(&good, &[], None, "p.2.ron: the pipeline of a replica would be written here");
    std::fs::remove_file(f.path().join("p.2.ron")).expect("removed");
    std::fs::write(f.path().join("q.ron"), &good).expect("written");
    let out = galamost(f.path(), &["--pipeline", "p.ron", "q.ron", "--replicas", "2"]);
    assert!(words(&out).contains("--replicas and --sweep work with one pipeline only"), "{}", words(&out));
    let out = galamost(f.path(), &["--pipeline", "p.ron", "q.ron", "--set", "replicas=3"]);
    assert!(words(&out).contains("3 replicas need a run of their own, `galamost --pipeline p.ron`"), "{}", words(&out));
    let out = galamost(f.path(), &["check", "p.ron", "--device", "cpu"]);
    let printed = String::from_utf8_lossy(&out.stdout);
    assert!(printed.contains("p.ron: ok: 3 replicas, each of 252 particles"), "{printed}");
    let steps = "stages[0].steps=Each([10, 20, 10])";
    let out = galamost(f.path(), &["check", "p.ron", "--device", "cpu", "--set", steps]);
    let printed = String::from_utf8_lossy(&out.stdout);
    assert!(printed.starts_with("p.ron: ok: 3 replicas\n  replicas 0, 2: 252 particles"), "{printed}");
    assert!(printed.contains("\n  replica 1: 252 particles"), "{printed}");
}

/// An error of all replicas is reported once, also if the number of the replica or other numbers are part of its text. Beside
/// another pipeline, replicas are refused without errors about values of `Each`.
#[test]
fn errors_of_all_replicas_are_reported_once() {
    let f = tempfile::tempdir().expect("a folder");
    let good = SWEEPS[0].pipeline(5, "Each([0.7, 1.0, 1.3])", "t.{replica}");
    let exchange = good.replace("(every: 25)", "(every: 20), exchange: (every: 20)").replace("Hoover(", "HooverChain(");
    let densities = "density: Each([100.0, 200.0, 300.0])";
    for (text, message) in [
        (good.replace("t.{replica}.csv", "none/t.{replica}.csv"), "there is no folder"),
        (
            good.replace("Gsd(every: 20, file: \"t.{replica}.gsd", "Thermo(every: 20, file: \"t.{replica}.csv"),
            "is also written by Thermo",
        ),
        (good.replace("density: 2.0", densities), "is more than half the shortest box length"),
        (exchange.replace("density: 2.0", "density: Each([2.0, 2.1, 2.2])"), "must have the same box"),
        // each of these is an error of one replica
        (good.replace("dt: 0.02", "dt: Each([0.02, -0.02, 0.02])"), "-0.02 is not allowed here"),
    ] {
        std::fs::write(f.path().join("p.ron"), text).expect("written");
        let out = galamost(f.path(), &["check", "p.ron", "--device", "cpu"]);
        let printed = words(&out);
        assert!(out.status.code() == Some(2) && printed.matches(message).count() == 1, "{message}: {printed}");
    }
    for name in ["p.ron", "q.ron"] {
        std::fs::write(f.path().join(name), good.replace("seed: 5", "seed: 5, replicas: 3")).expect("written");
    }
    let out = galamost(f.path(), &["--pipeline", "p.ron", "q.ron", "--device", "cpu"]);
    let printed = words(&out);
    assert_eq!(out.status.code(), Some(2), "{printed}");
    assert!(
        printed.matches("3 replicas need a run of their own").count() == 2 && !printed.contains("Each"),
        "{printed}"
    );
}

/// Systems that fill a GPU alone are refused.
#[test]
fn large_replicas_are_refused() {
    if !has_compiler() {
        return;
    }
    let f = tempfile::tempdir().expect("a folder");
    let text = SWEEPS[0].pipeline(5, "Each([0.7, 1.0])", "t.{replica}").replace("[6, 7, 6]", "[37, 37, 37]");
    for (text, message) in [
        (text.clone(), "50653 particles; replicas on a GPU have at most 50000"),
        (
            text.replace("37, 37, 37", "9, 9, 9").replace("buffer: 0.15", "list: Staged"),
            "set `neighbors: (list: Plain)`",
        ),
    ] {
        std::fs::write(f.path().join("p.ron"), text).expect("written");
        let out = galamost(f.path(), &["check", "p.ron", "--device", "emulated"]);
        assert_eq!(out.status.code(), Some(2), "{}", words(&out));
        assert!(words(&out).contains(message), "{}", words(&out));
    }
}

/// Replicas that end before the first attempt to exchange their particles are named.
#[test]
fn an_exchange_without_attempts_is_a_warning() {
    let f = tempfile::tempdir().expect("a folder");
    let text = SWEEPS[0].pipeline(5, "Each([1.0, 1.1])", "t.{replica}").replace("NoseHoover(", "NoseHooverChain(");
    for (every, late) in [(1000, true), (49, true), (40, false)] {
        let exchange = format!("exchange: (every: {every}), checkpoint: (every: {every})");
        std::fs::write(f.path().join("p.ron"), text.replace("checkpoint: (every: 25)", &exchange)).expect("written");
        let out = galamost(f.path(), &["check", "p.ron", "--device", "cpu"]);
        let said = words(&out);
        assert!(out.status.success(), "{said}");
        let expected = format!("the first attempt is at step {every}, and the run ends at step 49");
        assert_eq!(said.contains(&expected), late, "{every}: {said}");
        assert_eq!(said.contains("p.ron:1:"), late, "{every}: {said}");
    }
}
