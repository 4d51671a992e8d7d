//! The 9-6 Lennard-Jones potential.

use galamost_plugin_api::pair::Mixing;
use galamost_plugin_api::prelude::*;

/// Parameters of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct Lj96Input {
    /// Well depth ε.
    #[param(unit = "energy", at_least = 0.0)]
    epsilon: f64,
    /// Diameter σ: U(σ) = 0.
    #[param(unit = "length", above = 0.0)]
    sigma: f64,
}

/// Coefficients (27/4)εσ⁹ and (27/4)εσ⁶.
#[derive(Debug, PairParams)]
pub struct Lj96<real> {
    c9: real,
    c6: real,
}

impl RowInput for Lj96Input {
    type Settings = NoSettings;
    type Row = Lj96<f64>;
    fn row(&self, _: &NoSettings) -> std::result::Result<Lj96<f64>, String> {
        let c6 = 6.75 * self.epsilon * self.sigma.powi(6);
        Ok(Lj96 { c9: c6 * self.sigma.powi(3), c6 })
    }
    const MIXES: bool = true;
    fn mix(&self, other: &Self, rule: Mixing) -> std::result::Result<Self, String> {
        let sigma = [self.sigma, other.sigma];
        let epsilon = rule.energy([self.epsilon, other.epsilon], sigma);
        Ok(Self { epsilon, sigma: rule.length(sigma) })
    }
}

/// Lennard-Jones 9-6 pair potential: U(r) = (27/4) ε [(σ/r)⁹ − (σ/r)⁶], r < r_cut.
///
/// F = (27ε/4r²)[9(σ/r)⁹ − 6(σ/r)⁶] r_ij. The minimum is −ε at r = (3/2)^(1/3) σ. It equals `Mie` with n = 9, m = 6 and is
/// faster, since it needs no logarithm.
///
/// `lj96/cut` of LAMMPS has 4ε in place of (27/4) ε: its ε is a parameter, and its well depth is (16/27) ε. For its parameters, use
/// `epsilon` = (16/27) ε = 0.592593 ε and the same σ. `lj9_6` of `lj/spica` (formerly `lj/sdk`) has the prefactor 27/4, so its ε needs no
/// conversion.
///
/// Reference: W. Shinoda, R. DeVane, M. L. Klein, Mol. Simul. 33 (2007) 27, doi:10.1080/08927020601054050.
///
/// ```ron
/// Lj96(r_cut: 2.5, mode: ShiftEnergy, pairs: {
///     ("A", "A"): (epsilon: 1.0, sigma: 1.0),
///     ("A", "B"): (epsilon: 0.5, sigma: 0.95),
///     ("B", "B"): (epsilon: 1.0, sigma: 0.9, r_cut: 2.25),
/// })
/// ```
#[pair_potential("Lj96", input = Lj96Input)]
fn lj96(r2: real, p: &Lj96<real>) -> (real, real) {
    let inv = r2.rsqrt();
    let inv2 = inv * inv;
    let inv6 = inv2 * inv2 * inv2;
    let repulsion = p.c9 * inv2 * inv;
    (inv2 * inv6 * (9.0 * repulsion - 6.0 * p.c6), inv6 * (repulsion - p.c6))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The conversion on the page: 4ε [(σ/r)⁹ − (σ/r)⁶] of LAMMPS.
    #[test]
    fn parameters_of_lammps_are_converted() {
        let (epsilon, sigma) = (1.3, 0.9);
        let row = Lj96Input { epsilon: 16.0 / 27.0 * epsilon, sigma }.row(&NoSettings).expect("valid");
        for r in [0.8f64, 1.1, 2.0] {
            let x = sigma / r;
            let expected = 4.0 * epsilon * (x.powi(9) - x.powi(6));
            assert!((lj96(r * r, &row).1 - expected).abs() < 1e-12 * expected.abs().max(1.0), "{r}");
        }
    }

    #[test]
    fn minimum_and_zero() {
        let row = Lj96Input { epsilon: 1.5, sigma: 0.8 }.row(&NoSettings).expect("valid");
        let (f, u) = lj96(1.5f64.powf(2.0 / 3.0) * 0.64, &row);
        assert!(f.abs() < 1e-12 && (u + 1.5).abs() < 1e-12, "{f} {u}");
        assert!(lj96(0.64, &row).1.abs() < 1e-12);
    }
}
