//! Dihedral potential that is harmonic in φ.

use galamost_plugin_api::prelude::*;

/// Settings of the component.
#[derive(Clone, Debug, Params)]
pub struct HarmonicSettings {
    /// Prefactor convention: `Paper` for U = k (φ − φ₀)², `Half` for U = ½ k (φ − φ₀)².
    #[param(default = Convention::Paper)]
    convention: Convention,
}

/// Parameters of one dihedral type.
#[derive(Clone, Debug, Params)]
pub struct HarmonicParameters {
    /// Stiffness k.
    #[param(unit = "energy", at_least = 0.0)]
    k: f64,
    /// Equilibrium angle φ₀.
    #[param(unit = "degrees", default = 0.0, at_least = -180.0, at_most = 180.0)]
    phi0_deg: f64,
}

/// Coefficient k of U = k (φ − φ₀)², and φ₀ in radians.
#[derive(Debug, PairParams)]
pub struct HarmonicDihedral<real> {
    #[param(at_least = 0.0)]
    k: real,
    #[param(at_least = -3.14159265, at_most = 3.14159265)]
    phi0: real,
}

impl RowInput for HarmonicParameters {
    type Settings = HarmonicSettings;
    type Row = HarmonicDihedral<f64>;
    fn row(&self, settings: &HarmonicSettings) -> std::result::Result<HarmonicDihedral<f64>, String> {
        Ok(HarmonicDihedral { k: settings.convention.factor() * self.k, phi0: self.phi0_deg.to_radians() })
    }
}

/// Returns an angle between −3π and 3π minus the full turns that bring it to −π … π.
#[device_fn]
pub fn within_half_turn(angle: real) -> real {
    let turn = 6.283185307179586;
    if angle > 0.5 * turn {
        angle - turn
    } else if angle < -0.5 * turn {
        angle + turn
    } else {
        angle
    }
}

/// Harmonic dihedral: U(φ) = k (φ − φ₀)², with φ − φ₀ wrapped to −180° … 180° and k in energy per rad².
///
/// There is no factor ½: with `convention: Half`, k is that of U = ½ k (φ − φ₀)². The force is discontinuous opposite to
/// φ₀, where the barrier is k π². HarmonicImproper is the same potential of impropers. Use this one if a file has its
/// impropers among the dihedrals.
///
/// ```ron
/// HarmonicDihedral(dihedrals: { "A-A-A-A": (k: 2.0), "A-A-A-B": (k: 1.0, phi0_deg: 35.0), "A-A-B-B": (k: 0.5),
///     "A-B-B-B": (k: 0.5, phi0_deg: 180.0), "B-B-B-B": (k: 0.2, phi0_deg: -90.0) })
/// ```
#[dihedral_potential("HarmonicDihedral", input = HarmonicParameters)]
fn harmonic_dihedral(phi: real, p: &HarmonicDihedral<real>) -> (real, real) {
    let x = within_half_turn(phi - p.phi0);
    (2.0 * p.k * x, p.k * x * x)
}
