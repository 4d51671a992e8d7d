//! CPU loop over bonds. [`each_link`] selects the loop by the width of the links.

use super::angles::{each_angle, each_dihedral};
use crate::abi::views::{Fault, FaultKind, Globals, Step, Sums};
use crate::device::precision::Scheme;
use crate::device::real::Real;
use crate::kinds::bonded::{BondInput, BondedCall};
use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Calls `eval` for every link of particles begin … end with its input and type, and adds the resulting forces, energy
/// and virial. `eval` returns what [`crate::bonded::BondFn::eval`] returns.
///
/// # Safety
/// `call` must describe valid host arrays of the scheme `S` and links of this width. No other thread may access force
/// rows begin … end during the call.
#[inline(always)]
pub unsafe fn each_link<S: Scheme>(
    width: u32,
    call: &BondedCall,
    sums: &mut Sums,
    eval: impl FnMut(&BondInput<S::Real>, usize) -> (S::Real, S::Real),
) {
    // SAFETY: `call` describes valid host memory (contract of this function)
    unsafe {
        match width {
            2 => each_bond::<S>(call, sums, eval),
            3 => each_angle::<S>(call, sums, eval),
            _ => each_dihedral::<S>(call, sums, eval),
        }
    }
}

/// F/r below this limit counts as −∞ in f32.
const BROKEN: f64 = -3.4e38;

// the two tags of a fault are updated together, as one 64-bit word
const _: () = assert!(
    offset_of!(Fault, detail) == offset_of!(Fault, tag) + 4
        && (offset_of!(Globals, fault) + offset_of!(Fault, tag)).is_multiple_of(8)
        && cfg!(target_endian = "little")
);

/// Records that a bond is longer than its potential allows. Of several faults the one with the smallest tags is kept,
/// independent of the order of the threads.
unsafe fn bond_fault(globals: *mut Globals, component: u32, tags: [u32; 2]) {
    let (low, high) = (u64::from(tags[0].min(tags[1])), u64::from(tags[0].max(tags[1])));
    // SAFETY: the globals outlive the call; while forces are computed these words are only accessed by atomics
    unsafe {
        let fault = &raw mut (*globals).fault;
        let place = AtomicU64::from_ptr((&raw mut (*fault).tag).cast());
        // the smaller tag comes first in memory
        let first = place.fetch_update(Ordering::AcqRel, Ordering::Acquire, |seen| {
            (low << 32 | high < seen.rotate_left(32)).then_some(high << 32 | low)
        });
        if first.is_ok() {
            AtomicU32::from_ptr(&raw mut (*fault).component).store(component, Ordering::Relaxed);
        }
        AtomicU32::from_ptr(&raw mut (*fault).code).store(FaultKind::BondTooLong as u32, Ordering::Release);
        AtomicU32::from_ptr(&raw mut (*globals).halt).store(1, Ordering::Release);
    }
}

/// Adds the forces of bonds on particles begin … end.
///
/// # Safety
/// As [`each_link`].
#[inline(always)]
unsafe fn each_bond<S: Scheme>(
    call: &BondedCall,
    sums: &mut Sums,
    mut eval: impl FnMut(&BondInput<S::Real>, usize) -> (S::Real, S::Real),
) {
    // SAFETY: `call` describes valid host arrays, and all indices are below n (contract of this function)
    unsafe {
        let (state, links) = (&*call.state, &*call.links);
        let globals: &Globals = &*state.globals.host();
        let scale = globals.scale::<S>();
        let pos = state.pos_type.cast::<S::PosType>().host().cast_const();
        let force = state.force.cast::<[S::Real; 4]>().host();
        let words = links.words.host().cast_const();
        let stride = links.stride as usize;
        let step = Step::new(globals, call.first_varying);
        for i in call.begin as usize..call.end as usize {
            let pi = *pos.add(i);
            let out = &mut *force.add(i);
            for e in 0..*links.count.host().add(i) as usize {
                let j = *words.add(2 * e * stride + i) as usize;
                let kind = *words.add((2 * e + 1) * stride + i) as usize / 4;
                let d = S::difference(&pi, &*pos.add(j), &scale);
                let input = BondInput { r2: d.norm2(), step, ..BondInput::default() };
                let (f, u) = eval(&input, kind);
                if f < S::Real::lit(BROKEN) {
                    let tag = state.tag.host().cast_const();
                    bond_fault(state.globals.host(), call.component, [*tag.add(i), *tag.add(j)]);
                }
                let fd = d * f;
                out[0] += fd.x;
                out[1] += fd.y;
                out[2] += fd.z;
                if call.wanted.more_than_force() {
                    // each bond is visited twice, once from each particle
                    let half_u = 0.5 * u.f64();
                    out[3] += S::Real::lit(half_u);
                    sums.energy += half_u;
                    let ([x, y, z], [fx, fy, fz]) = (d.f64(), fd.f64());
                    for (w, term) in sums.virial.iter_mut().zip([x * fx, x * fy, x * fz, y * fy, y * fz, z * fz]) {
                        *w += 0.5 * term;
                    }
                }
            }
        }
    }
}
