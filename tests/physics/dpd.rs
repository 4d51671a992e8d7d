//! The family of dissipative particle dynamics: time steps, pressures, free surfaces. `benches/dpd_curves.py` draws the
//! curves of which these are single points.

use super::*;

/// kT and pressure of the DPD liquid, ρ and a as given, σ 3.
fn dpd_liquid(integrator: &str, rho: f64, a: f64, dt: f64, time: f64) -> BTreeMap<String, Vec<f64>> {
    let n = (rho * 512.0) as u64;
    let (relax, steps) = ((10.0 / dt) as u64, (time / dt) as u64);
    sampled(&format!(
        "(seed: 12, initial: [RandomPositions(count: {n}, box: [8.0, 8.0, 8.0]), Velocities(kT: 1.0)], \
         forces: [Dpd(r_cut: 1.0, kT: 1.0, pairs: {{(\"A\", \"A\"): (a: {a:?}, sigma: 3.0)}})], integrators: [{integrator}], \
         stages: [(name: \"equilibrate\", steps: {relax}, dt: {dt:?}), (steps: {steps}, dt: {dt:?}, \
         analyzers: [Thermo(every: 2, file: \"t.csv\")])])"
    ))
}

/// Besold et al., Phys. Rev. E 62 (2000) R7611: friction of the present velocities brings kT closer to its target.
#[test]
#[ignore = "minutes"]
fn forces_computed_again_bring_kt_closer() {
    for dt in [0.05, 0.06] {
        let off = |integrator: &str| {
            let (kt, error) = estimate(&dpd_liquid(integrator, 3.0, 25.0, dt, 60.0)["kT"]);
            println!("{} {:?} | dt {dt}, {integrator}: kT − 1 = {:+.4} ± {error:.4}", precision(), device(), kt - 1.0);
            (kt - 1.0, error)
        };
        let (plain, again) = (off("GrootWarren(lambda: 0.5)"), off("DpdVerlet()"));
        let closer = plain.0 - again.0.abs();
        assert!(
            again.0.abs() < 0.5 * plain.0 && closer > 4.0 * plain.1.hypot(again.1),
            "dt {dt}: {again:?}, {plain:?}"
        );
    }
}

/// Groot and Warren, J. Chem. Phys. 107 (1997) 4423: P = ρkT + αaρ² with α = 0.101 ± 0.001 for ρ > 2. At ρ = 3, a = 25 that
/// is 25.7 where simulations give 23.7, so what is held here is the approach to it.
#[test]
#[ignore = "minutes"]
fn the_pressure_of_dpd_grows_towards_its_limit() {
    let alpha = |rho: f64| {
        let (p, error) = estimate(&dpd_liquid("GrootWarren()", rho, 25.0, 0.01, 30.0)["pressure"]);
        let alpha = (p - rho) / (25.0 * rho * rho);
        println!("{} {:?} | DPD ρ {rho}: P = {p:.3} ± {error:.3}, α = {alpha:.4}", precision(), device());
        alpha
    };
    let found = [2.0, 3.0, 5.0, 8.0].map(alpha);
    assert!(found.is_sorted(), "{found:?}");
    near("α of the DPD liquid at ρ 3", found[1]);
    near("α of the DPD liquid at ρ 8", found[3]);
}

/// Pressures of the soft liquid with Lowe's thermostat, from the examples of Allen and Tildesley, Computer Simulation of
/// Liquids (their DPD program, T = 1): a ρ = 75.
#[test]
#[ignore = "minutes"]
fn the_liquid_of_lowe_andersen_has_its_pressure() {
    for (rho, p) in [(2.0, 14.320), (3.0, 23.637), (4.0, 32.622)] {
        let n = (rho * 512.0) as u64;
        // α (1 − r)² has the force 2α (1 − r)
        let alpha = 37.5 / rho;
        let t = sampled(&format!(
            "(seed: 13, initial: [RandomPositions(count: {n}, box: [8.0, 8.0, 8.0]), Velocities(kT: 1.0)], \
             forces: [HarmonicRepulsion(r_cut: 1.0, pairs: {{(\"A\", \"A\"): (alpha: {alpha:?})}})], \
             integrators: [VelocityVerlet()], updaters: [LoweAndersen(kT: 1.0, nu: 10.0, r_cut: 1.0)], \
             stages: [(name: \"equilibrate\", steps: 1000, dt: 0.02), (steps: 5000, dt: 0.02, \
             analyzers: [Thermo(every: 2, file: \"t.csv\")])])"
        ));
        holds(&format!("Lowe-Andersen ρ {rho}: kT"), &t["kT"], 1.0, 0.004, 0.02);
        holds(&format!("Lowe-Andersen ρ {rho}: P"), &t["pressure"], p, 0.05, 0.12);
    }
}

/// Diffusion slows as ν grows: collisions of pairs are what carries momentum.
#[test]
#[ignore = "minutes"]
fn collisions_slow_diffusion() {
    let d = |nu: f64| {
        let f = tempfile::tempdir().expect("a folder");
        let plan = prepared(
            f.path(),
            &format!(
                "(seed: 14, initial: [RandomPositions(count: 1536, box: [8.0, 8.0, 8.0]), Velocities(kT: 1.0)], \
                 forces: [HarmonicRepulsion(r_cut: 1.0, pairs: {{(\"A\", \"A\"): (alpha: 12.5)}})], \
                 integrators: [VelocityVerlet()], updaters: [LoweAndersen(kT: 1.0, nu: {nu:?}, r_cut: 1.0)], \
                 analyzers: [GalamostXml(every: 1000, file: \"{{step}}.xml\")], stages: [(steps: 3000, dt: 0.02)])"
            ),
        );
        run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
        let place = |step: u64| -> Vec<f64> {
            let text = std::fs::read_to_string(f.path().join(format!("{step:010}.xml"))).expect("a frame");
            let rows = |node: &str| -> Vec<f64> {
                let (_, rest) = text.split_once(&format!("<{node} num=\"1536\">")).expect("a node");
                let body = rest.split_once("</").expect("its end").0;
                body.split_whitespace().map(|x| x.parse().expect("a number")).collect()
            };
            rows("position").iter().zip(rows("image")).map(|(x, i)| x + 8.0 * i).collect()
        };
        let (a, b) = (place(1000), place(3000));
        let square: f64 = a.iter().zip(&b).map(|(a, b)| (a - b).powi(2)).sum();
        let d = square / 1536.0 / (6.0 * 40.0);
        println!("{} {:?} | Lowe-Andersen ν {nu}: D = {d:.4}", precision(), device());
        d
    };
    let found = [1.0, 5.0, 25.0].map(d);
    assert!(found[0] > 1.5 * found[1] && found[1] > 1.5 * found[2] && found[2] > 0.01, "{found:?}");
}

const MANY_BODY: &str = "ManyBodyDpd(B: 25.0, r_d: 0.75, r_cut: 1.0, pairs: {(\"A\", \"A\"): (A: -40.0)}), \
     DpdThermostat(r_cut: 1.0, kT: 1.0, pairs: {(\"A\", \"A\"): (sigma: 6.0)})";

/// A film of many-body liquid: density inside, pressure across it, surface tension.
#[test]
#[ignore = "minutes"]
fn a_film_of_many_body_liquid_has_its_density() {
    const N: f64 = 3600.0;
    let f = tempfile::tempdir().expect("a folder");
    let plan = prepared(
        f.path(),
        &format!(
            "(seed: 15, initial: [RandomPositions(count: 3600, box: [7.0, 7.0, 22.0]), Velocities(kT: 1.0)], \
             integrators: [GrootWarren()], updaters: [ZeroMomentum(every: 50)], stages: [(name: \"gather\", steps: 1000, dt: 0.01, forces: [{MANY_BODY}, \
             ExternalExpression(energy: \"20*(1 - cos(2*pi*z/Lz))\")]), \
             (name: \"relax\", steps: 2000, dt: 0.01, forces: [{MANY_BODY}]), \
             (steps: 6000, dt: 0.01, forces: [{MANY_BODY}], analyzers: [Thermo(every: 1, file: \"t.csv\"), \
             GalamostXml(every: 100, file: \"{{step}}.xml\")])])"
        ),
    );
    run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
    let t = csv(&f.path().join("t.csv"));
    let gamma: Vec<f64> = (0..t["kT"].len())
        .map(|k| 11.0 * (t["pressure_zz"][k] - 0.5 * (t["pressure_xx"][k] + t["pressure_yy"][k])))
        .collect();
    let (mut density, mut outside) = (vec![], 0);
    for step in (3100..=9000).step_by(100) {
        let text = std::fs::read_to_string(f.path().join(format!("{step:010}.xml"))).expect("a frame");
        let body =
            text.split_once("<position num=\"3600\">").expect("positions").1.split_once("</").expect("its end").0;
        let z: Vec<f64> = body.lines().filter_map(|l| l.split_whitespace().nth(2)?.parse().ok()).collect();
        assert_eq!(z.len(), 3600);
        // the middle of the film, on the circle that z is
        let turn = 2.0 * std::f64::consts::PI / 22.0;
        let (sin, cos) = z.iter().fold((0.0, 0.0), |(s, c), z| (s + (turn * z).sin(), c + (turn * z).cos()));
        let middle = sin.atan2(cos) / turn;
        let far = |z: &f64| ((z - middle) - 22.0 * ((z - middle) / 22.0).round()).abs();
        density.push(z.iter().filter(|z| far(z) < 4.0).count() as f64 / (8.0 * 49.0));
        outside += z.iter().filter(|z| far(z) > 9.0).count();
    }
    println!("{} {:?} | film: {outside} of {} particles far away", precision(), device(), 60.0 * N);
    holds("film: kT", &t["kT"], 1.0, 0.03, 0.05);
    // where Warren's fit has P = 0, ρ = 6.1
    holds("film: density", &density, 6.1, 0.08, 0.15);
    // 0 but for the time step: the velocities between two steps, not those at a step, balance the forces
    holds("film: P across", &t["pressure_zz"], 0.0, 0.25, 0.5);
    // a longer run of a smaller film, with another seed; see `example 24` in tests/tolerances.ron
    holds("film: surface tension", &gamma, 7.64, 0.2, 2.4);
    assert!(outside < 60, "{outside} particles left the film");
}

/// P = ρkT + αAρ² + 2αBr_d⁴(ρ³ − cρ² + d), α 0.101, c 4.16, d 18: Warren's fit for liquids of densities above 6.
#[test]
#[ignore = "minutes"]
fn bulk_many_body_liquids_have_their_pressure() {
    for rho in [6.5f64, 7.0, 8.0] {
        let n = (rho * 216.0) as u64;
        let t = sampled(&format!(
            "(seed: 16, initial: [RandomPositions(count: {n}, box: [6.0, 6.0, 6.0]), Velocities(kT: 1.0)], forces: [{MANY_BODY}], \
             integrators: [GrootWarren()], stages: [(name: \"equilibrate\", steps: 1000, dt: 0.01), (steps: 3000, dt: 0.01, \
             analyzers: [Thermo(every: 5, file: \"t.csv\")])])"
        ));
        let fit = rho - 0.101 * 40.0 * rho * rho
            + 2.0 * 0.101 * 25.0 * 0.75f64.powi(4) * (rho.powi(3) - 4.16 * rho * rho + 18.0);
        // Warren's c is 4.16 ± 0.02 and d 18 ± 1: twice their effect on P
        let tolerance = 4.0 * 0.101 * 25.0 * 0.75f64.powi(4) * f64::hypot(0.02 * rho * rho, 1.0);
        // attraction and repulsion are ten times P, so this is a part of 4 % of either
        holds(&format!("many-body ρ {rho}: P"), &t["pressure"], fit, tolerance, tolerance + 2.0);
    }
}
