//! Dihedral potential that is a polynomial in cos ψ.

use galamost_plugin_api::prelude::*;

/// Parameters of one dihedral type.
#[derive(Debug, PairParams)]
pub struct RyckaertBellemans<real> {
    /// Coefficient C₀ of the constant term.
    #[param(unit = "energy", default = 0.0)]
    c0: real,
    /// Coefficient C₁ of cos ψ.
    #[param(unit = "energy", default = 0.0)]
    c1: real,
    /// Coefficient C₂ of cos² ψ.
    #[param(unit = "energy", default = 0.0)]
    c2: real,
    /// Coefficient C₃ of cos³ ψ.
    #[param(unit = "energy", default = 0.0)]
    c3: real,
    /// Coefficient C₄ of cos⁴ ψ.
    #[param(unit = "energy", default = 0.0)]
    c4: real,
    /// Coefficient C₅ of cos⁵ ψ.
    #[param(unit = "energy", default = 0.0)]
    c5: real,
}

/// Ryckaert–Bellemans dihedral: U(ψ) = Σ Cₙ cosⁿ ψ, n = 0 … 5, ψ = φ − 180°.
///
/// ψ = 0 is trans: the polymer convention, in which the coefficients are tabulated. φ = 0 is cis.
///
/// Reference: Ryckaert and Bellemans, Chem. Phys. Lett. 30 (1975) 123, doi:10.1016/0009-2614(75)85513-8.
///
/// ```ron
/// RyckaertBellemans(dihedrals: {
///     "A-A-A-A": (c0: 9.28, c1: 12.16, c2: -13.12, c3: -3.06, c4: 26.24, c5: -31.5), "A-A-A-B": (c0: 1.0, c1: 1.0),
///     "A-A-B-B": (c2: 0.5), "A-B-B-B": (c3: 0.5), "B-B-B-B": (c4: 0.2, c5: 0.1) })
/// ```
#[dihedral_potential("RyckaertBellemans")]
fn ryckaert_bellemans(cos_phi: real, sin_phi: real, p: &RyckaertBellemans<real>) -> (real, real) {
    let c = -cos_phi;
    let u = p.c0 + c * (p.c1 + c * (p.c2 + c * (p.c3 + c * (p.c4 + c * p.c5))));
    let slope = p.c1 + c * (2.0 * p.c2 + c * (3.0 * p.c3 + c * (4.0 * p.c4 + c * 5.0 * p.c5)));
    (sin_phi * slope, u)
}
