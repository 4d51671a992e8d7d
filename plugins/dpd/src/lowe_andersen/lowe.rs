//! The Lowe-Andersen thermostat.

use crate::lowe_andersen::law::{Law, Rule};
use crate::lowe_andersen::pairs::Pairs;
use galamost_plugin_api::prelude::*;

/// Lowe-Andersen thermostat: before each step, every pair nearer than r_cut gets, with the probability ν dt, a new
/// relative velocity along e = r_ij/r: e·v_ij = √(kT/μ) N, N normal, μ = m_i m_j/(m_i + m_j).
///
/// Momentum and angular momentum stay, so hydrodynamics is right. kT has no error of the time step but that of the
/// integrator in a single step; forces need no friction: use `VelocityVerlet`. ν sets the viscosity, which may be far larger than that of
/// DPD. ν dt must not be larger than 1.
///
/// Pairs that share a particle collide one after the other, in the order of random numbers of theirs, keyed by step and
/// tags. On the CPU the pairs that collide are sorted and done in turn, on one thread; finding them is one pass over the
/// list on all threads. On CUDA a pair collides when it is the first one left for both its particles, in as many rounds as
/// it takes, which gives the same result. Both devices take the same pairs in the same order. It is an updater, so
/// the device waits for the host at each step (no graphs of many steps): for few particles that is most of its price. A
/// round reads the rows of the particles that collided in the round before.
///
/// Excluded pairs do not collide. Heat that it gives or takes is not counted in `conserved` of `Thermo`.
///
/// Reference: C. P. Lowe, Europhys. Lett. 47 (1999) 145, doi:10.1209/epl/i1999-00365-x.
///
/// ```ron
/// LoweAndersen(kT: 1.0, nu: 10.0, r_cut: 1.5)
/// ```
#[component(Updater, "LoweAndersen")]
#[derive(Params)]
pub struct LoweAndersen {
    /// kT of the pairs; may change with time.
    #[param(name = "kT", unit = "energy", at_least = 0.0)]
    kt: Varying,
    /// ν, Γ of the paper: collisions of a pair in a unit of time, up to 1/dt.
    #[param(unit = "1/time", above = 0.0)]
    nu: Spanned<f64>,
    /// Distance below which pairs collide.
    #[param(unit = "length", above = 0.0)]
    r_cut: Spanned<f64>,
    /// Pairs of which both particles belong to this group.
    #[param(default = Group::All)]
    group: Group,
    #[param(skip)]
    pairs: Pairs,
}

impl Updater for LoweAndersen {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        if self.nu.value * system.dt > 1.0 {
            let most = 1.0 / system.dt;
            let text = format!("ν dt is a probability, so nu must not be larger than 1/dt = {most}");
            return Err(InputError::at(self.nu.at, text).into());
        }
        self.pairs.bind(system, needs, &self.group, self.kt, &self.r_cut)
    }

    fn start(&mut self, host: Host) -> Result<()> {
        self.pairs.start(host)
    }

    unsafe fn update(&mut self, call: &mut UpdateCall) -> Result<()> {
        let law = Law { rule: Rule::Lowe { rate: self.nu.value }, r_cut: self.r_cut.value };
        // SAFETY: the engine's word about the views
        unsafe { self.pairs.update(law, call) }
    }
}
