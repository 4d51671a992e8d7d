//! `galamost test-plugin`: everything `selftest` does, on every device there is, and the checks an author wants once.

use super::{Row, Test, standard_system};
use crate::checkpoint::Checkpoint;
use crate::pipeline::DeviceChoice;
use crate::plan::{CheckOptions, Plan, check};
use crate::plugins::Registry;
use crate::report::{Diagnostic, Failure};
use crate::run::{Backend, RunOptions, execute};
use crate::state::RawState;
use galamost_plugin_api::component::{ComponentInfo, Kind};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::snapshot::Snapshot;
use galamost_plugin_api::views::Wanted;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Steps of the runs that are compared bit by bit.
const STEPS: u64 = 40;

/// Tests every component of a library. Returns the rows of each device's table.
///
/// # Errors
/// The library cannot be used.
pub fn test_plugin(
    registry: &Registry,
    library: &Path,
    device: Option<DeviceChoice>,
) -> Result<Vec<(String, Vec<Row>)>, Failure> {
    let wrong = |m: String| Failure::Input(vec![Diagnostic::new(library, None, m)]);
    let canonical = library.canonicalize().map_err(|e| wrong(e.to_string()))?;
    let Some(found) = registry.libraries().iter().find(|l| l.path == canonical) else {
        let broken = registry.broken().iter().find(|(p, _)| *p == canonical);
        return Err(wrong(broken.map_or("is no plugin".into(), |(_, m)| m.clone())));
    };
    let names: Vec<String> = found.components.iter().map(|c| c.name.clone()).collect();
    let devices = match device {
        Some(d) => vec![d],
        None => {
            let there = |d: &DeviceChoice| crate::device::choose(*d).is_ok();
            [DeviceChoice::Emulated, DeviceChoice::Cuda(0)].into_iter().filter(there).collect()
        }
    };
    let mut tables = vec![];
    for d in devices {
        tables.push((format!("{} against the CPU", super::device_name(d)), super::run_on(registry, d, &names, false)?));
    }
    tables.push(("the CPU".into(), super::run_on(registry, DeviceChoice::Cpu, &names, true)?));
    Ok(tables)
}

/// A backend whose components have started and whose first stage has begun.
fn ready(plan: &Plan) -> Result<Box<dyn Backend>, Failure> {
    let mut backend = crate::cli::backend(plan)?;
    for component in &plan.components {
        component.start(backend.host())?;
    }
    backend.begin_stage(&plan.stages[0], false)?;
    Ok(backend)
}

fn seconds_per_step(backend: &mut dyn Backend) -> Result<f64, Failure> {
    let stop = AtomicBool::new(false);
    backend.advance(20, Wanted::FORCE, &stop)?;
    let begun = Instant::now();
    backend.advance(200, Wanted::FORCE, &stop)?;
    Ok(begun.elapsed().as_secs_f64() / 200.0)
}

impl Test<'_> {
    /// The further checks of a component.
    pub(super) fn harness(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        let conservative = self.pair(c)?;
        if matches!(c.kind, Kind::Pair | Kind::Bonded | Kind::Force) {
            if conservative {
                self.virial(c)?;
                self.drift(c)?;
            }
            self.speed(c)?;
        }
        if !matches!(c.kind, Kind::Generator | Kind::Analyzer) {
            self.threads(c)?;
            self.restart(c)?;
        }
        Ok(())
    }

    /// Mode of a pair in which U and F are 0 at the cutoff, as an override; none for those that go to 0 by themselves.
    fn smooth(&self, c: &ComponentInfo) -> Result<Vec<String>, Failure> {
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

    /// What a pair does at r → 0 and at r_cut, and with a type it has no row for. False if it has no potential.
    fn pair(&mut self, c: &ComponentInfo) -> Result<bool, Failure> {
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
                // U at the cutoff depends on the orientations
                Err(e) if e.render().contains("cannot be shifted away") => continue,
                // some potentials go to 0 by themselves and take no mode
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
        s.kind[0] = other;
        let refused = self.plan(c, cpu, double, s, 0, &[]).is_err();
        self.note(c, "a type without a row is refused", if refused { 0.0 } else { 1.0 }, 0.0, "");
        Ok(conservative)
    }

    /// Trace of the virial against −dU/d ln L.
    fn virial(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        let overrides = self.smooth(c)?;
        let energy = |scale: f64| -> Result<(f64, f64), Failure> {
            let mut s = standard_system();
            s.box_length.iter_mut().chain(s.position.iter_mut().flatten()).for_each(|x| *x *= scale);
            let plan = self.plan(c, DeviceChoice::Cpu, Precision::Double, s, 0, &overrides)?;
            let mut b = ready(&plan)?;
            let sums = b.sums()?.components;
            let w = sums.iter().map(|s| s.virial[0] + s.virial[3] + s.virial[5]).sum();
            Ok((sums.iter().map(|s| s.energy).sum(), w))
        };
        const H: f64 = 1e-6;
        let (up, down, (u, w)) = (energy(1.0 + H)?.0, energy(1.0 - H)?.0, energy(1.0)?);
        let slope = (up - down) / (2.0 * H);
        let scale = w.abs().max(u.abs()).max(1.0);
        self.note(c, "trace of the virial against −dU/d ln L", (w + slope).abs() / scale, 1e-5, "");
        Ok(())
    }

    /// Change of the total energy in an NVE run, relative to the kinetic energy.
    fn drift(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        let overrides = self.smooth(c)?;
        let run = |steps: u64, dt: f64| -> Result<(f64, f64), Failure> {
            let mut o = overrides.clone();
            o.push(format!("stages[0].dt={dt:?}"));
            let plan = self.plan(c, DeviceChoice::Cpu, Precision::Double, standard_system(), 1, &o)?;
            let mut b = ready(&plan)?;
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
        // short steps: nothing but this one potential holds the chains, and dihedrals of straight ones are stiff
        let (drift, _) = run(1000, 5e-5)?;
        self.note(c, "NVE, 1000 steps: ΔE / kinetic", drift, 1e-3, "");
        Ok(())
    }

    /// Time of a step beside Lennard-Jones on the same system.
    fn speed(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        let plan =
            self.plan(c, DeviceChoice::Cpu, Precision::Mixed, standard_system(), 1, &["stages[0].dt=1e-5".into()])?;
        let mut b = ready(&plan)?;
        let mine = seconds_per_step(&mut *b)?;
        let mut note = format!("{:.1} µs a step", 1e6 * mine);
        let report = b.list_report()?;
        if c.kind == Kind::Pair
            && let Some((_, lj)) = self.registry.find(Kind::Pair, "LennardJones")
        {
            let cutoff = format!("forces[0].r_cut={:?}", plan.components[0].needs.cutoff);
            let plan = self.plan(
                lj,
                DeviceChoice::Cpu,
                Precision::Mixed,
                standard_system(),
                1,
                &["stages[0].dt=1e-5".into(), cutoff],
            )?;
            let other = seconds_per_step(&mut *ready(&plan)?)?;
            let entries = report.mean * standard_system().len() as f64;
            note =
                format!("{:.2} ns an entry of the list, {:.2} times Lennard-Jones", 1e9 * mine / entries, mine / other);
        }
        self.note(c, "speed on the CPU, mixed", 0.0, 0.0, note);
        Ok(())
    }

    fn state_after(&self, plan: &Plan, steps: u64, resume: Option<Checkpoint>) -> Result<RawState, Failure> {
        let mut b = crate::cli::backend(plan)?;
        let options = RunOptions { quiet: true, steps: Some(steps), ..RunOptions::default() };
        execute(plan, &mut *b, &options, resume)?;
        Ok(b.export()?)
    }

    /// The same bits with one thread and with four.
    fn threads(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        let plan = self.plan(c, DeviceChoice::Cpu, Precision::Mixed, standard_system(), STEPS, &[])?;
        let with = |n: usize| -> Result<RawState, Failure> {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().map_err(Failure::run)?;
            pool.install(|| self.state_after(&plan, STEPS, None))
        };
        let same = with(1)? == with(4)?;
        self.note(c, "1 thread = 4 threads, bits", if same { 0.0 } else { 1.0 }, 0.0, "");
        Ok(())
    }

    /// 2n steps are n steps, a restart, and n steps.
    fn restart(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        let overrides = [format!("checkpoint=(every: {})", STEPS / 2)];
        let plan = |resumed: bool| -> Result<Plan, Failure> {
            let mut plan = self.plan(c, DeviceChoice::Cpu, Precision::Mixed, standard_system(), STEPS, &overrides)?;
            if resumed {
                let snapshot: Option<Snapshot> = Some(standard_system());
                plan = check(plan.pipeline, self.registry, CheckOptions { resumed, snapshot })?;
            }
            Ok(plan)
        };
        let whole = self.state_after(&plan(false)?, STEPS, None)?;
        let first = plan(false)?;
        let path = first.pipeline.checkpoint_path();
        self.state_after(&first, STEPS / 2, None)?;
        let second = plan(true)?;
        let checkpoint = Checkpoint::read(&path, &second)?;
        let parts = self.state_after(&second, STEPS, Some(checkpoint))?;
        let _ = std::fs::remove_file(path);
        self.note(c, "2n = n + restart + n, bits", if whole == parts { 0.0 } else { 1.0 }, 0.0, "");
        Ok(())
    }
}
