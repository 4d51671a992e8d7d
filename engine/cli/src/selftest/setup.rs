//! Plans and results of test runs.

use super::{Test, oriented, standard_system};
use crate::common::parse_errors;
use galamost_engine::backend::Backend;
use galamost_engine::backend::columns;
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::{DeviceChoice, Pipeline};
use galamost_engine::plan::files::{FileUse, Target};
use galamost_engine::plan::{CheckOptions, Plan, check};
use galamost_engine::run::{RunOptions, execute};
use galamost_engine::state::topology::Topology;
use galamost_plugin_api::component::{ComponentInfo, Kind, Wants};
use galamost_plugin_api::params::FieldDoc;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::snapshot::{Snapshot, Values};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

/// The check that uses [`unwritten`].
pub(super) const UNWRITTEN: &str = "declared files that it does not write";

/// Returns the example of a component, or one generated from its fields.
pub(super) fn example(c: &ComponentInfo) -> String {
    if let Some(e) = c.example() {
        return e.into();
    }
    let number = |f: &FieldDoc| {
        let value = match f.kind.as_str() {
            k if k.contains("whole number") => "10",
            k if k.contains("text") => "\"selftest.out\"",
            k if k.contains("true") => "true",
            _ => "1.0",
        };
        format!("{}: {value}", f.name)
    };
    let list = |fields: &[FieldDoc]| {
        fields.iter().filter(|f| f.default.is_none() && f.fields.is_empty()).map(number).collect::<Vec<_>>().join(", ")
    };
    match (c.kind, c.fields.iter().find(|f| f.name == "pairs"), c.fields.iter().find(|f| f.name == "bonds")) {
        (Kind::Pair, Some(pairs), _) => {
            let row = list(&pairs.fields);
            let rows =
                ["(\"A\", \"A\")", "(\"A\", \"B\")", "(\"B\", \"B\")"].map(|k| format!("{k}: ({row})")).join(", ");
            format!("{}(r_cut: 2.5, {}pairs: {{ {rows} }})", c.name, with_comma(&list(&c.fields)))
        }
        (Kind::Bonded, _, Some(bonds)) => {
            let row = list(&bonds.fields);
            let rows = ["\"A-A\"", "\"A-B\"", "\"B-B\""].map(|k| format!("{k}: ({row})")).join(", ");
            format!("{}({}bonds: {{ {rows} }})", c.name, with_comma(&list(&c.fields)))
        }
        _ => format!("{}({})", c.name, list(&c.fields)),
    }
}

/// Appends a comma to a nonempty list.
fn with_comma(list: &str) -> String {
    if list.is_empty() { String::new() } else { format!("{list}, ") }
}

/// Force that lets integrators, updaters and analyzers run.
pub(super) const LENNARD_JONES: &str = "LennardJones(r_cut: 2.5, pairs: { (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0), \
                             (\"A\", \"B\"): (epsilon: 1.0, sigma: 1.0), (\"B\", \"B\"): (epsilon: 1.0, sigma: 1.0) })";

/// The state after some steps. Vectors are empty if the system has no such property.
pub(super) struct Outcome {
    pub force: Vec<f64>,
    pub torque: Vec<f64>,
    /// Quaternions and angular momenta.
    pub rotation: Vec<f64>,
    pub topology: Topology,
    pub energy: f64,
    pub virial: [f64; 6],
    /// Unwrapped positions.
    pub position: Vec<f64>,
    pub velocity: Vec<f64>,
    /// Box lengths.
    pub length: [f64; 3],
}

impl Test<'_> {
    /// Returns a plan with this component. Particles with torques get an integrator that propagates orientations.
    pub(super) fn plan(
        &self,
        c: &ComponentInfo,
        device: DeviceChoice,
        precision: Precision,
        snapshot: Snapshot,
        steps: u64,
        overrides: &[String],
    ) -> Result<Plan, Failure> {
        const ROTATIONAL: &str = "RotationalVerlet";
        let acts = matches!(c.kind, Kind::Pair | Kind::Force);
        let rotates = steps > 0 && acts && self.registry.find(Kind::Integrator, ROTATIONAL).is_some();
        let plan = self.plan_with(c, device, precision, snapshot.clone(), steps, overrides, "VelocityVerlet")?;
        if rotates && oriented::is_oriented(&plan) && !plan.components[0].needs.places {
            return self.plan_with(c, device, precision, snapshot, steps, overrides, ROTATIONAL);
        }
        Ok(plan)
    }

    /// Returns a plan with this component and the given integrator.
    fn plan_with(
        &self,
        c: &ComponentInfo,
        device: DeviceChoice,
        precision: Precision,
        snapshot: Snapshot,
        steps: u64,
        overrides: &[String],
        integrator: &str,
    ) -> Result<Plan, Failure> {
        let mut lists = BTreeMap::from([
            ("initial", String::new()),
            ("forces", String::new()),
            ("integrators", String::new()),
            ("updaters", String::new()),
            ("analyzers", String::new()),
        ]);
        lists.insert(c.kind.list(), example(c));
        if matches!(c.kind, Kind::Integrator | Kind::Updater | Kind::Analyzer)
            && self.registry.find(Kind::Pair, "LennardJones").is_some()
        {
            lists.insert("forces", LENNARD_JONES.into());
        }
        if !matches!(c.kind, Kind::Integrator | Kind::Generator) && steps > 0 {
            lists.insert("integrators", format!("{integrator}()"));
        }
        let mut text = String::from("(");
        for (name, list) in &lists {
            let _ = write!(text, "{name}: [{list}], ");
        }
        let _ = write!(text, "seed: 7, precision: {}, stages: [(steps: {steps}, dt: 0.001)])", precision.name());
        let path = self.folder.join("selftest.ron");
        let parsed = Pipeline::parse(&path, &text, overrides);
        let mut pipeline = parsed.map_err(|e| parse_errors(&path, e))?;
        pipeline.device = device;
        check(pipeline, self.registry, CheckOptions { snapshot: Some(snapshot), ..CheckOptions::default() })
    }

    /// Runs a component on its test system.
    pub(super) fn outcome(
        &self,
        c: &ComponentInfo,
        device: DeviceChoice,
        precision: Precision,
        steps: u64,
    ) -> Result<Outcome, Failure> {
        self.outcome_of(c, device, precision, self.system_of(c), steps)
    }

    /// Returns the test system of a component: the standard system. For writers of particle files, the mass depends on
    /// the type only, since many formats store masses per type.
    pub(super) fn system_of(&self, c: &ComponentInfo) -> Snapshot {
        let mut s = standard_system();
        if c.kind == Kind::Analyzer && self.registry.find(Kind::Generator, &c.name).is_some() {
            s.mass = s.type_id.iter().map(|t| 1.0 + f64::from(*t)).collect();
        }
        s
    }

    /// Runs a component on a system.
    pub(super) fn outcome_of(
        &self,
        c: &ComponentInfo,
        device: DeviceChoice,
        precision: Precision,
        snapshot: Snapshot,
        steps: u64,
    ) -> Result<Outcome, Failure> {
        self.outcome_of_plan(&self.plan(c, device, precision, snapshot, steps, &[])?)
    }

    /// Runs a plan.
    pub(super) fn outcome_of_plan(&self, plan: &Plan) -> Result<Outcome, Failure> {
        let mut backend = galamost_engine::run::open(plan)?;
        let before = names(&self.folder);
        execute(plan, &mut *backend, &RunOptions { quiet: true, ..RunOptions::default() }, None)?;
        check_declared(&self.folder, &before, plan)?;
        let facts = backend.facts().clone();
        let wants = Wants { particles: true, ..Wants::default() };
        let state = columns(&mut *backend, &facts, wants)?;
        let sums = backend.sums()?;
        let length = backend.box_length();
        let unwrapped = state.position.iter().zip(&state.image);
        let array = |name: &str| match state.arrays.get(name).map(|a| &a.values) {
            Some(Values::Real(v)) => v.clone(),
            _ => vec![],
        };
        Ok(Outcome {
            force: force(&mut *backend, plan.pipeline.precision)?,
            length,
            topology: backend.topology().clone(),
            torque: array("torque"),
            rotation: if facts.rotational.is_empty() {
                vec![]
            } else {
                [array("quaternion"), array("angular_momentum")].concat()
            },
            energy: sums.components.iter().map(|s| s.energy).sum(),
            virial: std::array::from_fn(|k| sums.components.iter().map(|s| s.virial[k]).sum()),
            position: unwrapped.flat_map(|(p, i)| (0..3).map(|k| p[k] + length[k] * f64::from(i[k]))).collect(),
            velocity: state.velocity.into_iter().flatten().collect(),
        })
    }
}

/// Returns the names of the files in a folder.
pub(super) fn names(folder: &Path) -> BTreeSet<OsString> {
    std::fs::read_dir(folder).into_iter().flatten().filter_map(|e| Some(e.ok()?.file_name())).collect()
}

/// Checks that each file that a run has created was declared. Files of earlier runs that it renamed do not count.
///
/// # Errors
/// Returns an error that names the first other file.
pub(super) fn check_declared(folder: &Path, before: &BTreeSet<OsString>, plan: &Plan) -> Result<(), Failure> {
    for name in names(folder).difference(before).filter(|n| !n.to_string_lossy().contains(".old")) {
        let target = Target::resolve(&folder.join(name)).map_err(Failure::run)?;
        if !plan.files.iter().any(|f| f.usage != FileUse::Input && f.target.overlaps(&target)) {
            let file = name.display();
            return Err(Failure::run(format!("writes {file} without declaring it; call `needs.output` in `bind`")));
        }
    }
    Ok(())
}

/// Returns the files that components of a plan declare as outputs and that do not exist.
pub(super) fn unwritten(plan: &Plan) -> Vec<String> {
    let outputs = plan.files.iter().filter(|f| matches!(f.usage, FileUse::Output(_)));
    let missing = outputs.filter(|f| f.target.existing().is_ok_and(|found| found.is_empty()));
    missing.map(|f| f.shown.clone()).collect()
}

/// Returns the numbers of an array of `real` in tag order.
pub(super) fn numbers(backend: &mut dyn Backend, array: &str, precision: Precision) -> Result<Vec<f64>, Failure> {
    let bytes = backend.read(array)?;
    Ok(if precision == Precision::Double {
        bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect()
    } else {
        bytes.as_chunks::<4>().0.iter().map(|b| f64::from(f32::from_ne_bytes(*b))).collect()
    })
}

/// Returns the forces in tag order, three components per particle.
pub(super) fn force(backend: &mut dyn Backend, precision: Precision) -> Result<Vec<f64>, Failure> {
    let all = numbers(backend, "force", precision)?;
    Ok(all.as_chunks::<4>().0.iter().flat_map(|f| [f[0], f[1], f[2]]).collect())
}
