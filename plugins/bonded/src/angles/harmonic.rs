//! Angle potential that is harmonic in θ.

use crate::angles::{AngleParameters, AngleSettings};
use galamost_plugin_api::prelude::*;

/// Coefficient k of U = k (θ − θ₀)², and θ₀ in radians.
#[derive(Debug, PairParams)]
pub struct HarmonicAngle<real> {
    #[param(at_least = 0.0)]
    k: real,
    #[param(at_least = 0.0, at_most = 3.14159265)]
    theta0: real,
}

impl RowInput for AngleParameters {
    type Settings = AngleSettings;
    type Row = HarmonicAngle<f64>;
    fn row(&self, settings: &AngleSettings) -> std::result::Result<HarmonicAngle<f64>, String> {
        Ok(HarmonicAngle { k: settings.convention.factor() * self.k, theta0: self.theta0_deg.to_radians() })
    }
}

/// Harmonic angle: U(θ) = k (θ − θ₀)², with k in energy per rad².
///
/// θ is the angle at the middle particle, 180° for a straight line. There is no factor ½: with `convention: Half`, k is that
/// of U = ½ k (θ − θ₀)², as in HOOMD-blue and PyGAMD. For three collinear particles away from θ₀ the direction of the force
/// is undefined; 1/sin θ is limited to 10⁶.
///
/// Reference: Zhu et al., J. Comput. Chem. 34 (2013) 2197, doi:10.1002/jcc.23365, eq 9.
///
/// ```ron
/// HarmonicAngle(angles: { "A-A-A": (k: 5.0, theta0_deg: 180.0), "A-A-B": (k: 4.0, theta0_deg: 120.0),
///     "A-B-B": (k: 3.0, theta0_deg: 109.5), "B-B-B": (k: 2.0, theta0_deg: 90.0) })
/// ```
#[angle_potential("HarmonicAngle", input = AngleParameters)]
fn harmonic_angle(theta: real, sin_theta: real, p: &HarmonicAngle<real>) -> (real, real) {
    let d = theta - p.theta0;
    let u = p.k * d * d;
    (-2.0 * p.k * d / sin_theta.max(1.0e-6), u)
}
