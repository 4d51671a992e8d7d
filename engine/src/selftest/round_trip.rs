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
        let step = decimals(&is.position);
        let same = was.len() == is.len() && was.kind == is.kind;
        // what a format does not hold is no fault of it, but is told
        let kept = [
            ("masses", was.mass == is.mass),
            ("names of types", was.types == is.types),
            ("bonds", was.bonds == is.bonds),
            ("names of bonds", was.bond_types == is.bond_types || was.bonds != is.bonds),
            ("further digits of places", step == 0.0),
        ];
        let lost: Vec<&str> = kept.iter().filter(|(_, kept)| !kept).map(|(what, _)| *what).collect();
        let note = match (same, lost.as_slice()) {
            (false, _) => "numbers of particles or their types differ".into(),
            (true, []) => String::new(),
            (true, lost) => format!("without {}", lost.join(", ")),
        };
        let worst = if same { worst } else { f64::NAN };
        // a file of fixed columns holds the nearest of its numbers, up to what f32 adds to it
        self.note(c, "positions written and read", worst, 0.5 * step + 1e-6, note);
        Ok(())
    }
}

/// The distance of neighbouring numbers of a format that writes so many decimals, five at most, that all these numbers can be told
/// by them; 0 if they cannot.
fn decimals(positions: &[[f64; 3]]) -> f64 {
    let multiples = |step: f64| {
        let far = |x: &f64| (x / step - (x / step).round()).abs() * step;
        positions.iter().flatten().all(|x| far(x) <= 1e-6 * x.abs().min(1.0))
    };
    (1..=5).map(|k| 10f64.powi(-k)).find(|step| multiples(*step)).unwrap_or(0.0)
}
