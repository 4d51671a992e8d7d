//! Before a run that several processes share: they compare what must be the same in all of them.

use crate::cpu::vector_extension;
use crate::device::{Chosen, driver, shares_gpu};
use crate::diagnostic::{Diagnostic, Failure};
use crate::plan::Plan;
use crate::plan::inputs::{INITIAL_STATE, of_state};
use crate::processes::{Messages, Mpi, NcclChoice, check_nccl};
use serde::{Deserialize, Serialize};
use std::path::Path;
use tracing::warn;

/// What the first process learns of each.
#[derive(Serialize, Deserialize)]
struct Report {
    /// What must be the same in all processes: names and values.
    facts: Vec<(String, String)>,
    /// What identifies the GPU on its host.
    gpu: Option<String>,
    /// Why the process cannot run.
    failure: Option<String>,
}

/// Variables with which kernels or the order of sums differ.
const VARIABLES: [&str; 5] =
    ["GALAMOST_TEAM", "GALAMOST_SORT_EVERY", "GALAMOST_QUEUE", "GALAMOST_LIST", "GALAMOST_KERNELS"];

impl Report {
    /// Returns the report of this process. `options` are those of the command line that must be the same.
    fn new(plan: Result<&Plan, &Failure>, options: &[(&str, String)]) -> Self {
        let mut facts: Vec<(String, String)> = vec![("version".into(), env!("CARGO_PKG_VERSION").into())];
        facts.extend(options.iter().map(|(name, value)| ((*name).to_string(), value.clone())));
        let plan = match plan {
            Ok(plan) => plan,
            Err(e) => return Self { facts, gpu: None, failure: Some(first_line(e)) },
        };
        let mut add = |name: &str, value: String| facts.push((name.into(), value));
        add("pipeline", blake3::hash(plan.pipeline.text.as_bytes()).to_hex()[..16].into());
        for p in &plan.plugins {
            add(&format!("plugin {}", p.name), format!("{} {}", p.version, p.hash.get(..16).unwrap_or_default()));
        }
        for name in VARIABLES {
            add(name, std::env::var(name).unwrap_or_else(|_| "unset".into()));
        }
        let nccl = if on_gpu(plan) {
            // hosts may have the library in different folders
            add("GALAMOST_NCCL", NcclChoice::of_environment().name().into());
            check_nccl()
        } else {
            Ok(())
        };
        add("device", device(plan));
        add("precision", plan.pipeline.precision.name().into());
        add("seed", plan.pipeline.seed.to_string());
        add("number of particles", plan.snapshot.len().to_string());
        let mut inputs = plan.inputs.clone();
        inputs.entry(INITIAL_STATE.into()).or_insert_with(|| of_state(&plan.snapshot));
        facts.extend(inputs);
        match nccl.and_then(|()| plan.device.identifier().map_err(|e| e.to_string())) {
            Ok(gpu) => Self { facts, gpu, failure: None },
            Err(e) => Self { facts, gpu: None, failure: Some(e) },
        }
    }
}

/// Returns whether messages may pass through NCCL: not on the CPU.
fn on_gpu(plan: &Plan) -> bool {
    !matches!(plan.device, Chosen::Cpu { .. })
}

/// Returns the first line of the text of a failure.
fn first_line(failure: &Failure) -> String {
    failure.render().lines().next().unwrap_or_default().trim_start_matches("error: ").to_string()
}

fn device(plan: &Plan) -> String {
    match &plan.device {
        Chosen::Cpu { .. } => format!("CPU with vector extension {}", vector_extension()),
        Chosen::Emulated => "emulated".into(),
        Chosen::Cuda { ordinal, .. } => {
            driver().ok().and_then(|d| d.1.get(*ordinal as usize).cloned()).unwrap_or_default()
        }
    }
}

/// Returns what differs between the processes, by their reports and hosts.
fn difference(reports: &[Report], hosts: &[String]) -> Option<String> {
    let name = |r: usize| format!("rank {r} on host {}", hosts[r]);
    let (first, others) = reports.split_first()?;
    for (k, other) in others.iter().enumerate() {
        let value = |name: &str| first.facts.iter().find(|(n, _)| n == name).map_or("none", |(_, v)| v);
        if let Some((what, theirs)) = other.facts.iter().find(|(what, theirs)| value(what) != theirs) {
            let (theirs, ours) = (format!("{theirs} on {}", name(k + 1)), format!("{} on {}", value(what), name(0)));
            return Some(format!("the processes of a run need the same {what}, which is {theirs} and {ours}"));
        }
        if let Some(failure) = &other.failure {
            return Some(format!("{}: {failure}", name(k + 1)));
        }
        if other.facts.len() != first.facts.len() {
            return Some(format!("{} uses other plugins than {}", name(k + 1), name(0)));
        }
    }
    if let Some(failure) = &first.failure {
        return Some(format!("{}: {failure}", name(0)));
    }
    let gpu = |r: usize| Some((&hosts[r], reports[r].gpu.as_ref()?));
    (1..reports.len()).find_map(|r| {
        let twin = (0..r).find(|k| gpu(*k).is_some_and(|g| gpu(r) == Some(g)))?;
        let both = format!("{} and {}", name(twin), name(r));
        (!shares_gpu()).then(|| format!("{both} would use the same GPU; start one process for each GPU"))
    })
}

/// Compares the plans of all processes, or takes into account why there is none, and the `options` of the command line that must be
/// the same. The error of the first process is the one to report. All processes call it; all return an error if one does.
///
/// # Errors
/// See above.
pub fn agree(
    mpi: &Mpi,
    pipeline: &Path,
    options: &[(&str, String)],
    plan: Result<&Plan, &Failure>,
) -> Result<(), Failure> {
    let messages: &dyn Messages = mpi;
    let required = matches!(NcclChoice::of_environment(), NcclChoice::Required(_));
    if mpi.rank() == 0 && required && plan.is_ok_and(|p| !on_gpu(p)) {
        warn!("GALAMOST_NCCL has no effect: the run uses the CPU, and NCCL connects GPUs only");
    }
    let own = serde_json::to_vec(&Report::new(plan, options)).map_err(Failure::run)?;
    let reports = messages.gather(&own)?;
    let mut failure = plan.err().cloned();
    if mpi.rank() == 0 && failure.is_none() {
        let reports: Vec<Report> =
            reports.iter().map(|r| serde_json::from_slice(r)).collect::<Result<_, _>>().map_err(Failure::run)?;
        let wrong = difference(&reports, mpi.hosts());
        failure = wrong.map(|message| Failure::Input(vec![Diagnostic::new(pipeline, None, message)]));
    }
    let status = failure.as_ref().map_or(0, Failure::exit_code);
    match messages.broadcast(vec![status])?.first() {
        Some(0) => Ok(()),
        _ => Err(failure.unwrap_or_else(|| Failure::Input(vec![]))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(facts: &[(&str, &str)], gpu: Option<&str>) -> Report {
        let facts = facts.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect();
        Report { facts, gpu: gpu.map(String::from), failure: None }
    }

    #[test]
    fn differences_name_rank_and_host() {
        let hosts = ["a", "b", "b"].map(String::from);
        let of = |reports: &[Report]| difference(reports, &hosts[..reports.len()]);
        let (one, other) = (&[("version", "1"), ("plugin x", "1 ab")], &[("version", "1"), ("plugin x", "1 cd")]);
        assert_eq!(of(&[report(one, None), report(one, None)]), None);
        let text = of(&[report(one, None), report(one, None), report(other, None)]).expect("a difference");
        assert!(
            text.contains("same plugin x, which is 1 cd on rank 2 on host b and 1 ab on rank 0 on host a"),
            "{text}"
        );
        let text = of(&[report(one, None), report(&one[..1], None)]).expect("a difference");
        assert!(text.contains("other plugins"), "{text}");
        assert_eq!(of(&[report(one, Some("g")), report(one, Some("g"))]), None);
        let text = of(&[report(one, Some("g")), report(one, Some("g")), report(one, Some("g"))]).expect("a difference");
        assert!(text.contains("rank 1 on host b and rank 2 on host b would use the same GPU"), "{text}");
        let failed = Report { failure: Some("no file".into()), ..report(one, None) };
        assert_eq!(of(&[report(one, None), failed]), Some("rank 1 on host b: no file".into()));
        let failed = Report { failure: Some("no library".into()), ..report(one, None) };
        assert_eq!(of(&[failed, report(one, None)]), Some("rank 0 on host a: no library".into()));
        let (set, unset) = (&[("GALAMOST_NCCL", "set")], &[("GALAMOST_NCCL", "unset")]);
        let text = of(&[report(set, None), report(unset, None)]).expect("a difference");
        assert!(text.contains("same GALAMOST_NCCL, which is unset on rank 1 on host b and set on rank 0"), "{text}");
    }
}
