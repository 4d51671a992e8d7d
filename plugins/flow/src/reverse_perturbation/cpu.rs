//! The swaps on the CPU; the same, to the bit, as the kernels.

use super::{Found, ReversePerturbation};
use galamost_plugin_api::precision::{PosTypeF64, PosTypeFixed, Precision};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::views::StateView;

/// Units of a slab's sums.
pub const UNITS: f64 = 1_073_741_824.0;

/// The slab of a particle.
unsafe fn slab_of(s: &StateView, i: usize, of: &ReversePerturbation) -> usize {
    let axis = of.gradient as usize;
    // SAFETY: the caller's word
    unsafe {
        if s.precision == Precision::Double as u32 {
            let x = (*s.pos_type.cast::<PosTypeF64>().host().add(i)).position[axis];
            let length = (*s.globals.host()).box_length[axis];
            (((x / length + 0.5) * f64::from(of.slabs)) as usize).min(of.slabs as usize - 1)
        } else {
            let x = (*s.pos_type.cast::<PosTypeFixed>().host().add(i)).position[axis];
            let from_edge = (x as u32).wrapping_add(0x8000_0000);
            ((u64::from(from_edge) * u64::from(of.slabs)) >> 32) as usize
        }
    }
}

/// Whole numbers in the order of the velocities, and of the tags where these are equal.
pub fn key_of(v: f32, tag: u32) -> u64 {
    // -0 and 0 are one velocity
    let bits = if v == 0.0 { 0 } else { v.to_bits() };
    let ordered = if bits >> 31 == 1 { !bits } else { bits | 0x8000_0000 };
    u64::from(ordered) << 32 | u64::from(tag)
}

/// Velocities after a central collision along one axis: exchanged where the masses are equal.
pub fn collide([u, w]: [f64; 2], [mi, mj]: [f64; 2]) -> [f64; 2] {
    if mi == mj {
        return [w, u];
    }
    let twice = 2.0 * ((mi * u + mj * w) / (mi + mj));
    [twice - u, twice - w]
}

/// # Safety
/// The call's views describe valid host arrays.
pub unsafe fn run(call: &UpdateCall, of: &ReversePerturbation) -> Found {
    let (s, flow) = (call.state, of.flow as usize);
    let mut found = Found { profile: vec![[0; 2]; of.slabs as usize], exchanged: 0.0 };
    let mut keys = [vec![], vec![]];
    for i in 0..s.n_local as usize {
        // SAFETY: the engine's word about the views
        unsafe {
            if !s.in_group(i, call.group) {
                continue;
            }
            let (slab, v) = (slab_of(&s, i, of), s.velocity_mass(i));
            let sums = &mut found.profile[slab];
            sums[0] += (v[3] * v[flow] * UNITS).round_ties_even() as i64;
            sums[1] += (v[3] * UNITS).round_ties_even() as i64;
            let (tag, v) = (*s.tag.host().add(i), v[flow] as f32);
            if slab == 0 {
                keys[0].push(key_of(v, tag));
            } else if slab == of.slabs as usize / 2 {
                keys[1].push(key_of(-v, tag));
            }
        }
    }
    keys.iter_mut().for_each(|k| k.sort_unstable());
    for (low, middle) in keys[0].iter().zip(&keys[1]).take(of.swaps as usize) {
        // SAFETY: as above; these are tags of the state
        unsafe {
            let index = |key: u64| *s.index_of_tag.host().add(key as u32 as usize) as usize;
            let (i, j) = (index(*low), index(*middle));
            let (vi, vj) = (s.velocity_mass(i), s.velocity_mass(j));
            // the momentum would flow the other way
            if vi[flow] >= vj[flow] {
                break;
            }
            let after = collide([vi[flow], vj[flow]], [vi[3], vj[3]]);
            let set = |i: usize, v: [f64; 4], to: f64| {
                s.set_velocity(i, std::array::from_fn(|k| if k == flow { to } else { v[k] }));
            };
            set(i, vi, after[0]);
            set(j, vj, after[1]);
            // as it was stored
            found.exchanged += vi[3] * (s.velocity_mass(i)[flow] - vi[flow]);
        }
    }
    found
}
