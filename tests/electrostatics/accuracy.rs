//! The error of the mesh against Ewald sums, and its devices.

use super::{charged, error, forces, ions, on, polymer, ready, uniform, with_types};
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::Snapshot;
use galamost_tests::{advance, devices};

/// A crystal of ions with small displacements.
fn crystal() -> Snapshot {
    let mut particles = vec![];
    for i in 0..512u32 {
        let site = [i % 8, i / 8 % 8, i / 64];
        let u = uniform(19, i);
        let q = if site.iter().sum::<u32>() % 2 == 0 { 1.0 } else { -1.0 };
        particles.push((std::array::from_fn(|k| f64::from(site[k]) - 4.0 + 0.2 * u[k]), q));
    }
    charged([8.0; 3], &particles)
}

#[test]
#[ignore = "5 seconds"]
fn forces_are_as_accurate_as_asked_for() {
    let systems =
        [("ions", ions(800, [12.0, 11.0, 15.0])), ("crystal", crystal()), ("polymer", polymer(20, [11.0, 12.0, 13.0]))];
    for (name, s) in &systems {
        let exact = forces(s, "Ewald(accuracy: 1e-8)");
        for accuracy in ["1e-3", "1e-4", "1e-5"] {
            let asked: f64 = accuracy.parse().expect("a number");
            for method in ["Ewald", "Pppm"] {
                let found = error(s, &forces(s, &format!("{method}(accuracy: {accuracy})")), &exact);
                assert!(found < 1.5 * asked, "{name}: {method} has the error {found:.2e} instead of {accuracy}");
            }
            // the shortest cutoff that the cost model takes
            let shortest = 1.75 * (s.volume() / s.len() as f64).cbrt();
            for order in if asked < 1e-4 { 7..=7 } else { 6..=7 } {
                let method = format!("Pppm(accuracy: {accuracy}, r_cut: {shortest}, order: {order})");
                let found = error(s, &forces(s, &method), &exact);
                assert!(found < 1.5 * asked, "{name}: {method} has the error {found:.2e}");
            }
            // splines of low order need very fine grids for small errors
            for order in if asked < 1e-3 { 5 } else { 3 }..=7 {
                let found =
                    error(s, &forces(s, &format!("Pppm(accuracy: {accuracy}, r_cut: 3.0, order: {order})")), &exact);
                assert!(found < 1.5 * asked, "{name}: order {order} has the error {found:.2e} instead of {accuracy}");
            }
        }
    }
}

/// The estimate is not far above the error either, where charges are at random.
#[test]
fn estimates_are_sharp() {
    let s = ions(800, [12.0, 11.0, 15.0]);
    let exact = forces(&s, "Ewald(accuracy: 1e-8)");
    let found = error(&s, &forces(&s, "Pppm(accuracy: 1e-4, r_cut: 3.0, order: 5)"), &exact);
    assert!(found > 2e-5, "{found:.2e}");
}

/// Widths by type belong to the short-range part only: the error of the mesh does not depend on them.
#[test]
fn charges_of_several_widths_are_as_accurate_as_points() {
    let s = with_types(ions(800, [12.0, 11.0, 15.0]));
    for charges in [
        "{\"*\": Gaussian(0.3), \"B\": Gaussian(0.2), \"C\": Point}",
        "{\"*\": Slater(0.2), \"B\": Slater(0.3), \"C\": Point}",
    ] {
        let exact = forces(&s, &format!("Ewald(accuracy: 1e-8, r_cut: 5.4, charges: {charges})"));
        let mesh = forces(&s, &format!("Pppm(accuracy: 1e-4, charges: {charges})"));
        let found = error(&s, &mesh, &exact);
        // 1.5 times the accuracy, as in the other tests: estimates are for charges at random
        assert!(found < 1.5e-4, "{charges}: the error is {found:.2e}");
        // and they differ from those of points
        assert!(error(&s, &exact, &forces(&s, "Ewald(accuracy: 1e-8, r_cut: 5.4)")) > 1e-3);
    }
}

/// All devices, with exclusions, a net charge and a slab; every method in Mixed and in one other precision.
#[test]
#[ignore = "3 seconds"]
fn devices_agree() {
    let s = with_types(polymer(3, [7.0, 6.0, 9.0]));
    let methods = [
        "Ewald(accuracy: 1e-3, r_cut: 2.5, alpha: 1.1, k_max: 5.0, slab: X)",
        "Pppm(accuracy: 1e-3, r_cut: 2.5, alpha: 1.1, order: 3, grid: [10, 12, 9], charges: Gaussian(0.3))",
        "Pppm(accuracy: 1e-3, r_cut: 2.5, alpha: 1.1, order: 6, grid: [15, 7, 16], slab: Y)",
        // a tile that is longer than its axis; several bricks along each axis; a prime number of points
        "Pppm(accuracy: 1e-2, r_cut: 2.5, alpha: 1.1, order: 7, grid: [24, 12, 7])",
        "Pppm(accuracy: 1e-2, r_cut: 2.5, alpha: 1.1, order: 7, grid: [30, 36, 20])",
        "Pppm(accuracy: 1e-2, r_cut: 2.5, alpha: 1.1, order: 5, grid: [24, 47, 12])",
        "Ewald(accuracy: 1e-3, r_cut: 2.5, alpha: 1.1, k_max: 5.0, charges: {\"*\": Gaussian(0.3), \"B\": Gaussian(0.2), \"C\": Point})",
        "Pppm(accuracy: 1e-2, r_cut: 2.5, alpha: 1.1, order: 4, grid: [10, 12, 9], charges: {\"*\": Slater(0.3), \"B\": Slater(0.1), \"C\": Point})",
    ];
    for (k, method) in methods.iter().enumerate() {
        let fields = format!("forces: [{method}], neighbors: (exclude: [Bonds])");
        let reference = on(&s, &fields, DeviceChoice::Cpu, "Double");
        let largest = reference.force.iter().flatten().fold(0.0f64, |m, f| m.max(f.abs()));
        for device in devices() {
            for (precision, limit) in [("Mixed", 2e-5), [("Double", 1e-11), ("Single", 2e-5)][k % 2]] {
                let o = on(&s, &fields, device, precision);
                let who = format!("{method} on {device:?}, {precision}");
                for (a, b) in o.force.iter().flatten().zip(reference.force.iter().flatten()) {
                    assert!((a - b).abs() < limit * largest, "{who}: {a} and {b}");
                }
                let scale = reference.energy.abs().max(1.0);
                assert!(
                    (o.energy - reference.energy).abs() < limit * scale,
                    "{who}: {} and {}",
                    o.energy,
                    reference.energy
                );
                assert!((o.shared - reference.energy).abs() < 4.0 * limit * scale, "{who}: {}", o.shared);
                let scale = reference.virial.iter().fold(scale, |m, w| m.max(w.abs()));
                for (a, b) in o.virial.iter().zip(reference.virial) {
                    assert!((a - b).abs() < limit * scale, "{who}: {a} and {b}");
                }
            }
        }
    }
}

/// Kernels with and without energies give the same forces.
#[test]
#[ignore = "3 seconds"]
fn energies_do_not_change_forces() {
    let s = with_types(polymer(3, [7.0, 6.0, 9.0]));
    for method in [
        "Pppm(accuracy: 1e-2, r_cut: 2.5, alpha: 1.1, order: 7, grid: [30, 36, 20])",
        "Pppm(accuracy: 1e-2, r_cut: 2.5, alpha: 1.1, order: 5, grid: [24, 47, 12])",
        "Pppm(accuracy: 1e-2, r_cut: 2.5, alpha: 1.1, order: 6, grid: [15, 7, 64])",
    ] {
        let fields = format!("forces: [{method}], neighbors: (exclude: [Bonds])");
        for device in devices() {
            for precision in ["Double", "Mixed"] {
                // the last step of a call has energies, those before have none; velocities are the sums of all forces
                let after = |calls: &[u64]| {
                    let mut b = ready(s.clone(), &fields, device, precision);
                    calls.iter().for_each(|n| advance(&mut *b, *n));
                    b.read("velocity_mass").expect("velocities")
                };
                let (start, with, without) = (after(&[]), after(&[1; 6]), after(&[6]));
                assert!(start != with, "{method} on {device:?}, {precision}: nothing has moved");
                assert!(with == without, "{method} on {device:?}, {precision}: forces differ");
            }
        }
    }
}

/// The grid does not depend on the number of threads: forces have the same bits.
#[test]
fn threads_do_not_change_bits() {
    let s = ions(400, [9.0; 3]);
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            let a = forces(&s, "Pppm(accuracy: 1e-4)");
            let b = forces(&s, "Ewald(accuracy: 1e-4)");
            [a, b].map(|o| (o.force.into_iter().flatten().map(f64::to_bits).collect::<Vec<_>>(), o.energy.to_bits()))
        })
    };
    assert!(with(1) == with(2) && with(1) == with(3));
}
