//! Velocity swaps on the CPU, bit-identical to the kernels.

use super::{ReversePerturbation, SwapResult};
use galamost_plugin_api::precision::{PosTypeF64, PosTypeFixed, Precision};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::views::StateView;

/// Resolution of the fixed-point sums of a slab: 2³⁰ units per unit of mass or momentum.
pub const UNITS: f64 = 1_073_741_824.0;

/// Returns the slab of particle `i`.
///
/// # Safety
/// The view describes valid host arrays, and `i < n_local`.
unsafe fn slab_of(s: &StateView, i: usize, settings: &ReversePerturbation) -> usize {
    let axis = settings.gradient as usize;
    // SAFETY: `i < n_local` by the contract of this function; the precision selects the type of the positions
    unsafe {
        if s.precision == Precision::Double as u32 {
            let x = (*s.pos_type.cast::<PosTypeF64>().host().add(i)).position[axis];
            let length = (*s.globals.host()).box_length[axis];
            (((x / length + 0.5) * f64::from(settings.slabs)) as usize).min(settings.slabs as usize - 1)
        } else {
            let x = (*s.pos_type.cast::<PosTypeFixed>().host().add(i)).position[axis];
            let from_lower_face = (x as u32).wrapping_add(0x8000_0000);
            ((u64::from(from_lower_face) * u64::from(settings.slabs)) >> 32) as usize
        }
    }
}

/// Returns an integer key that orders particles by velocity, and by tag for equal velocities.
pub fn sort_key(v: f32, tag: u32) -> u64 {
    // -0 and 0 are equal velocities
    let bits = if v == 0.0 { 0 } else { v.to_bits() };
    let ordered = if bits >> 31 == 1 { !bits } else { bits | 0x8000_0000 };
    u64::from(ordered) << 32 | u64::from(tag)
}

/// Returns the velocities after an elastic collision along one axis; equal masses exchange their velocities.
pub fn collide([u, w]: [f64; 2], [mi, mj]: [f64; 2]) -> [f64; 2] {
    if mi == mj {
        return [w, u];
    }
    let twice = 2.0 * ((mi * u + mj * w) / (mi + mj));
    [twice - u, twice - w]
}

/// Sums the slab profile and performs the swaps.
///
/// # Safety
/// The call's views describe valid host arrays.
pub unsafe fn run(call: &UpdateCall, settings: &ReversePerturbation) -> SwapResult {
    let (s, flow) = (call.state, settings.flow as usize);
    let mut result = SwapResult { profile: vec![[0; 2]; settings.slabs as usize], exchanged: 0.0 };
    let mut keys = [vec![], vec![]];
    for i in 0..s.n_local as usize {
        // SAFETY: `i < n_local`, and the arrays are valid by the contract of this function
        unsafe {
            if !s.in_group(i, call.group) {
                continue;
            }
            let (slab, v) = (slab_of(&s, i, settings), s.velocity_mass(i));
            let sums = &mut result.profile[slab];
            sums[0] += (v[3] * v[flow] * UNITS).round_ties_even() as i64;
            sums[1] += (v[3] * UNITS).round_ties_even() as i64;
            // a particle without mass moves with others
            if v[3] == 0.0 {
                continue;
            }
            let (tag, v) = (*s.tag.host().add(i), v[flow] as f32);
            if slab == 0 {
                keys[0].push(sort_key(v, tag));
            } else if slab == settings.slabs as usize / 2 {
                keys[1].push(sort_key(-v, tag));
            }
        }
    }
    keys.iter_mut().for_each(|k| k.sort_unstable());
    for (low, middle) in keys[0].iter().zip(&keys[1]).take(settings.swaps as usize) {
        // SAFETY: the tags in the keys belong to local particles
        unsafe {
            let index = |key: u64| *s.index_of_tag.host().add(key as u32 as usize) as usize;
            let (i, j) = (index(*low), index(*middle));
            let (vi, vj) = (s.velocity_mass(i), s.velocity_mass(j));
            // the swap would reverse the momentum flux
            if vi[flow] >= vj[flow] {
                break;
            }
            let after = collide([vi[flow], vj[flow]], [vi[3], vj[3]]);
            let set = |i: usize, v: [f64; 4], to: f64| {
                s.set_velocity(i, std::array::from_fn(|k| if k == flow { to } else { v[k] }));
            };
            set(i, vi, after[0]);
            set(j, vj, after[1]);
            // the stored velocity, rounded to the precision of the run
            result.exchanged += vi[3] * (s.velocity_mass(i)[flow] - vi[flow]);
        }
    }
    result
}
