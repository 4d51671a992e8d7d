//! Dihedral potential that is a cosine of n φ.

use galamost_plugin_api::prelude::*;

/// Settings of the component.
#[derive(Clone, Debug, Params)]
pub struct PeriodicSettings {
    /// Prefactor convention: `Paper` for U = k [1 + cos(n φ − δ)], `Half` for U = ½ k [1 + cos(n φ − δ)].
    #[param(default = Convention::Paper)]
    convention: Convention,
}

/// Parameters of one dihedral or improper type.
#[derive(Clone, Debug, Params)]
pub struct PeriodicParameters {
    /// Amplitude k, half of the barrier; with `convention: Half`, the barrier.
    #[param(unit = "energy")]
    k: f64,
    /// Multiplicity n: the number of minima per turn.
    #[param(at_least = 1.0, at_most = 12.0)]
    n: u32,
    /// Phase δ.
    #[param(unit = "degrees", default = 0.0, at_least = -360.0, at_most = 360.0)]
    delta_deg: f64,
}

/// Coefficients k, n and δ (radians) of U = k [1 + cos(n φ − δ)].
#[derive(Debug, PairParams)]
pub struct PeriodicDihedral<real> {
    pub k: real,
    #[param(at_least = 1.0, at_most = 12.0)]
    pub n: real,
    #[param(at_least = -6.3, at_most = 6.3)]
    pub delta: real,
}

impl RowInput for PeriodicParameters {
    type Settings = PeriodicSettings;
    type Row = PeriodicDihedral<f64>;
    fn row(&self, settings: &PeriodicSettings) -> std::result::Result<PeriodicDihedral<f64>, String> {
        let k = settings.convention.factor() * self.k;
        Ok(PeriodicDihedral { k, n: f64::from(self.n), delta: self.delta_deg.to_radians() })
    }
}

/// Periodic dihedral: U(φ) = k [1 + cos(n φ − δ)].
///
/// φ = 0 is cis, ±180° is trans. There is no factor ½: with `convention: Half`, k is that of U = ½ k [1 + cos(n φ − δ)], as
/// in HOOMD-blue. φ is undefined if three of the four particles are collinear, and forces diverge nearby. Use an angle
/// potential that keeps the angles away from 180°.
///
/// Reference: Zhu et al., J. Comput. Chem. 34 (2013) 2197, doi:10.1002/jcc.23365, eq 10.
///
/// ```ron
/// PeriodicDihedral(dihedrals: { "A-A-A-A": (k: 0.5, n: 3), "A-A-A-B": (k: 0.4, n: 1, delta_deg: 180.0),
///     "A-A-B-B": (k: 0.3, n: 2, delta_deg: 60.0), "A-B-B-B": (k: 0.2, n: 4), "B-B-B-B": (k: 0.1, n: 6) })
/// ```
#[dihedral_potential("PeriodicDihedral", input = PeriodicParameters)]
fn periodic_dihedral(phi: real, p: &PeriodicDihedral<real>) -> (real, real) {
    let x = p.n * phi - p.delta;
    (-p.k * p.n * x.sin(), p.k * (1.0 + x.cos()))
}
