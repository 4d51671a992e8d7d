//! Velocity Verlet for translation and rotation at constant energy.

use galamost_plugin_api::prelude::*;
use galamost_plugin_api::rotation::{pushed, turned};

/// Velocity Verlet for translation and rotation (NVE).
///
/// One step: v += F dt/2m, L += T dt/2; r += v dt, free rotation for dt; new forces and torques; v += F dt/2m,
/// L += T dt/2. L is the angular momentum in the space frame, T the torque.
///
/// Particles need the array `inert`, the moments of inertia about the body axes, and `quaternion` (or `orientation`, an
/// axis that becomes the body z axis). The generator `Orientations` sets these arrays. A particle with I_z = 0 is a rod or
/// disk that does not rotate about its axis; a particle with three moments of 0 does not rotate.
///
/// Free rotation is exact for symmetric tops (I_x = I_y). For other bodies it is split into rotations about z, y, x, y, z
/// (half steps, with a full step about x). The scheme is symplectic and time-reversible: the energy oscillates with an
/// amplitude ∝ dt² and does not drift.
///
/// Reference: Dullweber, Leimkuhler & McLachlan, J. Chem. Phys. 107 (1997) 5840, doi:10.1063/1.474310.
///
/// ```ron
/// RotationalVerlet()
/// ```
#[component(Integrator, "RotationalVerlet", former = "RigidVerlet")]
#[derive(Clone, Debug, Params)]
pub struct RotationalVerlet {
    /// Particles to integrate.
    #[param(default = Group::All)]
    group: Group,
}

#[particle_fn(RotationalVerlet)]
fn first_half(
    velocity: &mut Vec3<real>,
    force: Vec3<real>,
    mass: real,
    displacement: &mut Vec3<real>,
    quaternion: &mut Quaternion<real>,
    angular_momentum: &mut Vec3<real>,
    torque: Vec3<real>,
    inertia: Vec3<real>,
    step: &Step<real>,
) {
    *velocity += force * (0.5 * step.dt / mass);
    *displacement = *velocity * step.dt;
    *angular_momentum = pushed(*angular_momentum, torque, *quaternion, inertia, 0.5 * step.dt);
    *quaternion = turned(*quaternion, *angular_momentum, inertia, step.dt);
}

#[particle_fn(RotationalVerlet)]
fn second_half(
    velocity: &mut Vec3<real>,
    force: Vec3<real>,
    mass: real,
    quaternion: Quaternion<real>,
    angular_momentum: &mut Vec3<real>,
    torque: Vec3<real>,
    inertia: Vec3<real>,
    step: &Step<real>,
) {
    *velocity += force * (0.5 * step.dt / mass);
    *angular_momentum = pushed(*angular_momentum, torque, quaternion, inertia, 0.5 * step.dt);
}

impl Integrator for RotationalVerlet {
    type State = NoState;
    type Extra<R: Real> = NoArrays<R>;

    fn program() -> Program<Self> {
        Program::new().before::<first_half>().after::<second_half>()
    }
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.group = self.group.need(system)?;
        Ok(())
    }
    fn state(&self, _: &GroupInfo) -> Result<NoState> {
        Ok(NoState::default())
    }
}
