//! The Morse potential between pairs.

use galamost_plugin_api::prelude::*;

/// D, a and r₀ of one pair of types.
#[derive(Debug, PairParams)]
pub struct Morse<real> {
    /// D, depth of the well.
    #[param(unit = "energy", at_least = 0.0)]
    depth: real,
    /// a, steepness: 1/a is the width of the well.
    #[param(unit = "1/length", above = 0.0)]
    a: real,
    /// r₀, distance of the minimum.
    #[param(unit = "length", at_least = 0.0)]
    r0: real,
}

/// Morse: U(r) = D [exp(−2a(r − r₀)) − 2 exp(−a(r − r₀))], r < r_cut; `depth` is D.
///
/// F = 2aD [exp(−2a(r − r₀)) − exp(−a(r − r₀))] e. The minimum is −D at r₀; at r = 0 the energy is finite.
///
/// Reference: P. M. Morse, Phys. Rev. 34 (1929) 57, doi:10.1103/PhysRev.34.57.
///
/// ```ron
/// Morse(r_cut: 3.0, mode: ShiftEnergy, pairs: {
///     ("A", "A"): (depth: 1.0, a: 5.0, r0: 1.1),
///     ("A", "B"): (depth: 0.5, a: 4.0, r0: 1.0),
///     ("B", "B"): (depth: 1.0, a: 6.0, r0: 0.9),
/// })
/// ```
#[pair_potential("Morse")]
fn morse(r2: real, p: &Morse<real>) -> (real, real) {
    let r = r2.sqrt();
    let e = (-p.a * (r - p.r0)).exp();
    (2.0 * p.a * p.depth * e * (e - 1.0) / r, p.depth * e * (e - 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimum() {
        let (f, u) = morse(1.21, &Morse { depth: 1.5, a: 5.0, r0: 1.1 });
        assert!(f.abs() < 1e-13 && (u + 1.5).abs() < 1e-13, "{f} {u}");
    }
}
