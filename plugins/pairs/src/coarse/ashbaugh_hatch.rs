//! The Ashbaugh-Hatch potential.

use galamost_plugin_api::pair::Mixing;
use galamost_plugin_api::prelude::*;

/// Parameters of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct AshbaughHatchInput {
    /// Energy ε.
    #[param(unit = "energy", at_least = 0.0)]
    epsilon: f64,
    /// Diameter σ.
    #[param(unit = "length", above = 0.0)]
    sigma: f64,
    /// Stickiness λ: 0 is WCA, 1 is Lennard-Jones.
    #[param(at_least = 0.0)]
    lambda: f64,
}

/// Coefficients 4εσ¹², 4εσ⁶, λ, ε(1 − λ) and the squared distance of the minimum.
#[derive(Debug, PairParams)]
pub struct AshbaughHatch<real> {
    c12: real,
    c6: real,
    lambda: real,
    lift: real,
    min2: real,
}

impl RowInput for AshbaughHatchInput {
    type Settings = NoSettings;
    type Row = AshbaughHatch<f64>;
    fn row(&self, _: &NoSettings) -> std::result::Result<AshbaughHatch<f64>, String> {
        let c6 = 4.0 * self.epsilon * self.sigma.powi(6);
        Ok(AshbaughHatch {
            c12: c6 * self.sigma.powi(6),
            c6,
            lambda: self.lambda,
            lift: self.epsilon * (1.0 - self.lambda),
            min2: 2f64.cbrt() * self.sigma * self.sigma,
        })
    }
    const MIXES: bool = true;
    fn mix(&self, other: &Self, rule: Mixing) -> std::result::Result<Self, String> {
        let sigma = [self.sigma, other.sigma];
        let epsilon = rule.energy([self.epsilon, other.epsilon], sigma);
        Ok(Self { epsilon, sigma: rule.length(sigma), lambda: 0.5 * (self.lambda + other.lambda) })
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Option<AshbaughHatch<f64>> {
        let input = AshbaughHatchInput { epsilon: 0.5 + random(), sigma: 0.8 + 0.4 * random(), lambda: random() };
        input.row(&NoSettings).ok()
    }
}

/// Ashbaugh-Hatch pair potential: U(r) = U_LJ(r) + ε(1 − λ) for r ≤ 2^(1/6) σ, λ U_LJ(r) beyond, r < r_cut.
///
/// U_LJ = 4ε[(σ/r)¹² − (σ/r)⁶]. The minimum is −λε at 2^(1/6) σ, where U and F are continuous. With `mixing`, λ of unlike
/// types is the arithmetic mean, as in HPS and CALVADOS models of disordered proteins.
///
/// Reference: H. S. Ashbaugh, H. W. Hatch, J. Am. Chem. Soc. 130 (2008) 9536, doi:10.1021/ja802124e.
///
/// ```ron
/// AshbaughHatch(r_cut: 2.5, mode: ShiftEnergy, mixing: LorentzBerthelot, pairs: {
///     ("A", "A"): (epsilon: 1.0, sigma: 1.0, lambda: 0.7),
///     ("B", "B"): (epsilon: 1.0, sigma: 0.9, lambda: 0.1),
/// })
/// ```
#[pair_potential("AshbaughHatch", input = AshbaughHatchInput)]
fn ashbaugh_hatch(r2: real, p: &AshbaughHatch<real>) -> (real, real) {
    let inv2 = 1.0 / r2;
    let inv6 = inv2 * inv2 * inv2;
    let repulsion = p.c12 * inv6;
    let f = inv2 * inv6 * (12.0 * repulsion - 6.0 * p.c6);
    let u = inv6 * (repulsion - p.c6);
    let near = r2 <= p.min2;
    (if near { f } else { p.lambda * f }, if near { u + p.lift } else { p.lambda * u })
}
