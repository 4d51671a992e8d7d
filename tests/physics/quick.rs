//! The quick tier, part of every test run: a liquid, a melt, a rotor and a field, each against a number that is not ours. The
//! growth rate of chains (`reactions::growth_follows_the_rate_equation_and_poisson_lengths`) and the number of lattice walks
//! (`rosenbluth::walks_of_the_cubic_lattice_are_counted`) belong to it.

use super::*;
use galamost_tests::tolerances::agrees;

#[test]
fn a_liquid_has_its_pressure_and_energy() {
    let lj = "LennardJones(r_cut: 3.0, pairs: {(\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0)})";
    let s = liquid(1.2, 0.7, lj, 0.004, 12_000);
    agrees("quick liquid: P", &s["pressure"]);
    agrees("quick liquid: U/N", &per_particle(&s));
}

/// Chains of 20 beads of Kremer and Grest. The kinetic part of the pressure is replaced by ρ kT, as in the reference.
#[test]
fn a_melt_has_its_pressure() {
    let (chains, beads, rho) = (50.0f64, 20.0, 0.85);
    let length = (chains * beads / rho).cbrt();
    let s = sampled(&format!(
        "(seed: 3, initial: [Polymers(box: [{length}, {length}, {length}], bond_length: 0.97, distance: 0.7, \
         molecules: [(molecule: \"A20\", count: 50)]), Velocities(kT: 1.0)], \
         forces: [LennardJones(r_cut: 1.122462048309373, mode: ShiftEnergy, \
         pairs: {{(\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0)}}), Fene(bonds: {{\"A-A\": (k: 30.0, R0: 1.5)}})], \
         stages: [(name: \"push-off\", steps: 3000, dt: 0.005, integrators: [CappedVerlet(max_displacement: 0.02)]), \
         (name: \"equilibrate\", steps: 15_000, dt: 0.01, integrators: [Langevin(kT: 1.0, gamma: 0.5)]), \
         (steps: 40_000, dt: 0.01, integrators: [Langevin(kT: 1.0, gamma: 0.5)], analyzers: [Thermo(every: 10, file: \"t.csv\")])])"
    ));
    let pressure: Vec<f64> = s["pressure"]
        .iter()
        .zip(s["kinetic"].iter().zip(&s["volume"]))
        .map(|(p, (k, v))| p - 2.0 * k / (3.0 * v) + rho)
        .collect();
    agrees("quick melt: P", &pressure);
}

/// Equipartition between translation and rotation of patchy particles.
#[test]
fn rotors_have_the_temperature_of_their_bath() {
    let s = sampled(
        "(seed: 4, initial: [Lattice(lattice: Sc, cells: [8, 8, 8], density: 3.0), Velocities(kT: 1.0), \
         Orientations(inertia: (0.05, 0.1, 0.2), kT: 1.0)], \
         forces: [Janus(pairs: {(\"A\", \"A\"): (alpha_r: 396.0, alpha_a: 132.0, beta_deg: 90.0, nu: 2.0)})], \
         integrators: [RotationalLangevin(kT: 1.0, gamma: 5.0, gamma_r: 1.0)], stages: [(steps: 2000, dt: 0.001), \
         (steps: 7000, dt: 0.001, analyzers: [Thermo(every: 20, file: \"t.csv\")])])",
    );
    agrees("quick rotors: kT of translation", &s["kT"]);
    agrees("quick rotors: kT of rotation", &s["kT_rotational"]);
}
