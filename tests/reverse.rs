//! Exchange of momentum between slabs: what it keeps, whom it takes, what it writes; on both devices.

use galamost::selftest::standard_system;
use galamost_engine::backend::Columns;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::Snapshot;
use galamost_tests::{columns, csv, devices, largest_difference, plan_in, run_plan};
use std::path::Path;

/// Runs a text in a folder from a given state.
fn run(folder: &Path, text: &str, state: Snapshot, device: DeviceChoice) -> Columns {
    use galamost_engine::pipeline::Pipeline;
    use galamost_engine::plan::{CheckOptions, check};
    let text = text.replacen('(', "(initial: [], ", 1);
    let mut pipeline = Pipeline::parse(&folder.join("p.ron"), &text, &[]).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    pipeline.device = device;
    let options = CheckOptions { snapshot: Some(state), ..CheckOptions::default() };
    let plan = check(pipeline, galamost_tests::registry(), options).unwrap_or_else(|e| panic!("{}", e.render()));
    let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
    columns(&mut *b)
}

/// Without forces and with one exchange it is known who gets what: here of both slabs the three most extreme ones.
#[test]
fn the_most_extreme_particles_are_exchanged() {
    for (mass, precision, flow) in
        [(false, "Double", 0), (false, "Mixed", 1), (true, "Double", 0), (false, "Single", 0)]
    {
        for device in devices() {
            let mut s = standard_system();
            if !mass {
                s.mass.fill(1.0);
            }
            // two with one velocity: the smaller tag is taken first
            let slab = |z: f64| ((z / s.box_length[2] + 0.5) * 10.0) as usize;
            let of = |k: usize| (0..1000).filter(|i| slab(s.position[*i][2]) == k).collect::<Vec<usize>>();
            let (low, middle) = (of(0), of(5));
            let tied = [low[3], low[7]];
            for t in tied {
                s.velocity[t][flow] = -2.5;
            }
            let f = tempfile::tempdir().expect("a folder");
            let text = format!(
                "(precision: {precision}, integrators: [VelocityVerlet()], updaters: [ReversePerturbation(every: 1000, \
                 report: 1000, swaps: 3, slabs: 10, flow: {}, gradient: Z, file: \"m.csv\")], stages: [(steps: 1, dt: 1.0e-9)])",
                ["X", "Y"][flow]
            );
            // particles that stay in their slabs during the one step that follows the exchange at step 0
            let mut still = s.clone();
            still.velocity.iter_mut().for_each(|v| (v[2], v[1 - flow]) = (0.0, 0.0));
            let before = still.velocity.clone();
            let now = run(f.path(), &text, still.clone(), device);
            let mut want = before.clone();
            let sorted = |mut list: Vec<usize>, sign: f64| {
                list.sort_by(|a, b| (sign * before[*a][flow]).total_cmp(&(sign * before[*b][flow])).then(a.cmp(b)));
                list
            };
            let (first, second) = (sorted(low.clone(), 1.0), sorted(middle.clone(), -1.0));
            assert_eq!([first[0], first[1]], tied);
            for (i, j) in first.into_iter().zip(second).take(3) {
                let (u, w, mi, mj) = (before[i][flow], before[j][flow], still.mass[i], still.mass[j]);
                let common = (mi * u + mj * w) / (mi + mj);
                let after = if mi == mj { [w, u] } else { [2.0 * common - u, 2.0 * common - w] };
                (want[i][flow], want[j][flow]) = (after[0], after[1]);
            }
            let flat = |v: &[[f64; 3]]| v.iter().flatten().copied().collect::<Vec<_>>();
            let limit = if precision == "Double" { 1e-14 } else { 1e-6 };
            let sum = |v: &[[f64; 3]], p: i32| v.iter().zip(&still.mass).map(|(v, m)| m * v[flow].powi(p)).sum::<f64>();
            for p in [1, 2] {
                let (a, b) = (sum(&now.velocity, p), sum(&before, p));
                assert!((a - b).abs() < 1000.0 * limit, "{device:?} {precision} mass {mass}: {a} {b}");
            }
            let different =
                |a: &[[f64; 3]], b: &[[f64; 3]]| (0..1000).filter(|i| (a[*i][flow] - b[*i][flow]).abs() > 1e-5).count();
            let far = largest_difference(&flat(&now.velocity), &flat(&want));
            assert!(far < limit, "{device:?} {precision} mass {mass}: {far:e}");
            assert_eq!(different(&now.velocity, &before), 6);
        }
    }
}

/// A liquid under exchange: the same on both devices, momentum and energy kept, and rows that agree.
#[test]
fn a_liquid_is_sheared_in_the_same_way_on_every_device() {
    let lj = r#"LennardJones(r_cut: 2.5, mode: ShiftForce, pairs: {
        ("A", "A"): (epsilon: 1.0, sigma: 1.0), ("A", "B"): (epsilon: 0.5, sigma: 0.95), ("B", "B"): (epsilon: 1.0, sigma: 0.9) })"#;
    let mut found = vec![];
    for device in devices() {
        let f = tempfile::tempdir().expect("a folder");
        let text = format!(
            "(precision: Double, forces: [{lj}], integrators: [VelocityVerlet()], updaters: [ReversePerturbation(every: 5, \
             report: 10, swaps: 2, slabs: 8, file: \"m.csv\")], analyzers: [Thermo(every: 5, file: \"t.csv\")], \
             stages: [(steps: 61, dt: 0.002)])"
        );
        let now = run(f.path(), &text, standard_system(), device);
        let (t, m) = (csv(&f.path().join("t.csv")), csv(&f.path().join("m.csv")));
        assert_eq!(m["step"], [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
        assert!((m["time"].last().expect("a row") - 0.12).abs() < 1e-12);
        assert!(m["exchanged"].is_sorted() && m["exchanged"][0] > 3.0, "{:?}", m["exchanged"]);
        let momentum = &t["momentum_x"];
        assert!(momentum.iter().all(|p| (p - momentum[0]).abs() < 1e-10), "{momentum:?}");
        let total = &t["total"];
        assert!(total.iter().all(|e| (e - total[0]).abs() < 1.5), "{total:?}");
        // the flux is what was exchanged between two rows
        let area = 2.0 * standard_system().box_length[0].powi(2);
        let flux = (m["exchanged"][3] - m["exchanged"][2]) / (0.02 * area);
        let shift = m["flux"][3] - flux;
        assert!(shift.abs() < 1e-9, "{} {flux}", m["flux"][3]);
        found.push((now.velocity.into_iter().flatten().collect::<Vec<_>>(), m));
    }
    for other in &found[1..] {
        assert!(largest_difference(&found[0].0, &other.0) < 1e-9);
        for (name, column) in &found[0].1 {
            assert!(largest_difference(column, &other.1[name]) < 1e-9, "{name}");
        }
    }
}

/// A row and a restart: see `restart.rs`. Here what the check says.
#[test]
fn inconsistent_parameters_are_reported() {
    let said = |more: &str| {
        let text = format!(
            "(initial: [RandomPositions(count: 10, box: [5.0, 5.0, 5.0])], integrators: [VelocityVerlet()], \
             updaters: [ReversePerturbation(every: 10, {more})], stages: [(steps: 1, dt: 0.01)])"
        );
        plan_in(Path::new("p.ron"), &text, DeviceChoice::Cpu).err().map(|e| e.render()).unwrap_or_default()
    };
    assert_eq!(said("report: 20, file: \"m.csv\""), "");
    assert!(said("report: 25, file: \"m.csv\"").contains("must be a multiple of `every`"));
    assert!(said("report: 20, file: \"m.csv\", slabs: 7").contains("must be even"));
    assert!(said("report: 20, file: \"m.csv\", flow: Z").contains("must be different axes"));
}
