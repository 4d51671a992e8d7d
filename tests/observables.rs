//! Sizes of molecules, profiles and stress correlations, against NumPy and under restarts.

use galamost_engine::pipeline::DeviceChoice;
use galamost_tests::{csv, galamost, plan, plan_of, python, repository, words};
use std::path::Path;
use std::process::Command;

/// Linear chains, rings, a branched molecule and single particles with masses, in two types.
const MELT: &str = r#"(
    seed: 4,
    precision: Double,
    initial: [
        Polymers(box: [6.0, 7.0, 8.0], density: 0.8, bond_length: 0.97, distance: 0.5, molecules: [
            (molecule: "A9B3", count: 12), (molecule: "B[1]B5B[1]", count: 6), (molecule: "A2(B2)A3", count: 4),
            (molecule: "A", count: 40) ]),
        Velocities(kT: 1.0),
    ],
    forces: [
        Gaussian(r_cut: 3.0, pairs: { ("A", "A"): (epsilon: 2.0, sigma: 0.7), ("A", "B"): (epsilon: 2.0, sigma: 0.7),
            ("B", "B"): (epsilon: 2.0, sigma: 0.7) }),
        HarmonicBond(bonds: { "A-A": (k: 20.0, r0: 0.9), "A-B": (k: 20.0, r0: 0.9), "B-B": (k: 20.0, r0: 0.9) }),
    ],
    integrators: [ VelocityVerlet() ],
    analyzers: [
        Gsd(every: 20, file: "t.gsd", velocity: true),
        Thermo(every: 2, file: "thermo.csv"),
        Gyration(every: 20, file: "chains.csv", each: "each.csv"),
        InternalDistances(every: 20, file: "internal.csv"),
        Profile(every: 20, file: "slabs.csv", geometry: Slabs(axis: Y), bins: 8),
        Profile(every: 20, file: "sphere.csv", geometry: Sphere(r_max: 2.5), origin: [1.0, 2.0, -3.0], bins: 5),
        Profile(every: 20, file: "cylinder.csv", geometry: Cylinder(axis: X), origin: [1.0, 2.0, -3.0], bins: 4),
        Profile(every: 20, file: "middle.csv", geometry: Slabs(axis: Z), center: ["B"], bins: 8),
        StressCorrelation(every: 2, file: "stress.csv", longest: 40, report: 7),
    ],
    checkpoint: (every: 70),
    stages: [ (steps: 200, dt: 0.004) ],
)"#;

const TABLES: [&str; 9] = [
    "chains.csv",
    "each.csv",
    "internal.csv",
    "slabs.csv",
    "sphere.csv",
    "cylinder.csv",
    "middle.csv",
    "stress.csv",
    "thermo.csv",
];

fn go(folder: &Path, args: &[&str]) {
    std::fs::write(folder.join("p.ron"), MELT).expect("written");
    let out = galamost(folder, &[&["--pipeline", "p.ron", "--quiet", "--device", "cpu"], args].concat());
    assert!(out.status.success(), "{args:?}: {}", words(&out));
}

/// All of them as NumPy computes them from the frames and the pressures of the same run.
#[test]
#[ignore = "3 seconds"]
fn observables_agree_with_numpy() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    go(folder.path(), &[]);
    let script = repository().join("tests/python/observables.py");
    let out = Command::new(python).arg(script).arg(folder.path()).output().expect("python runs");
    print!("{}", String::from_utf8_lossy(&out.stdout));
    assert!(out.status.success(), "{}", words(&out));
}

/// A run in three pieces, with other numbers of threads, writes the same files to the byte.
#[test]
fn restarts_and_threads_do_not_change_results() {
    let (whole, parts) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    go(whole.path(), &["--threads", "1"]);
    go(parts.path(), &["--threads", "2", "--steps", "83"]);
    go(parts.path(), &["--threads", "1", "--steps", "141", "--resume"]);
    go(parts.path(), &["--threads", "2", "--resume"]);
    for file in TABLES {
        let [a, b] = [&whole, &parts].map(|f| std::fs::read_to_string(f.path().join(file)).expect(file));
        assert!(!a.is_empty() && a == b, "{file} differs:\n{a}\n{b}");
    }
}

/// A centered profile follows the particles that are its middle.
#[test]
fn a_profile_follows_its_center() {
    let folder = tempfile::tempdir().expect("a folder");
    // a layer of B around z = 4.5, across the face of the box, in A
    let text = r#"(
        initial: [ Lattice(lattice: Sc, cells: [5, 5, 10], density: 1.0, types: { "A": 1.0 }) ],
        integrators: [ VelocityVerlet() ],
        analyzers: [ Profile(every: 1, file: "p.csv", geometry: Slabs(axis: Z), bins: 10, center: ["B"]) ],
        stages: [ (steps: 0, dt: 0.01) ],
    )"#;
    let mut s = galamost_plugin_api::snapshot::Snapshot {
        dimensions: 3,
        box_length: [5.0, 5.0, 10.0],
        ..galamost_plugin_api::snapshot::Snapshot::default()
    };
    let kinds = [s.type_id("A"), s.type_id("B")];
    for k in 0..250 {
        let at = [k % 5, k / 5 % 5, k / 25].map(|x| x as f64);
        let z = at[2] - 4.5;
        s.push(kinds[usize::from(z.abs() > 4.0)], [at[0] - 2.0, at[1] - 2.0, z]);
    }
    let file = folder.path().join("p.csv");
    let text = text.replace("\"p.csv\"", &format!("{:?}", file.display().to_string()));
    let text = format!("({}", &text[text.find("integrators").expect("integrators")..]);
    let plan = plan_of(&text, s, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
    galamost_tests::run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
    let t = csv(&file);
    // the layers of B at ±4.5 are neighbors through the face: the middle is there
    for (k, (a, b)) in t["density_A"].iter().zip(&t["density_B"]).enumerate() {
        let of_b = if k == 4 || k == 5 { 1.0 } else { 0.0 };
        assert!((a - (1.0 - of_b)).abs() < 1e-12 && (b - of_b).abs() < 1e-12, "{k}: {a} {b}");
    }
    assert_eq!(t["density_A"].len(), 10);
}

const LIQUID: &str = "seed: 1, integrators: [Langevin(kT: 1.0, gamma: 1.0)], initial: [
    Polymers(box: [6.0, 6.0, 6.0], bond_length: 1.0, distance: 0.9, molecules: [(molecule: \"C\", count: 30), (molecule: \"A\", count: 30)],
        types: { \"C\": (charge: 1.0), \"A\": (charge: -1.0) }), Velocities(kT: 1.0)],
    forces: [Wca(pairs: { (\"*\", \"*\"): (epsilon: 1.0, sigma: 0.9) })]";

/// Checks stages with an analyzer in all of them, and returns the errors.
fn errors(analyzer: &str, stages: &str) -> String {
    let text = format!("({LIQUID}, analyzers: [{analyzer}], stages: [{stages}])");
    plan(&text, DeviceChoice::Cpu).err().map(|e| e.render()).unwrap_or_default()
}

/// Analyzers that average over lags need one time step in all stages that they sample, and no stage between them without samples.
#[test]
fn lags_need_one_time_step() {
    let two = "(name: \"a\", steps: 200, dt: 0.001), (name: \"b\", steps: 200, dt: 0.004)";
    for analyzer in [
        "Msd(every: 10, file: \"t.csv\"START)",
        "Vacf(every: 10, file: \"t.csv\"START)",
        "IntermediateScattering(every: 10, file: \"t.csv\", q: [4.0], width: 2.0START)",
        "StressCorrelation(every: 10, file: \"t.csv\", longest: 10START)",
        "Conductivity(every: 10, file: \"t.csv\", kT: 1.0, lags: 5START)",
    ] {
        let name = analyzer.split('(').next().expect("a name");
        let of = |start: &str, stages: &str| errors(&analyzer.replace("START", start), stages);
        let found = of("", two);
        let expected = format!(
            "{name} needs samples at equal intervals of time, but `dt` is 0.001 in stage `a` and 0.004 in stage `b`; list one {name} in stage \
             `a` and another in stage `b`, with different files"
        );
        assert!(found.contains(&expected), "{name}: {found}");
        // sampled from the second stage on, after its first steps or exactly at the end of the first
        for start in [", start: 200", ", start: 191", ", start: 305"] {
            assert_eq!(of(start, two), "", "{name}{start}");
        }
        assert!(of(", start: 190", two).contains(&expected), "{name}");
        let gap = "(name: \"a\", steps: 50, dt: 0.002), (name: \"c\", steps: 50, dt: 0.002, analyzers: []), (name: \"d\", steps: 50, dt: 0.002)";
        let found = of("", gap);
        assert!(found.contains("stage `c` between its samples does not list it; list one"), "{name}: {found}");
        for right in [
            &gap.replace(", analyzers: []", ""),
            &gap.replace("(name: \"c\", steps: 50", "(name: \"c\", steps: 0"),
            "(name: \"a\", steps: 50, dt: 0.002), (name: \"b\", steps: 50, dt: 0.004, analyzers: [])",
        ] {
            assert_eq!(of("", right), "", "{name}, {right}");
        }
    }
}

/// Analyzers that need a constant box are refused where a barostat changes it, and accepted after it.
#[test]
#[ignore = "10 seconds"]
fn a_constant_box_is_required_by_the_check() {
    let npt = "integrators: [MtkNpt(kT: 1.0, tau: 0.5, pressure: 1.0, tau_p: 2.0)]";
    let berendsen = "updaters: [BerendsenBarostat(every: 5, pressure: 0.5, tau: 1.0, compressibility: 0.5)]";
    for analyzer in [
        "StructureFactor(every: 5, file: \"t.csv\", q_max: 4.0START)",
        "IntermediateScattering(every: 5, file: \"t.csv\", q: [4.0], width: 2.0START)",
        "Conductivity(every: 5, file: \"t.csv\", kT: 1.0, lags: 5START)",
        "ChargeStructure(every: 5, file: \"t.csv\", q_max: 4.0START)",
    ] {
        let name = analyzer.split('(').next().expect("a name");
        for (changing, other) in [(npt, "MtkNpt"), (berendsen, "BerendsenBarostat")] {
            let stages =
                format!("(name: \"npt\", steps: 50, dt: 0.002, {changing}), (name: \"nvt\", steps: 50, dt: 0.002)");
            let found = errors(&analyzer.replace("START", ""), &stages);
            let expected = format!(
                "{name} needs a constant box, which {other} changes in stage `npt`; sample in a stage of constant volume"
            );
            assert!(found.contains(&expected), "{found}");
            assert_eq!(errors(&analyzer.replace("START", ", start: 50"), &stages), "", "{name}");
        }
    }
    // it follows the box
    assert_eq!(errors("Msd(every: 5, file: \"t.csv\")", &format!("(steps: 50, dt: 0.002, {npt})")), "");
}

/// Times and volume are those of the samples, not of the first stage; a resumed run has the same table.
#[test]
fn the_conductivity_follows_the_stage_that_it_samples() {
    let f = tempfile::tempdir().expect("a folder");
    let text = format!(
        "({LIQUID}, checkpoint: (every: 70), analyzers: [Conductivity(every: 10, start: 100, file: \"t.csv\", kT: 1.0, lags: 3)], stages: [ \
         (steps: 50, dt: 0.001, updaters: [BerendsenBarostat(every: 5, pressure: 0.5, tau: 1.0, compressibility: 0.5)]), \
         (steps: 150, dt: 0.004)])"
    );
    std::fs::write(f.path().join("p.ron"), text).expect("written");
    let run = |args: &[&str]| {
        let out = galamost(
            f.path(),
            &[&["--pipeline", "p.ron", "--device", "cpu", "--quiet", "--threads", "1"], args].concat(),
        );
        assert!(out.status.success(), "{}", words(&out));
        std::fs::read_to_string(f.path().join("t.csv")).expect("a table")
    };
    let whole = run(&[]);
    for (k, time) in csv(&f.path().join("t.csv"))["time"].iter().enumerate() {
        // roundings of times below 1
        assert!((time - 0.04 * k as f64).abs() < 1e-14, "{time}");
    }
    run(&["--overwrite", "--steps", "150"]);
    assert_eq!(run(&["--resume"]), whole);
}

/// The vectors are those of the box at the first sample, not of the initial one; a resumed run has the same table.
#[test]
fn the_charge_structure_factor_follows_a_barostat() {
    let f = tempfile::tempdir().expect("a folder");
    let text = format!(
        "({LIQUID}, checkpoint: (every: 60), analyzers: [Thermo(every: 50, file: \"t.csv\"), \
         ChargeStructure(every: 25, start: 50, file: \"s.csv\", q_max: 2.0, bins: 10)], stages: [ \
         (steps: 50, dt: 0.001, updaters: [BerendsenBarostat(every: 5, pressure: 0.5, tau: 1.0, compressibility: 0.5)]), \
         (steps: 75, dt: 0.001)])"
    );
    std::fs::write(f.path().join("p.ron"), text).expect("written");
    let run = |args: &[&str]| {
        let out = galamost(
            f.path(),
            &[&["--pipeline", "p.ron", "--device", "cpu", "--quiet", "--threads", "1"], args].concat(),
        );
        assert!(out.status.success(), "{}", words(&out));
        std::fs::read_to_string(f.path().join("s.csv")).expect("a table")
    };
    let whole = run(&[]);
    let (volume, first) = (csv(&f.path().join("t.csv"))["volume"].clone(), csv(&f.path().join("s.csv"))["q"][0]);
    let smallest = std::f64::consts::TAU / volume[2].cbrt();
    assert!(volume[2] != volume[0] && (first / smallest - 1.0).abs() < 1e-12, "{first} and {smallest}, {volume:?}");
    run(&["--overwrite", "--steps", "100"]);
    assert_eq!(run(&["--resume"]), whole);
}

/// Analyzers of three-dimensional systems refuse others, with their names once.
#[test]
fn two_dimensions_are_refused() {
    let three = "requires a three-dimensional system; this one is two-dimensional";
    for (analyzer, message) in [
        ("ChargeProfile(every: 1, file: \"c.csv\", axis: X)", three),
        ("ChargeStructure(every: 1, file: \"c.csv\", q_max: 3.0)", three),
        ("Conductivity(every: 1, file: \"c.csv\", kT: 1.0)", three),
        ("Dielectric(every: 1, file: \"c.csv\", kT: 1.0)", three),
        ("OrientationalOrder(every: 1, file: \"c.csv\")", "requires three dimensions"),
    ] {
        let text = format!(
            "(initial: [RandomPositions(count: 10, box: [8.0, 8.0, 0.0])], integrators: [VelocityVerlet()], \
             analyzers: [{analyzer}], stages: [(steps: 10, dt: 0.001)])"
        );
        let said = plan(&text, DeviceChoice::Cpu).err().map(|e| e.render()).unwrap_or_default();
        let name = analyzer.split('(').next().expect("a name");
        assert!(said.contains(&format!(": {name}: {message}")), "{said}");
    }
}

/// Runs a pipeline on the CPU and returns the program's words.
#[track_caller]
fn words_of(folder: &Path, text: &str, status: i32) -> String {
    std::fs::write(folder.join("p.ron"), text).expect("written");
    let out = galamost(folder, &["--pipeline", "p.ron", "--device", "cpu", "--threads", "1"]);
    assert_eq!(out.status.code(), Some(status), "{}", words(&out));
    words(&out)
}

/// The beads of rigid bodies have no mass: their sizes follow from the moments of inertia of the centers.
#[test]
fn rigid_bodies_have_the_size_of_their_beads() {
    let f = tempfile::tempdir().expect("a folder");
    let text = r#"(seed: 4, precision: Double, initial: [
        Lattice(lattice: Sc, cells: [3, 3, 3], density: 0.02, types: { "R": 1.0 }),
        Bodies(center: "R", shape: [ (type: "A", at: (0.0, 0.0, 0.0), mass: 2.0), (type: "A", at: (0.8, 0.0, 0.0)),
            (type: "A", at: (0.0, 0.9, 0.1)) ], kT: 1.0)],
        forces: [RigidBodies()], integrators: [RotationalVerlet()],
        analyzers: [Gyration(every: 10, file: "g.csv", each: "each.csv")], stages: [(steps: 20, dt: 0.002)])"#;
    words_of(f.path(), text, 0);
    let (t, each) = (csv(&f.path().join("g.csv")), csv(&f.path().join("each.csv")));
    // Σ m r²/M − (Σ m r/M)²
    let expected = (0.64 + 0.82) / 4.0 - (0.8f64.powi(2) + 0.9f64.powi(2) + 0.1f64.powi(2)) / 16.0;
    assert!(each["Rg2"].len() == 81 && each["Rg2"].iter().all(|r| (r - expected).abs() < 1e-9), "{:?}", each["Rg2"]);
    for k in 0..3 {
        assert_eq!(t["molecules"][k], 27.0);
        // three beads are in a plane, so λ₃ = 0
        let sum = t["asphericity"][k] + 1.5 * t["acylindricity"][k];
        assert!((t["Rg2"][k] - expected).abs() < 1e-9 && (sum - expected).abs() < 1e-9, "{t:?}");
    }
}

/// A ring through the periodic box has no size: it is left out with a warning; a chain beside it is measured.
#[test]
fn molecules_that_end_in_their_own_images_are_left_out() {
    let f = tempfile::tempdir().expect("a folder");
    let ring = (0..10).map(|k| [f64::from(k) - 4.9, 0.1 * f64::from(k % 2), 0.0]);
    let places: Vec<[f64; 3]> = ring.chain((0..3).map(|k| [f64::from(k) - 1.0, 3.0, 0.0])).collect();
    let bonds: Vec<[usize; 2]> = (0..10).map(|k| [k, (k + 1) % 10]).chain([[10, 11], [11, 12]]).collect();
    let places: Vec<String> = places.iter().map(|p| p.map(|x| x.to_string()).join(" ")).collect();
    let bonds: Vec<String> = bonds.iter().map(|[a, b]| format!("b {a} {b}")).collect();
    let xml = format!(
        "<galamost_xml version=\"1.3\"><configuration time_step=\"0\" dimensions=\"3\" natoms=\"13\">\n\
         <box lx=\"10\" ly=\"10\" lz=\"10\"/>\n<position num=\"13\">\n{}\n</position>\n<type num=\"13\">\n{}</type>\n\
         <bond num=\"12\">\n{}\n</bond>\n</configuration></galamost_xml>\n",
        places.join("\n"),
        "A\n".repeat(13),
        bonds.join("\n")
    );
    std::fs::write(f.path().join("ring.xml"), xml).expect("written");
    let text = r#"(initial: [GalamostXml(file: "ring.xml")], integrators: [VelocityVerlet()],
        analyzers: [Gyration(every: 10, file: "g.csv", each: "each.csv")], stages: [(steps: 20, dt: 0.001)])"#;
    let said = words_of(f.path(), text, 0);
    let warning = "Gyration: 1 of 2 molecules, the first that of particle 0, are bonded to their own periodic images";
    assert_eq!(said.matches(warning).count(), 1, "{said}");
    let (t, each) = (csv(&f.path().join("g.csv")), csv(&f.path().join("each.csv")));
    assert_eq!((t["molecules"].as_slice(), t["chains"].as_slice()), (&[1.0; 3][..], &[1.0; 3][..]));
    // positions in single precision, numbers with six digits
    assert!(t["Rg2"].iter().all(|r| (r - 2.0 / 3.0).abs() < 1e-6), "{t:?}");
    // the same
    assert!(each["Rg2"][0].is_nan() && (each["Rg2"][1] - 2.0 / 3.0).abs() < 1e-6, "{each:?}");
}

/// Molecules without a center are left out of g(r) of molecules, whatever the order of their particles.
#[test]
fn molecules_without_a_center_are_left_out_of_rdf() {
    let tables: Vec<String> = [0, 4]
        .map(|turn| {
            let f = tempfile::tempdir().expect("a folder");
            let ring = (0..10).map(|k| f64::from((k + turn) % 10) - 4.9).map(|x| format!("{x} 0 0"));
            let pairs = [-3.0, -1.5, 1.0].into_iter().flat_map(|x| [format!("{x} 3 0"), format!("{} 3 0", x + 0.5)]);
            let places: Vec<String> = ring.chain(pairs).collect();
            let bonds = (0..10).map(|k| [k, (k + 1) % 10]).chain([[10, 11], [12, 13], [14, 15]]);
            let bonds: Vec<String> = bonds.map(|[a, b]| format!("b {a} {b}")).collect();
            let xml = format!(
                "<galamost_xml version=\"1.3\"><configuration time_step=\"0\" dimensions=\"3\" natoms=\"16\">\n\
                 <box lx=\"10\" ly=\"10\" lz=\"10\"/>\n<position num=\"16\">\n{}\n</position>\n<type num=\"16\">\n{}</type>\n\
                 <bond num=\"13\">\n{}\n</bond>\n</configuration></galamost_xml>\n",
                places.join("\n"),
                "A\n".repeat(16),
                bonds.join("\n")
            );
            std::fs::write(f.path().join("ring.xml"), xml).expect("written");
            let text = r#"(initial: [GalamostXml(file: "ring.xml")], integrators: [VelocityVerlet()],
                analyzers: [Rdf(every: 10, file: "g.csv", r_max: 5.0, bins: 20, of: Molecules)], stages: [(steps: 20, dt: 0.001)])"#;
            let said = words_of(f.path(), text, 0);
            let warning = "Rdf: 1 of 4 molecules, the first that of particle 0, are bonded to their own periodic images";
            assert_eq!(said.matches(warning).count(), 1, "{said}");
            std::fs::read_to_string(f.path().join("g.csv")).expect("a table")
        })
        .into();
    assert_eq!(tables[0], tables[1]);
    // the three pairs have the distances 1.5, 2.5 and 4
    let filled = tables[0].lines().skip(1).filter(|l| !l.ends_with(",0.0")).count();
    assert_eq!(filled, 3, "{}", tables[0]);
}

/// Without a degree of freedom, kT is undefined. With friction, momentum is not conserved, and there are three.
#[test]
fn a_system_without_degrees_of_freedom_has_no_temperature() {
    let f = tempfile::tempdir().expect("a folder");
    for (integrator, defined) in [("VelocityVerlet()", false), ("Langevin(kT: 1.0, gamma: 1.0)", true)] {
        let text = format!(
            "(seed: 1, initial: [Lattice(lattice: Sc, cells: [1, 1, 1], density: 0.001), Velocities(kT: 1.0)], \
             integrators: [{integrator}], analyzers: [Thermo(every: 5, file: \"t.csv\")], stages: [(steps: 10, dt: 0.004)])"
        );
        let f = f.path().join(if defined { "three" } else { "none" });
        std::fs::create_dir(&f).expect("a folder");
        words_of(&f, &text, 0);
        let t = csv(&f.join("t.csv"));
        assert!(t["kT"].len() == 3 && t["kT"].iter().all(|kt| kt.is_nan() != defined), "{integrator}: {t:?}");
        assert!(t["kinetic"].iter().all(|k| k.is_finite()), "{integrator}: {t:?}");
    }
}

/// A type without particles has no averages, and its particles have no center.
#[test]
fn columns_of_types_without_particles_are_not_numbers() {
    let system = r#"seed: 1, initial: [RandomPositions(count: 21, box: [6.0, 6.0, 6.0], types: { "A": 20.0, "B": 1.0, "E": 0.0 }),
        Velocities(kT: 1.0)], integrators: [VelocityVerlet()], stages: [(steps: 20, dt: 0.001)]"#;
    let f = tempfile::tempdir().expect("a folder");
    let analyzers = r#"Msd(every: 10, file: "m.csv"), Vacf(every: 10, file: "v.csv"), Rdf(every: 10, file: "r.csv", r_max: 3.0, bins: 4),
        StructureFactor(every: 10, file: "s.csv", q_max: 3.0, bins: 2)"#;
    words_of(f.path(), &format!("({system}, analyzers: [{analyzers}])"), 0);
    for (file, empty, filled) in [
        ("m.csv", &["msd_E", "alpha2_E"][..], &["msd_A", "alpha2_A", "msd_B"][..]),
        ("v.csv", &["vacf_E", "diffusion_E"], &["vacf_A", "vacf_B"]),
        ("r.csv", &["A-E", "B-B", "B-E", "E-E"], &["A-A", "A-B"]),
        ("s.csv", &["A-E", "E-E"], &["S", "A-A", "A-B", "B-B"]),
    ] {
        let t = csv(&f.path().join(file));
        assert!(empty.iter().all(|n| t[*n].iter().all(|x| x.is_nan())), "{file}: {t:?}");
        assert!(filled.iter().all(|n| !t[*n].is_empty() && t[*n].iter().all(|x| x.is_finite())), "{file}: {t:?}");
    }
    // the same for links
    let chains = r#"(seed: 1, initial: [Polymers(box: [8.0, 8.0, 8.0], molecules: [(molecule: "A4", count: 5)],
        angles: {"A-A-A": ()}, dihedrals: ["A-A-A-A"]), LinkTypes(bonds: ["A-E"], angles: ["A-E-A"], dihedrals: ["A-E-E-A"])],
        stages: [(steps: 0, dt: 0.001)], analyzers: [BondDistribution(every: 1, file: "b.csv", max: 2.0, bins: 4),
        AngleDistribution(every: 1, file: "a.csv", bins: 4), DihedralDistribution(every: 1, file: "d.csv", bins: 4)])"#;
    let f = tempfile::tempdir().expect("a folder");
    words_of(f.path(), chains, 0);
    for (file, empty, filled) in [("b.csv", "A-E", "A-A"), ("a.csv", "A-E-A", "A-A-A"), ("d.csv", "A-E-E-A", "A-A-A-A")]
    {
        let t = csv(&f.path().join(file));
        assert!(t[empty].len() == 4 && t[empty].iter().all(|x| x.is_nan()), "{file}: {t:?}");
        assert!(t[filled].iter().sum::<f64>() > 0.0, "{file}: {t:?}");
    }
    for (lists, message) in [
        (r#"positive: ["E"]"#, "no particles of these types exist"),
        (r#"positive: ["A"], negative: ["E"]"#, "no particle has a type in `negative`"),
        (r#"positive: ["E"], negative: ["A"]"#, "no particle has a type in `positive`"),
    ] {
        let domains = format!("DomainSize(every: 10, file: \"z.csv\", {lists}, q_max: 4.0)");
        let f = tempfile::tempdir().expect("a folder");
        let said = words_of(f.path(), &format!("({system}, analyzers: [{domains}])"), 1);
        assert!(said.contains(message), "{said}");
    }
    let profile = r#"Profile(every: 10, file: "p.csv", geometry: Slabs(axis: Z), center: ["E"])"#;
    let said = words_of(f.path(), &format!("({system}, analyzers: [{profile}])"), 1);
    assert!(said.contains("no particle has a type in `center`"), "{said}");
}

/// Shells of a given radius end the run in a box that becomes too small for them; slabs follow the box.
#[test]
fn a_profile_ends_where_its_radius_leaves_the_box() {
    let text = r#"(seed: 1, initial: [RandomPositions(count: 50, box: [6.0, 6.0, 6.0]), Velocities(kT: 1.0)],
        integrators: [Langevin(kT: 1.0, gamma: 1.0)], updaters: [BoxResize(every: 1, x: Ramp(from: 6.0, to: 5.0, steps: 20))],
        analyzers: [Profile(every: 10, file: "p.csv", geometry: GEOMETRY)], stages: [(steps: 20, dt: 0.002)])"#;
    let radius = "`r_max` 2.9 exceeds half of a box length";
    for (geometry, status) in [
        ("Sphere(r_max: 2.9)", 1),
        ("Cylinder(axis: Z, r_max: 2.9)", 1),
        ("Cylinder(axis: X, r_max: 2.9)", 0),
        ("Sphere()", 0),
        ("Slabs(axis: X)", 0),
    ] {
        let f = tempfile::tempdir().expect("a folder");
        let said = words_of(f.path(), &text.replace("GEOMETRY", geometry), status);
        assert_eq!(said.contains(radius), status == 1, "{geometry}: {said}");
    }
}

/// Columns have different names also with types `A` and `x_A`; a table without rows is a warning.
#[test]
fn a_run_shorter_than_the_shortest_lag_is_a_warning() {
    let text = r#"(seed: 1, initial: [RandomPositions(count: 20, box: [6.0, 6.0, 6.0], types: { "A": 0.5, "x_A": 0.5 }), Velocities(kT: 1.0)],
        integrators: [VelocityVerlet()], analyzers: [Msd(every: 10, file: "m.csv", axes: true, lags: [LAG])],
        stages: [(steps: 100, dt: 0.001)])"#;
    for (lag, rows) in [("1000", 0), ("100", 1)] {
        let f = tempfile::tempdir().expect("a folder");
        let said = words_of(f.path(), &text.replace("LAG", lag), 0);
        let warning = "m.csv has no lag above 0: the samples do not span the shortest one";
        assert_eq!(said.matches(warning).count(), 1 - rows, "{lag}: {said}");
        let table = std::fs::read_to_string(f.path().join("m.csv")).expect("a table");
        let names: Vec<&str> = table.lines().next().expect("a header").split(',').collect();
        assert!(names.contains(&"msd_x_A") && names.contains(&"msd_x_A:2"), "{names:?}");
        assert_eq!(names.len(), names.iter().collect::<std::collections::BTreeSet<_>>().len(), "{names:?}");
        assert_eq!(table.lines().count(), 1 + rows);
    }
}
