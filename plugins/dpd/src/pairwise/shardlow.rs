//! Shardlow's splitting of DPD.

use crate::pairwise::collision::{Collision, Rule};
use crate::pairwise::updater::PairwiseUpdater;
use galamost_plugin_api::prelude::*;

/// Shardlow's splitting S1 of DPD: friction and noise are integrated pair by pair before each step.
///
/// For the velocity u = e·v_ij of a pair along e = r_ij/r: du = −(γ w_R²/μ) u dt + (σ w_R/μ) dW, w_R = (1 − r/r_cut)^s,
/// σ² = 2γkT, μ = m_i m_j/(m_i + m_j). The first half of dt is explicit, the second implicit:
/// u' = [(1 − g) u + 2 n]/(1 + g), g = γ w_R² dt/2μ, n = σ w_R √dt N/2μ, N normal.
///
/// This preserves the Maxwell distribution for any dt, momentum and angular momentum. Integrate the conservative forces
/// with `VelocityVerlet`. With `HarmonicRepulsion`, α = a r_cut/2, it is the liquid of `Dpd` with a longer time step.
///
/// All pairs within r_cut are processed sequentially, in the order of random numbers keyed by step and tags. Order, devices
/// and limits are those of `LoweAndersen`. The cost is higher, since all pairs take part.
///
/// Reference: T. Shardlow, SIAM J. Sci. Comput. 24 (2003) 1267, doi:10.1137/S1064827501392879.
///
/// ```ron
/// Shardlow(kT: 1.0, gamma: 4.5, r_cut: 1.5)
/// ```
#[component(Updater, "Shardlow")]
#[derive(Params)]
pub struct Shardlow {
    /// Target temperature kT; can vary with time.
    #[param(name = "kT", unit = "energy", at_least = 0.0)]
    kt: Varying,
    /// Friction γ; σ = √(2γkT) follows.
    #[param(unit = "mass/time", above = 0.0)]
    gamma: f64,
    /// Cutoff of friction and noise.
    #[param(unit = "length", above = 0.0)]
    r_cut: Spanned<f64>,
    /// Exponent s of the noise weight w_R = (1 − r/r_cut)^s.
    #[param(default = 1.0, above = 0.0)]
    s: f64,
    /// Group that both particles of a pair must belong to.
    #[param(default = Group::All)]
    group: Group,
    #[param(skip)]
    pairwise: PairwiseUpdater,
}

impl Updater for Shardlow {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        self.pairwise.bind(system, needs, &self.group, self.kt, &self.r_cut)
    }

    fn start(&mut self, host: Host) -> Result<()> {
        self.pairwise.start(host)
    }

    unsafe fn update(&mut self, call: &mut UpdateCall) -> Result<()> {
        let collision = Collision { rule: Rule::Shardlow { gamma: self.gamma, s: self.s }, r_cut: self.r_cut.value };
        // SAFETY: the engine passes valid views
        unsafe { self.pairwise.update(collision, call) }
    }
}
