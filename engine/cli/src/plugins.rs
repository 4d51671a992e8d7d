//! `galamost plugins`: what is loaded, and the page of a component.

use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_engine::pipeline::suggestion;
use galamost_engine::plan::Plan;
use galamost_engine::plugins::{Library, Registry};
use galamost_plugin_api::component::ComponentInfo;
use galamost_plugin_api::params::FieldDoc;
use serde_json::json;
use std::fmt::Write as _;

/// Prints the list of components, or the pages of one name.
///
/// # Errors
/// There is no such component.
pub fn plugins(registry: &Registry, name: Option<&str>, json: bool) -> Result<u8, Failure> {
    let all = registry.components();
    if json && name.is_none() {
        print!("{}", to_json(&all));
        return Ok(0);
    }
    let Some(name) = name else {
        let mut out = String::new();
        for (library, c) in &all {
            let first = c.doc.lines().next().unwrap_or_default();
            let _ = writeln!(out, "{:16} {:11} {first}  [{}]", c.name, c.kind.to_string(), library.record.name());
        }
        for (path, message) in registry.broken() {
            let _ = writeln!(out, "cannot be used: {}: {message}", path.display());
        }
        print!("{out}");
        return Ok(0);
    };
    let found: Vec<_> = all.iter().filter(|(_, c)| c.name == name).collect();
    if found.is_empty() {
        let mut names: Vec<_> = all.iter().map(|(_, c)| c.name.as_str()).collect();
        names.dedup();
        let message = format!("there is no component `{name}`; {}", suggestion(name, names.iter().copied()));
        return Err(Failure::Input(vec![Diagnostic::new("galamost plugins".as_ref(), None, message)]));
    }
    if json {
        let found: Vec<_> = found.into_iter().copied().collect();
        print!("{}", to_json(&found));
        return Ok(0);
    }
    for (library, c) in found {
        print!("{}", page(c));
        println!("  from {} {} ({})\n", library.record.name(), library.record.version(), library.path.display());
    }
    Ok(0)
}

/// Components with everything their pages say, as JSON.
fn to_json(list: &[(&Library, &ComponentInfo)]) -> String {
    let one = |(library, c): &(&Library, &ComponentInfo)| {
        json!({
            "name": c.name, "kind": c.kind.to_string(), "list": c.kind.list(), "plugin": library.record.name(),
            "version": library.record.version(), "doc": c.doc, "example": c.example(), "fields": c.fields,
        })
    };
    format!("{:#}\n", serde_json::Value::Array(list.iter().map(one).collect()))
}

/// The page of a component.
pub fn page(c: &ComponentInfo) -> String {
    let mut out = format!("{} ({}, stands in `{}`)\n\n", c.name, c.kind, c.kind.list());
    for line in c.doc.lines() {
        let _ = writeln!(out, "{}{line}", if line.is_empty() { "" } else { "  " });
    }
    if !c.fields.is_empty() {
        out.push_str("\n  Fields:\n");
        fields(&mut out, &c.fields, 4);
    }
    out.push('\n');
    out
}

fn fields(out: &mut String, list: &[FieldDoc], indent: usize) {
    for f in list {
        let pad = " ".repeat(indent);
        let mut facts = vec![f.kind.clone()];
        if !f.unit.is_empty() {
            facts.push(f.unit.clone());
        }
        if !f.range.is_empty() {
            facts.push(f.range.clone());
        }
        if !f.extensions.is_empty() {
            facts.push(format!(
                "files {}",
                f.extensions.iter().map(|e| format!("*.{e}")).collect::<Vec<_>>().join(", ")
            ));
        }
        facts.push(match &f.default {
            Some(d) => format!("default {d}"),
            None => "required".into(),
        });
        let _ = writeln!(out, "{pad}{}: {}", f.name, facts.join("; "));
        for line in f.doc.lines() {
            let _ = writeln!(out, "{pad}    {line}");
        }
        fields(out, &f.fields, indent + 4);
    }
}

/// One line about a plan that passed its check.
pub fn plan_summary(plan: &Plan) -> String {
    let s = &plan.snapshot;
    if !plan.pipeline.ensemble.is_empty() {
        let batches: u64 = plan.components.iter().map(|c| c.needs.batches).sum();
        let (samplers, plugins) = (plan.components.len(), plan.plugins.len());
        return format!("ok: {samplers} samplers of {plugins} plugins, {batches} batches");
    }
    let steps: u64 = plan.stages.iter().map(|p| p.stage.steps).sum();
    format!(
        "ok: {} particles, {} types, {} bonds, {} components of {} plugins, {steps} steps in {} stage(s)",
        s.len(),
        s.types.len(),
        s.bonds.len(),
        plan.components.len(),
        plan.plugins.len(),
        plan.stages.len()
    )
}
