//! The Buckingham potential.

use galamost_plugin_api::prelude::*;

/// Parameters of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct BuckinghamInput {
    /// Repulsion strength A.
    #[param(unit = "energy", at_least = 0.0)]
    a: f64,
    /// Repulsion range ρ.
    #[param(unit = "length", above = 0.0)]
    rho: f64,
    /// Attraction strength C.
    #[param(unit = "energy length⁶", at_least = 0.0)]
    c: f64,
}

/// Coefficients A, 1/ρ and C.
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

/// Buckingham (exp-6) pair potential: U(r) = A exp(−r/ρ) − C/r⁶, r < r_cut.
///
/// F = [(A/ρ) exp(−r/ρ) − 6C/r⁷] e, e = r_ij/r. With C = 0 it is the Born-Mayer repulsion, which is finite at
/// r = 0; the direction is undefined there and the force is 0.
///
/// For C > 0 the energy falls to −∞ as r → 0. A barrier separates this region; its top is at the smaller solution of
/// A exp(−r/ρ)/ρ = 6C/r⁷. If Ar⁷exp(−r/ρ) < 6Cρ for all r, there is no barrier. Particles that cross the barrier
/// collapse and the run fails. Start without overlaps and keep kT far below the barrier.
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
    // without attraction the energy is finite at r = 0
    let inv = if (r2 > 0.0) || (p.c > 0.0) { r2.rsqrt() } else { 0.0 };
    let inv2 = inv * inv;
    let repulsion = p.a * (-r2 * inv * p.inv_rho).exp();
    let attraction = p.c * inv2 * inv2 * inv2;
    (repulsion * p.inv_rho * inv - 6.0 * attraction * inv2, repulsion - attraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repulsion_is_finite_for_coinciding_particles() {
        assert_eq!(buckingham(0.0, &Buckingham { a: 3.0, inv_rho: 2.0, c: 0.0 }), (0.0, 3.0));
        // with attraction no run survives
        let (force, _): (f64, f64) = buckingham(0.0, &Buckingham { a: 3.0, inv_rho: 2.0, c: 1.0 });
        assert!(force.is_nan());
    }
}
