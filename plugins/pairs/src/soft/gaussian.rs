//! The Gaussian core model.

use galamost_plugin_api::prelude::*;

/// Parameters of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct GaussianInput {
    /// Energy ε at r = 0; a negative value gives a well.
    #[param(unit = "energy")]
    epsilon: f64,
    /// Width σ.
    #[param(unit = "length", above = 0.0)]
    sigma: f64,
}

/// Coefficients ε and 1/σ².
#[derive(Debug, PairParams)]
pub struct Gaussian<real> {
    epsilon: real,
    #[param(above = 0.0)]
    inv_sigma2: real,
}

impl RowInput for GaussianInput {
    type Settings = NoSettings;
    type Row = Gaussian<f64>;
    fn row(&self, _: &NoSettings) -> std::result::Result<Gaussian<f64>, String> {
        Ok(Gaussian { epsilon: self.epsilon, inv_sigma2: self.sigma.powi(-2) })
    }
}

/// Gaussian core pair potential: U(r) = ε exp(−r²/2σ²), r < r_cut.
///
/// F = (U/σ²) r_ij. The maximum force is ε exp(−½)/σ, at r = σ. At r_cut = 5σ the energy is 4·10⁻⁶ ε.
///
/// Reference: F. H. Stillinger, J. Chem. Phys. 65 (1976) 3968, doi:10.1063/1.432891; Zhu et al., J. Comput. Chem. 34
/// (2013) 2197, eq 3, doi:10.1002/jcc.23365.
///
/// ```ron
/// Gaussian(r_cut: 2.5, mode: ShiftEnergy, pairs: {
///     ("A", "A"): (epsilon: 2.0, sigma: 0.5),
///     ("A", "B"): (epsilon: 3.0, sigma: 0.6),
///     ("B", "B"): (epsilon: 2.0, sigma: 0.7),
/// })
/// ```
#[pair_potential("Gaussian", input = GaussianInput)]
fn gaussian(r2: real, p: &Gaussian<real>) -> (real, real) {
    let u = p.epsilon * (-0.5 * r2 * p.inv_sigma2).exp();
    (u * p.inv_sigma2, u)
}
