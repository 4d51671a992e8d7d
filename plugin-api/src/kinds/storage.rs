//! Stored positions on the CPU: displacement and conversion. Also recording of faults.

use crate::abi::views::{Fault, Globals, StateView};
use crate::device::precision::{Fixed, Float64, PosTypeF64, PosTypeFixed, Scheme, TWO_32, from_fixed64, wrap_f64};
use crate::device::real::Real;
use crate::device::vector::Vec3;
use std::sync::atomic::{AtomicU32, Ordering};

/// A storage scheme of positions, with the operations that integrators need.
pub(crate) trait PositionStorage: Scheme {
    /// Displaces particle `i` and wraps it into the box. Returns `false` if the displacement is NaN or at least half a
    /// box length.
    ///
    /// # Safety
    /// `state` must describe valid host arrays of this scheme, and no other thread may access particle `i` during the
    /// call.
    unsafe fn displace(state: &StateView, g: &Globals, i: usize, d: [f64; 3]) -> bool;
    /// Returns the position rounded to `real`.
    fn position(p: &Self::PosType, length: [f64; 3]) -> Vec3<Self::Real>;
    /// Rescales a stored position to a box stretched by `ratio`.
    fn stretched(p: &Self::PosType, ratio: [f64; 3]) -> Self::PosType;
}

impl PositionStorage for Fixed {
    unsafe fn displace(state: &StateView, g: &Globals, i: usize, d: [f64; 3]) -> bool {
        // SAFETY: `state` describes valid host arrays (contract of this function)
        let (p, image) = unsafe {
            (
                &mut *state.pos_type.cast::<PosTypeFixed>().host().add(i),
                &mut *state.image.cast::<[i32; 3]>().host().add(i),
            )
        };
        for k in 0..g.dimensions as usize {
            let length = g.box_length[k];
            if d[k].is_nan() || d[k].abs() >= 0.5 * length {
                return false;
            }
            if state.pos_low.is_null() {
                let units = Real::round(d[k] * (TWO_32 / length)) as i64;
                let sum = i64::from(p.position[k]) + units;
                p.position[k] = sum as i32;
                image[k] += ((sum - i64::from(p.position[k])) >> 32) as i32;
            } else {
                // SAFETY: as above
                let low = unsafe { &mut *state.pos_low.host().add(3 * i + k) };
                let old = (i64::from(p.position[k]) << 32) | i64::from(*low);
                // beyond 2⁵³ the product is an integer already
                let units = (d[k] * (TWO_32 / length) * TWO_32) as i64;
                let (new, wrapped) = old.overflowing_add(units);
                (p.position[k], *low) = ((new >> 32) as i32, new as u32);
                if wrapped {
                    image[k] += if units > 0 { 1 } else { -1 };
                }
            }
        }
        true
    }
    #[inline(always)]
    fn position(p: &PosTypeFixed, length: [f64; 3]) -> Vec3<f32> {
        Vec3::from(std::array::from_fn::<f64, 3, _>(|k| from_fixed64(i64::from(p.position[k]) << 32, length[k])))
    }
    #[inline(always)]
    fn stretched(p: &PosTypeFixed, _: [f64; 3]) -> PosTypeFixed {
        *p
    }
}

impl PositionStorage for Float64 {
    unsafe fn displace(state: &StateView, g: &Globals, i: usize, d: [f64; 3]) -> bool {
        // SAFETY: `state` describes valid host arrays (contract of this function)
        let (p, image) = unsafe {
            (
                &mut *state.pos_type.cast::<PosTypeF64>().host().add(i),
                &mut *state.image.cast::<[i32; 3]>().host().add(i),
            )
        };
        for k in 0..g.dimensions as usize {
            let length = g.box_length[k];
            if d[k].is_nan() || d[k].abs() >= 0.5 * length {
                return false;
            }
            let (x, crossed) = wrap_f64(p.position[k] + d[k], length);
            p.position[k] = x;
            image[k] += crossed;
        }
        true
    }
    #[inline(always)]
    fn position(p: &PosTypeF64, _: [f64; 3]) -> Vec3<f64> {
        Vec3::from(p.position)
    }
    #[inline(always)]
    fn stretched(p: &PosTypeF64, ratio: [f64; 3]) -> PosTypeF64 {
        PosTypeF64 { position: std::array::from_fn(|k| p.position[k] * ratio[k]), ..*p }
    }
}

/// Records a fault. Of several faults in a step, the one with the smallest tag is kept.
pub(crate) unsafe fn note_fault(globals: *mut Globals, fault: Fault) {
    // SAFETY: the globals outlive the call; during a phase these words are only accessed by atomics
    unsafe {
        let tag = AtomicU32::from_ptr(&raw mut (*globals).fault.tag);
        let code = AtomicU32::from_ptr(&raw mut (*globals).fault.code);
        tag.fetch_min(fault.tag, Ordering::AcqRel);
        code.store(fault.code, Ordering::Release);
        AtomicU32::from_ptr(&raw mut (*globals).fault.component).store(fault.component, Ordering::Relaxed);
        AtomicU32::from_ptr(&raw mut (*globals).halt).store(1, Ordering::Release);
    }
}
