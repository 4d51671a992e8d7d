//! Replica exchange: distributions and acceptance ratios of systems that are solved exactly, the same bits after a restart, and
//! mistakes found before the first step.

use galamost_tests::{csv, galamost, has_compiler, mean, program, words};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

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

fn go(folder: &Path, device: &str, args: &[&str]) {
    go_with(folder, device, "2", args);
}

fn go_with(folder: &Path, device: &str, threads: &str, args: &[&str]) {
    let mut c = Command::new(program());
    c.current_dir(folder).args(["--quiet", "--threads", threads, "--device", device]).args(args);
    let out = c.output().expect("started");
    assert!(out.status.success(), "{args:?}: {}", words(&out));
}

/// A row of the table of exchanges: the energy in each replica before, and the replica that each took its particles from.
struct Attempt {
    potentials: Vec<f64>,
    from: Vec<usize>,
}

fn attempts(table: &BTreeMap<String, Vec<f64>>, replicas: usize) -> Vec<Attempt> {
    let mut before: Vec<f64> = (0..replicas).map(|r| r as f64).collect();
    let row = |k: usize| {
        let of = |what: &str| (0..replicas).map(|r| table[&format!("{what}_{r}")][k]).collect::<Vec<f64>>();
        let walkers = of("walker");
        let from = walkers.iter().map(|w| before.iter().position(|b| b == w).expect("a permutation")).collect();
        before = walkers;
        Attempt { potentials: of("potential"), from }
    };
    (0..table["step"].len()).map(row).collect()
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
    assert!((gamma_cdf(SHAPE as f64 - 1.0 / 3.0) - 0.5).abs() < 1e-3);
    assert!((gamma_cdf(80.0) - 1.0).abs() < 1e-12);
}

/// Parallel tempering of harmonic systems.
#[test]
fn temperatures_of_harmonic_systems() {
    let kts = [1.0, 1.3, 1.7, 2.2];
    let f = tempfile::tempdir().expect("a folder");
    std::fs::write(f.path().join("p.ron"), dimers(&each(&kts), "1.0", 100, 400_100)).expect("written");
    go(f.path(), "cpu", &["--pipeline", "p.ron"]);
    let table = csv(&f.path().join("p.exchange.csv"));
    assert_eq!(table["step"].len(), 4000);
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
fn spring_constants_of_harmonic_systems() {
    let ks = [1.0, 1.3, 1.7];
    let f = tempfile::tempdir().expect("a folder");
    std::fs::write(f.path().join("p.ron"), dimers("0.9", &each(&ks), 100, 300_100)).expect("written");
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

/// Velocities are scaled with the square root of the temperature. Steps are so short that they do not change the kinetic energy.
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

fn devices() -> Vec<&'static str> {
    if has_compiler() { vec!["cpu", "emulated"] } else { vec!["cpu"] }
}

/// Systems whose restarts are compared: forces, integrators, updaters.
const SYSTEMS: [[&str; 3]; 3] = [
    // a thermostat with a state, equal forces
    [
        r#"HarmonicRepulsion(r_cut: 1.0, pairs: { ("*", "*"): (alpha: 12.5) })"#,
        "NoseHooverChain(kT: Each([1.0, 1.05, 1.1]), tau: 0.5)",
        "",
    ],
    // a thermostat in the forces, which differ
    [
        r#"Dpd(r_cut: 1.0, kT: Each([1.0, 1.1, 1.2]), pairs: { ("*", "*"): (a: Each([25.0, 25.5, 26.0]), sigma: 3.0) })"#,
        "GrootWarren()",
        "",
    ],
    // a thermostat as an updater
    [
        r#"HarmonicRepulsion(r_cut: 1.0, pairs: { ("*", "*"): (alpha: Each([12.5, 12.6, 12.7])) })"#,
        "Nve()",
        "LoweAndersen(kT: 1.0, r_cut: 1.0, nu: 5.0)",
    ],
];

fn liquid([forces, integrators, updaters]: [&str; 3], steps: u64) -> String {
    format!(
        "(seed: 5, neighbors: (buffer: 0.15), checkpoint: (every: 20), exchange: (every: 10),\n\
         initial: [Lattice(lattice: Sc, cells: [5, 6, 5], density: 2.0, types: {{\"A\": 0.5, \"B\": 0.5}}), Velocities(kT: 1.0)],\n\
         forces: [{forces}],\nintegrators: [{integrators}],\nupdaters: [{updaters}],\n\
         analyzers: [Thermo(every: 7, file: \"t.{{replica}}.csv\"), Gsd(every: 20, file: \"t.{{replica}}.gsd\")],\n\
         stages: [(name: \"one\", steps: 60, dt: 0.01), (name: \"two\", steps: {}, dt: 0.02)])",
        steps - 60
    )
}

fn outputs() -> Vec<String> {
    let of = |r: usize| ["t.#.csv", "t.#.gsd", "p.#.checkpoint"].map(|n| n.replace('#', &r.to_string()));
    (0..3).flat_map(of).chain(["p.exchange.csv".to_string()]).collect()
}

fn same(what: &str, a: &Path, b: &Path) {
    for file in outputs() {
        let read = |f: &Path| std::fs::read(f.join(&file)).unwrap_or_else(|e| panic!("{what}: {file}: {e}"));
        let (x, y) = (read(a), read(b));
        assert!(!x.is_empty() && x == y, "{what}: {file} differs");
    }
}

/// A run in two parts has the bits of one part: cut between attempts, at a step with an attempt, and at the end of a stage. A
/// replica whose newest checkpoint is missing, as after a kill, makes all resume from earlier ones. So does a number of threads.
#[test]
fn restarts_have_the_same_bits() {
    for device in devices() {
        for system in SYSTEMS {
            let whole = tempfile::tempdir().expect("a folder");
            let text = liquid(system, 97);
            std::fs::write(whole.path().join("p.ron"), &text).expect("written");
            go(whole.path(), device, &["--pipeline", "p.ron"]);
            let rows = attempts(&csv(&whole.path().join("p.exchange.csv")), 3);
            assert_eq!(rows.len(), 9);
            let moved = rows.iter().flat_map(|row| row.from.iter().enumerate()).filter(|(r, from)| r != *from).count();
            assert!(moved >= 4, "{}: {moved} replicas moved", system[0]);
            for steps in ["33", "40", "60"] {
                let cut = tempfile::tempdir().expect("a folder");
                std::fs::write(cut.path().join("p.ron"), &text).expect("written");
                go(cut.path(), device, &["--pipeline", "p.ron", "--steps", steps]);
                if steps == "33" {
                    // the newest one of replica 1 is now that of step 20
                    std::fs::rename(cut.path().join("p.1.checkpoint.1"), cut.path().join("p.1.checkpoint"))
                        .expect("an earlier checkpoint");
                }
                go(cut.path(), device, &["--pipeline", "p.ron", "--resume"]);
                same(&format!("{device}, {}, cut at step {steps}", system[0]), cut.path(), whole.path());
            }
            if device == "cpu" {
                let other = tempfile::tempdir().expect("a folder");
                std::fs::write(other.path().join("p.ron"), &text).expect("written");
                go_with(other.path(), device, "7", &["--pipeline", "p.ron"]);
                same("7 threads", other.path(), whole.path());
            }
        }
    }
}

/// A run that is killed resumes with the bits of one that was not.
#[test]
fn killed_runs_resume_with_the_same_bits() {
    let text = liquid(SYSTEMS[0], 30_000);
    let [whole, killed] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    for f in [&whole, &killed] {
        std::fs::write(f.path().join("p.ron"), &text).expect("written");
    }
    go(whole.path(), "cpu", &["--pipeline", "p.ron"]);
    let mut resume = vec![];
    let mut kills = 0;
    for checkpoint in ["p.2.checkpoint", "p.0.checkpoint.1"] {
        let _ = std::fs::remove_file(killed.path().join("mark"));
        let mut c = Command::new(program());
        c.current_dir(killed.path()).args(["--quiet", "--device", "cpu", "--pipeline", "p.ron"]).args(&resume);
        let before = std::fs::metadata(killed.path().join(checkpoint)).and_then(|m| m.modified()).ok();
        let mut child = c.spawn().expect("started");
        let begun = std::time::Instant::now();
        while std::fs::metadata(killed.path().join(checkpoint)).and_then(|m| m.modified()).ok() == before {
            assert!(begun.elapsed().as_secs() < 120, "no checkpoint");
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        std::thread::sleep(std::time::Duration::from_millis(37));
        child.kill().expect("killed");
        kills += usize::from(!child.wait().expect("ended").success());
        resume = vec!["--resume=auto"];
    }
    assert_eq!(kills, 2, "the run ended before it was killed");
    go(killed.path(), "cpu", &["--pipeline", "p.ron", "--resume"]);
    same("killed", killed.path(), whole.path());
}

/// The emulated device makes the decisions of the CPU while the trajectories agree.
#[test]
fn the_emulated_device_agrees_with_the_cpu() {
    if !has_compiler() {
        return;
    }
    for system in &SYSTEMS[..2] {
        let tables = ["cpu", "emulated"].map(|device| {
            let f = tempfile::tempdir().expect("a folder");
            let text = liquid(*system, 61).replace("seed: 5", "precision: Double, seed: 5");
            std::fs::write(f.path().join("p.ron"), text).expect("written");
            go(f.path(), device, &["--pipeline", "p.ron"]);
            csv(&f.path().join("p.exchange.csv"))
        });
        for (name, cpu) in &tables[0] {
            for (a, b) in cpu.iter().zip(&tables[1][name]) {
                assert!((a - b).abs() <= 1e-7 * a.abs(), "{name}: {a} on the CPU, {b} on the emulated device");
            }
        }
        assert_eq!(tables[0]["step"], [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
    }
}

/// If a replica fails, the others end at the next attempt with checkpoints of the one before.
#[test]
fn a_replica_that_fails_ends_the_others() {
    for device in devices() {
        let f = tempfile::tempdir().expect("a folder");
        let text = liquid(SYSTEMS[0], 97).replace("dt: 0.02", "dt: Each([0.02, 9.0, 0.02])");
        std::fs::write(f.path().join("p.ron"), &text).expect("written");
        let out = galamost(f.path(), &["--pipeline", "p.ron", "--device", device]);
        let log = words(&out);
        assert_eq!(out.status.code(), Some(1), "{log}");
        assert!(log.contains("1 of 3 replicas failed; the others ended at the next exchange"), "{log}");
        assert!(log.contains("another replica has ended its run"), "{log}");
        // after a correction, all resume together
        std::fs::write(f.path().join("p.ron"), text.replace("Each([0.02, 9.0, 0.02])", "0.02")).expect("written");
        go(f.path(), device, &["--pipeline", "p.ron", "--resume", "--resume-changed"]);
        assert_eq!(csv(&f.path().join("p.exchange.csv"))["step"].len(), 9);
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

/// Every mistake is found before the first step and has its place in the file.
#[test]
fn mistakes_are_located() {
    let f = tempfile::tempdir().expect("a folder");
    let good = liquid(SYSTEMS[0], 97);
    let check = |text: &str, at: &str, message: &str| {
        std::fs::write(f.path().join("p.ron"), text).expect("written");
        let out = galamost(f.path(), &["check", "p.ron", "--device", "cpu"]);
        let printed = words(&out);
        assert_eq!(out.status.code(), Some(2), "{message}: {printed}");
        let (k, line) = text.lines().enumerate().find(|(_, l)| l.contains(at)).expect(at);
        let column = line[..line.find(at).expect(at)].chars().count() + 1;
        let begin = format!("p.ron:{}:{column}:", k + 1);
        assert!(printed.lines().any(|l| l.starts_with(&begin) && l.contains(message)), "{begin} {message}\n{printed}");
        assert_eq!(printed.matches(message).count(), 1, "once: {printed}");
    };
    let (kt, exchange) = ("Each([1.0, 1.05, 1.1])", "(every: 10)");
    check(&good.replace(exchange, "(every: 0)"), "0),", "0 is not allowed here");
    check(&good.replace(exchange, "(evry: 10)"), "evry", "did you mean `every`?");
    check(&good.replace(kt, "1.0"), exchange, "an exchange needs all replicas in one run: set `replicas`");
    check(&good.replace("(every: 20)", "(every: 25)"), exchange, "must be a multiple of 10");
    check(&good.replace("(every: 20)", "(every: 20, keep: 1)"), exchange, "`keep` of `checkpoint` must be at least 2");
    let chain = "NoseHooverChain(kT: Each([1.0, 1.05, 1.1]), tau: 0.5)";
    check(
        &good.replace(chain, "Berendsen(kT: Each([1.0, 1.05, 1.1]), tau: 0.5)"),
        "(name: \"one\"",
        "stage `one` has no thermostat that samples the canonical distribution",
    );
    let ramp = good.replace(kt, "Each([1.0, 1.05, Ramp(from: 1.0, to: 2.0, steps: 50)])");
    check(&ramp, "NoseHooverChain", "NoseHooverChain: kT changes with time");
    let two = "Langevin(kT: 1.0, gamma: 1.0, group: Types([\"A\"])), Langevin(kT: Each([1.0, 1.05, 1.1]), gamma: 1.0, group: Types([\"B\"]))";
    let two = good.replace(chain, two).replace("[Langevin", "[\n Langevin").replace("), Langevin", "),\n   Langevin");
    check(&two, "Langevin(kT: E", "Langevin has kT 1.05, but Langevin has 1;");
    check(
        &good.replace(chain, &format!("{chain}, LeesEdwards(rate: 0.1)")),
        "LeesEdwards",
        "LeesEdwards drives a flow",
    );
    let npt = "MtkNpt(kT: Each([1.0, 1.05, 1.1]), tau: 0.5, pressure: 20.0, tau_p: 0.5)";
    check(
        &good.replace(chain, npt),
        "MtkNpt",
        "MtkNpt changes the box; replicas exchange particles at constant volume only",
    );
    check(
        &good.replace("density: 2.0", "density: Each([2.0, 2.0, 2.1])"),
        exchange,
        "the same box; those of replicas 0 and 2 differ",
    );
    check(
        &good.replace("[5, 6, 5]", "[5, 6, Each([5, 5, 6])]"),
        exchange,
        "numbers of particles of each type and mass",
    );
    check(
        &good.replace("{\"A\": 0.5, \"B\": 0.5}", "{\"A\": Each([0.5, 0.5, 0.4]), \"B\": Each([0.5, 0.5, 0.6])}"),
        exchange,
        "numbers of particles of each type and mass",
    );
    check(&good.replace("steps: 60", "steps: Each([60, 60, 70])"), exchange, "the same steps in each stage");
    check(
        &good.replace("seed: 5", "seed: 5, precision: Each([Mixed, Mixed, Double])"),
        exchange,
        "the same `precision`",
    );
    check(
        &good.replace("(every: 10)", "(every: 10, file: \"x.{replica}.csv\")"),
        "(every: 10, f",
        "the same `exchange`; those of replicas 0 and 1",
    );
    check(&good.replace("(every: 10)", "(every: 10, file: \"t.1.csv\")"), "\"t.1.csv\"", "also written by");
    std::fs::write(f.path().join("p.ron"), &good).expect("written");
    let out = galamost(f.path(), &["--pipeline", "p.ron", "--device", "cpu", "--resume"]);
    assert!(words(&out).contains("the replicas have no checkpoints of the same attempt"), "{}", words(&out));
}
