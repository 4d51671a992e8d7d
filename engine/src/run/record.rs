//! The record of a run: a small JSON file beside the pipeline, for `galamost report` and for later reference.
//!
//! A run of `sim.ron` writes `sim.run.json`. It contains `format` ("galamost-run 1") and `runs`: one object for the run and
//! one for each time it was resumed from a checkpoint:
//!
//! | field | |
//! |---|---|
//! | `status` | `running`, `done`, `interrupted`, `failed`; a run that was killed stays `running` |
//! | `begun`, `ended` | UTC |
//! | `engine`, `arguments`, `pipeline` | version, command line, the pipeline's text as run |
//! | `device`, `threads`, `precision`, `seed` | |
//! | `particles`, `bonds`, `molecules` (of two particles and more), `dimensions`, `box`, `types` | of the initial state |
//! | `plugins` | `name`, `version`, `path`, `hash` (BLAKE3) of each |
//! | `stages` | `name`, `steps`, `dt` of each |
//! | `planned` | steps that the run ends after, those before a resume included; with `--steps`, its number |
//! | `from_step`, `steps`, `total_steps`, `seconds`, `start_up`, `tps` | steps of this part and of all parts, seconds in the loop, seconds before it, steps per second |
//! | `shares` | seconds of the loop: `steps`, `analyzers`, `updaters`, `checkpoints` |
//! | `parts` | number of profiled `steps`, `seconds` of each component and of the neighbor list in them; `others`: total seconds of each analyzer and updater |
//! | `list` | the neighbor list: `radius`, `buffer`, `mean`, `longest`, `builds` |
//! | `memory` | bytes of the device |
//! | `last` | `kT`, `pressure`, `potential` per particle of the last sample |
//! | `exchange` | of a replica that exchanges particles: `rounds`, its `walker`; `attempts`, `accepted`, `acceptance` with the next replica; `from_first` (fraction of walkers that come from the first replica), `round_trips` of all walkers |
//! | `checkpoint`, `warnings`, `error` | |

use crate::backend::Backend;
use crate::device::Chosen;
use crate::diagnostic::{Failure, counted};
use crate::log::{describe, now, warnings};
use crate::plan::Plan;
use crate::profile::seconds_by_part;
use crate::run::Summary;
use crate::state::molecules::molecules;
use galamost_plugin_api::output::replace;
use galamost_plugin_api::snapshot::Snapshot;
use serde_json::{Value, json};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use tracing::warn;

/// Value of `format`.
const FORMAT: &str = "galamost-run 1";

/// The record of one run.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    /// Earlier parts, and this one as the last.
    runs: Vec<Value>,
}

pub use crate::plan::files::record_path as path_of;

/// Returns the parts of a run, if a record exists.
pub fn read(pipeline: &Path) -> Option<Vec<Value>> {
    let text = std::fs::read_to_string(path_of(pipeline)).ok()?;
    let value: Value = serde_json::from_str(&text).ok()?;
    (value["format"] == FORMAT).then(|| value["runs"].as_array().cloned()).flatten()
}

/// Returns the number of molecules of at least two particles.
fn count_molecules(s: &Snapshot) -> u64 {
    let mut of = molecules(s).unwrap_or_default();
    of.sort_unstable();
    of.chunk_by(|a, b| a == b).filter(|m| m.len() > 1).count() as u64
}

/// Describes the device.
pub fn device(plan: &Plan) -> String {
    let processes = match plan.pipeline.processes.count {
        1 => String::new(),
        count => format!(", one of {count} processes"),
    };
    one_device(plan) + &processes
}

fn one_device(plan: &Plan) -> String {
    match &plan.device {
        Chosen::Cpu { .. } => format!("CPU, {}", counted(rayon::current_num_threads() as u64, "thread")),
        // do not open the device, which takes time and memory
        Chosen::Cuda { ordinal, .. } => {
            let name = crate::device::driver().ok().and_then(|d| d.1.get(*ordinal as usize).cloned());
            let which = match plan.pipeline.gpus {
                0 | 1 => format!("CUDA {ordinal}"),
                gpus => format!("CUDA {ordinal} to {}", ordinal + gpus - 1),
            };
            name.map_or_else(|| which.clone(), |n| format!("{which}: {n}"))
        }
        Chosen::Emulated => "CUDA kernels emulated on the CPU".into(),
    }
}

impl Record {
    /// Begins the record of a run. `resumed` is the step at which a resumed run starts, `steps` the value of `--steps`.
    pub fn begin(plan: &Plan, resumed: Option<u64>, steps: Option<u64>) -> Self {
        let path = path_of(&plan.pipeline.path);
        let mut runs = match resumed {
            Some(_) => read(&plan.pipeline.path).unwrap_or_default(),
            None => vec![],
        };
        let s = &plan.snapshot;
        let plugins: Vec<Value> = plan
            .plugins
            .iter()
            .map(|p| json!({"name": p.name, "version": p.version, "path": p.path.to_string_lossy(), "hash": p.hash}))
            .collect();
        let stages: Vec<Value> = plan
            .stages
            .iter()
            .map(|s| json!({"name": s.stage.name, "steps": s.stage.steps, "dt": s.stage.dt}))
            .collect();
        let planned = steps.unwrap_or_else(|| plan.stages.iter().map(|s| s.stage.steps).sum());
        runs.push(json!({
            "status": "running", "begun": now(), "engine": env!("CARGO_PKG_VERSION"),
            "arguments": std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()).collect::<Vec<_>>(), "pipeline": plan.pipeline.text,
            "device": device(plan), "threads": rayon::current_num_threads(), "precision": plan.pipeline.precision.name(),
            "seed": plan.pipeline.seed, "particles": s.len(), "bonds": s.bonds.len(), "molecules": count_molecules(s), "dimensions": s.dimensions,
            "box": s.box_length, "types": s.types, "plugins": plugins, "stages": stages, "planned": planned,
            "from_step": resumed.unwrap_or(s.step), "warnings": warnings(),
        }));
        let record = Self { path, runs };
        record.write();
        record
    }

    /// Adds the outcome of the run.
    pub fn end(mut self, outcome: Result<&Summary, &Failure>, backend: Option<&mut Box<dyn Backend>>) {
        if let Some(run) = self.runs.last_mut() {
            run["ended"] = json!(now());
            run["warnings"] = json!(warnings());
            if let Some(b) = backend {
                run["memory"] = json!(b.memory());
                if let Ok(l) = b.list_report()
                    && l.r_list > 0.0
                {
                    run["list"] = json!({
                        "radius": l.r_list, "buffer": l.buffer, "mean": l.mean, "longest": l.longest, "builds": l.builds,
                    });
                }
            }
            match outcome {
                Ok(s) => {
                    run["status"] = json!(if s.interrupted { "interrupted" } else { "done" });
                    run["steps"] = json!(s.steps);
                    run["total_steps"] = json!(s.total_steps);
                    run["seconds"] = json!(s.seconds);
                    run["start_up"] = json!(s.start_up);
                    run["tps"] = json!(s.steps as f64 / s.seconds.max(1e-9));
                    if let Some(exchange) = &s.exchange {
                        run["exchange"] = exchange.clone();
                    }
                    run["shares"] = json!({
                        "steps": s.loop_times.steps, "analyzers": s.loop_times.analyzers, "updaters": s.loop_times.updaters,
                        "checkpoints": s.loop_times.checkpoints,
                    });
                    let seconds: serde_json::Map<String, Value> = seconds_by_part(&s.component_times.timings)
                        .into_iter()
                        .map(|(name, t)| (name, json!(t)))
                        .collect();
                    run["parts"] = json!({"steps": s.component_times.steps, "seconds": seconds, "others": s.component_times.others});
                    run["checkpoint"] = json!(s.checkpoint.as_ref().map(|c| c.to_string_lossy()));
                    if let Some(t) = &s.thermo {
                        run["last"] =
                            json!({"kT": t.kt, "pressure": t.pressure, "potential": t.potential / t.n as f64});
                    }
                }
                Err(f) => fail(run, f),
            }
        }
        if !self.write() && outcome.is_err() && mark_failed(&self.path).is_ok() {
            warn!("{}: only the status was changed, to `failed`", self.path.display());
        }
    }

    /// Replaces the file, and returns whether that was possible. Errors are only warnings, because the run does not depend on its record.
    fn write(&self) -> bool {
        let text = format!("{:#}\n", json!({"format": FORMAT, "runs": self.runs}));
        let written = replace(&self.path, |out| out.write_all(text.as_bytes()));
        written.inspect_err(|e| warn!("the record of the run cannot be written: {}: {e}", self.path.display())).is_ok()
    }
}

fn fail(run: &mut Value, failure: &Failure) {
    run["status"] = json!("failed");
    run["error"] = describe(failure);
}

/// Adds to the record of a pipeline, if there is one, that its run has failed. For a program that ends while the run is in a component.
pub fn abandon(pipeline: &Path, failure: &Failure) {
    let Some(mut runs) = read(pipeline) else { return };
    if let Some(run) = runs.last_mut().filter(|run| run["status"] == "running") {
        run["ended"] = json!(now());
        fail(run, failure);
        Record { path: path_of(pipeline), runs }.write();
    }
}

/// The status of a run in progress in a record, and that of one that has failed. They have the same length.
const STATUS: [&str; 2] = ["\"status\": \"running\"", "\"status\": \"failed\" "];

/// Changes the status of the last part in a record where it is. On a full disk there is no room for another file.
fn mark_failed(path: &Path) -> std::io::Result<()> {
    let text = std::fs::read_to_string(path)?;
    let at = text.rfind(STATUS[0]).ok_or(std::io::ErrorKind::NotFound)?;
    std::fs::File::options().write(true).open(path)?.write_all_at(STATUS[1].as_bytes(), at as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use galamost_plugin_api::output::temporary;

    /// A record that cannot be replaced at the end, as on a full disk, does not stay that of a run in progress.
    #[test]
    fn a_failed_run_is_marked_without_room_for_another_record() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipeline = folder.path().join("p.ron");
        let path = path_of(&pipeline);
        let part = |status: &str| json!({"status": status, "steps": 7});
        let record = Record { path: path.clone(), runs: vec![part("done"), part("running")] };
        assert!(record.write());
        std::fs::create_dir(temporary(&path)).expect("a folder in the way");
        record.end(Err(&Failure::run("the disk is full")), None);
        let found = read(&pipeline).expect("a record");
        assert_eq!(found, [part("done"), part("failed")]);
        // a program that ends during a run
        std::fs::remove_dir(temporary(&path)).expect("removed");
        assert!(Record { path, runs: vec![part("running")] }.write());
        abandon(&pipeline, &Failure::run("the walltime is over"));
        let found = read(&pipeline).expect("a record");
        assert!(found[0]["status"] == "failed" && found[0]["error"].to_string().contains("the walltime is over"));
    }
}
