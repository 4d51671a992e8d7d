//! Checks of what a component reads and writes: the data of an analyzer, memory of the engine.

use crate::selftest::{Test, setup};
use galamost_engine::cpu::guards;
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::plan::Plan;
use galamost_plugin_api::component::{ComponentInfo, Kind};
use galamost_plugin_api::precision::Precision;

/// More steps than the period of any example.
const STEPS: u64 = 100;

impl Test<'_> {
    fn mixed_plan(&self, c: &ComponentInfo, steps: u64, overrides: &[String]) -> Result<Plan, Failure> {
        self.plan(c, DeviceChoice::Cpu, Precision::Mixed, self.system_of(c), steps, overrides)
    }

    /// Checks that the files of an analyzer do not depend on others, which want particles, topology, forces and energies: an analyzer
    /// gets all data that one of those of the step wants, and empty columns if none wants them.
    pub(in crate::selftest) fn company(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        const CHECK: &str = "files: alone = beside another analyzer, bits";
        const OTHER: &str = "GalamostXml";
        if c.name == OTHER || self.registry.find(Kind::Analyzer, OTHER).is_none() {
            self.skip(c, CHECK, format!("`{OTHER}` is the other analyzer"));
            return Ok(());
        }
        self.take_files()?;
        self.outcome_of_plan(&self.mixed_plan(c, STEPS, &[])?)?;
        let alone = self.take_files()?;
        if alone.is_empty() {
            self.skip(c, CHECK, "it writes folders or nothing");
            return Ok(());
        }
        let others = [
            (OTHER, "file: \"beside-it.xml\""),
            ("Trr", "file: \"beside-it.trr\", forces: true"),
            ("Thermo", "file: \"beside-it.csv\""),
        ];
        let others = others.iter().filter(|(name, _)| self.registry.find(Kind::Analyzer, name).is_some());
        let others: String = others.map(|(name, fields)| format!(", {name}(every: 1, {fields})")).collect();
        let both = format!("analyzers=[{}{others}]", setup::example(c));
        self.outcome_of_plan(&self.mixed_plan(c, STEPS, &[both])?)?;
        let beside = self.take_files()?;
        let differ = alone.iter().filter(|(name, bytes)| beside.get(*name) != Some(*bytes));
        let differ: Vec<&str> = differ.map(|(name, _)| name.as_str()).collect();
        let note = if differ.is_empty() { String::new() } else { format!("{}; see `needs.wants`", differ.join(", ")) };
        self.note(c, CHECK, differ.len() as f64, 0.0, note);
        Ok(())
    }

    /// Checks that a force or an updater writes no memory that it must not write, as `--check-memory` does. All later runs of this
    /// process are checked, too.
    pub(in crate::selftest) fn memory(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        const CHECK: &str = "writes outside of its arrays";
        // without other forces, the system is stable for few steps only
        let plan = self.mixed_plan(c, if c.kind == Kind::Updater { STEPS } else { 20 }, &[])?;
        if plan.components.iter().any(|p| p.needs.places) {
            self.skip(c, CHECK, "it places particles");
            return Ok(());
        }
        guards::enable();
        self.outcome_of_plan(&plan)?;
        self.note(c, CHECK, 0.0, 0.0, "");
        Ok(())
    }
}
