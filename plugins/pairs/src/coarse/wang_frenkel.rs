//! The Wang-Frenkel potential.

use galamost_plugin_api::component::SystemInfo;
use galamost_plugin_api::prelude::*;

/// Parameters of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct WangFrenkelInput {
    /// Well depth ε.
    #[param(unit = "energy", at_least = 0.0)]
    epsilon: f64,
    /// Diameter σ: U(σ) = 0.
    #[param(unit = "length", above = 0.0)]
    sigma: f64,
    /// Range r_c > σ, beyond which U = 0.
    #[param(name = "r_cut", unit = "length", above = 0.0)]
    range: f64,
}

/// Coefficients εα, σ² and r_c².
#[derive(Debug, PairParams)]
pub struct WangFrenkel<real> {
    prefactor: real,
    sigma2: real,
    range2: real,
}

impl RowInput for WangFrenkelInput {
    type Settings = NoSettings;
    type Row = WangFrenkel<f64>;
    const OWN_CUTOFF: bool = true;
    fn row(&self, _: &NoSettings) -> std::result::Result<WangFrenkel<f64>, String> {
        if self.range <= self.sigma {
            return Err(format!("r_cut = {} must be above sigma = {}", self.range, self.sigma));
        }
        let ratio2 = (self.range / self.sigma).powi(2);
        let alpha = 2.0 * ratio2 * (1.5 / (ratio2 - 1.0)).powi(3);
        let (sigma2, range2) = (self.sigma * self.sigma, self.range * self.range);
        Ok(WangFrenkel { prefactor: self.epsilon * alpha, sigma2, range2 })
    }
    fn cutoff(&self, _: &NoSettings, _: &SystemInfo) -> Option<f64> {
        Some(self.range)
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Option<WangFrenkel<f64>> {
        let (epsilon, sigma) = (0.5 + random(), 0.8 + 0.4 * random());
        WangFrenkelInput { epsilon, sigma, range: 2.0 }.row(&NoSettings).ok()
    }
}

/// Wang-Frenkel pair potential: U(r) = ε α [(σ/r)² − 1] [(r_c/r)² − 1]², r < r_c.
///
/// α = 2(r_c/σ)² [3/(2(r_c/σ)² − 2)]³, so that the minimum is −ε, at r = r_c √(3/(1 + 2(r_c/σ)²)). U and F vanish smoothly
/// at r_c: there is no `mode`. r_c = 2σ resembles Lennard-Jones; r_c = 1.2σ resembles colloids. This is the form with
/// μ = ν = 1 (`wf/cut` of LAMMPS).
///
/// Reference: X. Wang, S. Ramírez-Hinestrosa, J. Dobnikar, D. Frenkel, Phys. Chem. Chem. Phys. 22 (2020) 10624,
/// doi:10.1039/C9CP05445F.
///
/// ```ron
/// WangFrenkel(pairs: {
///     ("A", "A"): (epsilon: 1.0, sigma: 1.0, r_cut: 2.0),
///     ("A", "B"): (epsilon: 0.5, sigma: 0.95, r_cut: 1.9),
///     ("B", "B"): (epsilon: 1.0, sigma: 0.9, r_cut: 1.8),
/// })
/// ```
#[pair_potential("WangFrenkel", input = WangFrenkelInput)]
fn wang_frenkel(r2: real, p: &WangFrenkel<real>) -> (real, real) {
    let inv2 = 1.0 / r2;
    let a = p.sigma2 * inv2 - 1.0;
    let b = p.range2 * inv2 - 1.0;
    let slope = p.prefactor * b * (p.sigma2 * b + 2.0 * p.range2 * a);
    (2.0 * inv2 * inv2 * slope, p.prefactor * a * b * b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimum_and_range() {
        let row = WangFrenkelInput { epsilon: 1.5, sigma: 0.8, range: 2.0 }.row(&NoSettings).expect("valid");
        let minimum2 = 4.0 * 3.0 / (1.0 + 2.0 * 6.25);
        let (f, u) = wang_frenkel(minimum2, &row);
        assert!(f.abs() < 1e-12 && (u + 1.5).abs() < 1e-12, "{f} {u}");
        assert_eq!(wang_frenkel(4.0, &row), (0.0, -0.0));
    }
}
