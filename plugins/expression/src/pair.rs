//! Pairs.

mod cpu;

use crate::formula::cuda::{lines, row_struct};
use crate::formula::graph::{Graph, Id};
use crate::law::{Domain, Formula, Law};
use crate::machine::{Machine, Slots};
use crate::numbers::Numbers;
use galamost_plugin_api::component::Registration;
use galamost_plugin_api::error::{Errors, Position};
use galamost_plugin_api::pair::{CutoffRow, Mode, OrientedInput, PairCall, PairOutput, PairPotential};
use galamost_plugin_api::precision::{Fixed, Float64, Precision};
use galamost_plugin_api::prelude::*;

galamost_plugin_api::inventory::submit! {
    Registration::pair_potential::<PairExpression>(
        "PairExpression",
        concat!(include_str!("pages/pair.md"), include_str!("pages/grammar.md")),
    )
}

/// U of r, with r² as the variable: F/r = −(dU/dr)/r = −2 dU/dr².
pub struct Distance;

impl Domain for Distance {
    const WHAT: &'static str = "U(r)";
    const INPUTS: &'static [&'static str] = &["input.r2"];
    const DISTANCE: Option<usize> = Some(0);
    const GIVEN: &'static [&'static str] = &["r_cut"];
    fn variables(graph: &mut Graph) -> Vec<(&'static str, Id)> {
        let r2 = graph.square(0);
        vec![("r", graph.power(r2, 0.5))]
    }
    fn slopes(graph: &mut Graph, energy: Id) -> Vec<Id> {
        force_over_distance(graph, energy)
    }
}

/// F/r of an energy whose variable 0 is r².
pub fn force_over_distance(graph: &mut Graph, energy: Id) -> Vec<Id> {
    let r2 = graph.square(0);
    let slope = graph.derivative(energy, r2);
    vec![graph.scale(-2.0, slope)]
}

/// Parameters of the whole component.
#[derive(Params)]
pub struct PairSettings {
    /// U of one pair, as a formula of r, r_cut and the parameters.
    #[param(unit = "energy")]
    energy: Formula<Distance>,
}

/// A pair potential given as a formula.
pub struct PairExpression(Law);

/// What the CPU loop reads, for both number types.
pub struct Tables {
    single: cpu::Table<f32>,
    double: cpu::Table<f64>,
}

impl PairPotential for PairExpression {
    type Settings = PairSettings;
    type Input = Numbers;
    type Row = Vec<f64>;
    type Tables = Tables;

    fn new(settings: PairSettings, written: &[(Position, &Numbers)], errors: &mut Errors) -> Option<Self> {
        settings.energy.law(written, errors).map(Self)
    }

    fn row(&self, input: &Numbers, cutoff: f64) -> Result<Vec<f64>, String> {
        self.0.row(input, &[("r_cut", cutoff)])
    }

    fn numbers(row: &Vec<f64>) -> Vec<f64> {
        // a row of CUDA has at least one number
        if row.is_empty() { vec![0.0] } else { row.clone() }
    }

    fn evaluate(&self, input: &OrientedInput<f64>, row: &Vec<f64>) -> PairOutput<f64> {
        let machine = Machine::<f64>::new(&self.0.full, 1, Slots::Fixed(row));
        let mut memory = machine.memory();
        memory[machine.input(0)] = input.pair.r2;
        machine.run(0, &mut memory, 1);
        PairOutput::central(input.r, memory[machine.output(0)], memory[machine.output(1)])
    }

    fn tables(&self, n_types: usize, rows: &[Vec<f64>], cutoff: &[CutoffRow<f64>], mode: Mode) -> Tables {
        Tables {
            single: cpu::Table::new(&self.0, n_types, rows, cutoff, mode),
            double: cpu::Table::new(&self.0, n_types, rows, cutoff, mode),
        }
    }

    unsafe fn cpu(&self, call: &PairCall, tables: &Tables, sums: &mut Sums) {
        // SAFETY: the caller's word
        unsafe {
            if (*call.state).precision == Precision::Double as u32 {
                cpu::run::<Float64, 16>(call, &tables.double, sums);
            } else {
                cpu::run::<Fixed, 16>(call, &tables.single, sums);
            }
        }
    }

    fn text(&self) -> Result<String> {
        let program = &self.0.full;
        let body = lines(program, |k| Distance::INPUTS[k].into(), |k| format!("row.c{k}"));
        Ok(format!(
            "{}template <class real> __device__ __forceinline__ Tuple2<real, real> pair_eval(const PairInput<real>& input, \
             const PairRow<real>& row) {{\n{body}    return {{v{}, v{}}};\n}}\n",
            row_struct("PairRow", self.0.slots()),
            program.outputs[0],
            program.outputs[1]
        ))
    }
}
