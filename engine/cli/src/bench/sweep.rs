//! `galamost bench FILE --sweep PATH=[VALUES]`: the speed of a pipeline for several values of a field.

use super::BenchArgs;
use super::measure::{prepared, settle, windows};
use crate::common::{Context, input_error, parse_device, usage_error};
use galamost_engine::device::choose;
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::read_replicas;
use galamost_engine::plan::{CheckOptions, check};
use galamost_plugin_api::component::Kind;
use galamost_plugin_api::error::Position;
use galamost_plugin_api::params::Source;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The speed with one value.
struct Row {
    value: String,
    /// Steps per second in each window.
    windows: Vec<f64>,
    /// Neighbors per particle in the list.
    neighbors: f64,
    /// What components report about their parameters.
    notes: Vec<String>,
}

impl Row {
    fn best(&self) -> f64 {
        self.windows.iter().copied().fold(0.0, f64::max)
    }
}

/// Measures the first stage of the pipeline with each value and returns a table.
///
/// # Errors
/// Returns an error if the pipeline is invalid for a value or a run fails.
pub(super) fn run(args: &BenchArgs, context: &Context) -> Result<String, Failure> {
    let Some(file) = &args.filter else {
        return Err(usage_error("`--sweep` needs a pipeline: galamost bench FILE --sweep PATH=[VALUES]"));
    };
    let all = read_replicas(Path::new(file), &args.set, &args.sweep, None)?.unwrap_or_default();
    let fields: Vec<(&str, Vec<String>)> = args.sweep.iter().filter_map(|s| s.split_once('=')).map(values).collect();
    let registry = context.registry();
    let chosen = choose(parse_device(&args.device)?).map_err(|e| input_error("--device", e))?;
    let mut rows = vec![];
    for (k, (mut pipeline, errors)) in all.into_iter().enumerate() {
        if !errors.is_empty() {
            return Err(Failure::Input(errors));
        }
        if args.gpus > 1 {
            // each value is measured in a run by itself
            pipeline.replica = None;
        }
        let plan = check(prepared(pipeline, args.gpus, &chosen), &registry, CheckOptions::default())?;
        let of = |name: &str, notes: &[String]| notes.iter().map(|n| format!("{name}: {n}")).collect::<Vec<_>>();
        let notes = plan.components.iter().flat_map(|c| of(&c.name, &c.needs.notes)).collect();
        let mut backend = galamost_engine::run::open(&plan)?;
        // analyzers, which are not called, would create their files
        let calculates = |kind| matches!(kind, Kind::Pair | Kind::Bonded | Kind::Force | Kind::Integrator);
        plan.components.iter().filter(|c| calculates(c.kind)).try_for_each(|c| backend.start(c))?;
        let stop = AtomicBool::new(false);
        backend.begin_stage(&plan.stages[0], false)?;
        settle(&mut *backend, &chosen, args.window, &stop)?;
        let windows = windows(&mut *backend, args.window, &stop)?.0;
        let value: Vec<String> = fields.iter().map(|(field, values)| format!("{field}={}", values[k])).collect();
        rows.push(Row { value: value.join(" "), windows, neighbors: backend.list_report()?.mean, notes });
    }
    Ok(table(&rows))
}

/// Splits the values of a field, which `read_replicas` has checked.
fn values<'a>((field, list): (&'a str, &str)) -> (&'a str, Vec<String>) {
    let list = Source { text: list, start: Position::default() };
    (field, list.value().elements().unwrap_or_default().into_iter().map(|v| v.text().trim().to_string()).collect())
}

/// Returns the results as a Markdown table, and the fastest value.
fn table(rows: &[Row]) -> String {
    let mut out = "| value | TPS (best of 3) | spread | neighbors | parameters |\n|---|---|---|---|---|\n".to_string();
    for r in rows {
        let (best, least) = (r.best(), r.windows.iter().copied().fold(f64::INFINITY, f64::min));
        let (spread, notes) = (100.0 * (1.0 - least / best), r.notes.join("; "));
        let _ = writeln!(out, "| {} | {best:.2} | {spread:.1} % | {:.1} | {notes} |", r.value, r.neighbors);
    }
    if let Some(r) = rows.iter().max_by(|a, b| a.best().total_cmp(&b.best())) {
        let _ = writeln!(out, "\nfastest: {}", r.value);
        r.notes.iter().for_each(|n| out.push_str(&format!("{n}\n")));
    }
    out
}
