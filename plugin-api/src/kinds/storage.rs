//! How stored positions are moved and read on the CPU, and how a loop notes a fault.

use crate::abi::views::{Fault, Globals, StateView};
use crate::device::precision::{Fixed, Float64, PosTypeF64, PosTypeFixed, Scheme, TWO_32, from_fixed64, wrap_f64};
use crate::device::real::Real;
use crate::device::vector::Vec3;
use std::sync::atomic::{AtomicU32, Ordering};

/// Storage of positions with what an integrator needs of it.
pub(crate) trait PositionStorage: Scheme {
    /// Moves particle `i`; false if the displacement makes no sense.
    ///
    /// # Safety
    /// `state` must describe valid host arrays of this scheme, and no other thread may access particle `i` during the call.
    unsafe fn displace(state: &StateView, g: &Globals, i: usize, d: [f64; 3]) -> bool;
    /// Position rounded to `real`.
    fn position(p: &Self::PosType, length: [f64; 3]) -> Vec3<Self::Real>;
    /// A position stored in a box that has since been stretched by `ratio`.
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
                // beyond 2⁵³ a product is whole already
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

/// Notes a fault; of several in one step, the one with the smallest tag stays.
pub(crate) unsafe fn note_fault(globals: *mut Globals, fault: Fault) {
    // SAFETY: the globals outlive the call; the words are only touched by atomics while a phase runs
    unsafe {
        let tag = AtomicU32::from_ptr(&raw mut (*globals).fault.tag);
        let code = AtomicU32::from_ptr(&raw mut (*globals).fault.code);
        tag.fetch_min(fault.tag, Ordering::AcqRel);
        code.store(fault.code, Ordering::Release);
        AtomicU32::from_ptr(&raw mut (*globals).fault.component).store(fault.component, Ordering::Relaxed);
        AtomicU32::from_ptr(&raw mut (*globals).halt).store(1, Ordering::Release);
    }
}
