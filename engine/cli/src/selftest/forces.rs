//! Tests of forces: momentum, gradient, and the device against the CPU.

mod triclinic;

use super::{Test, oriented, standard_system};
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::plan::Plan;
use galamost_engine::plugins::PairHandle;
use galamost_plugin_api::component::{ComponentInfo, Kind};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::snapshot::Snapshot;

/// Returns whether all forces of a plan declare that they are gradients of their energies.
pub(super) fn is_conservative(plan: &Plan) -> bool {
    plan.components.iter().all(|c| c.needs.conservative)
}

impl Test<'_> {
    /// Compares forces, torques, energy and virial with the CPU in double precision.
    pub(super) fn force(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        let plan = self.plan(c, DeviceChoice::Cpu, Precision::Double, standard_system(), 0, &[])?;
        if plan.components.iter().any(|c| c.needs.places) {
            let reason = if plan.components.iter().all(|c| c.needs.constraints.is_empty()) {
                "it acts on particles without mass, of which this system has none"
            } else {
                "its forces depend on velocities and dt"
            };
            self.skip(c, "forces", reason);
            return Ok(());
        }
        let reference = self.outcome(c, DeviceChoice::Cpu, Precision::Double, 0)?;
        let largest = reference.force.iter().fold(0.0f64, |m, f| m.max(f.abs()));
        if plan.components.iter().all(|c| c.needs.conserves_momentum) {
            let sum = |k: usize| reference.force.iter().skip(k).step_by(3).sum::<f64>().abs();
            let total = (0..3).map(sum).fold(0.0, f64::max);
            self.note(c, "sum of forces / largest", total / largest.max(1e-300), 1e-11, "");
        }
        // `evaluate` of a pair leaves out friction and noise
        if c.kind == Kind::Pair || is_conservative(&plan) {
            self.gradient(c)?;
        }
        // fields act on positions in the box, and noise differs between copies
        if c.kind != Kind::Force && is_conservative(&plan) && plan.components[0].needs.triclinic {
            self.triclinic(c, &reference)?;
        }
        // a force that is zero has no scale
        let unit = |x: f64| if x > 0.0 { x } else { 1.0 };
        for (device, precision, name) in self.targets() {
            let o = self.outcome(c, device, precision, 0)?;
            let limit = if precision == Precision::Double { 1e-10 } else { 2e-5 };
            let worst = o.force.iter().zip(&reference.force).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
            self.note(c, &format!("{name}: forces"), worst / unit(largest), limit, "");
            let torque = reference.torque.iter().fold(0.0f64, |m, t| m.max(t.abs()));
            if torque > 0.0 {
                let worst = o.torque.iter().zip(&reference.torque).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
                self.note(c, &format!("{name}: torques"), worst / torque, limit, "");
            }
            let scale = reference.energy.abs().max(1.0);
            self.note(c, &format!("{name}: energy"), (o.energy - reference.energy).abs() / scale, limit, "");
            // the virial of an angular potential has no trace, so its terms may be as large as the energy, and those of an angle
            // near a straight line as large as its forces, with distances near 1
            let scale = reference.energy.abs().max(largest).max(1.0);
            let scale = reference.virial.iter().fold(scale, |m, w| m.max(w.abs()));
            let worst = o.virial.iter().zip(&reference.virial).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
            self.note(c, &format!("{name}: virial"), worst / scale, limit, "");
        }
        Ok(())
    }

    /// Checks F = −dU/dr: for the pair function, or by displacing particles of the standard system.
    fn gradient(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        let plan = self.plan(c, DeviceChoice::Cpu, Precision::Double, standard_system(), 0, &[])?;
        if let Some(pair) = plan.components.first().and_then(|p| p.pair()) {
            return self.pair_gradient(c, &plan, &pair);
        }
        let reference = self.outcome(c, DeviceChoice::Cpu, Precision::Double, 0)?;
        let worst = self.slopes(c, &reference.force, |s, tag, k, h| s.position[tag][k] += h)?;
        self.note(c, "force against gradient", worst, 1e-6, "");
        if oriented::is_oriented(&plan) {
            let worst = self.slopes(c, &reference.torque, oriented::turn)?;
            self.note(c, "torque against gradient", worst, 1e-6, "");
        }
        Ok(())
    }

    /// Compares forces or torques with differences of the energy of the standard system, in which `shift` displaces or rotates a
    /// particle along or about an axis. Returns the largest deviation, relative to the largest force and to 1.
    fn slopes(
        &self,
        c: &ComponentInfo,
        found: &[f64],
        shift: impl Fn(&mut Snapshot, usize, usize, f64),
    ) -> Result<f64, Failure> {
        const H: f64 = 1e-5;
        let largest = found.iter().fold(1.0f64, |m, f| m.max(f.abs()));
        let mut worst = 0.0f64;
        for tag in [0usize, 17, 333, 998] {
            for k in 0..3 {
                let energy = |h: f64| -> Result<f64, Failure> {
                    let mut s = standard_system();
                    shift(&mut s, tag, k, h);
                    Ok(self.outcome_of(c, DeviceChoice::Cpu, Precision::Double, s, 0)?.energy)
                };
                let slope = (energy(H)? - energy(-H)?) / (2.0 * H);
                worst = worst.max((found[3 * tag + k] + slope).abs() / largest);
            }
        }
        Ok(worst)
    }

    /// Checks the pair function against differences of its energy.
    fn pair_gradient(&mut self, c: &ComponentInfo, plan: &Plan, pair: &PairHandle<'_>) -> Result<(), Failure> {
        let cutoff = plan.components[0].needs.cutoff;
        if oriented::is_oriented(plan) {
            let (worst, kinks) = oriented::gradient(pair, cutoff)?;
            self.note(c, "force, torque against gradient", worst, 1e-7, format!("{kinks} of 1800 at kinks"));
            return Ok(());
        }
        let mut worst = 0.0f64;
        for (i, j) in [(0, 0), (0, 1), (1, 1)] {
            for k in 0..200 {
                // avoid r = 0 and the discontinuity at the cutoff
                let r = cutoff * (0.25 + 0.74 * f64::from(k) / 200.0);
                let h = 1e-4 * r;
                let u = |x: f64| pair.evaluate(i, j, x * x).map(|(_, u)| u);
                if u(r + 2.0 * h)? == 0.0 {
                    continue;
                }
                let slope = (8.0 * (u(r + h)? - u(r - h)?) - (u(r + 2.0 * h)? - u(r - 2.0 * h)?)) / (12.0 * h);
                let f = pair.evaluate(i, j, r * r)?.0 * r;
                worst = worst.max((f + slope).abs() / f.abs().max(slope.abs()).max(1.0));
            }
        }
        self.note(c, "force against gradient", worst, 1e-7, "");
        Ok(())
    }
}
