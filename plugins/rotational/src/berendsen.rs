//! The Berendsen thermostat for translation and rotation.

use galamost_plugin_api::prelude::*;
use galamost_plugin_api::rotation::{pushed, turned, twice_energy};
use galamost_plugin_api::scaling::scaled;

/// Thermostat with weak coupling (Berendsen) of translation and rotation, each with its own relaxation time.
///
/// After each step of `RotationalVerlet`, all velocities are multiplied by √(1 + (dt/τ)(kT/kT_now − 1)) and all angular
/// momenta by √(1 + (dt/τ_r)(kT/kT_r − 1)). kT_now = 2K/g and kT_r = Σ_k L_k²/I_k / g_r, where g_r is the number of
/// nonzero moments of inertia (2 for each rod).
///
/// This is the thermostat of GALAMOST's model of soft anisotropic particles. GALAMOST rotates unit vectors with a
/// leapfrog scheme. This integrator propagates angular momenta with velocity Verlet, with free rotation that is exact for
/// linear rotors and symmetric tops. Both follow the same path up to terms ∝ dt²; here velocities and positions belong to
/// the same time.
///
/// **The ensemble is not canonical**: the kinetic energies fluctuate too little. For averages use `RotationalNoseHoover`
/// or `RotationalLangevin`. Momentum is conserved. `conserved` of `Thermo` is the total energy minus the heat added by
/// the thermostat. Neither τ nor τ_r may be shorter than dt. Particles need the array `inert`, and `quaternion` or
/// `orientation`.
///
/// Reference: Zhu, Liu, Li, Qian, Milano & Lu, J. Comput. Chem. 34 (2013) 2197, doi:10.1002/jcc.23365, algorithm 3;
/// Berendsen, Postma, van Gunsteren, DiNola & Haak, J. Chem. Phys. 81 (1984) 3684, doi:10.1063/1.448118.
///
/// ```ron
/// RotationalBerendsen(kT: 1.0, tau: 0.3, tau_r: 0.1)
/// ```
#[component(Integrator, "RotationalBerendsen", former = "RigidBerendsen")]
#[derive(Clone, Debug, Params)]
pub struct RotationalBerendsen {
    /// Particles to integrate.
    #[param(default = Group::All)]
    group: Group,
    /// kT, target temperature; may vary with time.
    #[param(name = "kT", unit = "energy", at_least = 0.0)]
    kt: Varying,
    /// τ, relaxation time of the translational temperature.
    #[param(unit = "time", above = 0.0)]
    tau: Spanned<f64>,
    /// τ_r, relaxation time of the rotational temperature.
    #[param(unit = "time", above = 0.0)]
    tau_r: Spanned<f64>,
}

/// State of the thermostat; index 0 is translation, index 1 rotation.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
pub struct BerendsenState {
    degrees_of_freedom: [f64; 2],
    tau: [f64; 2],
    /// Scale factors of velocities and angular momenta.
    scale: [f64; 2],
    /// Kinetic energy removed so far.
    reservoir: f64,
}

#[particle_fn(RotationalBerendsen)]
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

#[particle_fn(RotationalBerendsen)]
fn second_half(
    velocity: &mut Vec3<real>,
    force: Vec3<real>,
    mass: real,
    quaternion: Quaternion<real>,
    angular_momentum: &mut Vec3<real>,
    torque: Vec3<real>,
    inertia: Vec3<real>,
    step: &Step<real>,
) -> (real, real) {
    *velocity += force * (0.5 * step.dt / mass);
    *angular_momentum = pushed(*angular_momentum, torque, quaternion, inertia, 0.5 * step.dt);
    (mass * velocity.norm2(), twice_energy(quaternion, *angular_momentum, inertia))
}

#[scalar_fn(RotationalBerendsen)]
fn thermostat(g: &mut BerendsenState, sums: &[f64; 8], step: &Step<f64>) {
    for c in 0..2usize {
        let two_k = sums[c];
        let target = g.degrees_of_freedom[c] * step.varying[0];
        let square = if two_k > 0.0 { 1.0 + step.dt / g.tau[c] * (target / two_k - 1.0) } else { 1.0 };
        g.scale[c] = square.sqrt();
        g.reservoir -= 0.5 * two_k * (square - 1.0);
    }
}

#[particle_fn(RotationalBerendsen)]
fn rescale(velocity: &mut Vec3<real>, angular_momentum: &mut Vec3<real>, g: &BerendsenState) {
    *velocity = scaled(*velocity, g.scale[0]);
    *angular_momentum = scaled(*angular_momentum, g.scale[1]);
}

impl Integrator for RotationalBerendsen {
    type State = BerendsenState;
    type Extra<R: Real> = NoArrays<R>;

    fn program() -> Program<Self> {
        Program::new().before::<first_half>().after::<second_half>().after_scalar::<thermostat>().after::<rescale>()
    }
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.group = self.group.need(system)?;
        needs.rescales = true;
        needs.varyings = vec![self.kt];
        for (name, tau) in [("tau", &self.tau), ("tau_r", &self.tau_r)] {
            if tau.value < system.dt {
                let message =
                    format!("{name} {} is shorter than the time step {}; use {name} ≥ dt", tau.value, system.dt);
                return Err(InputError::at(tau.at, message).into());
            }
        }
        needs.notes.push("the ensemble is not canonical: the kinetic energies fluctuate too little".into());
        Ok(())
    }
    fn state(&self, group: &GroupInfo) -> Result<BerendsenState> {
        Ok(BerendsenState {
            degrees_of_freedom: crate::degrees_of_freedom(group)?,
            tau: [self.tau.value, self.tau_r.value],
            scale: [1.0; 2],
            reservoir: 0.0,
        })
    }
    fn conserved(state: &BerendsenState) -> f64 {
        state.reservoir
    }
}
