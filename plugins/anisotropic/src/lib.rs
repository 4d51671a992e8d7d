//! Anisotropic single-site particles: soft disks and rods, Janus, triblock Janus and patchy particles, uniaxial and biaxial
//! Gay-Berne ellipsoids, and bonds between the ends of ellipsoids.
#![allow(non_camel_case_types)]

mod biaxial;
mod disk_rod;
mod ellipsoid_bond;
mod gay_berne;
mod janus;
mod patch_file;
mod patches;

use galamost_plugin_api::prelude::*;

galamost_plugin_api::plugin!();

/// Returns 1/r, or 0 at r = 0: the direction is undefined there, and with e = 0 force and torque are 0.
#[device_fn]
fn inverse_distance(r2: real) -> real {
    if r2 > 0.0 { r2.rsqrt() } else { 0.0 }
}

/// Returns the force and torque on i for an energy U(r, f(c_i, c_j)) with c_i = −n_i·e and c_j = n_j·e.
///
/// `du_dr` is ∂U/∂r; `du_dci` and `du_dcj` are ∂U/∂c_i and ∂U/∂c_j:
/// F = −[∂U/∂r e − ∂U/∂c_i (n_i + c_i e)/r + ∂U/∂c_j (n_j − c_j e)/r], τ = n_i × ∂U/∂c_i e.
#[device_fn]
fn force_and_torque(
    e: Vec3<real>,
    inv_r: real,
    axis_i: Vec3<real>,
    axis_j: Vec3<real>,
    du_dr: real,
    du_dci: real,
    du_dcj: real,
) -> (Vec3<real>, Vec3<real>) {
    let c_i = -axis_i.dot(e);
    let c_j = axis_j.dot(e);
    let across = (axis_i + e * c_i) * du_dci - (axis_j - e * c_j) * du_dcj;
    (across * inv_r - e * du_dr, axis_i.cross(e) * du_dci)
}
