//! Files of particles: what the writer of a format writes, its reader reads.

use super::{Test, standard_system};
use crate::pipeline::DeviceChoice;
use crate::report::Failure;
use crate::run::{RunOptions, execute};
use galamost_plugin_api::component::{ComponentInfo, Kind};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::snapshot::Snapshot;

impl Test<'_> {
    /// A generator that reads a file reads what the writer of the same name writes.
    pub(super) fn reader(&mut self, c: &ComponentInfo, why: String) -> Result<(), Failure> {
        let Some((_, writer)) = self.registry.find(Kind::Analyzer, &c.name) else {
            self.skip(c, format!("its example needs a file: {why}"));
            return Ok(());
        };
        let set = |what: &str| format!("{what}=\"round-trip\"");
        let (cpu, double) = (DeviceChoice::Cpu, Precision::Double);
        let overrides = [set("analyzers[0].file"), "analyzers[0].every=1".into()];
        let plan = self.plan(writer, cpu, double, self.system_of(writer), 0, &overrides)?;
        let mut backend = crate::cli::backend(&plan)?;
        execute(&plan, &mut *backend, &RunOptions { quiet: true, ..RunOptions::default() }, None)?;
        let read = |s: Snapshot| self.plan(c, cpu, double, s, 0, &[set("initial[0].file")]);
        // a file of nothing but places goes on from particles that are there, which it moves back from elsewhere
        let mut moved = standard_system();
        moved.position.rotate_left(1);
        let plan = read(Snapshot::default()).or_else(|e| read(moved).map_err(|_| e))?;
        let (was, is) = (self.system_of(writer), plan.snapshot);
        // a place at the border may be rounded over it
        let l = was.box_length;
        let apart = |d: f64, k: usize| if l[k] > 0.0 { (d - l[k] * (d / l[k]).round()).abs() } else { d.abs() };
        let far = |a: &[f64; 3], b: &[f64; 3]| (0..3).fold(0.0f64, |m, k| m.max(apart(a[k] - b[k], k)));
        let worst = was.position.iter().zip(&is.position).fold(0.0f64, |m, (a, b)| m.max(far(a, b)));
        let same = was.len() == is.len() && was.kind == is.kind;
        // what a format does not hold is no fault of it, but is told
        let kept = [
            ("masses", was.mass == is.mass),
            ("names of types", was.types == is.types),
            ("bonds", was.bonds == is.bonds),
            ("names of bonds", was.bond_types == is.bond_types || was.bonds != is.bonds),
            // fixed columns have three decimals
            ("further digits of places", worst <= 1e-6),
        ];
        let lost: Vec<&str> = kept.iter().filter(|(_, kept)| !kept).map(|(what, _)| *what).collect();
        let note = match (same, lost.as_slice()) {
            (false, _) => "numbers of particles or their types differ".into(),
            (true, []) => String::new(),
            (true, lost) => format!("without {}", lost.join(", ")),
        };
        let worst = if same { worst } else { f64::NAN };
        self.note(c, "positions written and read", worst, 1e-3, note);
        Ok(())
    }
}
