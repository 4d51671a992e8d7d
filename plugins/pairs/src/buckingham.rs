//! The Buckingham potential.

use galamost_plugin_api::prelude::*;

/// A, ρ and C of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct BuckinghamInput {
    /// A, strength of the repulsion.
    #[param(unit = "energy", at_least = 0.0)]
    a: f64,
    /// ρ, range of the repulsion.
    #[param(unit = "length", above = 0.0)]
    rho: f64,
    /// C, strength of the attraction.
    #[param(unit = "energy length⁶", at_least = 0.0)]
    c: f64,
}

/// A, 1/ρ and C.
#[derive(Debug, PairParams)]
pub struct Buckingham<real> {
    a: real,
    inv_rho: real,
    c: real,
}

impl RowInput for BuckinghamInput {
    type Settings = NoSettings;
    type Row = Buckingham<f64>;
    fn row(&self, _: &NoSettings) -> std::result::Result<Buckingham<f64>, String> {
        Ok(Buckingham { a: self.a, inv_rho: 1.0 / self.rho, c: self.c })
    }
}

/// Buckingham (exp-6): U(r) = A exp(−r/ρ) − C/r⁶, r < r_cut.
///
/// F = [(A/ρ) exp(−r/ρ) − 6C/r⁷] e. For C > 0 the energy falls to −∞ as r → 0: behind a barrier, which lies where
/// A exp(−r/ρ)/ρ = 6C/r⁷ for the smaller of two r, particles fall into each other and the run breaks. Start from
/// positions without overlaps, and keep kT far below the barrier; where Ar⁷exp(−r/ρ) < 6Cρ for all r there is no barrier.
/// With C = 0 it is the Born-Mayer repulsion.
///
/// Reference: R. A. Buckingham, Proc. R. Soc. Lond. A 168 (1938) 264, doi:10.1098/rspa.1938.0173.
///
/// ```ron
/// Buckingham(r_cut: 2.5, mode: ShiftEnergy, pairs: {
///     ("A", "A"): (a: 250000.0, rho: 0.08, c: 2.0),
///     ("A", "B"): (a: 200000.0, rho: 0.08, c: 1.0),
///     ("B", "B"): (a: 100000.0, rho: 0.08, c: 0.0),
/// })
/// ```
#[pair_potential("Buckingham", input = BuckinghamInput)]
fn buckingham(r2: real, p: &Buckingham<real>) -> (real, real) {
    let inv = r2.rsqrt();
    let inv2 = inv * inv;
    let repulsion = p.a * (-r2 * inv * p.inv_rho).exp();
    let attraction = p.c * inv2 * inv2 * inv2;
    (repulsion * p.inv_rho * inv - 6.0 * attraction * inv2, repulsion - attraction)
}
