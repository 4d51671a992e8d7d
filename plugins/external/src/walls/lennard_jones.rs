//! Walls with Lennard-Jones potentials.

use super::params::{Entry, WallRow, before, wall_params};
use galamost_plugin_api::prelude::*;

/// What the user writes for one type of particles.
#[derive(Clone, Debug, Params)]
pub struct LjEntry {
    /// ε.
    #[param(unit = "energy", at_least = 0.0)]
    epsilon: f64,
    /// σ.
    #[param(unit = "length", above = 0.0)]
    sigma: f64,
    /// The distance at which the potential ends.
    #[param(unit = "length", above = 0.0)]
    r_cut: f64,
    /// U(r_cut) is subtracted, so that the energy ends at 0.
    #[param(default = true)]
    shift: bool,
}

impl LjEntry {
    /// Prefactors of distance to the powers −m and −n, with the cutoff and the shift.
    fn with(&self, repulsion: f64, m: i32, attraction: f64, n: i32) -> [f64; 4] {
        let (repulsion, attraction) =
            (repulsion * self.epsilon * self.sigma.powi(m), attraction * self.epsilon * self.sigma.powi(n));
        let end = repulsion * self.r_cut.powi(-m) - attraction * self.r_cut.powi(-n);
        [repulsion, attraction, self.r_cut, if self.shift { end } else { 0.0 }]
    }
    fn sampled(random: &mut dyn FnMut() -> f64) -> Self {
        Self { epsilon: 0.5 + random(), sigma: 0.5 + 0.5 * random(), r_cut: 2.5, shift: random() < 0.5 }
    }
}

impl Entry for LjEntry {
    fn numbers(&self) -> [f64; 4] {
        self.with(4.0, 12, 4.0, 6)
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Self {
        Self::sampled(random)
    }
}
wall_params!(LjWallParams, LjEntry);

/// (F, U) at the distance d of the 12-6 form; U is infinite behind the wall.
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

/// A wall of Lennard-Jones sites: U(d) = 4ε[(σ/d)¹² − (σ/d)⁶], less U(r_cut), for d < r_cut; d is the distance from the
/// wall.
///
/// F = (24ε/d)[2(σ/d)¹² − (σ/d)⁶] along the wall's normal. `wall` is a plane, on whose side of the normal particles are,
/// or a sphere or a cylinder along an axis of the box, inside or outside of which they are; coordinates have their
/// origin in the middle of the box. A particle that gets behind the wall, d ≤ 0, ends the run with an error that names
/// it.
///
/// Particles see each other through the periodic boundary: let at least r_cut/2 of the pair forces lie between a plane
/// and the face of the box behind it. The virial is Σ r F, r from the middle of the box, as a barostat needs it; the
/// pressure across a pair of planes is then that of the whole, 0. With `virial: false` it is what particles exert on
/// the walls, times the distance of the walls over the length of the box.
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
    let (d, normal) = before(position, length, p);
    let (f, u) = twelve_six(d, p);
    (normal * f, u)
}

/// What the user writes for one type of particles.
#[derive(Clone, Debug, Params)]
pub struct Lj93Entry {
    /// ε, σ, r_cut and the shift.
    #[param(flatten)]
    lj: LjEntry,
}

impl Entry for Lj93Entry {
    fn numbers(&self) -> [f64; 4] {
        self.lj.with(2.0 / 15.0, 9, 1.0, 3)
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Self {
        Self { lj: LjEntry::sampled(random) }
    }
}
wall_params!(Lj93WallParams, Lj93Entry);

/// A wall that is half a space of Lennard-Jones sites: U(d) = ε[(2/15)(σ/d)⁹ − (σ/d)³], less U(r_cut), for d < r_cut.
///
/// F = (ε/d)[(6/5)(σ/d)⁹ − 3(σ/d)³] along the wall's normal. It is the 12-6 form integrated over the volume behind a
/// plane, with ε = (2π/3) ρ_w σ³ ε_LJ for sites of the density ρ_w. `wall`, what is behind it, and the virial are as on
/// the page of `LjWall`.
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
    let (d, normal) = before(position, length, p);
    let inv = 1.0 / d;
    let inv3 = inv * inv * inv;
    let repulsion = p.repulsion * inv3 * inv3;
    let near = d < p.r_cut;
    let f = if near { inv * inv3 * (9.0 * repulsion - 3.0 * p.attraction) } else { 0.0 };
    let u = if near { inv3 * (repulsion - p.attraction) - p.shift } else { 0.0 };
    let front = d > 0.0;
    (normal * (if front { f } else { 0.0 }), if front { u } else { f64::INFINITY as real })
}

/// What the user writes for one type of particles.
#[derive(Clone, Debug, Params)]
pub struct WcaEntry {
    /// ε, the energy at d = σ.
    #[param(unit = "energy", at_least = 0.0)]
    epsilon: f64,
    /// σ.
    #[param(unit = "length", above = 0.0)]
    sigma: f64,
}

impl Entry for WcaEntry {
    fn numbers(&self) -> [f64; 4] {
        let r_cut = 2f64.powf(1.0 / 6.0) * self.sigma;
        LjEntry { epsilon: self.epsilon, sigma: self.sigma, r_cut, shift: true }.numbers()
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Self {
        Self { epsilon: 0.5 + random(), sigma: 1.0 + random() }
    }
}
wall_params!(WcaWallParams, WcaEntry);

/// A wall that only repels: U(d) = 4ε[(σ/d)¹² − (σ/d)⁶] + ε, d < 2^(1/6) σ.
///
/// F = (24ε/d)[2(σ/d)¹² − (σ/d)⁶] along the wall's normal; both end at 0. `wall`, what is behind it, and the virial are
/// as on the page of `LjWall`.
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
    let (d, normal) = before(position, length, p);
    let (f, u) = twelve_six(d, p);
    (normal * f, u)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(numbers: [f64; 4]) -> WallRow<f64> {
        let wall = crate::walls::shape::Numbers { axis: [0.0, 0.0, 1.0], plane: 1.0, ..Default::default() };
        WallRow::new(&wall, numbers)
    }

    #[test]
    fn ends_minima_and_what_is_behind() {
        let box_length = Vec3::new(10.0, 10.0, 10.0);
        let at = |z: f64| Vec3::new(0.3, -0.7, z);
        let lj = row(LjEntry { epsilon: 1.5, sigma: 0.8, r_cut: 2.0, shift: true }.numbers());
        let (_, u) = lj_wall(at(2.0 - 1e-12), box_length, &lj);
        assert!(u.abs() < 1e-10 && lj_wall(at(2.1), box_length, &lj) == (Vec3::zero(), 0.0), "{u}");
        let (f, _) = lj_wall(at(0.8 * 2f64.powf(1.0 / 6.0)), box_length, &lj);
        assert!(f.norm() < 1e-11, "{f:?}");
        let wca = row(WcaEntry { epsilon: 1.5, sigma: 0.8 }.numbers());
        assert!((wca_wall(at(0.8), box_length, &wca).1 - 1.5).abs() < 1e-13);
        // the minimum of the 9-3 form is at (2/5)^(1/6) σ, −(√10/3) ε deep
        let entry = LjEntry { epsilon: 1.5, sigma: 0.8, r_cut: 3.0, shift: false };
        let lj93 = row(Lj93Entry { lj: entry }.numbers());
        let (f, u) = lj93_wall(at(0.8 * 0.4f64.powf(1.0 / 6.0)), box_length, &lj93);
        assert!(f.norm() < 1e-12 && (u + 1.5 * 10f64.sqrt() / 3.0).abs() < 1e-12, "{f:?} {u}");
        for z in [0.0, -0.5] {
            assert_eq!(lj_wall(at(z), box_length, &lj), (Vec3::zero(), f64::INFINITY));
            assert_eq!(lj93_wall(at(z), box_length, &lj93), (Vec3::zero(), f64::INFINITY));
        }
    }
}
