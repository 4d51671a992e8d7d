//! Morse bonds.

use galamost_plugin_api::prelude::*;

/// Parameters of one bond type.
#[derive(Debug, PairParams)]
pub struct MorseBond<real> {
    /// Dissociation energy D.
    #[param(unit = "energy", at_least = 0.0)]
    depth: real,
    /// Inverse width a; near r₀ the bond is harmonic with k = D a² in U = k (r − r₀)².
    #[param(unit = "1/length", above = 0.0)]
    a: real,
    /// Equilibrium length r₀.
    #[param(unit = "length", at_least = 0.0)]
    r0: real,
}

/// Morse bond: U(r) = D [1 − exp(−a(r − r₀))]², where `depth` is D.
///
/// F = −2aD [1 − exp(−a(r − r₀))] exp(−a(r − r₀)) e, e = r_ij/r. The force vanishes at large r, so the bond can dissociate;
/// it remains in the topology. At r = 0 the direction is undefined and the force is 0.
///
/// Reference: P. M. Morse, Phys. Rev. 34 (1929) 57, doi:10.1103/PhysRev.34.57.
///
/// ```ron
/// MorseBond(bonds: {
///     "A-A": (depth: 20.0, a: 2.0, r0: 1.0),
///     "A-B": (depth: 10.0, a: 1.5, r0: 1.1),
///     "B-B": (depth: 50.0, a: 1.0, r0: 0.9),
/// })
/// ```
#[bond_potential("MorseBond")]
fn morse_bond(r2: real, p: &MorseBond<real>) -> (real, real) {
    let r = r2.sqrt();
    let safe = if r > 0.0 { r } else { 1.0 };
    let e = (-p.a * (r - p.r0)).exp();
    let f = -2.0 * p.a * p.depth * (1.0 - e) * e / safe;
    (if r > 0.0 { f } else { 0.0 }, p.depth * (1.0 - e) * (1.0 - e))
}
