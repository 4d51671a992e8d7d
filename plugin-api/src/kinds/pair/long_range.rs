//! Pair potentials of long range, such as Coulomb interactions under periodic boundary conditions.
//!
//! The interaction is split into a pair potential within a cutoff, which the engine's pair loop evaluates like any other,
//! and a remainder that the component computes as a [`Force`], such as a sum in Fourier space. Both are one component:
//! one entry of the pipeline, one energy, one virial, one state in checkpoints.

use super::{NoSettings, PairFn, RowInput};
use crate::kinds::force::Force;

/// The parameters of one pair of types as the function of a [`LongRange`] reads them.
pub type ShortRangeRow<T> = <<<T as LongRange>::Pair as PairFn>::Input as RowInput>::Row;

/// A pair potential of long range. Register it with `#[component(LongRange, "Name")]`.
///
/// [`Force::bind`] chooses the parameters of both parts. Then [`Self::row`] is called for all pairs of types, and
/// [`Force::compute`] adds the remainder in every evaluation of the forces, after the pair loop. The pair loop leaves out
/// excluded pairs; the remainder has to correct for them with [`crate::force::ForceCall::excluded`]. For scaled special
/// pairs, which are excluded too, the engine adds the short-range part times the weight, and the component has to add the
/// same part of its remainder ([`crate::force::ForceCall::special`]).
///
/// The component sets [`crate::component::Needs::cutoff`] to the largest cutoff of its rows, and asks for the arrays that
/// the pair function reads. A list that is restricted by `neighbors: (only: …)` is refused.
pub trait LongRange: Force {
    /// The pair function of the short-range part. Write it with `#[pair_potential]` without a name.
    type Pair: PairFn<Input: RowInput<Settings = NoSettings>>;
    /// Returns parameters and cutoff of the short-range part for two types. Called after [`Force::bind`].
    ///
    /// # Errors
    /// Returns a message if there is no such row.
    fn row(&self, i: usize, j: usize) -> Result<(ShortRangeRow<Self>, f64), String>;
    /// Returns CUDA C++ that precedes the text of the pair function, such as a function with constants of all rows, which a kernel need not
    /// load. Called after [`Force::bind`].
    fn device_text(&self) -> String {
        String::new()
    }
}
