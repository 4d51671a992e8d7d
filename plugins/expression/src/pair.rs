//! Pair potentials given as formulas.

mod cpu;

use crate::compiled::{CompiledFormula, Domain, Formula};
use crate::formula::cuda::{lines, row_struct};
use crate::formula::graph::{Graph, Id};
use crate::interpreter::{Interpreter, Slots};
use crate::parameters::Values;
use galamost_plugin_api::component::Registration;
use galamost_plugin_api::error::{Errors, Position};
use galamost_plugin_api::pair::{CutoffRow, Mode, OrientedInput, PairCall, PairOutput, PairPotential};
use galamost_plugin_api::precision::{Fixed, Float64, Precision};
use galamost_plugin_api::prelude::*;

galamost_plugin_api::inventory::submit! {
    Registration::pair_potential::<PairExpression>(
        "PairExpression",
        concat!(include_str!("pages/pair.md"), include_str!("pages/grammar.md"), include_str!("pages/undefined.md")),
    )
}

/// U(r) with r² as the program input: F/r = −(dU/dr)/r = −2 dU/dr².
pub struct PairDistance;

impl Domain for PairDistance {
    const DESCRIPTION: &'static str = "U(r)";
    const INPUTS: &'static [&'static str] = &["input.r2"];
    const DISTANCE: Option<usize> = Some(0);
    const BUILT_IN: &'static [&'static str] = &["r_cut"];
    fn variables(graph: &mut Graph) -> Vec<(&'static str, Id)> {
        let r2 = graph.square(0);
        vec![("r", graph.power(r2, 0.5))]
    }
    fn slopes(graph: &mut Graph, energy: Id) -> Vec<Id> {
        force_over_distance(graph, energy)
    }
}

/// Returns F/r of an energy whose variable 0 is r².
pub fn force_over_distance(graph: &mut Graph, energy: Id) -> Vec<Id> {
    let r2 = graph.square(0);
    let slope = graph.derivative(energy, r2);
    vec![graph.scale(-2.0, slope)]
}

/// Settings of the component.
#[derive(Params)]
pub struct PairSettings {
    /// Pair energy U as a formula of r, r_cut and the parameters.
    #[param(unit = "energy")]
    energy: Formula<PairDistance>,
}

/// A pair potential given as a formula.
pub struct PairExpression(CompiledFormula);

/// Data of the CPU loop in both number types.
pub struct Tables {
    single: cpu::LoopData<f32>,
    double: cpu::LoopData<f64>,
}

impl PairPotential for PairExpression {
    type Settings = PairSettings;
    type Input = Values;
    type Row = Vec<f64>;
    type Tables = Tables;

    fn new(settings: PairSettings, written: &[(Position, &Values)], errors: &mut Errors) -> Option<Self> {
        settings.energy.compile(written, errors).map(Self)
    }

    fn row(&self, input: &Values, cutoff: f64) -> Result<Vec<f64>, String> {
        self.0.row(input, &[("r_cut", cutoff)])
    }

    fn numbers(row: &Vec<f64>) -> Vec<f64> {
        // a CUDA row has at least one number
        if row.is_empty() { vec![0.0] } else { row.clone() }
    }

    fn constants(&self) -> Vec<f64> {
        self.0.constants()
    }

    fn evaluate(&self, input: &OrientedInput<f64>, row: &Vec<f64>) -> PairOutput<f64> {
        let interpreter = Interpreter::<f64>::new(&self.0.full, 1, Slots::Fixed(row));
        let mut memory = interpreter.memory();
        memory[interpreter.input(0)] = input.pair.r2;
        // SAFETY: every processor has the baseline
        unsafe { interpreter.run(0, &mut memory, 1) };
        PairOutput::central(input.r, memory[interpreter.output(0)], memory[interpreter.output(1)])
    }

    fn tables(&self, n_types: usize, rows: &[Vec<f64>], cutoff: &[CutoffRow<f64>], mode: Mode) -> Tables {
        Tables {
            single: cpu::LoopData::new(&self.0, n_types, rows, cutoff, mode),
            double: cpu::LoopData::new(&self.0, n_types, rows, cutoff, mode),
        }
    }

    unsafe fn cpu(&self, call: &PairCall, tables: &Tables, sums: &mut Sums) {
        // SAFETY: the engine passes valid arrays of the run's precision
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
        let body = lines(program, |k| PairDistance::INPUTS[k].into(), |k| format!("row.c{k}"));
        Ok(format!(
            "{}template <class real> __device__ __forceinline__ Tuple2<real, real> pair_eval(const PairInput<real>& input, \
             const PairRow<real>& row) {{\n{body}    return {{v{}, v{}}};\n}}\n",
            row_struct("PairRow", self.0.slots()),
            program.outputs[0],
            program.outputs[1]
        ))
    }
}
