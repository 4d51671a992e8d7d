//! The Mie potential.

use galamost_plugin_api::pair::Mixing;
use galamost_plugin_api::prelude::*;

/// Parameters of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct MieInput {
    /// Well depth ε.
    #[param(unit = "energy", at_least = 0.0)]
    epsilon: f64,
    /// Diameter σ: U(σ) = 0.
    #[param(unit = "length", above = 0.0)]
    sigma: f64,
    /// Repulsive exponent n > m.
    #[param(above = 0.0, at_most = 100.0)]
    n: f64,
    /// Attractive exponent m.
    #[param(default = 6.0, above = 0.0)]
    m: f64,
}

/// Coefficients Cε, σ², n/2 and m/2.
#[derive(Debug, PairParams)]
pub struct Mie<real> {
    prefactor: real,
    sigma2: real,
    half_n: real,
    half_m: real,
}

impl RowInput for MieInput {
    type Settings = NoSettings;
    type Row = Mie<f64>;
    fn row(&self, _: &NoSettings) -> std::result::Result<Mie<f64>, String> {
        let (n, m) = (self.n, self.m);
        if n <= m {
            return Err(format!("n = {n} must be above m = {m}"));
        }
        let c = n / (n - m) * (n / m).powf(m / (n - m));
        Ok(Mie { prefactor: c * self.epsilon, sigma2: self.sigma * self.sigma, half_n: 0.5 * n, half_m: 0.5 * m })
    }
    const MIXES: bool = true;
    fn mix(&self, other: &Self, rule: Mixing) -> std::result::Result<Self, String> {
        if (self.n, self.m) != (other.n, other.m) {
            return Err("the exponents differ; write a row for this pair".into());
        }
        let sigma = [self.sigma, other.sigma];
        let epsilon = rule.energy([self.epsilon, other.epsilon], sigma);
        Ok(Self { epsilon, sigma: rule.length(sigma), n: self.n, m: self.m })
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Option<Mie<f64>> {
        let m = 3.0 + 4.0 * random();
        let input = MieInput { epsilon: 0.5 + random(), sigma: 0.8 + 0.4 * random(), n: m + 1.0 + 6.0 * random(), m };
        input.row(&NoSettings).ok()
    }
}

/// Mie pair potential: U(r) = C ε [(σ/r)ⁿ − (σ/r)ᵐ], C = n/(n − m) · (n/m)^(m/(n − m)), r < r_cut.
///
/// F = (Cε/r²)[n(σ/r)ⁿ − m(σ/r)ᵐ] r_ij. The minimum is −ε at r = σ (n/m)^(1/(n − m)). The exponents may be fractional.
/// For n = 12, m = 6 use `LennardJones`, which is faster.
///
/// Reference: G. Mie, Ann. Phys. 316 (1903) 657, doi:10.1002/andp.19033160802.
///
/// ```ron
/// Mie(r_cut: 2.5, mode: ShiftEnergy, pairs: {
///     ("A", "A"): (epsilon: 1.0, sigma: 1.0, n: 14.0),
///     ("A", "B"): (epsilon: 0.8, sigma: 0.95, n: 11.5, m: 5.5),
///     ("B", "B"): (epsilon: 1.0, sigma: 0.9, n: 8.0, m: 4.0),
/// })
/// ```
#[pair_potential("Mie", input = MieInput)]
fn mie(r2: real, p: &Mie<real>) -> (real, real) {
    let inv2 = 1.0 / r2;
    let ln = (p.sigma2 * inv2).ln();
    let repulsion = p.prefactor * (p.half_n * ln).exp();
    let attraction = p.prefactor * (p.half_m * ln).exp();
    (2.0 * inv2 * (p.half_n * repulsion - p.half_m * attraction), repulsion - attraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimum_and_zero() {
        let row = MieInput { epsilon: 1.5, sigma: 0.8, n: 14.0, m: 7.0 }.row(&NoSettings).expect("valid");
        let minimum = 0.8 * 2f64.powf(1.0 / 7.0);
        let (f, u) = mie(minimum * minimum, &row);
        assert!(f.abs() < 1e-12 && (u + 1.5).abs() < 1e-12, "{f} {u}");
        assert!(mie(0.64, &row).1.abs() < 1e-12);
    }
}
