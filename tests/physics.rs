//! Physics: numbers from the literature and from theory. `quick` is part of every test run; the rest takes minutes and runs
//! with `cargo xtask validate`.
//!
//! `GALAMOST_TEST_DEVICE` (`cpu`, `cuda:0`) and `GALAMOST_TEST_PRECISION` (`Mixed`) say where and how. Each test prints
//! what it found beside what it should be; a statistical value may differ by four standard errors and the tolerance. Every such
//! test names the size of a wrong result that it detects, and fails if its run is too short or too noisy for that.

use galamost_engine::backend::Backend;
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::plan::Plan;
use galamost_plugin_api::snapshot::{Link, Snapshot};
use galamost_plugin_api::views::Wanted;
use galamost_tests::tolerances::{agrees_within, disagreement, estimate, near};
use galamost_tests::{advance, backend, columns, csv, mean, plan_in, plan_of, run_plan, unpack, unwrapped};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

mod angles;
mod bilayer;
mod bonds;
mod distribution;
mod dpd;
mod electrolyte;
mod field;
mod flow;
mod motion;
mod quick;

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
    sampled_in(tempfile::tempdir().expect("a folder").path(), text)
}

/// As [`sampled`], in a folder with files of the pipeline.
fn sampled_in(folder: &Path, text: &str) -> BTreeMap<String, Vec<f64>> {
    run_plan(&prepared(folder, text)).unwrap_or_else(|e| panic!("{}", e.render()));
    csv(&folder.join("t.csv"))
}

/// Compares values with a reference. A result that is off by `detects` fails, and so does a run that is too short or too noisy
/// to detect that; see [`disagreement`].
fn holds(what: &str, values: &[f64], reference: f64, tolerance: f64, detects: f64) {
    let (m, error) = estimate(values);
    println!(
        "{} {:?} | {what}: {m:.4} ± {error:.4}, reference {reference} ± {tolerance}, detects {detects:.4}",
        precision(),
        device()
    );
    if let Some(why) = disagreement(m, error, reference, tolerance, detects) {
        panic!("{what}: {why}");
    }
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
        let s = liquid(t, rho, lj, 0.004, 100_000);
        holds(&format!("LJ T {t} ρ {rho}: kT"), &s["kT"], t, 0.005 * t, 0.02 * t);
        holds(&format!("LJ T {t} ρ {rho}: P"), &s["pressure"], p, 0.03, 0.08);
        holds(&format!("LJ T {t} ρ {rho}: U/N"), &per_particle(&s), u, 0.008, 0.025);
    }
}

#[test]
#[ignore = "minutes"]
fn wca_liquids_have_their_pressure_and_energy() {
    for (rho, p, dp, u, du) in [(0.85, 8.18, 0.06, 0.992, 0.01), (0.70, 4.272, 0.03, 0.570, 0.006)] {
        let wca = "LennardJones(r_cut: 1.122462048309373, mode: ShiftEnergy, pairs: {(\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0)})";
        let s = liquid(1.0, rho, wca, 0.004, 25_000);
        holds(&format!("WCA ρ {rho}: P"), &s["pressure"], p, dp, 2.5 * dp);
        holds(&format!("WCA ρ {rho}: U/N"), &per_particle(&s), u, du, 2.5 * du);
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
        near("energy noise of an unshifted cutoff", cut);
        let shifted = energy_noise(3.4, "ShiftEnergy", dt, 20_000);
        // the GALAMOST paper, Fig 12, as read from the figure
        assert!(shifted < 2.2e-5, "energy-shifted: {shifted:e}");
    }
    // r_cut = L/2
    let half = energy_noise(6.0, "ShiftEnergy", 0.004, 4_000);
    assert!(half < 2.2e-5, "r_cut = L/2: {half:e}");
    if precision() == "Double" {
        let (a, b) = (energy_noise(3.4, "ShiftForce", 0.002, 20_000), energy_noise(3.4, "ShiftForce", 0.004, 10_000));
        near("ratio of energy noise at twice the time step", b / a);
    }
}

const DPD: &str = "initial: [RandomPositions(count: 24000, box: [20.0, 20.0, 20.0]), Velocities(kT: 1.0)], \
     forces: [Dpd(r_cut: 1.0, kT: 1.0, pairs: {(\"A\", \"A\"): (a: 25.0, sigma: 3.0)})], integrators: [GrootWarren()]";

#[test]
#[ignore = "minutes"]
fn the_dpd_liquid_has_its_pressure_energy_and_temperature() {
    let s = sampled(&format!(
        "(seed: 8, {DPD}, stages: [(name: \"equilibrate\", steps: 1000, dt: 0.01), (steps: 4000, dt: 0.01, \
         analyzers: [Thermo(every: 5, file: \"t.csv\")])])"
    ));
    holds("DPD: kT", &s["kT"], 1.002, 0.004, 0.015);
    holds("DPD: P", &s["pressure"], 23.68, 0.06, 0.12);
    let u: Vec<f64> = s["potential"].iter().map(|u| u / 24000.0).collect();
    holds("DPD: U/N", &u, 4.546, 0.01, 0.025);
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
        // without the drift of the center of mass, which is zero to rounding here
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
        // 0.01: the reference is the mean over a bin whose edges are not known
        assert!((found - reference).abs() < 0.01 + 4.0 * error, "g({r}) = {found} ± {error}");
    }
    // slope from 4 to 20 time units
    let at = |t: f64| msd.iter().find(|m| m.0 == t).expect("a time").1;
    let d = (at(20.0) - at(4.0)) / (6.0 * 16.0);
    println!("{} {:?} | DPD: D = {d:.4}, reference 0.292 ± 5 %", precision(), device());
    near("diffusion of the DPD liquid", d);
}

/// Σp over 10⁴ steps.
#[test]
#[ignore = "minutes"]
fn momentum_is_conserved_for_ten_thousand_steps() {
    let f = tempfile::tempdir().expect("a folder");
    let plan = prepared(
        f.path(),
        "(seed: 8, initial: [RandomPositions(count: 3000, box: [10.0, 10.0, 10.0]), Velocities(kT: 1.0)], \
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
    holds("A5B5, 24,000 particles, dt 0.04: kT", kt, 1.0, 0.02, 0.04);
}
