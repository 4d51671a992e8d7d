//! The Martyna–Tobias–Klein barostat for all lengths and tilt factors of the box.

use crate::chains::{Chains, end_chains, propagate_chains, start_chains};
use crate::coupling::Couple;
use crate::mtk::{MtkNpt, check_time, volume_of};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::scaling::{scaled, scaled_number};

/// Martyna–Tobias–Klein barostat (NPT) of the full cell: all box lengths and tilt factors change, so a crystal can choose its
/// shape. The box is triclinic: components that need a rectangular box are refused.
///
/// dr/dt = v + ν r, dv/dt = F/m − (ν + Tr ν/g) v − ξ v, W dν_ij/dt = V (P_ij − P_ij⁰) + (2K/g) δ_ij − ξ' W ν_ij for i ≤ j,
/// P_ij V = Σ m v_i v_j + Σ r_i F_j, W = (g + d) kT τ_P²/d. ν is the upper triangular matrix of strain rates: the edges of the
/// box, columns of h, follow dh/dt = ν h. It has six elements, in two dimensions three. g is the number of degrees of freedom.
/// Chains, thermostat masses, integration scheme and limits of τ and τ_P are those of `MtkNpt`; the exponentials
/// of ν are those of matrices.
///
/// The target is the hydrostatic pressure P plus `deviator`: P_ij⁰ = P δ_ij + D_ij. `deviator` has the numbers D_xx, D_yy, D_zz,
/// D_xy, D_xz, D_yz; D_xx + D_yy + D_zz is 0.
///
/// The component samples the isothermal–isobaric ensemble of boxes of any shape and orientation. An upper triangular ν does
/// not give the measure of this ensemble by itself: the potential −(d − 1) kT ln(L_x/L_z) (L_y in two dimensions) corrects it,
/// which adds ±(d − 1) kT to W dν/dt of the first and the last axis. At constant P and kT, H' = K + U + P V + ½ W Σ ν_ij² + ∫ V D_ij ν_ij dt + that potential + the energies of
/// the chains is conserved up to an oscillation ∝ dt². `conserved` of `Thermo` is H'.
///
/// A liquid resists no shear, so its box tilts without limit. A box that is tilted by more than 0.6 of an edge is replaced by the
/// least tilted one of the same lattice. Particles keep their unwrapped positions. The box can still become long and flat: use
/// this component for solids, and `MtkNpt` with `couple: Isotropic` for liquids.
///
/// Oriented pair potentials are refused, because their stress is not symmetric.
///
/// All particles are integrated; the component has no group. The run ends with an error if a height of the box becomes shorter
/// than two cutoffs.
///
/// Reference: Martyna, Tobias & Klein, J. Chem. Phys. 101 (1994) 4177, doi:10.1063/1.467468; Tuckerman, Alejandre,
/// López-Rendón, Jochim & Martyna, J. Phys. A 39 (2006) 5629, doi:10.1088/0305-4470/39/19/S18.
///
/// ```ron
/// TriclinicMtkNpt(kT: 0.3, tau: 0.5, pressure: 0.0, tau_p: 2.0)
/// ```
#[component(Integrator, "TriclinicMtkNpt")]
#[derive(Clone, Debug, Params)]
pub struct TriclinicMtkNpt {
    /// kT, target temperature; may vary with time.
    #[param(name = "kT", unit = "energy", above = 0.0)]
    kt: Varying,
    /// τ, time constant of the particles' thermostats, as in `MtkNpt`.
    #[param(unit = "time", above = 0.0)]
    tau: Spanned<f64>,
    /// P, target pressure; may vary with time.
    #[param(unit = "energy/length³")]
    pressure: Varying,
    /// τ_P, time constant of the box, as in `MtkNpt`.
    #[param(unit = "time", above = 0.0)]
    tau_p: Spanned<f64>,
    /// D_xx, D_yy, D_zz, D_xy, D_xz, D_yz: deviation of the target pressure tensor from P.
    #[param(default = [0.0; 6], unit = "energy/length³")]
    deviator: [f64; 6],
    /// M, number of thermostats in each chain.
    #[param(default = 3, at_least = 1, at_most = 8)]
    length: u32,
}

/// State of the box and the chains. Tensors have the order xx, yy, zz, xy, xz, yz.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
pub struct CellState {
    /// The chains of particles and box.
    chains: Chains,
    /// d.
    dimensions: u32,
    /// Padding; 0.
    reserved: u32,
    /// W/kT, where W is the mass of the box.
    inertia: f64,
    /// Velocity scale factor at the end of the step.
    end_scale: f64,
    /// H' − K − U.
    reservoir: f64,
    /// Σ m v_i v_j.
    kinetic: [f64; 6],
    /// ν at the end of the last step.
    rate: [f64; 6],
    /// ν in the middle of the current step.
    rate_mid: [f64; 6],
    /// D.
    deviator: [f64; 6],
    /// Exponent of the last call of `integrated`.
    exponent: [f64; 6],
    /// Factor of the velocity in the half kick at the end of a step.
    keep: [f64; 6],
    /// The same at the start of a step, times the scale factor of the thermostats.
    begin_keep: [f64; 6],
    /// Factor of F dt/2m in a half kick.
    kick: [f64; 6],
    /// Time of the free flight, in the new box.
    flight: [f64; 6],
    /// ∫ V D_ij ν_ij dt.
    work: f64,
}

/// Computes (exp(M) − 1)/M by its power series, for the upper triangular matrix M = `exponent`, whose norm is below 0.3; there
/// the error is below rounding.
#[device_fn(f64)]
fn integrated(m: &[f64; 6], p: &mut [f64; 6]) {
    for k in 0..6 {
        p[k] = if k < 3 { 1.0 } else { 0.0 };
    }
    for j in 0..11 {
        let f = 1.0 / ((12 - j) as f64);
        p[4] = f * (m[0] * p[4] + m[3] * p[5] + m[4] * p[2]);
        p[3] = f * (m[0] * p[3] + m[3] * p[1]);
        p[5] = f * (m[1] * p[5] + m[5] * p[2]);
        for k in 0..3 {
            p[k] = 1.0 + f * m[k] * p[k];
        }
    }
}

/// Computes exp(M) = 1 + M (exp(M) − 1)/M from the result of `integrated`, times a factor.
#[device_fn(f64)]
fn exponential(m: &[f64; 6], p: &[f64; 6], factor: f64, out: &mut [f64; 6]) {
    for k in 0..3 {
        out[k] = factor * (1.0 + m[k] * p[k]);
    }
    out[3] = factor * (m[0] * p[3] + m[3] * p[1]);
    out[4] = factor * (m[0] * p[4] + m[3] * p[5] + m[4] * p[2]);
    out[5] = factor * (m[1] * p[5] + m[5] * p[2]);
}

/// Propagates the chains by half a step, and with them Σ m v_i v_j and ν.
#[device_fn(f64)]
fn half_chains_of_cell(g: &mut CellState, kt: f64, dt: f64) {
    let mut rate2 = 0.0;
    for k in 0..6 {
        rate2 += g.rate_mid[k] * g.rate_mid[k];
    }
    g.chains.two_k[0] = (g.kinetic[0] + g.kinetic[1] + g.kinetic[2]) / kt * g.chains.share[0];
    g.chains.two_k[1] = g.inertia * rate2 * g.chains.share[1];
    propagate_chains(&mut g.chains, dt);
    for k in 0..6 {
        g.kinetic[k] *= g.chains.scale[0] * g.chains.scale[0];
        g.rate_mid[k] *= g.chains.scale[1];
    }
}

/// Returns (d − 1) kT for the first axis, −(d − 1) kT for the last one, and 0 for others: the force of the potential that
/// corrects the measure of the box.
#[device_fn(f64)]
fn measure_force(dimensions: u32, axis: u32, kt: f64) -> f64 {
    let most = ((dimensions - 1) as f64) * kt;
    if axis == 0 {
        most
    } else if axis + 1 == dimensions {
        -most
    } else {
        0.0
    }
}

/// Applies internal and external pressure to the box for half a step.
#[device_fn(f64)]
fn half_kick_of_cell(
    g: &mut CellState,
    step: &Step<f64>,
    box_length: &[f64; 3],
    virial: &[f64; 3],
    shear_virial: &[f64; 3],
) {
    let kt = step.varying[0];
    let dimensions = g.dimensions;
    let volume = volume_of(dimensions, box_length);
    let h = 0.5 * step.dt / (g.inertia * kt);
    let common = (g.kinetic[0] + g.kinetic[1] + g.kinetic[2]) * g.chains.share[0] - step.varying[1] * volume;
    for k in 0..dimensions {
        let force = common + measure_force(dimensions, k, kt) - g.deviator[k] * volume;
        g.rate_mid[k] += h * (g.kinetic[k] + virial[k] + force);
    }
    for k in 0..(if dimensions == 3 { 3u32 } else { 1u32 }) {
        g.rate_mid[3 + k] += h * (g.kinetic[3 + k] + shear_virial[k] - g.deviator[3 + k] * volume);
    }
}

/// Performs the half step at the start of a step, from the state at the end of the last step.
#[device_fn(f64)]
fn begin_cell_step(
    g: &mut CellState,
    step: &Step<f64>,
    box_length: &[f64; 3],
    virial: &[f64; 3],
    shear_virial: &[f64; 3],
) {
    let kt = step.varying[0];
    let last = if g.dimensions == 3 { box_length[2] } else { box_length[1] };
    let mut energy = g.work + step.varying[1] * volume_of(g.dimensions, box_length);
    energy -= measure_force(g.dimensions, 0, kt) * (box_length[0] / last).ln();
    for k in 0..6 {
        g.rate_mid[k] = g.rate[k];
        energy += 0.5 * g.inertia * kt * g.rate[k] * g.rate[k];
    }
    energy += start_chains(&mut g.chains, kt);
    g.reservoir = energy;
    half_chains_of_cell(g, kt, step.dt);
    half_kick_of_cell(g, step, box_length, virial, shear_virial);
    let scale = g.chains.scale[0];
    let drag = (g.rate_mid[0] + g.rate_mid[1] + g.rate_mid[2]) * g.chains.share[0];
    for k in 0..6 {
        g.exponent[k] = -0.5 * step.dt * (g.rate_mid[k] + if k < 3 { drag } else { 0.0 });
    }
    integrated(&g.exponent, &mut g.kick);
    exponential(&g.exponent, &g.kick, 1.0, &mut g.keep);
    exponential(&g.exponent, &g.kick, scale, &mut g.begin_keep);
    for k in 0..6 {
        g.exponent[k] = step.dt * g.rate_mid[k];
    }
    integrated(&g.exponent, &mut g.flight);
    for k in 0..6 {
        g.flight[k] *= step.dt;
    }
}

/// Stores Σ m v_i v_j.
#[device_fn(f64)]
fn store_tensor(g: &mut CellState, sums: &[f64; 8]) {
    for k in 0..6 {
        g.kinetic[k] = sums[k];
    }
}

/// Returns m v_i v_j of a particle.
#[device_fn]
fn flux(v: Vec3<real>, mass: real) -> (real, real, real, real, real, real) {
    let p = v * mass;
    (p.x * v.x, p.y * v.y, p.z * v.z, p.x * v.y, p.x * v.z, p.y * v.z)
}

#[particle_fn(TriclinicMtkNpt)]
fn measure(velocity: Vec3<real>, mass: real) -> (real, real, real, real, real, real) {
    flux(velocity, mass)
}

/// Initializes the chains before the first step and after other components have changed velocities.
#[scalar_fn(TriclinicMtkNpt)]
fn begin(
    g: &mut CellState,
    sums: &[f64; 8],
    step: &Step<f64>,
    box_length: &[f64; 3],
    virial: &[f64; 3],
    shear_virial: &[f64; 3],
) {
    store_tensor(g, sums);
    begin_cell_step(g, step, box_length, virial, shear_virial);
}

/// Deforms the box: its edges are multiplied by exp(ν dt).
#[scalar_fn(TriclinicMtkNpt)]
fn deform(g: &mut CellState, step: &Step<f64>, box_length: &mut [f64; 3], tilt: &mut [f64; 3]) {
    let before = volume_of(g.dimensions, box_length);
    let inverse = 1.0 / step.dt;
    // exp(ν dt) − 1 = ν times the time of the flight
    let x = 1.0 + g.exponent[0] * g.flight[0] * inverse;
    let y = 1.0 + g.exponent[1] * g.flight[1] * inverse;
    let z = 1.0 + g.exponent[2] * g.flight[2] * inverse;
    let xy = (g.exponent[0] * g.flight[3] + g.exponent[3] * g.flight[1]) * inverse;
    let xz = (g.exponent[0] * g.flight[4] + g.exponent[3] * g.flight[5] + g.exponent[4] * g.flight[2]) * inverse;
    let yz = (g.exponent[1] * g.flight[5] + g.exponent[5] * g.flight[2]) * inverse;
    tilt[1] = (x * tilt[1] + xy * tilt[2] + xz) / z;
    tilt[0] = (x * tilt[0] + xy) / y;
    tilt[2] = (y * tilt[2] + yz) / z;
    box_length[0] *= x;
    box_length[1] *= y;
    box_length[2] *= z;
    let volume = 0.5 * (before + volume_of(g.dimensions, box_length));
    for k in 0..6 {
        g.work += volume * g.deviator[k] * g.exponent[k];
    }
}

/// Returns the velocity after half a kick; `keep` is the matrix that multiplies the old velocity.
#[device_fn]
fn kicked_in_cell(
    v: Vec3<real>,
    force: Vec3<real>,
    mass: real,
    g: &CellState,
    half: real,
    keep: &[f64; 6],
) -> Vec3<real> {
    let f = force * (half / mass);
    let kept = Vec3::new(
        scaled_number(v.x, keep[0]) + v.y * (keep[3] as real) + v.z * (keep[4] as real),
        scaled_number(v.y, keep[1]) + v.z * (keep[5] as real),
        scaled_number(v.z, keep[2]),
    );
    let push = Vec3::new(
        f.x * (g.kick[0] as real) + f.y * (g.kick[3] as real) + f.z * (g.kick[4] as real),
        f.y * (g.kick[1] as real) + f.z * (g.kick[5] as real),
        f.z * (g.kick[2] as real),
    );
    kept + push
}

#[particle_fn(TriclinicMtkNpt)]
fn first_half(
    velocity: &mut Vec3<real>,
    force: Vec3<real>,
    mass: real,
    displacement: &mut Vec3<real>,
    g: &CellState,
    step: &Step<real>,
) {
    let v = kicked_in_cell(*velocity, force, mass, g, 0.5 * step.dt, &g.begin_keep);
    *velocity = v;
    *displacement = Vec3::new(
        v.x * (g.flight[0] as real) + v.y * (g.flight[3] as real) + v.z * (g.flight[4] as real),
        v.y * (g.flight[1] as real) + v.z * (g.flight[5] as real),
        v.z * (g.flight[2] as real),
    );
}

#[particle_fn(TriclinicMtkNpt)]
fn second_half(
    velocity: &mut Vec3<real>,
    force: Vec3<real>,
    mass: real,
    g: &CellState,
    step: &Step<real>,
) -> (real, real, real, real, real, real) {
    let v = kicked_in_cell(*velocity, force, mass, g, 0.5 * step.dt, &g.keep);
    *velocity = v;
    flux(v, mass)
}

/// Performs the half step that ends this step and the one that starts the next.
#[scalar_fn(TriclinicMtkNpt)]
fn barostat(
    g: &mut CellState,
    sums: &[f64; 8],
    step: &Step<f64>,
    box_length: &[f64; 3],
    virial: &[f64; 3],
    shear_virial: &[f64; 3],
) {
    store_tensor(g, sums);
    half_kick_of_cell(g, step, box_length, virial, shear_virial);
    half_chains_of_cell(g, step.varying[0], step.dt);
    g.end_scale = g.chains.scale[0];
    for k in 0..6 {
        g.rate[k] = g.rate_mid[k];
    }
    end_chains(&mut g.chains);
    begin_cell_step(g, step, box_length, virial, shear_virial);
}

#[particle_fn(TriclinicMtkNpt)]
fn rescale(velocity: &mut Vec3<real>, g: &CellState) {
    *velocity = scaled(*velocity, g.end_scale);
}

impl Integrator for TriclinicMtkNpt {
    type State = CellState;
    type Extra<R: Real> = NoArrays<R>;

    fn program() -> Program<Self> {
        Program::new()
            .start::<measure>()
            .start_scalar::<begin>()
            .before_scalar::<deform>()
            .before::<first_half>()
            .after::<second_half>()
            .after_scalar::<barostat>()
            .after::<rescale>()
    }
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.box_axes = std::array::from_fn(|k| k < system.dimensions as usize);
        let [xx, yy, zz, _, xz, yz] = self.deviator;
        let size = self.deviator.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        if (xx + yy + zz).abs() > 1e-12 * size {
            return Err(Error::input(format!(
                "the first three numbers of `deviator` add up to {}, not 0; put the mean pressure into `pressure`",
                xx + yy + zz
            )));
        }
        if system.dimensions == 2 && [zz, xz, yz] != [0.0; 3] {
            return Err(Error::input("zz, xz and yz of `deviator` must be 0 in two dimensions"));
        }
        needs.varyings = vec![self.kt, self.pressure];
        needs.rescales = true;
        check_time("tau", &self.tau, system.dt)?;
        check_time("tau_p", &self.tau_p, system.dt)
    }
    fn state(&self, group: &GroupInfo) -> Result<CellState> {
        let npt = MtkNpt::new(self.kt, self.tau.clone(), self.pressure, self.tau_p.clone(), Couple::None, self.length);
        let variables = if group.dimensions == 3 { 6.0 } else { 3.0 };
        let (chains, inertia) = npt.chains(group, variables, [0.0; 2])?;
        let dimensions = group.dimensions;
        Ok(CellState { chains, dimensions, inertia, end_scale: 1.0, deviator: self.deviator, ..CellState::default() })
    }
    fn conserved(state: &CellState) -> f64 {
        state.reservoir
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// exp(M) exp(−M) = 1, and the derivative of exp(sM) is M exp(sM).
    #[test]
    fn exponentials_of_triangular_matrices() {
        let m = [0.1, -0.05, 0.07, 0.12, -0.08, 0.06];
        let exp = |s: f64| {
            let scaled = m.map(|x| s * x);
            let (mut p, mut out) = ([0.0; 6], [0.0; 6]);
            integrated(&scaled, &mut p);
            exponential(&scaled, &p, 1.0, &mut out);
            out
        };
        let times = |a: [f64; 6], b: [f64; 6]| {
            [
                a[0] * b[0],
                a[1] * b[1],
                a[2] * b[2],
                a[0] * b[3] + a[3] * b[1],
                a[0] * b[4] + a[3] * b[5] + a[4] * b[2],
                a[1] * b[5] + a[5] * b[2],
            ]
        };
        let one = times(exp(1.0), exp(-1.0));
        let errors = one.iter().zip([1.0, 1.0, 1.0, 0.0, 0.0, 0.0]).map(|(a, b)| (a - b).abs());
        assert!(errors.fold(0.0, f64::max) < 1e-15, "{one:?}");
        let (a, b, h) = (exp(1.0 + 1e-5), exp(1.0 - 1e-5), 2e-5);
        let slope: [f64; 6] = std::array::from_fn(|k| (a[k] - b[k]) / h);
        let expected = times(m, exp(1.0));
        assert!((0..6).all(|k| (slope[k] - expected[k]).abs() < 1e-10), "{slope:?} {expected:?}");
    }
}
