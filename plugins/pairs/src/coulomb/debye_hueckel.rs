//! Screened electrostatics between charges of particles.

use galamost_plugin_api::params::{FieldDoc, Fields};
use galamost_plugin_api::prelude::*;

/// What the user writes for the whole component.
#[derive(Clone, Debug, Params)]
struct Written {
    /// κ, inverse of the screening length; κ² = 4π l_B Σ_k c_k z_k² for salt ions of concentrations c_k.
    #[param(unit = "1/length", at_least = 0.0)]
    kappa: f64,
    /// l_B, Bjerrum length: the distance at which two unit charges have the energy kT. Give `bjerrum` and `kT`, or
    /// `prefactor`.
    #[param(unit = "length", above = 0.0)]
    bjerrum: Option<f64>,
    /// kT that belongs to `bjerrum`.
    #[param(name = "kT", unit = "energy", above = 0.0)]
    kt: Option<f64>,
    /// l_B kT, the energy of two unit charges at unit distance, without screening.
    #[param(unit = "energy length/charge²", above = 0.0)]
    prefactor: Option<f64>,
}

/// Parameters of the whole component.
#[derive(Clone, Debug)]
pub struct DebyeHueckelSettings {
    prefactor: f64,
    kappa: f64,
}

impl galamost_plugin_api::params::Params for DebyeHueckelSettings {
    fn take(fields: &mut Fields<'_, '_>) -> Option<Self> {
        let w = Written::take(fields)?;
        let prefactor = match (w.prefactor, w.bjerrum, w.kt) {
            (Some(p), None, None) => p,
            (None, Some(l), Some(kt)) => l * kt,
            _ => {
                let mistake = fields.value().error("give either `bjerrum` and `kT`, or `prefactor`");
                fields.errors.push(mistake);
                return None;
            }
        };
        Some(Self { prefactor, kappa: w.kappa })
    }
    fn docs() -> Vec<FieldDoc> {
        Written::docs()
    }
}

/// A pair of types has no numbers of its own besides its cutoff.
#[derive(Clone, Debug, Params)]
pub struct DebyeHueckelInput {}

/// l_B kT and κ.
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

/// Debye-Hückel: U(r) = l_B kT q_i q_j exp(−κr)/r, r < r_cut.
///
/// F = (U/r²)(1 + κr) r_ij. q are the particles' charges, which the initial state must have. κ = 0 is the bare Coulomb
/// interaction up to r_cut. Pairs of types need no rows; they may be given for cutoffs of their own. `mode: ShiftEnergy`
/// and `mode: ShiftForce` subtract from each pair what its own charges give at the cutoff.
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
