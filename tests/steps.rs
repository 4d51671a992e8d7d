//! The persistent kernel: many steps in one launch give the same bits as separate launches, also if a batch is interrupted.
//!
//! The emulated device runs three blocks of it, which wait for each other at the grid barriers only: each gets ahead of
//! the others as far as the barriers permit.

use galamost_tests::{has_compiler, program, words};
use std::path::Path;
use std::process::Command;

/// Two types, a neighbor list that is rebuilt every few steps, and outputs without a common period.
const PIPELINE: &str = r#"(
    seed: 4, precision: PRECISION, neighbors: (buffer: 0.15),
    initial: [ RandomPositions(count: 300, box: [5.0, 5.5, 6.0], types: {"A": 0.5, "B": 0.5}), Velocities(kT: 1.0) ],
    forces: [ FORCES ],
    integrators: [ INTEGRATORS ],
    analyzers: [ Thermo(every: 7, file: "t.csv"), Gsd(every: 23, file: "t.gsd") ],
    checkpoint: (every: 40),
    stages: [ (name: "one", steps: 50, dt: 0.01), (name: "two", steps: 11, dt: 0.02) ],
)"#;

const SOFT: &str = r#"HarmonicRepulsion(r_cut: 1.0, pairs: {
    ("A", "A"): (alpha: 12.5), ("A", "B"): (alpha: 20.0), ("B", "B"): (alpha: 12.5) })"#;
const DPD: &str = r#"Dpd(r_cut: 1.0, kT: 1.0, pairs: {
    ("A", "A"): (a: 25.0, sigma: 3.0), ("A", "B"): (a: 40.0, sigma: 3.0), ("B", "B"): (a: 25.0, sigma: 3.0) })"#;

fn go(folder: &Path, together: bool, args: &[&str]) {
    let mut c = Command::new(program());
    c.current_dir(folder).args(["--pipeline", "p.ron", "--quiet", "--device", "emulated"]).args(args);
    if together {
        c.env("GALAMOST_EMULATED_STEPS", "1");
    }
    let out = c.output().expect("started");
    assert!(out.status.success(), "{args:?}: {}", words(&out));
}

fn same(what: &str, a: &Path, b: &Path) {
    for file in ["t.csv", "t.gsd", "p.checkpoint"] {
        let (x, y) = (std::fs::read(a.join(file)).expect(file), std::fs::read(b.join(file)).expect(file));
        assert!(!x.is_empty() && x == y, "{what}: {file} differs: {} and {} bytes", x.len(), y.len());
    }
}

fn folder(precision: &str, forces: &str, integrators: &str) -> tempfile::TempDir {
    let f = tempfile::tempdir().expect("a folder");
    let text = PIPELINE.replace("PRECISION", precision).replace("FORCES", forces).replace("INTEGRATORS", integrators);
    std::fs::write(f.path().join("p.ron"), text).expect("written");
    f
}

/// Precisions, forces and integrators.
type System = (&'static str, &'static str, &'static str);

#[test]
fn the_persistent_kernel_equals_separate_launches() {
    persistent_kernels_equal_separate_launches(&[
        // sums after the forces, which the next step needs
        ("Mixed", SOFT, "NoseHoover(kT: 1.0, tau: 0.5)"),
        // functions of the state on both sides of the forces, two groups, two integrators, numbers that change with time
        (
            "Double",
            SOFT,
            "Langevin(kT: Ramp(from: 1.0, to: 2.0, steps: 20), gamma: 1.0, group: Types([\"A\"])), \
             NoseHooverChain(kT: 1.0, tau: 0.5, group: Types([\"B\"]))",
        ),
        // a box that changes: virials in every step
        ("Mixed", SOFT, "TriclinicMtkNpt(kT: 1.0, tau: 0.5, pressure: 9.0, tau_p: 0.5)"),
        // no sums: the end of a step and the beginning of the next go together; images that slide
        ("Single", DPD, "GrootWarren(), LeesEdwards(rate: 0.7)"),
    ]);
}

#[test]
#[ignore = "a minute"]
fn persistent_kernels_of_other_integrators_equal_separate_launches() {
    persistent_kernels_equal_separate_launches(&[
        ("Mixed", DPD, "GrootWarren()"),
        ("Mixed", DPD, "MtkNpt(kT: 1.0, tau: 0.5, pressure: 25.0, tau_p: 0.5)"),
        ("Single", SOFT, "AndersenNpt(kT: 1.0, nu: 0.5, pressure: 9.0, tau_p: 0.5)"),
    ]);
}

/// Bonds, angles and dihedrals have one kernel, which adds in the order of the persistent kernel. Four chains of 24 beads.
#[test]
fn one_kernel_of_all_bonded_potentials_equals_the_persistent_kernel() {
    if !has_compiler() {
        return;
    }
    const CHAINS: &str = r#"(
        seed: 4, neighbors: (buffer: 0.3, exclude: [Bonds]),
        initial: [ Polymers(box: [9.0, 9.0, 9.0], distance: 0.9, molecules: [(molecule: "A24", count: 4)], angles: {"A-A-A": ()},
            dihedrals: ["A-A-A-A"]), Velocities(kT: 1.0) ],
        forces: [
            HarmonicRepulsion(r_cut: 1.0, pairs: { ("A", "A"): (alpha: 12.5) }),
            HarmonicBond(bonds: { "A-A": (k: 100.0, r0: 0.9) }),
            HarmonicAngle(angles: { "A-A-A": (k: 5.0, theta0_deg: 120.0) }),
            OplsDihedral(dihedrals: { "A-A-A-A": (k1: 0.5, k2: -0.3, k3: 1.0, k4: 0.1) }),
        ],
        integrators: [ Langevin(kT: 1.0, gamma: 1.0) ],
        analyzers: [ Thermo(every: 7, file: "t.csv"), Gsd(every: 23, file: "t.gsd") ],
        checkpoint: (every: 40),
        stages: [ (steps: 46, dt: 0.01) ],
    )"#;
    let [one, many] = [false, true].map(|together| {
        let f = tempfile::tempdir().expect("a folder");
        std::fs::write(f.path().join("p.ron"), CHAINS).expect("written");
        go(f.path(), together, &[]);
        f
    });
    same("chains", one.path(), many.path());
}

fn persistent_kernels_equal_separate_launches(systems: &[System]) {
    if !has_compiler() {
        return;
    }
    for (precision, forces, integrators) in systems.iter().copied() {
        let (one, many, parts) = (
            folder(precision, forces, integrators),
            folder(precision, forces, integrators),
            folder(precision, forces, integrators),
        );
        go(one.path(), false, &[]);
        go(many.path(), true, &[]);
        same(integrators, one.path(), many.path());
        // for integrators with state on both sides of the forces, and for sliding images
        if precision != "Mixed" {
            go(parts.path(), true, &["--steps", "33"]);
            go(parts.path(), true, &["--resume"]);
            same(integrators, one.path(), parts.path());
        }
    }
}

/// Every grid barrier of a step is needed: without one of them, a block reads what another has not written yet, or has
/// already overwritten.
#[test]
fn the_result_depends_on_every_grid_barrier() {
    if !has_compiler() {
        return;
    }
    // barriers of two steps in the middle of a launch; the first barrier of a launch only makes the blocks agree on a
    // halt, and the end of a launch replaces the last one
    for integrator in ["NoseHoover(kT: 1.0, tau: 0.5)", "VelocityVerlet()"] {
        let state = |fault: Option<u32>| {
            let f = folder("Mixed", SOFT, integrator);
            let text = std::fs::read_to_string(f.path().join("p.ron")).expect("a pipeline");
            // no output and no neighbor list within these steps
            let text = ["every: 7", "every: 23", "every: 40"].iter().fold(text, |t, e| t.replace(e, "every: 8"));
            std::fs::write(f.path().join("p.ron"), text.replace("buffer: 0.15", "buffer: 0.8")).expect("written");
            let mut c = Command::new(program());
            c.current_dir(f.path()).env("GALAMOST_EMULATED_STEPS", "1");
            c.args(["--pipeline", "p.ron", "--quiet", "--device", "emulated", "--steps", "8"]);
            if let Some(barrier) = fault {
                c.env("GALAMOST_EMULATED_FAULT", format!("barrier:{barrier}"));
            }
            let out = c.output().expect("started");
            assert!(fault.is_some() || out.status.success(), "{}", words(&out));
            // a run that fails has no state
            let read = |name: &str| std::fs::read(f.path().join(name)).ok();
            out.status.success().then(|| ["t.csv", "t.gsd", "p.checkpoint"].map(read))
        };
        let reference = state(None);
        assert!(reference == state(None) && reference.as_ref().is_some_and(|s| s.iter().all(Option::is_some)));
        // the engine makes batches shorter if steps are slow: on a busy machine a launch may end at one of these barriers
        let noticed = |barrier: u32| (0..20).any(|_| state(Some(barrier)) != reference);
        let unnoticed: Vec<u32> = (10..=13).filter(|barrier| !noticed(*barrier)).collect();
        assert!(unnoticed.is_empty(), "{integrator}: the result is the same without the barriers {unnoticed:?}");
    }
}

/// The same for three of the four barriers of a sort, that of the second rebuild; without a persistent kernel of steps.
#[test]
fn the_sort_depends_on_its_grid_barriers() {
    if !has_compiler() {
        return;
    }
    let state = |fault: Option<u32>| {
        let f = folder("Mixed", SOFT, "VelocityVerlet()");
        // so many cells that two blocks add their counts
        let text = std::fs::read_to_string(f.path().join("p.ron")).expect("a pipeline");
        let text = text.replace("count: 300, box: [5.0, 5.5, 6.0]", "count: 2000, box: [9.0, 9.5, 10.0]");
        std::fs::write(f.path().join("p.ron"), text).expect("written");
        let mut c = Command::new(program());
        c.current_dir(f.path()).env("GALAMOST_EMULATED_STEPS", "1").env("GALAMOST_MANY", "0");
        c.args(["--pipeline", "p.ron", "--quiet", "--device", "emulated", "--steps", "8"]);
        if let Some(barrier) = fault {
            c.env("GALAMOST_EMULATED_FAULT", format!("barrier:{barrier}"));
        }
        let out = c.output().expect("started");
        assert!(fault.is_some() || out.status.success(), "{}", words(&out));
        out.status.success().then(|| std::fs::read(f.path().join("p.checkpoint")).expect("a checkpoint"))
    };
    let reference = state(None);
    assert!(reference.is_some() && reference == state(None));
    // a block needs the counts of earlier blocks after the sixth one, and the emulation lets earlier blocks run first
    let unnoticed: Vec<u32> = [5, 7, 8].into_iter().filter(|barrier| state(Some(*barrier)) == reference).collect();
    assert!(unnoticed.is_empty(), "the result is the same without the barriers {unnoticed:?}");
}

/// The thread that moves a particle sums its bonded forces. A grid barrier separates the two if the integrator moves
/// particles right after the forces.
#[test]
#[ignore = "5 seconds"]
fn the_persistent_kernel_computes_bonded_forces() {
    if !has_compiler() {
        return;
    }
    let text = std::fs::read_to_string(galamost_tests::repository().join("examples/40-distributions.ron"))
        .expect("the example");
    let (head, tail) = (text.find("    analyzers:").expect("there"), text.find("    stages:").expect("there"));
    for integrator in ["Langevin(kT: 1.0, gamma: 1.0)", "VelocityVerlet()", "Brownian(kT: 1.0, gamma: 20.0)"] {
        let text = format!(
            "{}analyzers: [ Thermo(every: 13, file: \"t.csv\"), Gsd(every: 20, file: \"t.gsd\") ], checkpoint: (every: 40),\n{}",
            text[..head].replace("Langevin(kT: 1.0, gamma: 1.0)", integrator),
            text[tail..].replace("5_000", "60")
        );
        let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        for (f, together) in folders.iter().zip([false, true]) {
            let from = galamost_tests::repository().join("examples/40-distributions.xml");
            std::fs::copy(from, f.path().join("40-distributions.xml")).expect("copied");
            std::fs::write(f.path().join("p.ron"), &text).expect("written");
            go(f.path(), together, &[]);
        }
        same(integrator, folders[0].path(), folders[1].path());
    }
}

/// With a barostat, the virials of bonded forces are added in the same order.
#[test]
#[ignore = "5 seconds"]
fn the_persistent_kernel_computes_the_pressure_of_bonded_forces() {
    if !has_compiler() {
        return;
    }
    let text = r#"(
        seed: 4, neighbors: (buffer: 0.2, exclude: [Bonds]),
        initial: [
            Polymers(box: [7.5, 8.0, 8.5], distance: 0.6, bond_length: 0.8, molecules: [ (molecule: "A10", count: 40) ]),
            Velocities(kT: 1.0),
        ],
        forces: [
            HarmonicRepulsion(r_cut: 1.0, pairs: { ("A", "A"): (alpha: 12.5) }),
            HarmonicBond(convention: Half, bonds: { "A-A": (k: 30.0, r0: 0.8) }),
            MorseBond(bonds: { "A-A": (depth: 1.0, a: 2.0, r0: 0.7) }),
        ],
        integrators: [ MtkNpt(kT: 1.0, tau: 0.5, pressure: 1.0, tau_p: 0.5, couple: None) ],
        analyzers: [ Thermo(every: 13, file: "t.csv"), Gsd(every: 20, file: "t.gsd") ],
        checkpoint: (every: 40),
        stages: [ (steps: 60, dt: 0.01) ],
    )"#;
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    for (f, together) in folders.iter().zip([false, true]) {
        std::fs::write(f.path().join("p.ron"), text).expect("written");
        go(f.path(), together, &[]);
    }
    same("bonded forces", folders[0].path(), folders[1].path());
}

/// A box that becomes too small inside a batch is the same error at the same step.
#[test]
fn the_persistent_kernel_reports_a_box_that_becomes_too_small() {
    if !has_compiler() {
        return;
    }
    let (forces, integrators) = (SOFT, "MtkNpt(kT: 1.0, tau: 0.5, pressure: 2000.0, tau_p: 0.2)");
    let messages = [false, true].map(|together| {
        let f = folder("Mixed", forces, integrators);
        let mut c = Command::new(program());
        c.current_dir(f.path()).args(["--pipeline", "p.ron", "--quiet", "--device", "emulated"]);
        if together {
            c.env("GALAMOST_EMULATED_STEPS", "1");
        }
        let out = c.output().expect("started");
        assert_eq!(out.status.code(), Some(1), "{}", words(&out));
        words(&out)
    });
    assert!(messages[0].contains("MtkNpt"), "{}", messages[0]);
    let error = |m: &str| m.lines().find(|l| l.contains("step")).map(String::from);
    assert_eq!(error(&messages[0]), error(&messages[1]));
}

/// A neighbor list that overflows inside a batch grows, and the batch continues.
#[test]
#[ignore = "5 seconds"]
fn the_persistent_kernel_recovers_from_a_list_overflow() {
    if !has_compiler() {
        return;
    }
    // a gas that collapses into a droplet: rows grow far beyond the estimate from the initial density
    let text = r#"(
        seed: 4, neighbors: (buffer: 0.3),
        initial: [ RandomPositions(count: 400, box: [14.0, 14.0, 14.0]), Velocities(kT: 0.1) ],
        forces: [ Gaussian(r_cut: 4.0, pairs: { ("A", "A"): (epsilon: -10.0, sigma: 1.5) }) ],
        integrators: [ CappedVerlet(max_displacement: 0.1) ],
        analyzers: [ Thermo(every: 100, file: "t.csv"), Gsd(every: 100, file: "t.gsd") ],
        checkpoint: (every: 100),
        stages: [ (steps: 200, dt: 0.01) ],
    )"#;
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    for (f, together) in folders.iter().zip([false, true]) {
        std::fs::write(f.path().join("p.ron"), text).expect("written");
        let mut c = Command::new(program());
        c.current_dir(f.path()).args(["--pipeline", "p.ron", "--device", "emulated"]);
        if together {
            c.env("GALAMOST_EMULATED_STEPS", "1");
        }
        let out = c.output().expect("started");
        assert!(out.status.success(), "{}", words(&out));
        assert!(words(&out).contains("the neighbor list grows"), "{}", words(&out));
    }
    same("overflow", folders[0].path(), folders[1].path());
}

/// Degrees of freedom do not depend on how a group names all particles.
#[test]
fn a_group_of_all_particles_is_all_particles() {
    let table = |group: &str| {
        let text = format!(
            r#"(seed: 4, initial: [Lattice(lattice: Sc, cells: [3, 3, 3], density: 0.5, types: {{ "A": 1.0 }}), Velocities(kT: 1.0)],
            forces: [HarmonicRepulsion(r_cut: 1.0, pairs: {{ ("A", "A"): (alpha: 12.5) }})],
            integrators: [NoseHoover(kT: 1.0, tau: 0.5{group})],
            analyzers: [Thermo(every: 5, file: "t.csv")], stages: [(steps: 20, dt: 0.01)])"#
        );
        let f = tempfile::tempdir().expect("a folder");
        std::fs::write(f.path().join("p.ron"), text).expect("written");
        let out = galamost_tests::galamost(f.path(), &["--pipeline", "p.ron", "--quiet", "--device", "cpu"]);
        assert!(out.status.success(), "{}", words(&out));
        std::fs::read_to_string(f.path().join("t.csv")).expect("a table")
    };
    assert_eq!(table(""), table(r#", group: Types(["A"])"#));
}

/// Random numbers depend on the number of a component. Analyzers are numbered last, also after integrators of stages.
#[test]
fn an_analyzer_more_changes_no_trajectory() {
    let text = |analyzers: &str| {
        format!(
            r#"(seed: 4, initial: [Lattice(lattice: Sc, cells: [4, 4, 4], density: 0.5, types: {{ "A": 1.0 }}), Velocities(kT: 1.0)],
            forces: [HarmonicRepulsion(r_cut: 1.0, pairs: {{ ("A", "A"): (alpha: 12.5) }})],
            analyzers: [Thermo(every: 5, file: "t.csv"), {analyzers}],
            stages: [(steps: 20, dt: 0.01, integrators: [Langevin(kT: 1.0, gamma: 1.0)])])"#
        )
    };
    let table = |analyzers: &str| {
        let f = tempfile::tempdir().expect("a folder");
        std::fs::write(f.path().join("p.ron"), text(analyzers)).expect("written");
        let out = galamost_tests::galamost(f.path(), &["--pipeline", "p.ron", "--quiet", "--device", "cpu"]);
        assert!(out.status.success(), "{}", words(&out));
        std::fs::read_to_string(f.path().join("t.csv")).expect("a table")
    };
    assert_eq!(table(""), table(r#"Gsd(every: 10, file: "t.gsd")"#));
}
