//! Improper potential that is a cosine of n φ.

use crate::dihedrals::periodic::{PeriodicDihedral, PeriodicParameters};
use galamost_plugin_api::prelude::*;

/// Periodic improper: U(φ) = k [1 + cos(n φ − δ)].
///
/// φ is the angle of a dihedral of the four particles in their order: between the planes of the first three and of the last
/// three. There is no factor ½: with `convention: Half`, k is that of U = ½ k [1 + cos(n φ − δ)], as in `improper.Periodic`
/// of HOOMD-blue (d = −1 there is δ + 180° here). AMBER's impropers have this form with n = 2 and δ = 180°.
///
/// Reference: Cornell et al., J. Am. Chem. Soc. 117 (1995) 5179, doi:10.1021/ja00124a002.
///
/// ```ron
/// PeriodicImproper(impropers: { "A-A-A-A": (k: 1.1, n: 2, delta_deg: 180.0), "A-A-A-B": (k: 0.4, n: 1, delta_deg: 180.0),
///     "A-A-B-B": (k: 0.3, n: 2, delta_deg: 60.0), "A-B-B-B": (k: 0.2, n: 4), "B-B-B-B": (k: 0.1, n: 6) })
/// ```
#[improper_potential("PeriodicImproper", input = PeriodicParameters)]
fn periodic_improper(phi: real, p: &PeriodicDihedral<real>) -> (real, real) {
    let x = p.n * phi - p.delta;
    (-p.k * p.n * x.sin(), p.k * (1.0 + x.cos()))
}
