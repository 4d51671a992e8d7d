//! The state of a replica that takes the particles of another one.

use super::transfer::ORDER;
use crate::state::arrays::{ArrayId, ParticleArray, optional_name};
use crate::state::{Facts, RawState};
use galamost_plugin_api::error::Result;
use galamost_plugin_api::precision::Precision;

/// Returns the state of a replica after it took the particles of `other`: positions, velocities, orientations and topology. Velocities
/// and angular momenta are multiplied by `factor`. States of integrators, counters and the cell grid remain those of `own`. The
/// neighbor list must be built anew, because the other replica's list may have had another buffer.
///
/// # Errors
/// Returns an error if the other state lacks an array.
pub fn with_particles_of(own: &RawState, other: &RawState, facts: &Facts, factor: f64) -> Result<RawState> {
    let mut out = RawState { topology: other.topology.clone(), ..own.clone() };
    for array in facts.particle_arrays().into_iter().filter(ParticleArray::saved) {
        let bytes = other.section(&array.name)?.to_vec();
        out.sections.insert(array.name, bytes);
    }
    let angular_momentum = optional_name("angular_momentum");
    for (name, width) in [(ArrayId::VelocityMass.name(), 4), (&angular_momentum, 3)] {
        if let Some(bytes) = out.sections.get_mut(name).filter(|_| factor != 1.0) {
            scale(bytes, facts.precision, width, factor);
        }
    }
    let positions = out.section(ArrayId::PosType.name())?.to_vec();
    out.sections.insert(ArrayId::PosAtBuild.name().into(), positions);
    for of_the_list in [ORDER, "built_tilt"] {
        out.sections.remove(of_the_list);
    }
    out.put("built_length", out.box_length);
    Ok(out)
}

/// Multiplies the first three of every `width` real numbers.
fn scale(bytes: &mut [u8], precision: Precision, width: usize, factor: f64) {
    let vector = |k: &usize| k % width < 3;
    if precision == Precision::Double {
        for (_, b) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate().filter(|(k, _)| vector(k)) {
            *b = (f64::from_ne_bytes(*b) * factor).to_ne_bytes();
        }
    } else {
        for (_, b) in bytes.as_chunks_mut::<4>().0.iter_mut().enumerate().filter(|(k, _)| vector(k)) {
            *b = ((f64::from(f32::from_ne_bytes(*b)) * factor) as f32).to_ne_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn velocities_are_scaled_and_masses_are_not() {
        let mut single: Vec<u8> =
            [1.0f32, -2.0, 4.0, 3.0, 0.5, 0.0, 8.0, 5.0].iter().flat_map(|x| x.to_ne_bytes()).collect();
        scale(&mut single, Precision::Mixed, 4, 0.5);
        let found: Vec<f32> = single.as_chunks::<4>().0.iter().map(|b| f32::from_ne_bytes(*b)).collect();
        assert_eq!(found, [0.5, -1.0, 2.0, 3.0, 0.25, 0.0, 4.0, 5.0]);
        let mut double: Vec<u8> = [1.0f64, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_ne_bytes()).collect();
        scale(&mut double, Precision::Double, 3, 2.0);
        let found: Vec<f64> = double.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect();
        assert_eq!(found, [2.0, 4.0, 6.0, 8.0]);
    }
}
