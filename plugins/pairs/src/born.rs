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

/// Coefficients A e^(σ/ρ), 1/ρ, C and D.
#[derive(Debug, PairParams)]
pub struct Born<real> {
    a: real,
    inv_rho: real,
    c: real,
    d: real,
}

impl RowInput for BornInput {
    type Settings = NoSettings;
    type Row = Born<f64>;
    fn row(&self, _: &NoSettings) -> std::result::Result<Born<f64>, String> {
        Ok(Born { a: self.a * (self.sigma / self.rho).exp(), inv_rho: 1.0 / self.rho, c: self.c, d: self.d })
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
    let repulsion = p.a * (-r2 * inv * p.inv_rho).exp();
    let f = repulsion * p.inv_rho * inv + inv2 * inv6 * (8.0 * p.d * inv2 - 6.0 * p.c);
    (f, repulsion + inv6 * (p.d * inv2 - p.c))
}
