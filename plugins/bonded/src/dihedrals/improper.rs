//! Improper potential that is harmonic in φ.

use galamost_plugin_api::prelude::*;

/// Settings of the component.
#[derive(Clone, Debug, Params)]
pub struct ImproperSettings {
    /// Prefactor convention: `Paper` for U = k (φ − φ₀)², `Half` for U = ½ k (φ − φ₀)².
    #[param(default = Convention::Paper)]
    convention: Convention,
}

/// Parameters of one dihedral type.
#[derive(Clone, Debug, Params)]
pub struct ImproperParameters {
    /// Stiffness k.
    #[param(unit = "energy", at_least = 0.0)]
    k: f64,
    /// Equilibrium angle φ₀.
    #[param(unit = "degrees", default = 0.0, at_least = -180.0, at_most = 180.0)]
    phi0_deg: f64,
}

/// Coefficient k of U = k (φ − φ₀)², and φ₀ in radians.
#[derive(Debug, PairParams)]
pub struct HarmonicImproper<real> {
    #[param(at_least = 0.0)]
    k: real,
    #[param(at_least = -3.14159265, at_most = 3.14159265)]
    phi0: real,
}

impl RowInput for ImproperParameters {
    type Settings = ImproperSettings;
    type Row = HarmonicImproper<f64>;
    fn row(&self, settings: &ImproperSettings) -> std::result::Result<HarmonicImproper<f64>, String> {
        Ok(HarmonicImproper { k: settings.convention.factor() * self.k, phi0: self.phi0_deg.to_radians() })
    }
}

/// Harmonic improper: U(φ) = k (φ − φ₀)², with φ − φ₀ wrapped to −180° … 180° and k in energy per rad².
///
/// It keeps four particles in a plane (φ₀ = 0) or at a given chirality. There is no factor ½: with `convention: Half`, k is
/// that of U = ½ k (φ − φ₀)². The force is discontinuous opposite to φ₀, where the barrier is k π².
///
/// Reference: van Gunsteren and Berendsen, Groningen Molecular Simulation (GROMOS) Library Manual, Biomos, 1987.
///
/// ```ron
/// HarmonicImproper(dihedrals: { "A-A-A-A": (k: 2.0), "A-A-A-B": (k: 1.0, phi0_deg: 35.0), "A-A-B-B": (k: 0.5),
///     "A-B-B-B": (k: 0.5, phi0_deg: 180.0), "B-B-B-B": (k: 0.2, phi0_deg: -90.0) })
/// ```
#[dihedral_potential("HarmonicImproper", input = ImproperParameters)]
fn harmonic_improper(phi: real, p: &HarmonicImproper<real>) -> (real, real) {
    let d = phi - p.phi0;
    let turn = 6.283185307179586;
    let x = if d > 0.5 * turn {
        d - turn
    } else if d < -0.5 * turn {
        d + turn
    } else {
        d
    };
    (2.0 * p.k * x, p.k * x * x)
}
