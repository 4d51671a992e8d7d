//! Pair potentials of oriented particles: a function returns force, torque and energy of one pair.
//!
//! Unlike in [`super::cpu`], the force need not be parallel to r, and there is a torque. The virial is the symmetric
//! part of Σ r F; the antisymmetric part is the torque density.

use super::cpu::Rows;
use super::oriented_cpu::particles;
use super::{CutoffRow, PairCall, PairFunction, PairInput, Row, RowInput, smooth_oriented};
use crate::abi::views::Sums;
use crate::device::DeviceText;
use crate::device::precision::{Fixed, Float64, Precision};
use crate::device::quaternion::Quaternion;
use crate::device::real::Real;
use crate::device::vector::Vec3;
use std::marker::PhantomData;

/// Input of an oriented pair function. Arguments select members by name, including those of [`PairInput`] except `rv`
/// and `zeta`.
#[derive(Clone, Copy, Debug, Default)]
pub struct OrientedInput<R> {
    /// Input that all pair functions have.
    pub pair: PairInput<R>,
    /// r_i − r_j. Unit: length.
    pub r: Vec3<R>,
    /// Axis of particle i: the unit vector along the z axis of its body.
    pub axis_i: Vec3<R>,
    /// Axis of particle j.
    pub axis_j: Vec3<R>,
    /// Orientation of particle i.
    pub quaternion_i: Quaternion<R>,
    /// Orientation of particle j.
    pub quaternion_j: Quaternion<R>,
}

/// The interaction of a pair: force and torque on particle i, and energy.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PairOutput<R> {
    /// Force on particle i. Unit: energy/length.
    pub force: Vec3<R>,
    /// Torque on particle i, in the lab frame. Unit: energy.
    pub torque: Vec3<R>,
    /// Energy of the pair.
    pub energy: R,
}

impl<R: Real> PairOutput<R> {
    /// Creates the output of a central potential from r = r_i − r_j, F/r and U.
    pub fn central(r: Vec3<R>, f_over_r: R, energy: R) -> Self {
        Self { force: r * f_over_r, torque: Vec3::zero(), energy }
    }
    /// Applies mode `Smooth`.
    #[inline(always)]
    pub fn smooth(self, r2: R, r: Vec3<R>, row: &CutoffRow<R>) -> Self {
        let (force, torque, energy) = smooth_oriented(self.force, self.torque, self.energy, r, r2, row);
        Self { force, torque, energy }
    }
}

impl PairOutput<f64> {
    /// Returns F/r of a central force, from its component along the longest one of `r`: if the force is infinite, others are 0 · ∞.
    pub fn over_r(&self, r: Vec3<f64>) -> f64 {
        let all = [(self.force.x, r.x), (self.force.y, r.y), (self.force.z, r.z)];
        let longest = all.into_iter().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
        longest.map_or(f64::NAN, |(f, r)| f / r)
    }
}

/// An oriented pair function as a type, created by `#[oriented_pair_potential]`.
pub trait OrientedFn: Send + Sync + 'static {
    /// Its row of parameters over a number type.
    type Row<R: Real>: Copy + Send + Sync;
    /// Parameters of one pair of types as the user writes them.
    type Input: RowInput<Row: Row<As<f32> = Self::Row<f32>, As<f64> = Self::Row<f64>>>;
    /// Members of [`PairInput`] that it uses, as flags of [`super::inputs`].
    const INPUTS: u32;
    /// Returns the force and torque on particle i, and U.
    fn eval<R: Real>(input: &OrientedInput<R>, row: &Self::Row<R>) -> (Vec3<R>, Vec3<R>, R);
    /// Returns the CUDA text of `pair_eval`.
    fn eval_text() -> &'static DeviceText;
}

/// A function of distance and orientations, with the CPU loop of oriented particles.
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
        // SAFETY: the contract of this function is passed on
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn central_forces_may_be_infinite() {
        for (r, f) in [([0.0, 0.5, 0.0], f64::NEG_INFINITY), ([0.1, -0.2, 0.3], 7.0), ([2.0, 0.0, 0.0], -3.0)] {
            let r = Vec3::from(r);
            let found = PairOutput::central(r, f, 0.0).over_r(r);
            assert!(found == f || (found - f).abs() < 1e-12, "{r:?}: {found} instead of {f}");
        }
    }
}
