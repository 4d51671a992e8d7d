//! Densities and forces on the CPU.

use crate::many_body::component::Parameters;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::precision::Scheme;
use galamost_plugin_api::prelude::*;

/// Particles per task, independent of the number of threads.
const CHUNK: usize = 256;

/// Parameters in the precision of the run.
struct Constants<R> {
    b: R,
    inv_r_d: R,
    r_d2: R,
    norm: R,
    self_energy: R,
    /// A, r_c, 1/r_c and r_c² of each pair of types.
    rows: Vec<[R; 4]>,
    types: usize,
}

impl<R: Real> Constants<R> {
    fn new(p: &Parameters) -> Self {
        let row =
            |r: &crate::many_body::component::PairRow| [r.a, r.cutoff, 1.0 / r.cutoff, r.cutoff * r.cutoff].map(R::lit);
        Self {
            b: R::lit(p.b),
            inv_r_d: R::lit(1.0 / p.r_d),
            r_d2: R::lit(p.r_d * p.r_d),
            norm: R::lit(p.norm()),
            self_energy: R::lit(p.self_energy()),
            rows: p.rows.iter().map(row).collect(),
            types: (p.rows.len() as f64).sqrt() as usize,
        }
    }
}

/// Adds the forces and, if requested, energies and virials.
///
/// # Safety
/// The views of `call` describe valid host arrays of the scheme `S`, and `density` has `n_local` elements.
pub unsafe fn compute<S: Scheme>(
    parameters: &Parameters,
    density: &mut [S::Real],
    host: &Host,
    call: &ForceCall,
    sums: &mut Sums,
) {
    let (state, list) = (call.state, call.list);
    let n = state.n_local as usize;
    let constants = Constants::<S::Real>::new(parameters);
    let pos = state.pos_type.cast::<S::PosType>();
    // SAFETY: `globals` is a valid host pointer
    let scale = unsafe { (*state.globals.host()).scale::<S>() };
    let rho = DevicePtr::<S::Real>::new(density.as_mut_ptr() as u64);
    host.parallel(n, CHUNK, |range| {
        for i in range {
            // SAFETY: `i` and the list entries are below the lengths of the arrays; the ranges are disjoint
            unsafe {
                let at = &*pos.host().add(i);
                let mut sum = S::Real::ZERO;
                for j in list.row(i) {
                    let r2 = S::difference(at, &*pos.host().add(*j as usize), &scale).norm2();
                    if r2 < constants.r_d2 {
                        let w = S::Real::ONE - r2.sqrt() * constants.inv_r_d;
                        sum += w * w;
                    }
                }
                *rho.host().add(i) = sum * constants.norm;
            }
        }
    });
    let force = state.force.cast::<[S::Real; 4]>();
    let full = call.wanted.more_than_force();
    let half = S::Real::lit(0.5);
    let mut parts = vec![Sums::default(); n.div_ceil(CHUNK)];
    let part_pointer = DevicePtr::<Sums>::new(parts.as_mut_ptr() as u64);
    host.parallel(n, CHUNK, |range| {
        let mut total = Sums::default();
        let chunk = range.start / CHUNK;
        for i in range {
            // SAFETY: as above; the densities are only read
            unsafe {
                let at = &*pos.host().add(i);
                let rho_i = *rho.host().add(i);
                let rows = &constants.rows[S::kind(at) as usize * constants.types..];
                let mut f = Vec3::new(S::Real::ZERO, S::Real::ZERO, S::Real::ZERO);
                let mut u = S::Real::ZERO;
                let mut w = [S::Real::ZERO; 6];
                for j in list.row(i) {
                    let other = &*pos.host().add(*j as usize);
                    let d = S::difference(at, other, &scale);
                    let r2 = d.norm2();
                    let [a, cutoff, inv_cutoff, cutoff2] = rows[S::kind(other) as usize];
                    if !(r2 < cutoff2 || r2 < constants.r_d2) {
                        continue;
                    }
                    let r = r2.sqrt();
                    let mut strength = S::Real::ZERO;
                    if r2 < cutoff2 {
                        let weight = S::Real::ONE - r * inv_cutoff;
                        strength += a * weight;
                        u += half * a * cutoff * weight * weight;
                    }
                    if r2 < constants.r_d2 {
                        let weight = S::Real::ONE - r * constants.inv_r_d;
                        strength += constants.b * (rho_i + *rho.host().add(*j as usize)) * weight;
                    }
                    let g = d * (strength / r);
                    f += g;
                    if full {
                        let terms = [d.x * g.x, d.x * g.y, d.x * g.z, d.y * g.y, d.y * g.z, d.z * g.z];
                        w.iter_mut().zip(terms).for_each(|(w, t)| *w += t);
                    }
                }
                let out = &mut *force.host().add(i);
                (out[0], out[1], out[2]) = (out[0] + f.x, out[1] + f.y, out[2] + f.z);
                if full {
                    // each pair is visited twice, once per particle; the density energy belongs to one particle
                    let energy = half * u + constants.self_energy * rho_i * rho_i;
                    out[3] += energy;
                    let virial = w.map(|w| 0.5 * w.f64());
                    total.add(&Sums { energy: energy.f64(), virial });
                }
            }
        }
        // SAFETY: every chunk writes its own element of `parts`, which outlives the loop
        unsafe { *part_pointer.host().add(chunk) = total };
    });
    if full {
        parts.iter().for_each(|p| sums.add(p));
    }
}
