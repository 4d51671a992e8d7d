//! The Martyna–Tobias–Klein barostat.

use crate::chains::{Chains, SMALL, end_chains, exp_near_0, exp_series, propagate_chains, start_chains};
use crate::coupling::{Couple, axis_variables, variable_count};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::scaling::{scaled, scaled_number};

/// Martyna–Tobias–Klein barostat (NPT): box lengths Lₖ with velocities vₖ = d ln Lₖ/dt, and two Nosé–Hoover chains, one
/// for the particles and one for the box.
///
/// dr/dt = v + vₖ rₖ, dv/dt = F/m − (vₖ + Σⱼvⱼ/g) v − ξ v, W dvₖ/dt = V (Pₖₖ − P) + 2K/g − ξ' W vₖ,
/// Pₖₖ V = Σ m vₖ² + Σ rₖFₖ, W = (g + d) kT τ_P²/d. g is the number of degrees of freedom, d·(N − 1) if momentum is
/// conserved. The thermostat mass of the particles is Q = g kT τ²; that of the box is kT τ_P².
///
/// `couple` selects which axes change together: they share one vₖ, driven by the mean of their pressures. `axes`: which change at all.
/// Use `Isotropic` for liquids: they resist no change of shape, so independent box lengths (`None`, and z in `Xy`) drift at the right
/// pressure until one is too short. Independent lengths suit solids, layers and membranes.
///
/// The component samples the isothermal–isobaric ensemble. With `Isotropic` and conserved momentum, an ideal gas has
/// ⟨V⟩ = N kT/P. One step is the symmetric splitting of Tuckerman et al.; every step needs the virial. At constant P and
/// kT, H' = K + U + P V + ½ W Σ vₖ² + the energies of the chains is conserved up to an oscillation ∝ dt². `conserved` of
/// `Thermo` is H'.
///
/// τ and τ_P are time constants: the temperature of an ideal gas oscillates with the period √2 π τ, that of a harmonic solid with up
/// to 2π τ; the volume with 2π τ_P √(ρ kT/(d B)), with the number density ρ and the isothermal bulk modulus B.
/// Neither may be shorter than dt.
///
/// All particles are integrated; there is no group. A box length below two cutoffs ends the run with an error.
///
/// Reference: Martyna, Tobias & Klein, J. Chem. Phys. 101 (1994) 4177, doi:10.1063/1.467468; Tuckerman, Alejandre,
/// López-Rendón, Jochim & Martyna, J. Phys. A 39 (2006) 5629, doi:10.1088/0305-4470/39/19/S18.
///
/// ```ron
/// MtkNpt(kT: 1.0, tau: 0.5, pressure: 1.0, tau_p: 2.0)
/// ```
#[component(Integrator, "MtkNpt")]
#[derive(Clone, Debug, Params)]
pub struct MtkNpt {
    /// kT, target temperature; may vary with time.
    #[param(name = "kT", unit = "energy", above = 0.0)]
    pub(crate) kt: Varying,
    /// τ, time constant of the particles' thermostats; the temperature oscillates with a period of 4.4 to 6.3 τ.
    #[param(unit = "time", above = 0.0)]
    tau: Spanned<f64>,
    /// P, target pressure; may vary with time.
    #[param(unit = "energy/length³")]
    pub(crate) pressure: Varying,
    /// τ_P, time constant of the box; the oscillation period is 3.63 τ_P √(ρ kT/B) in three dimensions.
    #[param(unit = "time", above = 0.0)]
    tau_p: Spanned<f64>,
    /// Coupling of the axes: `Isotropic`, `Xy` (z independent) or `None`.
    #[param(default = Couple::Isotropic)]
    pub(crate) couple: Couple,
    /// Axes x, y, z that may change.
    #[param(default = [true, true, true])]
    pub(crate) axes: [bool; 3],
    /// M, number of thermostats in each chain.
    #[param(default = 3, at_least = 1, at_most = 8)]
    length: u32,
}

impl MtkNpt {
    /// Returns a barostat that may change all axes.
    pub(crate) fn new(
        kt: Varying,
        tau: Spanned<f64>,
        pressure: Varying,
        tau_p: Spanned<f64>,
        couple: Couple,
        length: u32,
    ) -> Self {
        Self { kt, tau, pressure, tau_p, couple, axes: [true; 3], length }
    }

    /// Checks that neither time constant is shorter than the time step.
    pub(crate) fn check_times(&self, dt: f64) -> Result<()> {
        check_time("tau", &self.tau, dt)?;
        check_time("tau_p", &self.tau_p, dt)
    }
}

/// Checks that a time constant is not shorter than the time step.
pub(crate) fn check_time(name: &str, tau: &Spanned<f64>, dt: f64) -> Result<()> {
    if tau.value < dt {
        let message = format!("{name} {} is shorter than the time step {dt}; use {name} ≥ dt", tau.value);
        return Err(InputError::at(tau.at, message).into());
    }
    Ok(())
}

/// State of the box and the chains.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
pub struct MtkState {
    /// The chains of particles, box and rotation.
    pub(crate) chains: Chains,
    /// d.
    dimensions: u32,
    /// For each axis 1 + the index of the variable that scales it, or 0 for a fixed axis.
    variable: [u32; 3],
    /// For each axis 1/(number of axes with its variable), or 0 for a fixed axis.
    weight: [f64; 3],
    /// W/kT, where W is the mass of the box.
    inertia: f64,
    /// 2K of rotation, including the factors applied since the last sum.
    spin: f64,
    /// Σ m vₖ², including these factors.
    kinetic: [f64; 3],
    /// vₖ at the end of the last step.
    rate: [f64; 3],
    /// vₖ in the middle of the current step.
    rate_mid: [f64; 3],
    /// Velocity scale factor at the end of the step.
    pub(crate) end_scale: f64,
    /// Scale factor of angular momenta at the end of the step.
    pub(crate) end_spin: f64,
    /// Scale factor of angular momenta at the start of the next step.
    pub(crate) begin_spin: f64,
    /// Factor of the velocity in the half kick at the end of a step.
    pub(crate) keep: [f64; 3],
    /// The same at the start of a step, times the scale factor of the thermostats.
    pub(crate) begin_keep: [f64; 3],
    /// Factor of F dt/2m in a half kick.
    kick: [f64; 3],
    /// Time of the free flight, in the new box.
    pub(crate) flight: [f64; 3],
    /// H' − K − U.
    pub(crate) reservoir: f64,
}

impl MtkNpt {
    /// Returns the chains of a group for this number of box variables, and W/kT. `rotation` is g_r and τ_r; 0 and 0 without rotation.
    ///
    /// # Errors
    /// Returns an error if the group has no degrees of freedom.
    pub(crate) fn chains(&self, group: &GroupInfo, variables: f64, rotation: [f64; 2]) -> Result<(Chains, f64)> {
        let freedom = group.degrees_of_freedom;
        if freedom <= 0.0 {
            return Err(Error::input(format!(
                "the group of {} particle(s) has no degrees of freedom; a thermostat needs at least one",
                group.n
            )));
        }
        let times = [self.tau.value, self.tau_p.value, rotation[1]];
        let chains = Chains::new(self.length, [freedom, variables, rotation[0]], times);
        Ok((chains, (freedom / f64::from(group.dimensions) + 1.0) * self.tau_p.value.powi(2)))
    }
}

impl MtkState {
    /// Returns the initial state. `rotation` is g_r and τ_r; 0 and 0 without rotation.
    ///
    /// # Errors
    /// Returns an error if the group has no degrees of freedom or all axes are disabled.
    pub(crate) fn new(npt: &MtkNpt, group: &GroupInfo, rotation: [f64; 2]) -> Result<Self> {
        let variable = axis_variables(npt.couple, npt.axes, group.dimensions)?;
        let (chains, inertia) = npt.chains(group, variable_count(variable), rotation)?;
        let together = |v: u32| variable.iter().filter(|x| **x == v).count() as f64;
        Ok(Self {
            chains,
            dimensions: group.dimensions,
            variable,
            weight: variable.map(|v| if v > 0 { 1.0 / together(v) } else { 0.0 }),
            inertia,
            end_scale: 1.0,
            begin_spin: 1.0,
            end_spin: 1.0,
            ..Self::default()
        })
    }
}

/// Returns sinh(x)/x by its power series, for small x.
#[device_fn(f64)]
fn sinhc(x: f64) -> f64 {
    let y = x * x;
    1.0 + y * (1.0 / 6.0 + y * (1.0 / 120.0 + y * (1.0 / 5040.0 + y * (1.0 / 362_880.0))))
}

/// Propagates all chains by half a step, and with them Σ m vₖ² and vₖ of the box. Sets the scale factors of velocities and angular
/// momenta.
#[device_fn(f64)]
fn half_chains(g: &mut MtkState, kt: f64, dt: f64) {
    let cold = 1.0 / kt;
    let kinetic = g.kinetic[0] + g.kinetic[1] + g.kinetic[2];
    let rate2 = g.rate_mid[0] * g.rate_mid[0] + g.rate_mid[1] * g.rate_mid[1] + g.rate_mid[2] * g.rate_mid[2];
    g.chains.two_k[0] = kinetic * cold * g.chains.share[0];
    g.chains.two_k[1] = g.inertia * rate2 * g.chains.share[1];
    g.chains.two_k[2] = g.spin * cold * g.chains.share[2];
    propagate_chains(&mut g.chains, dt);
    for k in 0..3usize {
        g.kinetic[k] *= g.chains.scale[0] * g.chains.scale[0];
        g.rate_mid[k] *= g.chains.scale[1];
    }
    g.spin *= g.chains.scale[2] * g.chains.scale[2];
}

/// Returns the volume, or the area in two dimensions.
#[device_fn(f64)]
pub(crate) fn volume_of(dimensions: u32, box_length: &[f64; 3]) -> f64 {
    let area = box_length[0] * box_length[1];
    if dimensions == 3 { area * box_length[2] } else { area }
}

/// Applies internal and external pressure to the box for half a step.
#[device_fn(f64)]
fn half_kick(g: &mut MtkState, step: &Step<f64>, box_length: &[f64; 3], virial: &[f64; 3]) {
    let h = 0.5 * step.dt / (g.inertia * step.varying[0]);
    let common = (g.kinetic[0] + g.kinetic[1] + g.kinetic[2]) * g.chains.share[0]
        - step.varying[1] * volume_of(g.dimensions, box_length);
    for k in 0..3 {
        let mut push = 0.0;
        for j in 0..3 {
            push += if g.variable[j] == g.variable[k] { g.kinetic[j] + virial[j] + common } else { 0.0 };
        }
        // 0 for an axis that does not change
        g.rate_mid[k] += h * g.weight[k] * push;
    }
}

/// Sets the factors of the next step that follow from vₖ. `small`: all exponents are.
#[device_fn(f64)]
fn set_factors(g: &mut MtkState, k: usize, dt: f64, drag: f64, small: bool) {
    let a = 0.25 * dt * (g.rate_mid[k] + drag);
    let x = 0.5 * dt * g.rate_mid[k];
    let slow = if small { exp_series(-a) } else { (-a).exp() };
    let grow = if small { exp_series(x) } else { x.exp() };
    g.keep[k] = slow * slow;
    g.begin_keep[k] = g.chains.scale[0] * g.keep[k];
    g.kick[k] = slow * sinhc(a);
    g.flight[k] = dt * grow * sinhc(x);
}

/// Begins a step with the state at the end of the last one.
#[device_fn(f64)]
fn take_state(g: &mut MtkState, step: &Step<f64>, box_length: &[f64; 3]) {
    let kt = step.varying[0];
    let mut energy = start_chains(&mut g.chains, kt);
    energy += step.varying[1] * volume_of(g.dimensions, box_length);
    for k in 0..3 {
        g.rate_mid[k] = g.rate[k];
        energy += 0.5 * g.inertia * kt * g.rate[k] * g.rate[k];
    }
    g.reservoir = energy;
}

/// Ends a step: the state is that of its end.
#[device_fn(f64)]
fn keep_state(g: &mut MtkState) {
    g.end_scale = g.chains.scale[0];
    g.end_spin = g.chains.scale[2];
    for k in 0..3 {
        g.rate[k] = g.rate_mid[k];
    }
    end_chains(&mut g.chains);
}

/// Performs the half kick of the box at the start of a step, after the chains, and sets the factors of the step.
#[device_fn(f64)]
fn begin_kick(g: &mut MtkState, step: &Step<f64>, box_length: &[f64; 3], virial: &[f64; 3]) {
    g.begin_spin = g.chains.scale[2];
    half_kick(g, step, box_length, virial);
    let drag = (g.rate_mid[0] + g.rate_mid[1] + g.rate_mid[2]) * g.chains.share[0];
    let fastest = g.rate_mid[0].abs().max(g.rate_mid[1].abs().max(g.rate_mid[2].abs())) + drag.abs();
    if 0.5 * step.dt * fastest < SMALL {
        for k in 0..3usize {
            set_factors(g, k, step.dt, drag, true);
        }
    } else {
        for k in 0..3usize {
            set_factors(g, k, step.dt, drag, false);
        }
    }
}

/// Performs the half step at the start of a step, from the state at the end of the last step.
#[device_fn(f64)]
pub(crate) fn begin_step(g: &mut MtkState, step: &Step<f64>, box_length: &[f64; 3], virial: &[f64; 3]) {
    take_state(g, step, box_length);
    half_chains(g, step.varying[0], step.dt);
    begin_kick(g, step, box_length, virial);
}

/// Returns m vₖ² of a particle.
#[particle_fn(MtkNpt)]
fn measure(velocity: Vec3<real>, mass: real) -> (real, real, real) {
    let v = velocity;
    (mass * v.x * v.x, mass * v.y * v.y, mass * v.z * v.z)
}

/// Initializes the chains before the first step and after other components have changed velocities.
#[scalar_fn(MtkNpt)]
fn begin(g: &mut MtkState, sums: &[f64; 8], step: &Step<f64>, box_length: &[f64; 3], virial: &[f64; 3]) {
    store_kinetic(g, sums);
    begin_step(g, step, box_length, virial);
}

#[scalar_fn(MtkNpt)]
fn dilate(g: &MtkState, step: &Step<f64>, box_length: &mut [f64; 3]) {
    resize(g, step, box_length);
}

/// Returns the velocity after half a kick; `keep` are the factors of the old velocity along the axes.
#[device_fn]
pub(crate) fn kicked(
    v: Vec3<real>,
    force: Vec3<real>,
    mass: real,
    g: &MtkState,
    half: real,
    keep: &[f64; 3],
) -> Vec3<real> {
    let f = force * (half / mass);
    Vec3::new(
        scaled_number(v.x, keep[0]) + f.x * (g.kick[0] as real),
        scaled_number(v.y, keep[1]) + f.y * (g.kick[1] as real),
        scaled_number(v.z, keep[2]) + f.z * (g.kick[2] as real),
    )
}

#[particle_fn(MtkNpt)]
fn first_half(
    velocity: &mut Vec3<real>,
    force: Vec3<real>,
    mass: real,
    displacement: &mut Vec3<real>,
    g: &MtkState,
    step: &Step<real>,
) {
    let v = kicked(*velocity, force, mass, g, 0.5 * step.dt, &g.begin_keep);
    *velocity = v;
    *displacement = Vec3::new(v.x * (g.flight[0] as real), v.y * (g.flight[1] as real), v.z * (g.flight[2] as real));
}

#[particle_fn(MtkNpt)]
fn second_half(
    velocity: &mut Vec3<real>,
    force: Vec3<real>,
    mass: real,
    g: &MtkState,
    step: &Step<real>,
) -> (real, real, real) {
    let v = kicked(*velocity, force, mass, g, 0.5 * step.dt, &g.keep);
    *velocity = v;
    (mass * v.x * v.x, mass * v.y * v.y, mass * v.z * v.z)
}

/// Performs the half step that ends this step and the one that starts the next. Call `store_kinetic` first.
#[device_fn(f64)]
pub(crate) fn end_step(g: &mut MtkState, step: &Step<f64>, box_length: &[f64; 3], virial: &[f64; 3]) {
    half_kick(g, step, box_length, virial);
    // the chains are a loop, so that a GPU fetches their instructions once
    for half in 0..2 {
        half_chains(g, step.varying[0], step.dt);
        if half == 0 {
            keep_state(g);
            take_state(g, step, box_length);
        }
    }
    begin_kick(g, step, box_length, virial);
}

/// Stores the sums over particles: Σ m vₖ² and 2K of rotation.
#[device_fn(f64)]
pub(crate) fn store_kinetic(g: &mut MtkState, sums: &[f64; 8]) {
    for k in 0..3 {
        g.kinetic[k] = sums[k];
    }
    g.spin = sums[3];
}

/// Sets the new box lengths.
#[device_fn(f64)]
pub(crate) fn resize(g: &MtkState, step: &Step<f64>, box_length: &mut [f64; 3]) {
    for k in 0..3 {
        box_length[k] *= exp_near_0(g.rate_mid[k] * step.dt);
    }
}

#[scalar_fn(MtkNpt)]
fn barostat(g: &mut MtkState, sums: &[f64; 8], step: &Step<f64>, box_length: &[f64; 3], virial: &[f64; 3]) {
    store_kinetic(g, sums);
    end_step(g, step, box_length, virial);
}

#[particle_fn(MtkNpt)]
fn rescale(velocity: &mut Vec3<real>, g: &MtkState) {
    *velocity = scaled(*velocity, g.end_scale);
}

impl Integrator for MtkNpt {
    type State = MtkState;
    type Extra<R: Real> = NoArrays<R>;

    fn program() -> Program<Self> {
        Program::new()
            .start::<measure>()
            .start_scalar::<begin>()
            .before_scalar::<dilate>()
            .before::<first_half>()
            .after::<second_half>()
            .after_scalar::<barostat>()
            .after::<rescale>()
    }
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.box_axes = axis_variables(self.couple, self.axes, system.dimensions)?.map(|v| v != 0);
        needs.varyings = vec![self.kt, self.pressure];
        needs.rescales = true;
        needs.constrainable = true;
        self.check_times(system.dt)
    }
    fn state(&self, group: &GroupInfo) -> Result<MtkState> {
        MtkState::new(self, group, [0.0; 2])
    }
    fn conserved(state: &MtkState) -> f64 {
        state.reservoir
    }
}
