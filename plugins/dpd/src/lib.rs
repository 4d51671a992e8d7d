//! Dissipative particle dynamics.
#![allow(non_camel_case_types)]

use galamost_plugin_api::prelude::*;

galamost_plugin_api::plugin!();

/// Parameters of the whole component.
#[derive(Clone, Debug, Params)]
pub struct DpdSettings {
    /// kT of the pairwise thermostat.
    #[param(name = "kT", unit = "energy", above = 0.0)]
    kt: f64,
}

/// Parameters of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct DpdInput {
    /// a, the largest repulsion.
    #[param(unit = "energy/length")]
    a: f64,
    /// σ, strength of the random force; γ = σ²/2kT follows. Give `sigma` or `gamma`, not both.
    #[param(unit = "energy time^½/length", at_least = 0.0)]
    sigma: Option<f64>,
    /// γ, friction; σ = √(2γkT) follows.
    #[param(unit = "mass/time", at_least = 0.0)]
    gamma: Option<f64>,
    /// s, exponent of the weight of the random force: w_R = w^s.
    #[param(default = 1.0, above = 0.0)]
    s: f64,
}

/// a, γ, σ, s.
#[derive(Debug, PairParams)]
pub struct Dpd<real> {
    a: real,
    #[param(at_least = 0.0)]
    gamma: real,
    #[param(at_least = 0.0)]
    sigma: real,
    #[param(above = 0.0)]
    s: real,
}

impl RowInput for DpdInput {
    type Settings = DpdSettings;
    type Row = Dpd<f64>;
    fn row(&self, settings: &DpdSettings) -> std::result::Result<Dpd<f64>, String> {
        let (gamma, sigma) = match (self.gamma, self.sigma) {
            (Some(gamma), None) => (gamma, (2.0 * gamma * settings.kt).sqrt()),
            (None, Some(sigma)) => (sigma * sigma / (2.0 * settings.kt), sigma),
            (Some(_), Some(_)) => return Err("give sigma or gamma, not both: σ² = 2γkT".into()),
            (None, None) => return Err("give sigma or gamma".into()),
        };
        Ok(Dpd { a: self.a, gamma, sigma, s: self.s })
    }
}

/// DPD: F = [a w − γ w_D (e·v_ij) + σ w_R ζ dt^(−½)] e, w = 1 − r/r_cut, w_R = w^s, w_D = w_R², σ² = 2γkT.
///
/// e = r_ij/r; ζ_ij = ζ_ji is uniform with mean 0 and variance 1 (fourth moment 9/5), drawn by the key (seed,
/// component, step, tags), so it does not depend on the device or on the order of the pairs. The energy is that of
/// the conservative part, U = (a r_cut/2) w². Integrate it with `GrootWarren`.
///
/// Reference: Groot & Warren, J. Chem. Phys. 107 (1997) 4423; Tang & Karniadakis, Comput. Phys. Commun. 185 (2014)
/// 2809.
///
/// ```ron
/// Dpd(r_cut: 1.0, kT: 1.0, pairs: {
///     ("A", "A"): (a: 25.0, sigma: 3.0),
///     ("A", "B"): (a: 40.0, sigma: 3.0),
///     ("B", "B"): (a: 25.0, gamma: 4.5, s: 0.5),
/// })
/// ```
#[pair_potential("Dpd", input = DpdInput)]
fn dpd(r2: real, r_cut: real, rv: real, zeta: real, step: &Step<real>, p: &Dpd<real>) -> (real, real) {
    let inv = r2.rsqrt();
    let w = 1.0 - r2 * inv / r_cut;
    let wr = if p.s == 1.0 { w } else { w.powf(p.s) };
    let f = p.a * w - p.gamma * wr * wr * (rv * inv) + p.sigma * wr * zeta * step.inv_sqrt_dt;
    (f * inv, 0.5 * p.a * r_cut * w * w)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fluctuation_and_dissipation_belong_together() {
        let settings = DpdSettings { kt: 1.5 };
        let given = |sigma, gamma| DpdInput { a: 25.0, sigma, gamma, s: 1.0 }.row(&settings);
        let row = given(Some(3.0), None).expect("valid");
        assert!((row.gamma - 3.0).abs() < 1e-14);
        let row = given(None, Some(4.5)).expect("valid");
        assert!((row.sigma * row.sigma - 2.0 * 4.5 * 1.5).abs() < 1e-12);
        assert!(given(None, None).is_err() && given(Some(1.0), Some(1.0)).is_err());
    }
}
