//! Checks of integrators without a thermostat: free particles and the conservation of energy.

use super::declared::tested;
use crate::selftest::physics::NVE;
use crate::selftest::{Test, standard_system};
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::plan::Plan;
use galamost_plugin_api::component::{ComponentInfo, Kind, Needs};
use galamost_plugin_api::precision::Precision;

/// Steps of free particles, and the time that they take: short, so that velocities change little under strong friction.
const STEPS: u64 = 20;
const TIME: f64 = 0.002;

/// Returns why the motion of free particles is not known.
fn unknown_motion(plan: &Plan, needs: &Needs) -> Option<&'static str> {
    if !needs.moves || needs.corrects {
        Some("it does not move particles by itself")
    } else if needs.kt.is_some() || needs.rescales {
        Some("it has a thermostat")
    } else if !needs.conserves_momentum {
        Some("momentum is declared as not conserved")
    } else if plan.stages[0].integrators.len() > 1 {
        Some("its example has other integrators")
    } else {
        None
    }
}

impl Test<'_> {
    /// Returns a plan of free particles.
    fn free_particles(&self, c: &ComponentInfo, steps: u64) -> Result<Plan, Failure> {
        let overrides = ["forces=[]".to_string(), format!("stages[0].dt={:e}", TIME / steps as f64)];
        self.plan(c, DeviceChoice::Cpu, Precision::Double, standard_system(), steps, &overrides)
    }

    /// Checks an integrator without a thermostat on free particles: each moves by the mean of its first and last velocity, and
    /// steps of half the length give the same velocities. An integrator that keeps these velocities must conserve the energy of
    /// a liquid. An integrator that has failed another check is not tested.
    pub(in crate::selftest) fn free_flight(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        const CHECK: &str = "free particles: displacement against v t";
        if self.failed {
            return Ok(());
        }
        let plan = match self.free_particles(c, STEPS) {
            Ok(plan) => plan,
            Err(e) => {
                let reason = e.render();
                self.skip(c, CHECK, reason.lines().next().unwrap_or_default());
                return Ok(());
            }
        };
        let Some(needs) = tested(&plan, c).map(|t| &t.needs) else { return Ok(()) };
        if let Some(reason) = unknown_motion(&plan, needs) {
            self.skip(c, CHECK, reason);
            self.skip(c, NVE, reason);
            return Ok(());
        }
        let s = standard_system();
        let after = self.outcome_of_plan(&plan)?;
        if after.length != s.box_length {
            self.skip(c, CHECK, "it changes the box");
            return Ok(());
        }
        let finer = self.outcome_of_plan(&self.free_particles(c, 2 * STEPS)?)?;
        let speed = s.velocity.iter().flatten().fold(0.0f64, |m, v| m.max(v.abs()));
        let (mut change, mut flight, mut halves) = (0.0f64, 0.0f64, 0.0f64);
        for tag in (0..s.len()).filter(|tag| needs.group.contains(*tag as u32, &s)) {
            for k in 0..3 {
                let (from, to) = (s.velocity[tag][k], after.velocity[3 * tag + k]);
                let mean = (after.position[3 * tag + k] - s.position[tag][k]) / TIME;
                change = change.max((to - from).abs() / speed);
                flight = flight.max((mean - 0.5 * (from + to)).abs() / speed);
                halves = halves.max((finer.velocity[3 * tag + k] - to).abs() / speed);
            }
        }
        let keeps = change < 1e-12;
        let (limit, note) = if keeps { (1e-6, "") } else { (1e-2, "their velocities change") };
        self.note(c, CHECK, flight, limit, note);
        self.note(c, "free particles: velocities with dt and dt/2", halves, 1e-2, "");
        if !keeps {
            self.skip(c, NVE, "it changes the velocities of free particles");
        } else if self.registry.find(Kind::Pair, "LennardJones").is_some() {
            self.drift(c, &["forces[0].mode=ShiftForce".into()])?;
        }
        Ok(())
    }
}
