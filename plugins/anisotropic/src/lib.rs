//! Anisotropic particles with one site each: soft disks, rods, Janus and triblock Janus particles; ellipsoids.
#![allow(non_camel_case_types)]

mod disk_rod;
mod gay_berne;
mod janus;
mod patch_file;
mod patches;

use galamost_plugin_api::prelude::*;

galamost_plugin_api::plugin!();

/// Force and torque on i of an energy U(r, f(c_i, c_j)) with c_i = −n_i·e and c_j = n_j·e.
///
/// `slope` is ∂U/∂r, `by_i` and `by_j` are ∂U/∂c_i and ∂U/∂c_j:
/// F = −[∂U/∂r e − ∂U/∂c_i (n_i + c_i e)/r + ∂U/∂c_j (n_j − c_j e)/r], τ = n_i × ∂U/∂c_i e.
#[device_fn]
fn felt(
    e: Vec3<real>,
    inv_r: real,
    axis_i: Vec3<real>,
    axis_j: Vec3<real>,
    slope: real,
    by_i: real,
    by_j: real,
) -> (Vec3<real>, Vec3<real>) {
    let c_i = -axis_i.dot(e);
    let c_j = axis_j.dot(e);
    let across = (axis_i + e * c_i) * by_i - (axis_j - e * c_j) * by_j;
    (across * inv_r - e * slope, axis_i.cross(e) * by_i)
}
