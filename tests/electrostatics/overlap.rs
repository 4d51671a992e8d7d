//! Smeared charges that overlap: at small distances and at the same place.

use super::{charged, on};
use galamost_engine::pipeline::DeviceChoice;
use galamost_tests::devices;
use std::f64::consts::{PI, TAU};

/// Length of the box, and width of the Gaussians.
const LENGTH: f64 = 6.5;
const WIDTH: f64 = 0.35;

/// Energy and force along x of two Gaussian charges 1 and −1 at the distance r along x: the sum over the waves of their densities, without
/// the energy of each charge with itself. Nothing cancels at small r.
fn gaussians(r: f64) -> (f64, f64) {
    let (volume, most) = (LENGTH.powi(3), 18i32);
    let (mut energy, mut force) = (-1.0 / (PI.sqrt() * WIDTH), 0.0);
    for x in 1..=most {
        let k = TAU * f64::from(x) / LENGTH;
        let across = (-most..=most).flat_map(|y| (-most..=most).map(move |z| y * y + z * z));
        let weight: f64 = across
            .map(|s| k * k + f64::from(s) * (TAU / LENGTH).powi(2))
            .map(|k2| (-k2 * WIDTH * WIDTH).exp() / k2)
            .sum();
        // 1 − cos = 2 sin² of the half; waves of both signs
        energy += 8.0 * TAU / volume * weight * (0.5 * k * r).sin().powi(2);
        force -= 4.0 * TAU / volume * weight * k * (k * r).sin();
    }
    (energy, force)
}

/// (1 − s)/r and −d/dr of it for Gaussians, without images: Σ (−x²)ⁿ/(n! (2n + 1)) and its derivative.
fn gaussian_series(r: f64) -> (f64, f64) {
    let beta = 0.5 / WIDTH;
    let (mut term, mut value, mut force) = (2.0 / PI.sqrt() * beta, 0.0, 0.0);
    for n in 0..80 {
        let m = f64::from(n);
        value += term / (2.0 * m + 1.0);
        term *= -(beta * r).powi(2) / (m + 1.0);
        // the next term's derivative
        force -= if r > 0.0 { term * (2.0 * m + 2.0) / (2.0 * m + 3.0) / r } else { 0.0 };
    }
    (value, force)
}

/// The same for Slater charges: 1 − (1 + y/2) exp(−y) with y = 2r/λ, or 1 − exp(−y) beside a point, by powers of y.
fn slater_series(r: f64, lambda: f64, point: bool) -> (f64, f64) {
    let a = 2.0 / lambda;
    let (mut power, mut value, mut force) = (a, 0.0, 0.0);
    for n in 1..80 {
        // aⁿ rⁿ⁻¹/n! times the sign
        let m = f64::from(n);
        let c = if point { 1.0 } else { 1.0 - 0.5 * m };
        value += power * c;
        if n > 1 && r > 0.0 {
            force -= power * c * (m - 1.0) / r;
        }
        power *= -a * r / (m + 1.0);
    }
    // charges at the same place have no direction
    (value, if r > 0.0 { force } else { 0.0 })
}

/// Forces and energies from r = 0 up to where the charges overlap little.
#[test]
#[ignore = "3 seconds"]
fn overlapping_charges_have_the_right_forces() {
    let lambda = 0.35;
    let gaussian = format!("Gaussian({WIDTH})");
    let slater = format!("Slater({lambda})");
    let mixed = format!("{{\"A\": Slater({lambda}), \"B\": Point}}");
    let all = [0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 0.3, 0.6];
    let (ewald, pppm) = ("Ewald(accuracy: 1e-6, r_cut: 3.2", "Pppm(accuracy: 1e-4, r_cut: 3.2");
    for device in devices() {
        for (precision, method) in [("Double", ewald), ("Mixed", ewald), ("Double", pppm), ("Mixed", pppm)] {
            // both methods have the same pair function
            let few = device != DeviceChoice::Cpu;
            if few && method == pppm {
                continue;
            }
            for (kind, charges) in [&gaussian, &slater, &mixed].into_iter().enumerate() {
                for r in all.into_iter().step_by(if few { 3 } else { 1 }) {
                    let mut s = charged([LENGTH; 3], &[([0.0; 3], 1.0), ([r, 0.0, 0.0], -1.0)]);
                    let other = s.type_id("B");
                    s.type_id[1] = other;
                    let o = on(&s, &format!("forces: [{method}, charges: {charges})]"), device, precision);
                    // images and waves are those of points, whatever the distribution
                    let ((mut energy, mut force), (own, own_force)) = (gaussians(r), gaussian_series(r));
                    if kind > 0 {
                        let (other, other_force) = slater_series(r, lambda, kind == 2);
                        energy += own - other;
                        force += own_force - other_force;
                    }
                    // the accuracy of the method, 1e-4 (q/d)² = 4e-6 for the mesh, and some 1e-6 of the largest forces in f32
                    let error = (o.force[1][0] - force).abs().max((o.force[0][0] + force).abs());
                    let place = format!("{device:?} {precision} {method} {charges} {r}");
                    assert!(error < 3e-5 * (1.0 + force.abs()), "{place}: force {} and {force}", o.force[1][0]);
                    // the accuracy of the method again, for both particles and the constant of the own image
                    assert!((o.energy - energy).abs() < 1e-4, "{place}: energy {} and {energy}", o.energy);
                }
            }
        }
    }
}
