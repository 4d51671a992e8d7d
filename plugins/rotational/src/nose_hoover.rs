//! The Nosé–Hoover thermostat for translation and rotation.

use galamost_plugin_api::prelude::*;
use galamost_plugin_api::rotation::{pushed, turned, twice_energy};
use galamost_plugin_api::scaling::{defined_factor, scaled};

/// Nosé–Hoover thermostats (NVT) of translation and rotation, one for each.
///
/// dv/dt = F/m − ξ v, dξ/dt = (2K − g kT)/Q, Q = g kT τ²; dL/dt = T − ξ_r L, dξ_r/dt = (2K_r − g_r kT)/Q_r,
/// Q_r = g_r kT τ_r². L is the angular momentum, T the torque, 2K_r = Σ_k L_k²/I_k, and g_r the number of nonzero moments
/// of inertia (2 for each rod).
///
/// The equations are split symmetrically around `RotationalVerlet`, so H' = K + K_r + U + Qξ²/2 + g kT ∫ξ dt +
/// Q_r ξ_r²/2 + g_r kT ∫ξ_r dt is conserved up to an oscillation ∝ dt². If kT varies with time, g ∫kT ξ dt − ½ ∫(dQ/dt) ξ² dt replaces
/// g kT ∫ξ dt, likewise for rotation, and H' drifts in proportion to dt. `conserved` of `Thermo` is H'.
///
/// Neither τ nor τ_r may be shorter than dt.
///
/// The ensemble is canonical if the dynamics is ergodic. The thermostats impose equal temperatures of translation and
/// rotation, so equal temperatures do not prove equilibrium between them. Particles need the array `inert`, and
/// `quaternion` or `orientation`.
///
/// Reference: Hoover, Phys. Rev. A 31 (1985) 1695, doi:10.1103/PhysRevA.31.1695; Dullweber, Leimkuhler & McLachlan, J. Chem.
/// Phys. 107 (1997) 5840, doi:10.1063/1.474310 (rotation).
///
/// ```ron
/// RotationalNoseHoover(kT: 1.0, tau: 0.5, tau_r: 0.5)
/// ```
#[component(Integrator, "RotationalNoseHoover", former = "RigidNoseHoover")]
#[derive(Clone, Debug, Params)]
pub struct RotationalNoseHoover {
    /// Particles to integrate.
    #[param(default = Group::All)]
    group: Group,
    /// kT, target temperature; may vary with time.
    #[param(name = "kT", unit = "energy", above = 0.0)]
    kt: Varying,
    /// τ, time constant of the thermostat of translation; oscillation period 4.4 to 6.3 τ, as in `NoseHoover`.
    #[param(unit = "time", above = 0.0)]
    tau: Spanned<f64>,
    /// τ_r, time constant of the thermostat of rotation, in the same sense.
    #[param(unit = "time", above = 0.0)]
    tau_r: Spanned<f64>,
}

/// State of the thermostats; index 0 is translation, index 1 rotation.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
pub struct NoseHooverState {
    /// ξ, friction rates, at the end of the last step.
    xi: [f64; 2],
    /// ∫ξ dt at the end of the last step.
    eta: [f64; 2],
    degrees_of_freedom: [f64; 2],
    tau: [f64; 2],
    /// 2K and 2K_r, including the factors applied since the last sum.
    two_k: [f64; 2],
    /// ξ in the middle of the current step.
    xi_mid: [f64; 2],
    /// ∫ξ dt in the middle of the current step.
    eta_mid: [f64; 2],
    /// Scale factors of velocities and angular momenta at the end of the step.
    end_scale: [f64; 2],
    /// Scale factors at the start of the next step.
    begin_scale: [f64; 2],
    /// g kT and g_r kT of the last step.
    target: [f64; 2],
    /// What changes of kT have added to Qξ²/2 + g kT ∫ξ dt of both.
    added: f64,
    /// Contribution of the thermostats to H' at the end of the last step.
    reservoir: f64,
}

/// Returns 2K and 2K_r of a particle.
#[particle_fn(RotationalNoseHoover)]
fn measure(
    velocity: Vec3<real>,
    mass: real,
    quaternion: Quaternion<real>,
    angular_momentum: Vec3<real>,
    inertia: Vec3<real>,
) -> (real, real) {
    (mass * velocity.norm2(), twice_energy(quaternion, angular_momentum, inertia))
}

/// Propagates thermostat c by half a step (ξ, velocities, ξ) and returns the scale factor of its velocities.
#[device_fn(f64)]
fn half_step(g: &mut NoseHooverState, c: usize, step: &Step<f64>) -> f64 {
    let target = g.degrees_of_freedom[c] * step.varying[0];
    let q = target * g.tau[c] * g.tau[c];
    g.xi_mid[c] += 0.25 * step.dt * (g.two_k[c] - target) / q;
    let scale = defined_factor((-0.5 * step.dt * g.xi_mid[c]).exp());
    g.eta_mid[c] += 0.5 * step.dt * g.xi_mid[c];
    g.two_k[c] *= scale * scale;
    g.xi_mid[c] += 0.25 * step.dt * (g.two_k[c] - target) / q;
    scale
}

/// Performs the thermostat half steps at the start of a step, from the state at the end of the last step.
#[device_fn(f64)]
fn begin_step(g: &mut NoseHooverState, step: &Step<f64>) {
    g.reservoir = 0.0;
    for c in 0..2usize {
        let target = g.degrees_of_freedom[c] * step.varying[0];
        if g.target[c] > 0.0 {
            g.added += (target - g.target[c]) * (0.5 * g.tau[c] * g.tau[c] * g.xi[c] * g.xi[c] + g.eta[c]);
        }
        g.target[c] = target;
        g.reservoir += 0.5 * target * g.tau[c] * g.tau[c] * g.xi[c] * g.xi[c] + target * g.eta[c];
        g.xi_mid[c] = g.xi[c];
        g.eta_mid[c] = g.eta[c];
        let scale = half_step(g, c, step);
        g.begin_scale[c] = scale;
    }
    g.reservoir -= g.added;
}

/// Initializes the thermostats before the first step and after other components have changed velocities.
#[scalar_fn(RotationalNoseHoover)]
fn begin(g: &mut NoseHooverState, sums: &[f64; 8], step: &Step<f64>) {
    for c in 0..2usize {
        g.two_k[c] = sums[c];
    }
    begin_step(g, step);
}

#[particle_fn(RotationalNoseHoover)]
fn first_half(
    velocity: &mut Vec3<real>,
    force: Vec3<real>,
    mass: real,
    displacement: &mut Vec3<real>,
    quaternion: &mut Quaternion<real>,
    angular_momentum: &mut Vec3<real>,
    torque: Vec3<real>,
    inertia: Vec3<real>,
    g: &NoseHooverState,
    step: &Step<real>,
) {
    *velocity = scaled(*velocity, g.begin_scale[0]) + force * (0.5 * step.dt / mass);
    *displacement = *velocity * step.dt;
    let l = scaled(*angular_momentum, g.begin_scale[1]);
    *angular_momentum = pushed(l, torque, *quaternion, inertia, 0.5 * step.dt);
    *quaternion = turned(*quaternion, *angular_momentum, inertia, step.dt);
}

#[particle_fn(RotationalNoseHoover)]
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

/// Performs the half steps that end this step and those that start the next.
#[scalar_fn(RotationalNoseHoover)]
fn thermostat(g: &mut NoseHooverState, sums: &[f64; 8], step: &Step<f64>) {
    for c in 0..2usize {
        g.two_k[c] = sums[c];
        let scale = half_step(g, c, step);
        g.end_scale[c] = scale;
        g.xi[c] = g.xi_mid[c];
        g.eta[c] = g.eta_mid[c];
    }
    begin_step(g, step);
}

#[particle_fn(RotationalNoseHoover)]
fn rescale(velocity: &mut Vec3<real>, angular_momentum: &mut Vec3<real>, g: &NoseHooverState) {
    *velocity = scaled(*velocity, g.end_scale[0]);
    *angular_momentum = scaled(*angular_momentum, g.end_scale[1]);
}

impl Integrator for RotationalNoseHoover {
    type State = NoseHooverState;
    type Extra<R: Real> = NoArrays<R>;

    fn program() -> Program<Self> {
        Program::new()
            .start::<measure>()
            .start_scalar::<begin>()
            .before::<first_half>()
            .after::<second_half>()
            .after_scalar::<thermostat>()
            .after::<rescale>()
    }
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.group = self.group.need(system)?;
        needs.rescales = true;
        needs.varyings = vec![self.kt];
        needs.kt = Some(self.kt);
        for (name, tau) in [("tau", &self.tau), ("tau_r", &self.tau_r)] {
            if tau.value < system.dt {
                let message =
                    format!("{name} {} is shorter than the time step {}; use {name} ≥ dt", tau.value, system.dt);
                return Err(InputError::at(tau.at, message).into());
            }
        }
        Ok(())
    }
    fn state(&self, group: &GroupInfo) -> Result<NoseHooverState> {
        Ok(NoseHooverState {
            degrees_of_freedom: crate::degrees_of_freedom(group)?,
            tau: [self.tau.value, self.tau_r.value],
            ..NoseHooverState::default()
        })
    }
    fn conserved(state: &NoseHooverState) -> f64 {
        state.reservoir
    }
}
