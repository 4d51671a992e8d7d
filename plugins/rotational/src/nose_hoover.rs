//! The thermostat of Nosé and Hoover, for translation and rotation.

use galamost_plugin_api::prelude::*;
use galamost_plugin_api::rotation::{pushed, turned, twice_energy};

/// Nosé-Hoover (NVT) for particles that turn, one thermostat for each kind of motion:
/// dv/dt = F/m − ξ v, dξ/dt = (2K − g kT)/Q, Q = g kT τ²; dL/dt = T − ξ_r L, dξ_r/dt = (2K_r − g_r kT)/Q_r, Q_r = g_r kT τ_r².
///
/// T is the torque, 2K_r = Σ_k L_k²/I_k, and g_r the number of moments of inertia that are not 0 (2 for each rod). The
/// equations are split symmetrically around `RigidVerlet`, so H' = K + K_r + U + Qξ²/2 + g kT ∫ξ dt + Q_r ξ_r²/2 +
/// g_r kT ∫ξ_r dt is conserved up to an oscillation ∝ dt². Canonical for systems that are ergodic under it; equal
/// temperatures of both kinds of motion are forced by the thermostats, and are no proof that they are in equilibrium.
/// Particles need `inert`, and `quaternion` or `orientation`.
///
/// Reference: Hoover, Phys. Rev. A 31 (1985) 1695, doi:10.1103/PhysRevA.31.1695; Dullweber, Leimkuhler & McLachlan, J. Chem.
/// Phys. 107 (1997) 5840, doi:10.1063/1.474310 (rotation).
///
/// ```ron
/// RigidNoseHoover(kT: 1.0, tau: 0.5, tau_r: 0.5)
/// ```
#[component(Integrator, "RigidNoseHoover")]
#[derive(Clone, Debug, Params)]
pub struct RigidNoseHoover {
    /// The particles to move.
    #[param(default = Group::All)]
    group: Group,
    /// Temperature; may change with time.
    #[param(name = "kT", unit = "energy", above = 0.0)]
    kt: Varying,
    /// τ, period of the exchange of heat between translation and its thermostat.
    #[param(unit = "time", above = 0.0)]
    tau: f64,
    /// τ_r, the same for rotation.
    #[param(unit = "time", above = 0.0)]
    tau_r: f64,
}

/// The thermostats; translation, then rotation.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
pub struct RigidNoseHooverState {
    /// ξ, frictions, at the end of the last step.
    xi: [f64; 2],
    /// ∫ξ dt at the end of the last step.
    eta: [f64; 2],
    degrees_of_freedom: [f64; 2],
    tau: [f64; 2],
    /// 2K and 2K_r as the thermostats see them.
    two_k: [f64; 2],
    /// ξ in the middle of the step under way.
    xi_mid: [f64; 2],
    /// ∫ξ dt in the middle of the step under way.
    eta_mid: [f64; 2],
    /// What to multiply velocities and angular momenta with at the end of the step.
    end_scale: [f64; 2],
    /// What to multiply them with at the start of the next step.
    begin_scale: [f64; 2],
    /// The thermostats' share of H' at the end of the last step.
    reservoir: f64,
}

#[particle_fn(RigidNoseHoover)]
fn measure(p: &mut Particle<real>) -> (real, real) {
    (p.mass * p.velocity.norm2(), twice_energy(p.quaternion, p.angular_momentum, p.inertia))
}

/// Half a step of a thermostat in the middle of the step: ξ, velocities, ξ; returns the factor of the velocities.
#[device_fn(f64)]
fn half_step(g: &mut RigidNoseHooverState, c: usize, step: &Step<f64>) -> f64 {
    let target = g.degrees_of_freedom[c] * step.varying[0];
    let q = target * g.tau[c] * g.tau[c];
    g.xi_mid[c] += 0.25 * step.dt * (g.two_k[c] - target) / q;
    let scale = (-0.5 * step.dt * g.xi_mid[c]).exp();
    g.eta_mid[c] += 0.5 * step.dt * g.xi_mid[c];
    g.two_k[c] *= scale * scale;
    g.xi_mid[c] += 0.25 * step.dt * (g.two_k[c] - target) / q;
    scale
}

/// The half-steps that begin a step, from what the last one left.
#[device_fn(f64)]
fn begin_step(g: &mut RigidNoseHooverState, step: &Step<f64>) {
    g.reservoir = 0.0;
    for c in 0..2usize {
        let target = g.degrees_of_freedom[c] * step.varying[0];
        g.reservoir += 0.5 * target * g.tau[c] * g.tau[c] * g.xi[c] * g.xi[c] + target * g.eta[c];
        g.xi_mid[c] = g.xi[c];
        g.eta_mid[c] = g.eta[c];
        let scale = half_step(g, c, step);
        g.begin_scale[c] = scale;
    }
}

/// Before the first step, and whenever velocities were changed from outside.
#[scalar_fn(RigidNoseHoover)]
fn begin(g: &mut RigidNoseHooverState, sums: &[f64; 8], step: &Step<f64>) {
    for c in 0..2usize {
        g.two_k[c] = sums[c];
    }
    begin_step(g, step);
}

#[particle_fn(RigidNoseHoover)]
fn first_half(p: &mut Particle<real>, g: &RigidNoseHooverState, step: &Step<real>) {
    p.velocity = p.velocity * (g.begin_scale[0] as real) + p.force * (0.5 * step.dt / p.mass);
    p.displacement = p.velocity * step.dt;
    let l = p.angular_momentum * (g.begin_scale[1] as real);
    p.angular_momentum = pushed(l, p.torque, p.quaternion, p.inertia, 0.5 * step.dt);
    p.quaternion = turned(p.quaternion, p.angular_momentum, p.inertia, step.dt);
}

#[particle_fn(RigidNoseHoover)]
fn second_half(p: &mut Particle<real>, step: &Step<real>) -> (real, real) {
    p.velocity += p.force * (0.5 * step.dt / p.mass);
    p.angular_momentum = pushed(p.angular_momentum, p.torque, p.quaternion, p.inertia, 0.5 * step.dt);
    (p.mass * p.velocity.norm2(), twice_energy(p.quaternion, p.angular_momentum, p.inertia))
}

/// The half-steps that end this step, and those that begin the next.
#[scalar_fn(RigidNoseHoover)]
fn thermostat(g: &mut RigidNoseHooverState, sums: &[f64; 8], step: &Step<f64>) {
    for c in 0..2usize {
        g.two_k[c] = sums[c];
        let scale = half_step(g, c, step);
        g.end_scale[c] = scale;
        g.xi[c] = g.xi_mid[c];
        g.eta[c] = g.eta_mid[c];
    }
    begin_step(g, step);
}

#[particle_fn(RigidNoseHoover)]
fn rescale(p: &mut Particle<real>, g: &RigidNoseHooverState) {
    p.velocity *= g.end_scale[0] as real;
    p.angular_momentum *= g.end_scale[1] as real;
}

impl Integrator for RigidNoseHoover {
    type State = RigidNoseHooverState;
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
        needs.varyings = vec![self.kt];
        Ok(())
    }
    fn state(&self, group: &GroupInfo) -> Result<RigidNoseHooverState> {
        Ok(RigidNoseHooverState {
            degrees_of_freedom: crate::freedom(group)?,
            tau: [self.tau, self.tau_r],
            ..RigidNoseHooverState::default()
        })
    }
    fn conserved(state: &RigidNoseHooverState) -> f64 {
        state.reservoir
    }
}
