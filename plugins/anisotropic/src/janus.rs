//! Particles with one or two sticky patches.

use crate::felt;
use galamost_plugin_api::prelude::*;
use std::f64::consts::FRAC_PI_2;

/// Parameters of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct JanusInput {
    /// α_R, strength of the repulsion.
    #[param(unit = "energy", above = 0.0)]
    alpha_r: f64,
    /// α_A, strength of the attraction of patches; 0 with a particle that has none.
    #[param(unit = "energy", at_least = 0.0)]
    alpha_a: f64,
    /// β, half the angle that a patch takes up, in degrees.
    #[param(unit = "degree", above = 0.0, at_most = 180.0)]
    beta_deg: f64,
    /// ν, how flat the patch is: below 1 flatter, with a force without bound at its edge, which is cut off.
    #[param(default = 0.5, above = 0.0, at_most = 16.0)]
    nu: f64,
}

/// α_R, α_A, cos β, q = π/2β, ν, and the f below which there is no attraction.
#[derive(Debug, PairParams)]
pub struct JanusRow<real> {
    alpha_r: real,
    alpha_a: real,
    cos_beta: real,
    q: real,
    nu: real,
    least: real,
}

/// The row of a model with these numbers.
fn row(alpha_r: f64, alpha_a: f64, beta_deg: f64, nu: f64) -> JanusRow<f64> {
    let beta = beta_deg.to_radians();
    // f^(ν−1) grows without bound towards the edge: what lies below 10⁻⁴ of the center's f is left out
    let least = if nu < 1.0 { 1e-4 } else { 1e-20 };
    JanusRow { alpha_r, alpha_a, cos_beta: beta.cos(), q: FRAC_PI_2 / beta, nu, least }
}

impl RowInput for JanusInput {
    type Settings = NoSettings;
    type Row = JanusRow<f64>;
    const OWN_CUTOFF: bool = true;
    fn row(&self, _: &NoSettings) -> std::result::Result<JanusRow<f64>, String> {
        Ok(row(self.alpha_r, self.alpha_a, self.beta_deg, self.nu))
    }
    fn cutoff(&self, _: &NoSettings, _: &SystemInfo) -> Option<f64> {
        Some(1.0)
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Option<JanusRow<f64>> {
        Some(row(396.0, 88.0 + 200.0 * random(), 60.0 + 110.0 * random(), 2.0 + random()))
    }
}

/// Parameters of one pair of types with two patches each.
#[derive(Clone, Debug, Params)]
pub struct TriblockInput {
    /// α_R, strength of the repulsion.
    #[param(unit = "energy", above = 0.0)]
    alpha_r: f64,
    /// α_A, strength of the attraction of patches; 0 with a particle that has none.
    #[param(unit = "energy", at_least = 0.0)]
    alpha_a: f64,
    /// β, half the angle that a patch takes up, in degrees; two of more than 90° would overlap.
    #[param(unit = "degree", above = 0.0, at_most = 90.0)]
    beta_deg: f64,
    /// ν, how flat the patch is: below 1 flatter, with a force without bound at its edge, which is cut off.
    #[param(default = 0.5, above = 0.0, at_most = 16.0)]
    nu: f64,
}

impl RowInput for TriblockInput {
    type Settings = NoSettings;
    type Row = JanusRow<f64>;
    const OWN_CUTOFF: bool = true;
    fn row(&self, _: &NoSettings) -> std::result::Result<JanusRow<f64>, String> {
        Ok(row(self.alpha_r, self.alpha_a, self.beta_deg, self.nu))
    }
    fn cutoff(&self, _: &NoSettings, _: &SystemInfo) -> Option<f64> {
        Some(1.0)
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Option<JanusRow<f64>> {
        Some(row(396.0, 132.0, 40.0 + 50.0 * random(), 2.0 + random()))
    }
}

/// cos(q θ) and its slope by cos θ, q sin(q θ)/sin θ.
#[device_fn]
pub fn patch(c: real, q: real) -> (real, real) {
    let theta = c.min(1.0).max(-1.0).acos();
    let s = (1.0 - c * c).max(0.0).sqrt();
    // sin(q θ)/sin θ goes to q at the center of the patch
    let ratio = if s > 1e-4 { (q * theta).sin() / s.max(1e-4) } else { q };
    ((q * theta).cos(), q * ratio)
}

/// U = (α_R/2)(1 − r)² − f^ν (α_A/2)(r − r²): energy, ∂U/∂r, ∂U/∂f; f = 0 outside the patches.
#[device_fn]
fn sticky(r: real, f: real, p: &JanusRow<real>) -> (real, real, real) {
    let inside = f > p.least;
    let safe = if inside { f } else { 1.0 };
    let power = safe.powf(p.nu);
    let share = if inside { power } else { 0.0 };
    let by_f = if inside { p.nu * power / safe } else { 0.0 };
    let well = 0.5 * p.alpha_a * (r - r * r);
    let depth = 1.0 - r;
    (
        0.5 * p.alpha_r * depth * depth - share * well,
        -p.alpha_r * depth - share * 0.5 * p.alpha_a * (1.0 - 2.0 * r),
        -by_f * well,
    )
}

/// Soft Janus particles: U = (α_R/2)(1 − r)² − f^ν (α_A/2)(r − r²) for r < 1.
///
/// f = cos(q θ_i) cos(q θ_j), q = π/2β, where the line of centers leaves both particles through their patches, θ ≤ β; else
/// 0. θ_i is the angle of the axis of i with the direction towards j, and θ_j likewise. The unit of length is the range of
/// the repulsion. Two patches face to face have the well −α_A²/(8(α_R + α_A)) at r = (α_R + α_A/2)/(α_R + α_A). Pairs with
/// a particle without patch have α_A = 0.
///
/// ν = ½ is usual; its force at the edge of a patch has no bound, and f below 10⁻⁴ counts as 0 (a step of U of less than
/// 10⁻² of the well): energy is not kept as well as for ν ≥ 1.
///
/// Reference: Zhu, Liu, Li, Qian, Milano & Lu, J. Comput. Chem. 34 (2013) 2197, doi:10.1002/jcc.23365, eqs 18–21; Li, Lu,
/// Sun & An, Soft Matter 8 (2012) 6693, doi:10.1039/c2sm25437a.
///
/// ```ron
/// Janus(pairs: {
///     ("A", "A"): (alpha_r: 396.0, alpha_a: 132.0, beta_deg: 90.0, nu: 2.0),
///     ("A", "B"): (alpha_r: 396.0, alpha_a: 100.0, beta_deg: 120.0, nu: 2.0),
///     ("B", "B"): (alpha_r: 396.0, alpha_a: 88.0, beta_deg: 60.0, nu: 3.0),
/// })
/// ```
#[oriented_pair_potential("Janus", input = JanusInput)]
fn janus(
    r: Vec3<real>,
    r2: real,
    axis_i: Vec3<real>,
    axis_j: Vec3<real>,
    p: &JanusRow<real>,
) -> (Vec3<real>, Vec3<real>, real) {
    let inv_r = r2.rsqrt();
    let e = r * inv_r;
    let c_i = -axis_i.dot(e);
    let c_j = axis_j.dot(e);
    let (a, a_slope) = patch(c_i, p.q);
    let (b, b_slope) = patch(c_j, p.q);
    let facing = (c_i >= p.cos_beta) && (c_j >= p.cos_beta);
    let f = if facing { a * b } else { 0.0 };
    let (u, slope, by_f) = sticky(r2 * inv_r, f, p);
    let (force, torque) = felt(e, inv_r, axis_i, axis_j, slope, by_f * a_slope * b, by_f * a * b_slope);
    (force, torque, u)
}

/// Soft triblock Janus particles: as `Janus`, with a patch at both ends of the axis: θ = arccos |c|.
///
/// β is at most 90°. Turning an axis round changes nothing.
///
/// Reference: Zhu, Liu, Li, Qian, Milano & Lu, J. Comput. Chem. 34 (2013) 2197, doi:10.1002/jcc.23365, eqs 22–24 (there
/// the condition of eq 22 means |cos θ| ≥ cos β).
///
/// ```ron
/// TriblockJanus(pairs: {
///     ("A", "A"): (alpha_r: 396.0, alpha_a: 132.0, beta_deg: 65.0, nu: 2.0),
///     ("A", "B"): (alpha_r: 396.0, alpha_a: 100.0, beta_deg: 50.0, nu: 2.0),
///     ("B", "B"): (alpha_r: 396.0, alpha_a: 88.0, beta_deg: 40.0, nu: 3.0),
/// })
/// ```
#[oriented_pair_potential("TriblockJanus", input = TriblockInput)]
fn triblock_janus(
    r: Vec3<real>,
    r2: real,
    axis_i: Vec3<real>,
    axis_j: Vec3<real>,
    p: &JanusRow<real>,
) -> (Vec3<real>, Vec3<real>, real) {
    let inv_r = r2.rsqrt();
    let e = r * inv_r;
    let c_i = -axis_i.dot(e);
    let c_j = axis_j.dot(e);
    let (a, a_slope) = patch(c_i.abs(), p.q);
    let (b, b_slope) = patch(c_j.abs(), p.q);
    let facing = (c_i.abs() >= p.cos_beta) && (c_j.abs() >= p.cos_beta);
    let f = if facing { a * b } else { 0.0 };
    let (u, slope, by_f) = sticky(r2 * inv_r, f, p);
    let side_i = if c_i < 0.0 { -1.0 } else { 1.0 };
    let side_j = if c_j < 0.0 { -1.0 } else { 1.0 };
    let (force, torque) =
        felt(e, inv_r, axis_i, axis_j, slope, by_f * a_slope * b * side_i, by_f * a * b_slope * side_j);
    (force, torque, u)
}
