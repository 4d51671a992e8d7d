//! A pair potential of long range as a component: an object with the tables `pair/1` and `force/1`.

use super::object::{ComponentInterface, Exclusive};
use super::pair::{PairComponent, PairInterface};
use super::simple::ForceInterface;
use super::tables::{force_table, pair_table};
use crate::abi::services::Host;
use crate::abi::views::Sums;
use crate::abi::{Object, TablePointer, WireCode};
use crate::device::precision::Precision;
use crate::error::{Error, Errors, Position, Result};
use crate::kinds::component::{Kind, Needs, Registration, SystemInfo};
use crate::kinds::force::ForceCall;
use crate::kinds::pair::{
    CentralFunction, CompiledPair, CutoffRow, LongRange, Mode, NoSettings, PairCall, PairConfiguration, PairOutput,
    PairPotential,
};
use crate::params::{FromValue, Params, TypePairs, parse};

/// The pair part: it exists after `bind`.
type ShortRange<T> = PairComponent<CompiledPair<CentralFunction<<T as LongRange>::Pair>>>;

impl<P: PairPotential<Settings = NoSettings>> PairComponent<P> {
    /// Returns a component with these rows, for types i and j at i · n + j.
    ///
    /// # Errors
    /// Returns the errors of the potential.
    fn of_rows(n_types: usize, rows: Vec<P::Row>, cutoff_rows: Vec<CutoffRow<f64>>) -> Result<Self> {
        let mut errors = Errors::default();
        let potential = P::new(NoSettings, &[], &mut errors);
        let (at, mode) = (Position { line: 1, column: 1 }, Mode::Cut);
        let potential = errors.into_result(potential)?;
        let tables = Some(potential.tables(n_types, &rows, &cutoff_rows, mode));
        let pairs = TypePairs::empty(at);
        Ok(Self { at, r_cut: None, mode, mixing: None, potential, pairs, n_types, rows, cutoff_rows, tables })
    }
}

/// A [`LongRange`] as a component.
pub struct LongRangeAdapter<T: LongRange> {
    force: Exclusive<T>,
    pair: Option<ShortRange<T>>,
    /// [`LongRange::device_text`], which several ranks read at the same time.
    device_text: String,
}

impl<T: LongRange> LongRangeAdapter<T> {
    fn pair(&self) -> Result<&ShortRange<T>> {
        self.pair.as_ref().ok_or_else(|| Error::Run("the component is not bound".into()))
    }
}

impl<T: LongRange> ComponentInterface for LongRangeAdapter<T> {
    fn bind(&mut self, system: &SystemInfo) -> Result<Needs> {
        let mut needs = Needs::default();
        let force = self.force.get_mut();
        force.bind(system, &mut needs)?;
        let n = system.types.len();
        let (mut rows, mut cutoff_rows) = (vec![], vec![]);
        for k in 0..n * n {
            let (row, cutoff) = force.row(k / n, k % n).map_err(Error::Run)?;
            rows.push(row);
            cutoff_rows.push(CutoffRow { cutoff2: cutoff * cutoff, cutoff, ..CutoffRow::default() });
        }
        self.device_text = force.device_text();
        self.pair = Some(PairComponent::of_rows(n, rows, cutoff_rows)?);
        Ok(needs)
    }
    fn start(&self, host: Host) -> Result<()> {
        self.force.call(|c| c.start(host))
    }
    fn save(&self) -> Result<Vec<u8>> {
        self.force.call(T::save)
    }
    fn load(&self, state: &[u8]) -> Result<()> {
        self.force.call(|c| c.load(state))
    }
    fn finish(&self) -> Result<()> {
        self.force.call(T::finish)
    }
    fn table(name: &str) -> Option<TablePointer> {
        match name {
            "pair/1" => Some(pair_table::<Self>()),
            "force/1" => Some(force_table::<Self>()),
            _ => None,
        }
    }
}

impl<T: LongRange> PairInterface for LongRangeAdapter<T> {
    fn evaluate(&self, i: u32, j: u32, pose: &PairConfiguration) -> PairOutput<f64> {
        let none = || PairOutput { energy: f64::NAN, ..PairOutput::default() };
        self.pair.as_ref().map_or_else(none, |p| p.evaluate(i, j, pose))
    }
    unsafe fn cpu(&self, call: &PairCall, sums: &mut Sums) -> Result<()> {
        // SAFETY: the contract of this function is passed on
        unsafe { self.pair()?.cpu(call, sums) }
    }
    fn device(&self, precision: Precision) -> Result<WireCode> {
        let mut code = self.pair()?.device(precision)?;
        code.text = format!("{}{}", self.device_text, code.text).into();
        Ok(code)
    }
}

impl<T: LongRange> ForceInterface for LongRangeAdapter<T> {
    unsafe fn compute(&self, call: &ForceCall, sums: &mut Sums) -> Result<()> {
        // SAFETY: the contract of this function is passed on
        self.force.call(|f| unsafe { f.compute(call, sums) })
    }
    unsafe fn place(&self, call: &ForceCall) -> Result<()> {
        // SAFETY: the contract of this function is passed on
        self.force.call(|f| unsafe { f.place(call) })
    }
}

impl Registration {
    /// Registers a pair potential of long range.
    pub const fn long_range<T: LongRange + Params + FromValue>(name: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            former_names: &[],
            kind: Kind::Pair,
            doc,
            fields: T::docs,
            create: |name, value| {
                parse::<T>(value).map(|c| {
                    Object::new(
                        name,
                        LongRangeAdapter { force: Exclusive::new(c), pair: None, device_text: String::new() },
                    )
                })
            },
        }
    }
}
