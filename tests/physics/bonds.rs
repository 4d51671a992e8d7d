//! Bonds sampled by free dimers, against quadrature.

use super::distribution::{Distribution, between, dot};
use super::*;

/// 1000 dimers with bonds of type X at random places; tags 2k and 2k + 1 belong together.
fn dimers(length: f64, r: f64) -> Snapshot {
    let mut s = Snapshot { dimensions: 3, box_length: [length; 3], ..Snapshot::default() };
    let a = s.type_id("A");
    s.bond_types = vec!["X".into()];
    // a sequence that fills the box evenly (additive recurrence); places need no more
    let place = |k: u32, step: f64| ((f64::from(k) * step).fract() - 0.5) * length;
    for k in 0..1000 {
        let at = [place(k, 0.819_172_513), place(k, 0.671_043_607), place(k, 0.549_700_478)];
        s.push(a, at);
        let z = at[2] + r;
        s.push(a, [at[0], at[1], if z < 0.5 * length { z } else { z - length }]);
        s.bonds.push(Link { kind: 0, tags: [2 * k, 2 * k + 1] });
    }
    s
}

/// Isolated dimers: pairs feel each other only through the thermostat, so each bond has its exact distribution, of density
/// r² exp(−U/kT).
fn dimers_sample(name: &str, bond: &str, u: &dyn Fn(f64) -> f64, start: f64, range: (f64, f64)) {
    let kt = 1.3;
    let length = 10.0;
    let text = format!(
        "(seed: 21, precision: {}, forces: [{bond}, \
         DpdThermostat(r_cut: 1.5, kT: {kt:?}, pairs: {{(\"A\", \"A\"): (gamma: 10.0)}})], \
         integrators: [GrootWarren(lambda: 0.5)], stages: [(steps: 1, dt: 0.002)])",
        precision()
    );
    let plan = plan_of(&text, dimers(length, start), device()).unwrap_or_else(|e| panic!("{}", e.render()));
    let lengths = |position: &[[f64; 3]]| {
        let one = |p: &[[f64; 3]]| {
            let d = between(p[1], p[0], length);
            dot(d, d).sqrt()
        };
        position.chunks_exact(2).map(one).collect()
    };
    let density = |r: f64| r * r * (-u(r) / kt).exp();
    let exact =
        Distribution {
            name, density: &density, range, means: &[("⟨r⟩", &|r| r, 5e-4), ("⟨r²⟩", &|r| r * r, 1e-3)]
        };
    exact.holds(&plan, 120, 200, &lengths);
}

#[test]
#[ignore = "minutes"]
fn bonds_have_their_distributions() {
    dimers_sample(
        "harmonic bond",
        "HarmonicBond(bonds: {\"X\": (k: 30.0, r0: 0.9)})",
        &|r| 30.0 * (r - 0.9).powi(2),
        0.9,
        (0.2, 1.6),
    );
    dimers_sample(
        "Gaussian bond",
        "HarmonicBond(bonds: {\"X\": (k: 2.0, r0: 0.0)})",
        &|r| 2.0 * r * r,
        0.9,
        (0.0, 3.2),
    );
    let wca = |r: f64| if r < 2f64.powf(1.0 / 6.0) { 4.0 * (r.powi(-12) - r.powi(-6)) + 1.0 } else { 0.0 };
    dimers_sample(
        "FENE bond",
        "Fene(bonds: {\"X\": (k: 30.0, R0: 1.5, epsilon: 1.0, sigma: 1.0)})",
        &|r| wca(r) - 33.75 * (1.0 - (r / 1.5).powi(2)).ln(),
        0.97,
        (0.75, 1.3),
    );
    dimers_sample(
        "FENE spring",
        "Fene(bonds: {\"X\": (k: 7.0, R0: 2.0)})",
        &|r| -14.0 * (1.0 - (r / 2.0).powi(2)).ln(),
        0.5,
        (0.0, 1.8),
    );
    dimers_sample(
        "Morse bond",
        "MorseBond(bonds: {\"X\": (depth: 25.0, a: 1.5, r0: 1.0)})",
        &|r| 25.0 * (1.0 - (-1.5 * (r - 1.0)).exp()).powi(2),
        1.0,
        (0.5, 2.0),
    );
    dimers_sample(
        "quartic bond",
        "QuarticBond(bonds: {\"X\": (k2: 20.0, k3: -25.0, k4: 40.0, r0: 1.0)})",
        &|r| {
            let s: f64 = r - 1.0;
            s * s * (20.0 - 25.0 * s + 40.0 * s * s)
        },
        1.0,
        (0.4, 1.9),
    );
}
