//! Rotation of particles with an orientation, for integrators: device functions for free rotation, torques and energy.
//!
//! A particle has a unit quaternion q (body to lab frame), an angular momentum l in the lab frame, and moments of
//! inertia about its body axes. It does not rotate about an axis with moment 0.

use crate::prelude::*;

/// Returns the rotation about a unit vector by an angle.
#[device_fn]
pub fn rotation(axis: Vec3<real>, angle: real) -> Quaternion<real> {
    let s = (0.5 * angle).sin();
    Quaternion::new(axis.x * s, axis.y * s, axis.z * s, (0.5 * angle).cos())
}

/// Rotates about one body axis only. The angular momentum in the lab frame does not change.
#[device_fn]
fn turned_about(q: Quaternion<real>, axis: Vec3<real>, l: Vec3<real>, inertia: real, dt: real) -> Quaternion<real> {
    let rate = if inertia > 0.0 { q.rotate_back(l).dot(axis) / inertia } else { 0.0 };
    q * rotation(axis, rate * dt)
}

/// Free rotation for a time dt. The angular momentum l in the lab frame does not change.
///
/// A symmetric top (I_x = I_y, including rods and disks with I_z = 0) rotates about l with rate |l|/I_x, and about its
/// own axis with the remaining rate; this is exact. Any other body is rotated about z, y, x, y, z by half steps, which
/// is symplectic and of second order (Dullweber, Leimkuhler & McLachlan, J. Chem. Phys. 107 (1997) 5840).
#[device_fn]
pub fn turned(q: Quaternion<real>, l: Vec3<real>, inertia: Vec3<real>, dt: real) -> Quaternion<real> {
    let x = Vec3::new(1.0, 0.0, 0.0);
    let y = Vec3::new(0.0, 1.0, 0.0);
    let z = Vec3::new(0.0, 0.0, 1.0);
    let mut out = q;
    if (inertia.x == inertia.y) && (inertia.x > 0.0) {
        let size = l.norm();
        let direction = if size > 0.0 { l / size } else { z };
        let spin = if inertia.z > 0.0 { q.axis().dot(l) * (1.0 / inertia.z - 1.0 / inertia.x) } else { 0.0 };
        out = rotation(direction, size * dt / inertia.x) * (q * rotation(z, spin * dt));
    } else {
        out = turned_about(out, z, l, inertia.z, 0.5 * dt);
        out = turned_about(out, y, l, inertia.y, 0.5 * dt);
        out = turned_about(out, x, l, inertia.x, dt);
        out = turned_about(out, y, l, inertia.y, 0.5 * dt);
        out = turned_about(out, z, l, inertia.z, 0.5 * dt);
    }
    out
}

/// Returns the angular momentum after a torque t for a time dt. A body without a moment about its z axis takes up no
/// spin about it.
#[device_fn]
pub fn pushed(l: Vec3<real>, t: Vec3<real>, q: Quaternion<real>, inertia: Vec3<real>, dt: real) -> Vec3<real> {
    let n = q.axis();
    let all = l + t * dt;
    let spin = if inertia.z > 0.0 { 0.0 } else { all.dot(n) };
    all - n * spin
}

/// Contribution of one axis to [`twice_energy`].
#[device_fn]
fn about_axis(l: real, inertia: real) -> real {
    if inertia > 0.0 { l * l / inertia } else { 0.0 }
}

/// Returns twice the rotational kinetic energy, Σ_k l_k²/I_k over the body axes.
#[device_fn]
pub fn twice_energy(q: Quaternion<real>, l: Vec3<real>, inertia: Vec3<real>) -> real {
    let body = q.rotate_back(l);
    about_axis(body.x, inertia.x) + about_axis(body.y, inertia.y) + about_axis(body.z, inertia.z)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn energy(q: Quaternion<f64>, l: Vec3<f64>, i: Vec3<f64>) -> f64 {
        0.5 * twice_energy(q, l, i)
    }

    #[test]
    fn a_linear_rotor_turns_at_a_constant_rate() {
        let (l, inertia) = (Vec3::new(0.0, 3.0, 0.0), Vec3::new(2.0, 2.0, 0.0));
        let (mut q, dt) = (Quaternion::<f64>::none(), 0.01);
        const STEPS: u32 = 100_000;
        for _ in 0..STEPS {
            q = turned(q, l, inertia, dt).normalized();
        }
        // 1.5 per unit of time about y
        let angle: f64 = 1.5 * dt * f64::from(STEPS);
        let n = q.axis();
        let off = (n - Vec3::new(angle.sin(), 0.0, angle.cos())).norm();
        assert!(off < 1e-10, "the axis is {off:e} rad away after {STEPS} steps");
    }

    #[test]
    fn a_symmetric_top_precesses() {
        let (i, l) = (Vec3::new(1.0, 1.0, 2.5), Vec3::new(0.3, -0.4, 1.1));
        let mut q = Quaternion::new(0.2, 0.5, -0.1, 0.8).normalized();
        let (e, tilt) = (energy(q, l, i), q.axis().dot(l));
        // one large step is as accurate as many small ones
        let once = turned(q, l, i, 3.0);
        for _ in 0..300 {
            q = turned(q, l, i, 0.01);
        }
        assert!((once.axis() - q.axis()).norm() < 1e-12);
        assert!((once.rotate(Vec3::new(1.0, 0.0, 0.0)) - q.rotate(Vec3::new(1.0, 0.0, 0.0))).norm() < 1e-12);
        assert!((energy(q, l, i) / e - 1.0).abs() < 1e-12 && (q.axis().dot(l) / tilt - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_energy_of_a_free_asymmetric_body_oscillates_as_dt_squared() {
        let (i, l) = (Vec3::new(1.0, 2.0, 3.0), Vec3::new(1.0, 2.0, -1.5));
        let worst = |dt: f64| {
            let mut q = Quaternion::new(0.2, 0.5, -0.1, 0.8).normalized();
            let e = energy(q, l, i);
            let mut worst = 0.0f64;
            for _ in 0..(50.0 / dt) as u32 {
                q = turned(q, l, i, dt).normalized();
                worst = worst.max((energy(q, l, i) - e).abs() / e);
            }
            worst
        };
        let (coarse, fine) = (worst(0.05), worst(0.025));
        // the ratio tells the order; the bound only excludes runs that are not stable
        assert!(coarse < 1e-2 && (3.6..4.4).contains(&(coarse / fine)), "{coarse:e} and {fine:e}");
    }
}
