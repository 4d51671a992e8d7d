//! `galamost test-plugin`: everything `selftest` does, on every device there is, and the checks an author wants once.

use super::{Row, Test, standard_system};
use galamost_engine::backend::Backend;
use galamost_engine::checkpoint::Checkpoint;
use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::plan::{CheckOptions, Plan, check};
use galamost_engine::plugins::Registry;
use galamost_engine::run::{RunOptions, execute};
use galamost_engine::state::RawState;
use galamost_plugin_api::component::{ComponentInfo, Kind};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::snapshot::Snapshot;
use galamost_plugin_api::views::Wanted;
use std::collections::BTreeMap;
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
            let there = |d: &DeviceChoice| galamost_engine::device::choose(*d).is_ok();
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
    let mut backend = galamost_engine::run::open(plan)?;
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
        match c.kind {
            Kind::Generator => {}
            Kind::Analyzer => self.files(c)?,
            _ => {
                self.threads(c)?;
                self.restart(c)?;
            }
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
        s.type_id[0] = other;
        let refused = self.plan(c, cpu, double, s, 0, &[]).is_err();
        self.note(c, "a type without a row is refused", if refused { 0.0 } else { 1.0 }, 0.0, "");
        Ok(conservative)
    }

    /// The virial along each axis against −dU/d ln L of that axis; all of it against Σ r F for a force on single particles.
    fn virial(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        let overrides = self.smooth(c)?;
        let sums = |scale: [f64; 3]| -> Result<(f64, [f64; 6], [f64; 6]), Failure> {
            let mut s = standard_system();
            for k in 0..3 {
                s.box_length[k] *= scale[k];
                s.position.iter_mut().for_each(|p| p[k] *= scale[k]);
            }
            let position = s.position.clone();
            let plan = self.plan(c, DeviceChoice::Cpu, Precision::Double, s, 0, &overrides)?;
            let mut b = ready(&plan)?;
            let sums = b.sums()?.components;
            let force = super::force(&mut *b, Precision::Double)?;
            let mut alone = [0.0; 6];
            for (p, f) in position.iter().zip(force.as_chunks::<3>().0) {
                for (w, (i, j)) in alone.iter_mut().zip([(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]) {
                    *w += 0.5 * (p[i] * f[j] + p[j] * f[i]);
                }
            }
            let virial = std::array::from_fn(|k| sums.iter().map(|s| s.virial[k]).sum());
            Ok((sums.iter().map(|s| s.energy).sum(), virial, alone))
        };
        const H: f64 = 1e-6;
        let (u, w, alone) = sums([1.0; 3])?;
        let scale = w.iter().fold(u.abs().max(1.0), |m, w| m.max(w.abs()));
        let mut worst = 0.0f64;
        for (axis, place) in [0, 3, 5].into_iter().enumerate() {
            let along = |h: f64| -> Result<f64, Failure> {
                let mut scale = [1.0; 3];
                scale[axis] += h;
                Ok(sums(scale)?.0)
            };
            let slope = (along(H)? - along(-H)?) / (2.0 * H);
            worst = worst.max((w[place] + slope).abs() / scale);
        }
        self.note(c, "virial of each axis against −dU/d ln L", worst, 1e-5, "");
        let far = |a: &[f64], b: &[f64]| a.iter().zip(b).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
        // particles that do not act on each other: the whole tensor is known
        if c.kind == Kind::Force && far(&[w[0], w[3], w[5]], &[alone[0], alone[3], alone[5]]) < 1e-8 * scale {
            self.note(c, "virial xx xy xz yy yz zz against Σ r F", far(&w, &alone) / scale, 1e-8, "");
        }
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
        let mut b = galamost_engine::run::open(plan)?;
        let options = RunOptions { quiet: true, steps: Some(steps), ..RunOptions::default() };
        execute(plan, &mut *b, &options, resume)?;
        Ok(b.export()?)
    }

    /// The same bits with one thread and with four.
    fn threads(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        let plan = self.plan(c, DeviceChoice::Cpu, Precision::Mixed, self.system_of(c), STEPS, &[])?;
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
            let mut plan = self.plan(c, DeviceChoice::Cpu, Precision::Mixed, self.system_of(c), STEPS, &overrides)?;
            if resumed {
                let snapshot: Option<Snapshot> = Some(self.system_of(c));
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

    /// Files in the folder of the pipeline, by name, without checkpoints.
    fn written(&self) -> Result<BTreeMap<String, Vec<u8>>, Failure> {
        let list = std::fs::read_dir(&self.folder).map_err(Failure::run)?;
        let mut files = BTreeMap::new();
        for path in list.filter_map(|e| Some(e.ok()?.path())) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_file() && !name.contains(".checkpoint") && !name.ends_with(".ron") {
                files.insert(name, std::fs::read(&path).map_err(Failure::run)?);
                std::fs::remove_file(&path).map_err(Failure::run)?;
            }
        }
        Ok(files)
    }

    /// An analyzer's files: the same with one thread and four, and after a restart.
    fn files(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        let mut overrides = vec![format!("checkpoint=(every: {})", STEPS / 2)];
        if c.fields.iter().any(|f| f.name == "every") {
            overrides.push("analyzers[0].every=5".into());
        }
        let plan = |resumed: bool| -> Result<Plan, Failure> {
            let plan = self.plan(c, DeviceChoice::Cpu, Precision::Mixed, self.system_of(c), STEPS, &overrides)?;
            if !resumed {
                return Ok(plan);
            }
            check(plan.pipeline, self.registry, CheckOptions { resumed, snapshot: Some(self.system_of(c)) })
        };
        self.written()?;
        let with = |n: usize| -> Result<BTreeMap<String, Vec<u8>>, Failure> {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().map_err(Failure::run)?;
            let plan = plan(false)?;
            pool.install(|| self.state_after(&plan, STEPS, None))?;
            self.written()
        };
        let (whole, four) = (with(1)?, with(4)?);
        let first = plan(false)?;
        let path = first.pipeline.checkpoint_path();
        self.state_after(&first, STEPS / 2, None)?;
        drop(first);
        let second = plan(true)?;
        let checkpoint = Checkpoint::read(&path, &second)?;
        self.state_after(&second, STEPS, Some(checkpoint))?;
        drop(second);
        let parts = self.written()?;
        let _ = std::fs::remove_file(path);
        let differ = |other: &BTreeMap<String, Vec<u8>>| if whole == *other { 0.0 } else { 1.0 };
        let bytes: usize = whole.values().map(Vec::len).sum();
        let note = format!("{} files, {bytes} bytes", whole.len());
        let (threads, restart) = (differ(&four), differ(&parts));
        self.note(c, "files: 1 thread = 4 threads, bits", threads, 0.0, note);
        self.note(c, "files: 2n = n + restart + n, bits", restart, 0.0, "");
        Ok(())
    }
}
