//! The Andersen barostat and thermostat.

use crate::mtk::check_time;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::scaling::scaled;

/// Andersen barostat and thermostat (NPT): the volume V is a dynamic variable with the mass M, and particles collide with
/// a heat bath.
///
/// In scaled coordinates s = r/L, H = Σ m L² ṡ²/2 + U(L s) + M V̇²/2 + P V. In d dimensions:
/// dr/dt = v + (V̇/dV) r, dv/dt = F/m − (V̇/dV) v, M d²V/dt² = (Σ m v² + Σ r·F)/(dV) − P.
/// After each step a particle gets a new velocity from the Maxwell–Boltzmann distribution with probability
/// 1 − exp(−ν dt). M = (g + d) kT τ_P²/(d V₀)² with g = dN and the initial values of kT and V, so τ_P is the time
/// constant of the box as in `MtkNpt`. It must not be shorter than dt.
///
/// The component samples the isothermal–isobaric ensemble: for an ideal gas ⟨V⟩ = (N + 1) kT/P. The box keeps its shape.
/// Momentum is not conserved, and diffusion slows down as ν increases. Collisions damp the flow of `LeesEdwards`. One step is a
/// symmetric splitting that is symplectic without collisions. With ν = 0 (constant enthalpy), H is conserved up to an oscillation
/// ∝ dt². `conserved` of `Thermo` is H, which collisions change.
///
/// All particles are integrated; the component has no group. The run ends with an error if a box length becomes shorter
/// than two cutoffs.
///
/// Reference: Andersen, J. Chem. Phys. 72 (1980) 2384, doi:10.1063/1.439486.
///
/// ```ron
/// AndersenNpt(kT: 1.0, nu: 0.5, pressure: 1.0, tau_p: 2.0)
/// ```
#[component(Integrator, "AndersenNpt")]
#[derive(Clone, Debug, Params)]
pub struct AndersenNpt {
    /// kT, target temperature; may vary with time.
    #[param(name = "kT", unit = "energy", above = 0.0)]
    kt: Varying,
    /// ν, collision rate per particle.
    #[param(unit = "1/time", at_least = 0.0)]
    nu: f64,
    /// P, target pressure; may vary with time.
    #[param(unit = "energy/length³")]
    pressure: Varying,
    /// τ_P, time constant of the box, as in `MtkNpt`.
    #[param(unit = "time", above = 0.0)]
    tau_p: Spanned<f64>,
}

/// State of the barostat.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
pub struct AndersenNptState {
    /// d.
    dimensions: u32,
    /// Padding; 0.
    reserved: u32,
    nu: f64,
    /// Collision probability per step.
    probability: f64,
    /// (g + d) τ_P²/d².
    inertia: f64,
    /// M; 0 before the first step.
    mass: f64,
    /// V̇.
    rate: f64,
    /// Ratio of the box length in the middle of the step to that at its start.
    opening: f64,
    /// Factor of velocities that the change of the box makes in a step.
    keep: f64,
    /// Time of the free flight, in the new box.
    flight: f64,
    /// M V̇²/2 + P V.
    reservoir: f64,
}

#[device_fn(f64)]
fn volume_of(g: &AndersenNptState, box_length: &[f64; 3]) -> f64 {
    let area = box_length[0] * box_length[1];
    if g.dimensions == 2 { area } else { area * box_length[2] }
}

/// Applies the virial and the external pressure to the box for half a step.
#[device_fn(f64)]
fn half_kick(g: &mut AndersenNptState, step: &Step<f64>, box_length: &[f64; 3], virial: &[f64; 3]) {
    let v = volume_of(g, box_length);
    let sum = virial[0] + virial[1] + if g.dimensions == 2 { 0.0 } else { virial[2] };
    g.rate += 0.5 * step.dt * (sum / ((g.dimensions as f64) * v) - step.varying[1]) / g.mass;
}

/// Stores the energy of the barostat.
#[device_fn(f64)]
fn store_energy(g: &mut AndersenNptState, step: &Step<f64>, box_length: &[f64; 3]) {
    let volume = volume_of(g, box_length);
    g.reservoir = 0.5 * g.mass * g.rate * g.rate + step.varying[1] * volume;
}

/// Updates the collision probability for the time step of the stage; sets the mass of the box once.
#[scalar_fn(AndersenNpt)]
fn begin(g: &mut AndersenNptState, step: &Step<f64>, box_length: &[f64; 3]) {
    g.probability = 1.0 - (-g.nu * step.dt).exp();
    if g.mass == 0.0 {
        let v = volume_of(g, box_length);
        g.mass = g.inertia * step.varying[0] / (v * v);
    }
    store_energy(g, step, box_length);
}

#[particle_fn(AndersenNpt)]
fn first_kick(velocity: &mut Vec3<real>, force: Vec3<real>, mass: real, step: &Step<real>) -> real {
    *velocity += force * (0.5 * step.dt / mass);
    mass * velocity.norm2()
}

/// Propagates the box by one step, with the kinetic pressure applied in its middle.
#[scalar_fn(AndersenNpt)]
fn move_box(g: &mut AndersenNptState, sums: &[f64; 8], step: &Step<f64>, box_length: &mut [f64; 3], virial: &[f64; 3]) {
    let d = g.dimensions as f64;
    half_kick(g, step, box_length, virial);
    let old = volume_of(g, box_length);
    let middle = old + 0.5 * step.dt * g.rate;
    g.opening = (middle / old).powf(1.0 / d);
    g.rate += step.dt * sums[0] / (g.opening * g.opening * d * middle * g.mass);
    let new = middle + 0.5 * step.dt * g.rate;
    let closing = (new / middle).powf(1.0 / d);
    g.keep = 1.0 / (g.opening * closing);
    g.flight = step.dt * closing / g.opening;
    for k in 0..3 {
        box_length[k] *= g.opening * closing;
    }
}

#[particle_fn(AndersenNpt)]
fn flight(velocity: &mut Vec3<real>, displacement: &mut Vec3<real>, g: &AndersenNptState) {
    *displacement = *velocity * (g.flight as real);
    *velocity = scaled(*velocity, g.keep);
}

#[particle_fn(AndersenNpt)]
fn second_kick(
    velocity: &mut Vec3<real>,
    force: Vec3<real>,
    mass: real,
    g: &AndersenNptState,
    step: &Step<real>,
    random: &mut Random,
) {
    *velocity += force * (0.5 * step.dt / mass);
    let chance = random.uniform();
    if chance < (g.probability as real) {
        *velocity = random.normal3() * (step.varying[0] / mass).sqrt();
    }
}

#[scalar_fn(AndersenNpt)]
fn end_step(g: &mut AndersenNptState, step: &Step<f64>, box_length: &[f64; 3], virial: &[f64; 3]) {
    half_kick(g, step, box_length, virial);
    store_energy(g, step, box_length);
}

impl Integrator for AndersenNpt {
    type State = AndersenNptState;
    type Extra<R: Real> = NoArrays<R>;

    fn program() -> Program<Self> {
        Program::new()
            .start_scalar::<begin>()
            .before::<first_kick>()
            .before_scalar::<move_box>()
            .before::<flight>()
            .after::<second_kick>()
            .after_scalar::<end_step>()
    }
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.box_axes = std::array::from_fn(|k| k < system.dimensions as usize);
        needs.varyings = vec![self.kt, self.pressure];
        needs.conserves_momentum = self.nu == 0.0;
        check_time("tau_p", &self.tau_p, system.dt)
    }
    fn state(&self, group: &GroupInfo) -> Result<AndersenNptState> {
        let d = f64::from(group.dimensions);
        let freedom = d * group.n as f64;
        Ok(AndersenNptState {
            dimensions: group.dimensions,
            nu: self.nu,
            inertia: (freedom + d) * self.tau_p.value * self.tau_p.value / (d * d),
            opening: 1.0,
            keep: 1.0,
            ..AndersenNptState::default()
        })
    }
    fn conserved(state: &AndersenNptState) -> f64 {
        state.reservoir
    }
}
