//! What analyzers read of the state on the host, the same on every device.

use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::precision::{PosTypeF64, PosTypeFixed, Precision};
use galamost_plugin_api::services::Host;
use galamost_plugin_api::views::StateView;

/// 2⁶⁴ and 2³²: units of a box length in fixed point.
const UNITS: f64 = 18_446_744_073_709_551_616.0;
const TWO_32: f64 = 4_294_967_296.0;

/// Whether the run is in double precision.
pub fn is_double(s: &StateView) -> bool {
    s.precision == Precision::Double as u32
}

/// Bytes of an array of the state, copied from wherever it lies.
///
/// # Errors
/// The device's words.
pub fn bytes<T>(host: &Host, from: DevicePtr<T>, n: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; n];
    host.download_bytes(from.cast(), &mut bytes)?;
    Ok(bytes)
}

/// Words of an array of the state.
///
/// # Errors
/// The device's words.
pub fn words<T>(host: &Host, from: DevicePtr<T>, n: usize) -> Result<Vec<u32>> {
    Ok(bytes(host, from, 4 * n)?.as_chunks::<4>().0.iter().map(|b| u32::from_ne_bytes(*b)).collect())
}

/// Tag of each index.
///
/// # Errors
/// The device's words.
pub fn tags(host: &Host, s: &StateView) -> Result<Vec<u32>> {
    words(host, s.tag, s.n_local as usize)
}

/// Type of each particle, by tag.
///
/// # Errors
/// The device's words.
pub fn kinds(host: &Host, s: &StateView) -> Result<Vec<u32>> {
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

/// Coordinate of particle `i` without periodic boundaries, as `unwrapped` of the kernels has it.
///
/// # Safety
/// The view is of valid host arrays, and `i` < n_local.
pub unsafe fn unwrapped(s: &StateView, length: [f64; 3], i: usize) -> [f64; 3] {
    // SAFETY: the caller's word; the lower words are there in `Mixed`
    unsafe {
        let image = std::slice::from_raw_parts(s.image.host().add(3 * i), 3);
        let inside: [f64; 3] = if is_double(s) {
            (*s.pos_type.cast::<PosTypeF64>().host().add(i)).position
        } else {
            let high = (*s.pos_type.cast::<PosTypeFixed>().host().add(i)).position;
            if s.precision == Precision::Mixed as u32 {
                let low = std::slice::from_raw_parts(s.pos_low.host().add(3 * i), 3);
                let units = |k: usize| (u64::from(high[k] as u32) << 32 | u64::from(low[k])) as i64;
                std::array::from_fn(|k| units(k) as f64 * (length[k] / UNITS))
            } else {
                std::array::from_fn(|k| f64::from(high[k]) * (length[k] / TWO_32))
            }
        };
        std::array::from_fn(|k| inside[k] + length[k] * f64::from(image[k]))
    }
}

/// Where a particle is in the box, as pair forces see it: whole numbers of 2⁻³² of the box lengths, or lengths.
#[derive(Clone, Debug)]
pub enum Inside {
    /// `Single` and `Mixed`.
    Fixed(Vec<[i32; 3]>),
    /// `Double`.
    Real(Vec<[f64; 3]>),
}

/// All particles, by index.
///
/// # Safety
/// The view is of valid host arrays.
pub unsafe fn inside(s: &StateView) -> Inside {
    let n = s.n_local as usize;
    // SAFETY: the caller's word
    unsafe {
        if is_double(s) {
            Inside::Real(s.pos_type.cast::<PosTypeF64>().slice(n).iter().map(|p| p.position).collect())
        } else {
            Inside::Fixed(s.pos_type.cast::<PosTypeFixed>().slice(n).iter().map(|p| p.position).collect())
        }
    }
}

/// Bytes of one entry of `pos_type`.
pub fn record(s: &StateView) -> usize {
    if is_double(s) { size_of::<PosTypeF64>() } else { size_of::<PosTypeFixed>() }
}
