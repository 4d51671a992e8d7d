//! Angle potential that is a cosine of θ − θ₀.

use galamost_plugin_api::prelude::*;

/// Parameters of one angle type.
#[derive(Clone, Debug, Params)]
pub struct CosineParameters {
    /// Stiffness k.
    #[param(unit = "energy", at_least = 0.0)]
    k: f64,
    /// Equilibrium angle θ₀; 180 is a straight line.
    #[param(unit = "degrees", default = 180.0, at_least = 0.0, at_most = 180.0)]
    theta0_deg: f64,
}

/// Coefficient k of U = k [1 − cos(θ − θ₀)], cos θ₀ and sin θ₀.
#[derive(Debug, PairParams)]
pub struct CosineAngle<real> {
    #[param(at_least = 0.0)]
    k: real,
    #[param(at_least = -1.0, at_most = 1.0)]
    cos0: real,
    #[param(at_least = 0.0, at_most = 1.0)]
    sin0: real,
}

impl RowInput for CosineParameters {
    type Settings = NoSettings;
    type Row = CosineAngle<f64>;
    fn row(&self, _: &NoSettings) -> std::result::Result<CosineAngle<f64>, String> {
        // exactly 0 for a straight line, so that the force is regular
        let sin0 = if self.theta0_deg == 180.0 { 0.0 } else { self.theta0_deg.to_radians().sin() };
        Ok(CosineAngle { k: self.k, cos0: self.theta0_deg.to_radians().cos(), sin0 })
    }
}

/// Cosine angle: U(θ) = k [1 − cos(θ − θ₀)]; for the default θ₀ = 180°, U = k (1 + cos θ).
///
/// θ is the angle at the middle particle, 180° for a straight line. This is the bending term of semiflexible bead-spring
/// chains. For three collinear particles and θ₀ ≠ 0°, 180° the direction of the force is undefined; 1/sin θ is limited to 10⁶.
///
/// Reference: Faller and Müller-Plathe, ChemPhysChem 2 (2001) 180,
/// doi:10.1002/1439-7641(20010316)2:3<180::AID-CPHC180>3.0.CO;2-Z.
///
/// ```ron
/// CosineAngle(angles: { "A-A-A": (k: 1.5), "A-A-B": (k: 2.0), "A-B-B": (k: 3.0, theta0_deg: 120.0), "B-B-B": (k: 0.5) })
/// ```
#[angle_potential("CosineAngle", input = CosineParameters)]
fn cosine_angle(cos_theta: real, sin_theta: real, p: &CosineAngle<real>) -> (real, real) {
    let u = p.k * (1.0 - cos_theta * p.cos0 - sin_theta * p.sin0);
    (-p.k * (p.cos0 - p.sin0 * cos_theta / sin_theta.max(1.0e-6)), u)
}
