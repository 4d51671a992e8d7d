//! Harmonic bonds.

use galamost_plugin_api::prelude::*;

/// Settings of the component.
#[derive(Clone, Debug, Params)]
pub struct HarmonicBondSettings {
    /// Prefactor convention: `Paper` for U = k (r − r₀)², `Half` for U = ½ k (r − r₀)².
    #[param(default = Convention::Paper)]
    convention: Convention,
}

/// Parameters of one bond type.
#[derive(Clone, Debug, Params)]
pub struct HarmonicBondInput {
    /// Stiffness k.
    #[param(unit = "energy/length²", at_least = 0.0)]
    k: f64,
    /// Equilibrium length r₀.
    #[param(unit = "length", at_least = 0.0)]
    r0: f64,
}

/// Coefficient k of U = k (r − r₀)², and r₀.
#[derive(Debug, PairParams)]
pub struct HarmonicBond<real> {
    #[param(at_least = 0.0)]
    k: real,
    #[param(at_least = 0.0)]
    r0: real,
}

impl RowInput for HarmonicBondInput {
    type Settings = HarmonicBondSettings;
    type Row = HarmonicBond<f64>;
    fn bond_length(&self) -> Option<(&'static str, f64)> {
        Some(("r0", self.r0))
    }
    fn row(&self, settings: &HarmonicBondSettings) -> std::result::Result<HarmonicBond<f64>, String> {
        Ok(HarmonicBond { k: settings.convention.factor() * self.k, r0: self.r0 })
    }
}

/// Harmonic bond: U(r) = k (r − r₀)².
///
/// F = −2k (r − r₀) e, e = r_ij/r. There is no factor ½: with `convention: Half`, k is that of U = ½ k (r − r₀)², as in
/// HOOMD-blue and PyGAMD. At r = 0 the direction is undefined and the force is 0.
///
/// Reference: Zhu et al., J. Comput. Chem. 34 (2013) 2197, eq 8.
///
/// ```ron
/// HarmonicBond(bonds: { "A-A": (k: 2.0, r0: 0.0), "A-B": (k: 2.0, r0: 1.0), "B-B": (k: 30.0, r0: 0.9) })
/// ```
#[bond_potential("HarmonicBond", input = HarmonicBondInput)]
fn harmonic_bond(r2: real, p: &HarmonicBond<real>) -> (real, real) {
    let r = r2.sqrt();
    let stretch = r - p.r0;
    let safe = if r > 0.0 { r } else { 1.0 };
    (-2.0 * p.k * stretch / safe, p.k * stretch * stretch)
}
