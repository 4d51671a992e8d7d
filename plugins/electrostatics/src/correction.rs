//! What both methods add to the Fourier part: excluded pairs, self-energy, background and slab.

use crate::params::{Model, NET_CHARGE, remaining};
use crate::split::fourier_pair;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::views::{Fault, FaultKind};
use std::f64::consts::PI;

/// Number of particles per task; independent of the number of threads, for a fixed summation order.
pub const CHUNK: usize = 256;
/// Results of the Fourier part: for each particle the field and the potential of a unit charge, and the virial.
pub struct Fourier<'a> {
    /// Field x, y, z and potential.
    pub field: &'a [[f64; 4]],
    pub virial: [f64; 6],
}

/// Returns the present net charge, and Σ q r along the axis of the slab if there is one, summed chunk by chunk. A charge in the gap of the
/// slab is a fault.
///
/// # Safety
/// The views of `call` describe valid host arrays.
unsafe fn totals(model: &Model, host: &Host, call: &ForceCall) -> (f64, f64) {
    let state = &call.state;
    let n = state.n_local as usize;
    // SAFETY: `globals` is valid by the contract of this function
    let length = unsafe { (*state.globals.host()).box_length };
    let mut partial = vec![[0.0f64; 4]; n.div_ceil(CHUNK)];
    let out = DevicePtr::<[f64; 4]>::new(partial.as_mut_ptr() as u64);
    let add = |a: [f64; 4], b: [f64; 4]| std::array::from_fn(|k| a[k] + b[k]);
    host.parallel(n, CHUNK, |range| {
        let chunk = range.start / CHUNK;
        let of = |i: usize| {
            // SAFETY: particles are below n_local
            let along = |axis: usize| unsafe { model.slab_coordinate(state.position(i)[axis], length[axis]) };
            // SAFETY: particles are below n_local, and each has a charge
            let (q, at) = (unsafe { state.charge_of(i) }, model.slab.map_or(0.0, along));
            if q != 0.0 && model.slab.is_some_and(|axis| at.abs() > model.slab_limit * length[axis]) {
                // SAFETY: particles are below n_local, and `globals` is valid by the contract of the outer function
                unsafe {
                    let tag = *state.tag.host().add(i);
                    let code = FaultKind::Component as u32;
                    (*state.globals.host()).raise(Fault { code, component: call.component, tag, detail: 1 });
                }
            }
            [q, q * q, f64::from(u8::from(q != 0.0)), q * at]
        };
        // SAFETY: each chunk writes its own element of `partial`, which outlives all tasks
        unsafe { *out.host().add(chunk) = range.map(of).fold([0.0; 4], add) };
    });
    let [net, squares, charged, dipole] = partial.into_iter().fold([0.0; 4], add);
    (remaining(net, squares, charged), dipole)
}

/// Returns [`totals`] if they are needed, for energies, as a uniform background has no forces, or a slab.
///
/// # Errors
/// Returns an error if there is a slab and the system is not neutral.
///
/// # Safety
/// The views of `call` describe valid host arrays.
unsafe fn totals_if_needed(model: &Model, host: &Host, call: &ForceCall) -> Result<(f64, f64)> {
    if model.slab.is_none() && !call.wanted.more_than_force() {
        return Ok((0.0, 0.0));
    }
    // SAFETY: the views describe valid host arrays (contract of this function)
    let (net, dipole) = unsafe { totals(model, host, call) };
    if net != 0.0 && model.slab.is_some() { Err(Error::Run(NET_CHARGE.into())) } else { Ok((net, dipole)) }
}

/// Adds the forces of the Fourier part and of all corrections, and their energy and virial to `sums`.
///
/// # Errors
/// Returns an error if there is a slab and the system is not neutral.
///
/// # Safety
/// The views of `call` describe valid host arrays, and `fourier` has an entry for each particle.
pub unsafe fn add_forces(
    model: &Model,
    host: &Host,
    call: &ForceCall,
    fourier: &Fourier<'_>,
    sums: &mut Sums,
) -> Result<()> {
    let state = &call.state;
    // SAFETY: `globals` is valid by the contract of this function
    let length = unsafe { (*state.globals.host()).box_length };
    let (n, volume) = (state.n_local as usize, length.iter().product::<f64>());
    let own = model.self_energy();
    // SAFETY: the views describe valid host arrays (contract of this function)
    let (net, dipole) = unsafe { totals_if_needed(model, host, call)? };
    let background: Vec<f64> = model.background().into_iter().map(|b| b * net / volume).collect();
    let slab = model.slab.map(|axis| (axis, 2.0 * model.slab_constant() / volume * dipole));
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
                    energy += 0.5 * slope * q * model.slab_coordinate(state.position(i)[axis], length[axis]);
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
    Ok(())
}
