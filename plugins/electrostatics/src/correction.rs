//! What both methods add to the Fourier part: excluded pairs, self-energy, background and slab.

use crate::params::Model;
use crate::split::fourier_pair;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::views::StateView;
use std::f64::consts::PI;

/// Number of particles per task; independent of the number of threads, for a fixed summation order.
pub const CHUNK: usize = 256;
/// Results of the Fourier part: for each particle the field and the potential of a unit charge, and the virial.
pub struct Fourier<'a> {
    /// Field x, y, z and potential.
    pub field: &'a [[f64; 4]],
    pub virial: [f64; 6],
}

/// Returns Σ q r along the axis of the slab, summed chunk by chunk.
///
/// # Safety
/// The view describes valid host arrays.
unsafe fn dipole(host: &Host, state: &StateView, axis: usize) -> f64 {
    let n = state.n_local as usize;
    let mut partial = vec![0.0f64; n.div_ceil(CHUNK)];
    let out = DevicePtr::<f64>::new(partial.as_mut_ptr() as u64);
    host.parallel(n, CHUNK, |range| {
        let chunk = range.start / CHUNK;
        // SAFETY: particles are below n_local
        let sum = range.map(|i| unsafe { state.charge_of(i) * state.position(i)[axis] }).sum();
        // SAFETY: each chunk writes its own element of `partial`, which outlives all tasks
        unsafe { *out.host().add(chunk) = sum };
    });
    partial.iter().sum()
}

/// Adds the forces of the Fourier part and of all corrections, and their energy and virial to `sums`.
///
/// # Safety
/// The views of `call` describe valid host arrays, and `fourier` has an entry for each particle.
pub unsafe fn add_forces(model: &Model, host: &Host, call: &ForceCall, fourier: &Fourier<'_>, sums: &mut Sums) {
    let state = &call.state;
    // SAFETY: `globals` is valid by the contract of this function
    let length = unsafe { (*state.globals.host()).box_length };
    let (n, volume) = (state.n_local as usize, length.iter().product::<f64>());
    let own = model.self_energy();
    let background: Vec<f64> = model.background().into_iter().map(|b| b / volume).collect();
    let slab = model.slab.map(|axis| {
        // SAFETY: the views describe valid host arrays (contract of this function)
        let dipole = unsafe { dipole(host, state, axis) };
        (axis, 2.0 * model.slab_constant() / volume * dipole)
    });
    let mut partial = vec![Sums::default(); n.div_ceil(CHUNK)];
    let out = DevicePtr::<Sums>::new(partial.as_mut_ptr() as u64);
    host.parallel(n, CHUNK, |range| {
        let chunk = range.start / CHUNK;
        let mut total = Sums::default();
        for i in range {
            // SAFETY: `i` < n_local; tags and their rows are valid; tasks write forces of different particles
            unsafe {
                let (q, field) = (state.charge_of(i), fourier.field[i]);
                let mut force: [f64; 3] = std::array::from_fn(|k| q * field[k]);
                let uniform = background[state.type_id(i) as usize] * q;
                let mut energy = 0.5 * q * field[3] - own * q * q - uniform;
                // proportional to 1/V
                [0, 3, 5].into_iter().for_each(|slot| total.virial[slot] -= uniform);
                if let Some((axis, slope)) = slab {
                    force[axis] -= slope * q;
                    energy += 0.5 * slope * q * state.position(i)[axis];
                }
                let mut add = |j: usize, weight: f64| {
                    let d = state.difference(i, j);
                    let (f, u) = fourier_pair::<f64>(d.iter().map(|x| x * x).sum(), &model.terms);
                    let qq = weight * model.coulomb * q * state.charge_of(j);
                    energy += 0.5 * qq * u;
                    for (k, (a, b)) in [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)].into_iter().enumerate() {
                        total.virial[k] += 0.5 * qq * f * d[a] * d[b];
                    }
                    (0..3).for_each(|k| force[k] += qq * f * d[k]);
                };
                for partner in call.excluded(*state.tag.host().add(i)) {
                    add(*state.index_of_tag.host().add(*partner as usize) as usize, -1.0);
                }
                if let Some(special) = call.special() {
                    special.pairs.row(i).for_each(|e| add(e.others[0] as usize, special.coulomb[e.kind as usize]));
                }
                total.energy += energy;
                state.add_force(i, force, if call.wanted.more_than_force() { energy } else { 0.0 });
            }
        }
        // SAFETY: each chunk writes its own element of `partial`, which outlives all tasks
        unsafe { *out.host().add(chunk) = total };
    });
    let mut total = Sums { energy: 0.0, virial: fourier.virial };
    partial.iter().for_each(|p| total.add(p));
    // the slab is proportional to 1/V and to the square of its dipole
    if let Some((normal, slope)) = slab {
        let energy = slope * slope * volume / (8.0 * PI * model.coulomb);
        for (axis, slot) in [0, 3, 5].into_iter().enumerate() {
            total.virial[slot] += if axis == normal { -energy } else { energy };
        }
    }
    if call.wanted.more_than_force() {
        sums.add(&total);
        if !call.quantities.is_null() {
            // SAFETY: the engine allocates one number for the quantity of the component
            unsafe { *call.quantities.host() = total.energy };
        }
    }
}
