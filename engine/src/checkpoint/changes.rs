//! Differences between the pipeline of a checkpoint and the pipeline of the run that resumes from it.
//!
//! Values that do not affect the trajectory may change: checkpoints, the device, analyzers, and the number of steps. So may
//! everything in stages that have not begun.

use crate::pipeline::{body, differences, elements, fields, short};
use galamost_plugin_api::params::Value;

/// A value that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The value in both pipelines: `kT of NoseHoover 1.0 → 1.2`.
    pub what: String,
    /// Whether a resumed run may change it.
    pub allowed: bool,
}

/// The lists of components that a stage may replace.
const LISTS: [&str; 4] = ["forces", "integrators", "updaters", "analyzers"];

/// Returns the differences between two texts of a pipeline. `stage` is the stage of the checkpoint. Seed and precision are
/// left out, because the checkpoint's header has them.
pub fn changes(then: &str, now: &str, stage: u64) -> Vec<Change> {
    let mut out = Changes::default();
    for (name, then, now) in fields(Some(body(then)), Some(body(now))) {
        out.allowed = matches!(&*name, "analyzers" | "checkpoint");
        match &*name {
            "seed" | "precision" | "device" => {}
            "stages" => out.stages(then, now, stage),
            "initial" | "ensemble" => out.components(&name, then, now),
            list if LISTS.contains(&list) => out.components(list, then, now),
            _ => out.compare(&name, "", then, now),
        }
    }
    out.list
}

/// Returns each analyzer that both texts have at the same place of the same list.
pub fn analyzers<'a>(then: &'a str, now: &'a str) -> Vec<(Value<'a>, Value<'a>)> {
    let mut lists = vec![];
    for (name, then, now) in fields(Some(body(then)), Some(body(now))) {
        match &*name {
            "analyzers" => lists.push((then, now)),
            "stages" => {
                let of_stages = elements(then, now).into_iter().flat_map(|(_, then, now)| fields(then, now));
                lists.extend(of_stages.filter(|(name, ..)| name == "analyzers").map(|(_, then, now)| (then, now)));
            }
            _ => {}
        }
    }
    let both = |(_, then, now): (String, Option<Value<'a>>, Option<Value<'a>>)| then.zip(now);
    let pairs = lists.into_iter().flat_map(|(then, now)| elements(then, now).into_iter().filter_map(both));
    pairs.filter(|(then, now)| then.name() == now.name()).collect()
}

#[derive(Default)]
struct Changes {
    list: Vec<Change>,
    /// Whether the values under comparison may change.
    allowed: bool,
}

impl Changes {
    fn push(&mut self, what: String) {
        self.list.push(Change { what, allowed: self.allowed });
    }

    fn stages(&mut self, then: Option<Value<'_>>, now: Option<Value<'_>>, current: u64) {
        for (k, (_, then, now)) in elements(then, now).into_iter().enumerate() {
            let name = now.or(then).and_then(|v| v.entries().ok()?.into_iter().find(|(k, _)| k.name == "name"));
            let owner = name.map_or_else(|| format!("stage {}", k + 1), |(_, v)| format!("stage {}", v.text()));
            let later = k as u64 > current;
            if then.is_none() || now.is_none() {
                self.allowed = later;
                self.push(format!("{owner} {}", if then.is_none() { "added" } else { "removed" }));
                continue;
            }
            for (field, then, now) in fields(then, now) {
                self.allowed =
                    later || field == "analyzers" || field == "name" || field == "steps" && k as u64 == current;
                match (LISTS.contains(&&*field), then, now) {
                    (true, Some(_), Some(_)) => self.components(&format!("{field} of {owner}"), then, now),
                    _ => self.compare(&field, &owner, then, now),
                }
            }
        }
    }

    /// Compares two lists of components. The names of components other than generators are those of the header.
    fn components(&mut self, list: &str, then: Option<Value<'_>>, now: Option<Value<'_>>) {
        let pairs = elements(then, now);
        let names: Vec<_> = pairs.iter().map(|(_, then, now)| now.or(*then).and_then(Value::name)).collect();
        for (k, (_, then, now)) in pairs.iter().enumerate() {
            let Some(name) = names[k] else { continue };
            let twins = names.iter().filter(|n| **n == Some(name)).count() > 1;
            let owner = if twins { format!("{name} ({list}[{k}])") } else { name.into() };
            match (then, now) {
                (Some(then), Some(now)) if then.name() == now.name() => {
                    self.compare("", &owner, Some(*then), Some(*now));
                }
                (Some(_), Some(_)) if list != "initial" => {}
                (Some(then), Some(now)) => self.push(format!("{list}[{k}] {} → {}", short(*then), short(*now))),
                (None, _) => self.push(format!("{owner} added to {list}")),
                (_, None) => self.push(format!("{owner} removed from {list}")),
            }
        }
    }

    /// Compares the values at `path` of a component or stage, down to the smallest part that differs.
    fn compare(&mut self, path: &str, owner: &str, then: Option<Value<'_>>, now: Option<Value<'_>>) {
        differences(path, owner, then, now).into_iter().for_each(|what| self.push(what));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEN: &str = r#"(seed: 1, initial: [Lattice(cells: [5, 5, 5]), Velocities(kT: 1.0)],
        neighbors: (buffer: 0.3),
        forces: [LennardJones(r_cut: 2.5, pairs: {("A", "A"): (epsilon: 1.0, sigma: 1), ("A", "B"): (epsilon: 2.0)})],
        integrators: [NoseHoover(kT: 1.0, tau: 0.5, group: Types(["A"])), NoseHoover(kT: 2.0, tau: 0.5)],
        analyzers: [Thermo(every: 10, file: "t.csv")],
        stages: [(name: "one", steps: 100, dt: 0.01), (name: "two", steps: 50, dt: 0.02), (steps: 10, dt: 0.02)])"#;

    /// Changes of one edit in a run that was in stage `two`: what changed, and whether it may.
    fn edited(from: &str, to: &str) -> Vec<(String, bool)> {
        assert!(THEN.contains(from), "{from}");
        changes(THEN, &THEN.replace(from, to), 1).into_iter().map(|c| (c.what, c.allowed)).collect()
    }

    #[test]
    fn every_change_is_named_with_both_values() {
        let cases: [(&str, &str, &[(&str, bool)]); 22] = [
            ("seed: 1", "seed: 2, device: Cpu, checkpoint: (every: 7)", &[("checkpoint absent → (every: 7)", true)]),
            ("sigma: 1)", "sigma:  1.0 /* the same */)", &[]),
            ("[5, 5, 5]), Velocities", "[ 5, 5, // cells\n 5 ]), Velocities", &[]),
            ("tau: 0.5, group", "tau: 0.7, group", &[("tau of NoseHoover (integrators[0]) 0.5 → 0.7", false)]),
            ("kT: 2.0", "kT: Sine(mean: 2.0)", &[("kT of NoseHoover (integrators[1]) 2.0 → Sine(mean: 2.0)", false)]),
            ("epsilon: 2.0", "epsilon: 2.5", &[("pairs[(\"A\", \"B\")].epsilon of LennardJones 2.0 → 2.5", false)]),
            ("r_cut: 2.5", "r_cut: 2.5, mode: Cut", &[("mode of LennardJones absent → Cut", false)]),
            (", group: Types([\"A\"])", "", &[("group of NoseHoover (integrators[0]) Types([\"A\"]) → absent", false)]),
            ("[\"A\"]", "[\"B\"]", &[("group[0] of NoseHoover (integrators[0]) \"A\" → \"B\"", false)]),
            ("[5, 5, 5]", "[5, 5, 6]", &[("cells[2] of Lattice 5 → 6", false)]),
            ("Velocities(kT: 1.0)", "Shift()", &[("initial[1] Velocities(kT: 1.0) → Shift()", false)]),
            ("buffer: 0.3", "buffer: 0.4", &[("neighbors.buffer 0.3 → 0.4", false)]),
            ("neighbors: (buffer: 0.3),", "", &[("neighbors (buffer: 0.3) → absent", false)]),
            ("every: 10", "every: 20", &[("every of Thermo 10 → 20", true)]),
            ("\"t.csv\")", "\"t.csv\"), Gsd(every: 1)", &[("Gsd added to analyzers", true)]),
            ("steps: 100", "steps: 90", &[("steps of stage \"one\" 100 → 90", false)]),
            ("steps: 50", "steps: 60", &[("steps of stage \"two\" 50 → 60", true)]),
            ("50, dt: 0.02", "50, dt: 0.03", &[("dt of stage \"two\" 0.02 → 0.03", false)]),
            ("10, dt: 0.02", "9, dt: 0.03", &[("steps of stage 3 10 → 9", true), ("dt of stage 3 0.02 → 0.03", true)]),
            ("\"two\"", "\"three\"", &[("name of stage \"three\" \"two\" → \"three\"", true)]),
            ("(steps: 10, dt: 0.02)", "", &[("stage 3 removed", true)]),
            (
                "dt: 0.02)])",
                "dt: 0.02, forces: []), (steps: 1)])",
                &[("forces of stage 3 absent → []", true), ("stage 4 added", true)],
            ),
        ];
        for (from, to, expected) in cases {
            let found = edited(from, to);
            let found: Vec<(&str, bool)> = found.iter().map(|(what, allowed)| (&**what, *allowed)).collect();
            assert_eq!(found, expected, "{from} → {to}");
        }
    }
}
