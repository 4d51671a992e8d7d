//! Soft disks and rods.

use crate::{force_and_torque, inverse_distance};
use galamost_plugin_api::prelude::*;

/// Coefficients α, μ and ν.
#[derive(Debug, PairParams)]
pub struct SoftRow<real> {
    alpha: real,
    mu: real,
    nu: real,
}

/// Parameters of one pair of disk types.
#[derive(Clone, Debug, Params)]
pub struct DiskInput {
    /// Repulsion strength α.
    #[param(unit = "energy", at_least = 0.0)]
    alpha: f64,
    /// Anisotropy μ: how much the alignment reduces the repulsion; 0 for particles without an axis.
    #[param(at_least = 0.0)]
    mu: f64,
    /// Exponent ν of the alignment f; an even integer, since f can be negative.
    #[param(default = 2.0, at_least = 2.0, at_most = 32.0)]
    nu: f64,
}

impl RowInput for DiskInput {
    type Settings = NoSettings;
    type Row = SoftRow<f64>;
    const OWN_CUTOFF: bool = true;
    fn row(&self, _: &NoSettings) -> std::result::Result<SoftRow<f64>, String> {
        if self.nu % 2.0 != 0.0 {
            return Err(format!("nu = {}: disks need an even integer, since f can be negative", self.nu));
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

/// Parameters of one pair of rod types.
#[derive(Clone, Debug, Params)]
pub struct RodInput {
    /// Repulsion strength α.
    #[param(unit = "energy", at_least = 0.0)]
    alpha: f64,
    /// Anisotropy μ: how much the alignment reduces the repulsion; 0 for particles without an axis.
    #[param(at_least = 0.0)]
    mu: f64,
    /// Exponent ν of the alignment f.
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

/// Returns U, ∂U/∂r and ∂U/∂f of U = (1 − μ f^ν)(α/2)(1 − r)² for f > 0.
#[device_fn]
fn soft(r: real, f: real, p: &SoftRow<real>) -> (real, real, real) {
    // f^(ν−1), finite at f = 0
    let g = f.max(1e-20).powf(p.nu - 1.0);
    let depth = 1.0 - r;
    let shape = 1.0 - p.mu * g * f;
    (0.5 * p.alpha * shape * depth * depth, -p.alpha * shape * depth, -0.5 * p.alpha * p.mu * p.nu * g * depth * depth)
}

/// Soft disks: U = (1 − μ f^ν)(α/2)(1 − r)² for r < 1, f = (n_i·e)(n_j·e), e = r/|r|, r = r_i − r_j.
///
/// n is the disk axis. The unit of length is the disk diameter, so the cutoff is 1. f is 1 for face-to-face disks: μ > 0
/// favors stacking into columns. ν must be an even integer, because f is negative when the axes point apart and U must
/// not depend on the sign of an axis. Types without an axis, such as a solvent, take part with μ = 0; their particles still
/// need orientations. At r = 0 the direction is undefined: U = α/2, and force and torque are 0.
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
    let inv_r = inverse_distance(r2);
    let e = r * inv_r;
    let c_i = -axis_i.dot(e);
    let c_j = axis_j.dot(e);
    let f = -c_i * c_j;
    let (u, du_dr, du_df) = soft(r2 * inv_r, f.abs(), p);
    let du_df = if f < 0.0 { -du_df } else { du_df };
    let (force, torque) = force_and_torque(e, inv_r, axis_i, axis_j, du_dr, -du_df * c_j, -du_df * c_i);
    (force, torque, u)
}

/// Soft rods: U = (1 − μ f^ν)(α/2)(1 − r)² for r < 1, f = sin θ_i sin θ_j, with θ between axis and center line.
///
/// n is the rod axis; the cutoff is 1. f is 1 for rods side by side: μ > 0 favors parallel rods in layers. U does not depend
/// on the sign of an axis. Types without an axis, such as a solvent, take part with μ = 0; their particles still need
/// orientations. At r = 0 the direction is undefined: U = α/2, and force and torque are 0.
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
    let inv_r = inverse_distance(r2);
    let e = r * inv_r;
    let c_i = -axis_i.dot(e);
    let c_j = axis_j.dot(e);
    // from the cross product: 1 − c² loses digits near c = ±1
    let s_i = axis_i.cross(e).norm().max(1e-10);
    let s_j = axis_j.cross(e).norm().max(1e-10);
    let (u, du_dr, du_df) = soft(r2 * inv_r, s_i * s_j, p);
    let (force, torque) =
        force_and_torque(e, inv_r, axis_i, axis_j, du_dr, -du_df * c_i * s_j / s_i, -du_df * c_j * s_i / s_j);
    (force, torque, u)
}
