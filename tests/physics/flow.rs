//! Flows of the standard DPD liquid: viscosity in two ways, and how a flow sets in.

use super::motion::poiseuille_viscosity;
use super::*;

/// Slope of a straight line through points (k, v), by least squares.
fn slope(points: impl Iterator<Item = (f64, f64)>) -> f64 {
    let points: Vec<_> = points.collect();
    let (x, y) =
        (mean(&points.iter().map(|p| p.0).collect::<Vec<_>>()), mean(&points.iter().map(|p| p.1).collect::<Vec<_>>()));
    let (above, below) = points.iter().fold((0.0, 0.0), |(a, b), p| (a + (p.0 - x) * (p.1 - y), b + (p.0 - x).powi(2)));
    above / below
}

/// η of the DPD liquid from an imposed flow of momentum, with its error, and the deviation of the profile from two straight
/// lines over its height.
fn reverse_viscosity(every: u64) -> [f64; 3] {
    const SLABS: usize = 20;
    let f = tempfile::tempdir().expect("a folder");
    let text = format!(
        "(seed: 32, initial: [RandomPositions(count: 2940, box: [7.0, 7.0, 20.0]), Velocities(kT: 1.0)], \
         forces: [Dpd(r_cut: 1.0, kT: 1.0, pairs: {{(\"A\", \"A\"): (a: 25.0, sigma: 3.0)}})], integrators: [GrootWarren()], \
         updaters: [ReversePerturbation(every: {every}, report: 400, slabs: {SLABS}, file: \"m.csv\")], \
         stages: [(steps: 24401, dt: 0.01)])"
    );
    run_plan(&prepared(f.path(), &text)).unwrap_or_else(|e| panic!("{}", e.render()));
    let rows = csv(&f.path().join("m.csv"));
    // momentum diffuses through half the box in (L/2)²/(π² ν), 35 time units
    let late = 10;
    let flux = &rows["flux"][late..];
    let at = |k: usize| mean(&rows[&format!("v{k}")][late..]);
    let (width, half) = (20.0 / SLABS as f64, SLABS / 2);
    let lines = |v: &dyn Fn(usize) -> f64| {
        let line = |from: usize| slope((from + 1..from + half).map(|k| (k as f64 * width, v(k))));
        0.5 * (line(half) - line(0))
    };
    // block errors of flux/slope; the slope of a block is much noisier than the flux
    let slopes: Vec<f64> = (late..rows["flux"].len()).map(|r| lines(&|k| rows[&format!("v{k}")][r])).collect();
    let (gradient, error) = estimate(&slopes);
    let eta = mean(flux) / gradient;
    let height = at(0) - at(half);
    let bend = (0..half).map(|k| (at(k) - at(0) + gradient * width * k as f64).abs()).fold(0.0, f64::max) / height;
    println!(
        "{} {:?} | DPD, swaps every {every}: flux {:.5}, slope {gradient:.4} ± {error:.4}, η = {eta:.4} ± {:.4}, off the line {bend:.3}",
        precision(),
        device(),
        mean(flux),
        eta * error / gradient
    );
    [eta, eta * error / gradient, bend]
}

/// An imposed flow of momentum and two opposite flows under a force give one viscosity.
#[test]
#[ignore = "minutes"]
fn the_dpd_liquid_has_one_viscosity() {
    let (pushed, _) = poiseuille_viscosity(3.0, 0.06, 16_000);
    let imposed = reverse_viscosity(20);
    let error = pushed[1].hypot(imposed[1]);
    println!("η by a force {:.4}, by exchange {:.4}, error of the difference {error:.4}", pushed[0], imposed[0]);
    assert!((pushed[0] - imposed[0]).abs() < 4.0 * error + 0.02, "{pushed:?} {imposed:?}");
    // 20 slabs: the exchange disturbs the two in which it acts and their neighbors
    assert!(imposed[2] < 0.1, "the profile is off a line by {}", imposed[2]);
}

/// Plane Poiseuille flow that begins at t = 0: v = (g/2ν) z (D − z) − Σ 4gD²/(ν π³ m³) sin(mπz/D) exp(−m²π²νt/D²), m odd
/// (Sigalotti et al., J. Comput. Phys. 191 (2003) 622).
fn setting_in(g: f64, nu: f64, d: f64, z: f64, t: f64) -> f64 {
    use std::f64::consts::PI;
    let series = (0..50).map(|n| {
        let m = f64::from(2 * n + 1);
        4.0 * g * d * d / (nu * (PI * m).powi(3)) * (m * PI * z / d).sin() * (-(m * PI / d).powi(2) * nu * t).exp()
    });
    g / (2.0 * nu) * z * (d - z) - series.sum::<f64>()
}

/// Calls `into` with the distance from the wall plane and the velocity of each particle, by the symmetry of two opposite
/// flows of width `d` and of each flow about its middle.
fn fold_flows(b: &mut dyn Backend, d: f64, into: &mut dyn FnMut(f64, f64)) {
    let c = columns(b);
    let drift = mean(&c.velocity.iter().map(|v| v[0]).collect::<Vec<_>>());
    for (r, v) in c.position.iter().zip(&c.velocity) {
        let (z, u) = if r[2] >= 0.0 { (r[2], v[0] - drift) } else { (r[2] + d, drift - v[0]) };
        into(z.min(d - z), u);
    }
}

/// How two opposite flows set in, against the series with the viscosity of the same runs.
#[test]
#[ignore = "minutes"]
fn a_starting_flow_follows_the_series() {
    const D: f64 = 6.0;
    const BINS: usize = 5;
    const SEEDS: u32 = 6;
    let g = 0.08;
    let times = [2.0, 5.0, 10.0, 20.0, 40.0];
    let mut profiles = vec![[0.0; BINS]; times.len()];
    let mut counts = vec![[0.0; BINS]; times.len()];
    let mut steady = vec![];
    for seed in 0..SEEDS {
        let f = tempfile::tempdir().expect("a folder");
        let text = format!(
            "(seed: {seed}, initial: [RandomPositions(count: 3600, box: [10.0, 10.0, 12.0]), Velocities(kT: 1.0)], \
             forces: [Dpd(r_cut: 1.0, kT: 1.0, pairs: {{(\"A\", \"A\"): (a: 25.0, sigma: 3.0)}}), \
             PeriodicPoiseuille(force: Ramp(from: 0.0, to: {g:?}, start: 599, steps: 1), flow: X, gradient: Z)], \
             integrators: [GrootWarren()], stages: [(steps: 1, dt: 0.01)])"
        );
        let plan = prepared(f.path(), &text);
        let mut b = backend(&plan);
        plan.components.iter().for_each(|c| c.start(b.host()).expect("started"));
        b.begin_stage(&plan.stages[0], false).expect("a stage");
        advance(&mut *b, 600);
        let mut step = 0;
        for (k, t) in times.iter().enumerate() {
            // seven states of a window of 0.6 about each time
            for n in 0..7 {
                let next = (t * 100.0) as u64 - 30 + 10 * n;
                advance(&mut *b, next - step);
                step = next;
                fold_flows(&mut *b, D, &mut |z, u| {
                    let bin = ((z / (0.5 * D) * BINS as f64) as usize).min(BINS - 1);
                    profiles[k][bin] += u;
                    counts[k][bin] += 1.0;
                });
            }
        }
        advance(&mut *b, 6000 - step);
        for _ in 0..100 {
            advance(&mut *b, 40);
            let (mut flow, mut n) = (0.0, 0.0);
            fold_flows(&mut *b, D, &mut |_, u| {
                flow += u;
                n += 1.0;
            });
            steady.push(flow / n);
        }
    }
    let (v, error) = estimate(&steady);
    let nu = g * D * D / (12.0 * v);
    println!("{} {:?} | steady ⟨v⟩ {v:.4} ± {error:.4}, ν = {nu:.4}, η = {:.4}", precision(), device(), 3.0 * nu);
    let top = setting_in(g, nu, D, 0.5 * D, 1e9);
    // particles of a bin and of all seeds; the states of a window are hardly independent
    let noise = (f64::from(SEEDS) * 3600.0 / BINS as f64).sqrt().recip();
    let mut worst = 0.0f64;
    for (k, t) in times.iter().enumerate() {
        let mut line = format!("t {t:4}:");
        for bin in 0..BINS {
            let found = profiles[k][bin] / counts[k][bin];
            let (from, to) = (bin as f64 * 0.5 * D / BINS as f64, (bin + 1) as f64 * 0.5 * D / BINS as f64);
            let truth = mean(
                &(0..20)
                    .map(|n| setting_in(g, nu, D, from + (to - from) * (f64::from(n) + 0.5) / 20.0, *t))
                    .collect::<Vec<_>>(),
            );
            worst = worst.max((found - truth).abs());
            line += &format!("  {found:.3} ({truth:.3})");
        }
        println!("{line}");
    }
    println!("worst {worst:.4} of {top:.3} in the middle, noise {noise:.4}");
    assert!(worst < 4.0 * noise + 0.02 * top, "off by {worst}, noise {noise}, {top} in the middle");
    near("viscosity of the DPD liquid, σ 3", 3.0 * nu);
}
