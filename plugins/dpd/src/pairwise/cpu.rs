//! Collisions on the CPU: found on all threads, sorted, processed on one thread.

use crate::pairwise::collision::{Collision, draw, normal};
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::precision::{PosTypeF64, PosTypeFixed, TWO_32};
use galamost_plugin_api::prelude::*;

/// Particles per task, independent of the number of threads.
const CHUNK: usize = 256;

/// A colliding pair: its rank, its random words, the indices of the smaller and the larger tag.
type Pair = ((u32, u32, u32), [u32; 4], [u32; 2]);

/// Performs all collisions of this step.
///
/// # Safety
/// The views of `call` describe valid host arrays of numbers `R` and positions `P`.
pub unsafe fn update<R: Real, P: Separation>(collision: Collision, host: &Host, call: &UpdateCall) {
    let (state, list, key, step) = (call.state, call.list, call.key, call.step);
    let n = state.n_local as usize;
    let pos = state.pos_type.cast::<P>();
    // SAFETY: `globals` is a valid host pointer
    let globals = unsafe { &*state.globals.host() };
    let (dt, limit) = (globals.dt, collision.threshold(globals.dt));
    let kt = globals.values[call.first_varying as usize];
    let length = globals.box_length;
    let mut found: Vec<Vec<Pair>> = vec![vec![]; n.div_ceil(CHUNK)];
    let found_pointer = DevicePtr::<Vec<Pair>>::new(found.as_mut_ptr() as u64);
    host.parallel(n, CHUNK, |range| {
        // SAFETY: every chunk uses its own element of `found`, which outlives the loop
        let pairs = unsafe { &mut *found_pointer.host().add(range.start / CHUNK) };
        for i in range {
            // SAFETY: `i` and the list entries are below the lengths of the arrays
            unsafe {
                // a particle without mass moves with others
                let collides = |i: usize| state.in_group(i, call.group) && state.velocity_mass(i)[3] > 0.0;
                if !collides(i) {
                    continue;
                }
                let a = *state.tag.host().add(i);
                for j in list.row(i) {
                    let b = *state.tag.host().add(*j as usize);
                    if b < a {
                        continue;
                    }
                    let Some(words) = draw(key, step, a, b, limit) else { continue };
                    let r2 = norm2((*pos.host().add(i)).separation(&*pos.host().add(*j as usize), length));
                    if r2 < collision.r_cut * collision.r_cut && r2 > 0.0 && collides(*j as usize) {
                        pairs.push(((words[0], a, b), words, [i as u32, *j]));
                    }
                }
            }
        }
    });
    let mut pairs: Vec<Pair> = found.into_iter().flatten().collect();
    pairs.sort_unstable_by_key(|p| p.0);
    let velocity = state.velocity_mass.cast::<[R; 4]>();
    for (_, words, [i, j]) in pairs {
        let (i, j) = (i as usize, j as usize);
        // SAFETY: `i` and `j` are particle indices, `i` ≠ `j`, and no other thread accesses the velocities
        unsafe {
            let d = (*pos.host().add(i)).separation(&*pos.host().add(j), length);
            let (v_i, v_j) = (&mut *velocity.host().add(i), &mut *velocity.host().add(j));
            let (mut a, mut b) = (v_i.map(Real::f64), v_j.map(Real::f64));
            collision.collide(d, &mut a, &mut b, kt, dt, normal(words));
            (*v_i, *v_j) = (a.map(R::lit), b.map(R::lit));
        }
    }
}

/// r_i − r_j in f64 for every precision, by the same operations as in the kernel: both devices find the same pairs.
pub trait Separation: Copy {
    /// Returns r_i − r_j for the nearest image of j.
    fn separation(&self, j: &Self, length: [f64; 3]) -> [f64; 3];
}

impl Separation for PosTypeFixed {
    fn separation(&self, j: &Self, length: [f64; 3]) -> [f64; 3] {
        std::array::from_fn(|k| f64::from(self.position[k].wrapping_sub(j.position[k])) * (length[k] / TWO_32))
    }
}

impl Separation for PosTypeF64 {
    fn separation(&self, j: &Self, length: [f64; 3]) -> [f64; 3] {
        std::array::from_fn(|k| {
            let d = self.position[k] - j.position[k];
            if length[k] > 0.0 { d - length[k] * (d * (1.0 / length[k])).round_ties_even() } else { d }
        })
    }
}

fn norm2(d: [f64; 3]) -> f64 {
    d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
}
