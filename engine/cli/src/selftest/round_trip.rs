//! Particle files: the reader of a format must read what its writer writes.

use super::{Test, standard_system};
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::run::{RunOptions, execute};
use galamost_plugin_api::component::{ComponentInfo, Kind};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::snapshot::Snapshot;

impl Test<'_> {
    /// Checks that a reader reproduces what the writer of the same name writes. Skips readers without a writer.
    pub(super) fn reader(&mut self, c: &ComponentInfo, reason: String) -> Result<(), Failure> {
        let Some((_, writer)) = self.registry.find(Kind::Analyzer, &c.name) else {
            self.skip(c, "positions written and read", format!("its example needs a file: {reason}"));
            return Ok(());
        };
        let original = self.system_of(writer);
        let first_copy = self.round_trip(writer, c, original.clone(), "round-trip")?;
        // fixed columns may have three decimals only; a second round trip must not lose more
        let second_copy = self.round_trip(writer, c, first_copy.clone(), "round-trip-2")?;
        // rounding may move a position across the boundary
        let l = original.box_length;
        let apart = |d: f64, k: usize| if l[k] > 0.0 { (d - l[k] * (d / l[k]).round()).abs() } else { d.abs() };
        let far = |a: &[f64; 3], b: &[f64; 3]| (0..3).fold(0.0f64, |m, k| m.max(apart(a[k] - b[k], k)));
        let worst = |a: &Snapshot, b: &Snapshot| {
            let same = a.len() == b.len() && a.type_id == b.type_id;
            let far = a.position.iter().zip(&b.position).fold(0.0f64, |m, (a, b)| m.max(far(a, b)));
            if same { far } else { f64::NAN }
        };
        let (first, second) = (worst(&original, &first_copy), worst(&first_copy, &second_copy));
        // what a format cannot store is not a failure, but is reported
        let kept = [
            ("masses", original.mass == first_copy.mass),
            ("type names", original.types == first_copy.types),
            ("bonds", original.bonds == first_copy.bonds),
            ("names of bond types", original.bond_types == first_copy.bond_types || original.bonds != first_copy.bonds),
            ("full precision of positions", first <= 1e-6),
        ];
        let lost: Vec<&str> = kept.iter().filter(|(_, kept)| !kept).map(|(what, _)| *what).collect();
        let note = match lost.as_slice() {
            _ if first.is_nan() => "particle numbers or types differ".into(),
            [] => String::new(),
            lost => format!("without {}", lost.join(", ")),
        };
        self.note(c, "positions written and read", first, 1e-3, note);
        self.note(c, "second round trip", second, 1e-6, String::new());
        Ok(())
    }

    /// Writes a system to a file and reads it back.
    fn round_trip(
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
        // a format with positions only updates a given state, whose positions are wrong here
        let mut moved = standard_system();
        moved.position.rotate_left(1);
        Ok(read(Snapshot::default()).or_else(|e| read(moved).map_err(|_| e))?.snapshot)
    }
}
