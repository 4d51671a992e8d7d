//! External fields: a force on each particle from its place.

mod device;

use crate::formula::graph::{Graph, Id};
use crate::law::{Domain, Formula, Law};
use crate::machine::{BLOCK, Machine, Slots, extension};
use crate::numbers::Numbers;
use device::Field;
use galamost_plugin_api::component::Registration;
use galamost_plugin_api::error::Errors;
use galamost_plugin_api::precision::{Fixed, Float64, Precision, Scheme, TWO_32};
use galamost_plugin_api::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

galamost_plugin_api::inventory::submit! {
    Registration::force::<ExternalExpression>(
        "ExternalExpression",
        concat!(include_str!("pages/external.md"), include_str!("pages/grammar.md")),
    )
}

/// U of a particle's place; the slopes are the three components of the force.
pub struct Place;

impl Domain for Place {
    const WHAT: &'static str = "U(x, y, z)";
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

/// A force on each particle that follows from its place alone.
#[derive(Params)]
pub struct ExternalExpression {
    /// U of one particle, as a formula of x, y, z, Lx, Ly, Lz and the parameters.
    #[param(unit = "energy")]
    energy: Formula<Place>,
    /// The numbers of the formula's parameters: `(k: 1.0)`.
    parameters: Option<Spanned<Numbers>>,
    /// The particles it acts on.
    #[param(default = Group::All)]
    group: Group,
    #[param(skip)]
    ready: Option<Ready>,
    #[param(skip)]
    host: Option<(Host, Option<Field>)>,
}

/// What is known once the system is.
struct Ready {
    law: Law,
    row: Vec<f64>,
    single: [Machine<f32>; 2],
    double: [Machine<f64>; 2],
    system: SystemInfo,
}

impl Force for ExternalExpression {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        let mut errors = Errors::default();
        if system.dimensions == 2
            && let Some(at) = self.energy.place_of("z")
        {
            errors.push(InputError::at(at, "the system has two dimensions: there is no z"));
        }
        if let Some(at) = self.energy.place_of("Lz").filter(|_| system.dimensions == 2) {
            errors.push(InputError::at(at, "the system has two dimensions: there is no Lz"));
        }
        let none = Numbers::default();
        let at = self.parameters.as_ref().map_or_else(|| self.energy.at(), |p| p.at);
        let numbers = self.parameters.as_ref().map_or(&none, |p| &p.value);
        let law = self.energy.law(&[(at, numbers)], &mut errors);
        if !errors.0.is_empty() {
            return errors.into_result(None);
        }
        let law = law.ok_or_else(|| Error::input("the formula could not be read"))?;
        let row = law.row(numbers, &[]).map_err(|message| InputError::at(at, message))?;
        let slots = Slots::Fixed(&row);
        let inputs = Place::INPUTS.len();
        let single = [Machine::new(&law.force, inputs, slots), Machine::new(&law.full, inputs, slots)];
        let double = [Machine::new(&law.force, inputs, slots), Machine::new(&law.full, inputs, slots)];
        needs.group = self.group.need(system)?;
        needs.conserves_momentum = false;
        self.ready = Some(Ready { law, row, single, double, system: system.clone() });
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        let ready = self.ready.as_ref().ok_or_else(|| Error::Run("not bound".into()))?;
        let field = if ready.system.device == "cuda" { Some(Field::new(&host, ready)?) } else { None };
        self.host = Some((host, field));
        Ok(())
    }

    unsafe fn compute(&mut self, call: &ForceCall, sums: &mut Sums) -> Result<()> {
        let (Some(ready), Some((host, field))) = (&self.ready, &self.host) else {
            return Err(Error::Run("not started".into()));
        };
        if let Some(field) = field {
            // SAFETY: the engine's word about the views
            return unsafe { field.launch(host, call) };
        }
        // SAFETY: the engine's word about the views; the CPU's are host memory
        unsafe {
            let length = (*call.state.globals.host()).box_length;
            if call.state.precision == Precision::Double as u32 {
                ready.cpu::<Float64>(&ready.double, host, call, sums, length, |p| p.position);
            } else {
                let unit = length.map(|l| l / TWO_32);
                ready.cpu::<Fixed>(&ready.single, host, call, sums, length, |p| {
                    std::array::from_fn(|k| (f64::from(p.position[k]) * unit[k]) as f32)
                });
            }
        }
        Ok(())
    }
}

/// Particles that a thread takes at a time.
const CHUNK: usize = 4 * BLOCK;

impl Ready {
    /// Adds forces, and energies if they are wanted.
    ///
    /// # Safety
    /// The views describe valid host arrays of the scheme `S`.
    unsafe fn cpu<S: Scheme>(
        &self,
        machines: &[Machine<S::Real>; 2],
        host: &Host,
        call: &ForceCall,
        sums: &mut Sums,
        length: [f64; 3],
        place: impl Fn(&S::PosType) -> [S::Real; 3] + Sync,
    ) {
        let state = call.state;
        let pos = state.pos_type.cast::<S::PosType>();
        let force = state.force.cast::<[S::Real; 4]>();
        let n = state.n_local as usize;
        let full = call.wanted.more_than_force();
        let machine = &machines[usize::from(full)];
        let isa = extension();
        // one sum for each chunk, added in the order of the chunks: the result does not depend on the threads
        let energies: Vec<AtomicU64> = (0..n.div_ceil(CHUNK)).map(|_| AtomicU64::new(0)).collect();
        let lengths = length.map(S::Real::lit);
        host.parallel(n, CHUNK, |range| {
            let mut memory = machine.memory();
            let mut members = Vec::with_capacity(BLOCK);
            let mut energy = 0.0;
            for first in range.clone().step_by(BLOCK) {
                members.clear();
                for i in first..(first + BLOCK).min(range.end) {
                    // SAFETY: the engine's word about the views
                    let (p, member) = unsafe { (&*pos.host().add(i), state.in_group(i, call.group)) };
                    if member {
                        for (k, x) in place(p).into_iter().chain(lengths).enumerate() {
                            memory[machine.input(k) + members.len()] = x;
                        }
                        members.push(i);
                    }
                }
                machine.run(isa, &mut memory, members.len());
                for (l, i) in members.iter().enumerate() {
                    // SAFETY: the engine's word about the views; ranges are disjoint
                    let out = unsafe { &mut *force.host().add(*i) };
                    for (a, out) in out.iter_mut().enumerate().take(3) {
                        *out += memory[machine.output(a) + l];
                    }
                    if full {
                        let u = memory[machine.output(3) + l];
                        out[3] += u;
                        energy += u.f64();
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
