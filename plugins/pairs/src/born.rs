//! The Born-Mayer-Huggins potential.

use galamost_plugin_api::prelude::*;

/// Parameters of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct BornInput {
    /// Repulsion A at r = σ.
    #[param(name = "A", unit = "energy", at_least = 0.0)]
    a: f64,
    /// Range ρ of the repulsion.
    #[param(unit = "length", above = 0.0)]
    rho: f64,
    /// Sum σ of the ionic radii.
    #[param(default = 0.0, unit = "length")]
    sigma: f64,
    /// Dipole-dipole attraction C.
    #[param(name = "C", default = 0.0, unit = "energy·length⁶")]
    c: f64,
    /// Coefficient D of r⁻⁸; negative values attract.
    #[param(name = "D", default = 0.0, unit = "energy·length⁸")]
    d: f64,
}

/// The distance r₁ = σ + ρ ln A at which the repulsion is 1, 1/ρ, C and D. A and e^(σ/ρ) may be beyond the numbers of f32.
#[derive(Debug, PairParams)]
pub struct Born<real> {
    r1: real,
    inv_rho: real,
    c: real,
    d: real,
}

impl RowInput for BornInput {
    type Settings = NoSettings;
    type Row = Born<f64>;
    fn row(&self, _: &NoSettings) -> std::result::Result<Born<f64>, String> {
        // without repulsion, a distance for which the exponential is 0 in f64, too
        let r1 = if self.a > 0.0 { self.sigma + self.rho * self.a.ln() } else { -1000.0 * self.rho };
        Ok(Born { r1, inv_rho: 1.0 / self.rho, c: self.c, d: self.d })
    }
}

/// Born-Mayer-Huggins pair potential: U(r) = A exp((σ − r)/ρ) − C/r⁶ + D/r⁸, r < r_cut.
///
/// F = [(A/ρ) exp((σ − r)/ρ) − 6C/r⁷ + 8D/r⁹] e, e = r_ij/r. The sign of D is that of `born` in LAMMPS; Tosi and Fumi write
/// −D/r⁸. With σ = 0 and D = 0 it is `Buckingham`. As there, the energy falls to −∞ as r → 0 unless D > 0; with C = D = 0 it is finite, and
/// the force at r = 0 is 0.
///
/// Reference: F. G. Fumi, M. P. Tosi, J. Phys. Chem. Solids 25 (1964) 31, doi:10.1016/0022-3697(64)90159-3.
///
/// ```ron
/// Born(r_cut: 2.5, mode: ShiftEnergy, pairs: {
///     ("A", "A"): (A: 2.0, rho: 0.1, sigma: 1.0, C: 1.0, D: 0.2),
///     ("A", "B"): (A: 1.5, rho: 0.1, sigma: 0.95, C: 0.5, D: 0.1),
///     ("B", "B"): (A: 2.0, rho: 0.1, sigma: 0.9),
/// })
/// ```
#[pair_potential("Born", input = BornInput)]
fn born(r2: real, p: &Born<real>) -> (real, real) {
    // without attraction the energy is finite at r = 0
    let inv = if (r2 > 0.0) || (p.c != 0.0) || (p.d != 0.0) { r2.rsqrt() } else { 0.0 };
    let inv2 = inv * inv;
    let inv6 = inv2 * inv2 * inv2;
    let repulsion = ((p.r1 - r2 * inv) * p.inv_rho).exp();
    let f = repulsion * p.inv_rho * inv + inv2 * inv6 * (8.0 * p.d * inv2 - 6.0 * p.c);
    (f, repulsion + inv6 * (p.d * inv2 - p.c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use galamost_plugin_api::pair::Row;

    #[test]
    fn a_prefactor_beyond_f32_gives_ordinary_forces() {
        let (a, rho, sigma, r) = (1e40, 0.02, 0.1, f64::from(2.0f32));
        let row = BornInput { a, rho, sigma, c: 0.5, d: 0.1 }.row(&NoSettings).expect("valid").cast::<f32>();
        let (f, u) = born(4.0f32, &row);
        let repulsion = a * ((sigma - r) / rho).exp();
        let expected = [
            repulsion / rho / r - 6.0 * 0.5 / r.powi(8) + 8.0 * 0.1 / r.powi(10),
            repulsion - 0.5 / r.powi(6) + 0.1 / r.powi(8),
        ];
        for (found, expected) in [f, u].into_iter().zip(expected) {
            // r₁ with 24 bits: an error of 6e-8 r₁/ρ = 6e-6 in the exponent; the function `exp` has 1e-6 more
            assert!((f64::from(found) - expected).abs() < 1e-4 * expected.abs(), "{found}, {expected}");
        }
    }

    #[test]
    fn without_a_there_is_no_repulsion() {
        let row = BornInput { a: 0.0, rho: 2.0, sigma: 30.0, c: 0.0, d: 0.0 }.row(&NoSettings).expect("valid");
        assert_eq!(born(0.01, &row), (0.0, 0.0));
        assert_eq!(born(0.0, &row), (0.0, 0.0));
    }
}
