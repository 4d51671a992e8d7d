//! The DPD thermostat without the conservative force.

use crate::settings::{DpdSettings, Friction};
use galamost_plugin_api::prelude::*;

/// Coefficients γ, σ and s.
#[derive(Debug, PairParams)]
pub struct DpdThermostat<real> {
    #[param(at_least = 0.0)]
    gamma: real,
    #[param(at_least = 0.0)]
    sigma: real,
    #[param(above = 0.0)]
    s: real,
}

impl RowInput for Friction {
    type Settings = DpdSettings;
    type Row = DpdThermostat<f64>;
    fn row(&self, settings: &DpdSettings) -> std::result::Result<DpdThermostat<f64>, String> {
        let (gamma, sigma) = self.gamma_and_sigma(settings)?;
        Ok(DpdThermostat { gamma, sigma, s: self.s })
    }
    fn kt(settings: &DpdSettings) -> Option<f64> {
        Some(settings.kt)
    }
}

/// DPD thermostat: F = [−γ w_D (e·v_ij) + σ w_R ζ dt^(−½)] e, w = 1 − r/r_cut, w_R = w^s, w_D = w_R², σ² = 2γkT.
///
/// The friction and noise of `Dpd` without its repulsion, for use with any conservative forces. It conserves momentum and
/// therefore preserves hydrodynamics. Its energy is 0. At r = 0 the direction is undefined and the force is 0.
///
/// `mode` must be `Cut`, the default, and `r_on` cannot be given: a force that depends on velocities has no potential to shift or
/// smooth. Friction and noise are 0 at `r_cut`.
///
/// Integrate with `GrootWarren` or `DpdVerlet`. A pair of types can have its own kT; the system is then driven, not in
/// equilibrium.
///
/// Reference: T. Soddemann, B. Dünweg, K. Kremer, Phys. Rev. E 68 (2003) 046702, doi:10.1103/PhysRevE.68.046702.
///
/// ```ron
/// DpdThermostat(r_cut: 1.5, kT: 1.0, pairs: {
///     ("A", "A"): (gamma: 4.5),
///     ("A", "B"): (gamma: 4.5, s: 0.5),
///     ("B", "B"): (sigma: 3.0, kT: 0.9),
/// })
/// ```
#[pair_potential("DpdThermostat", input = Friction)]
fn dpd_thermostat(
    r2: real,
    r_cut: real,
    rv: real,
    zeta: real,
    step: &Step<real>,
    p: &DpdThermostat<real>,
) -> (real, real) {
    let inv = if r2 > 0.0 { r2.rsqrt() } else { 0.0 };
    // rounding can make w negative at the cutoff, where powf would give NaN
    let w = 1.0 - r2 * inv / r_cut;
    let wr = if p.s == 1.0 { w } else { w.max(0.0).powf(p.s) };
    ((p.sigma * wr * zeta * step.inv_sqrt_dt - p.gamma * wr * wr * (rv * inv)) * inv, 0.0)
}
