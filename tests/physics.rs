//! Physics that takes minutes: numbers from the literature and from theory.
//!
//!     cargo test --release -p galamost-tests -- --ignored --nocapture --test-threads 1 physics::
//!
//! `GALAMOST_TEST_DEVICE` (`cpu`, `cuda:0`) and `GALAMOST_TEST_PRECISION` (`Mixed`) say where and how. Each test prints
//! what it found beside what it should be; a statistical value may differ by four standard errors and the tolerance.

use galamost::pipeline::DeviceChoice;
use galamost::plan::Plan;
use galamost::run::Backend;
use galamost_plugin_api::snapshot::{Link, Snapshot};
use galamost_plugin_api::views::Wanted;
use galamost_tests::{backend, columns, csv, mean, plan_in, plan_of, run_plan, unpack, unwrapped};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

fn device() -> DeviceChoice {
    let name = std::env::var("GALAMOST_TEST_DEVICE").unwrap_or_else(|_| "cpu".into());
    DeviceChoice::parse(&name).expect("a device")
}

fn precision() -> String {
    std::env::var("GALAMOST_TEST_PRECISION").unwrap_or_else(|_| "Mixed".into())
}

/// A checked plan; the text gets device and precision of the environment.
fn prepared(folder: &Path, text: &str) -> Plan {
    let text = text.replacen('(', &format!("(precision: {}, ", precision()), 1);
    plan_in(&folder.join("p.ron"), &text, device()).unwrap_or_else(|e| panic!("{}", e.render()))
}

/// Runs, and reads `t.csv`.
fn sampled(text: &str) -> BTreeMap<String, Vec<f64>> {
    let f = tempfile::tempdir().expect("a folder");
    run_plan(&prepared(f.path(), text)).unwrap_or_else(|e| panic!("{}", e.render()));
    csv(&f.path().join("t.csv"))
}

/// Mean and its standard error, from ten blocks.
fn estimate(values: &[f64]) -> (f64, f64) {
    const BLOCKS: usize = 10;
    let length = values.len() / BLOCKS;
    let blocks: Vec<f64> = values.chunks_exact(length).take(BLOCKS).map(mean).collect();
    let m = mean(&blocks);
    let variance = blocks.iter().map(|b| (b - m).powi(2)).sum::<f64>() / (BLOCKS - 1) as f64;
    (mean(values), (variance / BLOCKS as f64).sqrt())
}

/// Compares a row of values with a reference and tells.
fn holds(what: &str, values: &[f64], reference: f64, tolerance: f64) {
    let (m, error) = estimate(values);
    println!("{} {:?} | {what}: {m:.4} ± {error:.4}, reference {reference} ± {tolerance}", precision(), device());
    assert!(
        (m - reference).abs() < 4.0 * error + tolerance,
        "{what}: {m} ± {error}, reference {reference} ± {tolerance}"
    );
}

fn liquid(t: f64, rho: f64, pair: &str, dt: f64, steps: u64) -> BTreeMap<String, Vec<f64>> {
    let equilibration = (20.0 / dt) as u64;
    sampled(&format!(
        "(seed: 11, initial: [Lattice(lattice: Sc, cells: [10, 10, 10], density: {rho}), Velocities(kT: {t:?})], forces: [{pair}], \
         integrators: [NoseHoover(kT: {t:?}, tau: 0.5)], \
         stages: [(name: \"equilibrate\", steps: {equilibration}, dt: {dt}), \
         (steps: {steps}, dt: {dt}, analyzers: [Thermo(every: 10, file: \"t.csv\")])])"
    ))
}

fn per_particle(t: &BTreeMap<String, Vec<f64>>) -> Vec<f64> {
    t["potential"].iter().map(|u| u / 1000.0).collect()
}

/// Thol et al., J. Phys. Chem. Ref. Data 45, 023101 (2016), less the tail beyond 3 σ.
#[test]
#[ignore = "minutes"]
fn lennard_jones_liquids_have_their_pressure_and_energy() {
    for (t, rho, p, u) in
        [(1.0, 0.8, 1.420, -5.286), (1.2, 0.7, 0.969, -4.543), (2.0, 0.5, 1.230, -2.997), (3.0, 0.3, 1.056, -1.661)]
    {
        let lj = "LennardJones(r_cut: 3.0, pairs: {(\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0)})";
        let s = liquid(t, rho, lj, 0.004, 25_000);
        holds(&format!("LJ T {t} ρ {rho}: kT"), &s["kT"], t, 0.005 * t);
        holds(&format!("LJ T {t} ρ {rho}: P"), &s["pressure"], p, 0.03);
        holds(&format!("LJ T {t} ρ {rho}: U/N"), &per_particle(&s), u, 0.008);
    }
}

#[test]
#[ignore = "minutes"]
fn wca_liquids_have_their_pressure_and_energy() {
    for (rho, p, dp, u, du) in [(0.85, 8.18, 0.06, 0.992, 0.01), (0.70, 4.272, 0.03, 0.570, 0.006)] {
        let wca = "LennardJones(r_cut: 1.122462048309373, mode: ShiftEnergy, pairs: {(\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0)})";
        let s = liquid(1.0, rho, wca, 0.004, 25_000);
        holds(&format!("WCA ρ {rho}: P"), &s["pressure"], p, dp);
        holds(&format!("WCA ρ {rho}: U/N"), &per_particle(&s), u, du);
    }
}

/// rms(E)/|⟨E⟩| in NVE after NVT, ρ 0.8, T 1, L 12.
fn energy_noise(r_cut: f64, mode: &str, dt: f64, steps: u64) -> f64 {
    let s = sampled(&format!(
        "(seed: 5, initial: [Lattice(lattice: Fcc, cells: [7, 7, 7], density: 0.7939), Velocities(kT: 1.0)], \
         forces: [LennardJones(r_cut: {r_cut:?}, mode: {mode}, pairs: {{(\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0)}})], \
         stages: [(name: \"nvt\", steps: 5000, dt: 0.004, integrators: [NoseHoover(kT: 1.0, tau: 0.5)]), \
         (steps: {steps}, dt: {dt:?}, integrators: [VelocityVerlet()], analyzers: [Thermo(every: 20, file: \"t.csv\")])])"
    ));
    let e = &s["total"];
    let m = mean(e);
    let noise = mean(&e.iter().map(|x| (x - m).powi(2)).collect::<Vec<_>>()).sqrt() / m.abs();
    println!("{} {:?} | NVE r_cut {r_cut} {mode} dt {dt}: ΔE = {noise:.2e} over {steps} steps", precision(), device());
    noise
}

/// The GALAMOST paper, Fig 12.
#[test]
#[ignore = "minutes"]
fn energy_is_conserved_as_the_paper_says() {
    for dt in [0.002, 0.004] {
        let cut = energy_noise(3.4, "Cut", dt, 20_000);
        assert!((2.0e-5..6.5e-5).contains(&cut), "unshifted: {cut:e}");
        let shifted = energy_noise(3.4, "ShiftEnergy", dt, 20_000);
        assert!(shifted < 2.2e-5, "energy-shifted: {shifted:e}");
    }
    // r_cut = L/2
    let half = energy_noise(6.0, "ShiftEnergy", 0.004, 4_000);
    assert!(half < 2.2e-5, "r_cut = L/2: {half:e}");
    if precision() == "Double" {
        let (a, b) = (energy_noise(3.4, "ShiftForce", 0.002, 20_000), energy_noise(3.4, "ShiftForce", 0.004, 10_000));
        assert!((b / a / 4.0 - 1.0).abs() < 0.15, "ΔE ∝ dt²: {a:e}, {b:e}");
    }
}

const DPD: &str = "initial: [RandomPositions(n: 24000, box: [20.0, 20.0, 20.0]), Velocities(kT: 1.0)], \
     forces: [Dpd(r_cut: 1.0, kT: 1.0, pairs: {(\"A\", \"A\"): (a: 25.0, sigma: 3.0)})], integrators: [GrootWarren()]";

#[test]
#[ignore = "minutes"]
fn the_dpd_liquid_has_its_pressure_energy_and_temperature() {
    let s = sampled(&format!(
        "(seed: 8, {DPD}, stages: [(name: \"equilibrate\", steps: 1000, dt: 0.01), (steps: 4000, dt: 0.01, \
         analyzers: [Thermo(every: 5, file: \"t.csv\")])])"
    ));
    holds("DPD: kT", &s["kT"], 1.002, 0.004);
    holds("DPD: P", &s["pressure"], 23.68, 0.06);
    let u: Vec<f64> = s["potential"].iter().map(|u| u / 24000.0).collect();
    holds("DPD: U/N", &u, 4.546, 0.01);
}

/// Pairs within 1.2 by distance, in bins of 0.005; the box is cut into cells of 1.25.
fn pair_distances(position: &[[f64; 3]], length: f64, histogram: &mut [f64]) {
    let side = (length / 1.25) as usize;
    let cell = |x: f64| (((x / length + 0.5) * side as f64) as usize).min(side - 1);
    let mut cells = vec![vec![]; side * side * side];
    for (i, p) in position.iter().enumerate() {
        cells[(cell(p[2]) * side + cell(p[1])) * side + cell(p[0])].push(i);
    }
    for (i, p) in position.iter().enumerate() {
        let at = [cell(p[0]), cell(p[1]), cell(p[2])];
        for k in 0..27 {
            let c: [usize; 3] = std::array::from_fn(|d| (at[d] + side + k / 3usize.pow(d as u32) % 3 - 1) % side);
            for &j in cells[(c[2] * side + c[1]) * side + c[0]].iter().filter(|j| **j > i) {
                let d = |d: usize| {
                    let x = p[d] - position[j][d];
                    x - length * (x / length).round()
                };
                let r = (d(0).powi(2) + d(1).powi(2) + d(2).powi(2)).sqrt();
                if let Some(h) = histogram.get_mut((r / 0.005) as usize) {
                    *h += 1.0;
                }
            }
        }
    }
}

fn advance(b: &mut dyn Backend, steps: u64) {
    let stop = AtomicBool::new(false);
    let mut left = steps;
    while left > 0 {
        left -= b.advance(left, Wanted::FORCE, &stop).expect("steps");
    }
}

#[test]
#[ignore = "minutes"]
fn the_dpd_liquid_has_its_structure_and_diffusion() {
    let f = tempfile::tempdir().expect("a folder");
    let plan = prepared(f.path(), &format!("(seed: 9, {DPD}, stages: [(steps: 1, dt: 0.01)])"));
    let mut b = backend(&plan);
    b.begin_stage(&plan.stages[0], false).expect("a stage");
    advance(&mut *b, 1000);
    const FRAMES: usize = 40;
    let mut histogram = vec![0.0; 240];
    let start = unwrapped(&mut *b).0;
    let mut msd = vec![];
    for frame in 1..=FRAMES {
        advance(&mut *b, 50);
        pair_distances(&columns(&mut *b).position, 20.0, &mut histogram);
        let now = unwrapped(&mut *b).0;
        // without the drift of the centre of mass, which is zero to rounding here
        let square: f64 = now.iter().zip(&start).map(|(a, b)| (a - b).powi(2)).sum();
        msd.push((0.5 * frame as f64, square / 24000.0));
    }
    let g = |r: f64| {
        // the mean of three bins around r; the reference's bins are as wide
        let k = (r / 0.005) as usize;
        let pairs: f64 = histogram[k - 1..=k + 1].iter().sum();
        let (a, c) = ((k - 1) as f64 * 0.005, (k + 2) as f64 * 0.005);
        let ideal = 0.5 * 24000.0 * 3.0 * 4.0 / 3.0 * std::f64::consts::PI * (c.powi(3) - a.powi(3));
        (pairs / ideal / FRAMES as f64, pairs.sqrt() / ideal / FRAMES as f64)
    };
    for (r, reference) in [(0.4725, 0.506), (0.6725, 0.984), (0.8225, 1.154)] {
        let (found, error) = g(r);
        println!(
            "{} {:?} | DPD: g({r}) = {found:.4} ± {error:.4}, reference {reference} ± 0.01",
            precision(),
            device()
        );
        assert!((found - reference).abs() < 0.01 + 4.0 * error, "g({r}) = {found} ± {error}");
    }
    // slope from 4 to 20 time units
    let at = |t: f64| msd.iter().find(|m| m.0 == t).expect("a time").1;
    let d = (at(20.0) - at(4.0)) / (6.0 * 16.0);
    println!("{} {:?} | DPD: D = {d:.4}, reference 0.292 ± 5 %", precision(), device());
    assert!((d / 0.292 - 1.0).abs() < 0.05, "D = {d}");
}

/// Σp over 10⁴ steps.
#[test]
#[ignore = "minutes"]
fn momentum_stays_over_ten_thousand_steps() {
    let f = tempfile::tempdir().expect("a folder");
    let plan = prepared(
        f.path(),
        "(seed: 8, initial: [RandomPositions(n: 3000, box: [10.0, 10.0, 10.0]), Velocities(kT: 1.0)], \
         forces: [Dpd(r_cut: 1.0, kT: 1.0, pairs: {(\"A\", \"A\"): (a: 25.0, sigma: 3.0)})], integrators: [GrootWarren()], \
         stages: [(steps: 10000, dt: 0.01)])",
    );
    let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
    let p = b.sums().expect("sums").momentum.iter().fold(0.0f64, |m, p| m.max(p.abs()));
    println!("{} {:?} | DPD, 3000 particles: |Σp| = {p:.2e} after 10⁴ steps", precision(), device());
    assert!(p < if precision() == "Double" { 1e-11 } else { 0.05 }, "{p:e}");
}

#[test]
#[ignore = "minutes"]
fn the_diblock_melt_of_a_peer_runs_at_its_temperature() {
    let f = tempfile::tempdir().expect("a folder");
    unpack("a5b5-dpd-24000.xml.xz", &f.path().join("a5b5.xml"));
    let plan = prepared(
        f.path(),
        "(seed: 2, initial: [GalamostXml(file: \"a5b5.xml\"), Velocities(kT: 1.0)], \
         forces: [Dpd(r_cut: 1.0, kT: 1.0, pairs: {(\"A\", \"A\"): (a: 25.0, sigma: 3.0), (\"A\", \"B\"): (a: 40.0, sigma: 3.0), (\"B\", \"B\"): (a: 25.0, sigma: 3.0)}), \
         HarmonicBond(convention: Half, bonds: {\"A-A\": (k: 4.0, r0: 0.0), \"A-B\": (k: 4.0, r0: 0.0), \"B-B\": (k: 4.0, r0: 0.0)})], \
         integrators: [GrootWarren()], analyzers: [Thermo(every: 10, file: \"t.csv\")], stages: [(steps: 2000, dt: 0.04)])",
    );
    run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
    let kt = &csv(&f.path().join("t.csv"))["kT"][50..];
    holds("A5B5, 24,000 particles, dt 0.04: kT", kt, 1.0, 0.02);
}

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
        holds(&format!("{integrator}: ⟨K⟩"), &k, mean_k, 0.003 * mean_k);
        let squares: Vec<f64> = k.iter().map(|k| (k - mean_k).powi(2)).collect();
        holds(&format!("{integrator}: var K"), &squares, variance, 0.02 * variance);
        // the third central moment of the Gamma law, g kT³, through the skewness of K
        let third = mean(&k.iter().map(|k| (k - mean_k).powi(3)).collect::<Vec<_>>());
        println!("{integrator}: skewness {:.3}, Gamma {:.3}", third / variance.powf(1.5), (8.0 / g).sqrt());
    }
    // Berendsen's mean is right, its fluctuation is not
    let (k, g) = kinetic_energies("Berendsen(kT: 1.2, tau: 0.1)", 3.0);
    holds("Berendsen: ⟨K⟩", &k, 0.5 * g * KT, 0.003 * 0.5 * g * KT);
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

/// η of the standard DPD liquid from two opposite Poiseuille flows, with its error, for a force g on each particle; and
/// the ratio of the largest velocity to the mean one, 3/2 for a parabola.
fn poiseuille_viscosity(g: f64, steps: usize) -> ([f64; 2], f64) {
    const D: f64 = 6.0;
    const BINS: usize = 24;
    let f = tempfile::tempdir().expect("a folder");
    let text = format!(
        "(seed: 31, initial: [RandomPositions(n: 3600, box: [10.0, 10.0, 12.0]), Velocities(kT: 1.0)], \
         forces: [Dpd(r_cut: 1.0, kT: 1.0, pairs: {{(\"A\", \"A\"): (a: 25.0, sigma: 3.0)}}), \
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
        "{} {:?} | DPD in two flows, g {g}: ⟨v⟩ {v:.4} ± {error:.4}, η = {viscosity:.4} ± {:.4}, top/mean {:.3}",
        precision(),
        device(),
        viscosity * error / v,
        top / v
    );
    ([viscosity, viscosity * error / v], top / v)
}

/// η does not depend on the force, the profile is a parabola, and η is near Groot and Warren's estimate (J. Chem. Phys.
/// 107 (1997) 4423) ρ [45 kT/(4πγρ) + 2πγρ/1575] = 0.96 for ρ 3, γ 4.5, which leaves out the repulsion.
#[test]
#[ignore = "minutes"]
fn the_dpd_liquid_has_its_viscosity() {
    let (weak, strong) = (poiseuille_viscosity(0.03, 16_000), poiseuille_viscosity(0.06, 16_000));
    let difference = (weak.0[0] - strong.0[0]).abs();
    let error = weak.0[1].hypot(strong.0[1]);
    assert!(difference < 4.0 * error + 0.01, "η {} and {} ± {error}", weak.0[0], strong.0[0]);
    for (eta, shape) in [weak, strong] {
        assert!((eta[0] / 0.96 - 1.0).abs() < 0.2, "η = {}", eta[0]);
        assert!((shape - 1.5).abs() < 0.06, "top/mean {shape}");
    }
}
