//! Integrators of a stage on the device.

use super::arrays::{Buffer, launch};
use super::codegen::{PhaseKernel, integrator_functions, integrator_unit, joint_unit};
use super::ranks::{Addresses, Rank};
use super::steps_kernel::MAX_ARGUMENTS;
use crate::device::args::{PhaseArgs, SUM_THREADS};
use crate::device::{Device, Kernel};
use crate::plan::StagePlan;
use crate::plugins::{Component, IntegratorHandle};
use crate::state::Facts;
use galamost_plugin_api::abi::{Extent, Opaque};
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::integrator::{MAX_SUMS, ProgramInfo, When};
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::views::{Globals, StateView};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

const BLOCK: u32 = SUM_THREADS;

/// A compiled integrator.
struct IntegratorKernels {
    component: Arc<Component>,
    kernels: Vec<Kernel>,
    /// The ends of particle phases with sums.
    ends: Vec<Option<End>>,
    /// Descriptions of `kernels`.
    phases: Vec<PhaseKernel>,
    /// CUDA C++ of its functions.
    text: String,
    args: PhaseArgs,
}

/// The end of a particle phase with sums.
struct End {
    kernel: Kernel,
    /// With several ranks: the sums of groups of particles.
    sums: Option<RankSums>,
}

/// Sums in each rank. Every phase has its own: other ranks may still read those of another phase.
struct RankSums {
    memory: Buffer,
    addresses: Addresses,
}

/// A kernel that ends a step and begins the next one.
struct Joint {
    kernel: Kernel,
    /// Kernels after the forces that run before it.
    separate: usize,
}

/// Scales positions with the box in double precision; fixed-point positions are relative to the box.
#[derive(Clone, Copy)]
pub struct PositionScaling {
    positions: Kernel,
    end: Kernel,
}

impl PositionScaling {
    /// Loads the kernels from the module of `system.cuh`.
    pub fn new(device: &dyn Device, system: u64) -> Result<Self> {
        Ok(Self { positions: device.kernel(system, "scale_positions")?, end: device.kernel(system, "end_scaling")? })
    }

    /// Launches the kernels.
    pub fn run(self, device: &dyn Device, state: &StateView) -> Result<()> {
        launch(device, self.positions, state.n_local as usize, BLOCK, state)?;
        launch(device, self.end, 1, 1, &state.globals.address)
    }
}

impl End {
    /// Loads the kernel from the integrator's module, if the phase has sums, and shares their memory with the other ranks.
    fn of(
        device: &Arc<dyn Device>,
        module: u64,
        phase: &PhaseKernel,
        n: usize,
        rank: Option<&Rank>,
    ) -> Result<Option<Self>> {
        if !phase.particles || phase.sums == 0 {
            return Ok(None);
        }
        let kernel = device.kernel(module, &format!("{}_end", phase.kernel))?;
        let share = |rank: &Rank| -> Result<RankSums> {
            let memory = Buffer::new(device, 8 * phase.sums as usize * n.div_ceil(BLOCK as usize))?;
            let addresses = rank.share(memory.address())?;
            Ok(RankSums { memory, addresses })
        };
        Ok(Some(Self { kernel, sums: rank.map(share).transpose()? }))
    }
}

/// Integrators of a stage.
pub struct Integrators {
    device: Arc<dyn Device>,
    n: usize,
    integrators: Vec<IntegratorKernels>,
    /// The kernel that begins the next step, if no integrator's phase does.
    next_step: Option<Kernel>,
    /// The kernel that ends a step and begins the next one.
    joint: Option<Joint>,
    /// Present in double precision.
    scaling: Option<PositionScaling>,
    counter: Buffer,
    rank: Option<Arc<Rank>>,
    /// Kept alive for the phases' arguments.
    _memory: [Buffer; 2],
}

/// Returns an integrator with its program.
fn program_of(c: &Component) -> Result<(IntegratorHandle<'_>, ProgramInfo)> {
    let part = c.integrator().ok_or_else(|| Error::Run(format!("{} is not an integrator", c.name)))?;
    Ok((part, part.program()?))
}

/// Puts the state of an integrator on the device, unless an earlier stage did.
fn keep_state(
    device: &Arc<dyn Device>,
    c: &Component,
    first: &[u8],
    states: &mut BTreeMap<u32, (Buffer, usize)>,
) -> Result<()> {
    match states.entry(c.id) {
        Entry::Vacant(slot) => {
            slot.insert((Buffer::of_bytes(device, first)?, first.len()));
            Ok(())
        }
        Entry::Occupied(kept) => crate::backend::check_state_length(c, kept.get().1, first.len()),
    }
}

impl Integrators {
    /// Compiles the integrators of a stage; `states` keeps every integrator's state across stages.
    pub fn new(
        device: &Arc<dyn Device>,
        system: u64,
        stage: &StagePlan,
        facts: &Facts,
        globals: &Globals,
        arrays: &BTreeMap<String, u64>,
        states: &mut BTreeMap<u32, (Buffer, usize)>,
        rank: Option<Arc<Rank>>,
    ) -> Result<Self> {
        let (n, components, conserved) = (facts.n, &stage.integrators, stage.conserves_momentum());
        // the persistent kernel stores the sums of warps
        let partial = Buffer::new(device, 8 * MAX_SUMS * n.div_ceil(BLOCK as usize) * BLOCK as usize / 32)?;
        let sums = Buffer::new(device, 8 * MAX_SUMS)?;
        let counter = Buffer::new(device, 4)?;
        let programs = components.iter().map(|c| program_of(c)).collect::<Result<Vec<_>>>()?;
        // the last integrator with a particle phase before the forces begins the next step in that phase
        let advancing =
            programs.iter().rposition(|(_, p)| p.phases.iter().any(|q| !q.scalar && q.when == When::Before));
        // velocities that an integrator carries through the step; integrators with `corrects` correct them as well
        let carried = programs.iter().filter(|(_, p)| p.carries_velocity).find_map(|(_, p)| {
            let extra = p.extra.as_ref()?;
            Some((*arrays.get(&extra.name)?, extra.width))
        });
        let in_kernels = rank.as_ref().is_some_and(|r| r.has_barriers_in_kernels());
        let mut integrators = vec![];
        for (k, (c, (part, program))) in components.iter().zip(&programs).enumerate() {
            let group = c.group;
            let first = part.state(&facts.group_info(
                group,
                globals,
                c.first_varying,
                conserved,
                stage.constraints.get(k).copied().unwrap_or(0),
            ))?;
            keep_state(device, c, &first, states)?;
            let code = part.device(facts.precision)?;
            let (text, phases) = integrator_functions(code.text.as_str(), program, advancing == Some(k));
            let module = device.compile(&integrator_unit(&c.name, &text, &phases, in_kernels, facts.precision))?;
            let kernels = phases.iter().map(|p| device.kernel(module, &p.kernel)).collect::<Result<Vec<_>>>()?;
            let extra = program.extra.as_ref().and_then(|e| arrays.get(&e.name)).copied().unwrap_or(0);
            let ends =
                phases.iter().map(|p| End::of(device, module, p, n, rank.as_deref())).collect::<Result<Vec<_>>>()?;
            let (carried, carried_width) = carried.filter(|_| program.corrects).unwrap_or_default();
            let args = PhaseArgs {
                state: StateView::empty(),
                integrator: states.get(&c.id).map_or(0, |(b, _)| b.address()),
                extra,
                key: RandomKey::new(facts.seed, c.id),
                component: c.id,
                group,
                first_varying: c.first_varying,
                reserved: 0,
                partial: partial.address(),
                counter: counter.address(),
                sums: sums.address(),
                carried,
                carried_width,
                reserved1: 0,
            };
            integrators.push(IntegratorKernels { component: c.clone(), kernels, ends, phases, text, args });
        }
        let next_step = if advancing.is_none() { Some(device.kernel(system, "next_step")?) } else { None };
        let double = facts.precision == Precision::Double;
        let scaling = if double { Some(PositionScaling::new(&**device, system)?) } else { None };
        let n = rank.as_ref().map_or(n, |r| r.own().len());
        Ok(Self {
            device: device.clone(),
            n,
            integrators,
            next_step,
            joint: None,
            scaling,
            counter,
            rank,
            _memory: [partial, sums],
        })
    }

    /// Compiles a kernel that ends a step and begins the next one, if that is possible: a launch less, and particles stay in the cache.
    ///
    /// # Errors
    /// Returns the compiler's messages.
    pub fn join_steps(&mut self, precision: Precision) -> Result<()> {
        let Some(texts) = self.texts().filter(|_| self.arguments_size() <= MAX_ARGUMENTS) else { return Ok(()) };
        let Some((unit, separate)) = joint_unit(&texts, precision) else { return Ok(()) };
        let kernel = self.device.kernel(self.device.compile(&unit)?, "between_steps")?;
        self.joint = Some(Joint { kernel, separate });
        Ok(())
    }

    /// Launches the phases after the forces of a step and those before the forces of the next one.
    pub fn run_between(&self, state: &StateView) -> Result<()> {
        let Some(joint) = &self.joint else {
            self.run(state, When::After)?;
            return self.run(state, When::Before);
        };
        self.run_first(state, When::After, joint.separate)?;
        let args = self.arguments(state);
        let pointers: Vec<*mut Opaque> = args.iter().map(|a| std::ptr::from_ref(a).cast_mut().cast()).collect();
        let names: Vec<&str> = self.integrators.iter().map(|m| m.component.name.as_str()).collect();
        self.device.profile().set_part(&names.join(" + "));
        let blocks = Extent::from(self.n.div_ceil(BLOCK as usize) as u32);
        // SAFETY: the kernel takes the arguments of all integrators, whose views describe arrays of this device
        unsafe { self.device.launch(joint.kernel, blocks, Extent::from(BLOCK), 0, &pointers) }
    }

    /// Launches the phases that run at this point of a step.
    pub fn run(&self, state: &StateView, when: When) -> Result<()> {
        self.run_first(state, when, usize::MAX)
    }

    /// Launches the first `count` kernels of the phases that run at this point of a step.
    fn run_first(&self, state: &StateView, when: When, mut count: usize) -> Result<()> {
        for m in &self.integrators {
            let args = PhaseArgs { state: *state, ..m.args };
            self.device.profile().set_part(&m.component.name);
            for (k, phase) in m.phases.iter().enumerate().filter(|(_, p)| p.when == when) {
                if count == 0 {
                    return Ok(());
                }
                count -= 1;
                let (n, block) = if phase.particles { (self.n, BLOCK) } else { (1, 1) };
                let end = m.ends[k].as_ref();
                let sums = end.and_then(|e| e.sums.as_ref());
                let partial = sums.map_or(args.partial, |s| s.memory.address());
                let args = PhaseArgs { partial, ..args };
                launch(&*self.device, m.kernels[k], n, block, &args)?;
                if let Some(end) = end {
                    self.add_sums(end, phase, state, &args)?;
                }
                if phase.sim_box
                    && let Some(scaling) = &self.scaling
                {
                    scaling.run(&*self.device, state)?;
                }
            }
        }
        if when == When::Before
            && let Some(kernel) = self.next_step
        {
            let globals = state.globals.address;
            let pointer = [std::ptr::from_ref(&globals).cast_mut().cast::<Opaque>()];
            // SAFETY: the kernel takes the address of the globals
            unsafe { self.device.launch(kernel, Extent::from(1), Extent::from(1), 0, &pointer)? };
        }
        Ok(())
    }

    /// Launches the kernel that adds the sums of a phase and runs the scalar phases that follow it.
    fn add_sums(&self, end: &End, phase: &PhaseKernel, state: &StateView, args: &PhaseArgs) -> Result<()> {
        let Some((rank, sums)) = self.rank.as_ref().zip(end.sums.as_ref()) else {
            return launch(&*self.device, end.kernel, BLOCK as usize, BLOCK, args);
        };
        let _part = self.device.profile().within("other GPUs");
        if !rank.has_barriers_in_kernels() {
            rank.push(state, sums.addresses, 2 * phase.sums as usize, BLOCK as usize)?;
            return launch(&*self.device, end.kernel, BLOCK as usize, BLOCK, args);
        }
        let ranks = rank.phase_args(state, sums.addresses);
        let pointers =
            [std::ptr::from_ref(args).cast_mut().cast::<Opaque>(), std::ptr::from_ref(&ranks).cast_mut().cast()];
        // SAFETY: the kernel takes these two structs, whose addresses are of this device or of devices that it can read
        unsafe { self.device.launch(end.kernel, Extent::from(1), Extent::from(BLOCK), 0, &pointers) }
    }

    /// Returns true if there are sums over all particles at this point of a step.
    pub fn has_sums(&self, when: When) -> bool {
        self.integrators.iter().any(|m| m.phases.iter().any(|p| p.when == when && p.sums > 0))
    }

    /// Returns true if an integrator changes the box; it then needs the virial at every step.
    pub fn changes_box(&self) -> bool {
        self.integrators.iter().any(|m| m.phases.iter().any(|p| p.virial))
    }

    /// Returns the functions of the integrators with their kernels in order, for the persistent kernel. Returns `None`
    /// if positions must be scaled with the box.
    pub fn texts(&self) -> Option<Vec<(&str, &[PhaseKernel])>> {
        let scales = self.scaling.is_some() && self.integrators.iter().any(|m| m.phases.iter().any(|p| p.sim_box));
        (!scales).then(|| self.integrators.iter().map(|m| (m.text.as_str(), m.phases.as_slice())).collect())
    }

    /// Returns the size of [`Self::arguments`] in bytes.
    pub fn arguments_size(&self) -> usize {
        self.integrators.len() * size_of::<PhaseArgs>()
    }

    /// Returns the kernel arguments of the integrators.
    pub fn arguments(&self, state: &StateView) -> Vec<PhaseArgs> {
        self.integrators.iter().map(|m| PhaseArgs { state: *state, ..m.args }).collect()
    }

    /// Resets the counters after a halt.
    pub fn reset(&self) -> Result<()> {
        self.counter.clear()
    }

    /// Returns the sum of the integrators' contributions to the conserved quantity.
    pub fn reservoir(&self, states: &BTreeMap<u32, (Buffer, usize)>) -> Result<f64> {
        let mut sum = 0.0;
        for m in &self.integrators {
            if let (Some(part), Some((b, len))) = (m.component.integrator(), states.get(&m.component.id)) {
                sum += part.conserved(&b.download()?[..*len])?;
            }
        }
        Ok(sum)
    }

    /// Returns the component with this id, for faults.
    pub fn component(&self, id: u32) -> Option<&Component> {
        self.integrators.iter().map(|m| &*m.component).find(|c| c.id == id)
    }

    /// Returns the components that cannot be captured in a graph.
    pub fn not_capturable(&self) -> Vec<&str> {
        self.integrators.iter().filter(|m| !m.component.needs.capturable).map(|m| m.component.name.as_str()).collect()
    }
}
