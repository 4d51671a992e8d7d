//! Factors near 1 that many particles share, as thermostats and barostats apply them.

use crate::prelude::*;

/// Returns x·factor as x + x·(factor − 1).
///
/// In single precision a factor near 1 has an error of up to 2⁻²⁴, the same for every particle, so the kinetic energy of the
/// whole system takes a step of a random walk in every time step. The difference from 1 is small, and so is its error.
#[device_fn]
pub fn scaled_number(x: real, factor: f64) -> real {
    x + x * ((factor - 1.0f64) as real)
}

/// Returns v·factor; see [`scaled_number()`].
#[device_fn]
pub fn scaled(v: Vec3<real>, factor: f64) -> Vec3<real> {
    v + v * ((factor - 1.0f64) as real)
}

/// Returns the factor by which a thermostat reduces velocities in half a step, or NaN if nothing would be left of them (below 10⁻⁷, the
/// relative rounding of single precision). Undefined velocities end the run with an error. At a velocity of 0 it would continue at kT 0 without
/// a message, because a thermostat that scales velocities cannot heat particles at rest.
#[device_fn(f64)]
pub fn defined_factor(factor: f64) -> f64 {
    if factor > 1.0e-7 { factor } else { (-1.0).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_that_leave_nothing_are_undefined() {
        assert_eq!((defined_factor(0.5), defined_factor(2.0)), (0.5, 2.0));
        assert!([0.0, 1e-9, f64::NAN].into_iter().all(|factor| defined_factor(factor).is_nan()));
    }

    /// The relative error of the sum over many values is far below the error of the factor in single precision.
    #[test]
    fn shared_factors_have_no_shared_error() {
        const FACTOR: f64 = 1.0 + 1.0e-5;
        let rounded = (f64::from(FACTOR as f32) - FACTOR).abs();
        let values: Vec<f32> = (0..100_000).map(|k| 1.0 + (k as f32 * 0.618_034).fract()).collect();
        let sum = |f: &dyn Fn(f32) -> f32| values.iter().map(|x| f64::from(f(*x))).sum::<f64>();
        let before = sum(&|x| x);
        let error = |f: &dyn Fn(f32) -> f32| (sum(f) / before - FACTOR).abs();
        // independent errors of at most 2⁻²⁴ each, of 100,000 values
        let independent = 2f64.powi(-24) / (values.len() as f64).sqrt();
        assert!(error(&|x| scaled_number(x, FACTOR)) < 4.0 * independent);
        assert!(error(&|x| x * FACTOR as f32) > 0.5 * rounded && rounded > 20.0 * independent);
        assert_eq!(scaled(Vec3::new(1.0f64, -2.0, 0.5), 1.25), Vec3::new(1.25, -2.5, 0.625));
    }
}
