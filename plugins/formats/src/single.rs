//! Numbers of formats with single precision.

use galamost_plugin_api::snapshot::{Snapshot, Values};

/// Returns an error that names the first number of a state that single precision cannot hold.
///
/// # Errors
/// Returns that error.
pub fn require(s: &Snapshot, velocity: bool) -> Result<(), String> {
    of_particles("position", 3, s.position.as_flattened())?;
    if velocity {
        of_particles("velocity", 3, s.velocity.as_flattened())?;
    }
    of_particles("mass", 1, &s.mass)?;
    if let Some(l) = s.box_length.into_iter().find(|l| overflows(*l)) {
        return Err(format!("the box length {l:?} exceeds single precision, which the format has"));
    }
    for (name, array) in &s.arrays {
        if let Values::Real(values) = &array.values {
            of_particles(name, array.width as usize, values)?;
        }
    }
    Ok(())
}

/// Returns an error that names the first of the particles' values that single precision cannot hold, if there is one.
///
/// # Errors
/// Returns that error.
pub fn of_particles(name: &str, width: usize, values: &[f64]) -> Result<(), String> {
    match values.iter().position(|x| overflows(*x)) {
        Some(k) => Err(format!(
            "{name} of particle {} is {:?}, which exceeds single precision, which the format has",
            k / width,
            values[k]
        )),
        None => Ok(()),
    }
}

/// Returns whether a finite number becomes infinite in single precision.
fn overflows(x: f64) -> bool {
    x.is_finite() && !(x as f32).is_finite()
}
