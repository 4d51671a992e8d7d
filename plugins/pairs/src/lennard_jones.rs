//! The Lennard-Jones potential.

use galamost_plugin_api::pair::Mixing;
use galamost_plugin_api::prelude::*;

/// Parameters of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct LennardJonesInput {
    /// Well depth ε.
    #[param(unit = "energy", at_least = 0.0)]
    epsilon: f64,
    /// Diameter σ: for α = 1, U(σ) = 0.
    #[param(unit = "length", above = 0.0)]
    sigma: f64,
    /// Factor α of the attraction.
    #[param(default = 1.0)]
    alpha: f64,
}

/// Coefficients 4εσ¹² and 4εασ⁶.
#[derive(Debug, PairParams)]
pub struct LennardJones<real> {
    c12: real,
    c6: real,
}

impl RowInput for LennardJonesInput {
    type Settings = NoSettings;
    type Row = LennardJones<f64>;
    fn row(&self, _: &NoSettings) -> std::result::Result<LennardJones<f64>, String> {
        let c6 = 4.0 * self.epsilon * self.sigma.powi(6);
        Ok(LennardJones { c12: c6 * self.sigma.powi(6), c6: self.alpha * c6 })
    }
    const MIXES: bool = true;
    fn mix(&self, other: &Self, rule: Mixing) -> std::result::Result<Self, String> {
        if self.alpha != other.alpha {
            return Err("the factors `alpha` differ; write a row for this pair".into());
        }
        let sigma = [self.sigma, other.sigma];
        let epsilon = rule.energy([self.epsilon, other.epsilon], sigma);
        Ok(Self { epsilon, sigma: rule.length(sigma), alpha: self.alpha })
    }
}

/// Lennard-Jones pair potential: U(r) = 4ε[(σ/r)¹² − α(σ/r)⁶], r < r_cut.
///
/// F = (24ε/r²)[2(σ/r)¹² − α(σ/r)⁶] r_ij. With α = 1, ε = σ = 1 the minimum is −1 at 2^(1/6).
///
/// Reference: J. E. Jones, Proc. R. Soc. Lond. A 106 (1924) 463; Zhu et al., J. Comput. Chem. 34 (2013) 2197, eq 1.
///
/// ```ron
/// LennardJones(r_cut: 2.5, mode: ShiftEnergy, pairs: {
///     ("A", "A"): (epsilon: 1.0, sigma: 1.0),
///     ("A", "B"): (epsilon: 0.5, sigma: 1.0, alpha: 0.0),
///     ("B", "B"): (epsilon: 1.0, sigma: 0.9, r_cut: 2.25),
/// })
/// ```
#[pair_potential("LennardJones", input = LennardJonesInput)]
fn lennard_jones(r2: real, p: &LennardJones<real>) -> (real, real) {
    let inv2 = 1.0 / r2;
    let inv6 = inv2 * inv2 * inv2;
    let repulsion = p.c12 * inv6;
    (inv2 * inv6 * (12.0 * repulsion - 6.0 * p.c6), inv6 * (repulsion - p.c6))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The minimum is −ε at 2^(1/6) σ, and U(σ) = 0.
    #[test]
    fn minimum_and_zero() {
        let row = LennardJonesInput { epsilon: 1.5, sigma: 0.8, alpha: 1.0 }.row(&NoSettings).expect("valid");
        let minimum = 2f64.powf(1.0 / 3.0) * 0.64;
        let (f, u) = lennard_jones(minimum, &row);
        assert!(f.abs() < 1e-12 && (u + 1.5).abs() < 1e-12, "{f} {u}");
        assert!(lennard_jones(0.64, &row).1.abs() < 1e-12);
    }
}
