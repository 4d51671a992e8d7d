//! Forces, energies and virials at one instant.

use super::*;
use std::collections::VecDeque;

/// The number of bonds between a particle and each other one; those farther than three have 0.
fn distances(s: &Snapshot, from: usize) -> Vec<usize> {
    let mut distance = vec![usize::MAX; s.len()];
    distance[from] = 0;
    let mut open = VecDeque::from([from]);
    while let Some(a) = open.pop_front() {
        for l in s.bonds.iter().filter(|l| l.tags.contains(&(a as u32))) {
            let b = (l.tags[0] + l.tags[1]) as usize - a;
            if distance[b] == usize::MAX {
                distance[b] = distance[a] + 1;
                open.push_back(b);
            }
        }
    }
    distance.into_iter().map(|d| if d > 3 { 0 } else { d }).collect()
}

/// Lennard-Jones and screened Coulomb interactions, summed over all pairs with these weights by distance in bonds; entry 0 is
/// that of all other pairs.
fn by_hand(s: &Snapshot, weights: [[f64; 2]; 4]) -> Outcome {
    let Values::Real(charge) = &s.arrays["charge"].values else { panic!("charges are numbers") };
    let mut out = Outcome { force: vec![0.0; 3 * s.len()], energy: vec![0.0; 2], virial: [0.0; 6], shared: 0.0 };
    for i in 0..s.len() {
        let bonds = distances(s, i);
        for j in 0..i {
            let d: [f64; 3] = std::array::from_fn(|k| {
                let x = s.position[i][k] - s.position[j][k];
                x - s.box_length[k] * (x / s.box_length[k]).round()
            });
            let r2: f64 = d.iter().map(|x| x * x).sum();
            let r = r2.sqrt();
            let (epsilon, sigma, cut): (f64, f64, f64) = match s.type_id[i] + s.type_id[j] {
                0 => (1.0, 0.8, 2.5),
                1 => (0.7, 0.75, 2.2),
                _ => (0.5, 0.7, 2.0),
            };
            let [pair, coulomb] = weights[bonds[j]];
            let x = sigma.powi(6) / r2.powi(3);
            let screened = charge[i] * charge[j] * (-0.8 * r).exp() / r;
            let terms = [
                (pair, r < cut, 4.0 * epsilon * (x * x - x), 24.0 * epsilon * (2.0 * x * x - x) / r2),
                (coulomb, r < 4.0, screened, screened * (1.0 + 0.8 * r) / r2),
            ];
            for (k, (weight, _, u, f)) in terms.into_iter().enumerate().filter(|(_, t)| t.1) {
                out.energy[k] += weight * u;
                for (a, d) in d.iter().enumerate() {
                    out.force[3 * i + a] += weight * f * d;
                    out.force[3 * j + a] -= weight * f * d;
                }
                for (w, (a, b)) in out.virial.iter_mut().zip([(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]) {
                    *w += weight * f * d[a] * d[b];
                }
            }
        }
    }
    out.shared = out.energy.iter().sum();
    out
}

const BY_DISTANCE: [[f64; 2]; 4] = [[1.0; 2], [0.1, 0.0], [0.4, 0.3], [0.5, 0.8333]];

#[test]
fn forces_equal_the_weighted_sum_over_all_pairs() {
    let s = rings();
    let truth = by_hand(&s, BY_DISTANCE);
    for device in devices() {
        for (precision, list, limit) in
            [("Double", "", 1e-12), ("Mixed", "", 2e-6), ("Single", "", 2e-6), ("Mixed", ", list: Staged", 2e-6)]
        {
            // the order of the components does not matter, and each has its own energy
            let far = [[LJ, SCREENED], [SCREENED, LJ]].map(|order| {
                let mut o = found(&s, &order.join(", "), &format!("{WEIGHTS}{list}"), device, precision);
                if order[0] != LJ {
                    o.energy.reverse();
                }
                deviation(&o, &truth)
            });
            println!("{device:?} {precision}{list}: {far:?}");
            assert!(far.iter().all(|x| *x < limit), "{device:?} {precision}{list}: {far:?}");
        }
    }
}

/// One kind of potential alone: a weight of the other kind has no effect.
#[test]
fn each_kind_of_potential_has_its_weight() {
    let s = rings();
    let truth = by_hand(&s, BY_DISTANCE);
    for device in devices() {
        for (k, force) in [LJ, SCREENED].into_iter().enumerate() {
            let o = found(&s, force, WEIGHTS, device, "Double");
            assert!((o.energy[0] / truth.energy[k] - 1.0).abs() < 1e-12, "{device:?} {force}");
        }
    }
}

/// Lists of the topology exclude a pair whatever its weight; the other pairs keep theirs.
#[test]
fn exclusions_and_weights_combine() {
    let s = rings();
    let weights = r#"exclude: [Bonds], special: { "1-2": 0.7, "1-4": 0.25 }"#;
    let truth = by_hand(&s, [[1.0; 2], [0.0; 2], [1.0; 2], [0.25; 2]]);
    for device in devices() {
        let far = deviation(&found(&s, &[LJ, SCREENED].join(", "), weights, device, "Double"), &truth);
        assert!(far < 1e-12, "{device:?}: {far:e}");
    }
}

#[test]
#[ignore = "10 seconds"]
fn the_weights_0_and_1_are_exclusions_and_nothing_to_the_bit() {
    let mut s = rings();
    // an angle for each pair of bonds at a particle
    for (k, a) in s.bonds.iter().enumerate() {
        for b in &s.bonds[..k] {
            let shared = a.tags.into_iter().find(|t| b.tags.contains(t));
            if let Some(m) = shared {
                let end = |l: &Link<2>| l.tags[0] + l.tags[1] - m;
                s.angles.push(Link { kind: 0, tags: [end(a), m, end(b)] });
            }
        }
    }
    s.angle_types = vec!["1-1-1".into()];
    let forces = [LJ, SCREENED].join(", ");
    for device in devices() {
        for (precision, list) in [("Double", ""), ("Mixed", ""), ("Mixed", ", list: Staged")] {
            let o = |neighbors: &str| found(&s, &forces, &format!("{neighbors}{list}"), device, precision);
            let none = o("buffer: 0.4");
            assert!(o(r#"buffer: 0.4, special: { "1-2": 1.0, "1-4": (pair: 1.0, coulomb: 1.0) }"#) == none);
            let excluded = o("buffer: 0.4, exclude: [Bonds, Angles]");
            assert!(o(r#"buffer: 0.4, special: { "1-2": 0.0, "1-3": 0 }"#) == excluded && excluded != none);
        }
    }
}

/// Every kind of pair potential: forces, torques, energies and virials are linear in the weight.
#[test]
fn all_kinds_of_potentials_are_linear_in_the_weight() {
    let mut s = rings();
    let n = s.len();
    let real = |width, of: &dyn Fn(usize) -> f64| Array {
        width,
        values: Values::Real((0..n * width as usize).map(of).collect()),
    };
    s.arrays.insert("diameter".into(), real(1, &|i| 0.6 + 0.1 * (i % 4) as f64));
    s.arrays.insert("quaternion".into(), real(4, &|k| [0.5, -0.5, 0.5, 0.5][(k + k / 4 % 3) % 4]));
    s.arrays.insert("inert".into(), real(3, &|_| 1.0));
    let pairs = |row: &str| format!(r#"{{ ("*", "*"): {row} }}"#);
    let potentials = [
        format!("LennardJones(r_cut: 2.3, mode: Smooth(1.0), pairs: {})", pairs("(epsilon: 1.0, sigma: 0.8)")),
        format!("ShiftedLj(pairs: {})", pairs("(epsilon: 1.0, sigma: 0.8, s_cut: 2.3, shift: true)")),
        format!("PairExpression(energy: \"a*exp(-r)\", r_cut: 2.3, mode: ShiftForce, pairs: {})", pairs("(a: 2.0)")),
        "DebyeHueckel(r_cut: 2.3, mode: ShiftForce, prefactor: 1.0, kappa: 0.8)".into(),
        format!("SoftRod(pairs: {})", pairs("(alpha: 80.0, mu: 0.7, nu: 2.0)")),
    ];
    for device in devices() {
        for potential in &potentials {
            let at = |w: f64| {
                found(&s, potential, &format!(r#"special: {{ "1-2": {w:?}, "1-4": {w:?} }}"#), device, "Double")
            };
            let (whole, none, part) = (at(1.0), at(0.0), at(0.3));
            let mix = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| 0.3 * a + 0.7 * b).collect::<Vec<_>>();
            let expected = Outcome {
                force: mix(&whole.force, &none.force),
                energy: mix(&whole.energy, &none.energy),
                virial: std::array::from_fn(|k| 0.3 * whole.virial[k] + 0.7 * none.virial[k]),
                shared: 0.3 * whole.shared + 0.7 * none.shared,
            };
            let (far, effect) = (deviation(&part, &expected), deviation(&whole, &none));
            println!("{device:?} {potential}: {far:.1e}; whole and none differ by {effect:.1e}");
            assert!(far < 1e-11 && effect > 1e-3, "{device:?} {potential}: {far:e}, {effect:e}");
        }
    }
}

#[test]
fn energies_forces_and_virials_agree_with_lammps() {
    let s = rings();
    let long = "Ewald(accuracy: 1e-7, r_cut: 5.0)";
    // screened sums are exact; those of Ewald have the accuracy of both programs, in units of the force between unit charges
    // at unit distance
    let mesh = "Pppm(accuracy: 1e-5, r_cut: 5.0)";
    for (method, component, limit) in [("debye", SCREENED, 1e-11), ("ewald", long, 1e-6), ("ewald", mesh, 2e-5)] {
        let rows: Vec<Vec<f64>> = reference(&format!("rings-{method}.txt")).lines().map(numbers).collect();
        assert_eq!(rows.len(), s.len() + 1);
        // LAMMPS writes xx yy zz xy xz yz
        let energy = rows[0][..2].to_vec();
        let virial = [0, 3, 4, 1, 5, 2].map(|k| rows[0][2 + k]);
        let force = rows[1..].concat();
        for device in devices() {
            let o = found(&s, &[LJ, component].join(", "), WEIGHTS, device, "Double");
            let theirs = Outcome { force: force.clone(), shared: energy.iter().sum(), energy: energy.clone(), virial };
            assert!(
                (o.energy[0] / energy[0] - 1.0).abs() < 1e-11,
                "{device:?} {component}: {} and {energy:?}",
                o.energy[0]
            );
            let far = deviation(&o, &theirs);
            println!("{device:?} {component}: {far:.1e}");
            assert!(far < limit, "{device:?} {component}: {far:e}");
        }
    }
}

/// Parameters are given, so that a displacement or a strain does not change them.
const LONG: [&str; 2] = [
    "Ewald(accuracy: 1e-2, r_cut: 2.8, alpha: 1.1, k_max: 5.0)",
    "Pppm(accuracy: 1e-2, r_cut: 2.8, alpha: 1.1, order: 5, grid: [20, 20, 20], charges: Gaussian(0.3))",
];

#[test]
#[ignore = "10 seconds"]
fn forces_are_gradients_of_the_energy() {
    let smooth = LJ.replace("r_cut: 2.5,", "r_cut: 2.5, mode: ShiftForce,");
    let screened = SCREENED.replace("kappa", "mode: ShiftForce, kappa");
    for (component, limit) in [(screened.as_str(), 1e-7), (LONG[0], 2e-5), (LONG[1], 2e-5)] {
        for device in devices() {
            let at = |s: &Snapshot| found(s, &[&smooth, component].join(", "), WEIGHTS, device, "Double");
            let s = rings();
            let here = at(&s);
            let energy = |s: &Snapshot| at(s).energy.iter().sum::<f64>();
            let h = 1e-5;
            for tag in [0, 3, 7, 121] {
                for k in 0..3 {
                    let moved = |d: f64| {
                        let mut s = s.clone();
                        s.position[tag][k] += d;
                        energy(&s)
                    };
                    let (f, slope) = (here.force[3 * tag + k], (moved(h) - moved(-h)) / (2.0 * h));
                    assert!((f + slope).abs() < limit * (1.0 + f.abs()), "{component}, {tag}: {f} and {}", -slope);
                }
            }
        }
    }
}
