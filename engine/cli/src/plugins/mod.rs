//! `galamost plugins`: lists components, prints their pages, and writes them as JSON or Markdown.

mod markdown;

pub(crate) use markdown::first_sentence;

use crate::common::{Context, OverwriteArgs, input_error};
use crate::terminal::print;
use clap::Args;
use galamost_engine::diagnostic::{Failure, counted};
use galamost_engine::pipeline::suggestion;
use galamost_engine::plugins::{Library, Registry};
use galamost_plugin_api::component::ComponentInfo;
use galamost_plugin_api::params::FieldDoc;
use serde_json::json;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Options of `galamost plugins`.
#[derive(Args, Debug)]
pub(crate) struct PluginsArgs {
    /// Print the page of this component: formula, fields, units and defaults.
    name: Option<String>,
    /// Print JSON, for editors.
    #[arg(long)]
    json: bool,
    /// Write a Markdown page for every component into this folder, with an index (README.md) and the list entries of an
    /// mdBook (SUMMARY.md).
    #[arg(long, value_name = "DIR", conflicts_with_all = ["name", "json"])]
    markdown: Option<PathBuf>,
    #[command(flatten)]
    overwrite: OverwriteArgs,
}

/// Runs the command.
///
/// # Errors
/// Returns an error if there is no such component or a page cannot be written.
pub(crate) fn run(args: &PluginsArgs, context: &Context) -> Result<u8, Failure> {
    let registry = context.registry();
    if let Some(folder) = &args.markdown {
        let pages = markdown::write(&registry.components(), folder, args.overwrite)?;
        print(format!("{}: {}\n", folder.display(), counted(pages as u64, "page")))?;
        return Ok(0);
    }
    let found = match &args.name {
        Some(name) => find(&registry, name)?,
        None => registry.components(),
    };
    if args.json {
        print(to_json(&found))?;
        return Ok(0);
    }
    if args.name.is_none() {
        print(overview(&registry))?;
        return Ok(0);
    }
    for (library, c) in found {
        let (name, version) = (library.record.name(), library.record.version());
        print(format!("{}  from {name} {version} ({})\n\n", page(c), library.path.display()))?;
    }
    Ok(0)
}

/// Finds the components of a name; a reader and a writer of a format may share it.
fn find<'r>(registry: &'r Registry, name: &str) -> Result<Vec<(&'r Library, &'r ComponentInfo)>, Failure> {
    let all = registry.components();
    let found: Vec<_> = all.iter().filter(|(_, c)| c.name == name).copied().collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let mut names: Vec<_> = all.iter().map(|(_, c)| c.name.as_str()).collect();
    names.dedup();
    let message = format!("unknown component `{name}`; {}", suggestion(name, names.iter().copied()));
    Err(input_error("galamost plugins", message))
}

/// Lists all components, one per line, and the plugins that cannot be loaded.
fn overview(registry: &Registry) -> String {
    let mut out = String::new();
    for (library, c) in registry.components() {
        let summary = first_sentence(&c.doc);
        let _ = writeln!(out, "{:16} {:11} {summary}  [{}]", c.name, c.kind.to_string(), library.record.name());
    }
    for (path, message) in registry.broken() {
        let _ = writeln!(out, "cannot be loaded: {}: {message}", path.display());
    }
    out
}

/// Returns components with their pages and fields as JSON.
pub fn to_json(list: &[(&Library, &ComponentInfo)]) -> String {
    let one = |(library, c): &(&Library, &ComponentInfo)| {
        json!({
            "name": c.name, "kind": c.kind.to_string(), "list": c.kind.list(), "plugin": library.record.name(),
            "version": library.record.version(), "doc": c.doc, "example": c.example(), "fields": c.fields,
        })
    };
    format!("{:#}\n", serde_json::Value::Array(list.iter().map(one).collect()))
}

/// Returns the page of a component as text for the terminal.
pub fn page(c: &ComponentInfo) -> String {
    let mut out = format!("{} ({}, listed in `{}`)\n\n", c.name, c.kind, c.kind.list());
    for line in c.doc.lines() {
        let _ = writeln!(out, "{}{line}", if line.is_empty() { "" } else { "  " });
    }
    if !c.fields.is_empty() {
        out.push_str("\n  Fields:\n");
        write_fields(&mut out, &c.fields, 4);
    }
    out.push('\n');
    out
}

/// Writes fields and the fields of nested structs below them.
fn write_fields(out: &mut String, list: &[FieldDoc], indent: usize) {
    for f in list {
        let pad = " ".repeat(indent);
        let mut facts = vec![f.kind.clone()];
        facts.extend([&f.unit, &f.range].into_iter().filter(|text| !text.is_empty()).cloned());
        facts.extend(files(f));
        facts.push(match &f.default {
            Some(d) => format!("default {d}"),
            None => "required".into(),
        });
        let _ = writeln!(out, "{pad}{}: {}", f.name, facts.join("; "));
        for line in f.doc.lines() {
            let _ = writeln!(out, "{pad}    {line}");
        }
        write_fields(out, &f.fields, indent + 4);
    }
}

/// Returns the file names that a field accepts: `files *.xml, *.gsd`.
fn files(f: &FieldDoc) -> Option<String> {
    let patterns: Vec<String> = f.extensions.iter().map(|e| format!("*.{e}")).collect();
    (!patterns.is_empty()).then(|| format!("files {}", patterns.join(", ")))
}
