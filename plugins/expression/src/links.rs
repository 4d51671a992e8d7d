//! Bonds, angles and dihedrals.

use crate::formula::cuda::{lines, row_struct};
use crate::formula::graph::{Function, Graph, Id};
use crate::law::{Domain, Formula, Law};
use crate::machine::{BLOCK, Machine, Slots, extension};
use crate::numbers::Numbers;
use crate::pair::force_over_distance;
use galamost_plugin_api::bond_potential::{BondPotential, each_link};
use galamost_plugin_api::bonded::{BondInput, BondedCall};
use galamost_plugin_api::component::Registration;
use galamost_plugin_api::error::{Errors, Position};
use galamost_plugin_api::precision::{Fixed, Float64, Precision, Scheme};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::views::Wanted;

galamost_plugin_api::inventory::submit! {
    Registration::bond_potential::<BondExpression>(
        "BondExpression",
        concat!(include_str!("pages/bond.md"), include_str!("pages/grammar.md")),
    )
}
galamost_plugin_api::inventory::submit! {
    Registration::bond_potential::<AngleExpression>(
        "AngleExpression",
        concat!(include_str!("pages/angle.md"), include_str!("pages/grammar.md")),
    )
}
galamost_plugin_api::inventory::submit! {
    Registration::bond_potential::<DihedralExpression>(
        "DihedralExpression",
        concat!(include_str!("pages/dihedral.md"), include_str!("pages/grammar.md")),
    )
}

/// U of a bond's length; the slope is F/r.
pub struct Length;

impl Domain for Length {
    const WHAT: &'static str = "U(r)";
    const INPUTS: &'static [&'static str] = &["input.r2"];
    const DISTANCE: Option<usize> = Some(0);
    fn variables(graph: &mut Graph) -> Vec<(&'static str, Id)> {
        let r2 = graph.square(0);
        vec![("r", graph.power(r2, 0.5))]
    }
    fn slopes(graph: &mut Graph, energy: Id) -> Vec<Id> {
        force_over_distance(graph, energy)
    }
}

/// θ or φ, and its cosine and sine, which are variables of their own: what is written with them needs no other function.
fn angle(graph: &mut Graph) -> [Id; 3] {
    let [angle, cos, sin] = [0, 1, 2].map(|k| graph.variable(k));
    graph.shortcuts = vec![(Function::Cos, angle, cos), (Function::Sin, angle, sin)];
    [angle, cos, sin]
}

/// U of the angle θ; the slope is dU/dcos θ.
pub struct Bend;

impl Domain for Bend {
    const WHAT: &'static str = "U(theta)";
    const INPUTS: &'static [&'static str] = &["input.angle", "input.cos", "input.sin"];
    fn variables(graph: &mut Graph) -> Vec<(&'static str, Id)> {
        vec![("theta", angle(graph)[0])]
    }
    fn slopes(graph: &mut Graph, energy: Id) -> Vec<Id> {
        let [angle, cos, sin] = angle(graph);
        let [by_angle, by_cos, by_sin] = [angle, cos, sin].map(|v| graph.derivative(energy, v));
        // dsin/dcos = −cos/sin and dθ/dcos = −1/sin, where 1/sin is 10⁶ at most
        let least = graph.number(1e-6);
        let sin = graph.select(false, [sin, least, least, sin]);
        let turned = graph.multiply(by_sin, cos);
        let sum = graph.add(turned, by_angle);
        let over_sin = graph.divide(sum, sin);
        vec![graph.subtract(by_cos, over_sin)]
    }
}

/// U of the dihedral angle φ; the slope is dU/dφ.
pub struct Twist;

impl Domain for Twist {
    const WHAT: &'static str = "U(phi)";
    const INPUTS: &'static [&'static str] = Bend::INPUTS;
    fn variables(graph: &mut Graph) -> Vec<(&'static str, Id)> {
        vec![("phi", angle(graph)[0])]
    }
    fn slopes(graph: &mut Graph, energy: Id) -> Vec<Id> {
        let [angle, cos, sin] = angle(graph);
        let [by_angle, by_cos, by_sin] = [angle, cos, sin].map(|v| graph.derivative(energy, v));
        let (first, second) = (graph.multiply(by_sin, cos), graph.multiply(by_cos, sin));
        vec![graph.sum([(by_angle, 1.0), (first, 1.0), (second, -1.0)], 0.0)]
    }
}

/// A potential of links with `W` members given as a formula.
pub struct LinkExpression<D, const W: u32> {
    law: Law,
    domain: std::marker::PhantomData<D>,
}

/// Bonds.
pub type BondExpression = LinkExpression<Length, 2>;
/// Angles.
pub type AngleExpression = LinkExpression<Bend, 3>;
/// Dihedrals.
pub type DihedralExpression = LinkExpression<Twist, 4>;

/// Parameters of the whole component.
pub struct LinkSettings<D> {
    energy: Formula<D>,
}

impl<D: Domain> galamost_plugin_api::params::Params for LinkSettings<D> {
    fn take(fields: &mut galamost_plugin_api::params::Fields<'_, '_>) -> Option<Self> {
        let any = galamost_plugin_api::params::Range::ANY;
        fields.required("energy", any).map(|energy| Self { energy })
    }
    fn docs() -> Vec<galamost_plugin_api::params::FieldDoc> {
        use galamost_plugin_api::params::{FieldDoc, FromValue};
        vec![FieldDoc {
            extensions: vec![],
            name: "energy".into(),
            kind: Formula::<D>::describe(),
            unit: "energy".into(),
            default: None,
            range: String::new(),
            doc: "U of one of them, as a formula of its variable and the parameters.".into(),
            fields: vec![],
        }]
    }
}

/// What the CPU loop reads for one number type.
pub struct Table<R> {
    force: Machine<R>,
    full: Machine<R>,
    slots: usize,
    /// Number s of type k at s · types + k.
    numbers: Vec<R>,
    types: usize,
}

impl<R: Real> Table<R> {
    fn new(law: &Law, inputs: usize, rows: &[Vec<f64>]) -> Self {
        let (slots, kind) = match rows {
            [row] => (0, Slots::Fixed(row)),
            _ => (law.slots(), Slots::PerLane(law.slots())),
        };
        let numbers = (0..slots).flat_map(|s| rows.iter().map(move |row| R::lit(row[s]))).collect();
        Self {
            force: Machine::new(&law.force, inputs, kind),
            full: Machine::new(&law.full, inputs, kind),
            slots,
            numbers,
            types: rows.len(),
        }
    }

    /// (slope, U) of many links; `seen` holds the variables and the type of each.
    fn compute(&self, inputs: usize, seen: &[([R; 3], usize)], full: bool) -> Vec<(R, R)> {
        let machine = if full { &self.full } else { &self.force };
        let mut memory = machine.memory();
        let mut results = Vec::with_capacity(seen.len());
        let isa = extension();
        for block in seen.chunks(BLOCK) {
            for (l, (values, kind)) in block.iter().enumerate() {
                for (k, x) in values.iter().enumerate().take(inputs) {
                    memory[machine.input(k) + l] = *x;
                }
                for s in 0..self.slots {
                    memory[machine.slot(s) + l] = self.numbers[s * self.types + kind];
                }
            }
            machine.run(isa, &mut memory, block.len());
            let slopes = &memory[machine.output(0)..];
            results.extend((0..block.len()).map(|l| {
                let energy = if full { memory[machine.output(1) + l] } else { R::ZERO };
                (slopes[l], energy)
            }));
        }
        results
    }
}

impl<D: Domain, const W: u32> LinkExpression<D, W> {
    /// Walks over the links twice: once to see them, and, when all of them are computed, once to add what they give.
    unsafe fn run<S: Scheme>(call: &BondedCall, table: &Table<S::Real>, sums: &mut Sums) {
        let variables = |input: &BondInput<S::Real>| {
            if W == 2 { [input.r2; 3] } else { [input.angle, input.cos, input.sin] }
        };
        let mut seen = vec![];
        let nothing = (S::Real::ZERO, S::Real::ZERO);
        // SAFETY: the caller's word
        unsafe {
            let quiet = BondedCall { wanted: Wanted::FORCE, ..*call };
            each_link::<S>(W, &quiet, &mut Sums::default(), |input, kind| {
                seen.push((variables(input), kind));
                nothing
            });
            let results = table.compute(D::INPUTS.len(), &seen, call.wanted.more_than_force());
            let mut next = results.into_iter();
            each_link::<S>(W, call, sums, |_, _| next.next().unwrap_or(nothing));
        }
    }
}

impl<D: Domain, const W: u32> BondPotential for LinkExpression<D, W> {
    const WIDTH: u32 = W;
    type Settings = LinkSettings<D>;
    type Input = Numbers;
    type Row = Vec<f64>;
    type Tables = (Table<f32>, Table<f64>);

    fn new(settings: LinkSettings<D>, written: &[(Position, &Numbers)], errors: &mut Errors) -> Option<Self> {
        let law = settings.energy.law(written, errors)?;
        Some(Self { law, domain: std::marker::PhantomData })
    }

    fn row(&self, input: &Numbers) -> Result<Vec<f64>, String> {
        self.law.row(input, &[])
    }

    fn numbers(row: &Vec<f64>) -> Vec<f64> {
        // a row of CUDA has at least one number
        if row.is_empty() { vec![0.0] } else { row.clone() }
    }

    fn tables(&self, rows: &[Vec<f64>]) -> Self::Tables {
        let inputs = D::INPUTS.len();
        (Table::new(&self.law, inputs, rows), Table::new(&self.law, inputs, rows))
    }

    unsafe fn cpu(&self, call: &BondedCall, (single, double): &Self::Tables, sums: &mut Sums) {
        // SAFETY: the caller's word
        unsafe {
            if (*call.state).precision == Precision::Double as u32 {
                Self::run::<Float64>(call, double, sums);
            } else {
                Self::run::<Fixed>(call, single, sums);
            }
        }
    }

    fn text(&self) -> Result<String> {
        let program = &self.law.full;
        let body = lines(program, |k| D::INPUTS[k].into(), |k| format!("row.c{k}"));
        Ok(format!(
            "{}template <class real> __device__ __forceinline__ Tuple2<real, real> bond_eval(const BondInput<real>& input, \
             const BondRow<real>& row) {{\n{body}    return {{v{}, v{}}};\n}}\n",
            row_struct("BondRow", self.law.slots()),
            program.outputs[0],
            program.outputs[1]
        ))
    }
}
