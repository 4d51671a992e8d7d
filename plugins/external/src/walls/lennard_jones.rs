//! Lennard-Jones walls: 12-6, 9-3 and WCA.

use super::params::{WallEntry, WallRow, wall_distance, wall_params};
use galamost_plugin_api::prelude::*;

/// Parameters of one particle type.
#[derive(Clone, Debug, Params)]
pub struct LjEntry {
    /// Energy ε.
    #[param(unit = "energy", at_least = 0.0)]
    epsilon: f64,
    /// Length σ.
    #[param(unit = "length", above = 0.0)]
    sigma: f64,
    /// Cutoff distance r_cut from the wall.
    #[param(unit = "length", above = 0.0)]
    r_cut: f64,
    /// Energy shift: subtract U(r_cut), so that the energy vanishes at the cutoff.
    #[param(default = true)]
    shift: bool,
}

impl LjEntry {
    /// Returns the coefficients of d^(−m) and d^(−n), the cutoff and the energy shift.
    fn powers(&self, repulsion: f64, m: i32, attraction: f64, n: i32) -> [f64; 4] {
        let (repulsion, attraction) =
            (repulsion * self.epsilon * self.sigma.powi(m), attraction * self.epsilon * self.sigma.powi(n));
        let shift = repulsion * self.r_cut.powi(-m) - attraction * self.r_cut.powi(-n);
        [repulsion, attraction, self.r_cut, if self.shift { shift } else { 0.0 }]
    }
    fn random_entry(random: &mut dyn FnMut() -> f64) -> Self {
        Self { epsilon: 0.5 + random(), sigma: 0.5 + 0.5 * random(), r_cut: 2.5, shift: random() < 0.5 }
    }
}

impl WallEntry for LjEntry {
    fn coefficients(&self) -> [f64; 4] {
        self.powers(4.0, 12, 4.0, 6)
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Self {
        Self::random_entry(random)
    }
}
wall_params!(LjWallParams, LjEntry);

/// Returns (F, U) of the 12-6 form at distance d; U is infinite behind the wall.
#[device_fn]
fn twelve_six(d: real, p: &WallRow<real>) -> (real, real) {
    let inv = 1.0 / d;
    let inv2 = inv * inv;
    let inv6 = inv2 * inv2 * inv2;
    let repulsion = p.repulsion * inv6;
    let near = d < p.r_cut;
    let f = if near { inv * inv6 * (12.0 * repulsion - 6.0 * p.attraction) } else { 0.0 };
    let u = if near { inv6 * (repulsion - p.attraction) - p.shift } else { 0.0 };
    if d > 0.0 { (f, u) } else { (0.0, f64::INFINITY as real) }
}

/// Lennard-Jones wall: U(d) = 4ε[(σ/d)¹² − (σ/d)⁶] − U_cut for d < r_cut, with d the distance from the wall.
///
/// F = (24ε/d)[2(σ/d)¹² − (σ/d)⁶] along the wall normal. U_cut is the unshifted energy at r_cut, or 0 with `shift: false`.
///
/// `wall` is a plane, with the particles on the side of its normal, or a sphere or a cylinder along a box axis, with the
/// particles inside or outside. Coordinates have their origin at the box center. A particle behind the wall, d ≤ 0, ends
/// the run with an error that names it. Particles interact through the periodic boundary: leave at least r_cut/2 of the pair
/// forces between a plane and the box face behind it.
///
/// Planes parallel to a face, spheres and cylinders must be inside of the box. If the box shrinks, walls stay where they are: the
/// check refuses a `BoxResize` that makes it too short for a wall, and the run ends with an error when a barostat does. In a
/// sheared box (`LeesEdwards`), a wall must not be crossed by the displaced images above and below: planes must be parallel to
/// x, spheres and cylinders along z must have their center at y = 0, and no cylinder is along y.
///
/// The virial is the symmetric part of Σ r F, with r from the box center, as a barostat needs it; the pressure normal to a
/// pair of planes is then that of the whole system, 0. With `virial: false` the pressure is the force per area on the walls, times the effective
/// width of the fluid over the box length. That width is shorter than the distance of the walls, because particles stay away from them.
///
/// Reference: M. P. Allen, D. J. Tildesley, Computer Simulation of Liquids, 2nd ed., Oxford 2017.
///
/// ```ron
/// LjWall(
///     wall: Plane(point: [0.0, 0.0, -5.62], normal: [0.0, 0.0, 1.0]),
///     types: { "A": (epsilon: 1.0, sigma: 0.5, r_cut: 1.25), "B": (epsilon: 0.5, sigma: 0.4, r_cut: 1.0) },
/// )
/// ```
#[external_potential("LjWall", input = LjWallParams)]
fn lj_wall(position: Vec3<real>, length: Vec3<real>, p: &WallRow<real>) -> (Vec3<real>, real) {
    let (d, normal) = wall_distance(position, length, p);
    let (f, u) = twelve_six(d, p);
    (normal * f, u)
}

/// Parameters of one particle type.
#[derive(Clone, Debug, Params)]
pub struct Lj93Entry {
    /// ε, σ, r_cut and the energy shift.
    #[param(flatten)]
    lj: LjEntry,
}

impl WallEntry for Lj93Entry {
    fn coefficients(&self) -> [f64; 4] {
        self.lj.powers(2.0 / 15.0, 9, 1.0, 3)
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Self {
        Self { lj: LjEntry::random_entry(random) }
    }
}
wall_params!(Lj93WallParams, Lj93Entry);

/// Lennard-Jones 9-3 wall: U(d) = ε[(2/15)(σ/d)⁹ − (σ/d)³] − U_cut for d < r_cut, with d the distance from the wall.
///
/// F = (ε/d)[(6/5)(σ/d)⁹ − 3(σ/d)³] along the wall normal. U_cut is the unshifted energy at r_cut, or 0 with `shift: false`.
/// This is the 12-6 potential integrated over a half-space of Lennard-Jones sites, with ε = (2π/3) ρ_w σ³ ε_LJ for the site
/// density ρ_w. `wall`, the region behind it and the virial are described on the page of `LjWall`.
///
/// Reference: J. N. Israelachvili, Intermolecular and Surface Forces, 3rd ed., Academic Press 2011; F. F. Abraham,
/// Y. Singh, J. Chem. Phys. 67 (1977) 2384, doi:10.1063/1.435080.
///
/// ```ron
/// Lj93Wall(
///     wall: Sphere(center: [0.0, 0.0, 0.0], radius: 1.0, side: Outside),
///     types: { "A": (epsilon: 1.0, sigma: 0.3, r_cut: 1.0), "B": (epsilon: 0.5, sigma: 0.3, r_cut: 1.0) },
///     group: Not(Box(min: [-1.2, -1.2, -1.2], max: [1.2, 1.2, 1.2])),
/// )
/// ```
#[external_potential("Lj93Wall", input = Lj93WallParams)]
fn lj93_wall(position: Vec3<real>, length: Vec3<real>, p: &WallRow<real>) -> (Vec3<real>, real) {
    let (d, normal) = wall_distance(position, length, p);
    let inv = 1.0 / d;
    let inv3 = inv * inv * inv;
    let repulsion = p.repulsion * inv3 * inv3;
    let near = d < p.r_cut;
    let f = if near { inv * inv3 * (9.0 * repulsion - 3.0 * p.attraction) } else { 0.0 };
    let u = if near { inv3 * (repulsion - p.attraction) - p.shift } else { 0.0 };
    let front = d > 0.0;
    (normal * (if front { f } else { 0.0 }), if front { u } else { f64::INFINITY as real })
}

/// Parameters of one particle type.
#[derive(Clone, Debug, Params)]
pub struct WcaEntry {
    /// Energy ε at d = σ.
    #[param(unit = "energy", at_least = 0.0)]
    epsilon: f64,
    /// Length σ.
    #[param(unit = "length", above = 0.0)]
    sigma: f64,
}

impl WallEntry for WcaEntry {
    fn coefficients(&self) -> [f64; 4] {
        let r_cut = 2f64.powf(1.0 / 6.0) * self.sigma;
        LjEntry { epsilon: self.epsilon, sigma: self.sigma, r_cut, shift: true }.coefficients()
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Self {
        Self { epsilon: 0.5 + random(), sigma: 1.0 + random() }
    }
}
wall_params!(WcaWallParams, WcaEntry);

/// WCA wall, purely repulsive: U(d) = 4ε[(σ/d)¹² − (σ/d)⁶] + ε, d < 2^(1/6) σ, with d the distance from the wall.
///
/// F = (24ε/d)[2(σ/d)¹² − (σ/d)⁶] along the wall normal. U and F vanish at the cutoff. `wall`, the region behind it and the
/// virial are described on the page of `LjWall`.
///
/// Reference: J. D. Weeks, D. Chandler, H. C. Andersen, J. Chem. Phys. 54 (1971) 5237, doi:10.1063/1.1674820, for pairs.
///
/// ```ron
/// WcaWall(
///     wall: Plane(point: [0.0, -5.62, 0.0], normal: [0.0, 1.0, 0.0]),
///     types: { "A": (epsilon: 1.0, sigma: 0.5), "B": (epsilon: 1.0, sigma: 0.45) },
/// )
/// ```
#[external_potential("WcaWall", input = WcaWallParams)]
fn wca_wall(position: Vec3<real>, length: Vec3<real>, p: &WallRow<real>) -> (Vec3<real>, real) {
    let (d, normal) = wall_distance(position, length, p);
    let (f, u) = twelve_six(d, p);
    (normal * f, u)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(coefficients: [f64; 4]) -> WallRow<f64> {
        let wall = crate::walls::shape::WallGeometry { axis: [0.0, 0.0, 1.0], plane: 1.0, ..Default::default() };
        WallRow::new(&wall, coefficients)
    }

    #[test]
    fn cutoffs_minima_and_particles_behind_the_wall() {
        let box_length = Vec3::new(10.0, 10.0, 10.0);
        let at = |z: f64| Vec3::new(0.3, -0.7, z);
        let lj = row(LjEntry { epsilon: 1.5, sigma: 0.8, r_cut: 2.0, shift: true }.coefficients());
        let (_, u) = lj_wall(at(2.0 - 1e-12), box_length, &lj);
        assert!(u.abs() < 1e-10 && lj_wall(at(2.1), box_length, &lj) == (Vec3::zero(), 0.0), "{u}");
        let (f, _) = lj_wall(at(0.8 * 2f64.powf(1.0 / 6.0)), box_length, &lj);
        assert!(f.norm() < 1e-11, "{f:?}");
        let wca = row(WcaEntry { epsilon: 1.5, sigma: 0.8 }.coefficients());
        assert!((wca_wall(at(0.8), box_length, &wca).1 - 1.5).abs() < 1e-13);
        // the minimum of the 9-3 form is at (2/5)^(1/6) σ, −(√10/3) ε deep
        let entry = LjEntry { epsilon: 1.5, sigma: 0.8, r_cut: 3.0, shift: false };
        let lj93 = row(Lj93Entry { lj: entry }.coefficients());
        let (f, u) = lj93_wall(at(0.8 * 0.4f64.powf(1.0 / 6.0)), box_length, &lj93);
        assert!(f.norm() < 1e-12 && (u + 1.5 * 10f64.sqrt() / 3.0).abs() < 1e-12, "{f:?} {u}");
        for z in [0.0, -0.5] {
            assert_eq!(lj_wall(at(z), box_length, &lj), (Vec3::zero(), f64::INFINITY));
            assert_eq!(lj93_wall(at(z), box_length, &lj93), (Vec3::zero(), f64::INFINITY));
        }
    }
}
