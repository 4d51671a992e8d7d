//! The Mie potential from a surface.

use galamost_plugin_api::prelude::*;

/// Parameters of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct ExpandedMieInput {
    /// Well depth ε.
    #[param(unit = "energy", at_least = 0.0)]
    epsilon: f64,
    /// Length σ: U(Δ + σ) = 0.
    #[param(unit = "length", above = 0.0)]
    sigma: f64,
    /// Repulsive exponent n > m.
    #[param(above = 0.0, at_most = 100.0)]
    n: f64,
    /// Attractive exponent m.
    #[param(default = 6.0, above = 0.0)]
    m: f64,
    /// Shift Δ of the distance.
    #[param(unit = "length")]
    delta: f64,
}

/// Coefficients Cε, ln σ, n, m and Δ.
#[derive(Debug, PairParams)]
pub struct ExpandedMie<real> {
    prefactor: real,
    ln_sigma: real,
    n: real,
    m: real,
    delta: real,
}

impl RowInput for ExpandedMieInput {
    type Settings = NoSettings;
    type Row = ExpandedMie<f64>;
    fn row(&self, _: &NoSettings) -> std::result::Result<ExpandedMie<f64>, String> {
        let (n, m) = (self.n, self.m);
        if n <= m {
            return Err(format!("n = {n} must be above m = {m}"));
        }
        // distances from the surface are at least 10⁻⁵
        if self.sigma < 1e-3 {
            return Err(format!("sigma = {} must be at least 0.001; use smaller units of length", self.sigma));
        }
        let c = n / (n - m) * (n / m).powf(m / (n - m));
        Ok(ExpandedMie { prefactor: c * self.epsilon, ln_sigma: self.sigma.ln(), n, m, delta: self.delta })
    }
    fn least_cutoff(&self, _: &NoSettings, _: [&str; 2]) -> Option<(f64, &'static str)> {
        Some((self.delta, "delta, below which particles overlap"))
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Option<ExpandedMie<f64>> {
        let m = 3.0 + 4.0 * random();
        let (sigma, n) = (0.6 + 0.2 * random(), m + 1.0 + 6.0 * random());
        ExpandedMieInput { epsilon: 0.5 + random(), sigma, n, m, delta: 0.3 * random() }.row(&NoSettings).ok()
    }
}

/// Expanded Mie pair potential: U(r) = C ε [(σ/s)ⁿ − (σ/s)ᵐ], s = r − Δ, C = n/(n − m) · (n/m)^(m/(n − m)), r < r_cut.
///
/// F = (Cε/s)[n(σ/s)ⁿ − m(σ/s)ᵐ] e, e = r_ij/r. Particles with a core, whose surfaces interact: `Mie` at the distance s.
/// The cutoff is one of r and must exceed Δ. s is at least 10⁻⁵; closer particles make the run fail.
///
/// No reference; the same form is `ExpandedMie` in HOOMD-blue.
///
/// ```ron
/// ExpandedMie(r_cut: 3.0, mode: ShiftEnergy, pairs: {
///     ("A", "A"): (epsilon: 1.0, sigma: 0.7, n: 14.0, delta: 0.3),
///     ("A", "B"): (epsilon: 0.8, sigma: 0.8, n: 11.5, m: 5.5, delta: 0.15),
///     ("B", "B"): (epsilon: 1.0, sigma: 0.9, n: 8.0, m: 4.0, delta: 0.0),
/// })
/// ```
#[pair_potential("ExpandedMie", input = ExpandedMieInput)]
fn expanded_mie(r2: real, p: &ExpandedMie<real>) -> (real, real) {
    let inv_r = r2.rsqrt();
    let s = (r2 * inv_r - p.delta).max(1e-5);
    let ln = p.ln_sigma - s.ln();
    let repulsion = p.prefactor * (p.n * ln).exp();
    let attraction = p.prefactor * (p.m * ln).exp();
    (inv_r * (p.n * repulsion - p.m * attraction) / s, repulsion - attraction)
}
