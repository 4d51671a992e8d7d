//! Bonded potentials as components use them.
//!
//! Most potentials are functions compiled with the plugin ([`CompiledBond`]). A plugin whose function is only known
//! when the pipeline is read implements [`BondPotential`] itself; parsing, tables of types and messages are the same.

use crate::abi::views::Sums;
use crate::device::assemble;
use crate::device::precision::{Fixed, Float64, Precision};
use crate::error::{Error, Errors, Position, Result};
use crate::kinds::bonded::{BondFn, BondInput, BondedCall};
use crate::kinds::component::SystemInfo;
use crate::kinds::pair::{Row, RowInput};
use crate::params::varying::Varying;
use crate::params::{FromValue, Params};
use crate::snapshot::LinkList;
use std::marker::PhantomData;

pub use super::bonds::each_link;

/// A potential of bonds, angles, dihedrals or impropers.
pub trait BondPotential: Sized + Send + Sync + 'static {
    /// The links that it acts on.
    const LIST: LinkList;
    /// Parameters of the whole component, besides the rows.
    type Settings: Params;
    /// Parameters of one type as the user writes them.
    type Input: Params + FromValue + Send + Sync + 'static;
    /// Parameters of one type as the function reads them.
    type Row: Send + Sync + 'static;
    /// Parameter tables of the CPU loop.
    type Tables: Send + Sync + 'static;

    /// Creates the potential. `written` are the user's parameters, each with its position in the file.
    fn new(settings: Self::Settings, written: &[(Position, &Self::Input)], errors: &mut Errors) -> Option<Self>;
    /// Returns the time-dependent parameters.
    fn varyings(&self) -> Vec<Varying> {
        vec![]
    }
    /// Completes and checks the parameters, for example from files in the pipeline's directory.
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
    /// Builds the row of a type.
    ///
    /// # Errors
    /// Returns a message if this combination of numbers is invalid.
    fn row(&self, input: &Self::Input) -> Result<Self::Row, String>;
    /// Returns the length of [`RowInput::bond_length`].
    fn length(_input: &Self::Input) -> Option<(&'static str, f64)> {
        None
    }
    /// Returns a row without force and energy, for types that the component does not name. With `None` every type must
    /// have a row.
    fn inert(&self) -> Option<Self::Row> {
        None
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
    /// Builds the tables of the CPU loop.
    fn tables(&self, rows: &[Self::Row]) -> Self::Tables;
    /// Adds the forces on particles begin … end, and energy and virial if wanted. Use [`each_link`] for the loop over
    /// the links.
    ///
    /// # Safety
    /// `call` must describe valid host arrays, and no other thread may access force rows begin … end during the call.
    unsafe fn cpu(&self, call: &BondedCall, tables: &Self::Tables, sums: &mut Sums);
    /// Returns the CUDA text: `BondRow` and `bond_eval`.
    ///
    /// # Errors
    /// Returns an error if two device functions have the same name.
    fn text(&self) -> Result<String>;
}

/// A bonded potential whose function is compiled with the plugin.
pub struct CompiledBond<F: BondFn> {
    settings: <F::Input as RowInput>::Settings,
    function: PhantomData<F>,
}

impl<F: BondFn> BondPotential for CompiledBond<F> {
    const LIST: LinkList = F::LIST;
    type Settings = <F::Input as RowInput>::Settings;
    type Input = F::Input;
    type Row = <F::Input as RowInput>::Row;
    type Tables = (Vec<F::Row<f32>>, Vec<F::Row<f64>>);

    fn new(settings: Self::Settings, _: &[(Position, &F::Input)], _: &mut Errors) -> Option<Self> {
        Some(Self { settings, function: PhantomData })
    }
    fn varyings(&self) -> Vec<Varying> {
        F::Input::varyings(&self.settings)
    }
    fn row(&self, input: &F::Input) -> Result<Self::Row, String> {
        input.row(&self.settings)
    }
    fn length(input: &F::Input) -> Option<(&'static str, f64)> {
        input.bond_length()
    }
    fn inert(&self) -> Option<Self::Row> {
        let row = F::Input::inert()?;
        let parameters = row.cast::<f64>();
        // from folded to nearly straight, and from contact to far apart
        let inputs = (1..=30).map(|k| {
            let (sin, cos) = (0.1 * f64::from(k)).sin_cos();
            BondInput {
                r2: 10f64.powf(0.4 * f64::from(k) - 6.0),
                angle: 0.1 * f64::from(k),
                cos,
                sin,
                ..BondInput::default()
            }
        });
        let without = |input: BondInput<f64>| F::eval(&input, &parameters) == (0.0, 0.0);
        inputs.into_iter().all(without).then_some(row)
    }
    fn numbers(row: &Self::Row) -> Vec<f64> {
        row.numbers()
    }
    fn tables(&self, rows: &[Self::Row]) -> Self::Tables {
        (rows.iter().map(|r| r.cast::<f32>()).collect(), rows.iter().map(|r| r.cast::<f64>()).collect())
    }
    unsafe fn cpu(&self, call: &BondedCall, (single, double): &Self::Tables, sums: &mut Sums) {
        // SAFETY: the contract of this function is passed on
        unsafe {
            if (*call.state).precision == Precision::Double as u32 {
                each_link::<Float64>(F::LIST, call, sums, |input, kind| F::eval(input, &double[kind]));
            } else {
                each_link::<Fixed>(F::LIST, call, sums, |input, kind| F::eval(input, &single[kind]));
            }
        }
    }
    fn text(&self) -> Result<String> {
        assemble(&[F::eval_text()]).map_err(Error::Run)
    }
}
