//! CPU pair loop for oriented particles.

use super::cpu::Rows;
use super::{OrientedFn, OrientedInput, PairCall, PairOutput, inputs};
use crate::abi::views::{Globals, ListView, StateView, Step, Sums};
use crate::device::precision::Scheme;
use crate::device::quaternion::Quaternion;
use crate::device::real::Real;

/// Adds the forces and torques on particles begin … end, and energy and virial if wanted.
pub(crate) unsafe fn particles<F: OrientedFn, S: Scheme>(
    call: &PairCall,
    rows: &Rows<F::Row<S::Real>, S::Real>,
    sums: &mut Sums,
) {
    // SAFETY: the contract of `cpu::run` holds: every address below is that of an array of n_local + n_ghost
    // elements, every entry of the list is below that, and types are below n_types
    unsafe {
        let state: &StateView = &*call.state;
        let list: &ListView = &*call.list;
        let globals: &Globals = &*state.globals.host();
        let scale = globals.scale::<S>();
        let full = call.wanted.more_than_force();
        let pos = state.pos_type.cast::<S::PosType>().host().cast_const();
        let force = state.force.cast::<[S::Real; 4]>().host();
        let torque = state.torque.cast::<[S::Real; 3]>().host();
        let quaternion = state.quaternion.cast::<Quaternion<S::Real>>().host().cast_const();
        let charge = state.charge.cast::<S::Real>().host().cast_const();
        let diameter = state.diameter.cast::<S::Real>().host().cast_const();
        let mut input = OrientedInput::<S::Real>::default();
        input.pair.step = Step::new(globals, call.first_varying);
        for i in call.begin as usize..call.end as usize {
            let n = *list.count.host().add(i) as usize;
            let row = list.index.host().cast_const().add(i * list.capacity as usize);
            let pi = *pos.add(i);
            let first_row = S::kind(&pi) as usize * rows.n_types;
            input.quaternion_i = *quaternion.add(i);
            input.axis_i = input.quaternion_i.axis();
            let (mut f, mut t, mut u, mut w) = ([0.0; 3], [0.0; 3], 0.0, [0.0; 6]);
            for k in 0..n {
                let j = *row.add(k) as usize;
                let pj = &*pos.add(j);
                let index = first_row + S::kind(pj) as usize;
                let cutoff = rows.cutoff_rows.get_unchecked(index);
                let r = S::difference(&pi, pj, &scale);
                let r2 = r.norm2();
                if r2 >= cutoff.cutoff2 {
                    continue;
                }
                input.r = r;
                (input.pair.r2, input.pair.r_cut) = (r2, cutoff.cutoff);
                input.quaternion_j = *quaternion.add(j);
                input.axis_j = input.quaternion_j.axis();
                if F::INPUTS & inputs::CHARGE != 0 {
                    (input.pair.charge_i, input.pair.charge_j) = (*charge.add(i), *charge.add(j));
                }
                if F::INPUTS & inputs::DIAMETER != 0 {
                    (input.pair.diameter_i, input.pair.diameter_j) = (*diameter.add(i), *diameter.add(j));
                }
                let (force, torque, energy) = F::eval(&input, rows.rows.get_unchecked(index));
                let mut felt = PairOutput { force, torque, energy };
                if rows.mode == 3 {
                    felt = felt.smooth(r2, r, cutoff);
                }
                let (d, g) = (r.f64(), felt.force.f64());
                f.iter_mut().zip(g).for_each(|(sum, x)| *sum += x);
                t.iter_mut().zip(felt.torque.f64()).for_each(|(sum, x)| *sum += x);
                if full {
                    u += felt.energy.f64();
                    for (w, (a, b)) in w.iter_mut().zip([(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]) {
                        *w += 0.5 * (d[a] * g[b] + d[b] * g[a]);
                    }
                }
            }
            let (out, turn) = (&mut *force.add(i), &mut *torque.add(i));
            out.iter_mut().zip(f).for_each(|(o, x)| *o += S::Real::lit(x));
            turn.iter_mut().zip(t).for_each(|(o, x)| *o += S::Real::lit(x));
            if full {
                // each pair is visited twice, once from each particle
                out[3] += S::Real::lit(0.5 * u);
                sums.energy += 0.5 * u;
                sums.virial.iter_mut().zip(w).for_each(|(sum, x)| *sum += 0.5 * x);
                state.add_virial::<S::Real>(i, w.map(|x| 0.5 * x));
            }
        }
    }
}
