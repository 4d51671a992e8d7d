//! The Yukawa potential with one strength per pair of types.

use galamost_plugin_api::prelude::*;

/// Parameters of one pair of types.
#[derive(Debug, PairParams)]
pub struct Yukawa<real> {
    /// Strength ε; a negative value attracts.
    #[param(unit = "energy length")]
    epsilon: real,
    /// Inverse screening length κ.
    #[param(unit = "1/length", at_least = 0.0)]
    kappa: real,
}

/// Yukawa (screened Coulomb) pair potential: U(r) = ε exp(−κr)/r, r < r_cut.
///
/// F = (U/r²)(1 + κr) r_ij. For charges of individual particles use `DebyeHueckel`.
///
/// Reference: H. Yukawa, Proc. Phys.-Math. Soc. Jpn. 17 (1935) 48, doi:10.11429/ppmsj1919.17.0_48.
///
/// ```ron
/// Yukawa(r_cut: 3.0, mode: ShiftEnergy, pairs: {
///     ("A", "A"): (epsilon: 5.0, kappa: 2.0),
///     ("A", "B"): (epsilon: -2.0, kappa: 2.0),
///     ("B", "B"): (epsilon: 5.0, kappa: 1.0),
/// })
/// ```
#[pair_potential("Yukawa")]
fn yukawa(r2: real, p: &Yukawa<real>) -> (real, real) {
    let inv = r2.rsqrt();
    let kr = p.kappa * r2 * inv;
    let u = p.epsilon * (-kr).exp() * inv;
    (u * (kr + 1.0) * inv * inv, u)
}
