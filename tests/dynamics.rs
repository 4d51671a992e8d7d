//! Analyzers of dynamics and structure against freud, MDAnalysis, NumPy, exact formulas, and the other device.

use galamost::selftest::standard_system;
use galamost_engine::pipeline::DeviceChoice;
use galamost_tests::tolerances::{bound, near};
use galamost_tests::{csv, devices, galamost, has_compiler, plan_in, python, repository, run_plan, skip, words};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

fn run_in(folder: &Path, text: &str, device: DeviceChoice) {
    let plan = plan_in(&folder.join("p.ron"), text, device).unwrap_or_else(|e| panic!("{}", e.render()));
    run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
}

/// Every table of a folder.
fn tables(folder: &Path) -> BTreeMap<String, String> {
    let files = std::fs::read_dir(folder).expect("a folder").filter_map(Result::ok).map(|e| e.path());
    let name = |p: &Path| p.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let tables = files.filter(|p| p.extension().is_some_and(|x| x == "csv"));
    tables.map(|p| (name(&p), std::fs::read_to_string(&p).expect("a table"))).collect()
}

/// A liquid of chains and single particles of two types, dense enough that particles cross the box's faces.
fn chains(dimensions: u32) -> String {
    let start = match dimensions {
        2 => "RandomPositions(count: 400, box: [11.0, 12.0, 0.0], types: {\"A\": 0.6, \"B\": 0.4})",
        _ => "RandomPositions(count: 900, box: [9.0, 8.0, 10.0], types: {\"A\": 0.6, \"B\": 0.4})",
    };
    format!(
        "(seed: 11, precision: Double, initial: [{start}, Velocities(kT: 1.0)], forces: [Dpd(r_cut: 1.0, kT: 1.0, pairs: {{
            (\"A\", \"A\"): (a: 25.0, sigma: 3.0), (\"A\", \"B\"): (a: 40.0, sigma: 3.0), (\"B\", \"B\"): (a: 25.0, sigma: 3.0) }})],
        integrators: [GrootWarren()], analyzers: [ANALYZERS], stages: [(steps: STEPS, dt: 0.02)])"
    )
}

/// The same frames, read by the field's own tools.
#[test]
#[ignore = "10 seconds"]
fn observables_agree_with_freud_and_mdanalysis() {
    let Some(python) = python() else { return };
    // finding it takes a fortieth of the time of importing it
    let find = "import importlib.util, sys; sys.exit(importlib.util.find_spec('MDAnalysis') is None)";
    let has = Command::new(&python).args(["-c", find]).output();
    if !has.is_ok_and(|o| o.status.success()) {
        return skip("MDAnalysis", "it is not among the packages of this Python");
    }
    let folder = tempfile::tempdir().expect("a folder");
    for d in [3, 2] {
        let analyzers = format!(
            "Gsd(every: 10, file: \"{d}.gsd\", velocity: true), Msd(every: 10, file: \"{d}.msd.csv\", points: 4, levels: 4, axes: true), \
             Msd(every: 10, file: \"{d}.drift.csv\", points: 4, levels: 4, remove_drift: true, types: [\"B\"]), \
             Vacf(every: 10, file: \"{d}.vacf.csv\", points: 4, levels: 4, axes: true), \
             Rdf(every: 10, file: \"{d}.rdf.csv\", r_max: 2.9, bins: 50), \
             StructureFactor(every: 40, file: \"{d}.structure.csv\", q_max: 7.0, bins: 20, vectors: 100000), \
             DomainSize(every: 40, file: \"{d}.domains.csv\", positive: [\"B\"], negative: [\"A\"], q_max: 4.0, vectors: 100000), \
             DomainSize(every: 20, file: \"{d}.dense.csv\", positive: [\"A\"], q_max: 3.0, bins: 30, start: 100, vectors: 100000), \
             StructureFactor(every: 40, file: \"{d}.fine.csv\", q_max: 2.5, bins: 1000, vectors: 100000), \
             IntermediateScattering(every: 10, file: \"{d}.scattering.csv\", q: [1.2, 2.0], width: 0.25, vectors: 32, points: 4, levels: 4)"
        );
        let text = chains(d).replace("ANALYZERS", &analyzers).replace("STEPS", "400");
        run_in(folder.path(), &text, DeviceChoice::Cpu);
    }
    // molecules: centers of mass of chains
    let state = "GalamostXml(file: \"chains.xml\")";
    let xml = repository().join("examples/26-single-chains.xml");
    std::fs::copy(xml, folder.path().join("chains.xml")).expect("copied");
    let text = format!(
        "(seed: 3, precision: Double, initial: [{state}, Velocities(kT: 1.0)], integrators: [Langevin(kT: 1.0, gamma: 1.0)], \
         forces: [HarmonicBond(bonds: {{ \"A-A\": (k: 50.0, r0: 1.0) }})], analyzers: [Gsd(every: 20, file: \"m.gsd\"), \
         Msd(every: 20, file: \"m.msd.csv\", points: 4, levels: 3, of: Molecules), Rdf(every: 20, file: \"m.rdf.csv\", r_max: RMAX, bins: 10, of: Molecules)], \
         stages: [(steps: 200, dt: 0.005)])"
    );
    run_in(folder.path(), &text.replace("RMAX", "3.9"), DeviceChoice::Cpu);
    // a box that changes, small enough to be crossed often
    let text = format!(
        "(seed: 4, precision: Double, initial: [RandomPositions(count: 200, box: [4.0, 5.0, 3.0], types: {{\"A\": 0.6, \"B\": 0.4}}), \
         Velocities(kT: 2.0)], integrators: [Langevin(kT: 2.0, gamma: 0.5)], updaters: [{RESIZE}], \
         analyzers: [Gsd(every: 10, file: \"c.gsd\"), Msd(every: 10, file: \"c.msd.csv\", points: 4, levels: 4), \
         Msd(every: 10, file: \"c.drift.csv\", points: 4, levels: 4, remove_drift: true)], stages: [(steps: 400, dt: 0.02)])"
    );
    run_in(folder.path(), &text, DeviceChoice::Cpu);
    let script = repository().join("tests/python/dynamics.py");
    let out = Command::new(python).arg(script).arg(folder.path()).output().expect("python runs");
    print!("{}", String::from_utf8_lossy(&out.stdout));
    assert!(out.status.success(), "{}", words(&out));
}

/// A box of 4 × 5 × 3 that oscillates with another period along each axis.
const RESIZE: &str = "BoxResize(every: 1, x: Sine(mean: 4.0, amplitude: 0.2, period: 37), y: Sine(mean: 5.0, amplitude: 0.25, period: 53), \
    z: Sine(mean: 3.0, amplitude: 0.15, period: 71))";

/// Displacements in a box that changes: the same on both devices and after a restart, and those of free particles, whose motion the box
/// does not change but for what it takes them along.
#[test]
#[ignore = "5 seconds"]
fn displacements_are_independent_of_box_changes() {
    let text = |steps: u32| {
        format!(
            "(seed: 5, checkpoint: (every: 40), initial: [RandomPositions(count: 2000, box: [4.0, 5.0, 3.0]), Velocities(kT: 1.5)], \
             integrators: [Langevin(kT: 1.5, gamma: 2.0)], updaters: [{RESIZE}], \
             analyzers: [Msd(every: 5, file: \"msd.csv\", points: 8, levels: 4), \
             Msd(every: 4, file: \"drift.csv\", points: 4, levels: 2, remove_drift: true, axes: true)], stages: [(steps: {steps}, dt: 0.01)])"
        )
    };
    let folder = tempfile::tempdir().expect("a folder");
    run_in(folder.path(), &text(4000), DeviceChoice::Cpu);
    let msd = csv(&folder.path().join("msd.csv"));
    let (kt, gamma) = (1.5, 2.0f64);
    // statistics as in `free_particles_diffuse_as_langevin_says`: 4 %. The box takes a particle at r along by r dL/L, in all at most
    // |r|/L (L − L₀): on average Σ ⟨(r/L)²⟩⟨ΔL²⟩ = (0.2² + 0.25² + 0.15²)·2/12 = 0.02. With r + L image, short lags would be
    // larger by (ΔL/L)² times the square of all the way from the start, 0.0025 × 90 on average.
    assert!(msd["time"].len() >= 20);
    for (k, t) in msd["time"].iter().enumerate() {
        let exact = 6.0 * kt / (gamma * gamma) * (gamma * t - 1.0 + (-gamma * t).exp());
        let found = msd["msd_A"][k];
        let noise = bound("displacements of free particles");
        assert!((found - exact).abs() < noise * exact + 0.02, "msd({t}) = {found}, not {exact}");
    }
    for device in devices() {
        let name = if device == DeviceChoice::Cpu { "cpu" } else { "emulated" };
        let run = |pieces: &[&[&str]]| {
            let folder = tempfile::tempdir().expect("a folder");
            std::fs::write(folder.path().join("p.ron"), text(120)).expect("written");
            for more in pieces {
                let out = galamost(folder.path(), &[&["--pipeline", "p.ron", "-q", "--device", name], *more].concat());
                assert!(out.status.success(), "{}", words(&out));
            }
            tables(folder.path())
        };
        let whole = run(&[&[]]);
        assert_eq!(whole.len(), 2);
        assert_eq!(whole, run(&[&["--steps", "47"], &["--resume"]]), "{name}");
    }
}

const ALL: &str = "Msd(every: 3, file: \"msd.csv\", points: 4, levels: 3, axes: true), \
    Msd(every: 3, file: \"msd-b.csv\", points: 2, levels: 2, types: [\"B\"], remove_drift: true), \
    Msd(every: 3, file: \"msd-m.csv\", points: 2, levels: 2, of: Molecules), \
    Msd(every: 3, file: \"msd-l.csv\", lags: [3, 6, 30], origins: 6), \
    Vacf(every: 2, file: \"vacf.csv\", points: 4, levels: 2, axes: true), \
    Vacf(every: 2, file: \"vacf-m.csv\", points: 4, levels: 2, of: Molecules, remove_drift: true), \
    Rdf(every: 4, file: \"rdf.csv\", r_max: 2.5, bins: 40), \
    Rdf(every: 4, file: \"rdf-far.csv\", r_max: 5.5, bins: 333, pairs: [(\"A\", \"B\")]), \
    Rdf(every: 4, file: \"rdf-many.csv\", r_max: 2.5, bins: 5000), \
    Rdf(every: 4, file: \"rdf-excluded.csv\", r_max: 2.5, bins: 40, exclude: [Bonds, Angles]), \
    Rdf(every: 4, file: \"rdf-same.csv\", r_max: 2.5, bins: 40, only: SameMolecule), \
    Rdf(every: 4, file: \"rdf-m.csv\", r_max: 5.0, bins: 20, of: Molecules), \
    StructureFactor(every: 7, file: \"structure.csv\", q_max: 5.0, bins: 8, vectors: 7), \
    DomainSize(every: 3, file: \"domains.csv\", positive: [\"A\"], negative: [\"B\"], q_max: 3.0, vectors: 9), \
    IntermediateScattering(every: 5, file: \"scattering.csv\", q: [2.0, 5.0], width: 0.8, vectors: 5, points: 4, levels: 2)";

/// The box of the standard system, a little larger and smaller in turn.
fn breathing() -> String {
    let [x, y, z] = standard_system().box_length;
    let sine = |l: f64, period: u32| format!("Sine(mean: {l:?}, amplitude: {:?}, period: {period})", 0.03 * l);
    format!("BoxResize(every: 1, x: {}, y: {}, z: {})", sine(x, 13), sine(y, 17), sine(z, 19))
}

/// Particles that fly freely are at the same places on both devices to the last bit, and so is every table.
#[test]
#[ignore = "3 seconds"]
fn both_devices_write_the_same_tables() {
    if !has_compiler() {
        return;
    }
    // positions are stored in three ways; what is made of them does not depend on that
    for (precision, tables_of) in [("Mixed", 15), ("Double", 7), ("Single", 7), ("Mixed", 4)] {
        let mut parts: Vec<&str> = ALL.split("), ").collect();
        let breathes = tables_of == 4;
        if breathes {
            parts.retain(|p| p.contains("\"msd"));
        } else if tables_of < parts.len() {
            parts.retain(|p| {
                ["\"msd.csv", "\"msd-m", "\"vacf.csv", "\"rdf.csv", "\"rdf-m.", "\"structure", "\"domains"]
                    .iter()
                    .any(|k| p.contains(k))
            });
        }
        let analyzers = parts.iter().map(|p| p.trim_end_matches(')').to_string() + ")").collect::<Vec<_>>().join(", ");
        let text = format!(
            "(precision: {precision}, analyzers: [{analyzers}], updaters: [{}], integrators: [VelocityVerlet()], \
             stages: [(steps: 60, dt: 0.05)])",
            if breathes { breathing() } else { String::new() }
        );
        let of = |device| {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("p.ron");
            let mut pipeline =
                galamost_engine::pipeline::Pipeline::parse(&path, &text.replacen('(', "(initial: [], ", 1), &[])
                    .unwrap_or_else(|e| panic!("{e:?}"));
            pipeline.device = device;
            let options =
                galamost_engine::plan::CheckOptions { snapshot: Some(standard_system()), ..Default::default() };
            let plan = galamost_engine::plan::check(pipeline, galamost_tests::registry(), options)
                .unwrap_or_else(|e| panic!("{}", e.render()));
            run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
            tables(folder.path())
        };
        let (here, there) = (of(DeviceChoice::Cpu), of(DeviceChoice::Emulated));
        assert_eq!(here.len(), tables_of);
        for (name, table) in &here {
            assert!(table.lines().count() > 3, "{name}: {table}");
            assert_eq!(table, &there[name], "{precision}: {name}");
        }
    }
}

/// A run in pieces writes what the run in one piece writes, with any number of threads; on the emulated device too.
#[test]
#[ignore = "3 seconds"]
fn a_restart_changes_no_table() {
    for device in devices() {
        let (name, steps) = if device == DeviceChoice::Cpu { ("cpu", 90) } else { ("emulated", 40) };
        let run = |pieces: &[&[&str]]| {
            let folder = tempfile::tempdir().expect("a folder");
            std::fs::copy(repository().join("examples/26-single-chains.xml"), folder.path().join("chains.xml"))
                .expect("copied");
            let text = format!(
                "(seed: 3, checkpoint: (every: 25), initial: [GalamostXml(file: \"chains.xml\"), Velocities(kT: 1.0)], \
                 forces: [HarmonicBond(bonds: {{ \"A-A\": (k: 50.0, r0: 1.0) }})], integrators: [Langevin(kT: 1.0, gamma: 1.0)], \
                 analyzers: [{}], stages: [(steps: {steps}, dt: 0.005)])",
                ALL.replace("types: [\"B\"], ", "")
                    .replace("negative: [\"B\"], ", "")
                    .replace("pairs: [(\"A\", \"B\")]", "start: 10")
                    .replace("exclude: [Bonds, Angles]", "exclude: [Bonds]")
                    .replace("5.5", "3.9")
                    .replace("5.0", "3.5")
            );
            std::fs::write(folder.path().join("p.ron"), text).expect("written");
            for more in pieces {
                let out = galamost(folder.path(), &[&["--pipeline", "p.ron", "-q", "--device", name], *more].concat());
                assert!(out.status.success(), "{}", words(&out));
            }
            tables(folder.path())
        };
        let whole = run(&[&["--threads", "1"]]);
        assert_eq!(whole.len(), 15);
        let parts = run(&[&["--threads", "2", "--steps", "31"], &["--threads", "1", "--resume"]]);
        for (table, text) in &whole {
            assert_eq!(text, &parts[table], "{name}: {table}");
        }
    }
}

/// Lags that are listed give what the same lags in octaves give; origins further apart, fewer samples.
#[test]
fn listed_lags_agree_with_octaves() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "(seed: 5, initial: [RandomPositions(count: 500, box: [8.0, 8.0, 8.0]), Velocities(kT: 1.5)], \
        integrators: [Langevin(kT: 1.5, gamma: 2.0)], analyzers: [Msd(every: 5, file: \"octaves.csv\", points: 4, levels: 1), \
        Msd(every: 5, file: \"listed.csv\", lags: [5, 10, 15, 20], origins: 5), Msd(every: 5, file: \"far.csv\", lags: [10, 200], origins: 50), \
        IntermediateScattering(every: 5, file: \"octaves.f.csv\", q: [2.0], width: 0.8, points: 2, levels: 1), \
        IntermediateScattering(every: 5, file: \"listed.f.csv\", q: [2.0], width: 0.8, lags: [5, 10])], stages: [(steps: 400, dt: 0.01)])";
    run_in(folder.path(), text, DeviceChoice::Cpu);
    let all = tables(folder.path());
    assert_eq!(all["octaves.csv"], all["listed.csv"]);
    assert_eq!(all["octaves.f.csv"], all["listed.f.csv"]);
    let far = csv(&folder.path().join("far.csv"));
    assert_eq!((&far["lag"][..], &far["origins"][..]), (&[10.0, 200.0][..], &[8.0, 5.0][..]));
}

/// Free particles in a heat bath (Ornstein-Uhlenbeck): ⟨v(0)·v(t)⟩ = d (kT/m) e^(−γt/m), msd = 2 d (kT m/γ²)(γt/m − 1 + e^(−γt/m)),
/// Gaussian displacements.
#[test]
#[ignore = "5 seconds"]
fn free_particles_diffuse_as_langevin_says() {
    for (size, d) in [("[20.0, 20.0, 20.0]", 3.0), ("[60.0, 60.0, 0.0]", 2.0)] {
        let folder = tempfile::tempdir().expect("a folder");
        let text = format!(
            "(seed: 5, initial: [RandomPositions(count: 4000, box: {size}), Velocities(kT: 1.5)], \
             integrators: [Langevin(kT: 1.5, gamma: 2.0)], analyzers: [Msd(every: 5, file: \"msd.csv\", points: 8, levels: 5), \
             Vacf(every: 5, file: \"vacf.csv\", points: 8, levels: 5), StructureFactor(every: 40, file: \"s.csv\", q_max: 2.0, bins: 4, vectors: 30), \
             IntermediateScattering(every: 20, file: \"f.csv\", q: [1.0], width: 0.1, points: 8, levels: 3)], stages: [(steps: 2000, dt: 0.01)])"
        );
        run_in(folder.path(), &text, DeviceChoice::Cpu);
        let (msd, vacf) = (csv(&folder.path().join("msd.csv")), csv(&folder.path().join("vacf.csv")));
        let (kt, gamma) = (1.5, 2.0f64);
        assert_eq!(vacf["lag"][0], 0.0);
        // 4,000 particles, 20 time units of γ⁻¹ = 0.5: 1.6·10⁵ independent velocities of d components; a relative standard error of
        // √(2/(4·10⁴ d)) of squares for the longest lags, which are 6.4 long, three times in the run: four of them are 3 %
        for (k, t) in vacf["time"].iter().enumerate() {
            let exact = d * kt * (-gamma * t).exp();
            let noise = bound("velocity autocorrelation of free particles") * kt;
            assert!((vacf["vacf_A"][k] - exact).abs() < noise, "{d}: C({t}) = {}, not {exact}", vacf["vacf_A"][k]);
        }
        for (k, t) in msd["time"].iter().enumerate() {
            let exact = 2.0 * d * kt / (gamma * gamma) * (gamma * t - 1.0 + (-gamma * t).exp());
            let noise = bound("displacements of free particles");
            assert!((msd["msd_A"][k] / exact - 1.0).abs() < noise, "{d}: msd({t}) = {}, not {exact}", msd["msd_A"][k]);
            let noise = bound("non-Gaussian parameter of free particles");
            assert!(msd["alpha2_A"][k].abs() < noise, "{d}: alpha2({t}) = {}", msd["alpha2_A"][k]);
        }
        // an ideal gas: S is 1 (51 samples of 30 vectors of which half or more are independent in time: 1/√800, four of them),
        // and displacements are Gaussian: F_s = e^(−q² msd/2d)
        let (f, structure) = (csv(&folder.path().join("f.csv")), csv(&folder.path().join("s.csv")));
        for (q, x) in structure["q"].iter().zip(&structure["S"]).skip(1) {
            assert!((x - 1.0).abs() < bound("S of an ideal gas"), "{d}: S({q}) = {x}");
        }
        for (k, t) in f["time"].iter().enumerate() {
            let displaced = 2.0 * d * kt / (gamma * gamma) * (gamma * t - 1.0 + (-gamma * t).exp());
            let exact = (-f["q_1"][k].powi(2) * displaced / (2.0 * d)).exp();
            let noise = bound("F_s of free particles");
            assert!((f["Fs_1_A"][k] - exact).abs() < noise, "{d}: F_s({t}) = {}, not {exact}", f["Fs_1_A"][k]);
        }
        near("F(0) of an ideal gas", f["F_1"][0]);
        // ballistic at first, and D = kT/γ from the integral
        let first = msd["msd_A"][0] / (d * kt * msd["time"][0].powi(2));
        near("first ballistic displacement of free particles", first);
        let last = *vacf["diffusion_A"].last().expect("rows");
        near("D of free particles by velocities, relative to kT/γ", last * gamma / kt);
    }
}

/// Analyzers that are rejected: the component, further text of the pipeline, a part of the message.
const MISTAKES: &[(&str, &str, &str)] = &[
    ("Msd(every: 1, file: \"t.csv\", points: 3)", "", "`points` must be even, found 3"),
    ("Msd(every: 1, file: \"t.csv\", lags: [1], levels: 3)", "", "`lags` and `levels` exclude each other"),
    ("Msd(every: 1, file: \"t.csv\", lags: [])", "", "`lags` must contain a nonzero lag"),
    ("Msd(every: 1, file: \"t.csv\", lags: [4, 2])", "", "`lags` must ascend: 2 follows 4"),
    ("Msd(every: 2, file: \"t.csv\", lags: [2, 5])", "", "the lag 5 is not a multiple of `every`, 2"),
    (
        "Vacf(every: 2, file: \"t.csv\", lags: [2, 4], origins: 3)",
        "",
        "`origins` must be a multiple of `every`, 2, found 3",
    ),
    ("Msd(every: 2, file: \"t.csv\", origins: 4)", "", "`origins` applies only to explicit `lags`"),
    ("Msd(every: 1, file: \"t.csv\", types: [\"C\"])", "", "unknown particle type \"C\"; the particle types are A"),
    ("Msd(every: 1, file: \"t.csv\", types: [\"A\", \"A\"])", "", "the type \"A\" is listed twice"),
    ("Vacf(every: 1, file: \"t.csv\", of: Molecules)", "", "molecules are not defined"),
    ("Rdf(every: 1, file: \"t.csv\", r_max: 2.0, of: Molecules, exclude: [Bonds])", "", "do not apply to molecules"),
    ("Rdf(every: 1, file: \"t.csv\", r_max: 2.0, of: Molecules)", "", "molecules are not defined"),
    ("Msd(every: 1, file: \"t.csv\")", ", LeesEdwards(rate: 1.0)", "Msd"),
    ("StructureFactor(every: 1, file: \"t.csv\", q_max: 0.5)", "", "found 0 vectors below `q_max` 0.5"),
    ("StructureFactor(every: 1, file: \"t.csv\", q_max: 900.0)", "", "reduce `q_max`"),
    ("DomainSize(every: 1, file: \"t.csv\", positive: [\"A\"], q_max: 0.5)", "", "the smallest q of the box is 0.7854"),
    ("DomainSize(every: 1, file: \"t.csv\", positive: [\"A\"], q_max: 900.0)", "", "reduce `q_max`"),
    ("DomainSize(every: 1, file: \"t.csv\", positive: [], q_max: 3.0)", "", "the list is empty"),
    ("DomainSize(every: 1, file: \"t.csv\", positive: [\"C\"], q_max: 3.0)", "", "unknown particle type \"C\""),
    (
        "DomainSize(every: 1, file: \"t.csv\", positive: [\"A\"], negative: [\"A\"], q_max: 3.0)",
        "",
        "the type \"A\" is in both lists",
    ),
    ("StructureFactor(every: 1, file: \"t.csv\", q_max: 30.0, bins: 1000, vectors: 1000)", "", "expected 1 … 20000"),
    (
        "IntermediateScattering(every: 1, file: \"t.csv\", q: [0.3], width: 0.1)",
        "",
        "no wave vector of the box has |q| in",
    ),
    (
        "IntermediateScattering(every: 1, file: \"t.csv\", q: [1.0, 2.0], width: 1.0, vectors: 60)",
        "",
        "at most 64 vectors",
    ),
    ("Rdf(every: 1, file: \"t.csv\", r_max: 2.0)", ", LeesEdwards(rate: 1.0)", "Rdf"),
    (
        "IntermediateScattering(every: 5, file: \"t.csv\", q: [1.0], width: 0.5)",
        "], updaters: [BoxResize(every: 1, z: Ramp(from: 8.0, to: 8.5, steps: 20))",
        "needs a constant box, which BoxResize changes in stage",
    ),
];

#[test]
fn mistakes_are_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let check = |analyzer: &str, rest: &str| {
        let text = format!(
            "(initial: [RandomPositions(count: 500, box: [8.0, 8.0, 8.0])], analyzers: [{analyzer}], integrators: [VelocityVerlet(){rest}], \
             stages: [(steps: 20, dt: 0.01)])"
        );
        let path = folder.path().join("p.ron");
        match plan_in(&path, &text, DeviceChoice::Cpu) {
            Err(e) => e.render(),
            Ok(plan) => run_plan(&plan).err().map(|e| e.render()).unwrap_or_default(),
        }
    };
    for (analyzer, rest, said) in MISTAKES {
        let found = check(analyzer, rest);
        assert!(found.contains(said), "{analyzer}: {found}");
    }
    let text = "(initial: [RandomPositions(count: 2000000, box: [80.0, 80.0, 80.0])], analyzers: [Msd(every: 1, file: \"t.csv\", points: 64, \
        levels: 40)], integrators: [VelocityVerlet()], stages: [(steps: 1, dt: 0.01)])";
    let found =
        plan_in(&folder.path().join("p.ron"), text, DeviceChoice::Cpu).err().map(|e| e.render()).unwrap_or_default();
    assert!(found.contains("it would store 1313 samples") && found.contains("GB"), "{found}");
}
