//! Bonds with cubic and quartic terms.

use galamost_plugin_api::prelude::*;

/// Parameters of one bond type.
#[derive(Clone, Debug, Params)]
pub struct QuarticBondInput {
    /// Quadratic coefficient k₂.
    #[param(unit = "energy/length²", at_least = 0.0)]
    k2: f64,
    /// Cubic coefficient k₃.
    #[param(default = 0.0, unit = "energy/length³")]
    k3: f64,
    /// Quartic coefficient k₄; must be positive if k₃ is negative.
    #[param(default = 0.0, unit = "energy/length⁴", at_least = 0.0)]
    k4: f64,
    /// Equilibrium length r₀.
    #[param(unit = "length", at_least = 0.0)]
    r0: f64,
}

/// Coefficients k₂, k₃, k₄ and r₀.
#[derive(Debug, PairParams)]
pub struct QuarticBond<real> {
    k2: real,
    k3: real,
    k4: real,
    r0: real,
}

impl RowInput for QuarticBondInput {
    type Settings = NoSettings;
    type Row = QuarticBond<f64>;
    fn bond_length(&self) -> Option<(&'static str, f64)> {
        Some(("r0", self.r0))
    }
    fn row(&self, _: &NoSettings) -> std::result::Result<QuarticBond<f64>, String> {
        if self.k4 == 0.0 && self.k3 < 0.0 {
            return Err("k3 below 0 needs k4 above 0: otherwise the energy of a long bond falls to −∞".into());
        }
        Ok(QuarticBond { k2: self.k2, k3: self.k3, k4: self.k4, r0: self.r0 })
    }
}

/// Quartic bond: U(r) = k₂ s² + k₃ s³ + k₄ s⁴, s = r − r₀, without factors ½.
///
/// F = −(2k₂ s + 3k₃ s² + 4k₄ s³) e, e = r_ij/r. r₀ is the lowest minimum if k₃² ≤ 4k₂k₄, and the only one if
/// k₃² ≤ (32/9) k₂k₄. At r = 0 the direction is undefined and the force is 0.
///
/// This is the bond of class II force fields (COMPASS, PCFF; `class2` in LAMMPS).
///
/// Reference: M. J. Hwang, T. P. Stockfisch, A. T. Hagler, J. Am. Chem. Soc. 116 (1994) 2515, doi:10.1021/ja00085a036.
///
/// ```ron
/// QuarticBond(bonds: {
///     "A-A": (k2: 30.0, k3: -40.0, k4: 50.0, r0: 1.0),
///     "A-B": (k2: 20.0, k4: 30.0, r0: 1.1),
///     "B-B": (k2: 30.0, r0: 0.9),
/// })
/// ```
#[bond_potential("QuarticBond", input = QuarticBondInput)]
fn quartic_bond(r2: real, p: &QuarticBond<real>) -> (real, real) {
    let r = r2.sqrt();
    let s = r - p.r0;
    let safe = if r > 0.0 { r } else { 1.0 };
    let f = -s * (2.0 * p.k2 + s * (3.0 * p.k3 + 4.0 * p.k4 * s)) / safe;
    (if r > 0.0 { f } else { 0.0 }, s * s * (p.k2 + s * (p.k3 + p.k4 * s)))
}
