//! What the formats without particle types share: their frames move existing particles.

use galamost_plugin_api::prelude::{Error, Frame, InputError, Snapshot, SystemInfo};
use galamost_plugin_api::tilt::to_space;
use galamost_text::Shape;

/// Returns an error if a state has no particles.
///
/// # Errors
/// Returns that error, with the name of the format.
pub fn require_particles(format: &str, s: &Snapshot) -> Result<(), String> {
    if !s.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{format} files do not define particles; create the particles with an earlier generator, or name a file of them with --topology"
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

/// Moves all particles of a state. `shape` is the box, if the file has one, and `centered` says whether its center is 0 in the
/// file; otherwise, its corner is. Without velocities, they become 0.
///
/// # Errors
/// Returns an error if a particle is too far outside the box.
pub fn place(
    s: &mut Snapshot,
    shape: Option<Shape>,
    centered: bool,
    position: impl Iterator<Item = [f64; 3]>,
    velocity: Option<&[[f64; 3]]>,
) -> Result<(), String> {
    let d = s.dimensions as usize;
    let shape = shape.unwrap_or(Shape::of(s));
    let shape = if d == 2 { shape.flat() } else { shape };
    (s.box_length, s.tilt) = (shape.length, shape.tilt);
    let middle = if centered { [0.0; 3] } else { shape.middle() };
    for (tag, p) in position.take(s.len()).enumerate() {
        let r = std::array::from_fn(|axis| if axis < d { p[axis] - middle[axis] } else { 0.0 });
        (s.position[tag], s.image[tag]) =
            shape.fold(r).ok_or_else(|| format!("particle {tag} is too far outside the box"))?;
        let v = velocity.and_then(|v| v.get(tag));
        s.velocity[tag] = std::array::from_fn(|axis| v.filter(|_| axis < d).map_or(0.0, |v| v[axis]));
    }
    Ok(())
}

/// Returns the box and the positions relative to its corner. Two-dimensional boxes get a height of 1.
pub fn from_corner(f: &Frame<'_>, unwrapped: bool) -> (Shape, Vec<[f64; 3]>) {
    let shape = Shape { length: f.box_length(), tilt: f.tilt() }.finite();
    let rows = f.position().iter().zip(f.image());
    (shape, rows.map(|(x, image)| at_corner(&shape, *x, if unwrapped { *image } else { [0; 3] })).collect())
}

/// Returns the position of an image relative to the corner of the box.
pub fn at_corner(shape: &Shape, x: [f64; 3], image: [i32; 3]) -> [f64; 3] {
    let shift = to_space(std::array::from_fn(|k| shape.length[k] * (0.5 + f64::from(image[k]))), shape.tilt);
    std::array::from_fn(|k| x[k] + shift[k])
}

/// Largest rounding error of positions, relative to the shortest box length, with which a file is of use.
const COARSE: f64 = 0.1;

/// Returns an error if positions that are rounded by up to `rounding` say little about where particles are: in a small box, all of
/// them may be 0 in the file. `remedy` says how to write more decimals.
///
/// # Errors
/// Returns that error.
pub fn check_rounding(system: &SystemInfo, rounding: f64, remedy: &str) -> Result<(), InputError> {
    let axes = system.box_length.iter().take(system.dimensions as usize);
    let shortest = axes.fold(f64::INFINITY, |m: f64, l| m.min(*l));
    if rounding <= COARSE * shortest {
        return Ok(());
    }
    Err(InputError::new(format!(
        "the box length {shortest:?} does not fit the decimals of the file, which round positions by up to {rounding:.1e}; \
         {remedy}"
    )))
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
