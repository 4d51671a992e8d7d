//! Files that components of several stages continue.

use super::{RunFile, entries};
use crate::diagnostic::Diagnostic;
use crate::pipeline::{Pipeline, Stage, differences, fields};
use crate::plan::StagePlan;
use crate::plugins::Component;
use galamost_plugin_api::error::Position;
use galamost_plugin_api::output::OutputKind;
use galamost_plugin_api::params::{Source, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

/// The parameters in which two components may differ that continue one file: when they write
/// ([`galamost_plugin_api::schedule::Schedule`]). So may the names of their files.
pub const TIMES: [&str; 4] = ["every", "offset", "from_stage", "at_end"];

/// The components that continue each other's files in different stages: for each of them all of them, by number.
pub fn partners(files: &[RunFile], stages: &[StagePlan]) -> BTreeMap<u32, Vec<u32>> {
    let active = active_stages(stages);
    let mut groups: HashMap<PathBuf, Vec<&RunFile>> = HashMap::new();
    for f in files.iter().filter(|f| f.is_output(OutputKind::Growing)) {
        groups.entry(f.target.path()).or_default().push(f);
    }
    let mut all: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for group in groups.into_values().filter(|g| g.len() > 1) {
        let fit = |f: &&RunFile| group.iter().all(|g| std::ptr::eq(*g, *f) || may_share(g, f, &active));
        let ids: Vec<u32> = group.iter().filter(|f| fit(f)).filter_map(|f| f.owner.id()).collect();
        for id in &ids {
            all.entry(*id).or_default().extend(&ids);
        }
    }
    for ids in all.values_mut() {
        ids.sort_unstable();
        ids.dedup();
    }
    all
}

/// The stages in which each component is active.
pub(super) fn active_stages(stages: &[StagePlan]) -> HashMap<u32, BTreeSet<usize>> {
    let mut active: HashMap<u32, BTreeSet<usize>> = HashMap::new();
    for (k, s) in stages.iter().enumerate() {
        for c in s.forces.iter().chain(&s.integrators).chain(&s.updaters).chain(&s.analyzers) {
            active.entry(c.id).or_default().insert(k);
        }
    }
    active
}

/// Returns whether two components may write the same file: those of one name in different stages.
pub(super) fn may_share(a: &RunFile, b: &RunFile, active: &HashMap<u32, BTreeSet<usize>>) -> bool {
    let (Some(i), Some(j)) = (a.owner.id(), b.owner.id()) else { return false };
    let kinds = [OutputKind::Growing, OutputKind::State].into_iter().any(|k| a.is_output(k) && b.is_output(k));
    let apart = match (active.get(&i), active.get(&j)) {
        (Some(i), Some(j)) => i.is_disjoint(j),
        _ => false,
    };
    a.owner.component() == b.owner.component() && a.target.path() == b.target.path() && kinds && apart
}

/// Returns an error for each component that would continue the file of another with rows or frames of another meaning, because other
/// parameters differ.
pub(super) fn mixed(files: &[RunFile], pipeline: &Pipeline, stages: &[StagePlan]) -> Vec<Diagnostic> {
    let (active, all) = (active_stages(stages), entries(pipeline).map(|e| (e.at, e)).collect::<HashMap<_, _>>());
    let of_stage = |s: &StagePlan| s.updaters.iter().chain(&s.analyzers).map(|c| (c.id, c.at)).collect::<Vec<_>>();
    let places: HashMap<u32, Position> = stages.iter().flat_map(of_stage).collect();
    let entry = |f: &RunFile| f.owner.id().and_then(|id| all.get(places.get(&id)?)).copied();
    let outputs = files.iter().filter(|f| f.output().is_some());
    let names: BTreeSet<(u32, &str)> = outputs.filter_map(|f| Some((f.owner.id()?, &*f.shown))).collect();
    let mut growing: Vec<&RunFile> = files.iter().filter(|f| f.is_output(OutputKind::Growing)).collect();
    growing.sort_by_key(|f| f.at);
    let mut errors = uneven(&growing, stages);
    let mut first: HashMap<PathBuf, &RunFile> = HashMap::new();
    for f in growing {
        let begun = *first.entry(f.target.path()).or_insert(f);
        if std::ptr::eq(begun, f) || !may_share(begun, f, &active) {
            continue;
        }
        let (Some(then), Some(now)) = (entry(begun), entry(f)) else { continue };
        let is_output = |file: &RunFile, v: Option<Value<'_>>| {
            v.zip(file.owner.id()).is_some_and(|(v, id)| names.contains(&(id, v.text().trim_matches('"'))))
        };
        let (a, b) = (Source::file(&then.text).value(), Source::file(&now.text).value());
        let other = other_values(a, b, |then, now| is_output(begun, then) || is_output(f, now));
        if !other.is_empty() {
            let (shown, begun, other, times) = (&f.shown, begun.described(), other.join(", "), TIMES.join(", "));
            errors.push(f.error(format!(
                "`{shown}` continues the file of {begun}, but {other}; only {times} and names of files may differ; choose another file"
            )));
        }
    }
    errors
}

/// Returns an error for each file that components with samples at equal intervals ([`galamost_plugin_api::component::Needs::lags`])
/// would continue at another interval. A single component is checked in `check/across/samples.rs`.
fn uneven(growing: &[&RunFile], stages: &[StagePlan]) -> Vec<Diagnostic> {
    let mut groups: BTreeMap<PathBuf, Vec<&RunFile>> = BTreeMap::new();
    for f in growing {
        groups.entry(f.target.path()).or_default().push(f);
    }
    groups.values().filter(|g| g.len() > 1).filter_map(|g| uneven_group(g, stages)).collect()
}

/// Returns an error for the first of these components that continues their file at another interval than the one before it.
fn uneven_group(files: &[&RunFile], stages: &[StagePlan]) -> Option<Diagnostic> {
    let writer = |s: &StagePlan| {
        let with_file =
            |a: &Arc<Component>| files.iter().find(|f| f.owner.id() == Some(a.id)).map(|f| (*f, a.needs.period));
        s.analyzers.iter().filter(|a| a.needs.lags).find_map(with_file)
    };
    let writers = stages.iter().filter(|s| s.stage.steps > 0).map(|s| (&s.stage, writer(s)));
    let mut writers = writers.skip_while(|(_, writer)| writer.is_none());
    let (first, begun) = writers.next()?;
    let (begun, every) = begun?;
    let mut gap: Option<&Stage> = None;
    for (stage, writer) in writers {
        let Some((f, period)) = writer else {
            gap = gap.or(Some(stage));
            continue;
        };
        let why = match gap {
            Some(gap) => format!("stage `{}` before stage `{}` does not write it", gap.name, stage.name),
            None if period != every => format!("writes every {period} steps instead of every {every}"),
            None if stage.dt != first.dt => {
                format!("`dt` is {} in stage `{}` and {} in stage `{}`", first.dt, first.name, stage.dt, stage.name)
            }
            None => continue,
        };
        return Some(f.error(format!(
            "`{}` continues the file of {}, but {why}; its frames are at equal intervals: choose another file, or a format that \
             stores the step of each frame",
            f.shown,
            begun.described()
        )));
    }
    None
}

/// Describes the parameters in which two components of one name differ, except their times and those that `may` differ.
pub fn other_values(
    then: Value<'_>,
    now: Value<'_>,
    may: impl Fn(Option<Value<'_>>, Option<Value<'_>>) -> bool,
) -> Vec<String> {
    let differ = fields(then.after_name(), now.after_name()).into_iter();
    let differ = differ.filter(|(name, then, now)| !TIMES.contains(&&**name) && !may(*then, *now));
    differ.flat_map(|(name, then, now)| differences(&name, "", then, now)).collect()
}
