//! Shardlow's splitting of DPD.

use crate::lowe_andersen::law::{Law, Rule};
use crate::lowe_andersen::pairs::Pairs;
use galamost_plugin_api::prelude::*;

/// Shardlow's splitting S1 of DPD: before each step, friction and noise of every pair nearer than r_cut are integrated over
/// dt, pair by pair; then the integrator, `VelocityVerlet`, moves particles by the conservative forces.
///
/// For the velocity u = e·v_ij of a pair along e = r_ij/r: du = −(γ w_R²/μ) u dt + (σ w_R/μ) dW, w_R = (1 − r/r_cut)^s,
/// σ² = 2γkT, μ = m_i m_j/(m_i + m_j), first half of dt explicit, second half implicit: u' = [(1 − g) u + 2 n]/(1 + g),
/// g = γ w_R² dt/2μ, n = σ w_R √dt N/2μ, N normal. That keeps the Maxwell distribution for any dt, and momentum and angular
/// momentum with it. It is the liquid of `Dpd` with `HarmonicRepulsion` of α = a r_cut/2 for its repulsion, at a longer time step.
///
/// All pairs within r_cut are done one after the other in the order of random numbers of theirs, as by `LoweAndersen`: see
/// there for order, devices and price, which is larger here, since all pairs take part.
///
/// Reference: T. Shardlow, SIAM J. Sci. Comput. 24 (2003) 1267, doi:10.1137/S1064827501392879.
///
/// ```ron
/// Shardlow(kT: 1.0, gamma: 4.5, r_cut: 1.5)
/// ```
#[component(Updater, "Shardlow")]
#[derive(Params)]
pub struct Shardlow {
    /// kT of the pairs; may change with time.
    #[param(name = "kT", unit = "energy", at_least = 0.0)]
    kt: Varying,
    /// γ, friction; σ = √(2γkT) follows.
    #[param(unit = "mass/time", above = 0.0)]
    gamma: f64,
    /// Distance below which pairs feel friction and noise.
    #[param(unit = "length", above = 0.0)]
    r_cut: Spanned<f64>,
    /// s, exponent of the weight of the noise: w_R = (1 − r/r_cut)^s.
    #[param(default = 1.0, above = 0.0)]
    s: f64,
    /// Pairs of which both particles belong to this group.
    #[param(default = Group::All)]
    group: Group,
    #[param(skip)]
    pairs: Pairs,
}

impl Updater for Shardlow {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        self.pairs.bind(system, needs, &self.group, self.kt, &self.r_cut)
    }

    fn start(&mut self, host: Host) -> Result<()> {
        self.pairs.start(host)
    }

    unsafe fn update(&mut self, call: &mut UpdateCall) -> Result<()> {
        let law = Law { rule: Rule::Shardlow { gamma: self.gamma, s: self.s }, r_cut: self.r_cut.value };
        // SAFETY: the engine's word about the views
        unsafe { self.pairs.update(law, call) }
    }
}
