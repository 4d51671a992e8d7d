//! Target distributions, read from files or measured from trajectories.

use super::analyzers::{column_of, distributions, file_of};
use super::mapping;
use super::spec::{InteractionSpec, Spec, StateSpec, Trajectory};
use crate::common::{file_failure, parse_errors, write_file};
use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_engine::pipeline::{DeviceChoice, Pipeline};
use galamost_engine::plan::{CheckOptions, Plan, check};
use galamost_engine::plugins::Registry;
use galamost_engine::run::open as open_backend;
use galamost_engine::run::{RunOptions, execute};
use galamost_inversion::read_target;
use galamost_plugin_api::error::Position;
use galamost_plugin_api::snapshot::Snapshot;
use std::io::ErrorKind;
use std::path::Path;
use tracing::info;

/// Returns the targets by state and interaction.
///
/// # Errors
/// Returns an error if a file is invalid or a trajectory cannot be measured.
pub(super) fn read_all(spec: &Spec, registry: &Registry) -> Result<Vec<Vec<Vec<f64>>>, Failure> {
    let mut errors = vec![];
    let mut out = vec![];
    for state in &spec.states.value {
        let mut of_state = vec![];
        let measured = spec.interactions.value.iter().any(|i| i.common.target.is_none());
        let folder = spec.folder().join("targets").join(&state.value.name.value);
        if let (true, Some(t)) = (measured, &state.value.trajectory) {
            measure(spec, t, &folder, registry)?;
        }
        for i in &spec.interactions.value {
            match of_interaction(spec, &state.value, i, &folder) {
                Ok(p) => of_state.push(p),
                Err(Failure::Input(list)) => errors.extend(list),
                Err(e) => return Err(e),
            }
        }
        out.push(of_state);
    }
    if errors.is_empty() { Ok(out) } else { Err(Failure::Input(errors)) }
}

/// Reads the target of an interaction in a state.
fn of_interaction(spec: &Spec, state: &StateSpec, i: &InteractionSpec, folder: &Path) -> Result<Vec<f64>, Failure> {
    let bins = i.interaction(spec.dimensions).bins;
    let (path, column, unit) = match &i.common.target {
        Some(file) => {
            let name = file.value.replace("{state}", &state.name.value);
            (spec.directory().join(name), i.common.column.as_deref(), i.common.unit.map(|u| u.0))
        }
        None => (folder.join(file_of(i)), Some(column_of(i)), None),
    };
    let at = i.common.target.as_ref().map_or(i.at, |t| t.at);
    let text = spec.text(&path, at)?;
    read_target(&text, i.kind, &bins, column, unit).map_err(|e| {
        let at = e.line.map(|line| Position { line, column: 1 });
        Failure::Input(vec![Diagnostic::new(&path, at, format!("{}: {}", i.name(), e.message))])
    })
}

/// Returns a plan without forces.
fn plan_of(path: &Path, text: &str, registry: &Registry, snapshot: Option<Snapshot>) -> Result<Plan, Failure> {
    let mut pipeline = Pipeline::parse(path, text, &[]).map_err(|e| parse_errors(path, e))?;
    pipeline.device = DeviceChoice::Cpu;
    check(pipeline, registry, CheckOptions { snapshot, ..CheckOptions::default() })
}

/// Returns the generator of a frame, with the frame number or the file name as its first field.
fn reader(t: &Trajectory, k: u64) -> String {
    let field = match &t.files {
        Some(files) => format!("file: {:?}", files[k as usize]),
        None => format!("frame: {k}"),
    };
    let (name, rest) = t.reader.split_once('(').unwrap_or((&t.reader, ")"));
    let comma = if rest.trim_start().starts_with(')') { "" } else { ", " };
    format!("{name}({field}{comma}{rest}")
}

/// Reads a frame and maps it to beads.
fn frame(spec: &Spec, t: &Trajectory, k: u64, registry: &Registry) -> Result<Snapshot, Failure> {
    let text = format!("(initial: [{}], precision: Double, stages: [(steps: 0, dt: 1.0)])", reader(t, k));
    let here = |message: String| spec.error(t.at, format!("frame {k}: {message}"));
    let plan = plan_of(&spec.path, &text, registry, None).map_err(|e| match e {
        // positions in the generated text are meaningless to the user
        Failure::Input(list) => here(list.iter().map(|d| d.message.as_str()).collect::<Vec<_>>().join("; ")),
        other => other,
    })?;
    match &t.mapping {
        None => Ok(plan.snapshot),
        Some(blocks) => mapping::apply(blocks, &plan.snapshot)
            .map_err(|e| spec.error(e.at.unwrap_or(t.at), format!("frame {k}: {}", e.message))),
    }
}

/// Removes the distributions of the previous frame, which the next run would take for results of an earlier run and rename.
fn remove_distributions(spec: &Spec, folder: &Path) -> Result<(), Failure> {
    for file in spec.interactions.value.iter().map(|i| folder.join(file_of(i))) {
        match std::fs::remove_file(&file) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(file_failure(&file, e)),
            _ => {}
        }
    }
    Ok(())
}

/// Measures all distributions over the frames of a trajectory. The analyzers of each frame continue from the saved
/// state of the previous one.
fn measure(spec: &Spec, t: &Trajectory, folder: &Path, registry: &Registry) -> Result<(), Failure> {
    let analyzers = distributions(spec, 1).join(",\n");
    let text = format!("(initial: [], precision: Double, stages: [(steps: 0, dt: 1.0)], analyzers: [\n{analyzers}\n])");
    // skip the measurement if it has been done with the same input
    let (key_file, key) = (folder.join("measured.txt"), format!("{text}\n{t:?}\n"));
    if std::fs::read_to_string(&key_file).is_ok_and(|k| k == key) {
        return Ok(());
    }
    std::fs::create_dir_all(folder).map_err(|e| file_failure(folder, e))?;
    let mut kept: Vec<Vec<u8>> = vec![];
    let frames: Vec<u64> = (t.first..=t.last).step_by(t.every as usize).collect();
    for (done, k) in frames.iter().enumerate() {
        let snapshot = frame(spec, t, *k, registry)?;
        let plan = plan_of(&folder.join("measure.ron"), &text, registry, Some(snapshot)).map_err(|e| match e {
            Failure::Input(list) => {
                let all: Vec<String> = list
                    .iter()
                    .map(|d| format!("{}: {}", d.component.as_deref().unwrap_or("analyzer"), d.message))
                    .collect();
                spec.error(t.at, format!("frame {k}: {}", all.join("; ")))
            }
            other => other,
        })?;
        for (component, state) in plan.components.iter().zip(&kept) {
            component.load(state)?;
        }
        remove_distributions(spec, folder)?;
        let mut backend = open_backend(&plan)?;
        execute(&plan, &mut *backend, &RunOptions { quiet: true, ..RunOptions::default() }, None)?;
        kept = plan.components.iter().map(|c| c.save()).collect::<Result<_, _>>()?;
        if (done + 1).is_power_of_two() || done + 1 == frames.len() {
            info!("targets: {} of {} frames", done + 1, frames.len());
        }
    }
    write_file(&key_file, key)
}
