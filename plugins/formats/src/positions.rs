//! What the formats without particle types share: their frames move existing particles.

use galamost_plugin_api::prelude::{Error, Frame, Snapshot};
use galamost_text::fold;

/// Returns an error if a state has no particles.
///
/// # Errors
/// Returns that error, with the name of the format.
pub fn require_particles(format: &str, s: &Snapshot) -> Result<(), String> {
    if !s.is_empty() {
        return Ok(());
    }
    Err(format!(
        "a {format} file does not define particles; create the particles with an earlier generator, or name a file of them with --topology"
    ))
}

/// Returns an error if a file has another number of particles than the state.
///
/// # Errors
/// Returns that error.
pub fn require_count(found: u64, n: u64) -> Result<(), String> {
    if found == n { Ok(()) } else { Err(format!("has {found} particles, but the state has {n}")) }
}

/// Returns the number from 0 of a frame; negative numbers count from the end.
///
/// # Errors
/// Returns an error if there is no such frame.
pub fn frame_number(number: i64, frames: u64) -> Result<u64, String> {
    let index = if number < 0 { frames.checked_add_signed(number) } else { Some(number as u64) };
    let missing = || format!("frame {number} does not exist; the file has {frames} frames");
    index.filter(|k| *k < frames).ok_or_else(missing)
}

/// Moves all particles of a state. `length` are the box lengths, if the file has them, and `center` is the center of the
/// box in the file, in box lengths. Without velocities, they become 0.
///
/// # Errors
/// Returns an error if a particle is too far outside the box.
pub fn place(
    s: &mut Snapshot,
    length: Option<[f64; 3]>,
    center: f64,
    position: impl Iterator<Item = [f64; 3]>,
    velocity: Option<&[[f64; 3]]>,
) -> Result<(), String> {
    let d = s.dimensions as usize;
    if let Some(length) = length {
        s.box_length[..d].copy_from_slice(&length[..d]);
    }
    for (tag, p) in position.take(s.len()).enumerate() {
        for axis in 0..3 {
            let l = if axis < d { s.box_length[axis] } else { 0.0 };
            let x = if axis < d { p[axis] - center * l } else { 0.0 };
            (s.position[tag][axis], s.image[tag][axis]) =
                fold(x, l).ok_or_else(|| format!("particle {tag} is too far outside the box"))?;
            let v = velocity.and_then(|v| v.get(tag)).filter(|_| axis < d);
            s.velocity[tag][axis] = v.map_or(0.0, |v| v[axis]);
        }
    }
    Ok(())
}

/// Returns the box lengths and the positions relative to the lower corner of the box. Two-dimensional boxes get a height of 1.
pub fn from_corner(f: &Frame<'_>, unwrapped: bool) -> ([f64; 3], Vec<[f64; 3]>) {
    let length = f.box_length().map(|l| if l > 0.0 { l } else { 1.0 });
    let place = |(x, image): (&[f64; 3], &[i32; 3])| {
        let turns = |k: usize| if unwrapped { f64::from(image[k]) } else { 0.0 };
        std::array::from_fn(|k| x[k] + length[k] * (0.5 + turns(k)))
    };
    (length, f.position().iter().zip(f.image()).map(place).collect())
}

/// Returns an error if the size of an array with `bytes` for each particle exceeds 31 bits.
///
/// # Errors
/// Returns that error.
pub fn check_bytes(n: u64, bytes: u64) -> Result<(), Error> {
    if n <= i32::MAX as u64 / bytes {
        return Ok(());
    }
    Err(Error::input(format!("{n} particles exceed the limit of this format")))
}
