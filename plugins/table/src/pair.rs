//! Tabulated pair potentials.

use crate::source::{Distances, Sources};
use crate::splines::{CpuRow, CpuSplines, SplineTable, SplineTables, cubic, text};
use galamost_plugin_api::component::Registration;
use galamost_plugin_api::error::{Errors, Position};
use galamost_plugin_api::pair::cpu::{Rows, run};
use galamost_plugin_api::pair::{
    CutoffRow, Mode, OrientedInput, PairCall, PairEval, PairInput, PairOutput, PairPotential,
};
use galamost_plugin_api::prelude::*;
use galamost_tables::Kind;

galamost_plugin_api::inventory::submit! {
    Registration::pair_potential::<PairTable>("PairTable", include_str!("pages/pair.md"))
}

/// Settings of the component.
#[derive(Params)]
pub struct PairSettings {
    /// Number of spline intervals in r², from 0 to r_cut².
    #[param(default = 2000, at_least = 10, at_most = 65536)]
    points: u32,
}

/// A pair potential given as tables.
pub struct PairTable {
    points: usize,
    sources: Sources<Distances>,
    tables: SplineTables,
}

/// Evaluation in the CPU loop. The variable is r², so F/r = −2 dU/dr².
pub struct Lookup;

impl PairEval for Lookup {
    type Row<R: Real> = CpuRow<R>;
    const INPUTS: u32 = 0;
    const RECORDS: bool = true;
    #[inline(always)]
    fn eval<R: Real>(input: &PairInput<R>, row: &CpuRow<R>) -> (R, R) {
        let (coefficients, d) = row.interval(input.r2);
        Self::eval_record(d, *coefficients)
    }
    #[inline(always)]
    fn record<R: Real>(r2: R, row: &CpuRow<R>) -> Option<(&[R; 4], R)> {
        Some(row.interval(r2))
    }
    #[inline(always)]
    fn eval_record<R: Real>(d: R, coefficients: [R; 4]) -> (R, R) {
        let (slope, energy) = cubic(d, coefficients);
        (R::lit(-2.0) * slope, energy)
    }
}

/// Data of the CPU loop.
pub struct LoopData {
    single: Rows<CpuRow<f32>, f32>,
    double: Rows<CpuRow<f64>, f64>,
    _splines: (CpuSplines<f32>, CpuSplines<f64>),
}

impl PairPotential for PairTable {
    type Settings = PairSettings;
    type Input = Distances;
    type Row = SplineTable;
    type Tables = LoopData;

    fn new(settings: PairSettings, written: &[(Position, &Distances)], _: &mut Errors) -> Option<Self> {
        let points = settings.points as usize;
        Some(Self { points, sources: Sources::new(written), tables: SplineTables::default() })
    }

    fn bind(&mut self, system: &SystemInfo) -> Result<()> {
        self.tables.restart(system.precision());
        self.sources.bind(Kind::Pair, None, system)
    }

    fn warnings(&self) -> Vec<String> {
        self.sources.warnings()
    }

    fn cutoff(&self, input: &Distances, _: &SystemInfo) -> Option<f64> {
        self.sources.find(input).map(|(_, curve)| curve.ends()[1])
    }

    fn row(&self, input: &Distances, cutoff: f64) -> Result<SplineTable, String> {
        let (k, curve) = self.sources.find(input).ok_or("the table was not read")?;
        let [first, end] = curve.ends();
        if cutoff > end * (1.0 + 1e-9) {
            return Err(format!("r_cut = {cutoff} lies beyond the table, which ends at {end}"));
        }
        if cutoff <= first {
            return Err(format!("r_cut = {cutoff} lies before the table, which starts at {first}"));
        }
        self.tables.get((k, cutoff.to_bits()), || curve.pair_grid(self.points, cutoff))
    }

    fn numbers(row: &SplineTable) -> Vec<f64> {
        row.numbers()
    }

    fn more_numbers(&self, numbers: &mut Vec<f64>) {
        self.tables.more_numbers(numbers);
    }

    fn evaluate(&self, input: &OrientedInput<f64>, row: &SplineTable) -> PairOutput<f64> {
        let [energy, slope] = row.grid.at(input.pair.r2);
        PairOutput::central(input.r, -2.0 * slope, energy)
    }

    fn tables(&self, n_types: usize, rows: &[SplineTable], cutoff: &[CutoffRow<f64>], mode: Mode) -> LoopData {
        let mode = mode.number();
        let splines = (CpuSplines::new(rows), CpuSplines::new(rows));
        let cutoff_rows = cutoff.iter().map(CutoffRow::cast).collect();
        LoopData {
            single: Rows { n_types, rows: splines.0.rows.clone(), cutoff_rows, mode },
            double: Rows { n_types, rows: splines.1.rows.clone(), cutoff_rows: cutoff.to_vec(), mode },
            _splines: splines,
        }
    }

    unsafe fn cpu(&self, call: &PairCall, tables: &LoopData, sums: &mut Sums) {
        // SAFETY: the call describes valid arrays of its precision (contract of this function)
        unsafe { run::<Lookup>(call, &tables.single, &tables.double, sums) }
    }

    fn text(&self) -> Result<String> {
        Ok(format!(
            "{}template <class real> __device__ __forceinline__ Tuple2<real, real> pair_eval(const PairInput<real>& input, \
             const PairRow<real>& row) {{\n    const Tuple2<real, real> s = table_at(input.numbers, row, input.r2);\n    \
             return {{real(-2) * s.v0, s.v1}};\n}}\n",
            text("PairRow")
        ))
    }
}
