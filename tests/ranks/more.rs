//! Runs on several GPUs whose kernels and messages the quick tests have, too, in other combinations.

use super::{BONDED, CHAINS, CHI, JOINS, LJ, POINTS, SYSTEM, compare, ellipsoids, examples_are_the_same, pipeline};
use galamost_tests::{has_compiler, output};

/// An integrator that adds sums after the forces normalizes orientations before all ranks have read them.
#[test]
fn oriented_pairs_over_staged_lists_are_the_same_on_several_gpus() {
    if !has_compiler() {
        return;
    }
    let system = "initial: [Lattice(lattice: Sc, cells: [10, 10, 10], density: 3.0), Velocities(kT: 1.0),
        Orientations(inertia: (0.1, 0.1, 0.0), kT: 1.0)]";
    let janus = "TriblockJanus(pairs: { (\"A\", \"A\"): (alpha_r: 396.0, alpha_a: 132.0, beta_deg: 65.0) })";
    let more = "neighbors: (buffer: 0.1, list: Staged)";
    compare("Janus", &pipeline(system, janus, "RotationalBerendsen(kT: 1.0, tau: 0.3, tau_r: 0.1)", more), &[2, 3]);
    ellipsoids("RotationalBerendsen(kT: 1.0, tau: 0.3, tau_r: 0.1)", more, 2);
}

/// More bonds make records of candidates longer: numbers that an earlier search left in their memory were taken for candidates.
#[test]
fn reactions_that_need_longer_tables_are_the_same_on_several_gpus() {
    if !has_compiler() {
        return;
    }
    let system = "initial: [Polymers(box: [9.0, 9.0, 9.0], bond_length: 0.8, distance: 0.3,
        molecules: [(molecule: \"A4\", count: 54), (molecule: \"B\", count: 400)]),
        LinkTypes(bonds: [\"A-B\", \"B-B\"]), Velocities(kT: 1.0)]";
    let forces = "HarmonicBond(bonds: {\"*\": (k: 20.0, r0: 0.8)}), \
        HarmonicRepulsion(r_cut: 1.0, pairs: {(\"*\", \"*\"): (alpha: 10.0)})";
    let file = output().join("ranks-longer.csv").display().to_string();
    let joins = format!(
        "neighbors: (buffer: 0.1), updaters: [Reactions(every: 3, r_cut: 1.0, limits: {{\"A\": 3, \"B\": 4}}, file: \"{file}\", \
         reactions: [(kind: Join, of: (\"A\", \"B\"), p: 0.05), (kind: Join, of: (\"B\", \"B\"), p: 0.1)])]"
    );
    let text = pipeline(system, forces, "Langevin(kT: 1.0, gamma: 1.0)", &joins).replace("seed: 3", "seed: 2");
    compare("growing tables", &text, &[2, 3]);
}

/// Cases whose kernels and messages other tests of this file have, too.
#[test]
#[ignore = "a minute"]
fn more_systems_are_the_same_on_several_gpus() {
    if !has_compiler() {
        return;
    }
    let buffer = "neighbors: (buffer: 0.15)";
    let double = format!("{buffer}, precision: Double");
    compare("LJ", &pipeline(SYSTEM, LJ, "NoseHoover(kT: 1.2, tau: 0.5)", buffer), &[2]);
    compare("MtkNpt", &pipeline(SYSTEM, LJ, "MtkNpt(kT: 1.2, tau: 0.5, pressure: 1.0, tau_p: 1.0)", buffer), &[2]);
    let field = format!("{LJ}, PeriodicPoiseuille(force: 0.3, flow: X), ExternalExpression(energy: \"0.3*sin(x)\")");
    compare("fields in Double", &pipeline(SYSTEM, &field, "NoseHoover(kT: 1.2, tau: 0.5)", &double), &[3]);
    let paper = format!("MdScf(grid: [6, 7, 8], kappa: 0.2, {CHI}, scheme: Paper)");
    compare("MD-SCF", &pipeline(POINTS, &paper, "Langevin(kT: 1.0, gamma: 1.0)", buffer), &[2]);
    let mesh = "Gaussian(r_cut: 2.0, pairs: {(\"*\", \"*\"): (epsilon: 3.0, sigma: 0.5)}), \
                Pppm(accuracy: 1e-2, charges: Gaussian(0.4), r_cut: 2.5, alpha: 0.9, order: 4, grid: [12, 12, 15])";
    compare("Pppm", &pipeline(POINTS, mesh, "Langevin(kT: 1.0, gamma: 1.0)", buffer), &[2, 3]);
    let langevin = "RotationalLangevin(kT: 1.0, gamma: 1.0, gamma_r: 1.0)";
    ellipsoids(langevin, "neighbors: (buffer: 0.1, list: Plain)", 2);
    ellipsoids("RotationalVerlet()", "neighbors: (buffer: 0.1), precision: Double", 2);
}

/// Forces that need all particles are computed by the first rank; the search is shared.
#[test]
#[ignore = "half a minute"]
fn chains_grow_beside_a_force_of_all_particles() {
    if !has_compiler() {
        return;
    }
    let joins = JOINS.replace("FILE", &output().join("ranks-all.csv").display().to_string());
    let text = |more: &str| {
        let more = format!("neighbors: (buffer: 0.15{more}), updaters: [{joins}]");
        pipeline(CHAINS, BONDED, "Langevin(kT: 1.2, gamma: 1.0)", &more)
    };
    compare("chains", &text(""), &[2, 3, 4]);
    let joined = text("").replace(
        "forces: [",
        "forces: [ManyBodyDpd(B: 25.0, r_d: 0.75, r_cut: 1.0, pairs: { (\"*\", \"*\"): (A: -40.0) }), ",
    );
    compare("beside a force of all particles", &joined, &[3]);
}

#[test]
#[ignore = "half a minute"]
fn more_examples_write_the_same_files_on_several_gpus() {
    examples_are_the_same(&[("31-network", 24), ("34-field-blend", 6), ("76-impropers", 12)]);
}
