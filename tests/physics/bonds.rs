//! Bonds sampled by free dimers, against quadrature.

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

/// Bins of the histogram of bond lengths.
const BINS: usize = 16;

/// Mean, mean square and shares of `BINS` equal bins of the density r² exp(−U/kT) on low … high, by Simpson's rule.
fn bond_quadrature(u: &dyn Fn(f64) -> f64, kt: f64, low: f64, high: f64) -> (f64, f64, [f64; BINS]) {
    const N: usize = 2000;
    let h = (high - low) / (BINS * N) as f64;
    let (mut sums, mut shares) = ([0.0; 3], [0.0; BINS]);
    for (bin, share) in shares.iter_mut().enumerate() {
        for k in 0..=N {
            let r = low + (bin * N + k) as f64 * h;
            let simpson = if k == 0 || k == N { 1.0 } else { 2.0 + 2.0 * (k % 2) as f64 };
            let w = simpson * r * r * (-u(r) / kt).exp();
            *share += w;
            for (sum, x) in sums.iter_mut().zip([1.0, r, r * r]) {
                *sum += w * x;
            }
        }
    }
    (sums[1] / sums[0], sums[2] / sums[0], shares.map(|s| s / sums[0]))
}

/// Isolated dimers: pairs feel each other only through the thermostat, so each bond has its exact distribution.
fn dimers_sample(name: &str, bond: &str, u: &dyn Fn(f64) -> f64, start: f64, (low, high): (f64, f64)) {
    const FRAMES: usize = 120;
    let kt = 1.3;
    let length = 10.0;
    let text = format!(
        "(seed: 21, precision: {}, forces: [{bond}, \
         DpdThermostat(r_cut: 1.5, kT: {kt:?}, pairs: {{(\"A\", \"A\"): (gamma: 10.0)}})], \
         integrators: [GrootWarren(lambda: 0.5)], stages: [(steps: 1, dt: 0.002)])",
        precision()
    );
    let plan = plan_of(&text, dimers(length, start), device()).unwrap_or_else(|e| panic!("{}", e.render()));
    let mut b = backend(&plan);
    b.begin_stage(&plan.stages[0], false).expect("a stage");
    advance(&mut *b, 2500);
    let (mut r1, mut r2, mut shares) = (vec![], vec![], vec![vec![]; BINS]);
    for _ in 0..FRAMES {
        advance(&mut *b, 200);
        let c = columns(&mut *b);
        let lengths: Vec<f64> = (0..1000)
            .map(|k| {
                let d = |a: usize| {
                    let x = c.position[2 * k + 1][a] - c.position[2 * k][a];
                    x - length * (x / length).round()
                };
                (d(0).powi(2) + d(1).powi(2) + d(2).powi(2)).sqrt()
            })
            .collect();
        r1.push(mean(&lengths));
        r2.push(mean(&lengths.iter().map(|r| r * r).collect::<Vec<_>>()));
        for (bin, share) in shares.iter_mut().enumerate() {
            let edge = |k: usize| low + (high - low) * k as f64 / BINS as f64;
            let inside = lengths.iter().filter(|r| (edge(bin)..edge(bin + 1)).contains(*r)).count();
            share.push(inside as f64 / 1000.0);
        }
    }
    let (mean_r, mean_r2, exact) = bond_quadrature(u, kt, low, high);
    holds(&format!("{name}: ⟨r⟩"), &r1, mean_r, 5e-4);
    holds(&format!("{name}: ⟨r²⟩"), &r2, mean_r2, 1e-3);
    let mut chi2 = 0.0;
    for (bin, (share, p)) in shares.iter().zip(exact).enumerate() {
        let (m, error) = estimate(share);
        // what 120,000 independent lengths would have
        let error = error.max((p * (1.0 - p) / (1000.0 * FRAMES as f64)).sqrt());
        chi2 += ((m - p) / error).powi(2);
        assert!((m - p).abs() < 4.5 * error + 5e-4, "{name}, bin {bin}: {m} ± {error}, reference {p}");
    }
    let outside = 1.0 - shares.iter().map(|s| mean(s)).sum::<f64>();
    println!("{} {:?} | {name}: χ² of {BINS} bins {chi2:.1}, outside {outside:.1e}", precision(), device());
    assert!(chi2 < 50.0 && outside < 1e-3, "{name}: χ² {chi2}, outside {outside}");
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
