//! The Weeks-Chandler-Andersen repulsion.

use galamost_plugin_api::component::SystemInfo;
use galamost_plugin_api::pair::Mixing;
use galamost_plugin_api::prelude::*;

/// Parameters of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct WcaInput {
    /// Energy ε at r = σ.
    #[param(unit = "energy", at_least = 0.0)]
    epsilon: f64,
    /// Diameter σ.
    #[param(unit = "length", above = 0.0)]
    sigma: f64,
}

/// Coefficients 4εσ¹², 4εσ⁶ and ε.
#[derive(Debug, PairParams)]
pub struct Wca<real> {
    c12: real,
    c6: real,
    epsilon: real,
}

impl RowInput for WcaInput {
    type Settings = NoSettings;
    type Row = Wca<f64>;
    const OWN_CUTOFF: bool = true;
    fn row(&self, _: &NoSettings) -> std::result::Result<Wca<f64>, String> {
        let c6 = 4.0 * self.epsilon * self.sigma.powi(6);
        Ok(Wca { c12: c6 * self.sigma.powi(6), c6, epsilon: self.epsilon })
    }
    const MIXES: bool = true;
    fn mix(&self, other: &Self, rule: Mixing) -> std::result::Result<Self, String> {
        let sigma = [self.sigma, other.sigma];
        let epsilon = rule.energy([self.epsilon, other.epsilon], sigma);
        Ok(Self { epsilon, sigma: rule.length(sigma) })
    }
    fn cutoff(&self, _: &NoSettings, _: &SystemInfo) -> Option<f64> {
        Some(2f64.powf(1.0 / 6.0) * self.sigma)
    }
}

/// WCA pair potential, the repulsive part of Lennard-Jones: U(r) = 4ε[(σ/r)¹² − (σ/r)⁶] + ε, r < 2^(1/6) σ.
///
/// F = (24ε/r²)[2(σ/r)¹² − (σ/r)⁶] r_ij. The cutoff of each pair of types is 2^(1/6) σ, where U and F vanish; there is
/// neither `r_cut` nor `mode`.
///
/// Reference: J. D. Weeks, D. Chandler, H. C. Andersen, J. Chem. Phys. 54 (1971) 5237, doi:10.1063/1.1674820.
///
/// ```ron
/// Wca(pairs: {
///     ("A", "A"): (epsilon: 1.0, sigma: 1.0),
///     ("A", "B"): (epsilon: 1.0, sigma: 0.95),
///     ("B", "B"): (epsilon: 1.0, sigma: 0.9),
/// })
/// ```
#[pair_potential("Wca", input = WcaInput)]
fn wca(r2: real, p: &Wca<real>) -> (real, real) {
    let inv2 = 1.0 / r2;
    let inv6 = inv2 * inv2 * inv2;
    let repulsion = p.c12 * inv6;
    (inv2 * inv6 * (12.0 * repulsion - 6.0 * p.c6), inv6 * (repulsion - p.c6) + p.epsilon)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn energy_and_force_vanish_at_the_cutoff() {
        let input = WcaInput { epsilon: 1.5, sigma: 0.8 };
        let r = input.cutoff(&NoSettings, &SystemInfo::default()).expect("a cutoff");
        let row = input.row(&NoSettings).expect("valid");
        let (f, u) = wca(r * r, &row);
        assert!(f.abs() < 1e-12 && u.abs() < 1e-14, "{f} {u}");
        assert!((wca(0.64, &row).1 - 1.5).abs() < 1e-13);
    }
}
