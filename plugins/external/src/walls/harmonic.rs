//! Harmonic walls.

use super::params::{WallEntry, WallRow, wall_distance, wall_params};
use galamost_plugin_api::prelude::*;

/// Parameters of one particle type.
#[derive(Clone, Debug, Params)]
pub struct HarmonicEntry {
    /// Stiffness k.
    #[param(unit = "energy/length²", at_least = 0.0)]
    k: f64,
    /// Range r₀ of the repulsion.
    #[param(unit = "length", above = 0.0)]
    r0: f64,
    /// Prefactor convention: `Paper` for U = k (r₀ − d)², `Half` for U = ½ k (r₀ − d)².
    #[param(default = Convention::Paper)]
    convention: Convention,
}

impl WallEntry for HarmonicEntry {
    fn coefficients(&self) -> [f64; 4] {
        [self.k * self.convention.factor(), 0.0, self.r0, 0.0]
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Self {
        Self { k: 5.0 + random(), r0: 1.0 + random(), convention: Convention::Half }
    }
}
wall_params!(HarmonicWallParams, HarmonicEntry);

/// Harmonic wall: U(d) = k (r₀ − d)² for d < r₀, with d the distance from the wall.
///
/// F = 2k (r₀ − d) along the wall normal. There is no factor ½: with `convention: Half`, k is that of U = ½ k (r₀ − d)². At
/// the wall the energy is k r₀²; choose it far above kT, since a particle behind the wall, d ≤ 0, ends the run with an error
/// that names it. `wall`, the region behind it and the
/// virial are described on the page of `LjWall`.
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
    let (d, normal) = wall_distance(position, length, p);
    let overlap = (p.r_cut - d).max(0.0);
    let front = d > 0.0;
    let f = if front { 2.0 * p.repulsion * overlap } else { 0.0 };
    let u = if front { p.repulsion * overlap * overlap } else { f64::INFINITY as real };
    (normal * f, u)
}
