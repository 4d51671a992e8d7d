//! Energies, forces and virials with known values.

use super::{Outcome, charged, forces, ions, on, polymer, uniform, with_types};
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::Snapshot;

/// Cells of a crystal: positions in units of the cell, and charges.
fn crystal(cells: usize, basis: &[([f64; 3], f64)]) -> Snapshot {
    let mut particles = vec![];
    for c in 0..cells.pow(3) {
        let at = [c % cells, c / cells % cells, c / cells / cells];
        for (r, q) in basis {
            particles.push((std::array::from_fn(|k| at[k] as f64 + r[k] - 0.5 * cells as f64 + 0.1), *q));
        }
    }
    charged([cells as f64; 3], &particles)
}

fn sodium_chloride() -> Vec<([f64; 3], f64)> {
    let site = |i: usize| [i % 2, i / 2 % 2, i / 4].map(|k| 0.5 * k as f64);
    let sign = |i: usize| if (i % 2 + i / 2 % 2 + i / 4).is_multiple_of(2) { 1.0 } else { -1.0 };
    (0..8).map(|i| (site(i), sign(i))).collect()
}

fn zinc_blende() -> Vec<([f64; 3], f64)> {
    let fcc = [[0.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5]];
    let shifted = |s: f64, q: f64| fcc.map(|r| (r.map(|x| x + s), q));
    [shifted(0.0, 2.0), shifted(0.25, -2.0)].concat()
}

/// Madelung constants with respect to the distance of nearest neighbors, after OEIS A085469, A181152, A182566 (the last
/// one halved, as ½ΣqV per ion).
#[test]
fn madelung_constants() {
    let cesium_chloride = vec![([0.0; 3], 1.0), ([0.5; 3], -1.0)];
    let cases = [
        ("NaCl", crystal(3, &sodium_chloride()), 0.5, 1.0, 1.747_564_594_633_182),
        ("CsCl", crystal(4, &cesium_chloride), 0.75f64.sqrt(), 1.0, 1.762_674_773_070_988),
        ("ZnS", crystal(3, &zinc_blende()), 0.1875f64.sqrt(), 4.0, 1.638_055_053_388_789),
    ];
    for (name, s, nearest, square, reference) in cases {
        // energy of an ion: −M q²/2d
        let constant = |component: &str| {
            let o = forces(&s, component);
            assert!((o.energy - o.shared).abs() < 1e-9 * o.energy.abs(), "{name}: {} and {}", o.energy, o.shared);
            let largest = o.force.iter().flatten().fold(0.0f64, |m, f| m.max(f.abs()));
            // forces of ions of 1 to 4 at the accuracy asked for, 1e-6 and 1e-7, times C q²/d²
            assert!(largest < 1e-5, "{name}: {component}: force {largest} in a perfect crystal");
            // the energy is proportional to 1/length
            let trace = o.virial[0] + o.virial[3] + o.virial[5];
            assert!((trace - o.energy).abs() < 2e-5 * o.energy.abs(), "{name}: {trace} and {}", o.energy);
            -2.0 * o.energy * nearest / (square * s.len() as f64)
        };
        let found = constant("Ewald(accuracy: 1e-7)");
        // the error of energies is of the order of that of forces, 1e-7, times q² and the distance
        assert!((found - reference).abs() < 1e-6, "{name}: {found}, reference {reference}");
        let found = constant("Pppm(accuracy: 1e-6)");
        // the error of energies is of the order of that of forces, 1e-6, times q² and the distance
        assert!((found - reference).abs() < 1e-5, "{name} on a mesh: {found}, reference {reference}");
    }
}

/// Two ions in a box: the sum over all images in spheres, with its dipole term removed, by hand.
#[test]
fn two_ions_agree_with_the_sum_over_images() {
    let (length, r) = (8.0, [1.3, -0.7, 2.1]);
    let s = charged([length; 3], &[([0.0; 3], 1.0), (r, -1.0)]);
    let o = forces(&s, "Ewald(accuracy: 1e-9, r_cut: 4.0)");
    // potentials of a charge at r, in shells of cubes around the origin: the dipole of the cell with these two charges has
    // the energy 2π M²/3V in spheres and cubes alike
    let (mut energy, mut shell_sums) = (0.0, vec![]);
    let at = |n: [i32; 3], shift: [f64; 3]| {
        let d2: f64 = (0..3).map(|k| (f64::from(n[k]) * length + shift[k]).powi(2)).sum();
        1.0 / d2.sqrt()
    };
    for shell in 0..60i32 {
        let mut sum = 0.0;
        for x in -shell..=shell {
            for y in -shell..=shell {
                for z in -shell..=shell {
                    if x.abs().max(y.abs()).max(z.abs()) == shell {
                        let n = [x, y, z];
                        let own = if shell == 0 { 0.0 } else { at(n, [0.0; 3]) };
                        // ½ Σ of the four pairs of charges
                        sum += own - 0.5 * (at(n, r) + at(n, r.map(|x| -x)));
                    }
                }
            }
        }
        energy += sum;
        shell_sums.push(energy);
    }
    // remainders fall as the square of the number of shells: extrapolate
    let (a, b) = (shell_sums[29], shell_sums[59]);
    let limit = (b * 59.5f64.powi(2) - a * 29.5f64.powi(2)) / (59.5f64.powi(2) - 29.5f64.powi(2));
    let dipole2: f64 = r.iter().map(|x| x * x).sum();
    let expected = limit - 2.0 * std::f64::consts::PI * dipole2 / (3.0 * length.powi(3));
    // the next order of the shells is 60⁻⁴ = 8e-8 times the moments, and the accuracy of the sum 1e-7
    assert!((o.energy - expected).abs() < 1e-6, "{} and {expected}", o.energy);
}

/// Methods with given parameters, so that a displacement or a strain does not change them.
const METHODS: [&str; 8] = [
    "Ewald(accuracy: 1e-3, r_cut: 2.5, alpha: 1.1, k_max: 6.0)",
    "Pppm(accuracy: 1e-3, r_cut: 2.5, alpha: 1.1, order: 5, grid: [15, 12, 16])",
    "Pppm(accuracy: 1e-2, r_cut: 2.5, alpha: 1.1, order: 3, grid: [9, 10, 12], l_bjerrum: 2.0, kT: 1.5)",
    "Pppm(accuracy: 1e-2, r_cut: 2.5, alpha: 1.3, order: 6, grid: [8, 16, 9], charges: Gaussian(0.3))",
    "Ewald(accuracy: 1e-2, r_cut: 2.5, alpha: 1.1, k_max: 6.0, charges: Slater(0.25), epsilon_r: 0.5)",
    "Pppm(accuracy: 1e-2, r_cut: 2.5, alpha: 1.1, order: 4, grid: [12, 12, 30], slab: Z)",
    "Pppm(accuracy: 1e-2, r_cut: 2.5, alpha: 1.1, order: 5, grid: [15, 12, 16], charges: {\"A\": Gaussian(0.3), \"B\": Gaussian(0.2), \"C\": Point})",
    "Ewald(accuracy: 1e-2, r_cut: 2.5, alpha: 1.1, k_max: 6.0, charges: {\"*\": Slater(0.25), \"B\": Slater(0.12), \"C\": Point})",
];

/// Chains with excluded bonds, as `neighbors: (exclude: [Bonds])`.
fn with_exclusions(component: &str) -> String {
    format!("forces: [{component}], neighbors: (exclude: [Bonds])")
}

fn system() -> Snapshot {
    with_types(polymer(3, [7.0, 6.0, 9.0]))
}

#[test]
#[ignore = "3 seconds"]
fn forces_are_gradients_of_the_energy() {
    let s = system();
    for method in METHODS {
        let fields = with_exclusions(method);
        let at = |s: &Snapshot| on(s, &fields, DeviceChoice::Cpu, "Double");
        let here = at(&s);
        assert!((here.energy - here.shared).abs() < 1e-9 * here.energy.abs().max(1.0), "{method}");
        let h = 1e-5;
        for tag in [0, 2, 22, 60, 75] {
            for k in 0..3 {
                let moved = |d: f64| {
                    let mut s = s.clone();
                    s.position[tag][k] += d;
                    at(&s).energy
                };
                let slope = (moved(h) - moved(-h)) / (2.0 * h);
                let f = here.force[tag][k];
                // differences of energies: 1e-16 · U/h = 1e-9, and the error of the mesh, 1e-5 of the forces
                assert!((f + slope).abs() < 2e-5 * (1.0 + f.abs()), "{method}: particle {tag}: {f} and {}", -slope);
            }
        }
    }
}

#[test]
fn the_virial_is_the_derivative_by_the_strain() {
    let s = system();
    // the cutoff of the pair loop does not scale with the box: no pair crosses 2.45; the split ends there, or before a longer one
    let shorter = METHODS
        .map(|m| m.replace("r_cut: 2.5", "r_cut: 2.99").replace("alpha: 1.1", "alpha: 2.0").replace("1.3", "2.0"));
    for method in METHODS.map(|m| m.replace("r_cut: 2.5", "r_cut: 2.45")).into_iter().chain(shorter) {
        let fields = with_exclusions(&method);
        let at = |s: &Snapshot| on(s, &fields, DeviceChoice::Cpu, "Double");
        let here = at(&s);
        let scale = here.virial.iter().fold(here.energy.abs(), |m, w| m.max(w.abs()));
        let h = 1e-5;
        for (axis, slot) in [0, 3, 5].into_iter().enumerate() {
            let strained = |e: f64| {
                let mut s = s.clone();
                s.box_length[axis] *= 1.0 + e;
                s.position.iter_mut().for_each(|p| p[axis] *= 1.0 + e);
                at(&s).energy
            };
            let slope = (strained(h) - strained(-h)) / (2.0 * h);
            let w = here.virial[slot];
            // differences of energies: rounding 1e-16/h and h² U''' of some 1e-10; accuracy 1e-7 of the waves at the ends
            assert!((w + slope).abs() < 1e-6 * scale, "{method}: axis {axis}: {w} and {}", -slope);
        }
    }
}

/// Off-diagonal components and the whole tensor: an isolated cluster far from its images obeys Σ r F.
#[test]
fn the_virial_of_a_cluster_is_the_sum_of_r_and_f() {
    let cluster: Vec<_> = (0..6u32)
        .map(|i| {
            let u = uniform(3, i);
            (std::array::from_fn(|k| 2.5 * u[k] - 1.2), if i % 2 == 0 { 1.0 } else { -1.0 })
        })
        .collect();
    let s = charged([60.0; 3], &cluster);
    for method in [
        "Ewald(accuracy: 1e-6, r_cut: 8.0, alpha: 0.5, k_max: 5.0)",
        "Pppm(accuracy: 1e-4, r_cut: 8.0, alpha: 0.5, order: 7, grid: [120, 125, 128])",
    ] {
        let o = forces(&s, method);
        let pairs = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)];
        for (slot, (a, b)) in pairs.into_iter().enumerate() {
            let sum: f64 = s.position.iter().zip(&o.force).map(|(r, f)| r[a] * f[b]).sum();
            // images of a cluster with a dipole act as M²/V
            assert!((o.virial[slot] - sum).abs() < 2e-4, "{method}: {slot}: {} and {sum}", o.virial[slot]);
        }
        // and the energy is that of the pairs
        let mut energy = 0.0;
        for i in 0..6 {
            for j in 0..i {
                let d2: f64 = (0..3).map(|k| (cluster[i].0[k] - cluster[j].0[k]).powi(2)).sum();
                energy += cluster[i].1 * cluster[j].1 / d2.sqrt();
            }
        }
        // images of a cluster with a dipole act as M²/V
        assert!((o.energy - energy).abs() < 2e-4, "{method}: {} and {energy}", o.energy);
    }
}

/// Results do not depend on α: a net charge, a background, smeared charges, exclusions and a slab are consistent.
#[test]
fn results_do_not_depend_on_the_split() {
    let mut s = system();
    let galamost_plugin_api::snapshot::Values::Real(q) = &mut s.arrays.get_mut("charge").expect("charges").values
    else {
        panic!("charges are numbers")
    };
    q[75] = 3.0;
    for more in [
        "",
        ", charges: Gaussian(0.2)",
        ", charges: Slater(0.25)",
        ", charges: {\"A\": Gaussian(0.2), \"B\": Gaussian(0.3), \"C\": Point}",
        ", charges: {\"A\": Slater(0.15), \"B\": Slater(0.2), \"C\": Point}",
    ] {
        let at = |alpha: f64, k_max: f64| {
            let method = format!("Ewald(accuracy: 1e-7, r_cut: 2.99, alpha: {alpha}, k_max: {k_max}{more})");
            on(&s, &with_exclusions(&method), DeviceChoice::Cpu, "Double")
        };
        // c is 20 and 28
        let (a, b) = (at(1.06, 18.0), at(1.25, 22.0));
        assert!((a.energy - b.energy).abs() < 1e-5 * a.energy.abs(), "{more}: {} and {}", a.energy, b.energy);
        for k in 0..6 {
            // errors of waves beyond k_max at c = 20 are 1e-7 of forces; energies of few ions sum them without averaging
            assert!((a.virial[k] - b.virial[k]).abs() < 1e-5 * a.energy.abs(), "{more}: {:?} {:?}", a.virial, b.virial);
        }
        for (f, g) in a.force.iter().flatten().zip(b.force.iter().flatten()) {
            // as for energies
            assert!((f - g).abs() < 1e-5 * (1.0 + f.abs()), "{more}: {f} and {g}");
        }
    }
}

/// Gaussians of two widths with a net charge: the sum over all waves of their densities, without the energy of each charge
/// with itself, q²/(2√π w).
#[test]
fn gaussians_of_two_widths_agree_with_the_sum_over_their_waves() {
    use std::f64::consts::{PI, TAU};
    let (length, widths) = ([6.0, 6.5, 7.0], [0.25, 0.35]);
    let particles: Vec<([f64; 3], f64)> = (0..5u32)
        .map(|i| {
            (std::array::from_fn(|k| (uniform(23, i)[k] - 0.5) * length[k]), [1.0, -1.0, 2.0, 0.5, -1.5][i as usize])
        })
        .collect();
    let mut s = charged(length, &particles);
    let other = s.type_id("B");
    s.type_id.iter_mut().skip(1).step_by(2).for_each(|kind| *kind = other);
    let (volume, most) = (length.iter().product::<f64>(), 20i32);
    let own: f64 = particles.iter().enumerate().map(|(i, p)| p.1 * p.1 / (2.0 * PI.sqrt() * widths[i % 2])).sum();
    let mut expected = -own;
    for v in (0..(2 * most + 1).pow(3)).map(|m| [m % 41, m / 41 % 41, m / 41 / 41].map(|x| x - most)) {
        let k: [f64; 3] = std::array::from_fn(|a| TAU * f64::from(v[a]) / length[a]);
        let k2: f64 = k.iter().map(|x| x * x).sum();
        if k2 > 0.0 {
            let (mut re, mut im) = (0.0, 0.0);
            for (i, (r, q)) in particles.iter().enumerate() {
                let (phase, form) =
                    ((0..3).map(|a| k[a] * r[a]).sum::<f64>(), (-0.5 * k2 * widths[i % 2].powi(2)).exp());
                re += q * form * phase.cos();
                im += q * form * phase.sin();
            }
            expected += TAU / volume / k2 * (re * re + im * im);
        }
    }
    let o = forces(&s, "Ewald(accuracy: 1e-8, r_cut: 2.99, charges: {\"A\": Gaussian(0.25), \"B\": Gaussian(0.35)})");
    // the accuracy of both sums, 1e-8, times the number of charges
    assert!((o.energy - expected).abs() < 1e-6, "{} and {expected}", o.energy);
}

/// A sheet of dipoles along z with the slab correction has the energy of one sheet: the distance of the images along z
/// does not matter.
#[test]
fn the_slab_correction_removes_images_along_the_normal() {
    let sheet = |height: f64| {
        let mut particles = vec![];
        for i in 0..8u32 {
            let u = uniform(7, i);
            particles
                .push(([6.0 * u[0] - 3.0, 6.0 * u[1] - 3.0, 2.0 * u[2] - 1.0], if i % 2 == 0 { 1.0 } else { -1.0 }));
        }
        charged([6.0, 6.0, height], &particles)
    };
    let energy =
        |height: f64, slab: &str| forces(&sheet(height), &format!("Ewald(accuracy: 1e-7, r_cut: 2.99{slab})")).energy;
    let (near, far) = (energy(20.0, ", slab: Z"), energy(40.0, ", slab: Z"));
    // images along z act with exp(−2π 18/6) = 7e-9 of the energy; the accuracy is 1e-7 for each charge
    assert!((near - far).abs() < 1e-5, "{near} and {far}");
    assert!((energy(20.0, "") - energy(40.0, "")).abs() > 1e-3);
}

/// A slab may be anywhere along its normal, also across a face of the box.
#[test]
fn a_slab_may_cross_a_face_of_the_box() {
    for method in ["Ewald(accuracy: 1e-3, r_cut: 2.4, slab: Z)", "Pppm(accuracy: 1e-3, r_cut: 2.4, slab: Z)"] {
        for precision in ["Double", "Mixed"] {
            let at = |z: f64| {
                let s = charged([5.0, 5.0, 20.0], &[([0.0, 0.0, z - 0.5], 1.0), ([0.0, 0.0, z + 0.5], -1.0)]);
                on(&s, &format!("forces: [{method}]"), DeviceChoice::Cpu, precision)
            };
            let middle = at(0.0);
            for z in [10.0, 9.0, -9.7, 4.3] {
                let o = at(z);
                let all = |o: &Outcome| {
                    let mut all: Vec<f64> = o.force.iter().flatten().chain(&o.virial).copied().collect();
                    all.extend([o.energy, o.shared]);
                    all
                };
                for (a, b) in all(&o).iter().zip(all(&middle)) {
                    // the accuracy 1e-3 times the force at the mean distance, 0.025; energies and virials have a few times the error of forces
                    assert!((a - b).abs() < 1e-3, "{method}, {precision}, z = {z}: {a} and {b}");
                }
            }
        }
    }
}

/// The error of the total energy in NVE falls as dt².
#[test]
#[ignore = "3 seconds"]
fn energy_is_conserved() {
    for method in
        ["Ewald(accuracy: 1e-4, l_bjerrum: 2.0, r_cut: 3.0)", "Pppm(accuracy: 1e-3, l_bjerrum: 2.0, r_cut: 3.0)"]
    {
        let drift = |dt: f64| {
            let steps = (0.4 / dt).round() as u64;
            let s = ions(64, [7.0; 3]);
            let text = format!(
                "(precision: Double, forces: [{method}, Wca(pairs: {{ (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0) }})], \
                 integrators: [VelocityVerlet()], stages: [(steps: {steps}, dt: {dt:?})])"
            );
            let plan =
                galamost_tests::plan_of(&text, s, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
            let mut b = galamost_tests::backend(&plan);
            plan.components.iter().for_each(|c| c.start(b.host()).expect("started"));
            b.begin_stage(&plan.stages[0], false).expect("forces");
            let total = |b: &mut dyn galamost_engine::backend::Backend| {
                let sums = b.sums().expect("sums");
                let kinetic = 0.5 * sums.kinetic_diagonal().iter().sum::<f64>();
                kinetic + sums.components.iter().map(|s| s.energy).sum::<f64>()
            };
            let start = total(&mut *b);
            let mut worst = 0.0f64;
            for _ in 0..10 {
                galamost_tests::advance(&mut *b, steps / 10);
                worst = worst.max((total(&mut *b) - start).abs());
            }
            worst
        };
        let (coarse, fine) = (drift(0.002), drift(0.001));
        assert!((2.5..7.0).contains(&(coarse / fine)), "{method}: {coarse} and {fine}");
    }
}

/// The center of mass stays at rest with both methods, so thermostats do not count it.
#[test]
fn degrees_of_freedom_are_those_of_the_exact_sum() {
    let folder = tempfile::tempdir().expect("a folder");
    let freedom = |force: &str| {
        let file = folder.path().join("thermo.csv");
        let text = format!(
            "(forces: [{force}(accuracy: 1e-3, l_bjerrum: 2.0, r_cut: 2.5)], integrators: [Bussi(kT: 1.0, tau: 0.5)], \
             analyzers: [Thermo(every: 1, file: {file:?})], stages: [(steps: 1, dt: 0.001)])"
        );
        let plan = galamost_tests::plan_of(&text, ions(64, [7.0; 3]), DeviceChoice::Cpu);
        galamost_tests::run_plan(&plan.unwrap_or_else(|e| panic!("{}", e.render())))
            .unwrap_or_else(|e| panic!("{}", e.render()));
        let t = galamost_tests::csv(&file);
        // 2K/kT
        (2.0 * t["kinetic"][1] / t["kT"][1]).round()
    };
    assert_eq!([freedom("Ewald"), freedom("Pppm")], [189.0, 189.0]);
}

/// The conserved quantity of a barostat contains energy and virial of the mesh while the box changes: its error falls as dt².
#[test]
#[ignore = "3 seconds"]
fn a_barostat_conserves_its_energy() {
    let folder = tempfile::tempdir().expect("a folder");
    let change = |dt: f64| {
        let file = folder.path().join(format!("{dt}.csv"));
        let text = format!(
            "(precision: Double, forces: [Pppm(accuracy: 1e-3, l_bjerrum: 2.0, r_cut: 2.5, alpha: 1.1, order: 5, grid: [18, 18, 18]), \
             Wca(pairs: {{ (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0) }})], \
             integrators: [MtkNpt(kT: 1.0, tau: 0.2, pressure: 2.0, tau_p: 0.4)], \
             analyzers: [Thermo(every: 1, file: {file:?})], stages: [(steps: {}, dt: {dt:?})])",
            (0.4 / dt).round()
        );
        let plan = galamost_tests::plan_of(&text, ions(64, [7.0; 3]), DeviceChoice::Cpu);
        galamost_tests::run_plan(&plan.unwrap_or_else(|e| panic!("{}", e.render())))
            .unwrap_or_else(|e| panic!("{}", e.render()));
        let t = galamost_tests::csv(&file);
        let (volume, conserved) = (&t["volume"], &t["conserved"]);
        let last = volume[volume.len() - 1];
        assert!((last / volume[0] - 1.0).abs() > 0.01, "the volume changes from {} to {last} only", volume[0]);
        conserved.iter().fold(0.0f64, |m, c| m.max((c - conserved[0]).abs()))
    };
    let (coarse, fine) = (change(0.002), change(0.001));
    assert!((2.5..7.0).contains(&(coarse / fine)), "{coarse} and {fine}");
}
