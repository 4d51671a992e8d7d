//! Electrolytes: the Debye-Hückel limit.

use super::*;
use std::f64::consts::PI;

/// Core of an ion: Weeks, Chandler and Andersen, kT = ε = σ = 1.
fn core(r: f64) -> f64 {
    let x = r.powi(-6);
    if r < 2f64.powf(1.0 / 6.0) { 4.0 * (x * x - x) + 1.0 } else { 0.0 }
}

/// Excess free energy per volume of a 1:1 electrolyte: the limiting law of Debye and Hückel, and the second virial coefficient
/// of ions with screened charges. J. E. Mayer, J. Chem. Phys. 18 (1950) 1426.
fn excess(density: f64, bjerrum: f64) -> f64 {
    let kappa = (4.0 * PI * bjerrum * density).sqrt();
    let (h, mut integral) = (0.002, 0.0);
    for k in 1..100_000 {
        let r = h * f64::from(k);
        for sign in [1.0, -1.0] {
            let q = sign * bjerrum * (-kappa * r).exp() / r;
            // below 0.7 the core makes the first term vanish
            let first = if r < 0.7 { 0.0 } else { (-q - core(r)).exp() };
            integral += h * r * r * (first - 1.0 + q - 0.5 * q * q);
        }
    }
    -kappa.powi(3) / (12.0 * PI) - PI * density * density * integral
}

/// Energy per ion and osmotic coefficient of [`excess`].
fn theory(density: f64, bjerrum: f64) -> (f64, f64) {
    let by_density = (excess(density * 1.001, bjerrum) - excess(density * 0.999, bjerrum)) / (0.002 * density);
    let by_bjerrum = (excess(density, bjerrum * 1.001) - excess(density, bjerrum * 0.999)) / 0.002;
    (by_bjerrum / density, 1.0 + by_density - excess(density, bjerrum) / density)
}

/// The inverse square of the screening length: q²/S(q) → κ² for q → 0 (Stillinger and Lovett), from a line κ² + b q² through all
/// bins. Every wave vector has the same relative error.
fn screening(rows: &[(f64, f64, f64)]) -> f64 {
    // Σ v [S/q² (κ² + b q²) − 1]² is smallest
    let mut sums = [0.0; 5];
    for (q, vectors, s) in rows {
        let x = [s / (q * q), *s];
        for (slot, value) in [x[0] * x[0], x[0] * x[1], x[1] * x[1], x[0], x[1]].into_iter().enumerate() {
            sums[slot] += vectors * value;
        }
    }
    let [aa, ab, bb, a, b] = sums;
    (a * bb - b * ab) / (aa * bb - ab * ab)
}

/// Mean and standard error of a function of all blocks but one.
fn jackknife(blocks: usize, of: impl Fn(Option<usize>) -> f64) -> (f64, f64) {
    let n = blocks as f64;
    let without: Vec<f64> = (0..blocks).map(|k| of(Some(k))).collect();
    let center = mean(&without);
    let square: f64 = without.iter().map(|x| (x - center).powi(2)).sum();
    (of(None), ((n - 1.0) / n * square).sqrt())
}

/// Within three standard errors and the uncertainty of the theory; the standard error must be small enough to see the limit.
fn within(what: &str, (found, error): (f64, f64), theory: f64, uncertainty: f64, largest_error: f64) {
    println!("{} {:?} | {what}: {found:.5} ± {error:.5}, theory {theory:.5}", precision(), device());
    assert!(error < largest_error, "{what}: standard error {error}, at most {largest_error}");
    assert!((found - theory).abs() < 3.0 * error + uncertainty, "{what}: {found} ± {error}, theory {theory}");
}

/// 1,000 ions at the density 0.002 with l_B = 1: κ = 0.159, a box of 12.6 screening lengths.
#[test]
#[ignore = "minutes"]
fn dilute_electrolytes_obey_debye_and_hueckel() {
    const BLOCKS: usize = 10;
    const IONS: f64 = 1000.0;
    let (length, bjerrum) = (79.37f64, 1.0);
    let density = IONS / length.powi(3);
    let blocks: Vec<String> = (0..BLOCKS)
        .map(|k| {
            format!(
                "(name: \"block {k}\", steps: 8000, dt: 0.01, analyzers: [Thermo(every: 10, file: \"t{k}.csv\"), \
                 ChargeStructure(every: 100, file: \"s{k}.csv\", q_max: 0.3, bins: 12)])"
            )
        })
        .collect();
    let f = tempfile::tempdir().expect("a folder");
    let plan = prepared(
        f.path(),
        &format!(
            "(seed: 31, initial: [RandomPositions(count: 1000, box: [{length}, {length}, {length}], types: {{\"C\": 1.0, \"A\": 1.0}}, \
             charges: {{\"C\": 1.0, \"A\": -1.0}}), Velocities(kT: 1.0)], \
             forces: [Wca(pairs: {{(\"*\", \"*\"): (epsilon: 1.0, sigma: 1.0)}}), Pppm(accuracy: 5e-3, l_bjerrum: {bjerrum:?})], \
             integrators: [Langevin(kT: 1.0, gamma: 0.2)], \
             stages: [(name: \"push-off\", steps: 100, dt: 0.01, integrators: [CappedVerlet(max_displacement: 0.05)]), \
             (name: \"equilibrate\", steps: 6000, dt: 0.01), {}])",
            blocks.join(", ")
        ),
    );
    run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
    let thermo: Vec<_> = (0..BLOCKS).map(|k| csv(&f.path().join(format!("t{k}.csv")))).collect();
    let structure: Vec<_> = (0..BLOCKS).map(|k| csv(&f.path().join(format!("s{k}.csv")))).collect();
    // the mean of the other blocks, of a block's mean
    let over = |skip: Option<usize>, value: &dyn Fn(usize) -> f64| {
        mean(&(0..BLOCKS).filter(|k| Some(*k) != skip).map(value).collect::<Vec<_>>())
    };
    let energy = |k: usize| mean(&thermo[k]["Pppm"]) / IONS;
    let osmotic = |k: usize| {
        let t = &thermo[k];
        let rows = t["pressure"].iter().zip(t["kinetic"].iter().zip(&t["volume"]));
        // the kinetic part of the pressure is replaced by that of kT = 1
        1.0 + mean(&rows.map(|(p, (kinetic, v))| (p * v - 2.0 / 3.0 * kinetic) / IONS).collect::<Vec<_>>())
    };
    let kappa2 = |skip: Option<usize>| {
        let s = &structure[0];
        let row = |bin: usize| (s["q"][bin], s["vectors"][bin], over(skip, &|k| structure[k]["S_ZZ"][bin]));
        screening(&(0..s["q"].len()).map(row).collect::<Vec<_>>())
    };
    // periodic images make the system neutral: one mode less has its energy, −kT/2, and a third of it in PV
    let (u, phi) = theory(density, bjerrum);
    let (u, phi) = (u - 0.5 / IONS, phi - 1.0 / (6.0 * IONS));
    let error = |name: &str| galamost_tests::tolerances::bound(name);
    within("energy", jackknife(BLOCKS, |skip| over(skip, &energy)), u, error("Debye-Hückel: energy"), 0.002);
    within(
        "osmotic",
        jackknife(BLOCKS, |skip| over(skip, &osmotic)),
        phi,
        error("Debye-Hückel: osmotic coefficient"),
        0.001,
    );
    let truth = 4.0 * PI * bjerrum * density;
    within("κ²", jackknife(BLOCKS, kappa2), truth, 0.0, 0.1 * truth);
}

/// At the density 0.001 and l_B = 1, a solution of the hypernetted-chain equation for these ions has U/N = −0.05081 and
/// φ = 0.98619; the limiting law alone gives −0.05605 and 0.98132.
#[test]
fn the_theory_of_dilute_electrolytes_is_right() {
    let (u, phi) = theory(0.001, 1.0);
    // four digits of the solution
    assert!((phi - 0.98619).abs() < 1e-4 && (u + 0.05081).abs() < 1e-4, "{phi}, {u}");
    // the limit: φ → 1 − κ l_B/6
    let (u, phi) = theory(1e-7, 1.0);
    let law = (4.0 * PI * 1e-7f64).sqrt() / 6.0;
    assert!(((1.0 - phi) / law - 1.0).abs() < 0.02 && (u / (-3.0 * law) - 1.0).abs() < 0.02, "{phi}, {u}, {law}");
    // S = q²/(q² + κ²) has the κ² that it was made of
    let rows: Vec<_> = (1..9).map(|k| 0.05 * f64::from(k)).map(|q| (q, 6.0, q * q / (q * q + 0.025))).collect();
    assert!((screening(&rows) - 0.025).abs() < 1e-12);
}
