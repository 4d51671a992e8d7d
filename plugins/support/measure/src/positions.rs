//! Particle data for analyzers, copied to the host, identical on every device.

use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::precision::{PosTypeF64, PosTypeFixed, Precision};
use galamost_plugin_api::services::Host;
use galamost_plugin_api::views::StateView;

/// Fixed-point units per box length in mixed precision, 2⁶⁴.
const UNITS_64: f64 = 18_446_744_073_709_551_616.0;
/// Fixed-point units per box length in single precision, 2³².
const UNITS_32: f64 = 4_294_967_296.0;

// short names that plugins use
pub use self::{BoxPositions as Inside, box_positions as inside, types as kinds};

/// Returns whether the run is in double precision.
pub fn is_double(s: &StateView) -> bool {
    s.precision == Precision::Double as u32
}

/// Copies the first `n` bytes of an array of the state to the host.
///
/// # Errors
/// Returns the driver's error.
pub fn bytes<T>(host: &Host, from: DevicePtr<T>, n: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; n];
    host.download_bytes(from.cast(), &mut bytes)?;
    Ok(bytes)
}

/// Copies the first `n` 32-bit words of an array of the state to the host.
///
/// # Errors
/// Returns the driver's error.
pub fn words<T>(host: &Host, from: DevicePtr<T>, n: usize) -> Result<Vec<u32>> {
    Ok(bytes(host, from, 4 * n)?.as_chunks::<4>().0.iter().map(|b| u32::from_ne_bytes(*b)).collect())
}

/// Returns the tag of each particle, by index.
///
/// # Errors
/// Returns the driver's error.
pub fn tags(host: &Host, s: &StateView) -> Result<Vec<u32>> {
    words(host, s.tag, s.n_local as usize)
}

/// Returns the type of each particle, by tag.
///
/// # Errors
/// Returns the driver's error.
pub fn types(host: &Host, s: &StateView) -> Result<Vec<u32>> {
    let n = s.n_local as usize;
    let (size, at) = match is_double(s) {
        true => (size_of::<PosTypeF64>(), std::mem::offset_of!(PosTypeF64, kind)),
        false => (size_of::<PosTypeFixed>(), std::mem::offset_of!(PosTypeFixed, kind)),
    };
    let records = bytes(host, s.pos_type, size * n)?;
    let mut out = vec![0; n];
    for (record, tag) in records.chunks_exact(size).zip(tags(host, s)?) {
        out[tag as usize] = u32::from_ne_bytes(std::array::from_fn(|k| record[at + k]));
    }
    Ok(out)
}

/// Returns the wrapped positions of all particles, by tag, as pair forces read them, and the lengths of the box in their unit:
/// `length` in double precision, otherwise 2³².
///
/// # Errors
/// Returns the driver's error.
pub fn wrapped(host: &Host, s: &StateView, length: [f64; 3]) -> Result<(Vec<[f64; 3]>, [f64; 3])> {
    let n = s.n_local as usize;
    let records = bytes(host, s.pos_type, record(s) * n)?;
    let mut out = vec![[0.0; 3]; n];
    for (record, tag) in records.chunks_exact(record(s)).zip(tags(host, s)?) {
        out[tag as usize] = std::array::from_fn(|k| match is_double(s) {
            true => {
                let at = std::mem::offset_of!(PosTypeF64, position) + 8 * k;
                f64::from_ne_bytes(std::array::from_fn(|b| record[at + b]))
            }
            false => {
                let at = std::mem::offset_of!(PosTypeFixed, position) + 4 * k;
                f64::from(i32::from_ne_bytes(std::array::from_fn(|b| record[at + b])))
            }
        });
    }
    Ok((out, if is_double(s) { length } else { [UNITS_32; 3] }))
}

/// Returns the unwrapped coordinates of particle `i`, as `unwrapped` in measure.cuh does.
///
/// # Safety
/// The view describes valid host arrays, and `i < n_local`.
pub unsafe fn unwrapped(s: &StateView, length: [f64; 3], i: usize) -> [f64; 3] {
    // SAFETY: the view is valid and `i < n_local` (contract of this function); `pos_low` exists in mixed precision
    unsafe {
        let image = std::slice::from_raw_parts(s.image.host().add(3 * i), 3);
        let wrapped: [f64; 3] = if is_double(s) {
            (*s.pos_type.cast::<PosTypeF64>().host().add(i)).position
        } else {
            let high = (*s.pos_type.cast::<PosTypeFixed>().host().add(i)).position;
            if s.precision == Precision::Mixed as u32 {
                let low = std::slice::from_raw_parts(s.pos_low.host().add(3 * i), 3);
                let units = |k: usize| (u64::from(high[k] as u32) << 32 | u64::from(low[k])) as i64;
                std::array::from_fn(|k| units(k) as f64 * (length[k] / UNITS_64))
            } else {
                std::array::from_fn(|k| f64::from(high[k]) * (length[k] / UNITS_32))
            }
        };
        std::array::from_fn(|k| wrapped[k] + length[k] * f64::from(image[k]))
    }
}

/// Wrapped positions of all particles, as pair forces read them.
#[derive(Clone, Debug)]
pub enum BoxPositions {
    /// Integers in units of 2⁻³² of the box lengths (`Single` and `Mixed` precision).
    Fixed(Vec<[i32; 3]>),
    /// Lengths (`Double` precision).
    Real(Vec<[f64; 3]>),
}

/// Returns the wrapped positions of all particles, by index.
///
/// # Safety
/// The view describes valid host arrays.
pub unsafe fn box_positions(s: &StateView) -> BoxPositions {
    let n = s.n_local as usize;
    // SAFETY: `pos_type` has `n` elements of the precision's record type (contract of this function)
    unsafe {
        if is_double(s) {
            BoxPositions::Real(s.pos_type.cast::<PosTypeF64>().slice(n).iter().map(|p| p.position).collect())
        } else {
            BoxPositions::Fixed(s.pos_type.cast::<PosTypeFixed>().slice(n).iter().map(|p| p.position).collect())
        }
    }
}

/// Returns the size in bytes of one entry of `pos_type`.
pub fn record(s: &StateView) -> usize {
    if is_double(s) { size_of::<PosTypeF64>() } else { size_of::<PosTypeFixed>() }
}
