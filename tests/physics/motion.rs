//! Free particles, ensembles, conserved quantities and viscosity.

use super::*;

/// Free particles of mass 2 that have forgotten how they began, and their mean squared displacement at some times.
fn free_displacements(integrator: &str, dt: f64, relax: u64, steps: &[u64]) -> Vec<(f64, f64)> {
    const N: usize = 20_000;
    let mut s = Snapshot { dimensions: 3, box_length: [10.0; 3], ..Snapshot::default() };
    let a = s.type_id("A");
    for k in 0..N {
        s.push(a, [0.0; 3]);
        s.mass[k] = 2.0;
    }
    let text =
        format!("(seed: 6, precision: {}, integrators: [{integrator}], stages: [(steps: 1, dt: {dt:?})])", precision());
    let plan = plan_of(&text, s, device()).unwrap_or_else(|e| panic!("{}", e.render()));
    let mut b = backend(&plan);
    b.begin_stage(&plan.stages[0], false).expect("a stage");
    advance(&mut *b, relax);
    let start = unwrapped(&mut *b).0;
    let mut done = 0;
    let mut out = vec![];
    for n in steps {
        advance(&mut *b, n - done);
        done = *n;
        let now = unwrapped(&mut *b).0;
        let square: f64 = now.iter().zip(&start).map(|(a, b)| (a - b).powi(2)).sum();
        out.push((*n as f64 * dt, square / N as f64));
    }
    out
}

/// A squared displacement of free particles is a chi-square with three degrees of freedom: relative error √(2/3N).
fn displacement_holds(what: &str, t: f64, found: f64, truth: f64) {
    let error = truth * (2.0f64 / 60_000.0).sqrt();
    println!("{} {:?} | {what}: MSD({t}) = {found:.5} ± {error:.5}, theory {truth:.5}", precision(), device());
    assert!((found - truth).abs() < 4.0 * error, "{what}: MSD({t}) = {found}, theory {truth}");
}

/// MSD = 6 (kT/γ)[t − (m/γ)(1 − exp(−γt/m))], from the ballistic to the diffusive end; BAOAB is exact for any dt.
#[test]
#[ignore = "minutes"]
fn free_langevin_particles_diffuse_as_theory_says() {
    let (kt, gamma, m) = (1.5, 0.8, 2.0);
    for dt in [0.01, 0.5] {
        let steps = [1.0, 4.0, 20.0, 60.0].map(|t: f64| (t / dt) as u64);
        let relax = (30.0 / dt) as u64;
        for (t, msd) in free_displacements(&format!("Langevin(kT: {kt}, gamma: {gamma})"), dt, relax, &steps) {
            let truth = 6.0 * kt / gamma * (t - m / gamma * (1.0 - (-gamma * t / m).exp()));
            // the discrete velocity autocorrelation is that of the continuous process; positions follow it as
            // r += (v + v')dt/2, whose MSD differs by a known factor
            let c = (-gamma * dt / m).exp();
            let n = t / dt;
            let sum = n + 2.0 * (c / (1.0 - c)) * (n - (1.0 - c.powf(n)) / (1.0 - c));
            // ⟨w₀ w_k⟩ of w = (v + v')/2 is (kT/m) cᵏ (2 + c + 1/c)/4, and (1 + c)/2 for k = 0
            let exact = 3.0 * kt / m * dt * dt * ((2.0 + c + 1.0 / c) / 4.0 * (sum - n) + n * (1.0 + c) / 2.0);
            if dt < 0.1 {
                displacement_holds("Langevin", t, msd, truth);
            } else {
                displacement_holds("Langevin, dt 0.5", t, msd, exact);
            }
        }
    }
}

/// MSD = 6 kT t/γ at every time.
#[test]
#[ignore = "minutes"]
fn free_brownian_particles_diffuse_as_theory_says() {
    for (t, msd) in free_displacements("Brownian(kT: 1.5, gamma: 3.0)", 0.01, 0, &[1, 10, 100, 1000]) {
        displacement_holds("Brownian", t, msd, 6.0 * 1.5 * t / 3.0);
    }
}

/// The kinetic energy of 125 Lennard-Jones particles: samples, and the degrees of freedom g.
fn kinetic_energies(integrator: &str, fixed: f64) -> (Vec<f64>, f64) {
    let s = sampled(&format!(
        "(seed: 21, initial: [Lattice(lattice: Sc, cells: [5, 5, 5], density: 0.7), Velocities(kT: 1.2)], \
         forces: [LennardJones(r_cut: 2.3, mode: ShiftForce, pairs: {{(\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0)}})], \
         neighbors: (buffer: 0.4), integrators: [{integrator}], \
         stages: [(name: \"equilibrate\", steps: 4000, dt: 0.004), \
         (steps: 240000, dt: 0.004, analyzers: [Thermo(every: 10, file: \"t.csv\")])])"
    ));
    (s["kinetic"].clone(), 375.0 - fixed)
}

/// K follows Gamma(g/2, kT): mean g kT/2 and variance g kT²/2.
#[test]
#[ignore = "minutes"]
fn canonical_thermostats_have_the_canonical_kinetic_energy() {
    const KT: f64 = 1.2;
    for (integrator, fixed) in [
        ("NoseHooverChain(kT: 1.2, tau: 0.2, length: 3)", 3.0),
        ("Andersen(kT: 1.2, nu: 5.0)", 0.0),
        ("Langevin(kT: 1.2, gamma: 4.0)", 0.0),
        ("Bussi(kT: 1.2, tau: 0.1)", 3.0),
    ] {
        let (k, g) = kinetic_energies(integrator, fixed);
        let (mean_k, variance) = (0.5 * g * KT, 0.5 * g * KT * KT);
        // velocities of BAOAB are hotter or colder by a part ∝ dt², 0.2 % here
        holds(&format!("{integrator}: ⟨K⟩"), &k, mean_k, 0.003 * mean_k, 0.02 * mean_k);
        let squares: Vec<f64> = k.iter().map(|k| (k - mean_k).powi(2)).collect();
        holds(&format!("{integrator}: var K"), &squares, variance, 0.02 * variance, 0.25 * variance);
        // the third central moment of the Gamma law, g kT³, through the skewness of K
        let third = mean(&k.iter().map(|k| (k - mean_k).powi(3)).collect::<Vec<_>>());
        println!("{integrator}: skewness {:.3}, Gamma {:.3}", third / variance.powf(1.5), (8.0 / g).sqrt());
    }
    // Berendsen's mean is right, its fluctuation is not
    let (k, g) = kinetic_energies("Berendsen(kT: 1.2, tau: 0.1)", 3.0);
    holds("Berendsen: ⟨K⟩", &k, 0.5 * g * KT, 0.003 * 0.5 * g * KT, 0.005 * 0.5 * g * KT);
    let squares: Vec<f64> = k.iter().map(|k| (k - 0.5 * g * KT).powi(2)).collect();
    let (found, error) = estimate(&squares);
    println!("Berendsen: var K {found:.2} ± {error:.2}, canonical {:.2}", 0.5 * g * KT * KT);
    assert!(found + 4.0 * error < 0.6 * 0.5 * g * KT * KT, "Berendsen would pass as canonical: {found} ± {error}");
}

/// H' of thermostats that have one oscillates with an amplitude ∝ dt² and does not drift.
#[test]
#[ignore = "minutes"]
fn conserved_quantities_stay() {
    let noise = |integrator: &str, dt: f64| {
        let text = format!(
            "(seed: 5, initial: [Lattice(lattice: Sc, cells: [8, 8, 8], density: 0.7), Velocities(kT: 1.0)], \
             forces: [LennardJones(r_cut: 2.5, mode: ShiftForce, pairs: {{(\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0)}})], \
             integrators: [{integrator}], stages: [(name: \"equilibrate\", steps: 2000, dt: 0.004), \
             (steps: {}, dt: {dt:?}, analyzers: [Thermo(every: 5, file: \"t.csv\")])])",
            (40.0 / dt) as u64
        );
        let f = tempfile::tempdir().expect("a folder");
        let plan = plan_in(&f.path().join("p.ron"), &text.replacen('(', "(precision: Double, ", 1), device())
            .unwrap_or_else(|e| panic!("{}", e.render()));
        run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
        let s = csv(&f.path().join("t.csv"));
        let h = &s["conserved"];
        let m = mean(h);
        let rms = mean(&h.iter().map(|x| (x - m).powi(2)).collect::<Vec<_>>()).sqrt();
        let half = h.len() / 2;
        let drift = mean(&h[half..]) - mean(&h[..half]);
        println!("{:?} | {integrator} dt {dt}: H' {m:.3}, rms {rms:.2e}, second half less first {drift:.2e}", device());
        (rms, drift)
    };
    for integrator in ["NoseHooverChain(kT: 1.0, tau: 0.5)", "NoseHoover(kT: 1.0, tau: 0.5)"] {
        let (short, long) = (noise(integrator, 0.002), noise(integrator, 0.004));
        assert!((long.0 / short.0 / 4.0 - 1.0).abs() < 0.15, "{integrator}: H' ∝ dt²: {short:?} {long:?}");
        assert!(long.1.abs() < long.0, "{integrator} drifts: {long:?}");
    }
    // what Bussi keeps drifts as a random walk of integration errors, far below K itself (614 here)
    let (rms, _) = noise("Bussi(kT: 1.0, tau: 0.5)", 0.002);
    assert!(rms < 0.5, "Bussi: {rms}");
}

/// η of a DPD liquid (ρ 3, a 25) from two opposite Poiseuille flows, with its error, for a force g on each particle; and
/// the ratio of the largest velocity to the mean one, 3/2 for a parabola.
pub(super) fn poiseuille_viscosity(sigma: f64, g: f64, steps: usize) -> ([f64; 2], f64) {
    const D: f64 = 6.0;
    const BINS: usize = 24;
    let f = tempfile::tempdir().expect("a folder");
    let text = format!(
        "(seed: 31, initial: [RandomPositions(count: 3600, box: [10.0, 10.0, 12.0]), Velocities(kT: 1.0)], \
         forces: [Dpd(r_cut: 1.0, kT: 1.0, pairs: {{(\"A\", \"A\"): (a: 25.0, sigma: {sigma:?})}}), \
         PeriodicPoiseuille(force: {g:?}, flow: X, gradient: Z)], integrators: [GrootWarren()], \
         stages: [(steps: 1, dt: 0.01)])"
    );
    let plan = prepared(f.path(), &text);
    let mut b = backend(&plan);
    plan.components.iter().for_each(|c| c.start(b.host()).expect("started"));
    b.begin_stage(&plan.stages[0], false).expect("a stage");
    // momentum diffuses through D in D²/(π² ν), 13 time units
    advance(&mut *b, 6000);
    let (mut eta, mut profile, mut count) = (vec![], vec![0.0; BINS], vec![0.0; BINS]);
    for _ in 0..steps / 20 {
        advance(&mut *b, 20);
        let c = columns(&mut *b);
        let drift = mean(&c.velocity.iter().map(|v| v[0]).collect::<Vec<_>>());
        let mut flow = 0.0;
        for (r, v) in c.position.iter().zip(&c.velocity) {
            let (z, u) = if r[2] >= 0.0 { (r[2], v[0] - drift) } else { (r[2] + D, drift - v[0]) };
            flow += u;
            let bin = ((z / D * BINS as f64) as usize).min(BINS - 1);
            profile[bin] += u;
            count[bin] += 1.0;
        }
        // means of 1/⟨v⟩ would be biased: keep ⟨v⟩
        eta.push(flow / c.velocity.len() as f64);
    }
    let (v, error) = estimate(&eta);
    let viscosity = 3.0 * g * D * D / (12.0 * v);
    let at = |k: usize| profile[k] / count[k];
    let top = mean(&(BINS / 2 - 2..BINS / 2 + 2).map(at).collect::<Vec<_>>());
    println!(
        "{} {:?} | DPD of σ {sigma} in two flows, g {g}: ⟨v⟩ {v:.4} ± {error:.4}, η = {viscosity:.4} ± {:.4}, top/mean {:.3}",
        precision(),
        device(),
        viscosity * error / v,
        top / v
    );
    ([viscosity, viscosity * error / v], top / v)
}

/// Of two liquids η does not depend on the force, the profile is a parabola, and η is the known one. Groot and Warren's
/// estimate (J. Chem. Phys. 107 (1997) 4423) ρ [45 kT/(4πγρ) + 2πγρ/1575], which leaves out the repulsion, is printed only.
#[test]
#[ignore = "minutes"]
fn the_dpd_liquid_has_its_viscosity() {
    for (sigma, name) in [(3.0, "viscosity of the DPD liquid, σ 3"), (6.0, "viscosity of the DPD liquid, σ 6")] {
        let gamma = 0.5 * sigma * sigma;
        let pi = std::f64::consts::PI;
        let estimate = 3.0 * (45.0 / (4.0 * pi * gamma * 3.0) + 2.0 * pi * gamma * 3.0 / 1575.0);
        let (weak, strong) = (poiseuille_viscosity(sigma, 0.03, 16_000), poiseuille_viscosity(sigma, 0.06, 16_000));
        let difference = (weak.0[0] - strong.0[0]).abs();
        let error = weak.0[1].hypot(strong.0[1]);
        // 5 % of the viscosity
        assert!(error < 0.04, "± {error} is too noisy");
        assert!(difference < 4.0 * error + 0.01, "η {} and {} ± {error}", weak.0[0], strong.0[0]);
        for (eta, shape) in [weak, strong] {
            println!("η {:.3}, estimate {estimate:.3}", eta[0]);
            near(name, eta[0]);
            near("largest and mean velocity of a Poiseuille flow", shape);
        }
    }
}
