//! Physics checks of `test-plugin`: limits of pair potentials, virial, energy conservation.

use super::test_plugin::open;
use super::{Test, setup, standard_system};
use galamost_engine::backend::Backend;
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::plan::Plan;
use galamost_plugin_api::component::{ComponentInfo, Kind};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::views::Wanted;
use std::sync::atomic::AtomicBool;

impl Test<'_> {
    /// Returns an override that selects a mode with U = F = 0 at the cutoff; empty for potentials that vanish there
    /// anyway.
    fn smooth_mode(&self, c: &ComponentInfo) -> Result<Vec<String>, Failure> {
        if c.kind != Kind::Pair {
            return Ok(vec![]);
        }
        let plan =
            |overrides: &[String]| self.plan(c, DeviceChoice::Cpu, Precision::Double, standard_system(), 0, overrides);
        let cutoff = plan(&[])?.components[0].needs.cutoff;
        let modes = ["ShiftForce".to_string(), format!("Smooth({:?})", 0.8 * cutoff)];
        let mut overrides = modes.map(|m| vec![format!("forces[0].mode={m}")]).into_iter();
        Ok(overrides.find(|o| plan(o).is_ok()).unwrap_or_default())
    }

    /// Checks a pair potential at r → 0, at r_cut and with a type without parameters. Returns whether it is
    /// conservative.
    pub(super) fn pair_limits(&mut self, c: &ComponentInfo) -> Result<bool, Failure> {
        if c.kind != Kind::Pair {
            return Ok(true);
        }
        let (cpu, double) = (DeviceChoice::Cpu, Precision::Double);
        let at = |plan: &Plan, r: f64| {
            plan.components[0].pair().map_or(Ok((0.0, 0.0)), |p| p.evaluate(0, 0, r * r)).map_err(Failure::from)
        };
        let plan = self.plan(c, cpu, double, standard_system(), 0, &[])?;
        let cutoff = plan.components[0].needs.cutoff;
        let near = [at(&plan, 1e-3 * cutoff)?, at(&plan, 1e-2 * cutoff)?, at(&plan, 0.1 * cutoff)?];
        let nans = near.iter().filter(|(f, u)| f.is_nan() || u.is_nan()).count();
        self.note(c, "r → 0: NaN", nans as f64, 0.0, format!("U(10⁻³ r_cut) = {:.3e}", near[0].1));
        let mut conservative = true;
        for mode in ["ShiftEnergy", "ShiftForce", "Smooth(RON)"] {
            let mode = mode.replace("RON", &format!("{:?}", 0.8 * cutoff));
            let plan = match self.plan(c, cpu, double, standard_system(), 0, &[format!("forces[0].mode={mode}")]) {
                Ok(p) => p,
                Err(e) if e.render().contains("no potential") => {
                    conservative = false;
                    continue;
                }
                // U at the cutoff depends on orientations
                Err(e) if e.render().contains("cannot be shifted") => continue,
                // some potentials vanish at the cutoff and have no mode
                Err(e) if e.render().contains("unknown field `mode`") => continue,
                Err(e) => return Err(e),
            };
            let (f, u) = at(&plan, cutoff * (1.0 - 1e-9))?;
            let (f_scale, u_scale) = at(&plan, 0.5 * cutoff)?;
            let value = u.abs() / u_scale.abs().max(1.0);
            let value = if mode == "ShiftEnergy" { value } else { value.max(f.abs() / f_scale.abs().max(1.0)) };
            self.note(c, &format!("{mode}: U, F at r_cut"), value, 1e-6, "");
        }
        let mut s = standard_system();
        let other = s.type_id("C");
        s.type_id[0] = other;
        let refused = self.plan(c, cpu, double, s, 0, &[]).is_err();
        self.note(c, "a type without parameters is refused", if refused { 0.0 } else { 1.0 }, 0.0, "");
        Ok(conservative)
    }

    /// Checks the virial along each axis against −dU/d ln L, and the full tensor against Σ r F for forces on single
    /// particles.
    pub(super) fn virial(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        let overrides = self.smooth_mode(c)?;
        let sums = |scale: [f64; 3]| -> Result<(f64, [f64; 6], [f64; 6]), Failure> {
            let mut s = standard_system();
            for k in 0..3 {
                s.box_length[k] *= scale[k];
                s.position.iter_mut().for_each(|p| p[k] *= scale[k]);
            }
            let position = s.position.clone();
            let plan = self.plan(c, DeviceChoice::Cpu, Precision::Double, s, 0, &overrides)?;
            let mut b = open(&plan)?;
            let sums = b.sums()?.components;
            let force = setup::force(&mut *b, Precision::Double)?;
            let mut single = [0.0; 6];
            for (p, f) in position.iter().zip(force.as_chunks::<3>().0) {
                for (w, (i, j)) in single.iter_mut().zip([(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]) {
                    *w += 0.5 * (p[i] * f[j] + p[j] * f[i]);
                }
            }
            let virial = std::array::from_fn(|k| sums.iter().map(|s| s.virial[k]).sum());
            Ok((sums.iter().map(|s| s.energy).sum(), virial, single))
        };
        const H: f64 = 1e-6;
        let (u, w, single) = sums([1.0; 3])?;
        let scale = w.iter().fold(u.abs().max(1.0), |m, w| m.max(w.abs()));
        let mut worst = 0.0f64;
        for (axis, component) in [0, 3, 5].into_iter().enumerate() {
            let along = |h: f64| -> Result<f64, Failure> {
                let mut scale = [1.0; 3];
                scale[axis] += h;
                Ok(sums(scale)?.0)
            };
            let slope = (along(H)? - along(-H)?) / (2.0 * H);
            worst = worst.max((w[component] + slope).abs() / scale);
        }
        self.note(c, "virial of each axis against −dU/d ln L", worst, 1e-5, "");
        let far = |a: &[f64], b: &[f64]| a.iter().zip(b).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
        // particles do not interact: the full tensor is known
        if c.kind == Kind::Force && far(&[w[0], w[3], w[5]], &[single[0], single[3], single[5]]) < 1e-8 * scale {
            self.note(c, "virial xx xy xz yy yz zz against Σ r F", far(&w, &single) / scale, 1e-8, "");
        }
        Ok(())
    }

    /// Checks the change of the total energy in an NVE run, relative to the kinetic energy.
    pub(super) fn energy_drift(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        let overrides = self.smooth_mode(c)?;
        let run = |steps: u64, dt: f64| -> Result<(f64, f64), Failure> {
            let mut o = overrides.clone();
            o.push(format!("stages[0].dt={dt:?}"));
            let plan = self.plan(c, DeviceChoice::Cpu, Precision::Double, standard_system(), 1, &o)?;
            let mut b = open(&plan)?;
            let total = |b: &mut dyn Backend| -> Result<(f64, f64), Failure> {
                let s = b.sums()?;
                let k = 0.5 * (s.kinetic_tensor[0] + s.kinetic_tensor[3] + s.kinetic_tensor[5]) + s.rotational;
                Ok((k + s.components.iter().map(|c| c.energy).sum::<f64>(), k))
            };
            let before = total(&mut *b)?;
            b.advance(steps, Wanted::ALL, &AtomicBool::new(false))?;
            let after = total(&mut *b)?;
            Ok(((after.0 - before.0).abs() / before.1.max(after.1), after.1))
        };
        // a short time step: only this potential acts on the chains, and dihedrals of straight chains are stiff
        let (drift, _) = run(1000, 5e-5)?;
        self.note(c, "NVE, 1000 steps: ΔE / kinetic", drift, 1e-3, "");
        Ok(())
    }
}
