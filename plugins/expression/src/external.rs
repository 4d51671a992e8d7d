//! External fields given as formulas.

mod device;

use crate::compiled::{CompiledFormula, Domain, Formula};
use crate::formula::graph::{Graph, Id};
use crate::interpreter::{BLOCK, Interpreter, Slots, extension};
use crate::parameters::Values;
use device::Field;
use galamost_plugin_api::component::Registration;
use galamost_plugin_api::error::Errors;
use galamost_plugin_api::precision::{Fixed, Float64, Precision, Scheme, TWO_32};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::views::{Fault, FaultKind, Globals};
use std::sync::atomic::{AtomicU64, Ordering};

galamost_plugin_api::inventory::submit! {
    Registration::force::<ExternalExpression>(
        "ExternalExpression",
        concat!(include_str!("pages/external.md"), include_str!("pages/grammar.md")),
    )
}

/// U of a particle position; the derivatives are the three components of the force.
pub struct ParticlePosition;

impl Domain for ParticlePosition {
    const DESCRIPTION: &'static str = "U(x, y, z)";
    const INPUTS: &'static [&'static str] = &["r.x", "r.y", "r.z", "length.x", "length.y", "length.z"];
    fn variables(graph: &mut Graph) -> Vec<(&'static str, Id)> {
        ["x", "y", "z", "Lx", "Ly", "Lz"].iter().enumerate().map(|(k, name)| (*name, graph.variable(k))).collect()
    }
    fn slopes(graph: &mut Graph, energy: Id) -> Vec<Id> {
        let axis = |k| {
            let x = graph.variable(k);
            let slope = graph.derivative(energy, x);
            graph.scale(-1.0, slope)
        };
        (0..3).map(axis).collect()
    }
}

/// An external field given as a formula.
#[derive(Params)]
pub struct ExternalExpression {
    /// Energy U of one particle as a formula of x, y, z, Lx, Ly, Lz and the parameters.
    #[param(unit = "energy")]
    energy: Formula<ParticlePosition>,
    /// Values of the parameters: `(k: 1.0)`.
    parameters: Option<Spanned<Values>>,
    /// Group of particles that the field acts on.
    #[param(default = Group::All)]
    group: Group,
    #[param(skip)]
    bound: Option<Bound>,
    #[param(skip)]
    host: Option<(Host, Option<Field>)>,
}

/// The compiled formula and its coefficients for the bound system.
struct Bound {
    formula: CompiledFormula,
    row: Vec<f64>,
    single: [Interpreter<f32>; 2],
    double: [Interpreter<f64>; 2],
    system: SystemInfo,
}

impl Force for ExternalExpression {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        let mut errors = Errors::default();
        if system.dimensions == 2
            && let Some(at) = self.energy.position_of("z")
        {
            errors.push(InputError::at(at, "the system has two dimensions and no z"));
        }
        if let Some(at) = self.energy.position_of("Lz").filter(|_| system.dimensions == 2) {
            errors.push(InputError::at(at, "the system has two dimensions and no Lz"));
        }
        let none = Values::default();
        let at = self.parameters.as_ref().map_or_else(|| self.energy.at(), |p| p.at);
        let numbers = self.parameters.as_ref().map_or(&none, |p| &p.value);
        let formula = self.energy.compile(&[(at, numbers)], &mut errors);
        if !errors.0.is_empty() {
            return errors.into_result(None);
        }
        let formula = formula.ok_or_else(|| Error::input("the formula cannot be compiled"))?;
        let row = formula.row(numbers, &[]).map_err(|message| InputError::at(at, message))?;
        let in_range = system.check_row(&row).and_then(|()| system.check_constants(&formula.constants()));
        in_range.map_err(|message| InputError::at(at, message))?;
        let slots = Slots::Fixed(&row);
        let inputs = ParticlePosition::INPUTS.len();
        let single = [Interpreter::new(&formula.force, inputs, slots), Interpreter::new(&formula.full, inputs, slots)];
        let double = [Interpreter::new(&formula.force, inputs, slots), Interpreter::new(&formula.full, inputs, slots)];
        needs.group = self.group.need(system)?;
        needs.conserves_momentum = false;
        // displaced images have other positions along x
        needs.plain_images = self.energy.position_of("x").is_some();
        (needs.particle_energies, needs.particle_virials, needs.shared) = (true, true, true);
        let mut undefined = "the formula is undefined (NaN) at the position of a particle".to_string();
        if self.energy.has_power_of_parameters() {
            undefined +=
                "; a power whose exponent is a parameter needs a nonnegative base: write integer exponents as numbers";
        }
        needs.faults = vec![undefined];
        self.bound = Some(Bound { formula, row, single, double, system: system.clone() });
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        let bound = self.bound.as_ref().ok_or_else(|| Error::Run("ExternalExpression was not bound".into()))?;
        let field = if bound.system.device == "cuda" { Some(Field::new(&host, bound)?) } else { None };
        self.host = Some((host, field));
        Ok(())
    }

    unsafe fn compute(&mut self, call: &ForceCall, sums: &mut Sums) -> Result<()> {
        let (Some(bound), Some((host, field))) = (&self.bound, &self.host) else {
            return Err(Error::Run("ExternalExpression was not started".into()));
        };
        if let Some(field) = field {
            // SAFETY: the engine passes valid device views
            return unsafe { field.launch(host, call) };
        }
        // SAFETY: the engine passes valid host views of the run's precision
        unsafe {
            let length = (*call.state.globals.host()).box_length;
            if call.state.precision == Precision::Double as u32 {
                bound.cpu::<Float64>(&bound.double, host, call, sums, length, |p| p.position);
            } else {
                let unit = length.map(|l| l / TWO_32);
                bound.cpu::<Fixed>(&bound.single, host, call, sums, length, |p| {
                    std::array::from_fn(|k| (f64::from(p.position[k]) * unit[k]) as f32)
                });
            }
        }
        Ok(())
    }
}

/// Particles per task.
const CHUNK: usize = 4 * BLOCK;

impl Bound {
    /// Adds the forces and, if requested, the energies.
    ///
    /// # Safety
    /// The views describe valid host arrays of the scheme `S`.
    unsafe fn cpu<S: Scheme>(
        &self,
        interpreters: &[Interpreter<S::Real>; 2],
        host: &Host,
        call: &ForceCall,
        sums: &mut Sums,
        length: [f64; 3],
        position: impl Fn(&S::PosType) -> [S::Real; 3] + Sync,
    ) {
        let state = call.state;
        let pos = state.pos_type.cast::<S::PosType>();
        let force = state.force.cast::<[S::Real; 4]>();
        let n = state.n_local as usize;
        let full = call.wanted.more_than_force();
        let interpreter = &interpreters[usize::from(full)];
        let isa = extension();
        // one sum per chunk, added in the order of the chunks: the result does not depend on the number of threads
        let energies: Vec<AtomicU64> = (0..n.div_ceil(CHUNK)).map(|_| AtomicU64::new(0)).collect();
        let lengths = length.map(S::Real::lit);
        // SAFETY: the views describe valid host arrays
        let globals: &Globals = unsafe { &*state.globals.host() };
        host.parallel(n, CHUNK, |range| {
            let mut memory = interpreter.memory();
            let mut members = Vec::with_capacity(BLOCK);
            let mut energy = 0.0;
            for first in range.clone().step_by(BLOCK) {
                members.clear();
                for i in first..(first + BLOCK).min(range.end) {
                    // SAFETY: `i` < `n_local`
                    let (p, member) = unsafe { (&*pos.host().add(i), state.in_group(i, call.group)) };
                    if member {
                        for (k, x) in position(p).into_iter().chain(lengths).enumerate() {
                            memory[interpreter.input(k) + members.len()] = x;
                        }
                        members.push(i);
                    }
                }
                // SAFETY: `extension` returns an extension of this processor
                unsafe { interpreter.run(isa, &mut memory, members.len()) };
                for (l, i) in members.iter().enumerate() {
                    // SAFETY: `i` < `n_local`; the ranges are disjoint
                    let out = unsafe { &mut *force.host().add(*i) };
                    let mut undefined = false;
                    for (a, out) in out.iter_mut().enumerate().take(3) {
                        let f = memory[interpreter.output(a) + l];
                        *out += f;
                        undefined |= f.f64().is_nan();
                    }
                    if full {
                        let u = memory[interpreter.output(3) + l];
                        out[3] += u;
                        energy += u.f64();
                        undefined |= u.f64().is_nan();
                    }
                    if undefined {
                        // SAFETY: `i` < `n_local`
                        let tag = unsafe { *state.tag.host().add(*i) };
                        let code = FaultKind::Component as u32;
                        globals.raise(Fault { code, component: call.component, tag, detail: 0 });
                    }
                }
            }
            energies[range.start / CHUNK].store(f64::to_bits(energy), Ordering::Relaxed);
        });
        if full {
            sums.energy += energies.iter().map(|e| f64::from_bits(e.load(Ordering::Relaxed))).sum::<f64>();
        }
    }
}
