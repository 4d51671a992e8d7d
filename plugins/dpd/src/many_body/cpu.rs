//! Densities and forces on the CPU.

use crate::many_body::component::Parameters;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::precision::{BoxScale, Scheme};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::views::{ListView, StateView};

/// Particles per task, independent of the number of threads.
const CHUNK: usize = 256;

/// Parameters in the precision of the run.
struct Constants<R> {
    strength: R,
    inv_r_d: R,
    r_d2: R,
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
            strength: R::lit(p.strength()),
            inv_r_d: R::lit(1.0 / p.r_d),
            r_d2: R::lit(p.r_d * p.r_d),
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
    let n = call.state.n_local as usize;
    let pairs = Pairs::<S> {
        constants: Constants::new(parameters),
        state: call.state,
        list: call.list,
        pos: call.state.pos_type.cast(),
        // SAFETY: `globals` is a valid host pointer
        scale: unsafe { (*call.state.globals.host()).scale::<S>() },
        rho: DevicePtr::new(density.as_mut_ptr() as u64),
        full: call.wanted.more_than_force(),
    };
    host.parallel(n, CHUNK, |range| {
        for i in range {
            // SAFETY: `i` and the list entries are below the lengths of the arrays; the ranges are disjoint
            unsafe { *pairs.rho.host().add(i) = pairs.density(i) };
        }
    });
    let force = call.state.force.cast::<[S::Real; 4]>();
    let mut parts = vec![Sums::default(); n.div_ceil(CHUNK)];
    let part_pointer = DevicePtr::<Sums>::new(parts.as_mut_ptr() as u64);
    host.parallel(n, CHUNK, |range| {
        let mut total = Sums::default();
        let chunk = range.start / CHUNK;
        for i in range {
            // SAFETY: `i` and the list entries are below the lengths of the arrays; the ranges are disjoint, and the densities are
            // only read
            unsafe { pairs.add_force(i, &mut *force.host().add(i), &mut total) };
        }
        // SAFETY: every chunk writes its own element of `parts`, which outlives the loop
        unsafe { *part_pointer.host().add(chunk) = total };
    });
    if pairs.full {
        parts.iter().for_each(|p| sums.add(p));
    }
}

/// The arrays and constants of the loops over pairs.
struct Pairs<S: Scheme> {
    constants: Constants<S::Real>,
    state: StateView,
    list: ListView,
    pos: DevicePtr<S::PosType>,
    scale: BoxScale<S::Real>,
    /// Sums of weights by index; written by the first loop and read by the second.
    rho: DevicePtr<S::Real>,
    /// Whether energies and virials are requested.
    full: bool,
}

impl<S: Scheme> Pairs<S> {
    /// Returns the sum of weights at particle `i`.
    ///
    /// # Safety
    /// The arrays are valid, and `i` and the entries of its row are below their lengths.
    #[inline]
    unsafe fn density(&self, i: usize) -> S::Real {
        let constants = &self.constants;
        // SAFETY: `i` and the entries of its row are below the lengths of the arrays, which are valid (contract of this function)
        unsafe {
            let at = &*self.pos.host().add(i);
            let mut sum = S::Real::ZERO;
            for j in self.list.row(i) {
                let r2 = S::difference(at, &*self.pos.host().add(*j as usize), &self.scale).norm2();
                if r2 < constants.r_d2 {
                    let w = S::Real::ONE - r2.sqrt() * constants.inv_r_d;
                    sum += w * w;
                }
            }
            sum
        }
    }

    /// Adds the force on particle `i` to `out` and, if requested, its energy and virial to `total`.
    ///
    /// # Safety
    /// The arrays are valid, `i` and the entries of its row are below their lengths, and all densities are known.
    #[inline]
    unsafe fn add_force(&self, i: usize, out: &mut [S::Real; 4], total: &mut Sums) {
        let (constants, full) = (&self.constants, self.full);
        let half = S::Real::lit(0.5);
        // SAFETY: `i` is below the lengths of the arrays, which are valid (contract of this function)
        let (at, rho_i) = unsafe { (&*self.pos.host().add(i), *self.rho.host().add(i)) };
        let rows = &constants.rows[S::kind(at) as usize * constants.types..];
        let mut f = Vec3::new(S::Real::ZERO, S::Real::ZERO, S::Real::ZERO);
        let mut u = S::Real::ZERO;
        let mut w = [S::Real::ZERO; 6];
        // SAFETY: `i` < n_local, and the list is valid (contract of this function)
        for j in unsafe { self.list.row(i) } {
            // SAFETY: the entries of row `i` are below the lengths of the arrays (contract of this function)
            let (other, rho_j) = unsafe { (&*self.pos.host().add(*j as usize), self.rho.host().add(*j as usize)) };
            let d = S::difference(at, other, &self.scale);
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
                // SAFETY: `j` is below the length of `rho`, and its density is known (contract of this function)
                strength += constants.strength * (rho_i + unsafe { *rho_j }) * weight;
            }
            // coinciding particles have no direction and no force
            let g = d * if r > S::Real::ZERO { strength / r } else { S::Real::ZERO };
            f += g;
            if full {
                let terms = [d.x * g.x, d.x * g.y, d.x * g.z, d.y * g.y, d.y * g.z, d.z * g.z];
                w.iter_mut().zip(terms).for_each(|(w, t)| *w += t);
            }
        }
        (out[0], out[1], out[2]) = (out[0] + f.x, out[1] + f.y, out[2] + f.z);
        if full {
            // each pair is visited twice, once per particle; the density energy belongs to one particle
            let energy = half * u + constants.self_energy * rho_i * rho_i;
            out[3] += energy;
            let virial = w.map(|w| 0.5 * w.f64());
            total.add(&Sums { energy: energy.f64(), virial });
            // SAFETY: `i` < n_local, the arrays are valid (contract of this function), and no other thread handles this particle
            unsafe { self.state.add_virial::<S::Real>(i, virial) };
        }
    }
}
