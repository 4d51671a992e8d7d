//! Pair potentials of particles with an orientation: a function gives force, torque and energy of one pair.
//!
//! What differs from [`super::cpu`]: the force need not lie along r, and there is a torque. The virial is the symmetric
//! part of Σ r F; its antisymmetric part is the density of torque.

use super::cpu::Rows;
use super::oriented_cpu::particles;
use super::{CutoffRow, PairCall, PairFunction, PairInput, Row, RowInput, smoothing};
use crate::abi::views::Sums;
use crate::device::DeviceText;
use crate::device::precision::{Fixed, Float64, Precision};
use crate::device::quaternion::Quaternion;
use crate::device::real::Real;
use crate::device::vector::Vec3;
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
pub struct PairOutput<R> {
    /// Force on i.
    pub force: Vec3<R>,
    /// Torque on i, in the frame of space.
    pub torque: Vec3<R>,
    /// Energy of the pair.
    pub energy: R,
}

impl<R: Real> PairOutput<R> {
    /// Of a potential of the distance alone: r = r_i − r_j, F/r, U.
    pub fn central(r: Vec3<R>, f_over_r: R, energy: R) -> Self {
        Self { force: r * f_over_r, torque: Vec3::zero(), energy }
    }
    /// In mode `Smooth`; the same lines stand in `pair.cuh`.
    #[inline(always)]
    pub fn smooth(self, r2: R, r: Vec3<R>, row: &CutoffRow<R>) -> Self {
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
pub struct OrientedFunction<F>(PhantomData<F>);

impl<F: OrientedFn> PairFunction for OrientedFunction<F> {
    type Row<R: Real> = F::Row<R>;
    type Input = F::Input;
    const INPUTS: u32 = F::INPUTS;
    const ORIENTED: bool = true;
    fn evaluate(input: &OrientedInput<f64>, row: &F::Row<f64>) -> PairOutput<f64> {
        let (force, torque, energy) = F::eval(input, row);
        PairOutput { force, torque, energy }
    }
    unsafe fn cpu(call: &PairCall, single: &Rows<F::Row<f32>, f32>, double: &Rows<F::Row<f64>, f64>, sums: &mut Sums) {
        // SAFETY: `call` describes valid host memory (contract of this function)
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
