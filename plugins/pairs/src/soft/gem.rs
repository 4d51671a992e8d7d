//! The generalized exponential model.

use galamost_plugin_api::prelude::*;

/// Parameters of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct GemInput {
    /// Energy ε at r = 0.
    #[param(unit = "energy")]
    epsilon: f64,
    /// Range σ.
    #[param(unit = "length", above = 0.0)]
    sigma: f64,
    /// Exponent n.
    #[param(default = 4.0, at_least = 2.0, at_most = 100.0)]
    n: f64,
}

/// Coefficients ε, 1/σ² and n/2.
#[derive(Debug, PairParams)]
pub struct Gem<real> {
    epsilon: real,
    #[param(above = 0.0)]
    inv_sigma2: real,
    #[param(at_least = 1.0, at_most = 50.0)]
    half_n: real,
}

impl RowInput for GemInput {
    type Settings = NoSettings;
    type Row = Gem<f64>;
    fn row(&self, _: &NoSettings) -> std::result::Result<Gem<f64>, String> {
        Ok(Gem { epsilon: self.epsilon, inv_sigma2: self.sigma.powi(-2), half_n: 0.5 * self.n })
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Option<Gem<f64>> {
        let input = GemInput { epsilon: 0.5 + random(), sigma: 0.5 + random(), n: 2.0 + 6.0 * random() };
        input.row(&NoSettings).ok()
    }
}

/// Generalized exponential model (GEM-n): U(r) = ε exp(−(r/σ)ⁿ), r < r_cut.
///
/// F = (n/r²)(r/σ)ⁿ U r_ij. For n = 2 it is a Gaussian whose σ is √2 times that of `Gaussian`. For n > 2 particles form
/// cluster crystals at high density. Large n approach a step of height ε.
///
/// Reference: B. M. Mladek et al., Phys. Rev. Lett. 96 (2006) 045701, doi:10.1103/PhysRevLett.96.045701.
///
/// ```ron
/// Gem(r_cut: 2.5, pairs: {
///     ("A", "A"): (epsilon: 2.0, sigma: 1.0),
///     ("A", "B"): (epsilon: 1.5, sigma: 1.1, n: 3.0),
///     ("B", "B"): (epsilon: 1.0, sigma: 1.2, n: 8.0),
/// })
/// ```
#[pair_potential("Gem", input = GemInput)]
fn gem(r2: real, p: &Gem<real>) -> (real, real) {
    let z = r2 * p.inv_sigma2;
    // (r/σ)^(n−2), bounded where exp(−z q) underflows to 0
    let q = ((p.half_n - 1.0) * z.max(1e-30).ln()).exp().min(1e30);
    let u = p.epsilon * (-z * q).exp();
    (2.0 * p.half_n * p.inv_sigma2 * q * u, u)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn force_and_energy_are_finite_at_both_limits() {
        for n in [2.0, 4.0, 100.0] {
            let row = GemInput { epsilon: 2.0, sigma: 0.5, n }.row(&NoSettings).expect("valid");
            let (f, u) = gem(0.0, &row);
            assert!(f.is_finite() && (u - 2.0).abs() < 1e-12, "n = {n}: {f} {u}");
            let row = Gem { epsilon: 2.0f32, inv_sigma2: 4.0, half_n: 0.5 * n as f32 };
            let (f, u) = gem(0.0f32, &row);
            // exp(−rⁿ) at a small r
            assert!(f.is_finite() && (u - 2.0).abs() < 1e-6, "n = {n}: {f} {u}");
            let (f, u) = gem(9.0f32, &row);
            assert!(f.abs() < 1e-12 && u.abs() < 1e-12, "n = {n}: {f} {u}");
        }
    }
}
