//! Integrators move particles: a program of small functions, before and after the forces of each step.
//!
//! An integrator is written as functions of one particle (`#[particle_fn]`) and of its own state (`#[scalar_fn]`,
//! for thermostats and barostats), in the device language. The engine owns the loops: it loads and stores particles
//! in whatever form the precision asks for, wraps positions, counts images, watches the list's buffer, sums what the
//! functions return in f64, keeps the state in checkpoints, and is free to fuse neighboring phases.

mod cpu;

use crate::abi::views::{SimBox, Step};
use crate::device::philox::Random;
use crate::device::quaternion::Quaternion;
use crate::device::real::Real;
use crate::device::vector::Vec3;
use crate::device::{CxxStruct, DeviceFn, DeviceStruct, DeviceText};
use crate::error::Result;
use crate::kinds::component::{ArrayNeed, Needs, SystemInfo};
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;

pub use crate::abi::calls::{MAX_SUMS, ParticleCall, ScalarCall};

/// A particle while an integrator's function has it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Particle<R> {
    /// Position, −L/2 ≤ x < L/2, rounded to `real`: for looking only.
    pub position: Vec3<R>,
    /// Velocity; written back.
    pub velocity: Vec3<R>,
    /// Force of the last evaluation.
    pub force: Vec3<R>,
    /// Mass.
    pub mass: R,
    /// Starts as 0; the particle is moved by it afterwards, with more digits than `real` has.
    pub displacement: Vec3<R>,
    /// Orientation; written back, normalized.
    pub quaternion: Quaternion<R>,
    /// Angular momentum in the frame of space; written back.
    pub angular_momentum: Vec3<R>,
    /// Torque of the last evaluation of forces, in the frame of space.
    pub torque: Vec3<R>,
    /// Moments of inertia about the axes of the body's frame; about an axis with 0 the particle does not turn.
    pub inertia: Vec3<R>,
    /// Type.
    pub kind: u32,
    /// Tag.
    pub tag: u32,
}

/// The particles an integrator moves, when its state is first made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupInfo {
    /// Number of particles.
    pub n: u64,
    /// Their degrees of freedom: dimensions × n, less the dimensions if all particles are in the group and the run
    /// keeps the total momentum.
    pub degrees_of_freedom: f64,
    /// Degrees of freedom of their rotation: moments of inertia that are not 0.
    pub rotational_degrees_of_freedom: f64,
    /// 2 or 3.
    pub dimensions: u32,
    /// Time step of the stage.
    pub dt: f64,
    /// Values of the integrator's time-dependent numbers at the start.
    pub varying: [f64; crate::abi::views::COMPONENT_VARYINGS],
}

/// Numbers an integrator keeps for each particle, as a `#[repr(C)]` struct over `real`; [`NoArrays`] if it has none.
pub trait ParticleArrays<R: Real>: CxxStruct + Copy + Default + Send + Sync + 'static {}
impl<R: Real, T: CxxStruct + Copy + Default + Send + Sync + 'static> ParticleArrays<R> for T {}

/// No numbers for each particle.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoArrays<R>(PhantomData<R>);

impl<R> CxxStruct for NoArrays<R> {
    fn text() -> &'static DeviceText {
        static TEXT: DeviceText =
            DeviceText { name: "NoArrays", text: || "template <class real> struct NoArrays {};\n".into(), needs: &[] };
        &TEXT
    }
}

/// No state.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, galamost_plugin_macros::DeviceStruct)]
pub struct NoState {
    /// C++ has no empty structs.
    pub reserved: u32,
}

/// An integrator. Its parameters are the fields of the struct (`#[derive(Params)]`).
pub trait Integrator: Send + Sync + Sized + 'static {
    /// Its state and constants, in f64: one instance on the device, kept in checkpoints.
    type State: DeviceStruct + Default + Send + Sync;
    /// Numbers it keeps for each particle.
    type Extra<R: Real>: ParticleArrays<R>;

    /// The functions, in their order.
    fn program() -> Program<Self>;
    /// Learns the system; says its group and time-dependent numbers.
    ///
    /// # Errors
    /// Returns an error if the parameters do not fit the system.
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()>;
    /// The state at the start of a run.
    ///
    /// # Errors
    /// Returns an error if the group is unsuitable, for example empty.
    fn state(&self, group: &GroupInfo) -> Result<Self::State>;
    /// The state's share of the conserved quantity.
    fn conserved(_state: &Self::State) -> f64 {
        0.0
    }
}

/// A `#[particle_fn]`, as a type.
pub trait ParticleFn<I: Integrator>: DeviceFn + 'static {
    /// Name.
    const NAME: &'static str;
    /// Number of sums it returns.
    const SUMS: usize;
    /// It sets `displacement`.
    const MOVES: bool;
    /// It looks at `position`.
    const POSITION: bool;
    /// It looks at orientations and what belongs to them, and may change them.
    const TURNS: bool;
    /// The function, with every argument.
    fn apply<R: Real>(
        p: &mut Particle<R>,
        x: &mut I::Extra<R>,
        g: &I::State,
        step: &Step<R>,
        random: &mut Random,
    ) -> [f64; MAX_SUMS];
    /// C++ text of `NAME_call`, the same with every argument.
    fn call_text() -> &'static str;
}

/// A `#[scalar_fn]`, as a type.
pub trait ScalarFn<I: Integrator>: DeviceFn + 'static {
    /// Name.
    const NAME: &'static str;
    /// It looks at the box, and may change it.
    const SIM_BOX: bool;
    /// It may displace the images along y.
    const SHEAR: bool;
    /// The function; `sums` are those of the last particle phase that returned any.
    fn apply(g: &mut I::State, sums: &[f64; MAX_SUMS], step: &Step<f64>, random: &mut Random, sim_box: &mut SimBox);
    /// C++ text of `NAME_call`.
    fn call_text() -> &'static str;
}

/// When a phase is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum When {
    /// Before the first step of a stage, and whenever an updater changed velocities.
    Start,
    /// In every step, before the forces.
    Before,
    /// In every step, after the forces.
    After,
}

/// One phase as the engine knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseInfo {
    /// When it is due.
    pub when: When,
    /// A function of the state alone.
    pub scalar: bool,
    /// Name of the function.
    pub name: String,
    /// Sums it returns.
    pub sums: u32,
    /// It moves particles.
    pub moves: bool,
    /// It looks at positions.
    pub position: bool,
    /// It turns particles.
    pub turns: bool,
    /// It looks at the box and the virial, and may change the box.
    #[serde(default)]
    pub sim_box: bool,
    /// It displaces the images along y.
    #[serde(default)]
    pub shear: bool,
}

/// A program as the engine knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramInfo {
    /// Phases in order.
    pub phases: Vec<PhaseInfo>,
    /// Size of the state in bytes.
    pub state_size: u32,
    /// The integrator's own per-particle array.
    pub extra: Option<ArrayNeed>,
    /// It only corrects what other integrators have moved, see [`Program::correct`].
    #[serde(default)]
    pub corrects: bool,
    /// Its own array begins with a velocity, see [`Program::carries_velocity`].
    #[serde(default)]
    pub carries_velocity: bool,
}

/// One phase with its code.
pub struct Phase<I: Integrator> {
    /// What the engine knows.
    pub info: PhaseInfo,
    pub(crate) particles: Option<unsafe fn(&ParticleCall, &I::State)>,
    pub(crate) scalar: Option<fn(&mut I::State, &[f64; MAX_SUMS], &Step<f64>, &mut Random, &mut SimBox)>,
    pub(crate) text: fn() -> &'static DeviceText,
    pub(crate) call_text: &'static str,
}

/// The functions of an integrator in their order.
pub struct Program<I: Integrator> {
    pub(crate) phases: Vec<Phase<I>>,
    pub(crate) corrects: bool,
    pub(crate) carries_velocity: bool,
}

impl<I: Integrator> Default for Program<I> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Integrator> Program<I> {
    /// Nothing yet.
    pub fn new() -> Self {
        Self { phases: vec![], corrects: false, carries_velocity: false }
    }

    fn particles<F: ParticleFn<I>>(mut self, when: When) -> Self {
        self.phases.push(Phase {
            info: PhaseInfo {
                when,
                scalar: false,
                name: F::NAME.into(),
                sums: F::SUMS as u32,
                moves: F::MOVES,
                position: F::POSITION,
                turns: F::TURNS,
                sim_box: false,
                shear: false,
            },
            particles: Some(cpu::particles::<I, F>),
            scalar: None,
            text: <F as DeviceFn>::text,
            call_text: F::call_text(),
        });
        self
    }

    fn scalar<F: ScalarFn<I>>(mut self, when: When) -> Self {
        self.phases.push(Phase {
            info: PhaseInfo {
                when,
                scalar: true,
                name: F::NAME.into(),
                sums: 0,
                moves: false,
                position: false,
                turns: false,
                sim_box: F::SIM_BOX,
                shear: F::SHEAR,
            },
            particles: None,
            scalar: Some(F::apply),
            text: <F as DeviceFn>::text,
            call_text: F::call_text(),
        });
        self
    }

    /// A function of each particle before the first step, see [`When::Start`].
    pub fn start<F: ParticleFn<I>>(self) -> Self {
        self.particles::<F>(When::Start)
    }
    /// A function of the state before the first step, see [`When::Start`].
    pub fn start_scalar<F: ScalarFn<I>>(self) -> Self {
        self.scalar::<F>(When::Start)
    }
    /// A function of each particle before the forces.
    pub fn before<F: ParticleFn<I>>(self) -> Self {
        self.particles::<F>(When::Before)
    }
    /// A function that corrects a particle right after it has moved in a step, before the forces: a wall from which it
    /// bounces. All of an integrator's functions are of this kind or none. Its particles are also in the group of another
    /// integrator, which moves them; correcting integrators run after all others.
    ///
    /// The function may change velocities by any linear map, which must follow from the particle's place alone: where
    /// another integrator carries a velocity of its own through the step ([`Program::carries_velocity`]), the function is
    /// called a second time with this one in the place of the particle's.
    pub fn correct<F: ParticleFn<I>>(mut self) -> Self {
        self.corrects = true;
        self.particles::<F>(When::Before)
    }
    /// Says that the integrator's own numbers of a particle begin with a velocity, a `Vec3<real>`, which it needs again
    /// after the forces: what corrects velocities in between must correct this one too.
    pub fn carries_velocity(mut self) -> Self {
        self.carries_velocity = true;
        self
    }
    /// Whether [`Self::carries_velocity`] was said.
    pub(crate) fn carries(&self) -> bool {
        self.carries_velocity
    }
    /// A function of each particle after the forces.
    pub fn after<F: ParticleFn<I>>(self) -> Self {
        self.particles::<F>(When::After)
    }
    /// A function of the state before the forces.
    pub fn before_scalar<F: ScalarFn<I>>(self) -> Self {
        self.scalar::<F>(When::Before)
    }
    /// A function of the state after the forces.
    pub fn after_scalar<F: ScalarFn<I>>(self) -> Self {
        self.scalar::<F>(When::After)
    }
}
