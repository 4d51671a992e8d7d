//! The Morse pair potential.

use galamost_plugin_api::prelude::*;

/// Parameters of one pair of types.
#[derive(Debug, PairParams)]
pub struct Morse<real> {
    /// Well depth D.
    #[param(unit = "energy", at_least = 0.0)]
    depth: real,
    /// Inverse width a of the well.
    #[param(unit = "1/length", above = 0.0)]
    a: real,
    /// Distance r₀ of the minimum.
    #[param(unit = "length", at_least = 0.0)]
    r0: real,
}

/// Morse pair potential: U(r) = D [exp(−2a(r − r₀)) − 2 exp(−a(r − r₀))], r < r_cut.
///
/// `depth` is D. F = 2aD [exp(−2a(r − r₀)) − exp(−a(r − r₀))] e, e = r_ij/r. The minimum is −D at r₀. The energy is finite
/// at r = 0, where the direction is undefined and the force is 0.
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
    let safe = if r > 0.0 { r } else { 1.0 };
    (if r > 0.0 { 2.0 * p.a * p.depth * e * (e - 1.0) / safe } else { 0.0 }, p.depth * e * (e - 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coinciding_particles_have_no_force() {
        let (f, u) = morse(0.0, &Morse { depth: 1.5, a: 2.0, r0: 0.5 });
        let e = 1f64.exp();
        assert!(f == 0.0 && (u - 1.5 * e * (e - 2.0)).abs() < 1e-13, "{f} {u}");
    }

    #[test]
    fn minimum() {
        let (f, u) = morse(1.21, &Morse { depth: 1.5, a: 5.0, r0: 1.1 });
        assert!(f.abs() < 1e-13 && (u + 1.5).abs() < 1e-13, "{f} {u}");
    }
}
