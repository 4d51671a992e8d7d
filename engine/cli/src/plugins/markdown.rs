//! `galamost plugins --markdown`: one Markdown page per component, an index and the entries of an mdBook's table of
//! contents.

use super::files;
use crate::common::{OverwriteArgs, file_failure, write_file};
use galamost_engine::diagnostic::Failure;
use galamost_engine::plugins::Library;
use galamost_plugin_api::component::{ComponentInfo, Kind};
use galamost_plugin_api::params::FieldDoc;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The folder of the pages in the book, as `SUMMARY.md` links to them.
const BOOK_FOLDER: &str = "reference/components";

/// Writes the pages of components, `README.md` and `SUMMARY.md`. Returns the number of pages.
///
/// # Errors
/// Returns an error if a file must not be replaced or cannot be written.
pub(super) fn write(
    components: &[(&Library, &ComponentInfo)],
    folder: &Path,
    overwrite: OverwriteArgs,
) -> Result<usize, Failure> {
    std::fs::create_dir_all(folder).map_err(|e| file_failure(folder, e))?;
    let mut sorted = components.to_vec();
    sorted.sort_by(|(_, a), (_, b)| (position(a.kind), &a.name).cmp(&(position(b.kind), &b.name)));
    let mut pages: Vec<(PathBuf, String)> = vec![];
    let mut summary = String::new();
    for (library, c) in &sorted {
        let _ = writeln!(summary, "  - [{}]({BOOK_FOLDER}/{})", c.name, file_name(c));
        pages.push((folder.join(file_name(c)), page(library, c)));
    }
    pages.push((folder.join("SUMMARY.md"), summary));
    pages.push((folder.join("README.md"), index(&sorted)));
    pages.iter().try_for_each(|(file, _)| overwrite.check(file))?;
    pages.iter().try_for_each(|(file, text)| write_file(file, text))?;
    Ok(sorted.len())
}

/// Returns the position of a kind in [`Kind::ALL`].
fn position(kind: Kind) -> usize {
    Kind::ALL.iter().position(|k| *k == kind).unwrap_or(Kind::ALL.len())
}

/// Returns the heading of a kind in the index.
fn plural(kind: Kind) -> &'static str {
    match kind {
        Kind::Generator => "Generators",
        Kind::Pair => "Pair potentials",
        Kind::Bonded => "Bonded potentials",
        Kind::Force => "Other forces",
        Kind::Integrator => "Integrators",
        Kind::Updater => "Updaters",
        Kind::Analyzer => "Analyzers",
        Kind::Sampler => "Samplers",
    }
}

/// Returns the devices that execute components of a kind.
fn devices(kind: Kind) -> &'static str {
    match kind {
        Kind::Generator => "CPU (before the run)",
        _ => "CPU, CUDA",
    }
}

/// Converts `MdScfForce` to `md-scf-force` and `FENEBond` to `fene-bond`.
fn kebab_case(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (k, c) in chars.iter().enumerate() {
        let starts_word = k > 0
            && c.is_uppercase()
            && (!chars[k - 1].is_uppercase() || chars.get(k + 1).is_some_and(|next| next.is_lowercase()));
        if starts_word {
            out.push('-');
        }
        out.extend(c.to_lowercase());
    }
    out
}

/// Returns the file name of a page: `pair-lennard-jones.md`.
fn file_name(c: &ComponentInfo) -> String {
    format!("{}-{}.md", c.kind.to_string().to_lowercase(), kebab_case(&c.name))
}

/// Returns the index: a table per kind.
fn index(sorted: &[(&Library, &ComponentInfo)]) -> String {
    let mut out = String::from("# Components\n");
    for kind in Kind::ALL {
        let mut of_kind = sorted.iter().filter(|(_, c)| c.kind == kind).peekable();
        if of_kind.peek().is_none() {
            continue;
        }
        let _ = writeln!(out, "\n## {}\n\nListed in `{}`.\n", plural(kind), kind.list());
        out.push_str("| component | description | plugin |\n|---|---|---|\n");
        for (library, c) in of_kind {
            let summary = cell(&first_sentence(&c.doc));
            let _ = writeln!(out, "| [{}]({}) | {summary} | {} |", c.name, file_name(c), library.record.name());
        }
    }
    out
}

/// Returns the page of a component.
fn page(library: &Library, c: &ComponentInfo) -> String {
    let (name, version) = (library.record.name(), library.record.version());
    let mut out = format!("# {}\n\n| kind | list in the pipeline | plugin | devices |\n|---|---|---|---|\n", c.name);
    let _ = writeln!(out, "| {} | `{}` | {name} {version} | {} |\n", c.kind, c.kind.list(), devices(c.kind));
    let _ = writeln!(out, "{}", text(&without_example(&c.doc)));
    if let Some(example) = c.example() {
        let _ = writeln!(out, "\n## Example\n\n```ron,fragment\n{example}\n```");
    }
    if !c.fields.is_empty() {
        out.push_str("\n## Fields\n\n");
        write_table(&mut out, &c.fields);
        write_nested(&mut out, &c.fields, "");
    }
    out
}

/// Removes the first `ron` block, which [`ComponentInfo::example`] returns; marks further blocks as fragments.
fn without_example(doc: &str) -> String {
    let Some((before, rest)) = doc.split_once("```ron\n") else { return doc.trim().into() };
    let after = rest.split_once("```").map_or("", |(_, after)| after);
    let (before, after) = (before.trim(), after.trim());
    let gap = if after.is_empty() { "" } else { "\n\n" };
    format!("{before}{gap}{}", after.replace("```ron\n", "```ron,fragment\n"))
}

/// Escapes `<` outside of code, where Markdown would read it as HTML.
fn text(doc: &str) -> String {
    let (mut out, mut fenced) = (String::new(), false);
    for line in doc.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let escaped = if fenced { line.to_string() } else { escape_html(line) };
        let _ = writeln!(out, "{}", escaped.trim_end());
    }
    out.trim_end().into()
}

/// Escapes `<` outside of backticks.
fn escape_html(line: &str) -> String {
    let parts = line.split('`').enumerate();
    parts
        .map(|(k, part)| if k % 2 == 0 { part.replace('<', "&lt;") } else { part.into() })
        .collect::<Vec<_>>()
        .join("`")
}

/// Returns the first sentence of a page.
pub(crate) fn first_sentence(doc: &str) -> String {
    let paragraph: Vec<&str> = doc.lines().take_while(|l| !l.trim().is_empty()).map(str::trim).collect();
    let paragraph = paragraph.join(" ");
    match paragraph.split_once(". ") {
        Some((first, _)) => format!("{first}."),
        None => paragraph,
    }
}

/// Returns a default as code, or as text if it is a description in words.
fn default_cell(default: &str) -> String {
    let is_text =
        default.contains('`') || default.contains(' ') && default.chars().all(|c| c.is_alphabetic() || c == ' ');
    if is_text { default.into() } else { format!("`{}`", default.replace('|', "\\|")) }
}

/// Returns a text as one table cell.
fn cell(text: &str) -> String {
    escape_html(&text.split_whitespace().collect::<Vec<_>>().join(" ")).replace('|', "\\|")
}

/// Writes the table of fields of one struct.
fn write_table(out: &mut String, fields: &[FieldDoc]) {
    out.push_str("| field | type | unit | range | default | description |\n|---|---|---|---|---|---|\n");
    for f in fields {
        let default = f.default.as_ref().map_or("required".into(), |d| default_cell(d));
        let mut description = cell(&f.doc);
        if let Some(files) = files(f) {
            let _ = write!(description, " Accepts {}.", cell(&files.replace("*.", "\\*.")));
        }
        if !f.fields.is_empty() {
            let _ = write!(description, " See the table `{}` below.", f.name);
        }
        let (kind, unit, range) = (cell(&f.kind), cell(&f.unit), cell(&f.range));
        let _ = writeln!(out, "| `{}` | {kind} | {unit} | {range} | {default} | {} |", f.name, description.trim());
    }
}

/// Writes the tables of nested structs.
fn write_nested(out: &mut String, fields: &[FieldDoc], parent: &str) {
    for f in fields.iter().filter(|f| !f.fields.is_empty()) {
        let path = format!("{parent}{}", f.name);
        let _ = writeln!(out, "\n### `{path}`\n");
        write_table(out, &f.fields);
        write_nested(out, &f.fields, &format!("{path}."));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_kebab_case() {
        for (name, kebab) in [
            ("LennardJones", "lennard-jones"),
            ("Dpd", "dpd"),
            ("FENEBond", "fene-bond"),
            ("RotationalMtkNpt", "rotational-mtk-npt"),
            ("Pair2", "pair2"),
        ] {
            assert_eq!(kebab_case(name), kebab);
        }
    }

    #[test]
    fn text_is_escaped_outside_of_code() {
        assert_eq!(text("a <b> `<c>`\n```\n<d>\n```\n<e>"), "a &lt;b> `<c>`\n```\n<d>\n```\n&lt;e>");
        assert_eq!(cell("a\n| b"), "a \\| b");
        assert_eq!(first_sentence("A pair\npotential. More.\n\nOther."), "A pair potential.");
        assert_eq!((default_cell("as above"), default_cell("[0.0, 1.0]")), ("as above".into(), "`[0.0, 1.0]`".into()));
        assert_eq!(without_example("Sum.\n\n```ron\nX()\n```\n\nMore."), "Sum.\n\nMore.");
    }
}
