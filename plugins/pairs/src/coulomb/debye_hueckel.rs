//! Screened electrostatics between particle charges.

use galamost_plugin_api::params::{FieldDoc, Fields};
use galamost_plugin_api::prelude::*;

/// User settings of the component.
#[derive(Clone, Debug, Params)]
struct SettingsInput {
    /// Inverse screening length κ: κ² = 4π l_B Σ_k c_k z_k² for salt ions of concentration c_k and valence z_k.
    #[param(unit = "1/length", at_least = 0.0)]
    kappa: f64,
    /// Bjerrum length l_B: two unit charges at this distance have the energy kT. Give `bjerrum` and `kT`, or
    /// `prefactor`.
    #[param(unit = "length", above = 0.0)]
    bjerrum: Option<f64>,
    /// Temperature kT at which `bjerrum` is given.
    #[param(name = "kT", unit = "energy", above = 0.0)]
    kt: Option<f64>,
    /// Coulomb prefactor l_B kT: the unscreened energy of two unit charges at unit distance.
    #[param(unit = "energy length/charge²", above = 0.0)]
    prefactor: Option<f64>,
}

/// Settings of the component.
#[derive(Clone, Debug)]
pub struct DebyeHueckelSettings {
    prefactor: f64,
    kappa: f64,
}

impl galamost_plugin_api::params::Params for DebyeHueckelSettings {
    fn take(fields: &mut Fields<'_, '_>) -> Option<Self> {
        let input = SettingsInput::take(fields)?;
        let prefactor = match (input.prefactor, input.bjerrum, input.kt) {
            (Some(p), None, None) => p,
            (None, Some(l), Some(kt)) => l * kt,
            _ => {
                let error = fields.value().error("give either `bjerrum` and `kT`, or `prefactor`");
                fields.errors.push(error);
                return None;
            }
        };
        Some(Self { prefactor, kappa: input.kappa })
    }
    fn docs() -> Vec<FieldDoc> {
        SettingsInput::docs()
    }
}

/// Parameters of one pair of types: only its cutoff.
#[derive(Clone, Debug, Params)]
pub struct DebyeHueckelInput {}

/// Coefficients l_B kT and κ.
#[derive(Debug, PairParams)]
pub struct DebyeHueckel<real> {
    prefactor: real,
    kappa: real,
}

impl RowInput for DebyeHueckelInput {
    type Settings = DebyeHueckelSettings;
    type Row = DebyeHueckel<f64>;
    fn row(&self, s: &DebyeHueckelSettings) -> std::result::Result<DebyeHueckel<f64>, String> {
        Ok(DebyeHueckel { prefactor: s.prefactor, kappa: s.kappa })
    }
    fn default_parameters() -> Option<Self> {
        Some(Self {})
    }
}

/// Debye-Hückel screened electrostatics: U(r) = l_B kT q_i q_j exp(−κr)/r, r < r_cut.
///
/// F = (U/r²)(1 + κr) r_ij. q are the particle charges, which the initial state must provide. κ = 0 gives the bare Coulomb
/// interaction, truncated at r_cut.
///
/// `pairs` is optional; use it to set cutoffs of individual type pairs. `mode: ShiftEnergy` and `mode: ShiftForce` subtract
/// the values at the cutoff for the charges of each pair.
///
/// Reference: P. Debye, E. Hückel, Phys. Z. 24 (1923) 185.
///
/// ```ron
/// DebyeHueckel(r_cut: 4.0, mode: ShiftForce, bjerrum: 1.5, kT: 1.0, kappa: 0.8)
/// ```
#[pair_potential("DebyeHueckel", input = DebyeHueckelInput)]
fn debye_hueckel(r2: real, charge_i: real, charge_j: real, p: &DebyeHueckel<real>) -> (real, real) {
    let inv = r2.rsqrt();
    let kr = p.kappa * r2 * inv;
    let u = p.prefactor * charge_i * charge_j * (-kr).exp() * inv;
    (u * (kr + 1.0) * inv * inv, u)
}
