//! An integrator as a component of the pipeline.

use super::object::ComponentInterface;
use super::tables::integrator_table;
use crate::abi::views::{SimBox, Step};
use crate::abi::{Object, RVec, TablePointer, WireCode};
use crate::device::philox::{NO_TAG, Random};
use crate::device::precision::Precision;
use crate::device::{CxxStruct, DeviceStruct, assemble};
use crate::error::{Error, Result};
use crate::kinds::component::{ArrayNeed, GroupNeed, Kind, Needs, Registration, SystemInfo};
use crate::kinds::integrator::{GroupInfo, Integrator, ParticleCall, Phase, Program, ProgramInfo, ScalarCall};
use crate::params::{FromValue, Params, parse};

/// Methods of `integrator/1`.
pub trait IntegratorInterface: ComponentInterface {
    /// Returns the program.
    fn program(&self) -> ProgramInfo;
    /// Returns the initial state as bytes.
    ///
    /// # Errors
    /// Returns an error if the group is unsuitable, for example empty.
    fn state(&self, group: &GroupInfo) -> Result<Vec<u8>>;
    /// Runs a particle phase on the CPU.
    ///
    /// # Errors
    /// Returns an error if there is no such phase.
    ///
    /// # Safety
    /// `call` must describe valid host arrays.
    unsafe fn cpu_particles(&self, phase: u32, call: &ParticleCall) -> Result<()>;
    /// Runs a scalar phase on the CPU.
    ///
    /// # Errors
    /// Returns an error if there is no such phase.
    ///
    /// # Safety
    /// `call` must describe valid host memory.
    unsafe fn cpu_scalar(&self, phase: u32, call: &ScalarCall) -> Result<()>;
    /// Returns the source text.
    ///
    /// # Errors
    /// Returns an error if two device functions have the same name.
    fn device(&self, precision: Precision) -> Result<WireCode>;
    /// Returns the contribution of the state to the conserved quantity.
    fn conserved(&self, state: &[u8]) -> f64;
}

struct IntegratorComponent<I: Integrator> {
    name: &'static str,
    inner: I,
    program: Program<I>,
}

impl<I: Integrator> ComponentInterface for IntegratorComponent<I> {
    fn bind(&mut self, system: &SystemInfo) -> Result<Needs> {
        let mut needs = Needs::default();
        self.inner.bind(system, &mut needs)?;
        let program = IntegratorInterface::program(self);
        if program.phases.iter().any(|p| p.turns) {
            if system.dimensions == 2 {
                return Err(Error::input("propagates orientations in three dimensions only"));
            }
            let array = |name: &str, width, required| ArrayNeed { name: name.into(), width, integer: false, required };
            for (name, width) in [("quaternion", 4), ("inert", 3)] {
                if !system.has_array(name) {
                    return Err(Error::input(format!(
                        "propagates orientations, but particles have no `{name}`: add it to the initial state"
                    )));
                }
                needs.arrays.push(array(name, width, true));
            }
            needs.arrays.extend([array("angular_momentum", 3, false), array("torque", 3, false)]);
        }
        needs.arrays.extend(program.extra);
        needs.moves = program.phases.iter().any(|p| !p.scalar);
        if program.phases.iter().any(|p| p.sim_box) && needs.group != GroupNeed::All {
            return Err(Error::input("changes the box and must act on all particles: remove `group`"));
        }
        needs.corrects = program.corrects;
        needs.changes_tilt = program.phases.iter().any(|p| p.tilts);
        needs.triclinic |= needs.changes_tilt || !program.phases.iter().any(|p| p.position || p.sim_box);
        Ok(needs)
    }
    fn table(name: &str) -> Option<TablePointer> {
        (name == "integrator/1").then(integrator_table::<Self>)
    }
}

impl<I: Integrator> IntegratorComponent<I> {
    fn phase(&self, phase: u32) -> Result<&Phase<I>> {
        self.program.phases.get(phase as usize).ok_or_else(|| Error::Run(format!("{} has no phase {phase}", self.name)))
    }
}

impl<I: Integrator> IntegratorInterface for IntegratorComponent<I> {
    fn program(&self) -> ProgramInfo {
        let width = size_of::<I::Extra<f32>>() / 4;
        let extra = (width > 0).then(|| ArrayNeed {
            name: format!("{}.state", self.name),
            width: width as u32,
            integer: false,
            required: false,
        });
        ProgramInfo {
            phases: self.program.phases.iter().map(|p| p.info.clone()).collect(),
            state_size: size_of::<I::State>() as u32,
            extra,
            corrects: self.program.corrects,
            carries_velocity: self.program.carries_velocity,
        }
    }

    fn state(&self, group: &GroupInfo) -> Result<Vec<u8>> {
        let state = self.inner.state(group)?;
        Ok(crate::device::bytes_of(&[state]).to_vec())
    }

    unsafe fn cpu_particles(&self, phase: u32, call: &ParticleCall) -> Result<()> {
        let f = self.phase(phase)?.particles.ok_or_else(|| Error::Run(format!("phase {phase} is a scalar phase")))?;
        // SAFETY: `call` describes valid host arrays (contract of this function); `integrator` is the address of as many
        // bytes as `state` returned, aligned to 64 bytes, and a state is plain data
        unsafe { f(call, &*call.integrator.cast()) };
        Ok(())
    }

    unsafe fn cpu_scalar(&self, phase: u32, call: &ScalarCall) -> Result<()> {
        let f = self.phase(phase)?.scalar.ok_or_else(|| Error::Run(format!("phase {phase} is a particle phase")))?;
        // SAFETY: the addresses in `call` are null or valid, and nothing else uses their targets (contract of this
        // function); the state is as in `cpu_particles`
        unsafe {
            let step = Step::new(&*call.globals, call.first_varying);
            let mut random = Random::new(call.key, step.step, NO_TAG, call.first_draw);
            let mut none = SimBox::of(&*call.globals);
            let sim_box = if call.sim_box.is_null() { &mut none } else { &mut *call.sim_box };
            f(&mut *call.integrator.cast(), &*call.sums, &step, &mut random, sim_box);
        }
        Ok(())
    }

    fn device(&self, _: Precision) -> Result<WireCode> {
        let mut roots = vec![<I::State as CxxStruct>::text(), <I::Extra<f32> as CxxStruct>::text()];
        roots.extend(self.program.phases.iter().map(|p| (p.text)()));
        let mut text = assemble(&roots).map_err(Error::Run)?;
        let (state, extra) = (roots[0].name, roots[1].name);
        text.push_str(&format!("typedef {state} State;\ntemplate <class real> using Extra = {extra}<real>;\n"));
        text.push_str(&format!("static constexpr bool has_extra = {};\n", size_of::<I::Extra<f32>>() > 0));
        for p in &self.program.phases {
            text.push_str(p.call_text);
        }
        Ok(WireCode { text: text.into(), rows: RVec::new(), cutoff_rows: RVec::new() })
    }

    fn conserved(&self, state: &[u8]) -> f64 {
        crate::device::from_bytes(state).map_or(f64::NAN, |state| I::conserved(&state))
    }
}

const fn assert_device_struct<T: DeviceStruct>() {}

impl Registration {
    /// Registers an integrator.
    pub const fn integrator<I: Integrator + Params + FromValue>(name: &'static str, doc: &'static str) -> Self {
        assert_device_struct::<I::State>();
        assert!(
            size_of::<I::Extra<f64>>() == 2 * size_of::<I::Extra<f32>>(),
            "members of `Extra` are `real`: the engine stores them in the precision of the run"
        );
        Self {
            name,
            former_names: &[],
            kind: Kind::Integrator,
            doc,
            fields: I::docs,
            create: |name, value| {
                parse::<I>(value)
                    .map(|inner| Object::new(name, IntegratorComponent { name, inner, program: I::program() }))
            },
        }
    }
}
