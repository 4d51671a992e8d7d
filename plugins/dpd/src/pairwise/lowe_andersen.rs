//! The Lowe-Andersen thermostat.

use crate::pairwise::collision::{Collision, Rule};
use crate::pairwise::updater::PairwiseUpdater;
use galamost_plugin_api::prelude::*;

/// Lowe-Andersen thermostat: random collisions of pairs, which conserve momentum and angular momentum.
///
/// Before each step, every pair closer than r_cut receives, with probability ν dt, a new relative velocity along
/// e = r_ij/r: e·v_ij = √(kT/μ) N, with N normal and μ = m_i m_j/(m_i + m_j).
///
/// Combine it with conservative forces and `VelocityVerlet`; no friction forces are needed. Hydrodynamics is preserved, and
/// kT has only the time-step error of the integrator within one step. ν sets the viscosity, which can be much larger
/// than that of DPD.
///
/// Limits: ν dt must not exceed 1. Excluded pairs and particles without mass do not collide. `conserved` of `Thermo` does not include the heat
/// exchanged with this thermostat.
///
/// Performance: collisions that share a particle are sequential, in the order of random numbers keyed by step and tags. Both
/// devices process the same pairs in the same order. The CPU finds the pairs in one parallel pass over the neighbor list,
/// sorts them and processes them on one thread. CUDA works in rounds: a pair collides when it is the first remaining pair
/// of both its particles, which gives the same result; each round rereads only the rows of the particles that collided in
/// the previous one. As an updater, it makes the device wait for the host in every step and prevents graphs of several
/// steps. For small systems this wait dominates the cost.
///
/// Reference: C. P. Lowe, Europhys. Lett. 47 (1999) 145, doi:10.1209/epl/i1999-00365-x.
///
/// ```ron
/// LoweAndersen(kT: 1.0, nu: 10.0, r_cut: 1.5)
/// ```
#[component(Updater, "LoweAndersen")]
#[derive(Params)]
pub struct LoweAndersen {
    /// Target temperature kT; can vary with time.
    #[param(name = "kT", unit = "energy", at_least = 0.0)]
    kt: Varying,
    /// Collision rate ν of a pair (Γ in the paper), at most 1/dt.
    #[param(unit = "1/time", above = 0.0)]
    nu: Spanned<f64>,
    /// Cutoff of the collisions.
    #[param(unit = "length", above = 0.0)]
    r_cut: Spanned<f64>,
    /// Group that both particles of a pair must belong to.
    #[param(default = Group::All)]
    group: Group,
    #[param(skip)]
    pairwise: PairwiseUpdater,
}

impl Updater for LoweAndersen {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        if self.nu.value * system.dt > 1.0 {
            let most = 1.0 / system.dt;
            let text = format!("ν dt is a probability: nu must not be larger than 1/dt = {most}");
            return Err(InputError::at(self.nu.at, text).into());
        }
        self.pairwise.bind(system, needs, &self.group, self.kt, &self.r_cut)
    }

    fn start(&mut self, host: Host) -> Result<()> {
        self.pairwise.start(host)
    }

    unsafe fn update(&mut self, call: &mut UpdateCall) -> Result<()> {
        let collision = Collision { rule: Rule::Lowe { rate: self.nu.value }, r_cut: self.r_cut.value };
        // SAFETY: the engine passes valid views
        unsafe { self.pairwise.update(collision, call) }
    }
}
