//! Lennard-Jones between particles of different diameters.

use galamost_plugin_api::component::SystemInfo;
use galamost_plugin_api::prelude::*;

/// Parameters of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct ShiftedLjInput {
    /// Well depth ε.
    #[param(unit = "energy", at_least = 0.0)]
    epsilon: f64,
    /// Length σ: for α = 1, U vanishes at s = σ.
    #[param(unit = "length", above = 0.0)]
    sigma: f64,
    /// Factor α of the attraction.
    #[param(default = 1.0)]
    alpha: f64,
    /// Cutoff s_cut of s = r − Δ.
    #[param(unit = "length", above = 0.0)]
    s_cut: f64,
    /// Energy shift: subtract U(s_cut), so that the energy vanishes at the cutoff.
    #[param(default = false)]
    shift: bool,
}

/// The diameters in the system.
#[derive(Clone, Debug, Default, Params)]
pub struct Diameters {
    /// Name and the two smallest diameters of each particle type.
    #[param(skip)]
    smallest: Vec<(String, [f64; 2])>,
}

/// Coefficients 4εσ¹², 4εασ⁶, s_cut and the energy shift.
#[derive(Debug, PairParams)]
pub struct ShiftedLj<real> {
    c12: real,
    c6: real,
    s_cut: real,
    u_cut: real,
}

impl RowInput for ShiftedLjInput {
    type Settings = Diameters;
    type Row = ShiftedLj<f64>;
    const OWN_CUTOFF: bool = true;
    fn bind(settings: &mut Diameters, system: &SystemInfo) -> Result<()> {
        let two = system.smallest_diameters.iter().zip(&system.second_diameters).map(|(a, b)| [*a, *b]);
        settings.smallest = system.types.iter().cloned().zip(two).collect();
        Ok(())
    }
    fn row_between(&self, settings: &Diameters, types: [&str; 2]) -> std::result::Result<ShiftedLj<f64>, String> {
        let smallest = |name: &str| settings.smallest.iter().find(|(t, _)| t == name).map(|(_, d)| *d);
        if let [Some([first, second]), Some([other, _])] = types.map(smallest)
            && self.epsilon > 0.0
        {
            let mean = 0.5 * (first + if types[0] == types[1] { second } else { other });
            let core = self.sigma + mean - 1.0;
            if core <= 0.0 {
                return Err(format!(
                    "the smallest particles of these types have a mean diameter of {mean}, so s = sigma is at r = sigma + {mean} - 1 = \
                     {core:.3}, and they do not repel each other; use units of length in which a diameter of 1 means no shift"
                ));
            }
        }
        self.row(settings)
    }
    fn row(&self, _: &Diameters) -> std::result::Result<ShiftedLj<f64>, String> {
        let x6 = (self.sigma / self.s_cut).powi(6);
        let u_cut = if self.shift { 4.0 * self.epsilon * x6 * (x6 - self.alpha) } else { 0.0 };
        let c6 = 4.0 * self.epsilon * self.sigma.powi(6);
        Ok(ShiftedLj { c12: c6 * self.sigma.powi(6), c6: self.alpha * c6, s_cut: self.s_cut, u_cut })
    }
    fn cutoff(&self, _: &Diameters, system: &SystemInfo) -> Option<f64> {
        Some(self.s_cut + (system.largest_diameter - 1.0).max(0.0))
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Option<ShiftedLj<f64>> {
        let (epsilon, sigma) = (0.5 + random(), 0.8 + 0.4 * random());
        ShiftedLjInput { epsilon, sigma, alpha: random(), s_cut: 3.0, shift: true }.row(&Diameters::default()).ok()
    }
}

/// Size-shifted Lennard-Jones potential: U(r) = 4ε[(σ/s)¹² − α(σ/s)⁶], s = r − Δ, Δ = (d_i + d_j)/2 − 1, s < s_cut.
///
/// F = (24ε/s)[2(σ/s)¹² − α(σ/s)⁶] e, e = r_ij/r. d are the particle diameters, which the initial state must provide. Two
/// particles of diameter 1 interact as in `LennardJones`.
///
/// The cutoff applies to s: particles interact up to the center distance s_cut + Δ. There is neither `r_cut` nor `mode`; the
/// neighbor list covers the largest diameter. `s_cut` = 2^(1/6) σ with `shift: true` is WCA for mixed sizes. An overlap
/// with s ≤ 0 makes the run fail. Lengths must be in units in which a diameter of 1 means no shift: the check refuses diameters
/// so small that σ + Δ ≤ 0 for a pair with ε > 0, because the repulsion would then be at r ≤ 0.
///
/// No reference; the same form is `lj/expand` in LAMMPS and `ExpandedLJ` in HOOMD-blue.
///
/// ```ron
/// ShiftedLj(pairs: {
///     ("A", "A"): (epsilon: 1.0, sigma: 1.0, s_cut: 2.5),
///     ("A", "B"): (epsilon: 0.5, sigma: 1.0, s_cut: 1.122462048309373, shift: true),
///     ("B", "B"): (epsilon: 1.0, sigma: 0.9, s_cut: 2.25, alpha: 0.5, shift: true),
/// })
/// ```
#[pair_potential("ShiftedLj", input = ShiftedLjInput)]
fn shifted_lj(r2: real, diameter_i: real, diameter_j: real, p: &ShiftedLj<real>) -> (real, real) {
    let inv_r = r2.rsqrt();
    let s = r2 * inv_r + 1.0 - 0.5 * (diameter_i + diameter_j);
    let inv = 1.0 / s.max(1e-5);
    let inv2 = inv * inv;
    let inv6 = inv2 * inv2 * inv2;
    let repulsion = p.c12 * inv6;
    let f = inv * inv6 * (12.0 * repulsion - 6.0 * p.c6) * inv_r;
    let u = inv6 * (repulsion - p.c6) - p.u_cut;
    let inside = s < p.s_cut;
    (if inside { f } else { 0.0 }, if inside { u } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Larger particles interact at a larger distance with the same energy and force.
    #[test]
    fn the_distance_is_shifted() {
        let row = ShiftedLjInput { epsilon: 1.0, sigma: 1.0, alpha: 1.0, s_cut: 2.5, shift: false };
        let row = row.row(&Diameters::default()).expect("valid");
        for (d, delta) in [((1.0, 1.0), 0.0), ((2.0, 1.0), 0.5), ((3.0, 5.0), 3.0), ((0.5, 0.5), -0.5)] {
            let r = 1.3 + delta;
            let (f, u) = shifted_lj(r * r, d.0, d.1, &row);
            let x6 = 1.3f64.powi(-6);
            assert!((u - 4.0 * x6 * (x6 - 1.0)).abs() < 1e-12, "{d:?}: {u}");
            assert!((f * r - 24.0 / 1.3 * x6 * (2.0 * x6 - 1.0)).abs() < 1e-12, "{d:?}: {f}");
            let r = 2.51 + delta;
            assert_eq!(shifted_lj(r * r, d.0, d.1, &row), (0.0, 0.0));
        }
    }
}
