//! Both passes on the CPU.

use crate::many_body::component::Law;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::precision::Scheme;
use galamost_plugin_api::prelude::*;

/// Particles of one task; it does not depend on the number of threads.
const CHUNK: usize = 256;

/// The law in the run's numbers.
struct Numbers<R> {
    b: R,
    inv_r_d: R,
    r_d2: R,
    norm: R,
    self_energy: R,
    /// A, r_c, 1/r_c, r_c² of each pair of types.
    rows: Vec<[R; 4]>,
    types: usize,
}

impl<R: Real> Numbers<R> {
    fn new(law: &Law) -> Self {
        let row =
            |r: &crate::many_body::component::PairRow| [r.a, r.cutoff, 1.0 / r.cutoff, r.cutoff * r.cutoff].map(R::lit);
        Self {
            b: R::lit(law.b),
            inv_r_d: R::lit(1.0 / law.r_d),
            r_d2: R::lit(law.r_d * law.r_d),
            norm: R::lit(law.norm()),
            self_energy: R::lit(law.self_energy()),
            rows: law.rows.iter().map(row).collect(),
            types: (law.rows.len() as f64).sqrt() as usize,
        }
    }
}

/// Adds forces, and energies and virials if they are wanted.
///
/// # Safety
/// The views describe valid host arrays of the scheme `S`.
pub unsafe fn compute<S: Scheme>(law: &Law, density: &mut [S::Real], host: &Host, call: &ForceCall, sums: &mut Sums) {
    let (state, list) = (call.state, call.list);
    let n = state.n_local as usize;
    let numbers = Numbers::<S::Real>::new(law);
    let pos = state.pos_type.cast::<S::PosType>();
    // SAFETY: the engine's word about the views
    let scale = unsafe { (*state.globals.host()).scale::<S>() };
    let rho = DevicePtr::<S::Real>::new(density.as_mut_ptr() as u64);
    host.parallel(n, CHUNK, |range| {
        for i in range {
            // SAFETY: the engine's word about the views; ranges are disjoint, and there is a density for each particle
            unsafe {
                let at = &*pos.host().add(i);
                let mut sum = S::Real::ZERO;
                for j in list.row(i) {
                    let r2 = S::difference(at, &*pos.host().add(*j as usize), &scale).norm2();
                    if r2 < numbers.r_d2 {
                        let w = S::Real::ONE - r2.sqrt() * numbers.inv_r_d;
                        sum += w * w;
                    }
                }
                *rho.host().add(i) = sum * numbers.norm;
            }
        }
    });
    let force = state.force.cast::<[S::Real; 4]>();
    let full = call.wanted.more_than_force();
    let half = S::Real::lit(0.5);
    let mut parts = vec![Sums::default(); n.div_ceil(CHUNK)];
    let part = DevicePtr::<Sums>::new(parts.as_mut_ptr() as u64);
    host.parallel(n, CHUNK, |range| {
        let mut total = Sums::default();
        let chunk = range.start / CHUNK;
        for i in range {
            // SAFETY: as above; nobody writes densities now
            unsafe {
                let at = &*pos.host().add(i);
                let rho_i = *rho.host().add(i);
                let rows = &numbers.rows[S::kind(at) as usize * numbers.types..];
                let mut f = Vec3::new(S::Real::ZERO, S::Real::ZERO, S::Real::ZERO);
                let mut u = S::Real::ZERO;
                let mut w = [S::Real::ZERO; 6];
                for j in list.row(i) {
                    let other = &*pos.host().add(*j as usize);
                    let d = S::difference(at, other, &scale);
                    let r2 = d.norm2();
                    let [a, cutoff, inv_cutoff, cutoff2] = rows[S::kind(other) as usize];
                    if !(r2 < cutoff2 || r2 < numbers.r_d2) {
                        continue;
                    }
                    let r = r2.sqrt();
                    let mut strength = S::Real::ZERO;
                    if r2 < cutoff2 {
                        let weight = S::Real::ONE - r * inv_cutoff;
                        strength += a * weight;
                        u += half * a * cutoff * weight * weight;
                    }
                    if r2 < numbers.r_d2 {
                        let weight = S::Real::ONE - r * numbers.inv_r_d;
                        strength += numbers.b * (rho_i + *rho.host().add(*j as usize)) * weight;
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
                    // each pair is met twice, once from each side; the energy of the density is the particle's own
                    let energy = half * u + numbers.self_energy * rho_i * rho_i;
                    out[3] += energy;
                    let virial = w.map(|w| 0.5 * w.f64());
                    total.add(&Sums { energy: energy.f64(), virial });
                }
            }
        }
        // SAFETY: every chunk has its own place in `parts`, which lives until all are done
        unsafe { *part.host().add(chunk) = total };
    });
    if full {
        parts.iter().for_each(|p| sums.add(p));
    }
}
