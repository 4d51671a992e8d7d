//! What a pair component asks its potential.
//!
//! Most potentials are functions that were compiled with the plugin ([`CompiledPair`]). A plugin whose function is known
//! only when the pipeline is read implements [`PairPotential`] itself and gets the same cutoffs, modes, tables of types
//! and messages.

use super::cpu::{self, Rows};
use super::{CutoffRow, Mode, OrientedInput, PairCall, PairFn, PairOutput, Row, RowInput};
use crate::abi::views::Sums;
use crate::device::real::Real;
use crate::device::{DeviceText, assemble};
use crate::error::{Error, Errors, Position, Result};
use crate::kinds::component::SystemInfo;
use crate::params::Params;
use crate::params::varying::Varying;
use std::marker::PhantomData;

/// A pair potential as a component sees it.
pub trait PairPotential: Sized + Send + Sync + 'static {
    /// Parameters of the whole component, besides `r_cut`, `mode` and `pairs`.
    type Settings: Params;
    /// What the user writes for one pair of types, besides `r_cut` and `r_on`.
    type Input: Params + Send + Sync + 'static;
    /// The numbers of one pair of types.
    type Row: Send + Sync + 'static;
    /// What its CPU loop reads.
    type Tables: Send + Sync + 'static;

    /// The potential; `written` are the rows in the user's file, each with its place.
    fn new(settings: Self::Settings, written: &[(Position, &Self::Input)], errors: &mut Errors) -> Option<Self>;
    /// The potential ends by itself at [`Self::cutoff`]: the user gives neither `r_cut` nor `mode`.
    const OWN_CUTOFF: bool = false;
    /// It depends on orientations, and gives torques.
    const ORIENTED: bool = false;
    /// What holds for pairs of types that the user leaves out; `None`: every pair must have its row.
    fn default_parameters() -> Option<Self::Input> {
        None
    }
    /// Members of [`super::PairInput`] it uses, [`super::inputs`].
    fn inputs(&self) -> u32 {
        0
    }
    /// Its time-dependent numbers.
    fn varyings(&self) -> Vec<Varying> {
        vec![]
    }
    /// A cutoff that follows from the numbers, when the user gives none.
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
    /// Completes and checks them with what is known of the system.
    ///
    /// # Errors
    /// Returns all mismatches, each with its position in the file.
    fn bind(&mut self, _system: &SystemInfo) -> Result<()> {
        Ok(())
    }
    /// The row of a pair of types with this cutoff.
    ///
    /// # Errors
    /// Returns a message if this combination of numbers is invalid.
    fn row(&self, input: &Self::Input, cutoff: f64) -> Result<Self::Row, String>;
    /// The row of particles i and j of these types, for a function to which it makes a difference which of them is i; by
    /// default [`Self::row`].
    ///
    /// # Errors
    /// As [`Self::row`].
    fn row_between(&self, input: &Self::Input, cutoff: f64, _types: [&str; 2]) -> Result<Self::Row, String> {
        self.row(input, cutoff)
    }
    /// Its numbers in order, as CUDA reads them.
    fn numbers(row: &Self::Row) -> Vec<f64>;
    /// What the function reads besides its row: more numbers behind those of all rows, which it finds in device memory at
    /// `input.numbers`. `numbers` are those of the rows, and may still be changed.
    fn more_numbers(&self, _numbers: &mut Vec<f64>) {}
    /// Force, torque and U of one pair, without cutoff and mode.
    fn evaluate(&self, input: &OrientedInput<f64>, row: &Self::Row) -> PairOutput<f64>;
    /// What the CPU loop reads; rows are those of all pairs of types, i · n + j.
    fn tables(&self, n_types: usize, rows: &[Self::Row], cutoff: &[CutoffRow<f64>], mode: Mode) -> Self::Tables;
    /// Adds the forces on particles begin … end, and returns energy and virial if they are wanted.
    ///
    /// # Safety
    /// As [`cpu::run`].
    unsafe fn cpu(&self, call: &PairCall, tables: &Self::Tables, sums: &mut Sums);
    /// CUDA text: `PairRow` and `pair_eval`, which returns F/r and U, or if it is oriented force, torque and U.
    ///
    /// # Errors
    /// Returns an error if two device functions have the same name.
    fn text(&self) -> Result<String>;
}

/// A function of pairs that was compiled with the plugin, with the loop that runs it: [`CentralFunction`] or
/// [`super::OrientedFunction`].
pub trait PairFunction: Send + Sync + 'static {
    /// Its row over a number type.
    type Row<R: Real>: Copy + Send + Sync;
    /// What the user writes for one pair of types.
    type Input: RowInput<Row: Row<As<f32> = Self::Row<f32>, As<f64> = Self::Row<f64>>>;
    /// Members of [`super::PairInput`] it uses, [`super::inputs`].
    const INPUTS: u32;
    /// It depends on orientations, and gives torques.
    const ORIENTED: bool;
    /// Force, torque and U of one pair, without cutoff and mode.
    fn evaluate(input: &OrientedInput<f64>, row: &Self::Row<f64>) -> PairOutput<f64>;
    /// Adds the forces on particles begin … end, and returns energy and virial if they are wanted.
    ///
    /// # Safety
    /// As [`cpu::run`].
    unsafe fn cpu(
        call: &PairCall,
        single: &Rows<Self::Row<f32>, f32>,
        double: &Rows<Self::Row<f64>, f64>,
        sums: &mut Sums,
    );
    /// CUDA text of `pair_eval`.
    fn eval_text() -> &'static DeviceText;
}

/// A function of the distance, in the vectorized loop of [`cpu`].
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
        // SAFETY: `call` describes valid host memory (contract of this function)
        unsafe { cpu::run::<F>(call, single, double, sums) }
    }
    fn eval_text() -> &'static DeviceText {
        F::eval_text()
    }
}

/// A potential whose function was compiled with the plugin.
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

    fn default_parameters() -> Option<F::Input> {
        F::Input::default_parameters()
    }

    fn new(settings: Self::Settings, _: &[(Position, &F::Input)], _: &mut Errors) -> Option<Self> {
        Some(Self { settings, function: PhantomData })
    }
    fn inputs(&self) -> u32 {
        F::INPUTS
    }
    fn varyings(&self) -> Vec<Varying> {
        F::Input::varyings(&self.settings)
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
    fn row_between(&self, input: &F::Input, _: f64, types: [&str; 2]) -> Result<Self::Row, String> {
        input.row_between(&self.settings, types)
    }
    fn numbers(row: &Self::Row) -> Vec<f64> {
        row.numbers()
    }
    fn evaluate(&self, input: &OrientedInput<f64>, row: &Self::Row) -> PairOutput<f64> {
        F::evaluate(input, &row.cast::<f64>())
    }
    fn tables(&self, n_types: usize, rows: &[Self::Row], cutoff: &[CutoffRow<f64>], mode: Mode) -> Self::Tables {
        let mode = mode.number();
        let cutoff_rows = cutoff.iter().map(CutoffRow::cast).collect();
        let single = Rows { n_types, rows: rows.iter().map(Row::cast::<f32>).collect(), cutoff_rows, mode };
        let double =
            Rows { n_types, rows: rows.iter().map(Row::cast::<f64>).collect(), cutoff_rows: cutoff.to_vec(), mode };
        (single, double)
    }
    unsafe fn cpu(&self, call: &PairCall, tables: &Self::Tables, sums: &mut Sums) {
        // SAFETY: `call` describes valid host memory (contract of this function)
        unsafe { F::cpu(call, &tables.0, &tables.1, sums) }
    }
    fn text(&self) -> Result<String> {
        assemble(&[F::eval_text()]).map_err(Error::Run)
    }
}
