//! Settings shared by `Dpd` and `DpdThermostat`: kT, friction and noise.

use galamost_plugin_api::prelude::*;

/// Settings of the component.
#[derive(Clone, Debug, Params)]
pub struct DpdSettings {
    /// Target temperature kT.
    #[param(name = "kT", unit = "energy", above = 0.0)]
    pub kt: f64,
}

/// Friction and noise of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct Friction {
    /// Noise strength σ; γ = σ²/2kT follows. Give either `sigma` or `gamma`.
    #[param(unit = "energy time^½/length", at_least = 0.0)]
    sigma: Option<f64>,
    /// Friction γ; σ = √(2γkT) follows. Give either `sigma` or `gamma`.
    #[param(unit = "mass/time", at_least = 0.0)]
    gamma: Option<f64>,
    /// Exponent s of the noise weight w_R = w^s.
    #[param(default = 1.0, above = 0.0)]
    pub s: f64,
    /// Temperature kT of this pair of types; default: that of the component.
    #[param(name = "kT", unit = "energy", above = 0.0)]
    kt: Option<f64>,
}

impl Friction {
    /// Returns (γ, σ) with σ² = 2γkT.
    pub fn gamma_and_sigma(&self, settings: &DpdSettings) -> std::result::Result<(f64, f64), String> {
        let kt = self.kt.unwrap_or(settings.kt);
        match (self.gamma, self.sigma) {
            (Some(gamma), None) => Ok((gamma, (2.0 * gamma * kt).sqrt())),
            (None, Some(sigma)) => Ok((sigma * sigma / (2.0 * kt), sigma)),
            (Some(_), Some(_)) => Err("give sigma or gamma, not both: σ² = 2γkT".into()),
            (None, None) => Err("give sigma or gamma".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_and_sigma_satisfy_fluctuation_dissipation() {
        let settings = DpdSettings { kt: 1.5 };
        let given = |sigma, gamma, kt| Friction { sigma, gamma, s: 1.0, kt }.gamma_and_sigma(&settings);
        let (gamma, _) = given(Some(3.0), None, None).expect("valid");
        assert!((gamma - 3.0).abs() < 1e-14);
        let (_, sigma) = given(None, Some(4.5), None).expect("valid");
        assert!((sigma * sigma - 2.0 * 4.5 * 1.5).abs() < 1e-12);
        let (_, sigma) = given(None, Some(4.5), Some(0.5)).expect("valid");
        assert!((sigma * sigma - 2.0 * 4.5 * 0.5).abs() < 1e-12);
        assert!(given(None, None, None).is_err() && given(Some(1.0), Some(1.0), None).is_err());
    }
}
