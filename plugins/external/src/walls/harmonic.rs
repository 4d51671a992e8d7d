//! Soft walls.

use super::params::{Entry, WallRow, before, wall_params};
use galamost_plugin_api::prelude::*;

/// What the user writes for one type of particles.
#[derive(Clone, Debug, Params)]
pub struct HarmonicEntry {
    /// k, stiffness.
    #[param(unit = "energy/length²", at_least = 0.0)]
    k: f64,
    /// r₀, the distance at which the repulsion ends.
    #[param(unit = "length", above = 0.0)]
    r0: f64,
    /// `Half` for k of ½ k (r₀ − d)².
    #[param(default = Convention::Paper)]
    convention: Convention,
}

impl Entry for HarmonicEntry {
    fn numbers(&self) -> [f64; 4] {
        [self.k * self.convention.factor(), 0.0, self.r0, 0.0]
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Self {
        Self { k: 5.0 + random(), r0: 1.0 + random(), convention: Convention::Half }
    }
}
wall_params!(HarmonicWallParams, HarmonicEntry);

/// A soft wall: U(d) = k (r₀ − d)², without ½, for d < r₀; `convention: Half` expects the k of ½ k (r₀ − d)².
///
/// F = 2k (r₀ − d) along the wall's normal. A particle at the wall has the energy k r₀²: choose it far above kT, since
/// one that gets behind the wall, d ≤ 0, ends the run with an error that names it. `wall`, what is behind it, and the
/// virial are as on the page of `LjWall`.
///
/// Reference: none; the definition of a harmonic repulsion.
///
/// ```ron
/// HarmonicWall(
///     wall: Cylinder(point: [0.0, 0.0, 0.0], axis: Z, radius: 5.5, side: Inside),
///     types: { "A": (k: 50.0, r0: 1.0), "B": (k: 40.0, r0: 1.2) },
///     group: Box(min: [-3.8, -3.8, -6.0], max: [3.8, 3.8, 6.0]),
/// )
/// ```
#[external_potential("HarmonicWall", input = HarmonicWallParams)]
fn harmonic_wall(position: Vec3<real>, length: Vec3<real>, p: &WallRow<real>) -> (Vec3<real>, real) {
    let (d, normal) = before(position, length, p);
    let depth = (p.r_cut - d).max(0.0);
    let front = d > 0.0;
    let f = if front { 2.0 * p.repulsion * depth } else { 0.0 };
    let u = if front { p.repulsion * depth * depth } else { f64::INFINITY as real };
    (normal * f, u)
}
