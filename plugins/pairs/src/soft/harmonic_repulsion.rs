//! Harmonic repulsion.

use galamost_plugin_api::prelude::*;

/// Settings of the component.
#[derive(Clone, Debug, Params)]
pub struct HarmonicRepulsionSettings {
    /// Prefactor convention: `Paper` for U = α (1 − r/r_cut)², `Half` for U = ½ α (1 − r/r_cut)².
    #[param(default = Convention::Paper)]
    convention: Convention,
}

/// Parameters of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct HarmonicRepulsionInput {
    /// Energy α at r = 0; with `convention: Half`, twice that energy.
    #[param(unit = "energy", at_least = 0.0)]
    alpha: f64,
}

/// Coefficient α of U = α (1 − r/r_cut)².
#[derive(Debug, PairParams)]
pub struct HarmonicRepulsion<real> {
    #[param(at_least = 0.0)]
    alpha: real,
}

impl RowInput for HarmonicRepulsionInput {
    type Settings = HarmonicRepulsionSettings;
    type Row = HarmonicRepulsion<f64>;
    fn row(&self, settings: &HarmonicRepulsionSettings) -> std::result::Result<HarmonicRepulsion<f64>, String> {
        Ok(HarmonicRepulsion { alpha: settings.convention.factor() * self.alpha })
    }
}

/// Harmonic repulsion: U(r) = α (1 − r/r_cut)², r < r_cut.
///
/// F = (2α/r_cut)(1 − r/r_cut) e, e = r_ij/r. U and F vanish at r_cut. At r = 0 the direction is undefined and the force is
/// 0. There is no factor ½: with `convention: Half`, α is that of U = ½ α (1 − r/r_cut)², as in PyGAMD. The DPD
/// repulsion parameter is a = 2α/r_cut, or α/r_cut with `Half`.
///
/// Reference: Zhu et al., J. Comput. Chem. 34 (2013) 2197, eq 2, doi:10.1002/jcc.23365.
///
/// ```ron
/// HarmonicRepulsion(r_cut: 1.5, pairs: {
///     ("A", "A"): (alpha: 12.5),
///     ("A", "B"): (alpha: 20.0),
///     ("B", "B"): (alpha: 12.5, r_cut: 1.2),
/// })
/// ```
#[pair_potential("HarmonicRepulsion", input = HarmonicRepulsionInput)]
fn harmonic_repulsion(r2: real, r_cut: real, p: &HarmonicRepulsion<real>) -> (real, real) {
    let inv = if r2 > 0.0 { r2.rsqrt() } else { 0.0 };
    let w = 1.0 - r2 * inv / r_cut;
    (2.0 * p.alpha * w * inv / r_cut, p.alpha * w * w)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coinciding_particles_have_no_force() {
        let (f, u) = harmonic_repulsion(0.0, 1.5, &HarmonicRepulsion { alpha: 3.0 });
        assert_eq!((f, u), (0.0, 3.0));
    }
}
