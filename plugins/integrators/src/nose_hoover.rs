//! The Nosé–Hoover thermostat.

use galamost_plugin_api::prelude::*;
use galamost_plugin_api::scaling::{defined_factor, scaled};

/// Nosé–Hoover thermostat (NVT): dr/dt = v, dv/dt = F/m − ξ v, dξ/dt = (2K − g kT)/Q, Q = g kT τ².
///
/// g is the number of degrees of freedom: dimensions × (N − 1) if the group contains all particles. The equations are
/// split symmetrically around velocity Verlet, so H' = K + U + Qξ²/2 + g kT ∫ξ dt is conserved up to an oscillation
/// ∝ dt². If kT varies with time, H' = K + U + Qξ²/2 + g ∫kT ξ dt − ½ ∫(dQ/dt) ξ² dt, which drifts in proportion to dt. `conserved` of
/// `Thermo` is H'.
///
/// τ is a time constant, not a period: small oscillations of the temperature have the period √2 π τ ≈ 4.44 τ in an ideal
/// gas and up to 2π τ if the potential energy takes half of the heat, as in a harmonic solid.
///
/// The ensemble is canonical if the dynamics is ergodic. It is not for an ideal gas or a single oscillator; use
/// `NoseHooverChain` for small or stiff systems.
///
/// Reference: Hoover, Phys. Rev. A 31 (1985) 1695, doi:10.1103/PhysRevA.31.1695; Martyna, Tuckerman, Tobias & Klein, Mol.
/// Phys. 87 (1996) 1117, doi:10.1080/00268979600100761.
///
/// ```ron
/// NoseHoover(kT: Ramp(from: 1.0, to: 1.2, steps: 100), tau: 0.5)
/// ```
#[component(Integrator, "NoseHoover")]
#[derive(Clone, Debug, Params)]
pub struct NoseHoover {
    /// Particles to integrate.
    #[param(default = Group::All)]
    group: Group,
    /// kT, target temperature; may vary with time.
    #[param(name = "kT", unit = "energy", above = 0.0)]
    kt: Varying,
    /// τ, time constant of the thermostat; the temperature oscillates with a period of 4.4 to 6.3 τ.
    #[param(unit = "time", above = 0.0)]
    tau: Spanned<f64>,
}

/// State of the thermostat.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
pub struct NoseHooverState {
    /// ξ, friction rate, at the end of the last step.
    xi: f64,
    /// ∫ξ dt at the end of the last step.
    eta: f64,
    /// g.
    degrees_of_freedom: f64,
    /// τ.
    tau: f64,
    /// 2K, including the factors applied since the last sum.
    two_k: f64,
    /// ξ in the middle of the current step.
    xi_mid: f64,
    /// ∫ξ dt in the middle of the current step.
    eta_mid: f64,
    /// Velocity scale factor at the end of the step.
    end_scale: f64,
    /// Velocity scale factor at the start of the next step.
    begin_scale: f64,
    /// g kT of the last step.
    target: f64,
    /// What changes of kT have added to Qξ²/2 + g kT ∫ξ dt.
    added: f64,
    /// Qξ²/2 + g kT ∫ξ dt at the end of the last step, without what changes of kT have added.
    reservoir: f64,
}

/// Returns 2K of a particle.
#[particle_fn(NoseHoover)]
fn measure(velocity: Vec3<real>, mass: real) -> real {
    mass * velocity.norm2()
}

/// Propagates the thermostat by half a step (ξ, velocities, ξ) and returns the velocity scale factor.
#[device_fn(f64)]
fn half_step(g: &mut NoseHooverState, step: &Step<f64>) -> f64 {
    let target = g.degrees_of_freedom * step.varying[0];
    let q = target * g.tau * g.tau;
    g.xi_mid += 0.25 * step.dt * (g.two_k - target) / q;
    let scale = defined_factor((-0.5 * step.dt * g.xi_mid).exp());
    g.eta_mid += 0.5 * step.dt * g.xi_mid;
    g.two_k *= scale * scale;
    g.xi_mid += 0.25 * step.dt * (g.two_k - target) / q;
    scale
}

/// Performs the thermostat half step at the start of a step, from the state at the end of the last step.
#[device_fn(f64)]
fn begin_step(g: &mut NoseHooverState, step: &Step<f64>) {
    let target = g.degrees_of_freedom * step.varying[0];
    if g.target > 0.0 {
        g.added += (target - g.target) * (0.5 * g.tau * g.tau * g.xi * g.xi + g.eta);
    }
    g.target = target;
    g.reservoir = 0.5 * target * g.tau * g.tau * g.xi * g.xi + target * g.eta - g.added;
    g.xi_mid = g.xi;
    g.eta_mid = g.eta;
    g.begin_scale = half_step(g, step);
}

/// Initializes the thermostat before the first step and after other components have changed velocities.
#[scalar_fn(NoseHoover)]
fn begin(g: &mut NoseHooverState, sums: &[f64; 8], step: &Step<f64>) {
    g.two_k = sums[0];
    begin_step(g, step);
}

#[particle_fn(NoseHoover)]
fn first_half(
    velocity: &mut Vec3<real>,
    force: Vec3<real>,
    mass: real,
    displacement: &mut Vec3<real>,
    g: &NoseHooverState,
    step: &Step<real>,
) {
    *velocity = scaled(*velocity, g.begin_scale) + force * (0.5 * step.dt / mass);
    *displacement = *velocity * step.dt;
}

#[particle_fn(NoseHoover)]
fn second_half(velocity: &mut Vec3<real>, force: Vec3<real>, mass: real, step: &Step<real>) -> real {
    *velocity += force * (0.5 * step.dt / mass);
    mass * velocity.norm2()
}

/// Performs the half step that ends this step and the one that starts the next.
#[scalar_fn(NoseHoover)]
fn thermostat(g: &mut NoseHooverState, sums: &[f64; 8], step: &Step<f64>) {
    g.two_k = sums[0];
    g.end_scale = half_step(g, step);
    g.xi = g.xi_mid;
    g.eta = g.eta_mid;
    begin_step(g, step);
}

#[particle_fn(NoseHoover)]
fn rescale(velocity: &mut Vec3<real>, g: &NoseHooverState) {
    *velocity = scaled(*velocity, g.end_scale);
}

impl Integrator for NoseHoover {
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
        needs.constrainable = true;
        needs.rescales = true;
        needs.varyings = vec![self.kt];
        needs.kt = Some(self.kt);
        if self.tau.value < system.dt {
            let message = format!("tau {} is shorter than the time step {}; use tau ≥ dt", self.tau.value, system.dt);
            return Err(InputError::at(self.tau.at, message).into());
        }
        Ok(())
    }
    fn state(&self, group: &GroupInfo) -> Result<NoseHooverState> {
        Ok(NoseHooverState {
            degrees_of_freedom: crate::degrees_of_freedom(group)?,
            tau: self.tau.value,
            ..NoseHooverState::default()
        })
    }
    fn conserved(state: &NoseHooverState) -> f64 {
        state.reservoir
    }
}
