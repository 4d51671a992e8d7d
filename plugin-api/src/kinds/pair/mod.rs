//! Pair potentials: a function gives U and F of one pair; everything else is the loop's business.
//!
//! A plugin writes one function over `real` and one struct of parameters. Cutoff, modes ([`Mode`]), neighbors,
//! nearest images, exclusions, energies and virials are done once for all potentials: on the CPU in this module
//! ([`cpu`]), on CUDA in `kernels/galamost/pair.cuh`.

pub mod cpu;
mod mode;
pub mod oriented;
mod oriented_cpu;
pub mod potential;

use crate::abi::views::Step;
use crate::device::DeviceText;
use crate::device::real::Real;
use crate::kinds::component::SystemInfo;
use crate::params::{FieldDoc, Fields, FromValue, Params, Range};

pub use crate::abi::calls::{CutoffRow, PairCall, PairConfiguration};
pub use mode::{Mode, apply_mode, smoothing};
pub use oriented::{OrientedFn, OrientedFunction, OrientedInput, PairOutput};
pub use potential::{CentralFunction, CompiledPair, PairFunction, PairPotential};

/// What a pair function can see, by the name of its argument.
#[derive(Clone, Copy, Debug, Default)]
pub struct PairInput<R> {
    /// r², square of the distance.
    pub r2: R,
    /// The cutoff of this pair of types.
    pub r_cut: R,
    /// r·v with r = r_i − r_j and v = v_i − v_j.
    pub rv: R,
    /// ζ_ij = ζ_ji, uniform with mean 0 and variance 1, fresh in every step.
    pub zeta: R,
    /// Charge of i.
    pub charge_i: R,
    /// Charge of j.
    pub charge_j: R,
    /// Diameter of i.
    pub diameter_i: R,
    /// Diameter of j.
    pub diameter_j: R,
    /// The step.
    pub step: Step<R>,
}

/// Flags: which members of [`PairInput`] a function uses.
pub mod inputs {
    /// `rv`.
    pub const VELOCITY: u32 = 1;
    /// `zeta`.
    pub const RANDOM: u32 = 2;
    /// `charge_i`, `charge_j`.
    pub const CHARGE: u32 = 4;
    /// `diameter_i`, `diameter_j`.
    pub const DIAMETER: u32 = 8;
    /// Orientations; set for every oriented potential.
    pub const ORIENTATION: u32 = 16;
}

/// A row of numbers for one pair of types, as the function sees it; derive [`crate::PairParams`].
pub trait Row: crate::device::CxxStruct + Copy + Send + Sync + 'static {
    /// The row over another number type.
    type As<R: Real>: Copy + Send + Sync + 'static;
    /// The row over another number type.
    fn cast<R: Real>(&self) -> Self::As<R>;
    /// Its numbers in order, as CUDA reads them.
    fn numbers(&self) -> Vec<f64>;
    /// A row for tests; `random` gives numbers in 0 … 1.
    fn sample(random: &mut dyn FnMut() -> f64) -> Self;
}

/// A number for tests inside a range.
pub fn sample_in(range: &Range, random: &mut dyn FnMut() -> f64) -> f64 {
    let low = range.above.max(range.at_least);
    let high = range.below.min(range.at_most);
    let (low, high) = match (low.is_finite(), high.is_finite()) {
        (true, true) => (low, high),
        (true, false) => (low.max(0.5), low.max(0.5) + 1.0),
        (false, true) => (high - 1.5, high),
        (false, false) => (0.5, 1.5),
    };
    low + (high - low) * (0.05 + 0.9 * random())
}

/// What the user writes for one pair of types, when that is not the row itself.
pub trait RowInput: Params + FromValue + Send + Sync + 'static {
    /// Parameters of the whole component.
    type Settings: Params + Send + Sync + 'static;
    /// The row it becomes.
    type Row: Row;
    /// Checks the parameters of the whole component.
    ///
    /// # Errors
    /// Returns a message, which is reported once, at the component.
    fn check(_settings: &Self::Settings) -> Result<(), String> {
        Ok(())
    }
    /// Completes and checks them with what is known of the system: types of particles, files of the pipeline's folder.
    ///
    /// # Errors
    /// Returns all mismatches, each with its position in the file.
    fn bind(_settings: &mut Self::Settings, _system: &SystemInfo) -> crate::error::Result<()> {
        Ok(())
    }
    /// The row.
    ///
    /// # Errors
    /// Returns a message if this combination of numbers is invalid.
    fn row(&self, settings: &Self::Settings) -> Result<Self::Row, String>;
    /// The row of particles i and j of these types, for a function to which it makes a difference which of them is i; by
    /// default [`Self::row`].
    ///
    /// # Errors
    /// As [`Self::row`].
    fn row_between(&self, settings: &Self::Settings, _types: [&str; 2]) -> Result<Self::Row, String> {
        self.row(settings)
    }
    /// The potential ends by itself at [`Self::cutoff`]: the user gives neither `r_cut` nor `mode`.
    const OWN_CUTOFF: bool = false;
    /// A cutoff that follows from the numbers, when the user gives none.
    fn cutoff(&self, _settings: &Self::Settings, _system: &SystemInfo) -> Option<f64> {
        None
    }
    /// What holds for pairs of types that the user leaves out; `None`: every pair must have its row.
    fn default_parameters() -> Option<Self> {
        None
    }
    /// Time-dependent numbers of the whole component, at most [`crate::abi::views::COMPONENT_VARYINGS`]; the function
    /// finds their current values in `step.varying`.
    fn varyings(_settings: &Self::Settings) -> Vec<crate::params::varying::Varying> {
        vec![]
    }
    /// Parameters for tests; `None` if they cannot be made up.
    fn sample(_random: &mut dyn FnMut() -> f64) -> Option<Self::Row> {
        None
    }
}

/// A component has no parameters besides its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoSettings;

impl Params for NoSettings {
    fn take(_: &mut Fields<'_, '_>) -> Option<Self> {
        Some(Self)
    }
    fn docs() -> Vec<FieldDoc> {
        vec![]
    }
}

/// A pair function, as a type; made by `#[pair_potential]`.
pub trait PairFn: Send + Sync + 'static {
    /// Its row over a number type.
    type Row<R: Real>: Copy + Send + Sync;
    /// What the user writes for one pair of types.
    type Input: RowInput<Row: Row<As<f32> = Self::Row<f32>, As<f64> = Self::Row<f64>>>;
    /// Members of [`PairInput`] it uses, [`inputs`].
    const INPUTS: u32;
    /// (F/r, U) with F = −dU/dr, positive for repulsion.
    fn eval<R: Real>(input: &PairInput<R>, row: &Self::Row<R>) -> (R, R);
    /// It asks whether members of its row have certain values: the CPU loop is there once more for rows that do.
    const HAS_SPECIALIZATION: bool = false;
    /// Whether a row has all of these values.
    #[inline(always)]
    fn specialized<R: Real>(_row: &Self::Row<R>) -> bool {
        true
    }
    /// CUDA text of `pair_eval`.
    fn eval_text() -> &'static DeviceText;
    /// U and F at the cutoff differ between pairs of the same types: the loop computes `ShiftEnergy` and `ShiftForce`
    /// for each pair.
    const OWN_SHIFT: bool = Self::INPUTS & (inputs::CHARGE | inputs::DIAMETER) != 0;
    /// The loop's row with the shifts of one pair; `at_cutoff` is that pair at the cutoff.
    #[inline(always)]
    fn shifted<R: Real>(at_cutoff: &PairInput<R>, row: &Self::Row<R>, cutoff: &CutoffRow<R>) -> CutoffRow<R> {
        let (f, u) = Self::eval(at_cutoff, row);
        CutoffRow { energy_shift: u, force_shift: f * cutoff.cutoff, ..*cutoff }
    }
}

/// What the CPU loop ([`cpu::run`]) calls: every [`PairFn`], or the function of a [`PairPotential`] that is known only
/// when the pipeline is read and can be written over its row.
pub trait PairEval: Send + Sync + 'static {
    /// Its row over a number type.
    type Row<R: Real>: Copy + Send + Sync;
    /// Members of [`PairInput`] it uses, [`inputs`].
    const INPUTS: u32;
    /// As [`PairFn::OWN_SHIFT`].
    const OWN_SHIFT: bool = false;
    /// (F/r, U) with F = −dU/dr.
    fn eval<R: Real>(input: &PairInput<R>, row: &Self::Row<R>) -> (R, R);
    /// As [`PairFn::HAS_SPECIALIZATION`].
    const HAS_SPECIALIZATION: bool = false;
    /// As [`PairFn::specialized`].
    #[inline(always)]
    fn specialized<R: Real>(_row: &Self::Row<R>) -> bool {
        true
    }
    /// As [`PairFn::shifted`]; asked only if [`Self::OWN_SHIFT`].
    #[inline(always)]
    fn shifted<R: Real>(_at_cutoff: &PairInput<R>, _row: &Self::Row<R>, cutoff: &CutoffRow<R>) -> CutoffRow<R> {
        *cutoff
    }
}

impl<F: PairFn> PairEval for F {
    type Row<R: Real> = <F as PairFn>::Row<R>;
    const INPUTS: u32 = <F as PairFn>::INPUTS;
    const OWN_SHIFT: bool = <F as PairFn>::OWN_SHIFT;
    const HAS_SPECIALIZATION: bool = <F as PairFn>::HAS_SPECIALIZATION;
    #[inline(always)]
    fn specialized<R: Real>(row: &<F as PairFn>::Row<R>) -> bool {
        <F as PairFn>::specialized(row)
    }
    #[inline(always)]
    fn eval<R: Real>(input: &PairInput<R>, row: &<F as PairFn>::Row<R>) -> (R, R) {
        <F as PairFn>::eval(input, row)
    }
    #[inline(always)]
    fn shifted<R: Real>(at_cutoff: &PairInput<R>, row: &<F as PairFn>::Row<R>, cutoff: &CutoffRow<R>) -> CutoffRow<R> {
        <F as PairFn>::shifted(at_cutoff, row, cutoff)
    }
}
