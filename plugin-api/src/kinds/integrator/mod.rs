//! Integrators propagate particles: a program of small functions before and after the forces of each step.
//!
//! An integrator consists of functions of one particle (`#[particle_fn]`) and functions of its own state
//! (`#[scalar_fn]`, for thermostats and barostats), both in the device language. The engine provides everything else:
//!
//! * loops that load and store particles in the precision of the run
//! * wrapping of positions and counting of images
//! * displacement checks for the neighbor list
//! * sums of the returned values, in f64
//! * the state in checkpoints
//! * fusion of adjacent phases

mod cpu;

use crate::abi::views::{SimBox, Step};
use crate::device::philox::Random;
use crate::device::quaternion::Quaternion;
use crate::device::real::Real;
use crate::device::vector::Vec3;
use crate::device::{CxxStruct, DeviceFn, DeviceStruct, DeviceText, Plain};
use crate::error::Result;
use crate::kinds::component::{ArrayNeed, Needs, SystemInfo};
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;

pub use crate::abi::calls::{MAX_SUMS, ParticleCall, ScalarCall};
pub(crate) use cpu::particles;

/// A particle as the loops hold it. A `#[particle_fn]` takes the members that it needs as arguments of the same names:
/// by value to read them, and as `&mut` to change them.
///
/// | argument | `&mut`: changes are stored |
/// |---|---|
/// | `velocity: Vec3<real>`, `angular_momentum: Vec3<real>`, `quaternion: Quaternion<real>` | yes |
/// | `displacement: &mut Vec3<real>` | always |
/// | `force`, `position`, `torque`, `inertia` (`Vec3<real>`), `mass: real`, `kind: u32`, `tag: u32` | never |
#[derive(Clone, Copy, Debug, Default)]
pub struct Particle<R> {
    /// Position, −L/2 ≤ x < L/2, rounded to `real`. Read-only. Unit: length.
    pub position: Vec3<R>,
    /// Velocity; changes are stored. Unit: length/time.
    pub velocity: Vec3<R>,
    /// Force of the last evaluation. Unit: energy/length.
    pub force: Vec3<R>,
    /// Mass.
    pub mass: R,
    /// Displacement in this phase, initially 0. The engine adds it to the position with more digits than `real` has.
    /// Unit: length.
    pub displacement: Vec3<R>,
    /// Orientation; changes are normalized and stored.
    pub quaternion: Quaternion<R>,
    /// Angular momentum in the lab frame; changes are stored.
    pub angular_momentum: Vec3<R>,
    /// Torque of the last force evaluation, in the lab frame. Unit: energy.
    pub torque: Vec3<R>,
    /// Moments of inertia about the body axes. The particle does not rotate about an axis with moment 0.
    pub inertia: Vec3<R>,
    /// Particle type.
    pub kind: u32,
    /// Tag.
    pub tag: u32,
}

/// The group of an integrator when its state is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupInfo {
    /// Number of particles.
    pub n: u64,
    /// Translational degrees of freedom: dimensions × n, minus the number of dimensions if all particles are in the
    /// group and the run conserves the total momentum.
    pub degrees_of_freedom: f64,
    /// Rotational degrees of freedom: the number of nonzero moments of inertia.
    pub rotational_degrees_of_freedom: f64,
    /// Number of dimensions, 2 or 3.
    pub dimensions: u32,
    /// Time step of the stage.
    pub dt: f64,
    /// Initial values of the integrator's time-dependent parameters.
    pub varying: [f64; crate::abi::views::COMPONENT_VARYINGS],
}

/// Per-particle numbers of an integrator: a `DeviceStruct` over `real`, or [`NoArrays`].
pub trait ParticleArrays<R: Real>: DeviceStruct + Default {}
impl<R: Real, T: DeviceStruct + Default> ParticleArrays<R> for T {}

/// No per-particle numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoArrays<R>(PhantomData<R>);

// SAFETY: the type has no bytes
unsafe impl<R: Real> Plain for NoArrays<R> {}
// SAFETY: both definitions have no members, and the loops access neither
unsafe impl<R: Real> DeviceStruct for NoArrays<R> {}

impl<R> CxxStruct for NoArrays<R> {
    fn text() -> &'static DeviceText {
        static TEXT: DeviceText = DeviceText {
            name: "NoArrays",
            text: || "template <class real> struct NoArrays {};\n".into(),
            needs: &[],
            header: false,
        };
        &TEXT
    }
}

/// No state.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, galamost_plugin_macros::DeviceStruct)]
pub struct NoState {
    /// Unused; C++ has no empty structs.
    pub reserved: u32,
}

/// An integrator. Fields of the struct are its parameters (`#[derive(Params)]`).
pub trait Integrator: Send + Sync + Sized + 'static {
    /// State and constants in f64. There is one instance on the device; the engine stores it in checkpoints.
    type State: DeviceStruct + Default;
    /// Per-particle numbers.
    type Extra<R: Real>: ParticleArrays<R>;

    /// Returns the functions in order.
    fn program() -> Program<Self>;
    /// Receives the facts of the system; sets the group and the time-dependent parameters.
    ///
    /// # Errors
    /// Returns an error if the parameters do not fit the system.
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()>;
    /// Returns the state at the start of a run.
    ///
    /// # Errors
    /// Returns an error if the group is unsuitable, for example empty.
    fn state(&self, group: &GroupInfo) -> Result<Self::State>;
    /// Returns the contribution of the state to the conserved quantity. Unit: energy.
    fn conserved(_state: &Self::State) -> f64 {
        0.0
    }
}

/// A `#[particle_fn]` as a type.
pub trait ParticleFn<I: Integrator>: DeviceFn + 'static {
    /// Name.
    const NAME: &'static str;
    /// Number of sums that the function returns.
    const SUMS: usize;
    /// The function has an argument `displacement`.
    const MOVES: bool;
    /// The function has an argument `position`.
    const POSITION: bool;
    /// The function has an argument `quaternion`, `angular_momentum`, `torque` or `inertia`.
    const TURNS: bool;
    /// Calls the function with the members of `p` that it takes.
    fn apply<R: Real>(
        p: &mut Particle<R>,
        x: &mut I::Extra<R>,
        g: &I::State,
        step: &Step<R>,
        random: &mut Random,
    ) -> [f64; MAX_SUMS];
    /// Returns the C++ text of `NAME_call`, which takes all arguments.
    fn call_text() -> &'static str;
}

/// A `#[scalar_fn]` as a type.
pub trait ScalarFn<I: Integrator>: DeviceFn + 'static {
    /// Name.
    const NAME: &'static str;
    /// The function has an argument `box_length`, `virial`, `tilt`, `shear_virial`, `shear_offset` or `shear_speed`.
    const SIM_BOX: bool;
    /// The function has an argument `shear_offset` or `shear_speed`.
    const SHEAR: bool;
    /// The function has an argument `tilt: &mut [f64; 3]`.
    const TILTS: bool;
    /// The function has no argument `g`, or takes it as a shared reference.
    const KEEPS_STATE: bool;
    /// Calls the function; `sums` are those of the last particle phase that returned any.
    fn apply(g: &mut I::State, sums: &[f64; MAX_SUMS], step: &Step<f64>, random: &mut Random, sim_box: &mut SimBox);
    /// Returns the C++ text of `NAME_call`.
    fn call_text() -> &'static str;
}

/// The time at which a phase runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum When {
    /// Before the first step of a stage, and after an updater changed velocities.
    Start,
    /// In every step before the forces.
    Before,
    /// In every step after the forces.
    After,
}

/// A phase, as the engine receives it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseInfo {
    /// Time at which it runs.
    pub when: When,
    /// Whether it is a function of the state only.
    pub scalar: bool,
    /// Name of the function.
    pub name: String,
    /// Number of sums that it returns.
    pub sums: u32,
    /// Whether it displaces particles.
    pub moves: bool,
    /// Whether it reads positions.
    pub position: bool,
    /// Whether it rotates particles.
    pub turns: bool,
    /// Whether it reads the box and the virial or changes the box.
    #[serde(default)]
    pub sim_box: bool,
    /// Whether it sets the Lees-Edwards offset.
    #[serde(default)]
    pub shear: bool,
    /// Whether it changes the tilt factors of the box.
    #[serde(default)]
    pub tilts: bool,
    /// Whether it does not change the state, if it is a function of the state only.
    #[serde(default)]
    pub keeps_state: bool,
}

/// A program, as the engine receives it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramInfo {
    /// Phases in order.
    pub phases: Vec<PhaseInfo>,
    /// Size of the state in bytes.
    pub state_size: u32,
    /// The integrator's per-particle array.
    pub extra: Option<ArrayNeed>,
    /// The integrator only corrects particles that others move; see [`Program::correct`].
    #[serde(default)]
    pub corrects: bool,
    /// Its per-particle array starts with a velocity; see [`Program::carries_velocity`].
    #[serde(default)]
    pub carries_velocity: bool,
}

/// A phase with its code.
pub struct Phase<I: Integrator> {
    /// Description for the engine.
    pub info: PhaseInfo,
    pub(crate) particles: Option<unsafe fn(&ParticleCall, &I::State)>,
    pub(crate) scalar: Option<fn(&mut I::State, &[f64; MAX_SUMS], &Step<f64>, &mut Random, &mut SimBox)>,
    pub(crate) text: fn() -> &'static DeviceText,
    pub(crate) call_text: &'static str,
}

/// The functions of an integrator in order.
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
    /// Creates an empty program.
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
                tilts: false,
                keeps_state: false,
            },
            particles: Some(particles::<I, F>),
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
                tilts: F::TILTS,
                keeps_state: F::KEEPS_STATE,
            },
            particles: None,
            scalar: Some(F::apply),
            text: <F as DeviceFn>::text,
            call_text: F::call_text(),
        });
        self
    }

    /// Adds a function of each particle before the first step; see [`When::Start`].
    pub fn start<F: ParticleFn<I>>(self) -> Self {
        self.particles::<F>(When::Start)
    }
    /// Adds a function of the state before the first step; see [`When::Start`].
    pub fn start_scalar<F: ScalarFn<I>>(self) -> Self {
        self.scalar::<F>(When::Start)
    }
    /// Adds a function of each particle before the forces.
    pub fn before<F: ParticleFn<I>>(self) -> Self {
        self.particles::<F>(When::Before)
    }
    /// Adds a function that corrects a particle after its displacement and before the forces, for example at a
    /// reflecting wall.
    ///
    /// Either all or none of an integrator's functions are of this type. Its particles also belong to the group of
    /// another integrator, which moves them. Correcting integrators run after all others.
    ///
    /// The function may change velocities only by a linear map that depends on the position alone. If another
    /// integrator carries a velocity through the step ([`Program::carries_velocity`]), the function is called a second
    /// time with that velocity.
    pub fn correct<F: ParticleFn<I>>(mut self) -> Self {
        self.corrects = true;
        self.particles::<F>(When::Before)
    }
    /// Declares that the integrator's per-particle numbers start with a velocity (`Vec3<real>`) that it uses again
    /// after the forces. Corrections of velocities in between are applied to it, too.
    pub fn carries_velocity(mut self) -> Self {
        self.carries_velocity = true;
        self
    }
    /// Returns whether [`Self::carries_velocity`] was called.
    pub(crate) fn carries(&self) -> bool {
        self.carries_velocity
    }
    /// Adds a function of each particle after the forces.
    pub fn after<F: ParticleFn<I>>(self) -> Self {
        self.particles::<F>(When::After)
    }
    /// Adds a function of the state before the forces.
    pub fn before_scalar<F: ScalarFn<I>>(self) -> Self {
        self.scalar::<F>(When::Before)
    }
    /// Adds a function of the state after the forces.
    pub fn after_scalar<F: ScalarFn<I>>(self) -> Self {
        self.scalar::<F>(When::After)
    }
}
