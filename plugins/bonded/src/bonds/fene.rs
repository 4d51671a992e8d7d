//! Finitely extensible nonlinear elastic (FENE) bonds.

use galamost_plugin_api::prelude::*;

/// Parameters of one bond type.
#[derive(Clone, Debug, Params)]
pub struct FeneInput {
    /// Stiffness k.
    #[param(unit = "energy/length²", above = 0.0)]
    k: f64,
    /// Maximum length R₀.
    #[param(name = "R0", unit = "length", above = 0.0)]
    r_max: f64,
    /// Energy ε of the WCA repulsion; 0 for no repulsion.
    #[param(default = 0.0, unit = "energy", at_least = 0.0)]
    epsilon: f64,
    /// Diameter σ of the WCA repulsion.
    #[param(default = 1.0, unit = "length", above = 0.0)]
    sigma: f64,
}

/// Coefficients k and R₀², and those of the WCA term: 4εσ¹², 4εσ⁶, ε and the squared cutoff.
#[derive(Debug, PairParams)]
pub struct Fene<real> {
    k: real,
    max2: real,
    c12: real,
    c6: real,
    epsilon: real,
    cutoff2: real,
}

impl RowInput for FeneInput {
    type Settings = NoSettings;
    type Row = Fene<f64>;
    fn bond_length(&self) -> Option<(&'static str, f64)> {
        Some(("R0", self.r_max))
    }
    fn row(&self, _: &NoSettings) -> std::result::Result<Fene<f64>, String> {
        let s6 = self.sigma.powi(6);
        if self.epsilon > 0.0 && self.sigma >= self.r_max {
            return Err(format!(
                "sigma = {} must be below R0 = {}: no bond length would be possible",
                self.sigma, self.r_max
            ));
        }
        Ok(Fene {
            k: self.k,
            max2: self.r_max * self.r_max,
            c12: 4.0 * self.epsilon * s6 * s6,
            c6: 4.0 * self.epsilon * s6,
            epsilon: self.epsilon,
            cutoff2: if self.epsilon > 0.0 { 2f64.cbrt() * self.sigma * self.sigma } else { 0.0 },
        })
    }
    fn inert() -> Option<Fene<f64>> {
        // the length never reaches R₀
        Some(Fene { k: 0.0, max2: 1e30, c12: 0.0, c6: 0.0, epsilon: 0.0, cutoff2: 0.0 })
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Option<Fene<f64>> {
        // without WCA, whose second derivative jumps at the cutoff; the reference rows cover it. Lengths go up to 1.3
        let input = FeneInput { k: 30.0 * random(), r_max: 1.6 + 0.5 * random(), epsilon: 0.0, sigma: 0.8 };
        input.row(&NoSettings).ok()
    }
}

/// FENE bond: U(r) = −½ k R₀² ln[1 − (r/R₀)²] + U_WCA(r), r < R₀.
///
/// U_WCA = 4ε[(σ/r)¹² − (σ/r)⁶] + ε for r < 2^(1/6) σ; it is included if `epsilon` is given. The force is
/// F = −k r_ij/[1 − (r/R₀)²] plus the WCA force. The factor ½ belongs to the form.
///
/// The Kremer-Grest chain has k = 30 ε/σ² and R₀ = 1.5 σ, and a mean bond length of about 0.97 σ at kT = ε. There are two
/// ways to set it up: exclude bonded pairs from the pair forces (`neighbors: (exclude: [Bonds])`) and give ε and σ here, or
/// exclude nothing and omit `epsilon`, so that `Wca` also acts between bonded particles. With the exclusion but without
/// `epsilon`, nothing keeps bonded particles apart and the pressure is wrong; the check warns about it. With `epsilon` and without the
/// exclusion, the repulsion counts twice: bonds are longer than those of the model, and no warning appears.
///
/// A bond that reaches R₀ ends the run with an error that names its two particles. An initial bond of R₀ or more is an error
/// of the check.
///
/// Reference: K. Kremer, G. S. Grest, J. Chem. Phys. 92 (1990) 5057, doi:10.1063/1.458541.
///
/// ```ron
/// Fene(bonds: {
///     "A-A": (k: 30.0, R0: 2.0, epsilon: 1.0, sigma: 1.0),
///     "A-B": (k: 20.0, R0: 2.2, epsilon: 1.0, sigma: 0.95),
///     "B-B": (k: 7.0, R0: 2.0),
/// })
/// ```
#[bond_potential("Fene", input = FeneInput)]
fn fene(r2: real, p: &Fene<real>) -> (real, real) {
    // 0 for r ≥ R₀: the force is then −∞, which the loop reports as a broken bond
    let remaining = (1.0 - r2 / p.max2).max(0.0);
    let inv2 = 1.0 / r2;
    let inv6 = inv2 * inv2 * inv2;
    let repulsion = p.c12 * inv6;
    let near = r2 < p.cutoff2;
    let f = if near { inv2 * inv6 * (12.0 * repulsion - 6.0 * p.c6) } else { 0.0 };
    let u = if near { inv6 * (repulsion - p.c6) + p.epsilon } else { 0.0 };
    (f - p.k / remaining, u - 0.5 * p.k * p.max2 * remaining.ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kremer_grest_minimum_and_divergence() {
        let row = FeneInput { k: 30.0, r_max: 1.5, epsilon: 1.0, sigma: 1.0 }.row(&NoSettings).expect("valid");
        // the minimum of the Kremer-Grest bond
        let force = |r: f64| fene(r * r, &row).0 * r;
        assert!(force(0.9608) > 0.0 && force(0.9610) < 0.0, "{} {}", force(0.9608), force(0.9610));
        assert_eq!(fene(2.25, &row).0, f64::NEG_INFINITY);
        assert_eq!(fene(9.0, &row).0, f64::NEG_INFINITY);
        assert_eq!(
            fene(9.0f32, &Fene { k: 30.0, max2: 2.25, c12: 4.0, c6: 4.0, epsilon: 1.0, cutoff2: 1.26 }).0,
            f32::NEG_INFINITY
        );
    }
}
