//! A Gaussian shell.

use galamost_plugin_api::prelude::*;

/// Parameters of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct ExpandedGaussianInput {
    /// Energy ε at r = Δ; a negative value gives a well.
    #[param(unit = "energy")]
    epsilon: f64,
    /// Width σ.
    #[param(unit = "length", above = 0.0)]
    sigma: f64,
    /// Distance Δ of the maximum.
    #[param(unit = "length", at_least = 0.0)]
    delta: f64,
}

/// Coefficients ε, 1/σ² and Δ.
#[derive(Debug, PairParams)]
pub struct ExpandedGaussian<real> {
    epsilon: real,
    #[param(above = 0.0)]
    inv_sigma2: real,
    delta: real,
}

impl RowInput for ExpandedGaussianInput {
    type Settings = NoSettings;
    type Row = ExpandedGaussian<f64>;
    fn row(&self, _: &NoSettings) -> std::result::Result<ExpandedGaussian<f64>, String> {
        Ok(ExpandedGaussian { epsilon: self.epsilon, inv_sigma2: self.sigma.powi(-2), delta: self.delta })
    }
}

/// Expanded Gaussian pair potential: U(r) = ε exp(−(r − Δ)²/2σ²), r < r_cut.
///
/// F = (U/σ²)(r − Δ) e, e = r_ij/r. For Δ = 0 it is `Gaussian`. At r = 0 the direction is undefined and the force is 0.
///
/// No reference; the same form is `ExpandedGaussian` in HOOMD-blue.
///
/// ```ron
/// ExpandedGaussian(r_cut: 3.0, pairs: {
///     ("A", "A"): (epsilon: 1.0, sigma: 0.4, delta: 1.0),
///     ("A", "B"): (epsilon: -0.5, sigma: 0.5, delta: 0.8),
///     ("B", "B"): (epsilon: 2.0, sigma: 0.6, delta: 0.0),
/// })
/// ```
#[pair_potential("ExpandedGaussian", input = ExpandedGaussianInput)]
fn expanded_gaussian(r2: real, p: &ExpandedGaussian<real>) -> (real, real) {
    let r = r2.sqrt();
    let s = r - p.delta;
    let u = p.epsilon * (-0.5 * s * s * p.inv_sigma2).exp();
    let safe = if r > 0.0 { r } else { 1.0 };
    (if r > 0.0 { p.inv_sigma2 * u * s / safe } else { 0.0 }, u)
}
