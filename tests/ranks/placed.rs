//! Rigid bodies, virtual sites and constraints: bodies and molecules that belong to several ranks.

use super::{compare, pipeline};
use galamost_tests::{has_compiler, program, words};

/// Bodies around the particles of a lattice, with `n` beads on a spiral about the center.
fn bodies(side: u32, n: usize) -> String {
    let bead = |k: usize| {
        let (turn, z) = (2.4 * k as f64, 1.0 - (2 * k + 1) as f64 / n as f64);
        let r = (1.0 - z * z).sqrt();
        format!("(type: \"A\", at: ({:.4}, {:.4}, {:.4}), mass: {})", r * turn.cos(), r * turn.sin(), z, 1 + k % 2)
    };
    let shape: Vec<String> = (0..n).map(bead).collect();
    format!(
        "initial: [Lattice(lattice: Sc, cells: [{side}, {side}, {side}], density: 0.06, types: {{ \"R\": 1.0 }}),
          Bodies(center: \"R\", shape: [{}], kT: 4.0), Velocities(kT: 4.0)]",
        shape.join(", ")
    )
}

const SOFT: &str = "Gaussian(r_cut: 1.2, pairs: { (\"A\", \"A\"): (epsilon: 8.0, sigma: 0.6), (\"R\", \"*\"): None })";
const DRAG: &str = "Dpd(r_cut: 1.2, kT: 1.0, pairs: { (\"A\", \"A\"): (a: 25.0, sigma: 3.0), (\"R\", \"*\"): None })";
const LANGEVIN: &str = "RotationalLangevin(kT: 4.0, gamma: 1.0, gamma_r: 1.0)";
const NPT: &str = "RotationalMtkNpt(kT: 4.0, tau: 0.3, tau_r: 0.3, pressure: 1.0, tau_p: 0.5)";
const ONLY: &str = "neighbors: (buffer: 0.1, only: OtherMolecules)";
const STAGED: &str = "neighbors: (buffer: 0.1, list: Staged)";

#[test]
#[ignore = "3 seconds"]
fn rigid_bodies_are_the_same_on_any_number_of_gpus() {
    if !has_compiler() {
        return;
    }
    let small = bodies(7, 4);
    compare("distributed", &pipeline(&small, &format!("{SOFT}, RigidBodies()"), NPT, STAGED), &[2]);
}

#[test]
#[ignore = "a minute"]
fn rigid_bodies_are_the_same_on_several_gpus_with_other_forces_and_integrators() {
    if !has_compiler() {
        return;
    }
    let small = bodies(7, 4);
    let text = |forces: &str, integrator: &str, more: &str| {
        pipeline(&small, &format!("{forces}, RigidBodies()"), integrator, more)
    };
    compare("bodies", &text(SOFT, LANGEVIN, ONLY), &[2, 3, 5]);
    compare("pressure", &text(SOFT, NPT, ONLY), &[3]);
    compare("velocities", &text(DRAG, "RotationalNoseHoover(kT: 4.0, tau: 0.5, tau_r: 0.5)", STAGED), &[2]);
    compare("Double", &text(DRAG, "RotationalVerlet()", &format!("{ONLY}, precision: Double")), &[3]);
    let all = r#"ManyBodyDpd(B: 25.0, r_d: 0.75, r_cut: 1.0, pairs: { ("*", "*"): (A: -40.0) })"#;
    compare("beside a force of all particles", &text(&format!("{SOFT}, {all}"), LANGEVIN, ONLY), &[3]);
    let large = pipeline(&bodies(3, 60), &format!("{SOFT}, RigidBodies()"), "RotationalVerlet()", ONLY);
    compare("bodies of 60 particles", &large, &[4]);
}

/// Rings with sites.
fn sites(times: u32) -> String {
    format!(
        "initial: [GalamostXml(file: \"77-virtual-sites.xml\"), Sites(atoms: 5, bonds: \"site\", sites: [
            (site: 3, from: [0, 1, 2], kind: Center), (site: 4, from: [0, 1, 2], kind: ThreeOut(a: 0.333, b: 0.333, c: 0.6))]),
          Replicate(times: [{times}, {times}, {times}]), Velocities(kT: 3.0)]"
    )
}

const SITE_PAIRS: &str = "Wca(pairs: { (\"Ring\", \"*\"): None, (\"Middle\", \"*\"): (epsilon: 1.0, sigma: 1.0), \
                          (\"Top\", \"Top\"): (epsilon: 1.0, sigma: 0.8) })";
const RING_BONDS: &str = "HarmonicBond(bonds: { \"Ring\": (k: 200.0, r0: 0.8), \"site\": None })";
const OTHERS: &str = "neighbors: (buffer: 0.05, exclude: [Bonds], only: OtherMolecules)";
const ISOTROPIC: &str = "MtkNpt(kT: 3.0, tau: 0.3, pressure: 1.0, tau_p: 0.5)";

#[test]
#[ignore = "10 seconds"]
fn sites_of_constrained_particles_are_the_same_on_several_gpus() {
    if !has_compiler() {
        return;
    }
    let forces = format!("{SITE_PAIRS}, VirtualSites(), Constraints(types: {{ \"Ring\": 0.8, \"site\": None }})");
    compare("constraints and pressure", &pipeline(&sites(5), &forces, ISOTROPIC, OTHERS), &[2]);
}

#[test]
#[ignore = "a minute"]
fn virtual_sites_are_the_same_on_any_number_of_gpus() {
    if !has_compiler() {
        return;
    }
    let system = sites(6);
    let rigid = format!("{SITE_PAIRS}, VirtualSites(), Constraints(types: {{ \"Ring\": 0.8, \"site\": None }})");
    compare("constraints and pressure", &pipeline(&system, &rigid, ISOTROPIC, OTHERS), &[3]);
    let text = |integrator: &str| {
        pipeline(&system, &format!("{SITE_PAIRS}, {RING_BONDS}, VirtualSites()"), integrator, OTHERS)
    };
    compare("sites", &text("Langevin(kT: 3.0, gamma: 1.0)"), &[2, 4]);
    compare("pressure", &text(ISOTROPIC), &[3]);
    let soft = format!("{SOFT}, {RING_BONDS}, VirtualSites()")
        .replace("(\"A\", \"A\")", "(\"*\", \"*\")")
        .replace("\"R\"", "\"Ring\"");
    compare("distributed", &pipeline(&system, &soft, ISOTROPIC, STAGED), &[3]);
}

const CHAINS: &str =
    "initial: [Polymers(box: [11.0, 11.0, 11.0], density: 0.8, bond_length: 1.0, distance: 0.6, molecules: [
    (molecule: \"A10\", fraction: 0.7), (molecule: \"A[1]A3A[1]\", fraction: 0.3)]), Velocities(kT: 1.0)]";

const RIGID_BONDS: &str =
    "Gaussian(r_cut: 1.5, pairs: { (\"A\", \"A\"): (epsilon: 2.0, sigma: 0.5) }), Constraints(types: { \"A-A\": 1.0 })";

/// Chains and rings with constraints.
pub fn constrained(integrator: &str, more: &str) -> String {
    pipeline(CHAINS, RIGID_BONDS, integrator, more)
}

#[test]
#[ignore = "5 seconds"]
fn constraints_are_the_same_on_several_gpus() {
    if !has_compiler() {
        return;
    }
    let npt = "MtkNpt(kT: 1.0, tau: 0.3, pressure: 1.0, tau_p: 0.5)";
    compare("a staged list", &constrained(npt, "neighbors: (buffer: 0.1, list: Staged)"), &[3]);
}

#[test]
#[ignore = "a minute"]
fn constraints_are_the_same_on_several_gpus_with_other_integrators() {
    if !has_compiler() {
        return;
    }
    let plain = "neighbors: (buffer: 0.1, exclude: [Bonds], list: Plain)";
    compare("Langevin", &constrained("Langevin(kT: 1.0, gamma: 2.0)", plain), &[3, 4]);
    compare("Double", &constrained("VelocityVerlet()", "neighbors: (buffer: 0.1), precision: Double"), &[2]);
}

/// With a staged list, but copies of ghosts instead of distributed arrays; and a run that another number of GPUs continues.
#[test]
#[ignore = "20 seconds"]
fn bodies_resume_on_another_number_of_gpus() {
    if !has_compiler() {
        return;
    }
    let more = format!("{STAGED}, analyzers: [Thermo(every: 2, file: \"t.csv\")], checkpoint: (every: 50)");
    let text = pipeline(&bodies(7, 4), &format!("{DRAG}, RigidBodies()"), LANGEVIN, &more);
    let run = |parts: &[(&str, &[&str])], ghosts: bool| {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("p.ron"), &text).expect("written");
        for (gpus, more) in parts {
            let args = ["--pipeline", "p.ron", "--device", "emulated", "--gpus", gpus, "--no-record"];
            let mut command = std::process::Command::new(program());
            command.current_dir(folder.path()).args([&args[..], *more].concat()).env_remove("GALAMOST_GHOSTS");
            if ghosts {
                command.env("GALAMOST_GHOSTS", "1");
            }
            let done = command.output().expect("runs");
            assert!(done.status.success(), "{}", words(&done));
        }
        std::fs::read_to_string(folder.path().join("t.csv")).expect("a table")
    };
    let whole = run(&[("1", &[])], false);
    assert!(whole.lines().count() > 10, "{whole}");
    assert_eq!(whole, run(&[("3", &[])], true));
    assert_eq!(whole, run(&[("3", &["--steps", "11"]), ("2", &["--resume"])], false));
}
