//! CPU loop of external potentials.

use crate::abi::services::Host;
use crate::abi::views::{Fault, FaultKind, Globals, Step, Sums};
use crate::device::precision::Scheme;
use crate::device::real::Real;
use crate::device::vector::Vec3;
use crate::kinds::external::{ExternalFn, ExternalInput};
use crate::kinds::force::ForceCall;
use crate::kinds::storage::PositionStorage;
use std::sync::Mutex;

/// Number of particles per chunk; independent of the number of threads.
const CHUNK: usize = 2048;
/// Energies above this count as infinite, in f32 and f64.
const INFINITE: f64 = 3.4e38;

/// Adds forces, and energies and virial if wanted.
///
/// # Safety
/// The call's views describe valid host arrays of the scheme `S`.
pub(crate) unsafe fn run<F: ExternalFn, S: PositionStorage>(
    rows: &[F::Row<S::Real>],
    host: &Host,
    call: &ForceCall,
    virial: bool,
    sums: &mut Sums,
) {
    let s = call.state;
    let n = s.n_local as usize;
    // SAFETY: the views describe valid host arrays, in which `globals` is set
    let globals: &Globals = unsafe { &*s.globals.host() };
    let (step, length) = (Step::<S::Real>::new(globals, call.first_varying), globals.box_length);
    let full = call.wanted.more_than_force();
    let all: Mutex<Vec<(usize, Sums)>> = Mutex::new(vec![]);
    host.parallel(n, CHUNK, |range| {
        let first = range.start;
        let mut sum = Sums::default();
        for i in range {
            // SAFETY: `i` < n_local, the views describe valid host arrays of the scheme `S`, and the ranges of the threads
            // are disjoint
            unsafe {
                if !s.in_group(i, call.group) {
                    continue;
                }
                let pos = &*s.pos_type.cast::<S::PosType>().host().add(i);
                let [x, y, z, mass] = *s.velocity_mass.cast::<[S::Real; 4]>().host().add(i);
                let (place, image) = (s.position(i), s.image.offset(3 * i).slice(3));
                let unwrapped: [f64; 3] = std::array::from_fn(|k| place[k] + length[k] * f64::from(image[k]));
                let charge = if s.charge.is_null() { S::Real::ZERO } else { *s.charge.cast::<S::Real>().host().add(i) };
                let (kind, tag) = (<S as Scheme>::kind(pos), *s.tag.host().add(i));
                let input = ExternalInput {
                    position: S::position(pos, length),
                    unwrapped: Vec3::from(unwrapped),
                    length: Vec3::from(length),
                    velocity: Vec3::new(x, y, z),
                    mass,
                    charge,
                    kind,
                    tag,
                    step,
                };
                let row = &rows[if rows.len() > 1 { kind as usize } else { 0 }];
                let (force, energy) = F::eval::<S::Real>(&input, row);
                if energy.f64() > INFINITE {
                    let code = FaultKind::Component as u32;
                    globals.raise(Fault { code, component: call.component, tag, detail: 0 });
                }
                let out = &mut *s.force.cast::<[S::Real; 4]>().host().add(i);
                out[0] += force.x;
                out[1] += force.y;
                out[2] += force.z;
                if full {
                    out[3] += energy;
                    sum.energy += energy.f64();
                    if virial {
                        let ([x, y, z], [fx, fy, fz]) = (place, force.f64());
                        // the symmetric part of r F
                        let mean = |a: f64, b: f64| 0.5 * (a + b);
                        let (xy, xz, yz) = (mean(x * fy, y * fx), mean(x * fz, z * fx), mean(y * fz, z * fy));
                        let terms = [x * fx, xy, xz, y * fy, yz, z * fz];
                        sum.virial.iter_mut().zip(terms).for_each(|(w, term)| *w += term);
                        s.add_virial::<S::Real>(i, terms);
                    }
                }
            }
        }
        if full {
            all.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((first, sum));
        }
    });
    // sum in the order of the chunks, independent of the threads
    let mut all = all.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    all.sort_by_key(|(first, _)| *first);
    all.iter().for_each(|(_, sum)| sums.add(sum));
}
