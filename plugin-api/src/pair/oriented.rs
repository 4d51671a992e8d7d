//! Pair potentials of particles with an orientation: a function gives force, torque and energy of one pair.
//!
//! What differs from [`super::cpu`]: the force need not lie along r, and there is a torque. The virial is the symmetric
//! part of Σ r F; its antisymmetric part is the density of torque.

use super::cpu::Rows;
use super::{LoopRow, PairCall, PairFunction, PairInput, Row, RowInput, smoothing};
use crate::device::DeviceText;
use crate::precision::{Fixed, Float64, Precision, Scheme};
use crate::quaternion::Quaternion;
use crate::real::Real;
use crate::vector::Vec3;
use crate::views::{Globals, ListView, StateView, Step, Sums};
use std::marker::PhantomData;

/// What an oriented pair function can see, by the name of its argument; besides the members of [`PairInput`] without
/// `rv` and `zeta`.
#[derive(Clone, Copy, Debug, Default)]
pub struct OrientedInput<R> {
    /// What all pair functions see.
    pub pair: PairInput<R>,
    /// r_i − r_j.
    pub r: Vec3<R>,
    /// Axis of i, a unit vector: the z axis of its body.
    pub axis_i: Vec3<R>,
    /// Axis of j.
    pub axis_j: Vec3<R>,
    /// Orientation of i.
    pub quaternion_i: Quaternion<R>,
    /// Orientation of j.
    pub quaternion_j: Quaternion<R>,
}

/// What particle i feels of particle j.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interaction<R> {
    /// Force on i.
    pub force: Vec3<R>,
    /// Torque on i, in the frame of space.
    pub torque: Vec3<R>,
    /// Energy of the pair.
    pub energy: R,
}

impl<R: Real> Interaction<R> {
    /// Of a potential of the distance alone: r = r_i − r_j, F/r, U.
    pub fn central(r: Vec3<R>, f_over_r: R, energy: R) -> Self {
        Self { force: r * f_over_r, torque: Vec3::zero(), energy }
    }
    /// In mode `Smooth`; the same lines stand in `pair.cuh`.
    #[inline(always)]
    pub fn smooth(self, r2: R, r: Vec3<R>, row: &LoopRow<R>) -> Self {
        let (s, ds_over_r) = smoothing(r2, row);
        Self { force: self.force * s - r * (self.energy * ds_over_r), torque: self.torque * s, energy: self.energy * s }
    }
}

/// An oriented pair function, as a type; made by `#[oriented_pair_potential]`.
pub trait OrientedFn: Send + Sync + 'static {
    /// Its row over a number type.
    type Row<R: Real>: Copy + Send + Sync;
    /// What the user writes for one pair of types.
    type Input: RowInput<Row: Row<As<f32> = Self::Row<f32>, As<f64> = Self::Row<f64>>>;
    /// Members of [`PairInput`] it uses, [`super::inputs`].
    const INPUTS: u32;
    /// Force and torque on i, and U.
    fn eval<R: Real>(input: &OrientedInput<R>, row: &Self::Row<R>) -> (Vec3<R>, Vec3<R>, R);
    /// CUDA text of `pair_eval`.
    fn eval_text() -> &'static DeviceText;
}

/// A function of orientations, in the loop of this module.
pub struct Oriented<F>(PhantomData<F>);

impl<F: OrientedFn> PairFunction for Oriented<F> {
    type Row<R: Real> = F::Row<R>;
    type Input = F::Input;
    const INPUTS: u32 = F::INPUTS;
    const ORIENTED: bool = true;
    fn evaluate(input: &OrientedInput<f64>, row: &F::Row<f64>) -> Interaction<f64> {
        let (force, torque, energy) = F::eval(input, row);
        Interaction { force, torque, energy }
    }
    unsafe fn cpu(call: &PairCall, single: &Rows<F::Row<f32>, f32>, double: &Rows<F::Row<f64>, f64>, sums: &mut Sums) {
        // SAFETY: the caller's word
        unsafe {
            if (*call.state).precision == Precision::Double as u32 {
                particles::<F, Float64>(call, double, sums);
            } else {
                particles::<F, Fixed>(call, single, sums);
            }
        }
    }
    fn eval_text() -> &'static DeviceText {
        F::eval_text()
    }
}

/// Adds the forces and torques on particles begin … end, and returns energy and virial if they are wanted.
unsafe fn particles<F: OrientedFn, S: Scheme>(call: &PairCall, rows: &Rows<F::Row<S::Real>, S::Real>, sums: &mut Sums) {
    // SAFETY: the caller's word: every address below is that of an array of n_local + n_ghost elements, every entry
    // of the list is an index below that, and kinds are below n_types
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
                let edges = rows.loop_rows.get_unchecked(index);
                let r = S::difference(&pi, pj, &scale);
                let r2 = r.norm2();
                if r2 >= edges.cutoff2 {
                    continue;
                }
                input.r = r;
                (input.pair.r2, input.pair.r_cut) = (r2, edges.cutoff);
                input.quaternion_j = *quaternion.add(j);
                input.axis_j = input.quaternion_j.axis();
                if F::INPUTS & super::inputs::CHARGE != 0 {
                    (input.pair.charge_i, input.pair.charge_j) = (*charge.add(i), *charge.add(j));
                }
                if F::INPUTS & super::inputs::DIAMETER != 0 {
                    (input.pair.diameter_i, input.pair.diameter_j) = (*diameter.add(i), *diameter.add(j));
                }
                let (force, torque, energy) = F::eval(&input, rows.rows.get_unchecked(index));
                let mut felt = Interaction { force, torque, energy };
                if rows.mode == 3 {
                    felt = felt.smooth(r2, r, edges);
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
                // every pair is met twice, once from each side
                out[3] += S::Real::lit(0.5 * u);
                sums.energy += 0.5 * u;
                sums.virial.iter_mut().zip(w).for_each(|(sum, x)| *sum += 0.5 * x);
            }
        }
    }
}
