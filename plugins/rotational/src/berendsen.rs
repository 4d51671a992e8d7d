//! The thermostat of Berendsen, for translation and rotation.

use galamost_plugin_api::prelude::*;
use galamost_plugin_api::rotation::{pushed, turned, twice_energy};

/// Berendsen's weak coupling of translation and of rotation, each with its own time: after each step of `RigidVerlet` all
/// velocities are multiplied with √(1 + (dt/τ)(kT/kT_now − 1)), all angular momenta with √(1 + (dt/τ_r)(kT/kT_r − 1)).
///
/// kT_now = 2K/g, and kT_r = Σ_k L_k²/I_k / g_r with g_r the number of moments of inertia that are not 0 (2 for each rod).
/// This is the thermostat of GALAMOST's model of soft anisotropic particles. There a leapfrog turns unit vectors; here
/// velocity-Verlet turns angular momenta, by free motion that is exact for linear rotors and symmetric tops: both follow the
/// same path up to terms ∝ dt², and velocities and positions are of the same time. **Not canonical**: kinetic energies
/// fluctuate too little; for averages take `RigidNoseHoover` or `RigidLangevin`. Momentum is conserved. `conserved` of
/// `Thermo` is the energy less what was put in. Neither τ may be shorter than dt. Particles need `inert`, and `quaternion` or
/// `orientation`.
///
/// Reference: Zhu, Liu, Li, Qian, Milano & Lu, J. Comput. Chem. 34 (2013) 2197, doi:10.1002/jcc.23365, algorithm 3;
/// Berendsen, Postma, van Gunsteren, DiNola & Haak, J. Chem. Phys. 81 (1984) 3684, doi:10.1063/1.448118.
///
/// ```ron
/// RigidBerendsen(kT: 1.0, tau: 0.3, tau_r: 0.1)
/// ```
#[component(Integrator, "RigidBerendsen")]
#[derive(Clone, Debug, Params)]
pub struct RigidBerendsen {
    /// The particles to move.
    #[param(default = Group::All)]
    group: Group,
    /// Temperature; may change with time.
    #[param(name = "kT", unit = "energy", at_least = 0.0)]
    kt: Varying,
    /// τ, time in which the temperature of translation approaches its target.
    #[param(unit = "time", above = 0.0)]
    tau: Spanned<f64>,
    /// τ_r, the same for rotation.
    #[param(unit = "time", above = 0.0)]
    tau_r: Spanned<f64>,
}

/// The thermostat; translation, then rotation.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
pub struct RigidBerendsenState {
    degrees_of_freedom: [f64; 2],
    tau: [f64; 2],
    /// What velocities and angular momenta are multiplied with.
    scale: [f64; 2],
    /// Kinetic energy taken out so far.
    reservoir: f64,
}

#[particle_fn(RigidBerendsen)]
fn first_half(p: &mut Particle<real>, step: &Step<real>) {
    p.velocity += p.force * (0.5 * step.dt / p.mass);
    p.displacement = p.velocity * step.dt;
    p.angular_momentum = pushed(p.angular_momentum, p.torque, p.quaternion, p.inertia, 0.5 * step.dt);
    p.quaternion = turned(p.quaternion, p.angular_momentum, p.inertia, step.dt);
}

#[particle_fn(RigidBerendsen)]
fn second_half(p: &mut Particle<real>, step: &Step<real>) -> (real, real) {
    p.velocity += p.force * (0.5 * step.dt / p.mass);
    p.angular_momentum = pushed(p.angular_momentum, p.torque, p.quaternion, p.inertia, 0.5 * step.dt);
    (p.mass * p.velocity.norm2(), twice_energy(p.quaternion, p.angular_momentum, p.inertia))
}

#[scalar_fn(RigidBerendsen)]
fn thermostat(g: &mut RigidBerendsenState, sums: &[f64; 8], step: &Step<f64>) {
    for c in 0..2usize {
        let two_k = sums[c];
        let target = g.degrees_of_freedom[c] * step.varying[0];
        let square = if two_k > 0.0 { 1.0 + step.dt / g.tau[c] * (target / two_k - 1.0) } else { 1.0 };
        g.scale[c] = square.sqrt();
        g.reservoir -= 0.5 * two_k * (square - 1.0);
    }
}

#[particle_fn(RigidBerendsen)]
fn rescale(p: &mut Particle<real>, g: &RigidBerendsenState) {
    p.velocity *= g.scale[0] as real;
    p.angular_momentum *= g.scale[1] as real;
}

impl Integrator for RigidBerendsen {
    type State = RigidBerendsenState;
    type Extra<R: Real> = NoArrays<R>;

    fn program() -> Program<Self> {
        Program::new().before::<first_half>().after::<second_half>().after_scalar::<thermostat>().after::<rescale>()
    }
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.group = self.group.need(system)?;
        needs.varyings = vec![self.kt];
        for (name, tau) in [("tau", &self.tau), ("tau_r", &self.tau_r)] {
            if tau.value < system.dt {
                let message = format!("{name} {} is shorter than the time step {}", tau.value, system.dt);
                return Err(InputError::at(tau.at, message).into());
            }
        }
        needs.notes.push("the ensemble is not canonical: kinetic energies fluctuate too little".into());
        Ok(())
    }
    fn state(&self, group: &GroupInfo) -> Result<RigidBerendsenState> {
        Ok(RigidBerendsenState {
            degrees_of_freedom: crate::freedom(group)?,
            tau: [self.tau.value, self.tau_r.value],
            scale: [1.0; 2],
            reservoir: 0.0,
        })
    }
    fn conserved(state: &RigidBerendsenState) -> f64 {
        state.reservoir
    }
}
