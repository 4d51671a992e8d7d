//! Pair potentials: a function returns U and F of one pair.
//!
//! A plugin writes one function over `real` (`#[pair_potential]`) and one struct of parameters
//! (`#[derive(PairParams)]`). Cutoffs, modes ([`Mode`]), neighbors, nearest images, exclusions, energies and virials
//! are the same for all potentials: [`cpu`] on the CPU, `kernels/galamost/pair.cuh` on CUDA.
//!
//! What to read: [`PairInput`] lists the quantities that a function can use. [`RowInput`] is for parameters that need a
//! conversion or checks. The rest of the module is for potentials whose function is only known when the pipeline is
//! read ([`PairPotential`]).

pub mod cpu;
mod long_range;
mod mixing;
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
pub use long_range::{LongRange, ShortRangeRow};
pub use mixing::Mixing;
pub use mode::{Mode, ModeNumber, apply_mode, smooth_oriented, smoothing};
pub use oriented::{OrientedFn, OrientedFunction, OrientedInput, PairOutput};
pub use potential::{CentralFunction, CompiledPair, PairFunction, PairPotential};

/// Input of a pair function. Arguments of the function select members by name.
#[derive(Clone, Copy, Debug, Default)]
pub struct PairInput<R> {
    /// r², the squared distance. Unit: length².
    pub r2: R,
    /// r_cut of this pair of types. Unit: length.
    pub r_cut: R,
    /// r·v with r = r_i − r_j and v = v_i − v_j. Unit: length²/time.
    pub rv: R,
    /// ζ_ij = ζ_ji, a uniform random number with mean 0 and variance 1, new in every step.
    pub zeta: R,
    /// Charge of particle i.
    pub charge_i: R,
    /// Charge of particle j.
    pub charge_j: R,
    /// Diameter of particle i. Unit: length.
    pub diameter_i: R,
    /// Diameter of particle j. Unit: length.
    pub diameter_j: R,
    /// The current step.
    pub step: Step<R>,
}

/// Flags of the members of [`PairInput`] that a function uses.
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
    /// `step`. U and F at the cutoff may then change with time.
    pub const STEP: u32 = 32;
    /// Inputs that make U and F at the cutoff differ between pairs of the same types, or between steps.
    pub(crate) const OWN_SHIFT: u32 = CHARGE | DIAMETER | STEP;
}

/// The parameters of one pair of types as the function reads them. Derive it with [`crate::PairParams`].
pub trait Row: crate::device::CxxStruct + Copy + Send + Sync + 'static {
    /// The row over another number type.
    type As<R: Real>: Copy + Send + Sync + 'static;
    /// Converts the row to another number type.
    fn cast<R: Real>(&self) -> Self::As<R>;
    /// Returns the numbers of the row in order, as CUDA reads them.
    fn numbers(&self) -> Vec<f64>;
    /// Returns a row for tests; `random` returns numbers in 0 … 1.
    fn sample(random: &mut dyn FnMut() -> f64) -> Self;
    /// Returns a row of zeros.
    fn zeros() -> Option<Self> {
        None
    }
}

/// Returns a number for tests within a range.
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

/// The parameters of one pair of types as the user writes them, if they differ from the row.
///
/// A field called `r_cut` or `r_on` is refused when it is compiled, because each pair of types has such a field, unless
/// [`Self::OWN_CUTOFF`] is set:
///
/// ```compile_fail,E0080
/// use galamost_plugin_api::prelude::*;
///
/// #[derive(PairParams)]
/// struct Ramp<real> {
///     a: real,
///     r_cut: real, // call it `range`, or use the argument `r_cut` of the function
/// }
///
/// #[pair_potential("Ramp")]
/// fn ramp(r2: real, p: &Ramp<real>) -> (real, real) {
///     let inv_r = r2.rsqrt();
///     (p.a * inv_r, p.a * (p.r_cut - r2 * inv_r))
/// }
/// ```
pub trait RowInput: Params + FromValue + Send + Sync + 'static {
    /// Parameters of the whole component.
    type Settings: Params + Send + Sync + 'static;
    /// The row that the parameters are converted to.
    type Row: Row;
    /// Checks the parameters of the whole component.
    ///
    /// # Errors
    /// Returns a message, which is reported once, at the component.
    fn check(_settings: &Self::Settings) -> Result<(), String> {
        Ok(())
    }
    /// Completes and checks the settings with the facts of the system, for example particle types or files in the
    /// pipeline's directory.
    ///
    /// # Errors
    /// Returns all mismatches, each with its position in the file.
    fn bind(_settings: &mut Self::Settings, _system: &SystemInfo) -> crate::error::Result<()> {
        Ok(())
    }
    /// Builds the row.
    ///
    /// # Errors
    /// Returns a message if this combination of numbers is invalid.
    fn row(&self, settings: &Self::Settings) -> Result<Self::Row, String>;
    /// Builds the row of particles i and j of these types, for functions that are not symmetric in i and j. Returns
    /// [`Self::row`] by default.
    ///
    /// # Errors
    /// As [`Self::row`].
    fn row_between(&self, settings: &Self::Settings, _types: [&str; 2]) -> Result<Self::Row, String> {
        self.row(settings)
    }
    /// Returns a length that the cutoff of particles of these types must exceed, and what it is; `None` if any cutoff makes sense.
    fn least_cutoff(&self, _settings: &Self::Settings, _types: [&str; 2]) -> Option<(f64, &'static str)> {
        None
    }
    /// Returns a warning about these parameters, which the check reports at the component; called after [`Self::bind`]. Of pair
    /// potentials only.
    fn warning(&self, _settings: &Self::Settings) -> Option<String> {
        None
    }
    /// The potential defines its own range, [`Self::cutoff`]. The user then gives neither `r_cut` nor `mode`.
    const OWN_CUTOFF: bool = false;
    /// Returns a cutoff that follows from the parameters, if the user gives none. Unit: length.
    fn cutoff(&self, _settings: &Self::Settings, _system: &SystemInfo) -> Option<f64> {
        None
    }
    /// Returns the parameters of pairs of types that the user omits. With `None` every pair must have parameters.
    fn default_parameters() -> Option<Self> {
        None
    }
    /// The component has the field `mixing`, and [`Self::mix`] mixes parameters.
    const MIXES: bool = false;
    /// Returns the parameters of a pair of unlike types from those of the pairs of like types.
    ///
    /// # Errors
    /// Returns a message if these parameters cannot be mixed.
    fn mix(&self, _other: &Self, _rule: Mixing) -> Result<Self, String> {
        Err("this potential has no mixing rule".into())
    }
    /// Returns the length that a bond of this type has or reaches, with the name of its field. It must not exceed half the box, because
    /// a bond joins nearest images.
    fn bond_length(&self) -> Option<(&'static str, f64)> {
        None
    }
    /// Returns a row without force and energy, for bond, angle or dihedral types that the component does not name.
    fn inert() -> Option<Self::Row> {
        Self::Row::zeros()
    }
    /// Returns the time-dependent parameters of the component, at most [`crate::views::COMPONENT_VARYINGS`]. The
    /// function reads their current values from `step.varying`.
    fn varyings(_settings: &Self::Settings) -> Vec<crate::params::varying::Varying> {
        vec![]
    }
    /// Returns kT of a pair force that is a thermostat; see [`crate::component::Needs::kt`].
    fn kt(_settings: &Self::Settings) -> Option<f64> {
        None
    }
    /// Returns a row for tests; `None` if rows cannot be generated.
    fn sample(_random: &mut dyn FnMut() -> f64) -> Option<Self::Row> {
        None
    }
}

/// No parameters other than those of the pairs of types.
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

/// The promise that `specialized` of a pair function is pure. The compiler removes code of the CPU loop that relies on it.
#[derive(Clone, Copy, Debug)]
pub struct SpecializationIsPure(());

impl SpecializationIsPure {
    /// Makes the promise.
    ///
    /// # Safety
    /// `specialized` of the function returns the same value whenever it is called with the same row.
    pub const unsafe fn promise() -> Self {
        Self(())
    }
}

/// A pair function as a type, created by `#[pair_potential]`.
pub trait PairFn: Send + Sync + 'static {
    /// Its row of parameters over a number type.
    type Row<R: Real>: Copy + Send + Sync;
    /// Parameters of one pair of types as the user writes them.
    type Input: RowInput<Row: Row<As<f32> = Self::Row<f32>, As<f64> = Self::Row<f64>>>;
    /// Members of [`PairInput`] that it uses, as flags of [`inputs`].
    const INPUTS: u32;
    /// Returns (F/r, U) with F = −dU/dr, positive for repulsion. Units: energy/length², energy.
    fn eval<R: Real>(input: &PairInput<R>, row: &Self::Row<R>) -> (R, R);
    /// The CPU loop has a second instance for rows with special values of their members, such as an exponent of 1. The
    /// macro sets it for functions with a specialization.
    const SPECIALIZATION: Option<SpecializationIsPure> = None;
    /// Returns whether a row has these special values.
    #[inline(always)]
    fn specialized<R: Real>(_row: &Self::Row<R>) -> bool {
        true
    }
    /// Returns the CUDA text of `pair_eval`.
    fn eval_text() -> &'static DeviceText;
    /// U and F at the cutoff differ between pairs of the same types, or between steps. The loop then computes the shifts of
    /// `ShiftEnergy` and `ShiftForce` for each pair. Forces that depend on velocities have no shifts.
    const OWN_SHIFT: bool =
        Self::INPUTS & inputs::OWN_SHIFT != 0 && Self::INPUTS & (inputs::VELOCITY | inputs::RANDOM) == 0;
    /// Returns the cutoff row with the shifts of one pair; `at_cutoff` is that pair at the cutoff.
    #[inline(always)]
    fn shifted<R: Real>(at_cutoff: &PairInput<R>, row: &Self::Row<R>, cutoff: &CutoffRow<R>) -> CutoffRow<R> {
        let (f, u) = Self::eval(at_cutoff, row);
        CutoffRow { energy_shift: u, force_shift: f * cutoff.cutoff, ..*cutoff }
    }
}

/// The function that the CPU loop ([`cpu::run`]) calls: every [`PairFn`], or the function of a [`PairPotential`] that
/// is only known when the pipeline is read and can be evaluated from its row.
pub trait PairEval: Send + Sync + 'static {
    /// Its row of parameters over a number type.
    type Row<R: Real>: Copy + Send + Sync;
    /// Members of [`PairInput`] that it uses, as flags of [`inputs`].
    const INPUTS: u32;
    /// As [`PairFn::OWN_SHIFT`].
    const OWN_SHIFT: bool = false;
    /// Returns (F/r, U) with F = −dU/dr.
    fn eval<R: Real>(input: &PairInput<R>, row: &Self::Row<R>) -> (R, R);
    /// The function reads one record of four numbers for each pair, such as the coefficients of an interval of a table.
    /// The loop then gathers the records of all lanes and calls [`Self::eval_record`].
    const RECORDS: bool = false;
    /// Returns the record of a pair and a number x, both for [`Self::eval_record`]; called only if [`Self::RECORDS`] is set.
    /// Without a record the loop passes zeros.
    #[inline(always)]
    fn record<R: Real>(_r2: R, _row: &Self::Row<R>) -> Option<(&[R; 4], R)> {
        None
    }
    /// Returns (F/r, U) from the record of a pair and the number x.
    #[inline(always)]
    fn eval_record<R: Real>(_x: R, _record: [R; 4]) -> (R, R) {
        (R::ZERO, R::ZERO)
    }
    /// As [`PairFn::SPECIALIZATION`].
    const SPECIALIZATION: Option<SpecializationIsPure> = None;
    /// As [`PairFn::specialized`].
    #[inline(always)]
    fn specialized<R: Real>(_row: &Self::Row<R>) -> bool {
        true
    }
    /// As [`PairFn::shifted`]; called only if [`Self::OWN_SHIFT`] is set.
    #[inline(always)]
    fn shifted<R: Real>(_at_cutoff: &PairInput<R>, _row: &Self::Row<R>, cutoff: &CutoffRow<R>) -> CutoffRow<R> {
        *cutoff
    }
}

impl<F: PairFn> PairEval for F {
    type Row<R: Real> = <F as PairFn>::Row<R>;
    const INPUTS: u32 = <F as PairFn>::INPUTS;
    const OWN_SHIFT: bool = <F as PairFn>::OWN_SHIFT;
    const SPECIALIZATION: Option<SpecializationIsPure> = <F as PairFn>::SPECIALIZATION;
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
