//! Reproducibility checks: identical results however steps are launched, with any number of threads, and after a restart.

use super::{Test, setup};
use galamost_engine::checkpoint::Checkpoint;
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::plan::{CheckOptions, Plan, check};
use galamost_engine::run::{RunOptions, execute};
use galamost_engine::state::RawState;
use galamost_plugin_api::component::{ComponentInfo, Kind};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::views::Wanted;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// Steps of the runs that are compared bit by bit.
const STEPS: u64 = 40;

/// Names the parts of two states that differ. Energies are part of the forces' array, and only some steps compute them.
fn differences(a: &RawState, b: &RawState) -> String {
    let moved = |name: &&String| {
        let names = ["pos_type", "pos_low", "velocity_mass", "image", "array.quaternion", "array.angular_momentum"];
        names.contains(&name.as_str())
    };
    a.sections.keys().filter(moved).filter(|k| a.sections[*k] != b.sections[*k]).cloned().collect::<Vec<_>>().join(", ")
}

impl Test<'_> {
    /// Runs a plan and returns its final state.
    pub(super) fn state_after(&self, plan: &Plan, steps: u64, resume: Option<Checkpoint>) -> Result<RawState, Failure> {
        let mut b = galamost_engine::run::open(plan)?;
        let options = RunOptions { quiet: true, steps: Some(steps), ..RunOptions::default() };
        execute(plan, &mut *b, &options, resume)?;
        Ok(b.export()?)
    }

    /// Returns a plan with checkpoints that starts from scratch or resumes.
    fn restart_plan(&self, c: &ComponentInfo, resumed: bool, overrides: &[String]) -> Result<Plan, Failure> {
        let plan = self.plan(c, DeviceChoice::Cpu, Precision::Mixed, self.system_of(c), STEPS, overrides)?;
        if !resumed {
            return Ok(plan);
        }
        check(
            plan.pipeline,
            self.registry,
            CheckOptions { resumed, snapshot: Some(self.system_of(c)), ..CheckOptions::default() },
        )
    }

    /// Checks that a device gives identical bits whether steps are launched together, one by one as a profile does, or with
    /// energies: the kernels of all three contain the functions of the component.
    pub(super) fn launches(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        if !self.has_device {
            return Ok(());
        }
        let run = |profiled: bool, wanted: Wanted, at_once: u64| -> Result<RawState, Failure> {
            // anew, because a component that has run may have another state
            let plan = self.plan(c, self.device, Precision::Mixed, self.system_of(c), STEPS, &[])?;
            let mut b = super::test_plugin::open(&plan)?;
            if profiled {
                b.begin_profile();
            }
            for _ in 0..STEPS / at_once {
                b.advance(at_once, wanted, &AtomicBool::new(false))?;
            }
            let state = b.export()?;
            if profiled {
                b.end_profile()?;
            }
            Ok(state)
        };
        let together = run(false, Wanted::FORCE, STEPS)?;
        let [alone, with_energies] = [run(true, Wanted::FORCE, STEPS)?, run(false, Wanted::ALL, 1)?];
        for (name, other) in
            [("steps together = one by one, bits", alone), ("steps = steps with energies, bits", with_energies)]
        {
            let note = differences(&together, &other);
            self.note(c, name, if note.is_empty() { 0.0 } else { 1.0 }, 0.0, note);
        }
        Ok(())
    }

    /// Checks that one and four threads give identical bits.
    pub(super) fn threads(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        let with = |n: usize| -> Result<RawState, Failure> {
            // anew, because a component that has run may have another state
            let plan = self.plan(c, DeviceChoice::Cpu, Precision::Mixed, self.system_of(c), STEPS, &[])?;
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().map_err(Failure::run)?;
            pool.install(|| self.state_after(&plan, STEPS, None))
        };
        let same = with(1)? == with(4)?;
        self.note(c, "1 thread = 4 threads, bits", if same { 0.0 } else { 1.0 }, 0.0, "");
        Ok(())
    }

    /// Returns the steps of the restart check, an even number: those of the others, or three periods of an updater, so that it
    /// has a state at the restart and uses it later.
    fn restart_steps(&self, c: &ComponentInfo) -> Result<u64, Failure> {
        const MOST: u64 = 400;
        let plan = self.plan(c, DeviceChoice::Cpu, Precision::Mixed, self.system_of(c), STEPS, &[])?;
        let updaters = plan.components.iter().filter(|p| p.kind == Kind::Updater);
        let period = updaters.map(|p| p.needs.period).max().unwrap_or(0);
        Ok(period.saturating_mul(3).clamp(STEPS, MOST).next_multiple_of(2))
    }

    /// Checks that 2n steps are identical to n steps, a restart and n steps.
    pub(super) fn restart(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        let steps = self.restart_steps(c)?;
        let overrides = [format!("checkpoint=(every: {})", steps / 2)];
        let plan = |resumed: bool| self.restart_plan(c, resumed, &overrides);
        let whole = self.state_after(&plan(false)?, steps, None)?;
        let first = plan(false)?;
        let path = first.pipeline.checkpoint_path();
        self.state_after(&first, steps / 2, None)?;
        let second = plan(true)?;
        let checkpoint = Checkpoint::read(&path, &second)?;
        let resumed = self.state_after(&second, steps, Some(checkpoint))?;
        let _ = std::fs::remove_file(path);
        self.note(c, "2n = n + restart + n, bits", if whole == resumed { 0.0 } else { 1.0 }, 0.0, "");
        Ok(())
    }

    /// Removes and returns the output files of a run, by name, without checkpoints.
    pub(super) fn take_files(&self) -> Result<BTreeMap<String, Vec<u8>>, Failure> {
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

    /// Checks that an analyzer writes the files that it declares, and that they are identical with one and four threads, and after
    /// a restart.
    pub(super) fn files(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        let mut overrides = vec![format!("checkpoint=(every: {})", STEPS / 2)];
        if c.fields.iter().any(|f| f.name == "every") {
            overrides.push("analyzers[0].every=5".into());
        }
        let plan = |resumed: bool| self.restart_plan(c, resumed, &overrides);
        self.take_files()?;
        let with = |n: usize| -> Result<(Vec<String>, BTreeMap<String, Vec<u8>>), Failure> {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().map_err(Failure::run)?;
            let plan = plan(false)?;
            pool.install(|| self.state_after(&plan, STEPS, None))?;
            Ok((setup::unwritten(&plan), self.take_files()?))
        };
        let ((missing, whole), (_, four)) = (with(1)?, with(4)?);
        let first = plan(false)?;
        let path = first.pipeline.checkpoint_path();
        self.state_after(&first, STEPS / 2, None)?;
        drop(first);
        // the first resumed run is lost after it has written some rows, and the second one resumes from the same checkpoint
        let kept = std::fs::read(&path).map_err(Failure::run)?;
        for steps in [3 * STEPS / 4, STEPS] {
            std::fs::write(&path, &kept).map_err(Failure::run)?;
            let resumed = plan(true)?;
            let checkpoint = Checkpoint::read(&path, &resumed)?;
            self.state_after(&resumed, steps, Some(checkpoint))?;
        }
        let resumed = self.take_files()?;
        let _ = std::fs::remove_file(path);
        let differ = |other: &BTreeMap<String, Vec<u8>>| if whole == *other { 0.0 } else { 1.0 };
        let bytes: usize = whole.values().map(Vec::len).sum();
        let note = format!("{} files, {bytes} bytes", whole.len());
        let (threads, restart) = (differ(&four), differ(&resumed));
        self.note(c, setup::UNWRITTEN, missing.len() as f64, 0.0, missing.join(", "));
        self.note(c, "files: 1 thread = 4 threads, bits", threads, 0.0, note);
        self.note(c, "files: 2n = n + restart + n, bits", restart, 0.0, "");
        Ok(())
    }
}
