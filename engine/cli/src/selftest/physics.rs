//! Physics checks of `test-plugin`: limits of pair potentials, virial, energy conservation.

use super::forces::is_conservative;
use super::test_plugin::open;
use super::{Test, oriented, setup, standard_system};
use galamost_engine::backend::Backend;
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::plan::Plan;
use galamost_engine::state::arrays::optional_name;
use galamost_plugin_api::component::{ComponentInfo, Kind, Needs};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::snapshot::Snapshot;
use galamost_plugin_api::views::Wanted;
use std::sync::atomic::AtomicBool;

/// The components of a virial: xx, xy, xz, yy, yz, zz.
const TENSOR: [(usize, usize); 6] = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)];

/// The check of the energy.
pub(super) const NVE: &str = "NVE, 1000 steps: ΔE / kinetic";

/// Energy, virial and Σ r F of a system; the latter with r_a F_b for the component ab, and symmetric.
struct Stress {
    energy: f64,
    virial: [f64; 6],
    single: [f64; 6],
    symmetric: [f64; 6],
}

impl Stress {
    /// Returns the scale of the deviations of the virial.
    fn scale(&self) -> f64 {
        self.virial.iter().fold(self.energy.abs().max(1.0), |m, w| m.max(w.abs()))
    }
}

impl Test<'_> {
    /// Returns a plan of forces only, on the CPU in double precision.
    fn static_plan(&self, c: &ComponentInfo, s: Snapshot, overrides: &[String]) -> Result<Plan, Failure> {
        self.plan(c, DeviceChoice::Cpu, Precision::Double, s, 0, overrides)
    }

    /// Returns the modes that a pair potential declares: none if it has no field `mode` or no energy, and no shift if the
    /// energy at the cutoff depends on orientations.
    fn modes(&self, c: &ComponentInfo) -> Result<Vec<String>, Failure> {
        if c.kind != Kind::Pair || !c.fields.iter().any(|f| f.name == "mode") {
            return Ok(vec![]);
        }
        let plan = self.static_plan(c, standard_system(), &[])?;
        if !is_conservative(&plan) {
            return Ok(vec![]);
        }
        // below the cutoffs of all pairs of types
        let smooth = format!("Smooth({:?})", 0.5 * plan.components[0].needs.cutoff);
        let shifts =
            if oriented::is_oriented(&plan) { vec![] } else { vec!["ShiftEnergy".into(), "ShiftForce".into()] };
        Ok([shifts, vec![smooth]].concat())
    }

    /// Returns an override that selects a mode with U = F = 0 at the cutoff; empty for potentials that vanish there
    /// anyway.
    fn smooth_mode(&self, c: &ComponentInfo) -> Result<Vec<String>, Failure> {
        let mode = self.modes(c)?.into_iter().find(|m| m != "ShiftEnergy");
        Ok(mode.map(|m| format!("forces[0].mode={m}")).into_iter().collect())
    }

    /// Checks a pair potential at r → 0, at r_cut and with a type without parameters.
    pub(super) fn pair_limits(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        let at = |plan: &Plan, r: f64| {
            plan.components[0].pair().map_or(Ok((0.0, 0.0)), |p| p.evaluate(0, 0, r * r)).map_err(Failure::from)
        };
        let plan = self.static_plan(c, standard_system(), &[])?;
        let cutoff = plan.components[0].needs.cutoff;
        let near = [at(&plan, 1e-3 * cutoff)?, at(&plan, 1e-2 * cutoff)?, at(&plan, 0.1 * cutoff)?];
        let nans = near.iter().filter(|(f, u)| f.is_nan() || u.is_nan()).count();
        self.note(c, "r → 0: NaN", nans as f64, 0.0, format!("U(10⁻³ r_cut) = {:.3e}", near[0].1));
        for mode in self.modes(c)? {
            let plan = self.static_plan(c, standard_system(), &[format!("forces[0].mode={mode}")])?;
            let (f, u) = at(&plan, cutoff * (1.0 - 1e-9))?;
            let (f_scale, u_scale) = at(&plan, 0.5 * cutoff)?;
            let value = u.abs() / u_scale.abs().max(1.0);
            let value = if mode == "ShiftEnergy" { value } else { value.max(f.abs() / f_scale.abs().max(1.0)) };
            let name = mode.split('(').next().unwrap_or(&mode);
            self.note(c, &format!("{name}: U, F at r_cut"), value, 1e-6, "");
        }
        const REFUSED: &str = "a type without parameters is refused";
        if !c.fields.iter().any(|f| f.name == "pairs" && f.default.is_none()) {
            self.skip(c, REFUSED, "its parameters have defaults, or do not depend on types");
            return Ok(());
        }
        if setup::example(c).contains("\"*\"") {
            self.skip(c, REFUSED, "its example has parameters for all types");
            return Ok(());
        }
        let mut s = standard_system();
        let other = s.type_id("C");
        s.type_id[0] = other;
        let refused = self.static_plan(c, s, &[]).is_err();
        self.note(c, REFUSED, if refused { 0.0 } else { 1.0 }, 0.0, "");
        Ok(())
    }

    /// Returns energy and virial of a system.
    fn stress(&self, c: &ComponentInfo, s: Snapshot, overrides: &[String]) -> Result<Stress, Failure> {
        let position = s.position.clone();
        let plan = self.static_plan(c, s, overrides)?;
        let mut b = open(&plan)?;
        let sums = b.sums()?.components;
        let force = setup::force(&mut *b, Precision::Double)?;
        let (mut single, mut symmetric) = ([0.0; 6], [0.0; 6]);
        for (p, f) in position.iter().zip(force.as_chunks::<3>().0) {
            for (k, (i, j)) in TENSOR.into_iter().enumerate() {
                single[k] += p[i] * f[j];
                symmetric[k] += 0.5 * (p[i] * f[j] + p[j] * f[i]);
            }
        }
        let virial = std::array::from_fn(|k| sums.iter().map(|s| s.virial[k]).sum());
        Ok(Stress { energy: sums.iter().map(|s| s.energy).sum(), virial, single, symmetric })
    }

    /// Checks that the energies and virials of the particles add up to those of the system, where the forces declare it.
    pub(super) fn particle_sums(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        // the energies contain sums over grids in integers
        const LIMIT: f64 = 1e-6;
        const OTHER: &str = "ExtendedXyz";
        let plan = self.static_plan(c, standard_system(), &[])?;
        let all = |declared: fn(&Needs) -> bool| {
            plan.components.iter().filter(|p| p.force().is_some()).all(|p| declared(&p.needs))
        };
        if plan.components.iter().any(|p| p.needs.places) || !all(|n| n.particle_energies) {
            return Ok(());
        }
        // an analyzer that wants virials of the particles
        let virials =
            all(|n| n.particle_virials && !n.without_virial) && self.registry.find(Kind::Analyzer, OTHER).is_some();
        let analyzers = format!("analyzers=[{OTHER}(every: 1, file: \"selftest.xyz\", virials: true)]");
        let overrides = if virials { vec![analyzers] } else { vec![] };
        let mut b = open(&self.static_plan(c, standard_system(), &overrides)?)?;
        let sums = b.sums()?.components;
        let force = setup::numbers(&mut *b, "force", Precision::Double)?;
        let (each, total) = (force.iter().skip(3).step_by(4), sums.iter().map(|s| s.energy).sum::<f64>());
        let scale = each.clone().fold(1.0f64, |m, u| m + u.abs());
        self.note(c, "energies of the particles against energy", (each.sum::<f64>() - total).abs() / scale, LIMIT, "");
        if virials {
            let shares = setup::numbers(&mut *b, &optional_name("virial"), Precision::Double)?;
            let shares = shares.as_chunks::<6>().0;
            let scale = shares.iter().flatten().fold(1.0f64, |m, w| m + w.abs());
            let far = |k: usize| {
                let total: f64 = sums.iter().map(|s| s.virial[k]).sum();
                (shares.iter().map(|w| w[k]).sum::<f64>() - total).abs() / scale
            };
            let worst = (0..6).map(far).fold(0.0, f64::max);
            self.note(c, "virials of the particles against virial", worst, LIMIT, "");
        }
        drop(b);
        self.take_files().map(drop)
    }

    /// Checks the virial: each axis against −dU/d ln L, and the other components against −dU/dγ of shear, or all of them
    /// against Σ r F for forces on single particles.
    pub(super) fn virial(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        const H: f64 = 1e-6;
        const AXES: &str = "virial of each axis against −dU/d ln L";
        let plan = self.static_plan(c, standard_system(), &[])?;
        if plan.components.iter().any(|c| c.needs.without_virial) {
            self.skip(c, AXES, "the force declares that it has no virial");
            return Ok(());
        }
        if !is_conservative(&plan) {
            self.skip(c, AXES, "the force declares that it is not conservative");
            return Ok(());
        }
        if plan.components.iter().any(|c| c.needs.places) {
            self.skip(c, AXES, "it places particles, so its virial belongs to no energy");
            return Ok(());
        }
        let overrides = self.smooth_mode(c)?;
        let scaled = |axis: usize, h: f64| {
            let mut s = standard_system();
            s.box_length[axis] *= 1.0 + h;
            s.position.iter_mut().for_each(|p| p[axis] *= 1.0 + h);
            self.stress(c, s, &overrides)
        };
        let here = scaled(0, 0.0)?;
        let (w, single, scale) = (here.virial, here.single, here.scale());
        if plan.components.iter().any(|c| !c.needs.conserves_momentum) && w == [0.0; 6] {
            self.skip(c, AXES, "a force from outside without a virial");
            return Ok(());
        }
        let mut worst = 0.0f64;
        for (axis, component) in [0, 3, 5].into_iter().enumerate() {
            let slope = (scaled(axis, H)?.energy - scaled(axis, -H)?.energy) / (2.0 * H);
            worst = worst.max((w[component] + slope).abs() / scale);
        }
        self.note(c, AXES, worst, 1e-5, "");
        let far = |a: &[f64], b: &[f64]| a.iter().zip(b).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
        // particles do not interact: the full tensor is known
        if c.kind == Kind::Force && far(&[w[0], w[3], w[5]], &[single[0], single[3], single[5]]) < 1e-8 * scale {
            // both definitions have the same pressure along each axis
            let worst = far(&w, &single).min(far(&w, &here.symmetric));
            self.note(c, "virial xx xy xz yy yz zz against Σ r F", worst / scale, 1e-8, "");
            return Ok(());
        }
        self.shear_virial(c, &plan, &overrides)
    }

    /// Checks the components xy, xz and yz of the virial of a cluster, which no interaction connects with its periodic
    /// images, against −dU/dγ for displacements r_i += γ r_j/2, r_j += γ r_i/2.
    fn shear_virial(&mut self, c: &ComponentInfo, plan: &Plan, overrides: &[String]) -> Result<(), Failure> {
        const H: f64 = 1e-6;
        const CHECK: &str = "virial xy xz yz against −dU/dγ";
        let range = plan.components.iter().fold(0.0f64, |m, c| m.max(c.needs.cutoff));
        if c.kind == Kind::Force && range == 0.0 {
            self.skip(c, CHECK, "the force declares no cutoff, so it has no isolated cluster");
            return Ok(());
        }
        if plan.components.iter().any(|c| c.pair().is_some() && c.force().is_some()) {
            self.skip(c, CHECK, "an interaction of long range connects a cluster with its periodic images");
            return Ok(());
        }
        let sheared = |(i, j): (usize, usize), h: f64| {
            let mut s = standard_system();
            // chains do not cross the boundary
            s.box_length.iter_mut().for_each(|l| *l += 2.0 * range + 2.0);
            for p in &mut s.position {
                (p[i], p[j]) = (p[i] + 0.5 * h * p[j], p[j] + 0.5 * h * p[i]);
            }
            self.stress(c, s, overrides)
        };
        let here = sheared((0, 1), 0.0)?;
        let mut worst = 0.0f64;
        for (k, pair) in TENSOR.into_iter().enumerate().filter(|(_, (i, j))| i != j) {
            let slope = (sheared(pair, H)?.energy - sheared(pair, -H)?.energy) / (2.0 * H);
            worst = worst.max((here.virial[k] + slope).abs() / here.scale());
        }
        self.note(c, CHECK, worst, 1e-5, "");
        Ok(())
    }

    /// Checks that a force conserves the energy.
    pub(super) fn energy_drift(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        if !is_conservative(&self.static_plan(c, standard_system(), &[])?) {
            self.skip(c, NVE, "the force declares that it is not conservative");
            return Ok(());
        }
        let overrides = self.smooth_mode(c)?;
        self.drift(c, &overrides)
    }

    /// Checks the change of the total energy in an NVE run, relative to the kinetic energy. If it is too large, the same time is
    /// run in shorter steps: energy that stiff motion loses comes back, energy that a wrong force adds does not. There is no second
    /// run for a component that has failed another check.
    pub(super) fn drift(&mut self, c: &ComponentInfo, overrides: &[String]) -> Result<(), Failure> {
        const LIMIT: f64 = 1e-3;
        let mut change = f64::INFINITY;
        for finer in [1u32, 16] {
            change = self.energy_change(c, overrides, finer)?;
            if change <= LIMIT || self.failed {
                break;
            }
        }
        self.note(c, NVE, change, LIMIT, "");
        Ok(())
    }

    /// Returns |ΔE| / K of 1000 short steps, each divided into `finer` ones.
    fn energy_change(&self, c: &ComponentInfo, overrides: &[String], finer: u32) -> Result<f64, Failure> {
        // a short time step: only this potential acts on the chains, and dihedrals of straight chains are stiff
        let options = [overrides, &[format!("stages[0].dt={:e}", 5e-5 / f64::from(finer))]].concat();
        let plan = self.plan(c, DeviceChoice::Cpu, Precision::Double, standard_system(), 1, &options)?;
        let mut b = open(&plan)?;
        let total = |b: &mut dyn Backend| -> Result<(f64, f64), Failure> {
            let s = b.sums()?;
            let k = 0.5 * (s.kinetic_tensor[0] + s.kinetic_tensor[3] + s.kinetic_tensor[5]) + s.rotational;
            Ok((k + s.components.iter().map(|c| c.energy).sum::<f64>(), k))
        };
        let before = total(&mut *b)?;
        b.advance(1000 * u64::from(finer), Wanted::ALL, &AtomicBool::new(false))?;
        let after = total(&mut *b)?;
        Ok((after.0 - before.0).abs() / before.1.max(after.1))
    }
}
