//! Dihedral potential with four cosines.

use galamost_plugin_api::prelude::*;

/// Parameters of one dihedral type.
#[derive(Debug, PairParams)]
pub struct OplsDihedral<real> {
    /// Coefficient k₁ of cos φ.
    #[param(unit = "energy", default = 0.0)]
    k1: real,
    /// Coefficient k₂ of cos 2φ.
    #[param(unit = "energy", default = 0.0)]
    k2: real,
    /// Coefficient k₃ of cos 3φ.
    #[param(unit = "energy", default = 0.0)]
    k3: real,
    /// Coefficient k₄ of cos 4φ.
    #[param(unit = "energy", default = 0.0)]
    k4: real,
}

/// OPLS dihedral: U(φ) = ½ [k₁(1 + cos φ) + k₂(1 − cos 2φ) + k₃(1 + cos 3φ) + k₄(1 − cos 4φ)].
///
/// The factor ½ belongs to the form. φ = 0 is cis, ±180° is trans.
///
/// Reference: Jorgensen, Maxwell and Tirado-Rives, J. Am. Chem. Soc. 118 (1996) 11225, doi:10.1021/ja9621760.
///
/// ```ron
/// OplsDihedral(dihedrals: { "A-A-A-A": (k1: 1.3, k2: -0.05, k3: 0.2), "A-A-A-B": (k1: 0.5, k4: 0.2), "A-A-B-B": (k2: 0.7),
///     "A-B-B-B": (k3: 0.4), "B-B-B-B": (k1: 0.1, k2: 0.2, k3: 0.3, k4: 0.4) })
/// ```
#[dihedral_potential("OplsDihedral")]
fn opls_dihedral(cos_phi: real, sin_phi: real, p: &OplsDihedral<real>) -> (real, real) {
    // cos nφ as polynomials in cos φ
    let c = cos_phi;
    let c2 = c * c;
    let u = 0.5
        * (p.k1 * (1.0 + c)
            + 2.0 * p.k2 * (1.0 - c2)
            + p.k3 * (1.0 - 3.0 * c + 4.0 * c * c2)
            + 8.0 * p.k4 * (c2 - c2 * c2));
    let slope = 0.5 * (p.k1 - 4.0 * p.k2 * c + p.k3 * (12.0 * c2 - 3.0) + p.k4 * (16.0 * c - 32.0 * c * c2));
    (-sin_phi * slope, u)
}
