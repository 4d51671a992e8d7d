//! Bonded potentials: a function gives U and its derivative for one bond, angle or dihedral; the loop is done once for
//! all.
//!
//! Every particle gathers the forces of its own links, so nothing is added from two threads at once and the sum has
//! one order. Angles and dihedrals are links of width 3 and 4 in the same tables.

mod angles;
mod bonds;
pub mod potential;

use crate::abi::views::Step;
use crate::device::DeviceText;
use crate::device::real::Real;
use crate::kinds::pair::{Row, RowInput};

pub use crate::abi::calls::BondedCall;

/// What a bond, angle or dihedral function can see.
#[derive(Clone, Copy, Debug, Default)]
pub struct BondInput<R> {
    /// r², square of the bond length.
    pub r2: R,
    /// θ at the middle particle of an angle, 0 … π; φ of a dihedral, −π … π, 0 for cis.
    pub angle: R,
    /// Its cosine.
    pub cos: R,
    /// Its sine.
    pub sin: R,
    /// The step.
    pub step: Step<R>,
}

/// A bonded function, as a type; made by `#[bond_potential]`, `#[angle_potential]` or `#[dihedral_potential]`.
pub trait BondFn: Send + Sync + 'static {
    /// Its row over a number type.
    type Row<R: Real>: Copy + Send + Sync;
    /// What the user writes for one bond type.
    type Input: RowInput<Row: Row<As<f32> = Self::Row<f32>, As<f64> = Self::Row<f64>>>;
    /// Members of a link: 2, 3 or 4.
    const WIDTH: u32;
    /// Bonds: (F/r, U) with F = −dU/dr; F/r = −∞ for a bond that is longer than its potential allows, which ends the run.
    /// Angles: (dU/dcos θ, U). Dihedrals: (dU/dφ, U).
    fn eval<R: Real>(input: &BondInput<R>, row: &Self::Row<R>) -> (R, R);
    /// CUDA text of `bond_eval`.
    fn eval_text() -> &'static DeviceText;
}
