//! The Martyna–Tobias–Klein barostat.

use crate::coupling::{Couple, axis_variables, variable_count};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::scaling::{scaled, scaled_number};

/// Numbers of a chain in the state: at most eight thermostats, and a 0 behind the last one.
const WIDTH: usize = 9;

/// Martyna–Tobias–Klein barostat (NPT): box lengths Lₖ with velocities vₖ = d ln Lₖ/dt, and two Nosé–Hoover chains, one
/// for the particles and one for the box.
///
/// dr/dt = v + vₖ rₖ, dv/dt = F/m − (vₖ + Σⱼvⱼ/g) v − ξ v, W dvₖ/dt = V (Pₖₖ − P) + 2K/g − ξ' W vₖ,
/// Pₖₖ V = Σ m vₖ² + Σ rₖFₖ, W = (g + d) kT τ_P²/d. g is the number of degrees of freedom, d·(N − 1) if momentum is
/// conserved. The thermostat mass of the particles is Q = g kT τ²; that of the box is kT τ_P².
///
/// `couple` selects which axes change together: they share one vₖ, driven by the mean of their pressures. `axes`: which change at all.
///
/// The component samples the isothermal–isobaric ensemble. With `Isotropic` and conserved momentum, an ideal gas has
/// ⟨V⟩ = N kT/P. One step is the symmetric splitting of Tuckerman et al.; every step needs the virial. At constant P and
/// kT, H' = K + U + P V + ½ W Σ vₖ² + the energies of the chains is conserved up to an oscillation ∝ dt². `conserved` of
/// `Thermo` is H'.
///
/// τ and τ_P are time constants: the temperature of an ideal gas oscillates with the period √2 π τ, that of a harmonic solid with up
/// to 2π τ; the volume with 2π τ_P √(ρ kT/(d B)), with the number density ρ and the isothermal bulk modulus B.
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
    tau: f64,
    /// P, target pressure; may vary with time.
    #[param(unit = "energy/length³")]
    pub(crate) pressure: Varying,
    /// τ_P, time constant of the box; the oscillation period is 3.63 τ_P √(ρ kT/B) in three dimensions.
    #[param(unit = "time", above = 0.0)]
    tau_p: f64,
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
    pub(crate) fn new(kt: Varying, tau: f64, pressure: Varying, tau_p: f64, couple: Couple, length: u32) -> Self {
        Self { kt, tau, pressure, tau_p, couple, axes: [true; 3], length }
    }
}

/// State of the box and the chains.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
pub struct MtkState {
    /// Number of thermostats in each chain.
    length: u32,
    /// d.
    pub(crate) dimensions: u32,
    /// For each axis 1 + the index of the variable that scales it, or 0 for a fixed axis.
    variable: [u32; 3],
    /// Padding; 0.
    reserved: u32,
    /// Degrees of freedom of each chain: g, the number of box variables, and g_r (0 without rotation).
    pub(crate) freedom: [f64; 3],
    /// 1/τ², 1/τ_P² and 1/τ_r²; 0 without rotation.
    frequency2: [f64; 3],
    /// 2K/(g kT) of each chain (particles, box, rotation), including the factors applied since the last sum.
    pub(crate) two_k: [f64; 3],
    /// 2K of rotation, including these factors.
    spin: f64,
    /// Scale factors of the last half step of the chains.
    pub(crate) scale: [f64; 3],
    /// Σ m vₖ².
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
    /// ξ at the end of the last step: particles from 0, box from 9, rotation from 18.
    xi: [f64; 27],
    /// ∫ξ dt at the end of the last step.
    eta: [f64; 27],
    /// ξ in the middle of the current step.
    xi_mid: [f64; 27],
    /// ∫ξ dt in the middle of the current step.
    eta_mid: [f64; 27],
}

impl MtkState {
    /// Returns the initial state. `rotation` is g_r and τ_r; 0 and 0 without rotation.
    ///
    /// # Errors
    /// Returns an error if the group has no degrees of freedom or all axes are disabled.
    pub(crate) fn new(npt: &MtkNpt, group: &GroupInfo, rotation: [f64; 2]) -> Result<Self> {
        if group.degrees_of_freedom <= 0.0 {
            return Err(Error::input(format!(
                "the group of {} particle(s) has no degrees of freedom; a thermostat needs at least one",
                group.n
            )));
        }
        let variable = axis_variables(npt.couple, npt.axes, group.dimensions)?;
        let rotation_frequency2 = if rotation[0] > 0.0 { 1.0 / (rotation[1] * rotation[1]) } else { 0.0 };
        Ok(Self {
            length: npt.length,
            dimensions: group.dimensions,
            variable,
            freedom: [group.degrees_of_freedom, variable_count(variable), rotation[0]],
            frequency2: [1.0 / (npt.tau * npt.tau), 1.0 / (npt.tau_p * npt.tau_p), rotation_frequency2],
            end_scale: 1.0,
            begin_spin: 1.0,
            end_spin: 1.0,
            ..Self::default()
        })
    }

    /// Returns the state with another number of box variables.
    pub(crate) fn with_box_variables(mut self, variables: f64) -> Self {
        self.freedom[1] = variables;
        self
    }
}

/// Returns sinh(x)/x by its power series, for small x.
#[device_fn(f64)]
fn sinhc(x: f64) -> f64 {
    let y = x * x;
    1.0 + y * (1.0 / 6.0 + y * (1.0 / 120.0 + y * (1.0 / 5040.0 + y * (1.0 / 362_880.0))))
}

/// Returns exp(x) by its power series to x⁶ for |x| < 1/128, where its error is below rounding. Without the range reduction of
/// `exp` and with few operations that wait for each other, one thread of a GPU needs a fraction of the time.
#[device_fn(f64)]
fn exp_near_0(x: f64) -> f64 {
    if x.abs() < 0.007_812_5 {
        let y = x * x;
        let high = (1.0 / 24.0 + x * (1.0 / 120.0)) + y * (1.0 / 720.0);
        (1.0 + x) + y * ((0.5 + x * (1.0 / 6.0)) + y * high)
    } else {
        x.exp()
    }
}

/// Returns the number of chains; that of rotation exists only if rotation has degrees of freedom.
#[device_fn(f64)]
fn chain_count(rotation: f64) -> usize {
    if rotation > 0.0 { 3usize } else { 2usize }
}

/// Returns the number of thermostats, at most the capacity of the state (a checkpoint may contain any number).
#[device_fn(f64)]
fn chain_length(length: u32) -> usize {
    if length < 8u32 { length as usize } else { 8usize }
}

/// Propagates ξ of thermostat j > 0 of chain c by the time h: dξ/dt = (Q_{j−1} ξ_{j−1}² − kT)/Q_j − ξ_{j+1} ξ. Behind the last
/// thermostat there is a ξ of 0.
#[device_fn(f64)]
fn advance_xi(g: &mut MtkState, c: usize, j: usize, h: f64) {
    let at = WIDTH * c + j;
    let friction = exp_near_0(-0.5 * h * g.xi_mid[at + 1]);
    let before = g.xi_mid[at - 1] * g.xi_mid[at - 1];
    let drive = if j == 1 { g.freedom[c] * before } else { before };
    g.xi_mid[at] = (g.xi_mid[at] * friction + h * (drive - g.frequency2[c])) * friction;
}

/// Propagates ξ of the first thermostat of chain c by the time h: dξ/dt = (2K − g kT)/Q − ξ_1 ξ.
#[device_fn(f64)]
fn advance_first_xi(g: &mut MtkState, c: usize, h: f64) {
    let at = WIDTH * c;
    let friction = exp_near_0(-0.5 * h * g.xi_mid[at + 1]);
    let drive = (g.two_k[c] - 1.0) * g.frequency2[c];
    g.xi_mid[at] = (g.xi_mid[at] * friction + h * drive) * friction;
}

/// Propagates the first thermostat of chain c by h/2, 2K and ∫ξ dt by h, and the thermostat again.
#[device_fn(f64)]
fn turn(g: &mut MtkState, c: usize, h: f64) {
    advance_first_xi(g, c, 0.5 * h);
    let s = exp_near_0(-h * g.xi_mid[WIDTH * c]);
    g.scale[c] *= s;
    g.two_k[c] *= s * s;
    g.eta_mid[WIDTH * c] += h * g.xi_mid[WIDTH * c];
    advance_first_xi(g, c, 0.5 * h);
}

/// Propagates thermostat j > 0 of chain c on the way back by h/2, and its ∫ξ dt by h.
#[device_fn(f64)]
fn return_xi(g: &mut MtkState, c: usize, j: usize, h: f64) {
    g.eta_mid[WIDTH * c + j] += h * g.xi_mid[WIDTH * c + j];
    advance_xi(g, c, j, 0.5 * h);
}

/// Propagates all chains by half a step (three Suzuki–Yoshida substeps), and with them Σ m vₖ² and vₖ of the box. Sets the scale
/// factors of velocities and angular momenta. One substep is too coarse far from equilibrium, where a large ξ_0 drives the light
/// second thermostat. Chains do not depend on each other; their turns alternate, so that one thread computes them side by side.
#[device_fn(f64)]
fn half_chains(g: &mut MtkState, kt: f64, dt: f64) {
    let chains = chain_count(g.freedom[2]);
    let w = box_mass(g, kt);
    let kinetic = g.kinetic[0] + g.kinetic[1] + g.kinetic[2];
    let rate2 = g.rate_mid[0] * g.rate_mid[0] + g.rate_mid[1] * g.rate_mid[1] + g.rate_mid[2] * g.rate_mid[2];
    g.two_k[0] = kinetic / (g.freedom[0] * kt);
    g.two_k[1] = w * rate2 / (g.freedom[1] * kt);
    g.two_k[2] = if chains == 3usize { g.spin / (g.freedom[2] * kt) } else { 0.0 };
    propagate_chains(g, dt);
    for k in 0..3usize {
        g.kinetic[k] *= g.scale[0] * g.scale[0];
        g.rate_mid[k] *= g.scale[1];
    }
    g.spin *= g.scale[2] * g.scale[2];
}

/// Propagates all chains by half a step, from 2K/(g kT) of each. Sets the scale factors.
#[device_fn(f64)]
pub(crate) fn propagate_chains(g: &mut MtkState, dt: f64) {
    let (n, chains) = (chain_length(g.length), chain_count(g.freedom[2]));
    for c in 0..3usize {
        g.scale[c] = 1.0;
    }
    for substep in 0..3 {
        // w = 1/(2 − 2^⅓) and 1 − 2w
        let weight = if substep == 1 { -1.702_414_383_919_315_3 } else { 1.351_207_191_959_657_6 };
        let h = 0.5 * dt * weight;
        for k in 1..n {
            advance_xi(g, 0usize, n - k, 0.5 * h);
            advance_xi(g, 1usize, n - k, 0.5 * h);
            if chains == 3usize {
                advance_xi(g, 2usize, n - k, 0.5 * h);
            }
        }
        turn(g, 0usize, h);
        turn(g, 1usize, h);
        if chains == 3usize {
            turn(g, 2usize, h);
        }
        for j in 1..n {
            return_xi(g, 0usize, j, h);
            return_xi(g, 1usize, j, h);
            if chains == 3usize {
                return_xi(g, 2usize, j, h);
            }
        }
    }
}

/// Returns W, the mass of the box.
#[device_fn(f64)]
pub(crate) fn box_mass(g: &MtkState, kt: f64) -> f64 {
    (g.freedom[0] / (g.dimensions as f64) + 1.0) * kt / g.frequency2[1]
}

/// Applies internal and external pressure to the box for half a step.
#[device_fn(f64)]
fn half_kick(g: &mut MtkState, step: &Step<f64>, box_length: &[f64; 3], virial: &[f64; 3]) {
    let w = box_mass(g, step.varying[0]);
    let mut volume = 1.0;
    for k in 0..3 {
        if (k as u32) < g.dimensions {
            volume *= box_length[k];
        }
    }
    let common = (g.kinetic[0] + g.kinetic[1] + g.kinetic[2]) / g.freedom[0] - step.varying[1] * volume;
    for k in 0..3 {
        let mut push = 0.0;
        let mut axes = 0.0;
        for j in 0..3 {
            if g.variable[j] == g.variable[k] {
                push += g.kinetic[j] + virial[j] + common;
                axes += 1.0;
            }
        }
        if g.variable[k] > 0 {
            g.rate_mid[k] += 0.5 * step.dt * push / (axes * w);
        }
    }
}

/// Takes ξ and ∫ξ dt of the last step, and adds the energies of the chains to H' − K − U.
#[device_fn(f64)]
pub(crate) fn start_chains(g: &mut MtkState, kt: f64) {
    for c in 0..chain_count(g.freedom[2]) {
        let q = kt / g.frequency2[c];
        for j in 0..chain_length(g.length) {
            let at = WIDTH * c + j;
            g.xi_mid[at] = g.xi[at];
            g.eta_mid[at] = g.eta[at];
            // the mass of the first thermostat is g times that of the others, as is its kT
            let freedom = if j == 0 { g.freedom[c] } else { 1.0 };
            g.reservoir += freedom * (0.5 * q * g.xi[at] * g.xi[at] + kt * g.eta[at]);
        }
    }
}

/// Performs the half step at the start of a step, from the state at the end of the last step.
#[device_fn(f64)]
pub(crate) fn begin_step(g: &mut MtkState, step: &Step<f64>, box_length: &[f64; 3], virial: &[f64; 3]) {
    let kt = step.varying[0];
    let w = box_mass(g, kt);
    let mut volume = 1.0;
    g.reservoir = 0.0;
    for k in 0..3 {
        g.rate_mid[k] = g.rate[k];
        g.reservoir += 0.5 * w * g.rate[k] * g.rate[k];
        if (k as u32) < g.dimensions {
            volume *= box_length[k];
        }
    }
    g.reservoir += step.varying[1] * volume;
    start_chains(g, kt);
    half_chains(g, kt, step.dt);
    let scale = g.scale[0];
    g.begin_spin = g.scale[2];
    half_kick(g, step, box_length, virial);
    let drag = (g.rate_mid[0] + g.rate_mid[1] + g.rate_mid[2]) / g.freedom[0];
    for k in 0..3 {
        let a = 0.25 * step.dt * (g.rate_mid[k] + drag);
        let x = 0.5 * step.dt * g.rate_mid[k];
        g.keep[k] = exp_near_0(-2.0 * a);
        g.begin_keep[k] = scale * g.keep[k];
        g.kick[k] = exp_near_0(-a) * sinhc(a);
        g.flight[k] = step.dt * exp_near_0(x) * sinhc(x);
    }
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
fn dilate(g: &mut MtkState, step: &Step<f64>, box_length: &mut [f64; 3]) {
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

/// Keeps ξ and ∫ξ dt of the end of the step.
#[device_fn(f64)]
pub(crate) fn end_chains(g: &mut MtkState) {
    for k in 0..27 {
        g.xi[k] = g.xi_mid[k];
        g.eta[k] = g.eta_mid[k];
    }
}

/// Performs the half step that ends this step and the one that starts the next. Call `store_kinetic` first.
#[device_fn(f64)]
pub(crate) fn end_step(g: &mut MtkState, step: &Step<f64>, box_length: &[f64; 3], virial: &[f64; 3]) {
    half_kick(g, step, box_length, virial);
    half_chains(g, step.varying[0], step.dt);
    g.end_scale = g.scale[0];
    g.end_spin = g.scale[2];
    for k in 0..3 {
        g.rate[k] = g.rate_mid[k];
    }
    end_chains(g);
    begin_step(g, step, box_length, virial);
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
        axis_variables(self.couple, self.axes, system.dimensions)?;
        needs.varyings = vec![self.kt, self.pressure];
        needs.rescales = true;
        needs.constrainable = true;
        Ok(())
    }
    fn state(&self, group: &GroupInfo) -> Result<MtkState> {
        MtkState::new(self, group, [0.0; 2])
    }
    fn conserved(state: &MtkState) -> f64 {
        state.reservoir
    }
}
