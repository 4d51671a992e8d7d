//! Disk-like and rod-like particles.

use crate::felt;
use galamost_plugin_api::prelude::*;

/// α, μ and ν.
#[derive(Debug, PairParams)]
pub struct SoftRow<real> {
    alpha: real,
    mu: real,
    nu: real,
}

/// Parameters of one pair of types of disks.
#[derive(Clone, Debug, Params)]
pub struct DiskInput {
    /// α, strength of the repulsion.
    #[param(unit = "energy", at_least = 0.0)]
    alpha: f64,
    /// μ, how much of it the orientations take away; 0 for a particle without an axis.
    #[param(at_least = 0.0)]
    mu: f64,
    /// ν, how sharply: an even whole number, for f may be negative.
    #[param(default = 2.0, at_least = 2.0, at_most = 32.0)]
    nu: f64,
}

impl RowInput for DiskInput {
    type Settings = NoSettings;
    type Row = SoftRow<f64>;
    const OWN_CUTOFF: bool = true;
    fn row(&self, _: &NoSettings) -> std::result::Result<SoftRow<f64>, String> {
        if self.nu % 2.0 != 0.0 {
            return Err(format!("nu = {}: disks need an even whole number, for f may be negative", self.nu));
        }
        Ok(SoftRow { alpha: self.alpha, mu: self.mu, nu: self.nu })
    }
    fn cutoff(&self, _: &NoSettings, _: &SystemInfo) -> Option<f64> {
        Some(1.0)
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Option<SoftRow<f64>> {
        let nu = 2.0 * (1.0 + 2.9 * random()).floor();
        Some(SoftRow { alpha: 100.0 * random(), mu: 2.0 * random(), nu })
    }
}

/// Parameters of one pair of types of rods.
#[derive(Clone, Debug, Params)]
pub struct RodInput {
    /// α, strength of the repulsion.
    #[param(unit = "energy", at_least = 0.0)]
    alpha: f64,
    /// μ, how much of it the orientations take away; 0 for a particle without an axis.
    #[param(at_least = 0.0)]
    mu: f64,
    /// ν, how sharply.
    #[param(default = 2.0, at_least = 1.0, at_most = 32.0)]
    nu: f64,
}

impl RowInput for RodInput {
    type Settings = NoSettings;
    type Row = SoftRow<f64>;
    const OWN_CUTOFF: bool = true;
    fn row(&self, _: &NoSettings) -> std::result::Result<SoftRow<f64>, String> {
        Ok(SoftRow { alpha: self.alpha, mu: self.mu, nu: self.nu })
    }
    fn cutoff(&self, _: &NoSettings, _: &SystemInfo) -> Option<f64> {
        Some(1.0)
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Option<SoftRow<f64>> {
        Some(SoftRow { alpha: 100.0 * random(), mu: 2.0 * random(), nu: 2.0 + 3.0 * random() })
    }
}

/// U = (1 − μ f^ν)(α/2)(1 − r)² from |f|^(ν−1) and its slopes: energy, ∂U/∂r, ∂U/∂f for f > 0.
#[device_fn]
fn soft(r: real, f: real, p: &SoftRow<real>) -> (real, real, real) {
    // f^(ν−1), kept a number where f is 0
    let g = f.max(1e-20).powf(p.nu - 1.0);
    let depth = 1.0 - r;
    let shape = 1.0 - p.mu * g * f;
    (0.5 * p.alpha * shape * depth * depth, -p.alpha * shape * depth, -0.5 * p.alpha * p.mu * p.nu * g * depth * depth)
}

/// Soft disks: U = (1 − μ f^ν)(α/2)(1 − r)² for r < 1, f = (n_i·e)(n_j·e), e along r = r_i − r_j.
///
/// n is the disk's axis, the unit of length its diameter. f is 1 for disks that lie face to face, so that μ > 0 makes
/// them stack into columns. ν must be an even whole number: f is negative where the axes point apart, and turning an
/// axis round must change nothing. Types without an axis, a solvent, take part with μ = 0; they still need an orientation.
///
/// Reference: Zhu, Liu, Li, Qian, Milano & Lu, J. Comput. Chem. 34 (2013) 2197, doi:10.1002/jcc.23365, eqs 13–16.
///
/// ```ron
/// SoftDisk(pairs: {
///     ("A", "A"): (alpha: 50.0, mu: 1.0, nu: 2.0), ("A", "B"): (alpha: 50.0, mu: 0.0), ("B", "B"): (alpha: 50.0, mu: 1.5, nu: 4.0),
/// })
/// ```
#[oriented_pair_potential("SoftDisk", input = DiskInput)]
fn soft_disk(
    r: Vec3<real>,
    r2: real,
    axis_i: Vec3<real>,
    axis_j: Vec3<real>,
    p: &SoftRow<real>,
) -> (Vec3<real>, Vec3<real>, real) {
    let inv_r = r2.rsqrt();
    let e = r * inv_r;
    let c_i = -axis_i.dot(e);
    let c_j = axis_j.dot(e);
    let f = -c_i * c_j;
    let (u, slope, by_f) = soft(r2 * inv_r, f.abs(), p);
    let by_f = if f < 0.0 { -by_f } else { by_f };
    let (force, torque) = felt(e, inv_r, axis_i, axis_j, slope, -by_f * c_j, -by_f * c_i);
    (force, torque, u)
}

/// Soft rods: U = (1 − μ f^ν)(α/2)(1 − r)² for r < 1, f = sin θ_i sin θ_j, θ the angle between axis and line of centers.
///
/// n is the rod's axis. f is 1 for rods side by side, so that μ > 0 makes them lie parallel in a layer. Turning an axis
/// round changes nothing. Types without an axis, a solvent, take part with μ = 0; they still need an orientation.
///
/// Reference: Zhu, Liu, Li, Qian, Milano & Lu, J. Comput. Chem. 34 (2013) 2197, doi:10.1002/jcc.23365, eqs 13, 17.
///
/// ```ron
/// SoftRod(pairs: {
///     ("A", "A"): (alpha: 50.0, mu: 1.0, nu: 2.0), ("A", "B"): (alpha: 50.0, mu: 0.0), ("B", "B"): (alpha: 50.0, mu: 1.5, nu: 3.0),
/// })
/// ```
#[oriented_pair_potential("SoftRod", input = RodInput)]
fn soft_rod(
    r: Vec3<real>,
    r2: real,
    axis_i: Vec3<real>,
    axis_j: Vec3<real>,
    p: &SoftRow<real>,
) -> (Vec3<real>, Vec3<real>, real) {
    let inv_r = r2.rsqrt();
    let e = r * inv_r;
    let c_i = -axis_i.dot(e);
    let c_j = axis_j.dot(e);
    // from the cross product, where 1 − c² would lose its digits
    let s_i = axis_i.cross(e).norm().max(1e-10);
    let s_j = axis_j.cross(e).norm().max(1e-10);
    let (u, slope, by_f) = soft(r2 * inv_r, s_i * s_j, p);
    let (force, torque) = felt(e, inv_r, axis_i, axis_j, slope, -by_f * c_i * s_j / s_i, -by_f * c_j * s_i / s_j);
    (force, torque, u)
}
