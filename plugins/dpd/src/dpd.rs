//! The DPD pair force: repulsion, friction and noise.

use crate::settings::{DpdSettings, Friction};
use galamost_plugin_api::prelude::*;

/// Parameters of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct DpdInput {
    /// Maximum repulsion a.
    #[param(unit = "energy/length")]
    a: f64,
    #[param(flatten)]
    friction: Friction,
}

/// Coefficients a, γ, σ and s.
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
        let (gamma, sigma) = self.friction.gamma_and_sigma(settings)?;
        Ok(Dpd { a: self.a, gamma, sigma, s: self.friction.s })
    }
    fn kt(settings: &DpdSettings) -> Option<f64> {
        Some(settings.kt)
    }
}

/// DPD pair force: F = [a w − γ w_D (e·v_ij) + σ w_R ζ dt^(−½)] e, w = 1 − r/r_cut, w_R = w^s, w_D = w_R², σ² = 2γkT.
///
/// e = r_ij/r. ζ_ij = ζ_ji is uniform with mean 0 and variance 1 (fourth moment 9/5). It is drawn with the key (seed,
/// component, step, tags), so it depends neither on the device nor on the order of the pairs. The energy is that of the
/// conservative part, U = (a r_cut/2) w². At r = 0 the direction is undefined and the force is 0.
///
/// `mode` must be `Cut`, the default, and `r_on` cannot be given: a force that depends on velocities has no potential to shift or
/// smooth. Both the repulsion and the friction are 0 at `r_cut`.
///
/// Integrate with `GrootWarren` or `DpdVerlet`. A pair of types can have its own kT; the system is then driven, not in
/// equilibrium.
///
/// Reference: R. D. Groot, P. B. Warren, J. Chem. Phys. 107 (1997) 4423, doi:10.1063/1.474784; Y.-H. Tang, G. E.
/// Karniadakis, Comput. Phys. Commun. 185 (2014) 2809, doi:10.1016/j.cpc.2014.06.015.
///
/// ```ron
/// Dpd(r_cut: 1.0, kT: 1.0, pairs: {
///     ("A", "A"): (a: 25.0, sigma: 3.0),
///     ("A", "B"): (a: 40.0, sigma: 3.0),
///     ("B", "B"): (a: 25.0, gamma: 4.5, s: 0.5, kT: 1.1),
/// })
/// ```
#[pair_potential("Dpd", input = DpdInput)]
fn dpd(r2: real, r_cut: real, rv: real, zeta: real, step: &Step<real>, p: &Dpd<real>) -> (real, real) {
    let inv = if r2 > 0.0 { r2.rsqrt() } else { 0.0 };
    // rounding can make w negative at the cutoff, where powf would give NaN
    let w = 1.0 - r2 * inv / r_cut;
    let wr = if p.s == 1.0 { w } else { w.max(0.0).powf(p.s) };
    let f = p.a * w - p.gamma * wr * wr * (rv * inv) + p.sigma * wr * zeta * step.inv_sqrt_dt;
    (f * inv, 0.5 * p.a * r_cut * w * w)
}

#[cfg(test)]
mod tests {
    use super::*;
    use galamost_plugin_api::pair::PairFn;

    #[test]
    fn an_exponent_of_1_is_specialized() {
        const { assert!(<dpd as PairFn>::SPECIALIZATION.is_some()) };
        let row = |s: f64| Dpd { a: 25.0, gamma: 4.5, sigma: 3.0, s };
        assert!(dpd::specialized(&row(1.0)) && !dpd::specialized(&row(0.5)));
    }

    #[test]
    fn coinciding_particles_have_no_force() {
        let step = Step { dt: 0.01, inv_sqrt_dt: 10.0, ..Step::default() };
        for s in [1.0, 0.5] {
            let row = Dpd { a: 25.0, gamma: 4.5, sigma: 3.0, s };
            assert_eq!(dpd(0.0, 1.5, 0.0, 1.2, &step, &row), (0.0, 18.75), "s = {s}");
        }
    }

    /// 1 − r/r_cut can round to a negative number there.
    #[test]
    fn at_the_cutoff_every_exponent_is_finite() {
        for k in 1..1000 {
            let r = 0.01 * f64::from(k);
            let step = Step { dt: 0.01, inv_sqrt_dt: 10.0, ..Step::default() };
            let (f, u) = dpd(r * r, r, 1.0, 1.0, &step, &Dpd { a: 25.0, gamma: 4.5, sigma: 3.0, s: 0.7 });
            // √ε to the power s = 0.7 of roundings ε = 1e-16 of 1 − r/r_cut
            assert!(f.abs() < 1e-6 / r && u.abs() < 1e-20, "r_cut = {r}: {f} {u}");
            let (r, step) = (r as f32, Step { dt: 0.01f32, inv_sqrt_dt: 10.0, ..Step::default() });
            let (f, u) = dpd(r * r, r, 1.0, 1.0, &step, &Dpd { a: 25.0, gamma: 4.5, sigma: 3.0, s: 0.7 });
            // the same for ε = 6e-8, times σ/√dt = 30
            assert!(f.abs() < 0.1 / r && u.abs() < 1e-8, "r_cut = {r}: {f} {u}");
        }
    }
}
