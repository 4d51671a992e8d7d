//! Pair potentials as components use them.
//!
//! Most potentials are functions compiled with the plugin ([`CompiledPair`]). A plugin whose function is only known
//! when the pipeline is read implements [`PairPotential`] itself; cutoffs, modes, tables of types and messages are the
//! same.

use super::cpu::{self, Rows};
use super::{CutoffRow, Mixing, Mode, OrientedInput, PairCall, PairFn, PairOutput, Row, RowInput};
use crate::abi::views::Sums;
use crate::device::real::Real;
use crate::device::{DeviceText, assemble};
use crate::error::{Error, Errors, Position, Result};
use crate::kinds::component::{Kind, SystemInfo};
use crate::params::Params;
use crate::params::varying::Varying;
use std::marker::PhantomData;

/// A pair potential.
pub trait PairPotential: Sized + Send + Sync + 'static {
    /// Parameters of the whole component, besides `r_cut`, `mode` and `pairs`.
    type Settings: Params;
    /// Parameters of one pair of types as the user writes them, besides `r_cut` and `r_on`.
    type Input: Params + Send + Sync + 'static;
    /// Parameters of one pair of types as the function reads them.
    type Row: Send + Sync + 'static;
    /// Parameter tables of the CPU loop.
    type Tables: Send + Sync + 'static;

    /// Creates the potential. `written` are the user's parameters, each with its position in the file.
    fn new(settings: Self::Settings, written: &[(Position, &Self::Input)], errors: &mut Errors) -> Option<Self>;
    /// The potential defines its own range, [`Self::cutoff`]. The user then gives neither `r_cut` nor `mode`.
    const OWN_CUTOFF: bool = false;
    /// The kind of the component: a compile error if a field has the name of a cutoff of the component.
    #[doc(hidden)]
    const KIND: Kind = {
        assert!(
            Self::OWN_CUTOFF || !(Self::Settings::HAS_CUTOFF || Self::Input::HAS_CUTOFF),
            "a field is called `r_cut` or `r_on`, which every pair potential has already: give it another name, or set OWN_CUTOFF"
        );
        Kind::Pair
    };
    /// The potential depends on orientations and has torques.
    const ORIENTED: bool = false;
    /// Returns the parameters of pairs of types that the user omits. With `None` every pair must have parameters.
    fn default_parameters() -> Option<Self::Input> {
        None
    }
    /// The component has the field `mixing`, and [`Self::mix`] mixes parameters.
    const MIXES: bool = false;
    /// Returns the parameters of a pair of unlike types from those of the pairs of like types.
    ///
    /// # Errors
    /// Returns a message if these parameters cannot be mixed.
    fn mix(_: [&Self::Input; 2], _rule: Mixing) -> Result<Self::Input, String> {
        Err("this potential has no mixing rule".into())
    }
    /// Returns the members of [`super::PairInput`] that it uses, as flags of [`super::inputs`].
    fn inputs(&self) -> u32 {
        0
    }
    /// Returns the time-dependent parameters.
    fn varyings(&self) -> Vec<Varying> {
        vec![]
    }
    /// Returns kT of a pair force that is a thermostat; see [`crate::component::Needs::kt`].
    fn kt(&self) -> Option<f64> {
        None
    }
    /// Returns a cutoff that follows from the parameters, if the user gives none.
    fn cutoff(&self, _input: &Self::Input, _system: &SystemInfo) -> Option<f64> {
        None
    }
    /// Checks the parameters of the whole component.
    ///
    /// # Errors
    /// Returns a message, which is reported once, at the component.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
    /// Completes and checks the settings with the facts of the system.
    ///
    /// # Errors
    /// Returns all mismatches, each with its position in the file.
    fn bind(&mut self, _system: &SystemInfo) -> Result<()> {
        Ok(())
    }
    /// Returns warnings about the parameters, which the check reports; called after [`Self::bind`].
    fn warnings(&self) -> Vec<String> {
        vec![]
    }
    /// As [`Self::warnings`], which it calls by default. `written` are the user's parameters.
    fn warnings_of(&self, _written: &[&Self::Input]) -> Vec<String> {
        self.warnings()
    }
    /// Builds the row of a pair of types with this cutoff.
    ///
    /// # Errors
    /// Returns a message if this combination of numbers is invalid.
    fn row(&self, input: &Self::Input, cutoff: f64) -> Result<Self::Row, String>;
    /// Builds the row of particles i and j of these types, for functions that are not symmetric in i and j. Returns
    /// [`Self::row`] by default.
    ///
    /// # Errors
    /// As [`Self::row`].
    fn row_between(&self, input: &Self::Input, cutoff: f64, _types: [&str; 2]) -> Result<Self::Row, String> {
        self.row(input, cutoff)
    }
    /// Returns the numbers of a row in order, as CUDA reads them.
    fn numbers(row: &Self::Row) -> Vec<f64>;
    /// Returns the numbers of the function that all rows share. They must exist in the precision of the run, as those of rows.
    fn constants(&self) -> Vec<f64> {
        vec![]
    }
    /// Appends further numbers after those of all rows; the function finds them in device memory at `input.numbers`.
    /// The numbers of the rows may also be changed.
    fn more_numbers(&self, _numbers: &mut Vec<f64>) {}
    /// Returns force, torque and U of one pair, without cutoff and mode.
    fn evaluate(&self, input: &OrientedInput<f64>, row: &Self::Row) -> PairOutput<f64>;
    /// Builds the tables of the CPU loop. The row of types i and j is at i · n + j.
    fn tables(&self, n_types: usize, rows: &[Self::Row], cutoff: &[CutoffRow<f64>], mode: Mode) -> Self::Tables;
    /// Adds the forces on particles begin … end, and energy and virial if wanted.
    ///
    /// # Safety
    /// As [`cpu::run`].
    unsafe fn cpu(&self, call: &PairCall, tables: &Self::Tables, sums: &mut Sums);
    /// Returns the CUDA text: `PairRow` and `pair_eval`. The function returns F/r and U, or force, torque and U for an
    /// oriented potential.
    ///
    /// # Errors
    /// Returns an error if two device functions have the same name.
    fn text(&self) -> Result<String>;
}

/// A pair function compiled with the plugin, together with its loop: [`CentralFunction`] or
/// [`super::OrientedFunction`].
pub trait PairFunction: Send + Sync + 'static {
    /// Its row of parameters over a number type.
    type Row<R: Real>: Copy + Send + Sync;
    /// Parameters of one pair of types as the user writes them.
    type Input: RowInput<Row: Row<As<f32> = Self::Row<f32>, As<f64> = Self::Row<f64>>>;
    /// Members of [`super::PairInput`] that it uses, as flags of [`super::inputs`].
    const INPUTS: u32;
    /// The function depends on orientations and has torques.
    const ORIENTED: bool;
    /// Returns force, torque and U of one pair, without cutoff and mode.
    fn evaluate(input: &OrientedInput<f64>, row: &Self::Row<f64>) -> PairOutput<f64>;
    /// Adds the forces on particles begin … end, and energy and virial if wanted.
    ///
    /// # Safety
    /// As [`cpu::run`].
    unsafe fn cpu(
        call: &PairCall,
        single: &Rows<Self::Row<f32>, f32>,
        double: &Rows<Self::Row<f64>, f64>,
        sums: &mut Sums,
    );
    /// Returns the CUDA text of `pair_eval`.
    fn eval_text() -> &'static DeviceText;
}

/// A function of the distance, with the vectorized loop of [`cpu`].
pub struct CentralFunction<F>(PhantomData<F>);

impl<F: PairFn> PairFunction for CentralFunction<F> {
    type Row<R: Real> = F::Row<R>;
    type Input = F::Input;
    const INPUTS: u32 = F::INPUTS;
    const ORIENTED: bool = false;
    fn evaluate(input: &OrientedInput<f64>, row: &F::Row<f64>) -> PairOutput<f64> {
        let (f_over_r, energy) = F::eval(&input.pair, row);
        PairOutput::central(input.r, f_over_r, energy)
    }
    unsafe fn cpu(call: &PairCall, single: &Rows<F::Row<f32>, f32>, double: &Rows<F::Row<f64>, f64>, sums: &mut Sums) {
        // SAFETY: the contract of this function is passed on
        unsafe { cpu::run::<F>(call, single, double, sums) }
    }
    fn eval_text() -> &'static DeviceText {
        F::eval_text()
    }
}

/// A pair potential whose function is compiled with the plugin.
pub struct CompiledPair<F: PairFunction> {
    settings: <F::Input as RowInput>::Settings,
    function: PhantomData<F>,
}

impl<F: PairFunction> PairPotential for CompiledPair<F> {
    type Settings = <F::Input as RowInput>::Settings;
    type Input = F::Input;
    type Row = <F::Input as RowInput>::Row;
    type Tables = (Rows<F::Row<f32>, f32>, Rows<F::Row<f64>, f64>);
    const OWN_CUTOFF: bool = <F::Input as RowInput>::OWN_CUTOFF;
    const ORIENTED: bool = F::ORIENTED;

    const MIXES: bool = <F::Input as RowInput>::MIXES;

    fn default_parameters() -> Option<F::Input> {
        F::Input::default_parameters()
    }
    fn mix([a, b]: [&F::Input; 2], rule: Mixing) -> Result<F::Input, String> {
        a.mix(b, rule)
    }

    fn new(settings: Self::Settings, _: &[(Position, &F::Input)], _: &mut Errors) -> Option<Self> {
        Some(Self { settings, function: PhantomData })
    }
    fn warnings_of(&self, written: &[&F::Input]) -> Vec<String> {
        let mut warnings: Vec<String> = vec![];
        for warning in written.iter().filter_map(|input| input.warning(&self.settings)) {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        warnings
    }
    fn inputs(&self) -> u32 {
        F::INPUTS
    }
    fn varyings(&self) -> Vec<Varying> {
        F::Input::varyings(&self.settings)
    }
    fn kt(&self) -> Option<f64> {
        F::Input::kt(&self.settings)
    }
    fn cutoff(&self, input: &F::Input, system: &SystemInfo) -> Option<f64> {
        input.cutoff(&self.settings, system)
    }
    fn check(&self) -> Result<(), String> {
        F::Input::check(&self.settings)
    }
    fn bind(&mut self, system: &SystemInfo) -> Result<()> {
        F::Input::bind(&mut self.settings, system)
    }
    fn row(&self, input: &F::Input, _: f64) -> Result<Self::Row, String> {
        input.row(&self.settings)
    }
    fn row_between(&self, input: &F::Input, cutoff: f64, types: [&str; 2]) -> Result<Self::Row, String> {
        match input.least_cutoff(&self.settings, types) {
            Some((least, what)) if cutoff <= least => Err(format!("r_cut = {cutoff} must be above {what}, {least}")),
            _ => input.row_between(&self.settings, types),
        }
    }
    fn numbers(row: &Self::Row) -> Vec<f64> {
        row.numbers()
    }
    fn evaluate(&self, input: &OrientedInput<f64>, row: &Self::Row) -> PairOutput<f64> {
        F::evaluate(input, &row.cast::<f64>())
    }
    fn tables(&self, n_types: usize, rows: &[Self::Row], cutoff: &[CutoffRow<f64>], mode: Mode) -> Self::Tables {
        let mode = mode.number();
        // with equal rows for all pairs of types, the loop of central functions needs no types and is several times as fast
        let bits = |k: usize| {
            let numbers = rows[k].numbers().into_iter().chain(cutoff[k].numbers());
            numbers.map(f64::to_bits).collect::<Vec<_>>()
        };
        let one = !F::ORIENTED && n_types > 0 && (1..rows.len()).all(|k| bits(k) == bits(0));
        let n_types = if one { 1 } else { n_types };
        let (rows, cutoff) = (&rows[..n_types * n_types], &cutoff[..n_types * n_types]);
        let cutoff_rows = cutoff.iter().map(CutoffRow::cast).collect();
        let single = Rows { n_types, rows: rows.iter().map(Row::cast::<f32>).collect(), cutoff_rows, mode };
        let double =
            Rows { n_types, rows: rows.iter().map(Row::cast::<f64>).collect(), cutoff_rows: cutoff.to_vec(), mode };
        (single, double)
    }
    unsafe fn cpu(&self, call: &PairCall, tables: &Self::Tables, sums: &mut Sums) {
        // SAFETY: the contract of this function is passed on
        unsafe { F::cpu(call, &tables.0, &tables.1, sums) }
    }
    fn text(&self) -> Result<String> {
        assemble(&[F::eval_text()]).map_err(Error::Run)
    }
}
