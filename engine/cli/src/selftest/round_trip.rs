//! Files of particles: what the writer of a format writes, its reader reads.

use super::{Test, standard_system};
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::run::{RunOptions, execute};
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
        let was = self.system_of(writer);
        let is = self.trip(writer, c, was.clone(), "round-trip")?;
        // fixed columns have three decimals, of which nothing more may get lost on a second way
        let again = self.trip(writer, c, is.clone(), "round-trip-2")?;
        // a place at the border may be rounded over it
        let l = was.box_length;
        let apart = |d: f64, k: usize| if l[k] > 0.0 { (d - l[k] * (d / l[k]).round()).abs() } else { d.abs() };
        let far = |a: &[f64; 3], b: &[f64; 3]| (0..3).fold(0.0f64, |m, k| m.max(apart(a[k] - b[k], k)));
        let worst = |a: &Snapshot, b: &Snapshot| {
            let same = a.len() == b.len() && a.type_id == b.type_id;
            let far = a.position.iter().zip(&b.position).fold(0.0f64, |m, (a, b)| m.max(far(a, b)));
            if same { far } else { f64::NAN }
        };
        let (first, second) = (worst(&was, &is), worst(&is, &again));
        // what a format does not hold is no fault of it, but is told
        let kept = [
            ("masses", was.mass == is.mass),
            ("names of types", was.types == is.types),
            ("bonds", was.bonds == is.bonds),
            ("names of bonds", was.bond_types == is.bond_types || was.bonds != is.bonds),
            ("further digits of places", first <= 1e-6),
        ];
        let lost: Vec<&str> = kept.iter().filter(|(_, kept)| !kept).map(|(what, _)| *what).collect();
        let note = match lost.as_slice() {
            _ if first.is_nan() => "numbers of particles or their types differ".into(),
            [] => String::new(),
            lost => format!("without {}", lost.join(", ")),
        };
        self.note(c, "positions written and read", first, 1e-3, note);
        self.note(c, "written and read again", second, 1e-6, String::new());
        Ok(())
    }

    /// What is left of a system that is written and read.
    fn trip(
        &self,
        writer: &ComponentInfo,
        reader: &ComponentInfo,
        system: Snapshot,
        file: &str,
    ) -> Result<Snapshot, Failure> {
        let set = |what: &str| format!("{what}={file:?}");
        let (cpu, double) = (DeviceChoice::Cpu, Precision::Double);
        let overrides = [set("analyzers[0].file"), "analyzers[0].every=1".into()];
        let plan = self.plan(writer, cpu, double, system, 0, &overrides)?;
        let mut backend = galamost_engine::run::open(&plan)?;
        execute(&plan, &mut *backend, &RunOptions { quiet: true, ..RunOptions::default() }, None)?;
        let read = |s: Snapshot| self.plan(reader, cpu, double, s, 0, &[set("initial[0].file")]);
        // a file of nothing but places goes on from particles that are there, which it moves back from elsewhere
        let mut moved = standard_system();
        moved.position.rotate_left(1);
        Ok(read(Snapshot::default()).or_else(|e| read(moved).map_err(|_| e))?.snapshot)
    }
}
