//! Angle potential that keeps three particles off a straight line.

use crate::angles::AngleSettings;
use galamost_plugin_api::prelude::*;

/// Parameters of one angle type.
#[derive(Clone, Debug, Params)]
pub struct RestrictedParameters {
    /// Stiffness k.
    #[param(unit = "energy", at_least = 0.0)]
    k: f64,
    /// Equilibrium angle θ₀.
    #[param(unit = "degrees", at_least = 0.0, at_most = 180.0)]
    theta0_deg: f64,
}

/// Coefficient k of U = k (cos θ − cos θ₀)²/sin²θ, and cos θ₀.
#[derive(Debug, PairParams)]
pub struct RestrictedAngle<real> {
    #[param(at_least = 0.0)]
    k: real,
    #[param(at_least = -1.0, at_most = 1.0)]
    cos0: real,
}

impl RowInput for RestrictedParameters {
    type Settings = AngleSettings;
    type Row = RestrictedAngle<f64>;
    fn row(&self, settings: &AngleSettings) -> std::result::Result<RestrictedAngle<f64>, String> {
        Ok(RestrictedAngle { k: settings.convention.factor() * self.k, cos0: self.theta0_deg.to_radians().cos() })
    }
}

/// Restricted bending: U(θ) = k (cos θ − cos θ₀)²/sin²θ.
///
/// θ is the angle at the middle particle, 180° for a straight line. The energy diverges at 0° and 180°, so dihedral potentials on
/// these particles stay defined. Near θ₀ it is k (θ − θ₀)². There is no factor ½: with `convention: Half`, k is that of
/// U = ½ k (cos θ − cos θ₀)²/sin²θ, as in GROMACS and Martini (angles of type 10). In LAMMPS it is `cosine/squared/restricted`,
/// with the same k. 1/sin²θ is limited to 10⁸.
///
/// Reference: M. Bulacu et al., J. Chem. Theory Comput. 9 (2013) 3282, doi:10.1021/ct400219n.
///
/// ```ron
/// RestrictedAngle(angles: { "A-A-A": (k: 0.5, theta0_deg: 120.0), "A-A-B": (k: 0.4, theta0_deg: 100.0),
///     "A-B-B": (k: 0.3, theta0_deg: 135.0), "B-B-B": (k: 0.2, theta0_deg: 110.0) })
/// ```
#[angle_potential("RestrictedAngle", input = RestrictedParameters)]
fn restricted_angle(cos_theta: real, sin_theta: real, p: &RestrictedAngle<real>) -> (real, real) {
    let d = cos_theta - p.cos0;
    let s2 = sin_theta * sin_theta;
    let inv = 1.0 / s2.max(1.0e-8);
    let steeper = if s2 > 1.0e-8 { (1.0 - cos_theta * p.cos0) * inv } else { 1.0 };
    (2.0 * p.k * d * steeper * inv, p.k * d * d * inv)
}
