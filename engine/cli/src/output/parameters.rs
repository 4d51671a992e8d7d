//! Parameters of runs, from their records: the fields of the pipeline that differ between runs.

use galamost_engine::log::time_of;
use galamost_engine::pipeline::Pipeline;
use galamost_engine::run::record;
use galamost_plugin_api::params::{Source, Value};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A field of a pipeline: its path, as `--set` takes it, and its text.
pub type Field = (String, String);

/// Fields that name files or only label something.
const NO_PARAMETERS: [&str; 4] = ["file", "each", "name", "path"];

/// Returns all fields of a pipeline's text that are not lists or structs. Invalid text has none.
pub fn fields(text: &str) -> Vec<Field> {
    let mut out = vec![];
    collect(Source::file(text).value(), "", &mut out);
    out
}

fn collect(value: Value<'_>, path: &str, out: &mut Vec<Field>) {
    let body = value.after_name().unwrap_or(value);
    let joined = |name: &str| if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
    match body.text().chars().next() {
        Some('(') if body.entries().is_ok_and(|e| !e.is_empty()) => {
            for (key, v) in body.entries().into_iter().flatten() {
                if !NO_PARAMETERS.contains(&&*key.name) {
                    collect(v, &joined(&key.name), out);
                }
            }
        }
        Some('[' | '(') => {
            for (k, v) in body.elements().into_iter().flatten().enumerate() {
                collect(v, &format!("{path}[{k}]"), out);
            }
        }
        Some('{') => {
            for (k, (_, v)) in body.map().into_iter().flatten().enumerate() {
                collect(v, &format!("{path}[{k}]"), out);
            }
        }
        _ => out.push((path.into(), value.text().into())),
    }
}

/// Returns the last entry of the record of the run that wrote a table.
pub fn run_of_table(table: &Path) -> Option<serde_json::Value> {
    writer_of(table).map(|w| w.run)
}

/// The run that wrote a file.
pub struct WriterRun {
    /// Its pipeline, without symbolic links in its folder.
    pub pipeline: PathBuf,
    /// The last entry of its record.
    pub run: serde_json::Value,
}

/// Returns the run that wrote a file last: of the records in its folder and the one above whose pipelines have the file as an
/// output, that of the run that began last, but not after the file was written.
pub fn writer_of(file: &Path) -> Option<WriterRun> {
    let file = file.canonicalize().ok()?;
    let written = std::fs::metadata(&file).and_then(|m| m.modified()).ok()?;
    let folder = file.parent()?;
    let folders = [Some(folder), folder.parent()].into_iter().flatten();
    let found = folders.flat_map(|f| writers(&file, written, f)).max_by_key(|(times, _)| *times);
    found.map(|(_, writer)| writer)
}

/// The times at which a run began, if that was before a file was written, and at which its record was written: copies of files
/// may be older than their runs, and two runs may begin in the same second.
type WriterTimes = (Option<SystemTime>, Option<SystemTime>);

/// Returns the runs in a folder that have a file as an output.
fn writers(file: &Path, written: SystemTime, folder: &Path) -> Vec<(WriterTimes, WriterRun)> {
    let Ok(name) = file.strip_prefix(folder) else { return vec![] };
    let name = format!("\"{}\"", name.to_string_lossy());
    let of = |path: PathBuf| {
        let pipeline = PathBuf::from(path.to_str()?.strip_suffix(".run.json")?.to_string() + ".ron");
        let mut parts = record::read(&pipeline)?;
        let begun = parts.iter().filter_map(|part| time_of(part["begun"].as_str()?)).filter(|t| *t <= written).max();
        let run = parts.pop()?;
        let is_output = run["pipeline"].as_str().is_some_and(|text| has_output(&pipeline, text, &name));
        let ended = std::fs::metadata(&path).and_then(|m| m.modified()).ok();
        is_output.then_some(((begun, ended), WriterRun { pipeline, run }))
    };
    std::fs::read_dir(folder).into_iter().flatten().filter_map(|e| of(e.ok()?.path())).collect()
}

/// Returns whether a component that writes files has a quoted name. Text that this version cannot parse counts as a whole.
fn has_output(path: &Path, text: &str, name: &str) -> bool {
    if !text.contains(name) {
        return false;
    }
    let Ok(p) = Pipeline::parse(path, text, &[]) else { return true };
    let own = p.stages.iter().flat_map(|s| s.analyzers.iter().chain(&s.updaters).flatten());
    let lists = p.analyzers.iter().chain(&p.updaters).chain(&p.ensemble);
    lists.chain(own).any(|entry| entry.text.contains(name))
}

/// A column of parameters: its name and its value in each run, empty where a run lacks it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The last part of the path if that is unambiguous, otherwise the whole path.
    pub name: String,
    /// Values as text.
    pub values: Vec<String>,
}

/// Returns the parameters that differ between runs: number of particles, density, and fields of the pipelines. Fields of the
/// same name and the same values in all runs, such as all `kT`, are one parameter.
pub fn differing(runs: &[Option<serde_json::Value>]) -> Vec<Parameter> {
    let texts: Vec<Vec<Field>> =
        runs.iter().map(|r| r.as_ref().and_then(|r| r["pipeline"].as_str()).map(fields).unwrap_or_default()).collect();
    let mut found: Vec<Parameter> = vec![];
    let mut paths: Vec<String> = vec![];
    for (path, _) in texts.iter().flatten() {
        if !paths.contains(path) {
            paths.push(path.clone());
        }
    }
    let of_records = ["particles", "density"].map(|name| {
        let value = |r: &Option<serde_json::Value>| r.as_ref().and_then(|r| derived(r, name)).unwrap_or_default();
        Parameter { name: name.into(), values: runs.iter().map(value).collect() }
    });
    let of_fields = paths.into_iter().map(|path| {
        let value = |list: &Vec<Field>| list.iter().find(|f| f.0 == path).map_or(String::new(), |f| f.1.clone());
        Parameter { values: texts.iter().map(value).collect(), name: path }
    });
    for p in of_records.into_iter().chain(of_fields) {
        let leaf = |name: &str| name.rsplit('.').next().unwrap_or(name).to_string();
        let known = |o: &Parameter| leaf(&o.name) == leaf(&p.name) && o.values == p.values;
        if p.values.iter().any(|v| *v != p.values[0]) && !found.iter().any(known) {
            found.push(p);
        }
    }
    let leaves: Vec<String> = found.iter().map(|p| p.name.rsplit('.').next().unwrap_or(&p.name).to_string()).collect();
    for (k, p) in found.iter_mut().enumerate() {
        if leaves.iter().filter(|l| **l == leaves[k]).count() == 1 {
            p.name.clone_from(&leaves[k]);
        }
    }
    found
}

/// Returns a quantity of a record's initial state.
fn derived(run: &serde_json::Value, name: &str) -> Option<String> {
    let n = run["particles"].as_f64().filter(|n| *n > 0.0)?;
    if name == "particles" {
        return Some(run["particles"].to_string());
    }
    let lengths: Vec<f64> = run["box"].as_array()?.iter().filter_map(serde_json::Value::as_f64).collect();
    let volume: f64 = lengths.iter().filter(|l| **l > 0.0).product();
    (lengths.len() == 3 && volume > 0.0).then(|| super::numbers::significant(n / volume, 9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_paths_of_set() {
        let text = "(seed: 1, initial: [Lattice(cells: [2, 2, 2], density: 0.7), Velocities(kT: 1.2)], \
                    forces: [Lj(r_cut: 2.5, pairs: {(\"A\", \"A\"): (epsilon: 1.0)})], analyzers: [Thermo(file: \"t.csv\")])";
        let all = fields(text);
        let of = |path: &str| all.iter().find(|f| f.0 == path).map(|f| f.1.as_str());
        assert_eq!((of("initial[0].cells[1]"), of("initial[1].kT")), (Some("2"), Some("1.2")));
        assert_eq!((of("forces[0].pairs[0].epsilon"), of("analyzers[0].file")), (Some("1.0"), None));
    }

    #[test]
    fn differing_fields_are_parameters() {
        let run = |kt: &str, n: u64| {
            let text = format!("(initial: [Velocities(kT: {kt})], integrators: [Bussi(kT: {kt}, tau: 0.5)])");
            Some(serde_json::json!({"pipeline": text, "particles": n, "box": [10.0, 10.0, 10.0]}))
        };
        let list = differing(&[run("1.0", 700), run("1.2", 800), None]);
        let names: Vec<&str> = list.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["particles", "density", "kT", "tau"]);
        assert_eq!(
            (&list[1].values, &list[2].values),
            (&vec!["0.7".into(), "0.8".into(), String::new()], &vec!["1.0".into(), "1.2".into(), String::new()])
        );
        assert!(differing(&[run("1.0", 700), run("1.0", 700)]).is_empty());
    }
}
