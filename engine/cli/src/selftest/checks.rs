//! Tests of integrators, generators, analyzers, updaters and samplers.

mod declared;
mod motion;
mod outputs;
mod ranks;
mod updates;

use super::setup::{Outcome, UNWRITTEN, check_declared, example, names, unwritten};
use super::{Test, bare_molecules, standard_system};
use crate::common::parse_errors;
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::{DeviceChoice, Pipeline};
use galamost_engine::plan::{CheckOptions, Plan, check};
use galamost_engine::run::RunOptions;
use galamost_engine::run::ensemble::{self, checkpoint_at};
use galamost_plugin_api::component::{ComponentInfo, Kind};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::snapshot::Snapshot;

/// Fields of generators that name a file.
const INPUTS: [&str; 2] = ["file", "topology"];

impl Test<'_> {
    /// Compares trajectories of a few steps with the CPU in double precision.
    pub(super) fn integrator(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        const STEPS: u64 = 20;
        let reference = self.outcome(c, DeviceChoice::Cpu, Precision::Double, STEPS)?;
        self.motion(c, &reference)?;
        let speed = reference.velocity.iter().fold(1.0f64, |m, v| m.max(v.abs()));
        for (device, precision, name) in self.targets() {
            let o = self.outcome(c, device, precision, STEPS)?;
            let limit = if precision == Precision::Double { 1e-10 } else { 2e-5 };
            let worst = |a: &[f64], b: &[f64]| a.iter().zip(b).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
            self.note(
                c,
                &format!("{name}: positions, {STEPS} steps"),
                worst(&o.position, &reference.position),
                limit,
                "",
            );
            let v = worst(&o.velocity, &reference.velocity) / speed;
            self.note(c, &format!("{name}: velocities, {STEPS} steps"), v, limit, "");
            if !reference.rotation.is_empty() {
                let v = worst(&o.rotation, &reference.rotation);
                self.note(c, &format!("{name}: rotation, {STEPS} steps"), v, limit, "");
            }
        }
        Ok(())
    }

    /// Checks that an integrator with functions of particles moves them, unless it only corrects what others move.
    fn motion(&mut self, c: &ComponentInfo, after: &Outcome) -> Result<(), Failure> {
        let plan = self.plan(c, DeviceChoice::Cpu, Precision::Double, standard_system(), 0, &[])?;
        let Some(integrator) = plan.components.iter().find(|p| p.kind == Kind::Integrator && p.has_name(&c.name))
        else {
            return Err(Failure::run(format!("the example of {} does not contain it", c.name)));
        };
        if !integrator.needs.moves || integrator.needs.corrects {
            return Ok(());
        }
        let before = standard_system();
        let group: Vec<usize> =
            (0..before.len()).filter(|tag| integrator.needs.group.contains(*tag as u32, &before)).collect();
        let after = after.position.as_chunks::<3>().0;
        let still = group.iter().filter(|tag| before.position[**tag] == after[**tag]).count();
        self.note(c, "particles that do not move", still as f64, 0.0, format!("{} particles", group.len()));
        Ok(())
    }

    /// Checks the state that a generator creates.
    pub(super) fn generator(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        // some generators need particles, others must come first, and some need particles without links or without mass
        let on = |s: Snapshot| self.plan(c, DeviceChoice::Cpu, Precision::Double, s, 0, &[]);
        let twice = |s: Snapshot| -> Result<(Plan, Plan), Failure> { Ok((on(s.clone())?, on(s)?)) };
        let (plan, again) = match twice(standard_system()) {
            Ok(plans) => plans,
            Err(e) => match twice(Snapshot::default()).or_else(|_| twice(bare_molecules())) {
                Ok(plans) => plans,
                Err(_) if c.fields.iter().any(|f| INPUTS.contains(&f.name.as_str()) && f.default.is_none()) => {
                    let reason = e.render().lines().next().unwrap_or_default().to_string();
                    return self.reader(c, reason);
                }
                // the reason is what it says without particles before it
                Err(_) => return Err(on(Snapshot::default()).err().unwrap_or(e)),
            },
        };
        let faults = if plan.snapshot.check().is_ok() { 0.0 } else { 1.0 };
        self.note(c, "faults in the generated state", faults, 0.0, format!("{} particles", plan.snapshot.len()));
        let differs = if plan.snapshot == again.snapshot { 0.0 } else { 1.0 };
        self.note(c, "generated twice: differences", differs, 0.0, "");
        Ok(())
    }

    /// Runs an analyzer or updater, and compares the states of an updater.
    pub(super) fn steps(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        let devices = if self.has_device { vec![DeviceChoice::Cpu, self.device] } else { vec![DeviceChoice::Cpu] };
        for device in devices {
            // longer than the period of any example
            self.outcome(c, device, Precision::Mixed, 100)?;
            let name = if device == DeviceChoice::Cpu { "CPU" } else { "device" };
            self.note(c, &format!("{name}: errors in 100 steps"), 0.0, 0.0, "");
        }
        if c.kind == Kind::Updater && self.has_device {
            // few steps, so that differences remain at the level of rounding
            let reference = self.outcome(c, DeviceChoice::Cpu, Precision::Double, 40)?;
            let o = self.outcome(c, self.device, Precision::Double, 40)?;
            let worst = |a: &[f64], b: &[f64]| a.iter().zip(b).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
            let far = worst(&o.position, &reference.position).max(worst(&o.velocity, &reference.velocity));
            self.note(c, "device double: state, 40 steps", far, 1e-9, "");
            let links = if o.topology == reference.topology { 0.0 } else { 1.0 };
            let note = format!("{} bonds", reference.topology.bonds.len());
            self.note(c, "device double: links, 40 steps", links, 0.0, note);
        }
        Ok(())
    }

    /// Checks that the result of a sampler and its files are identical on the CPU with any number of threads, after a restart, and
    /// on the device, byte for byte, and that it writes the files that it declares.
    pub(super) fn sampler(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        let text = format!("(seed: 7, ensemble: [{}])", example(c));
        let (folder, path) = (self.folder.clone(), self.folder.join("selftest.ron"));
        let plan = |device: DeviceChoice, resumed: bool| -> Result<Plan, Failure> {
            let mut pipeline = Pipeline::parse(&path, &text, &[]).map_err(|e| parse_errors(&path, e))?;
            pipeline.device = device;
            check(pipeline, self.registry, CheckOptions { resumed, ..CheckOptions::default() })
        };
        // the state, and the files that are missing
        let draw = |device, steps, kept: Option<(u64, Vec<u8>)>| -> Result<(Vec<u8>, Vec<String>), Failure> {
            let (plan, before) = (plan(device, kept.is_some())?, names(&folder));
            let checkpoint = kept.map(|(batches, state)| checkpoint_at(&plan, batches, state));
            ensemble::run(&plan, &RunOptions { quiet: true, steps, ..RunOptions::default() }, checkpoint)?;
            check_declared(&folder, &before, &plan)?;
            Ok((plan.components[0].save()?, unwritten(&plan)))
        };
        let (reference, missing) = draw(DeviceChoice::Cpu, None, None)?;
        let files = self.take_files()?;
        self.note(c, UNWRITTEN, missing.len() as f64, 0.0, missing.join(", "));
        let differs = |other: &[u8]| {
            reference.iter().zip(other).filter(|(a, b)| a != b).count().max(reference.len().abs_diff(other.len()))
                as f64
        };
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().map_err(|e| Failure::run(e.to_string()))?;
        let (single, _) = one.install(|| draw(DeviceChoice::Cpu, None, None))?;
        self.note(c, "CPU, one thread: bytes that differ", differs(&single), 0.0, "");
        self.take_files()?;
        let half = plan(DeviceChoice::Cpu, false)?.components[0].needs.batches / 2;
        let (kept, _) = draw(DeviceChoice::Cpu, Some(half), None)?;
        let (resumed, _) = draw(DeviceChoice::Cpu, None, Some((half, kept)))?;
        self.note(c, "restart: bytes that differ", differs(&resumed), 0.0, "");
        let same = self.take_files()? == files;
        self.note(c, "files: 2n = n + restart + n, bits", if same { 0.0 } else { 1.0 }, 0.0, "");
        if self.has_device {
            let (device, _) = draw(self.device, None, None)?;
            self.note(c, "device: bytes that differ", differs(&device), 0.0, "");
        }
        Ok(())
    }
}
