//! The Nosé–Hoover chain thermostat.

use galamost_plugin_api::prelude::*;
use galamost_plugin_api::scaling::{defined_factor, scaled};

/// Maximum number of thermostats in a chain.
const LONGEST: usize = 8;

/// Nosé–Hoover chain thermostat (NVT): M thermostats, each coupled to the one before it.
///
/// dr/dt = v, dv/dt = F/m − ξ₁ v, dξ₁/dt = (2K − g kT)/Q₁ − ξ₁ ξ₂, dξⱼ/dt = (Qⱼ₋₁ ξⱼ₋₁² − kT)/Qⱼ − ξⱼ ξⱼ₊₁,
/// Q₁ = g kT τ², Qⱼ = kT τ². g is the number of degrees of freedom: dimensions × (N − 1) if the group contains all
/// particles and momentum is conserved, otherwise dimensions × N.
///
/// The chain is propagated by half a step before and after velocity Verlet, with the Suzuki–Yoshida splitting in three
/// substeps. At constant kT, H' = K + U + Σ Qⱼ ξⱼ²/2 + g kT ∫ξ₁ dt + kT Σ_{j>1} ∫ξⱼ dt is conserved up to an oscillation
/// ∝ dt². `conserved` of `Thermo` is H'.
///
/// The ensemble is canonical, including small and stiff systems for which a single thermostat (`NoseHoover`, the
/// equations with M = 1) is not ergodic.
///
/// Reference: Martyna, Klein & Tuckerman, J. Chem. Phys. 97 (1992) 2635, doi:10.1063/1.463940; Martyna, Tuckerman,
/// Tobias & Klein, Mol. Phys. 87 (1996) 1117, doi:10.1080/00268979600100761.
///
/// ```ron
/// NoseHooverChain(kT: 1.0, tau: 0.5, length: 3)
/// ```
#[component(Integrator, "NoseHooverChain")]
#[derive(Clone, Debug, Params)]
pub struct NoseHooverChain {
    /// Particles to integrate.
    #[param(default = Group::All)]
    group: Group,
    /// kT, target temperature; may vary with time.
    #[param(name = "kT", unit = "energy", above = 0.0)]
    kt: Varying,
    /// τ, time constant of the thermostats; as in `NoseHoover`, the temperature oscillates with a period of 4.4 to 6.3 τ.
    #[param(unit = "time", above = 0.0)]
    tau: Spanned<f64>,
    /// M, number of thermostats.
    #[param(default = 3, at_least = 1, at_most = 8)]
    length: u32,
}

/// State of the chain.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
pub struct ChainState {
    /// M.
    length: u32,
    /// Padding; 0.
    reserved: u32,
    /// g.
    degrees_of_freedom: f64,
    /// τ.
    tau: f64,
    /// 2K, including the factors applied since the last sum.
    two_k: f64,
    /// Velocity scale factor at the end of the step.
    end_scale: f64,
    /// Velocity scale factor at the start of the next step.
    begin_scale: f64,
    /// Contribution of the chain to H' at the end of the last step.
    reservoir: f64,
    /// ξ at the end of the last step.
    xi: [f64; LONGEST],
    /// ∫ξ dt at the end of the last step.
    eta: [f64; LONGEST],
    /// ξ in the middle of the current step.
    xi_mid: [f64; LONGEST],
    /// ∫ξ dt in the middle of the current step.
    eta_mid: [f64; LONGEST],
}

/// Returns 2K of a particle.
#[particle_fn(NoseHooverChain)]
fn measure(velocity: Vec3<real>, mass: real) -> real {
    mass * velocity.norm2()
}

/// Returns the number of thermostats, at most the capacity of the state (a checkpoint may contain any number).
#[device_fn(f64)]
fn chain_length(length: u32) -> usize {
    if length < 8u32 { length as usize } else { 8usize }
}

/// Returns dξⱼ/dt without the friction of the next thermostat.
#[device_fn(f64)]
fn acceleration(g: &ChainState, kt: f64, j: usize) -> f64 {
    let target = g.degrees_of_freedom * kt;
    let q = kt * g.tau * g.tau;
    if j == 0 {
        (g.two_k - target) / (g.degrees_of_freedom * q)
    } else {
        let before = if j == 1 { g.degrees_of_freedom * q } else { q };
        (before * g.xi_mid[j - 1] * g.xi_mid[j - 1] - kt) / q
    }
}

/// Propagates ξⱼ by the time h, with the friction of the next thermostat if there is one.
#[device_fn(f64)]
fn advance_xi(g: &mut ChainState, kt: f64, j: usize, n: usize, h: f64) {
    let friction = if j + 1 < n { (-0.5 * h * g.xi_mid[j + 1]).exp() } else { 1.0 };
    g.xi_mid[j] *= friction;
    g.xi_mid[j] += h * acceleration(g, kt, j);
    g.xi_mid[j] *= friction;
}

/// Propagates the chain by half a step (three Suzuki–Yoshida substeps) and returns the velocity scale factor.
#[device_fn(f64)]
fn half_step(g: &mut ChainState, step: &Step<f64>) -> f64 {
    let kt = step.varying[0];
    let n = chain_length(g.length);
    let mut scale = 1.0;
    for substep in 0..3 {
        // w = 1/(2 − 2^⅓) and 1 − 2w
        let weight = if substep == 1 { -1.702_414_383_919_315_3 } else { 1.351_207_191_959_657_6 };
        let h = 0.5 * step.dt * weight;
        for k in 0..n {
            advance_xi(g, kt, n - 1 - k, n, 0.5 * h);
        }
        let s = (-h * g.xi_mid[0]).exp();
        scale *= s;
        g.two_k *= s * s;
        for k in 0..n {
            g.eta_mid[k] += h * g.xi_mid[k];
        }
        for k in 0..n {
            advance_xi(g, kt, k, n, 0.5 * h);
        }
    }
    defined_factor(scale)
}

/// Performs the thermostat half step at the start of a step, from the state at the end of the last step.
#[device_fn(f64)]
fn begin_step(g: &mut ChainState, step: &Step<f64>) {
    let kt = step.varying[0];
    let q = kt * g.tau * g.tau;
    let f = g.degrees_of_freedom;
    g.reservoir = f * (0.5 * q * g.xi[0] * g.xi[0] + kt * g.eta[0]);
    for k in 1..chain_length(g.length) {
        g.reservoir += 0.5 * q * g.xi[k] * g.xi[k] + kt * g.eta[k];
    }
    for k in 0..chain_length(g.length) {
        g.xi_mid[k] = g.xi[k];
        g.eta_mid[k] = g.eta[k];
    }
    g.begin_scale = half_step(g, step);
}

/// Initializes the chain before the first step and after other components have changed velocities.
#[scalar_fn(NoseHooverChain)]
fn begin(g: &mut ChainState, sums: &[f64; 8], step: &Step<f64>) {
    g.two_k = sums[0];
    begin_step(g, step);
}

#[particle_fn(NoseHooverChain)]
fn first_half(
    velocity: &mut Vec3<real>,
    force: Vec3<real>,
    mass: real,
    displacement: &mut Vec3<real>,
    g: &ChainState,
    step: &Step<real>,
) {
    *velocity = scaled(*velocity, g.begin_scale) + force * (0.5 * step.dt / mass);
    *displacement = *velocity * step.dt;
}

#[particle_fn(NoseHooverChain)]
fn second_half(velocity: &mut Vec3<real>, force: Vec3<real>, mass: real, step: &Step<real>) -> real {
    *velocity += force * (0.5 * step.dt / mass);
    mass * velocity.norm2()
}

/// Performs the half step that ends this step and the one that starts the next.
#[scalar_fn(NoseHooverChain)]
fn thermostat(g: &mut ChainState, sums: &[f64; 8], step: &Step<f64>) {
    g.two_k = sums[0];
    g.end_scale = half_step(g, step);
    for k in 0..chain_length(g.length) {
        g.xi[k] = g.xi_mid[k];
        g.eta[k] = g.eta_mid[k];
    }
    begin_step(g, step);
}

#[particle_fn(NoseHooverChain)]
fn rescale(velocity: &mut Vec3<real>, g: &ChainState) {
    *velocity = scaled(*velocity, g.end_scale);
}

impl Integrator for NoseHooverChain {
    type State = ChainState;
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
    fn state(&self, group: &GroupInfo) -> Result<ChainState> {
        Ok(ChainState {
            length: self.length,
            degrees_of_freedom: crate::degrees_of_freedom(group)?,
            tau: self.tau.value,
            ..ChainState::default()
        })
    }
    fn conserved(state: &ChainState) -> f64 {
        state.reservoir
    }
}
