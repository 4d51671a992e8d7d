//! The Uhlenbeck-Ford model.

use galamost_plugin_api::prelude::*;

/// Parameters of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct UfmInput {
    /// Energy ε, often p kT with p = 1 … 100.
    #[param(unit = "energy", at_least = 0.0)]
    epsilon: f64,
    /// Length σ.
    #[param(unit = "length", above = 0.0)]
    sigma: f64,
}

/// Coefficients ε and 1/σ².
#[derive(Debug, PairParams)]
pub struct Ufm<real> {
    epsilon: real,
    #[param(above = 0.0)]
    inv_sigma2: real,
}

impl RowInput for UfmInput {
    type Settings = NoSettings;
    type Row = Ufm<f64>;
    fn row(&self, _: &NoSettings) -> std::result::Result<Ufm<f64>, String> {
        Ok(Ufm { epsilon: self.epsilon, inv_sigma2: self.sigma.powi(-2) })
    }
}

/// Uhlenbeck-Ford pair potential: U(r) = −ε ln[1 − exp(−r²/σ²)], r < r_cut.
///
/// F = (2ε/σ²)/[exp(r²/σ²) − 1] r_ij. The energy grows as −2ε ln(r/σ) at small r and decays as a Gaussian: at r_cut = 5σ it
/// is 10⁻¹¹ ε. Its virial coefficients are known exactly, so it is a reference for free energies of fluids.
///
/// Reference: R. Paula Leite, R. Freitas, R. Azevedo, M. de Koning, J. Chem. Phys. 145 (2016) 194101,
/// doi:10.1063/1.4967775.
///
/// ```ron
/// Ufm(r_cut: 2.5, pairs: {
///     ("A", "A"): (epsilon: 10.0, sigma: 0.5),
///     ("A", "B"): (epsilon: 10.0, sigma: 0.55),
///     ("B", "B"): (epsilon: 10.0, sigma: 0.6),
/// })
/// ```
#[pair_potential("Ufm", input = UfmInput)]
fn ufm(r2: real, p: &Ufm<real>) -> (real, real) {
    let e = (-r2 * p.inv_sigma2).exp();
    let rest = 1.0 - e;
    (2.0 * p.epsilon * p.inv_sigma2 * e / rest, -p.epsilon * rest.ln())
}
