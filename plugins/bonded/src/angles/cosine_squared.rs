//! Angle potential that is harmonic in cos θ.

use crate::angles::AngleSettings;
use galamost_plugin_api::prelude::*;

/// Parameters of one angle type.
#[derive(Clone, Debug, Params)]
pub struct CosineSquaredParameters {
    /// Stiffness k.
    #[param(unit = "energy", at_least = 0.0)]
    k: f64,
    /// Equilibrium angle θ₀; 180 is a straight line.
    #[param(unit = "degrees", at_least = 0.0, at_most = 180.0)]
    theta0_deg: f64,
}

/// Coefficient k of U = k (cos θ − cos θ₀)², and cos θ₀.
#[derive(Debug, PairParams)]
pub struct CosineSquaredAngle<real> {
    #[param(at_least = 0.0)]
    k: real,
    #[param(at_least = -1.0, at_most = 1.0)]
    cos0: real,
}

impl RowInput for CosineSquaredParameters {
    type Settings = AngleSettings;
    type Row = CosineSquaredAngle<f64>;
    fn row(&self, settings: &AngleSettings) -> std::result::Result<CosineSquaredAngle<f64>, String> {
        Ok(CosineSquaredAngle { k: settings.convention.factor() * self.k, cos0: self.theta0_deg.to_radians().cos() })
    }
}

/// Cosine-squared angle: U(θ) = k (cos θ − cos θ₀)².
///
/// θ is the angle at the middle particle, 180° for a straight line. There is no factor ½: with `convention: Half`, k is that
/// of U = ½ k (cos θ − cos θ₀)², as in Martini and PyGAMD. The force is regular for every θ.
///
/// Reference: Zhu et al., J. Comput. Chem. 34 (2013) 2197, doi:10.1002/jcc.23365; Marrink et al., J. Phys. Chem. B 111
/// (2007) 7812, doi:10.1021/jp071097f.
///
/// ```ron
/// CosineSquaredAngle(angles: { "A-A-A": (k: 25.0, theta0_deg: 180.0), "A-A-B": (k: 12.0, theta0_deg: 120.0),
///     "A-B-B": (k: 12.0, theta0_deg: 180.0), "B-B-B": (k: 8.0, theta0_deg: 140.0) })
/// ```
#[angle_potential("CosineSquaredAngle", input = CosineSquaredParameters)]
fn cosine_squared_angle(cos_theta: real, p: &CosineSquaredAngle<real>) -> (real, real) {
    let d = cos_theta - p.cos0;
    (2.0 * p.k * d, p.k * d * d)
}
