//! Bond, angle, dihedral and improper potentials given as formulas.

use crate::compiled::{CompiledFormula, Domain, Formula};
use crate::formula::cuda::{lines, row_struct};
use crate::formula::graph::{Function, Graph, Id};
use crate::interpreter::{BLOCK, Interpreter, Slots, extension};
use crate::pair::force_over_distance;
use crate::parameters::Values;
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
        concat!(include_str!("pages/angle.md"), include_str!("pages/grammar.md"), include_str!("pages/undefined.md")),
    )
}
galamost_plugin_api::inventory::submit! {
    Registration::bond_potential::<DihedralExpression>(
        "DihedralExpression",
        concat!(
            include_str!("pages/dihedral.md"),
            include_str!("pages/grammar.md"),
            include_str!("pages/undefined.md")
        ),
    )
}
galamost_plugin_api::inventory::submit! {
    Registration::bond_potential::<ImproperExpression>(
        "ImproperExpression",
        concat!(
            include_str!("pages/improper.md"),
            include_str!("pages/grammar.md"),
            include_str!("pages/undefined.md")
        ),
    )
}

/// The variables of a formula of links.
pub trait LinkDomain: Domain {
    /// The links.
    const LIST: LinkList;
}

/// U of the bond length; the derivative is F/r.
pub struct BondLength;

impl Domain for BondLength {
    const DESCRIPTION: &'static str = "U(r)";
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

impl LinkDomain for BondLength {
    const LIST: LinkList = LinkList::Bonds;
}

/// Returns θ or φ, its cosine and its sine. All three are inputs, so cos and sin of the angle cost nothing.
fn angle(graph: &mut Graph) -> [Id; 3] {
    let [angle, cos, sin] = [0, 1, 2].map(|k| graph.variable(k));
    graph.shortcuts = vec![(Function::Cos, angle, cos), (Function::Sin, angle, sin)];
    [angle, cos, sin]
}

/// U of the angle θ; the derivative is dU/dcos θ.
pub struct Angle;

impl Domain for Angle {
    const DESCRIPTION: &'static str = "U(theta)";
    const INPUTS: &'static [&'static str] = &["input.angle", "input.cos", "input.sin"];
    fn variables(graph: &mut Graph) -> Vec<(&'static str, Id)> {
        vec![("theta", angle(graph)[0])]
    }
    fn slopes(graph: &mut Graph, energy: Id) -> Vec<Id> {
        let [angle, cos, sin] = angle(graph);
        let [by_angle, by_cos, by_sin] = [angle, cos, sin].map(|v| graph.derivative(energy, v));
        // dsin/dcos = −cos/sin and dθ/dcos = −1/sin, with 1/sin limited to 10⁶
        let sin_min = graph.number(1e-6);
        let sin = graph.select(false, [sin, sin_min, sin_min, sin]);
        let turned = graph.multiply(by_sin, cos);
        let sum = graph.add(turned, by_angle);
        let over_sin = graph.divide(sum, sin);
        vec![graph.subtract(by_cos, over_sin)]
    }
}

impl LinkDomain for Angle {
    const LIST: LinkList = LinkList::Angles;
}

/// U of the angle φ of a dihedral, or of an improper; the derivative is dU/dφ.
pub struct Torsion<const IMPROPER: bool>;

/// U of the angle φ of a dihedral.
pub type Dihedral = Torsion<false>;

impl<const IMPROPER: bool> Domain for Torsion<IMPROPER> {
    const DESCRIPTION: &'static str = "U(phi)";
    const INPUTS: &'static [&'static str] = Angle::INPUTS;
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

impl<const IMPROPER: bool> LinkDomain for Torsion<IMPROPER> {
    const LIST: LinkList = if IMPROPER { LinkList::Impropers } else { LinkList::Dihedrals };
}

/// A bonded potential given as a formula.
pub struct BondedExpression<D> {
    formula: CompiledFormula,
    domain: std::marker::PhantomData<D>,
}

/// The component `BondExpression`.
pub type BondExpression = BondedExpression<BondLength>;
/// The component `AngleExpression`.
pub type AngleExpression = BondedExpression<Angle>;
/// The component `DihedralExpression`.
pub type DihedralExpression = BondedExpression<Dihedral>;
/// The component `ImproperExpression`.
pub type ImproperExpression = BondedExpression<Torsion<true>>;

/// Settings of the component.
pub struct BondedSettings<D> {
    energy: Formula<D>,
}

impl<D: Domain> galamost_plugin_api::params::Params for BondedSettings<D> {
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
            doc: "Energy U as a formula of the variable and the parameters.".into(),
            fields: vec![],
        }]
    }
}

/// F/r of a bond counts as infinite from this number on, near the largest one of single precision. Double precision needs such a limit:
/// where F/r diverges, r² has the lower bound 1e-30, so F/r of coinciding particles is finite and their force 0, even if dU/dr diverges.
const LIMIT: f64 = 3.4e38;

/// Data of the CPU loop in one number type.
pub struct LoopData<R> {
    force: Interpreter<R>,
    full: Interpreter<R>,
    slots: usize,
    /// Coefficient s of type k at s · n_types + k.
    numbers: Vec<R>,
    n_types: usize,
}

impl<R: Real> LoopData<R> {
    fn new(formula: &CompiledFormula, inputs: usize, rows: &[Vec<f64>]) -> Self {
        let (slots, slot_kind) = match rows {
            [row] => (0, Slots::Fixed(row)),
            _ => (formula.slots(), Slots::PerLane(formula.slots())),
        };
        let numbers = (0..slots).flat_map(|s| rows.iter().map(move |row| R::lit(row[s]))).collect();
        Self {
            force: Interpreter::new(&formula.force, inputs, slot_kind),
            full: Interpreter::new(&formula.full, inputs, slot_kind),
            slots,
            numbers,
            n_types: rows.len(),
        }
    }

    /// Returns (derivative, U) of many links; `links` holds the variables and the type of each.
    fn compute(&self, inputs: usize, links: &[([R; 3], usize)], full: bool) -> Vec<(R, R)> {
        let interpreter = if full { &self.full } else { &self.force };
        let mut memory = interpreter.memory();
        let mut results = Vec::with_capacity(links.len());
        let isa = extension();
        for block in links.chunks(BLOCK) {
            for (l, (values, link_type)) in block.iter().enumerate() {
                for (k, x) in values.iter().enumerate().take(inputs) {
                    memory[interpreter.input(k) + l] = *x;
                }
                for s in 0..self.slots {
                    memory[interpreter.slot(s) + l] = self.numbers[s * self.n_types + link_type];
                }
            }
            // SAFETY: `extension` returns an extension of this processor
            unsafe { interpreter.run(isa, &mut memory, block.len()) };
            let slopes = &memory[interpreter.output(0)..];
            results.extend((0..block.len()).map(|l| {
                let energy = if full { memory[interpreter.output(1) + l] } else { R::ZERO };
                (slopes[l], energy)
            }));
        }
        results
    }
}

impl<D: LinkDomain> BondedExpression<D> {
    /// Adds the forces in two passes over the links: the first collects their variables, the second adds the results.
    ///
    /// # Safety
    /// The call describes valid host arrays of the scheme `S`.
    unsafe fn run<S: Scheme>(call: &BondedCall, data: &LoopData<S::Real>, sums: &mut Sums) {
        let variables = |input: &BondInput<S::Real>| {
            if D::LIST == LinkList::Bonds { [input.r2; 3] } else { [input.angle, input.cos, input.sin] }
        };
        let mut links = vec![];
        let zero = (S::Real::ZERO, S::Real::ZERO);
        // SAFETY: the engine passes valid arrays of the run's precision
        unsafe {
            let force_only = BondedCall { wanted: Wanted::FORCE, ..*call };
            each_link::<S>(D::LIST, &force_only, &mut Sums::default(), |input, link_type| {
                links.push((variables(input), link_type));
                zero
            });
            let results = data.compute(D::INPUTS.len(), &links, call.wanted.more_than_force());
            let mut next = results.into_iter();
            each_link::<S>(D::LIST, call, sums, |_, _| {
                let (slope, energy) = next.next().unwrap_or(zero);
                // −∞ is a bond that is longer than its potential allows: the check refuses it in the initial state, and
                // in a run it is a fault, also of particles that no integrator moves
                let defined = D::LIST != LinkList::Bonds || slope.f64().abs() < LIMIT;
                (if defined { slope } else { S::Real::lit(f64::NEG_INFINITY) }, energy)
            });
        }
    }
}

impl<D: LinkDomain> BondPotential for BondedExpression<D> {
    const LIST: LinkList = D::LIST;
    type Settings = BondedSettings<D>;
    type Input = Values;
    type Row = Vec<f64>;
    type Tables = (LoopData<f32>, LoopData<f64>);

    fn new(settings: BondedSettings<D>, written: &[(Position, &Values)], errors: &mut Errors) -> Option<Self> {
        let formula = settings.energy.compile(written, errors)?;
        Some(Self { formula, domain: std::marker::PhantomData })
    }

    fn row(&self, input: &Values) -> Result<Vec<f64>, String> {
        self.formula.row(input, &[])
    }

    fn numbers(row: &Vec<f64>) -> Vec<f64> {
        // a CUDA row has at least one number
        if row.is_empty() { vec![0.0] } else { row.clone() }
    }

    fn constants(&self) -> Vec<f64> {
        self.formula.constants()
    }

    fn tables(&self, rows: &[Vec<f64>]) -> Self::Tables {
        let inputs = D::INPUTS.len();
        (LoopData::new(&self.formula, inputs, rows), LoopData::new(&self.formula, inputs, rows))
    }

    unsafe fn cpu(&self, call: &BondedCall, (single, double): &Self::Tables, sums: &mut Sums) {
        // SAFETY: the engine passes valid arrays of the run's precision
        unsafe {
            if (*call.state).precision == Precision::Double as u32 {
                Self::run::<Float64>(call, double, sums);
            } else {
                Self::run::<Fixed>(call, single, sums);
            }
        }
    }

    fn text(&self) -> Result<String> {
        let program = &self.formula.full;
        let body = lines(program, |k| D::INPUTS[k].into(), |k| format!("row.c{k}"));
        let (slope, energy) = (program.outputs[0], program.outputs[1]);
        // an undefined force of a bond becomes −∞, as on the CPU
        let slope = if D::LIST == LinkList::Bonds {
            let infinite = f64::NEG_INFINITY.to_bits();
            format!("device_abs(v{slope}) < real({LIMIT:e}) ? v{slope} : device_bits<real>({infinite:#x}ull)")
        } else {
            format!("v{slope}")
        };
        Ok(format!(
            "{}template <class real> __device__ __forceinline__ Tuple2<real, real> bond_eval(const BondInput<real>& input, \
             const BondRow<real>& row) {{\n{body}    return {{{slope}, v{energy}}};\n}}\n",
            row_struct("BondRow", self.formula.slots()),
        ))
    }
}
