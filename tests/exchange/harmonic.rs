//! Systems that are solved exactly: distributions, acceptance ratios, velocities.

use super::{Attempt, attempts, devices, go};
use galamost_tests::{csv, galamost, mean, words};
use std::collections::BTreeMap;

/// Independent dimers with U = k r²: the energy of M of them has a gamma distribution of shape 3M/2 and scale kT.
const DIMERS: usize = 10;
const SHAPE: usize = 3 * DIMERS / 2;

/// Returns the probability that a gamma variate of shape [`SHAPE`] and scale 1 is below x.
fn gamma_cdf(x: f64) -> f64 {
    let mut term = (1..=SHAPE).fold((-x).exp(), |p, n| p * x / n as f64);
    let mut sum = term;
    for n in 1..400 {
        term *= x / (SHAPE + n) as f64;
        sum += term;
    }
    sum
}

/// Returns the acceptance ratio of two harmonic systems: 2 I_x(a, a) with x = 1/(1 + ratio), where a is [`SHAPE`] and `ratio` that
/// of the temperatures or of the spring constants. With integers, I_x(a, a) is a sum of binomial probabilities.
fn exact_acceptance(ratio: f64) -> f64 {
    let (n, x) = (2 * SHAPE - 1, 1.0 / (1.0 + ratio));
    let term = |j: usize| {
        let choose = (1..=j).fold(1.0, |c, i| c * (n + 1 - i) as f64 / i as f64);
        choose * x.powi(j as i32) * (1.0 - x).powi((n - j) as i32)
    };
    2.0 * (SHAPE..=n).map(term).sum::<f64>()
}

/// Returns a pipeline of dimers; `kt` and `k` are values of replicas or single ones.
fn dimers(kt: &str, k: &str, every: u64, steps: u64) -> String {
    format!(
        "(seed: 7, precision: Double, exchange: (every: {every}),\n\
         initial: [Polymers(box: [20.0, 20.0, 20.0], molecules: [(molecule: \"A2\", count: {DIMERS})], distance: 0.0), Velocities(kT: 1.0)],\n\
         forces: [HarmonicBond(bonds: {{ \"A-A\": (k: {k}, r0: 0.0) }})],\n\
         integrators: [Langevin(kT: {kt}, gamma: 2.0)],\n\
         stages: [(steps: {steps}, dt: 0.02)])"
    )
}

fn each(values: &[f64]) -> String {
    format!("Each({values:?})")
}

/// Checks that pair r attempts in every second row and accepts with the probability min(1, exp(−Δ)). `delta` is Δ of the pair from
/// the energies before. Returns the acceptance ratio and the number of attempts.
fn check_metropolis(rows: &[Attempt], r: usize, replicas: usize, delta: impl Fn(f64, f64) -> f64) -> (f64, f64) {
    let first = if replicas > 2 { r % 2 } else { 0 };
    let step = if replicas > 2 { 2 } else { 1 };
    let (mut accepted, mut expected, mut variance, mut made) = (0.0, 0.0, 0.0, 0.0);
    for (k, row) in rows.iter().enumerate() {
        let swapped = row.from[r] == r + 1;
        if k % step != first % step {
            assert!(!swapped, "pair {r} exchanged in row {k}");
            continue;
        }
        assert_eq!(swapped, row.from[r + 1] == r, "row {k}");
        let delta = delta(row.potentials[r], row.potentials[r + 1]);
        let p = (-delta).exp().min(1.0);
        assert!(swapped || delta > -1e-9, "row {k}: Δ = {delta} was rejected");
        accepted += f64::from(u8::from(swapped));
        (expected, variance, made) = (expected + p, variance + p * (1.0 - p), made + 1.0);
    }
    let z = (accepted - expected) / variance.sqrt();
    assert!(z.abs() < 4.0, "pair {r}: {accepted} accepted, {expected} expected: {z} standard deviations");
    (accepted / made, made)
}

fn check_ratio(what: &str, (ratio, made): (f64, f64), exact: f64) {
    let error = (exact * (1.0 - exact) / made).sqrt();
    assert!((ratio - exact).abs() < 4.0 * error, "{what}: {ratio}, exactly {exact} ± {error}");
}

/// Checks that energies have the gamma distribution of a temperature (Kolmogorov-Smirnov, p = 0.001), and their mean and variance.
fn check_distribution(what: &str, energies: &[f64], kt: f64) {
    let n = energies.len() as f64;
    let mut sorted: Vec<f64> = energies.iter().map(|u| u / kt).collect();
    sorted.sort_by(f64::total_cmp);
    let distance = |(k, x): (usize, &f64)| {
        let p = gamma_cdf(*x);
        (p - k as f64 / n).abs().max((p - (k + 1) as f64 / n).abs())
    };
    let d = sorted.iter().enumerate().map(distance).fold(0.0, f64::max);
    assert!(d * n.sqrt() < 1.95, "{what}: distance {d} of the distributions of {n} samples");
    let a = SHAPE as f64;
    assert!((mean(&sorted) - a).abs() < 4.0 * (a / n).sqrt(), "{what}: mean {}", mean(&sorted));
    // the variance of the sample variance of a gamma variate: (2 a² + 6 a)/n
    let variance = sorted.iter().map(|x| (x - a).powi(2)).sum::<f64>() / n;
    assert!((variance - a).abs() < 4.0 * ((2.0 * a * a + 6.0 * a) / n).sqrt(), "{what}: variance {variance}");
}

/// The reference formulas: I_½(a, a) is one half, and the median of a gamma variate is near a − 1/3.
#[test]
fn references_of_harmonic_systems() {
    assert!((exact_acceptance(1.0) - 1.0).abs() < 1e-12);
    // the median of a gamma variate is a − 1/3 + 8/(405 a): the density there times 8/(405 a)
    assert!((gamma_cdf(SHAPE as f64 - 1.0 / 3.0) - 0.5).abs() < 1e-3);
    assert!((gamma_cdf(80.0) - 1.0).abs() < 1e-12);
}

/// Parallel tempering of harmonic systems.
#[test]
#[ignore = "10 seconds"]
fn temperatures_of_harmonic_systems() {
    let kts = [1.0, 1.3, 1.7, 2.2];
    let f = tempfile::tempdir().expect("a folder");
    std::fs::write(f.path().join("p.ron"), dimers(&each(&kts), "1.0", 100, 160_100)).expect("written");
    go(f.path(), "cpu", &["--pipeline", "p.ron"]);
    let table = csv(&f.path().join("p.exchange.csv"));
    assert_eq!(table["step"].len(), 1600);
    let rows = attempts(&table, kts.len());
    let mut accepted = vec![];
    for r in 0..3 {
        let delta = |a: f64, b: f64| (1.0 / kts[r] - 1.0 / kts[r + 1]) * (b - a);
        let ratio = check_metropolis(&rows, r, kts.len(), delta);
        check_ratio(&format!("pair {r}"), ratio, exact_acceptance(kts[r + 1] / kts[r]));
        accepted.push((ratio.0 * ratio.1).round());
    }
    for (r, kt) in kts.iter().enumerate() {
        // without the relaxation from the initial state
        check_distribution(&format!("kT {kt}"), &table[&format!("potential_{r}")][20..], *kt);
    }
    // the record has the numbers of the table
    for (r, accepted) in accepted.iter().enumerate() {
        let record = std::fs::read_to_string(f.path().join(format!("p.{r}.run.json"))).expect("a record");
        let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
        let exchange = &record["runs"][0]["exchange"];
        assert_eq!(exchange["accepted"].as_f64(), Some(*accepted), "{exchange}");
        assert_eq!(exchange["walker"].as_f64(), table[&format!("walker_{r}")].last().copied());
        assert_eq!(exchange["round_trips"].as_u64(), Some(round_trips(&table, kts.len())), "{exchange}");
    }
    let out = galamost(f.path(), &["report", "p.0.ron"]);
    assert!(out.status.success(), "{}", words(&out));
    let page = std::fs::read_to_string(f.path().join("p.0.report.html")).expect("a report");
    assert!(page.contains("exchange with the next replica") && page.contains("round trips of all walkers"));
}

/// Returns the number of ways of walkers from the first replica to the last one and back.
fn round_trips(table: &BTreeMap<String, Vec<f64>>, replicas: usize) -> u64 {
    let mut trips = 0;
    for walker in 0..replicas {
        let begin = (walker == 0).then_some(0);
        let visits = (0..table["step"].len())
            .filter_map(|k| (0..replicas).find(|r| table[&format!("walker_{r}")][k] == walker as f64));
        let ends = begin.into_iter().chain(visits).filter(|r| *r == 0 || r + 1 == replicas);
        let mut ends: Vec<usize> = ends.skip_while(|r| *r != 0).collect();
        ends.dedup();
        trips += (ends.len() as u64).saturating_sub(1) / 2;
    }
    trips
}

/// Hamiltonian exchange of the spring constant at one temperature: the energy of the other replica's particles is computed.
#[test]
#[ignore = "5 seconds"]
fn spring_constants_of_harmonic_systems() {
    let ks = [1.0, 1.3, 1.7];
    let f = tempfile::tempdir().expect("a folder");
    std::fs::write(f.path().join("p.ron"), dimers("0.9", &each(&ks), 100, 160_100)).expect("written");
    go(f.path(), "cpu", &["--pipeline", "p.ron"]);
    let table = csv(&f.path().join("p.exchange.csv"));
    let rows = attempts(&table, ks.len());
    for r in 0..2 {
        // Δ = (k_r − k_r+1)(s_r+1 − s_r)/kT with s = U/k
        let delta = |a: f64, b: f64| (ks[r] - ks[r + 1]) * (b / ks[r + 1] - a / ks[r]) / 0.9;
        let ratio = check_metropolis(&rows, r, ks.len(), delta);
        check_ratio(&format!("pair {r}"), ratio, exact_acceptance(ks[r + 1] / ks[r]));
    }
    for (r, k) in ks.iter().enumerate() {
        check_distribution(&format!("k {k}"), &table[&format!("potential_{r}")][20..], 0.9);
    }
}

/// Velocities are scaled with the square root of the temperature. One step adds noise of the relative size √(2γ dt) = 2·10⁻⁴ to each
/// velocity, and at most as much to the kinetic energy; the bound is five times as large.
#[test]
fn velocities_are_scaled() {
    let kts = [1.0, 4.0, 9.0];
    for device in devices() {
        let f = tempfile::tempdir().expect("a folder");
        let text = dimers(&each(&kts), "0.001", 4, 41)
            .replace("dt: 0.02", "dt: 1e-8")
            .replace("Velocities(kT: 1.0)", &format!("Velocities(kT: {})", each(&kts)))
            .replace("stages:", "analyzers: [Thermo(every: 1, file: \"t.{replica}.csv\")], stages:");
        std::fs::write(f.path().join("p.ron"), text).expect("written");
        go(f.path(), device, &["--pipeline", "p.ron"]);
        let rows = attempts(&csv(&f.path().join("p.exchange.csv")), 3);
        let kinetic: Vec<Vec<f64>> = (0..3).map(|r| csv(&f.path().join(format!("t.{r}.csv")))["kT"].clone()).collect();
        let mut moved = 0;
        for (k, row) in rows.iter().enumerate() {
            let step = 4 * (k + 1);
            for (r, from) in row.from.iter().enumerate() {
                let expected = kinetic[*from][step] * kts[r] / kts[*from];
                let found = kinetic[r][step + 1];
                // see above: five times √(2γ dt)
                assert!(
                    (found / expected - 1.0).abs() < 1e-3,
                    "{device}, step {step}, replica {r}: {found}, {expected}"
                );
                moved += usize::from(r != *from);
            }
        }
        assert!(moved >= 6, "{moved}");
    }
}

/// A pair that exchanges almost never is reported.
#[test]
fn a_low_acceptance_ratio_is_a_warning() {
    let f = tempfile::tempdir().expect("a folder");
    std::fs::write(f.path().join("p.ron"), dimers(&each(&[1.0, 40.0]), "1.0", 5, 1_000)).expect("written");
    let out = galamost(f.path(), &["--pipeline", "p.ron", "--device", "cpu"]);
    assert!(words(&out).contains("(kT 1 and 40) exchange almost never"), "{}", words(&out));
    let table = std::fs::read_to_string(f.path().join("p.exchange.csv")).expect("a table");
    assert!(table.starts_with("step,walker_0,walker_1,potential_0,potential_1\n5,"), "{table}");
}
