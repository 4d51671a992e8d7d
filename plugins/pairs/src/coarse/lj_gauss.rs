//! The Lennard-Jones-Gauss potential.

use galamost_plugin_api::prelude::*;

/// Parameters of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct LjGaussInput {
    /// Depth ε of the Lennard-Jones well.
    #[param(default = 1.0, unit = "energy", at_least = 0.0)]
    epsilon: f64,
    /// Position σ of the Lennard-Jones minimum.
    #[param(default = 1.0, unit = "length", above = 0.0)]
    sigma: f64,
    /// Depth ε_G of the Gaussian well; a negative value gives a barrier.
    #[param(unit = "energy")]
    depth: f64,
    /// Position r₀ of the Gaussian well.
    #[param(unit = "length", at_least = 0.0)]
    r0: f64,
    /// Width w of the Gaussian well.
    #[param(unit = "length", above = 0.0)]
    width: f64,
}

/// Coefficients εσ¹², 2εσ⁶, ε_G, r₀ and 1/w².
#[derive(Debug, PairParams)]
pub struct LjGauss<real> {
    c12: real,
    c6: real,
    depth: real,
    r0: real,
    inv_width2: real,
}

impl RowInput for LjGaussInput {
    type Settings = NoSettings;
    type Row = LjGauss<f64>;
    fn row(&self, _: &NoSettings) -> std::result::Result<LjGauss<f64>, String> {
        let s6 = self.sigma.powi(6);
        Ok(LjGauss {
            c12: self.epsilon * s6 * s6,
            c6: 2.0 * self.epsilon * s6,
            depth: self.depth,
            r0: self.r0,
            inv_width2: self.width.powi(-2),
        })
    }
}

/// Lennard-Jones-Gauss pair potential: U(r) = ε[(σ/r)¹² − 2(σ/r)⁶] − ε_G exp(−(r − r₀)²/2w²), r < r_cut.
///
/// F = {12ε[(σ/r)¹² − (σ/r)⁶]/r − ε_G (r − r₀)/w² exp(−(r − r₀)²/2w²)} e, e = r_ij/r. Without the Gaussian well the
/// minimum is −ε at σ. Systems with two wells form complex crystals and quasicrystals.
///
/// Reference: M. Engel, H.-R. Trebin, Phys. Rev. Lett. 98 (2007) 225505, doi:10.1103/PhysRevLett.98.225505.
///
/// ```ron
/// LjGauss(r_cut: 2.5, mode: ShiftEnergy, pairs: {
///     ("A", "A"): (depth: 1.8, r0: 1.52, width: 0.14),
///     ("A", "B"): (depth: 1.0, r0: 1.4, width: 0.2),
///     ("B", "B"): (epsilon: 0.8, sigma: 0.9, depth: 1.8, r0: 1.4, width: 0.14),
/// })
/// ```
#[pair_potential("LjGauss", input = LjGaussInput)]
fn lj_gauss(r2: real, p: &LjGauss<real>) -> (real, real) {
    let inv = r2.rsqrt();
    let inv2 = inv * inv;
    let inv6 = inv2 * inv2 * inv2;
    let repulsion = p.c12 * inv6;
    let d = r2 * inv - p.r0;
    let well = p.depth * (-0.5 * d * d * p.inv_width2).exp();
    (inv2 * inv6 * (12.0 * repulsion - 6.0 * p.c6) - well * d * p.inv_width2 * inv, inv6 * (repulsion - p.c6) - well)
}
