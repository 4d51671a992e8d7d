//! Bonded potentials: a function returns U and its derivative for one bond, angle, dihedral or improper.
//!
//! The engine provides one loop for all potentials. Every particle gathers the forces of its own links, so no force is
//! written by two threads, and the order of the sum is fixed. Angles have three
//! members; dihedrals and impropers have four and the same angle.
//!
//! Authors write the function under `#[bond_potential]`, `#[angle_potential]`, `#[dihedral_potential]` or
//! `#[improper_potential]`; [`BondInput`] lists the quantities it can use.

mod angles;
mod bonds;
pub mod potential;

use crate::abi::views::Step;
use crate::device::DeviceText;
use crate::device::real::Real;
use crate::kinds::pair::{Row, RowInput};
use crate::snapshot::LinkList;

pub use crate::abi::calls::BondedCall;

/// Input of a bond, angle, dihedral or improper function. Arguments select members by name.
#[derive(Clone, Copy, Debug, Default)]
pub struct BondInput<R> {
    /// Bonds: r², the squared bond length. Unit: length².
    pub r2: R,
    /// Angles: θ at the middle particle, 0 … π, and π/2 if a bond has the length 0. Dihedrals and impropers: φ, −π … π, 0
    /// for cis. Unit: radian.
    pub angle: R,
    /// Cosine of the angle.
    pub cos: R,
    /// Sine of the angle.
    pub sin: R,
    /// The current step.
    pub step: Step<R>,
}

/// A bonded function as a type, created by `#[bond_potential]`, `#[angle_potential]`, `#[dihedral_potential]` or
/// `#[improper_potential]`.
pub trait BondFn: Send + Sync + 'static {
    /// Its row of parameters over a number type.
    type Row<R: Real>: Copy + Send + Sync;
    /// Parameters of one type of links as the user writes them.
    type Input: RowInput<Row: Row<As<f32> = Self::Row<f32>, As<f64> = Self::Row<f64>>>;
    /// The links that it acts on.
    const LIST: LinkList;
    /// Evaluates one link.
    ///
    /// * Bonds: (F/r, U) with F = −dU/dr. F/r = −∞ means that the bond is longer than its potential allows; this ends
    ///   the run.
    /// * Angles: (dU/dcos θ, U).
    /// * Dihedrals and impropers: (dU/dφ, U).
    fn eval<R: Real>(input: &BondInput<R>, row: &Self::Row<R>) -> (R, R);
    /// Returns the CUDA text of `bond_eval`.
    fn eval_text() -> &'static DeviceText;
}
