//! The text of the pipeline.

use super::text::wrap;
use galamost_gromacs::{COULOMB, Form, LinkType, ReactionField, Site, SiteBlock, System, Topology, number};
use galamost_plugin_api::snapshot::{LinkList, Snapshot};
use std::fmt::Write as _;

/// The gas constant of GROMACS in kJ/(mol K).
pub const GAS_CONSTANT: f64 = 8.314462618e-3;
/// Time steps from which one is chosen, in ps; the longest is that of Martini.
const TIME_STEPS: [f64; 8] = [0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001];
/// The least number of steps in a period of the stiffest bond.
const STEPS_PER_PERIOD: f64 = 12.0;
/// The least number of steps in the period of a constrained pair that rotates freely at the temperature: 0.4 ps for O–H.
const STEPS_PER_ROTATION: f64 = 120.0;

/// What a pipeline is written from.
pub struct Contents<'a> {
    pub topology: &'a Topology,
    pub system: &'a System,
    pub state: &'a Snapshot,
    pub rows: &'a [String],
    pub field: ReactionField,
    pub temperature: f64,
    /// The command, for the first line.
    pub command: String,
    /// Name of the structure file.
    pub file: String,
    /// Name of the pipeline without its ending, for outputs.
    pub stem: String,
    pub remarks: &'a [String],
}

impl Contents<'_> {
    /// Returns the pipeline.
    pub fn text(&self) -> String {
        let mut out = format!("// {}\n//\n//     {}\n//\n", self.title(), self.command);
        out += "// Units of GROMACS: nm, ps, u, e, kJ/mol; kT is that of 8.314462618e-3 kJ/(mol K).\n";
        for remark in self.remarks {
            let _ = writeln!(out, "// {remark}");
        }
        out += "(\n    seed: 1,\n";
        if !self.system.exclude.is_empty() {
            let _ = writeln!(out, "    neighbors: (exclude: [{}]),", self.system.exclude.join(", "));
        }
        self.initial(&mut out);
        self.forces(&mut out);
        self.run(&mut out);
        out + ")\n"
    }

    fn title(&self) -> String {
        let plain: String = self.topology.title.chars().filter(|c| !c.is_control()).take(100).collect();
        if plain.is_empty() { "A system of GROMACS.".into() } else { plain }
    }

    fn initial(&self, out: &mut String) {
        let _ = writeln!(out, "    initial: [\n        GalamostXml(file: {:?}),", self.file);
        for block in self.system.sites(self.topology) {
            let SiteBlock { name, first, atoms, molecules, sites } = block;
            let _ = writeln!(
                out,
                "        // {name}\n        Sites(first: {first}, atoms: {atoms}, molecules: {molecules}, sites: ["
            );
            let row = |s: &Site| format!("(site: {}, from: {:?}, kind: {})", s.site, s.from, s.kind);
            wrap(out, 12, &sites.iter().map(row).collect::<Vec<_>>());
            *out += "        ]),\n";
        }
        *out += "    ],\n";
    }

    fn forces(&self, out: &mut String) {
        let r_cut = self.field.r_cut;
        let _ = write!(
            out,
            "    forces: [\n        // vdw-modifier = Potential-shift\n        LennardJones(r_cut: {r_cut:?}, mode: ShiftEnergy, pairs: {{\n"
        );
        wrap(out, 12, self.rows);
        *out += "        }),\n";
        if self.state.arrays.contains_key("charge") {
            let rf = self.field.epsilon_rf.map_or("Infinite".into(), |e| format!("{e:?}"));
            let _ = writeln!(
                out,
                "        ReactionField(r_cut: {r_cut:?}, f: {COULOMB:?}, epsilon_r: {:?}, epsilon_rf: {rf}),",
                self.field.epsilon_r
            );
        }
        for list in LinkList::ALL {
            let types = &self.system.types[list as usize];
            let mut forms: Vec<&Form> = vec![];
            for form in types.iter().map(|t| &t.term.form) {
                if !forms.contains(&form) {
                    forms.push(form);
                }
            }
            forms.into_iter().for_each(|form| component(out, form, types));
        }
        if self.state.mass.contains(&0.0) {
            *out += "        VirtualSites(),\n";
        }
        *out += "    ],\n";
    }

    /// Returns the thermal energy kT.
    fn kt(&self) -> f64 {
        GAS_CONSTANT * self.temperature
    }

    /// Returns whether distances are constrained.
    fn has_constraints(&self) -> bool {
        self.system.types[LinkList::Bonds as usize].iter().any(|t| t.term.is_constraint())
    }

    /// Returns the largest time step that resolves the stiffest bond and the rotation of constrained pairs.
    fn time_step(&self) -> f64 {
        let mass = |tag: u32| self.state.mass[tag as usize];
        let rate2 = |b: &galamost_plugin_api::snapshot::Link<2>| {
            let [m, n] = b.tags.map(mass);
            let term = &self.system.types[LinkList::Bonds as usize][b.kind as usize].term;
            let length: Option<f64> = if term.is_constraint() { term.row.parse().ok() } else { None };
            // a rotation with the energy ½ kT, in units in which it takes as many steps as the period of a bond
            let rotation = STEPS_PER_ROTATION / STEPS_PER_PERIOD;
            let k = length.map_or(term.stiffness, |d| self.kt() * (rotation / d).powi(2));
            if m > 0.0 && n > 0.0 { k * (1.0 / m + 1.0 / n) } else { 0.0 }
        };
        fitting_time_step(self.state.bonds.iter().map(rate2).fold(0.0, f64::max))
    }

    fn run(&self, out: &mut String) {
        let (stem, dt, kt) = (&self.stem, self.time_step(), number(self.kt()));
        let massive: Vec<f64> = self.state.mass.iter().copied().filter(|m| *m > 0.0).collect();
        let mean = massive.iter().sum::<f64>() / massive.len().max(1) as f64;
        let friction = format!("{:?}", (10.0 * mean).round() / 10.0);
        let name = |ending: &str| format!("{:?}", format!("{stem}.{ending}"));
        let _ = write!(
            out,
            "    analyzers: [\n        Thermo(every: 100, file: {}),\n        Gsd(every: 1_000, file: {}),\n    ],\n    stages: [\n",
            name("csv"),
            name("gsd")
        );
        if !moves(self.state) {
            relaxation(out, dt, self.kt() / mean, self.has_constraints());
        }
        let _ = write!(
            out,
            "        // {} K, friction of 1/ps for the mean mass\n        (name: \"run\", steps: 100_000, dt: {dt:?}, integrators: [ \
             Langevin(kT: {kt}, gamma: {friction}) ]),\n    ],\n",
            self.temperature
        );
    }
}

/// Returns whether a state has velocities.
pub fn moves(state: &Snapshot) -> bool {
    state.velocity.iter().flatten().any(|v| *v != 0.0)
}

/// Writes a stage that removes overlaps. `square` is the mean square of a thermal velocity along an axis, kT/m.
pub fn relaxation(out: &mut String, dt: f64, square: f64, constrained: bool) {
    *out += "        // pushes overlapping particles apart; delete this stage for a structure in equilibrium\n";
    let _ = if constrained {
        // a tenth of the thermal velocity
        let limit: f64 = format!("{:.0e}", 0.1 * dt * square.sqrt()).parse().unwrap_or(1e-4);
        writeln!(
            out,
            "        // Fire does not support constraints; slow particles approach the nearest minimum as well\n        \
             (name: \"relax\", steps: 2_000, dt: {dt:?}, integrators: [ CappedVerlet(max_displacement: {}) ]),",
            number(limit)
        )
    } else {
        writeln!(
            out,
            "        (name: \"minimize\", steps: 1_000, dt: {:?}, integrators: [ Fire(f_max: 10.0, dt_max: {dt:?}, \
             max_displacement: 0.01) ]),",
            0.1 * dt
        )
    };
}

/// Returns the largest time step in ps that resolves the period of the fastest bond, whose squared frequency is `fastest2`.
pub fn fitting_time_step(fastest2: f64) -> f64 {
    let period = std::f64::consts::TAU / fastest2.sqrt();
    let fits = |dt: &f64| *dt * STEPS_PER_PERIOD <= period;
    TIME_STEPS.into_iter().find(fits).unwrap_or(TIME_STEPS[TIME_STEPS.len() - 1])
}

/// Writes a bonded component with the rows of its types.
fn component(out: &mut String, form: &Form, types: &[LinkType]) {
    if !form.comment.is_empty() {
        let _ = writeln!(out, "        // {}", form.comment);
    }
    let comma = if form.settings.is_empty() { "" } else { ", " };
    let _ = writeln!(out, "        {}({}{comma}{}: {{", form.component, form.settings, form.rows());
    // by name, so that a further type of a changed topology has no row and is an error
    let row = |t: &LinkType| if t.term.form == *form { Some(t.term.row.clone()) } else { form.without.map(Into::into) };
    let rows = types.iter().filter_map(|t| Some(format!("{:?}: {}", t.name, row(t)?)));
    wrap(out, 12, &rows.collect::<Vec<_>>());
    *out += "        }),\n";
}
