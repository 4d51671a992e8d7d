//! Janus particles with one or two attractive patches.

use crate::{force_and_torque, inverse_distance};
use galamost_plugin_api::prelude::*;
use std::f64::consts::FRAC_PI_2;

/// Parameters of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct JanusInput {
    /// Repulsion strength α_R.
    #[param(unit = "energy", above = 0.0)]
    alpha_r: f64,
    /// Patch attraction strength α_A; 0 for pairs with a particle without patches.
    #[param(unit = "energy", at_least = 0.0)]
    alpha_a: f64,
    /// Half opening angle β of a patch.
    #[param(unit = "degree", above = 0.0, at_most = 180.0)]
    beta_deg: f64,
    /// Exponent ν of the patch profile; below 1 the profile is flatter and the force diverges at the edge, where it is truncated.
    #[param(default = 0.5, above = 0.0, at_most = 16.0)]
    nu: f64,
}

/// Coefficients α_R, α_A, cos β, q = π/2β, ν, and the f below which the attraction is 0.
#[derive(Debug, PairParams)]
pub struct JanusRow<real> {
    alpha_r: real,
    alpha_a: real,
    cos_beta: real,
    q: real,
    nu: real,
    f_min: real,
}

/// The f below which the attraction is 0, for ν < 1: f^(ν−1) diverges at the edge of a patch.
const F_MIN: f64 = 1e-4;
/// ν below which the check warns about the step of U there.
const LEAST_NU: f64 = 0.5;

/// Returns the step of U at the edge of a patch in units of the well depth α_A²/(8(α_R + α_A)), at the distance r.
fn edge_step(alpha_r: f64, alpha_a: f64, nu: f64, r: f64) -> f64 {
    F_MIN.powf(nu) * 4.0 * (alpha_r + alpha_a) / alpha_a * (r - r * r)
}

/// Returns a warning about an exponent with which the step at the edge of a patch is a large part of the well.
pub fn edge_warning(alpha_r: f64, alpha_a: f64, nu: f64) -> Option<String> {
    let is_steep = nu < LEAST_NU && alpha_a > 0.0;
    let percent = 100.0 * edge_step(alpha_r, alpha_a, nu, 0.5);
    is_steep.then(|| {
        format!(
            "nu = {nu}: at the edge of a patch, U has a step of up to {percent:.1} % of the well (alpha_r {alpha_r}, alpha_a {alpha_a}), \
             without a corresponding force; use nu ≥ {LEAST_NU}"
        )
    })
}

/// Returns the coefficients for these parameters.
fn row(alpha_r: f64, alpha_a: f64, beta_deg: f64, nu: f64) -> JanusRow<f64> {
    let beta = beta_deg.to_radians();
    let f_min = if nu < 1.0 { F_MIN } else { 1e-20 };
    JanusRow { alpha_r, alpha_a, cos_beta: beta.cos(), q: FRAC_PI_2 / beta, nu, f_min }
}

impl RowInput for JanusInput {
    type Settings = NoSettings;
    type Row = JanusRow<f64>;
    const OWN_CUTOFF: bool = true;
    fn row(&self, _: &NoSettings) -> std::result::Result<JanusRow<f64>, String> {
        Ok(row(self.alpha_r, self.alpha_a, self.beta_deg, self.nu))
    }
    fn warning(&self, _: &NoSettings) -> Option<String> {
        edge_warning(self.alpha_r, self.alpha_a, self.nu)
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
    /// Repulsion strength α_R.
    #[param(unit = "energy", above = 0.0)]
    alpha_r: f64,
    /// Patch attraction strength α_A; 0 for pairs with a particle without patches.
    #[param(unit = "energy", at_least = 0.0)]
    alpha_a: f64,
    /// Half opening angle β of a patch; two patches above 90° would overlap.
    #[param(unit = "degree", above = 0.0, at_most = 90.0)]
    beta_deg: f64,
    /// Exponent ν of the patch profile; below 1 the profile is flatter and the force diverges at the edge, where it is truncated.
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
    fn warning(&self, _: &NoSettings) -> Option<String> {
        edge_warning(self.alpha_r, self.alpha_a, self.nu)
    }
    fn cutoff(&self, _: &NoSettings, _: &SystemInfo) -> Option<f64> {
        Some(1.0)
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Option<JanusRow<f64>> {
        Some(row(396.0, 132.0, 40.0 + 50.0 * random(), 2.0 + random()))
    }
}

/// Parameters of one pair of types with a band each.
#[derive(Clone, Debug, Params)]
pub struct BandInput {
    /// Repulsion strength α_R.
    #[param(unit = "energy", above = 0.0)]
    alpha_r: f64,
    /// Band attraction strength α_A; 0 for pairs with a particle without a band.
    #[param(unit = "energy", at_least = 0.0)]
    alpha_a: f64,
    /// Half the opening angle β of the band: the largest angle to the equatorial plane.
    #[param(unit = "degree", above = 0.0, below = 90.0)]
    beta_deg: f64,
    /// Exponent ν of the band profile; below 1 the profile is flatter and the force diverges at the edge, where it is truncated.
    #[param(default = 0.5, above = 0.0, at_most = 16.0)]
    nu: f64,
}

impl RowInput for BandInput {
    type Settings = NoSettings;
    type Row = JanusRow<f64>;
    const OWN_CUTOFF: bool = true;
    fn row(&self, _: &NoSettings) -> std::result::Result<JanusRow<f64>, String> {
        Ok(row(self.alpha_r, self.alpha_a, self.beta_deg, self.nu))
    }
    fn warning(&self, _: &NoSettings) -> Option<String> {
        edge_warning(self.alpha_r, self.alpha_a, self.nu)
    }
    fn cutoff(&self, _: &NoSettings, _: &SystemInfo) -> Option<f64> {
        Some(1.0)
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Option<JanusRow<f64>> {
        Some(row(396.0, 132.0, 20.0 + 50.0 * random(), 2.0 + random()))
    }
}

/// Returns cos(q θ) and its derivative with respect to cos θ, q sin(q θ)/sin θ.
#[device_fn]
pub fn patch(c: real, q: real) -> (real, real) {
    let theta = c.min(1.0).max(-1.0).acos();
    let s = (1.0 - c * c).max(0.0).sqrt();
    // sin(q θ)/sin θ tends to q at the center of the patch
    let ratio = if s > 1e-4 { (q * theta).sin() / s.max(1e-4) } else { q };
    ((q * theta).cos(), q * ratio)
}

/// Returns cos(q θ) with θ = arcsin |c|, its derivative with respect to c, and cos θ.
#[device_fn]
fn band(c: real, q: real) -> (real, real, real) {
    let cos = (1.0 - c * c).max(0.0).sqrt();
    let theta = c.abs().atan2(cos);
    let slope = -q * (q * theta).sin() / cos.max(1e-4);
    ((q * theta).cos(), if c < 0.0 { -slope } else { slope }, cos)
}

/// Returns U, ∂U/∂r and ∂U/∂f of U = (α_R/2)(1 − r)² − f^ν (α_A/2)(r − r²); f = 0 outside the patches.
#[device_fn]
fn patchy(r: real, f: real, p: &JanusRow<real>) -> (real, real, real) {
    let inside = f > p.f_min;
    let safe = if inside { f } else { 1.0 };
    let power = safe.powf(p.nu);
    let profile = if inside { power } else { 0.0 };
    let du_df = if inside { p.nu * power / safe } else { 0.0 };
    let well = 0.5 * p.alpha_a * (r - r * r);
    let depth = 1.0 - r;
    (
        0.5 * p.alpha_r * depth * depth - profile * well,
        -p.alpha_r * depth - profile * 0.5 * p.alpha_a * (1.0 - 2.0 * r),
        -du_df * well,
    )
}

/// Soft Janus particles: U = (α_R/2)(1 − r)² − f^ν (α_A/2)(r − r²) for r < 1.
///
/// f = cos(q θ_i) cos(q θ_j), q = π/2β, if the center line crosses both patches (θ ≤ β), else 0. θ_i is the angle between the
/// axis of i and the direction to j, and θ_j correspondingly. The unit of length is the range of the repulsion, so the
/// cutoff is 1. Two patches face to face have the well −α_A²/(8(α_R + α_A)) at r = (α_R + α_A/2)/(α_R + α_A). For pairs
/// with a particle without a patch set α_A = 0.
///
/// At r = 0 the direction is undefined: U = α_R/2, and force and torque are 0.
///
/// ν = ½ is the common choice. For ν < 1 the force diverges at the edge of a patch, and f below 10⁻⁴ counts as 0. This leaves a
/// step in U of 10^(−4ν) (α_A/2)(r − r²), without a corresponding force. In units of the well it is 10^(−4ν) 4 (α_R + α_A)(r − r²)/α_A.
/// For α_R = 396 and α_A = 132 it is 4.0 % at r = 0.5 and 1.75 % at the minimum r = 0.875 with ν = ½, 40 % and 17.5 % with ν = ¼,
/// 159 % and 70 % with ν = 0.1. Energy conservation is therefore worse than for ν ≥ 1, and the check warns if ν < ½.
///
/// At the cutoff r = 1 the attraction jumps from f^ν α_A/2 to 0 for every ν. The error of the energy is therefore of first
/// order in dt.
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
    let inv_r = inverse_distance(r2);
    let e = r * inv_r;
    let c_i = -axis_i.dot(e);
    let c_j = axis_j.dot(e);
    let (a, a_slope) = patch(c_i, p.q);
    let (b, b_slope) = patch(c_j, p.q);
    let facing = (c_i >= p.cos_beta) && (c_j >= p.cos_beta);
    let f = if facing { a * b } else { 0.0 };
    let (u, du_dr, du_df) = patchy(r2 * inv_r, f, p);
    let (force, torque) = force_and_torque(e, inv_r, axis_i, axis_j, du_dr, du_df * a_slope * b, du_df * a * b_slope);
    (force, torque, u)
}

/// Soft triblock Janus particles: `Janus` with a patch at both ends of the axis, θ = arccos |c|.
///
/// U = (α_R/2)(1 − r)² − f^ν (α_A/2)(r − r²) for r < 1, f = cos(q θ_i) cos(q θ_j), q = π/2β, if both θ ≤ β, else 0; c is
/// the cosine between axis and center line. β is at most 90°. U does not depend on the sign of an axis. On ν < 1 see
/// `Janus`.
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
    let inv_r = inverse_distance(r2);
    let e = r * inv_r;
    let c_i = -axis_i.dot(e);
    let c_j = axis_j.dot(e);
    let (a, a_slope) = patch(c_i.abs(), p.q);
    let (b, b_slope) = patch(c_j.abs(), p.q);
    let facing = (c_i.abs() >= p.cos_beta) && (c_j.abs() >= p.cos_beta);
    let f = if facing { a * b } else { 0.0 };
    let (u, du_dr, du_df) = patchy(r2 * inv_r, f, p);
    let side_i = if c_i < 0.0 { -1.0 } else { 1.0 };
    let side_j = if c_j < 0.0 { -1.0 } else { 1.0 };
    let (force, torque) =
        force_and_torque(e, inv_r, axis_i, axis_j, du_dr, du_df * a_slope * b * side_i, du_df * a * b_slope * side_j);
    (force, torque, u)
}

/// Soft triblock Janus particles with an attractive band around the equator and repulsive poles.
///
/// U = (α_R/2)(1 − r)² − f^ν (α_A/2)(r − r²) for r < 1, as for `TriblockJanus`, with θ measured from the equatorial plane:
/// f = cos(q θ_i) cos(q θ_j), q = π/2β, if both θ ≤ β, else 0, and θ = arcsin |c| with the cosine c between axis and center line.
/// β is below 90°. U does not depend on the sign of an axis. On ν < 1 see `Janus`.
///
/// Two particles whose axes are perpendicular to the center line have the well −α_A²/(8(α_R + α_A)) at
/// r = (α_R + α_A/2)/(α_R + α_A), for any angle between the axes.
///
/// Reference: Zhu, Liu, Li, Qian, Milano & Lu, J. Comput. Chem. 34 (2013) 2197, doi:10.1002/jcc.23365, eqs 22–24, with the band
/// in place of the two patches.
///
/// ```ron
/// BandJanus(pairs: {
///     ("A", "A"): (alpha_r: 396.0, alpha_a: 132.0, beta_deg: 40.0, nu: 2.0),
///     ("A", "B"): (alpha_r: 396.0, alpha_a: 100.0, beta_deg: 30.0, nu: 2.0),
///     ("B", "B"): (alpha_r: 396.0, alpha_a: 88.0, beta_deg: 50.0, nu: 3.0),
/// })
/// ```
#[oriented_pair_potential("BandJanus", input = BandInput)]
fn band_janus(
    r: Vec3<real>,
    r2: real,
    axis_i: Vec3<real>,
    axis_j: Vec3<real>,
    p: &JanusRow<real>,
) -> (Vec3<real>, Vec3<real>, real) {
    let inv_r = inverse_distance(r2);
    let e = r * inv_r;
    let (a, a_slope, a_cos) = band(-axis_i.dot(e), p.q);
    let (b, b_slope, b_cos) = band(axis_j.dot(e), p.q);
    let facing = (a_cos >= p.cos_beta) && (b_cos >= p.cos_beta);
    let f = if facing { a * b } else { 0.0 };
    let (u, du_dr, du_df) = patchy(r2 * inv_r, f, p);
    let (force, torque) = force_and_torque(e, inv_r, axis_i, axis_j, du_dr, du_df * a_slope * b, du_df * a * b_slope);
    (force, torque, u)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the page, and U on both sides of the edge.
    #[test]
    fn the_step_at_the_edge_of_a_patch_is_that_of_the_page() {
        let (alpha_r, alpha_a) = (396.0, 132.0);
        for (nu, half, minimum) in [(0.5, 0.04, 0.0175), (0.25, 0.4, 0.175), (0.1, 1.592, 0.697)] {
            for (r, step) in [(0.5, half), (0.875, minimum)] {
                let found = edge_step(alpha_r, alpha_a, nu, r);
                // the page has three digits
                assert!((found / step - 1.0).abs() < 1e-3, "ν = {nu}, r = {r}: {found}");
                let row = row(alpha_r, alpha_a, 90.0, nu);
                let u = |f: f64| patchy(r, f, &row).0;
                let jump = (u(0.999 * F_MIN) - u(1.001 * F_MIN)) / (alpha_a * alpha_a / (8.0 * (alpha_r + alpha_a)));
                // f differs from its limit by 1e-3
                assert!((jump / found - 1.0).abs() < 1e-3, "ν = {nu}, r = {r}: {jump} and {found}");
            }
        }
        assert!(edge_warning(alpha_r, alpha_a, 0.25).is_some_and(|w| w.contains("40.0 %")));
        assert!(edge_warning(alpha_r, alpha_a, 0.5).is_none() && edge_warning(alpha_r, 0.0, 0.25).is_none());
    }

    /// The well of two bands face to face, and the repulsion of poles.
    #[test]
    fn a_band_attracts_at_the_equator_and_not_at_the_poles() {
        let (alpha_r, alpha_a) = (396.0, 132.0);
        let row = BandInput { alpha_r, alpha_a, beta_deg: 35.0, nu: 2.0 }.row(&NoSettings).expect("a row");
        let (x, y, z) = (Vec3::new(1.0, 0.0, 0.0), Vec3::new(0.0, 1.0, 0.0), Vec3::new(0.0, 0.0, 1.0));
        let r = (alpha_r + alpha_a / 2.0) / (alpha_r + alpha_a);
        let well = -alpha_a * alpha_a / (8.0 * (alpha_r + alpha_a));
        for axis in [z, y, -z] {
            let (force, torque, u) = band_janus(x * r, r * r, z, axis, &row);
            assert!((u / well - 1.0).abs() < 1e-12 && force.norm() < 1e-12 && torque.norm() < 1e-12, "{u}");
        }
        let repulsion = 0.5 * alpha_r * (1.0 - r) * (1.0 - r);
        // a pole of one of them, of both, and an axis just outside of the band
        let outside = Vec3::new(35.01f64.to_radians().sin(), 0.0, 35.01f64.to_radians().cos());
        for (n_i, n_j) in [(x, z), (z, x), (x, x), (outside, z)] {
            assert!((band_janus(x * r, r * r, n_i, n_j, &row).2 / repulsion - 1.0).abs() < 1e-12);
        }
        // cos²(q θ) of one particle at 20°, with ν = 2
        let tilted = Vec3::new(20f64.to_radians().sin(), 0.0, 20f64.to_radians().cos());
        let f = (90f64.to_radians() * 20.0 / 35.0).cos();
        let u = repulsion - f * f * 0.5 * alpha_a * (r - r * r);
        assert!((band_janus(x * r, r * r, tilted, z, &row).2 - u).abs() < 1e-12);
    }
}
