//! `--set path=value`: replaces values of the pipeline file before it is read.

use crate::diagnostic::counted;
use galamost_plugin_api::error::{InputError, Position};
use galamost_plugin_api::params::Value;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

/// An option of the command line that replaces a value.
#[derive(Clone, Debug)]
pub(super) struct Replacement {
    /// Name of the option.
    name: &'static str,
    /// Its value: `path=…`.
    given: String,
    /// The new value, if it is not the rest of `given`.
    value: Option<String>,
}

impl Replacement {
    /// Returns `--set path=value`.
    pub fn set(given: &str) -> Self {
        Self { name: "--set", given: given.into(), value: None }
    }

    /// Returns `--sweep path=[value, …]`, which gives the path another value.
    pub fn sweep(given: &str, value: String) -> Self {
        Self { name: "--sweep", given: given.into(), value: Some(value) }
    }
}

impl std::fmt::Display for Replacement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.name, self.given)
    }
}

/// Blocks of settings that an option adds if the file has none: `neighbors.buffer=0.2` becomes `neighbors: (buffer: 0.2)`.
const BLOCKS: [&str; 3] = ["checkpoint", "exchange", "neighbors"];

/// Returns the text with every option applied. Paths have the form `stages[0].dt` or `forces[0].pairs[1].a`. Of several `--set`
/// with the same path the last one counts.
///
/// # Errors
/// Returns an error for each path that does not exist, and for each pair of options that would replace the same text.
pub(super) fn apply(
    text: &str,
    body: Value<'_>,
    options: &[Replacement],
) -> Result<(String, Overrides), Vec<InputError>> {
    let (mut errors, mut all) = (vec![], vec![]);
    for option in options {
        if let Err(message) = Located::find(body, option).and_then(|o| add(&mut all, o)) {
            errors.push(InputError::new(message));
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut edits: Vec<Edit> = vec![];
    // new blocks, with the options that give their fields
    let mut blocks: BTreeMap<&str, (usize, Vec<String>, Vec<String>)> = BTreeMap::new();
    for o in &all {
        let (new, option) = (o.new, o.option.to_string());
        match &o.target {
            Target::Value(v) => {
                edits.push(Edit::new(v.offset()..v.offset() + v.text().len(), new.into(), Source::Option(option)));
            }
            // insert a missing field before the others
            Target::Missing { open, field, block: None } => {
                edits.push(Edit::new(*open..*open, format!("{field}: {new}, "), Source::Option(option)));
            }
            Target::Missing { open, field, block: Some(block) } => {
                let (_, fields, options) = blocks.entry(block).or_insert((*open, vec![], vec![]));
                fields.push(format!("{field}: {new}"));
                options.push(option);
            }
        }
    }
    for (name, (open, fields, options)) in blocks {
        let new = format!("{name}: ({}), ", fields.join(", "));
        edits.push(Edit::new(open..open, new, Source::Option(options.join(" "))));
    }
    edits.sort_by(|a, b| (a.range.start, a.range.end, &a.new).cmp(&(b.range.start, b.range.end, &b.new)));
    Ok(replace(text, edits))
}

/// An option with the place that its path refers to.
struct Located<'a> {
    option: &'a Replacement,
    /// Names and numbers of the path. Two spellings of a path have the same ones.
    parts: Vec<String>,
    target: Target<'a>,
    /// The new value.
    new: &'a str,
}

impl<'a> Located<'a> {
    fn find(body: Value<'a>, option: &'a Replacement) -> Result<Self, String> {
        let given = option.given.split_once('=').filter(|(path, _)| !path.trim().is_empty());
        let (path, rest) = given.ok_or_else(|| format!("{option}: write it as path=value"))?;
        let (name, path, new) = (option.name, path.trim(), option.value.as_deref().unwrap_or(rest).trim());
        let value = galamost_plugin_api::params::Source::file(new).value();
        // an incomplete value would be reported at another place
        if let Err(e) = value.check_syntax() {
            // a bare word with other characters, such as the name of a file
            let word = new.starts_with(|c: char| c.is_alphabetic() || c == '/' || c == '.');
            let hint =
                if word && !new.contains(['(', '"']) { "; write text in quotes, as in 'name=\"x.csv\"'" } else { "" };
            return Err(format!("{name} {path}: {}{hint}", e.message));
        }
        // it would continue in the text that follows
        if value.text() != new {
            return Err(format!("{option}: a value cannot begin or end with a comment; remove the comment"));
        }
        let target = find(body, path).map_err(|message| format!("{option}: {message}"))?;
        let number = |part: &str| part.parse::<u64>().map_or_else(|_| part.into(), |n| n.to_string());
        let parts = path.split(['.', '[']).map(|part| number(part.trim().trim_end_matches(']'))).collect();
        Ok(Self { option, parts, target, new })
    }

    /// Returns the name of the option and its path.
    fn shown(&self) -> String {
        let path = self.option.given.split_once('=').map_or("", |(path, _)| path.trim());
        format!("{} {path}", self.option.name)
    }
}

/// Adds an option to those before it. A second `--set` with the same path replaces the first.
fn add<'a>(all: &mut Vec<Located<'a>>, new: Located<'a>) -> Result<(), String> {
    let Some(k) = all.iter().position(|o| o.parts.starts_with(&new.parts) || new.parts.starts_with(&o.parts)) else {
        all.push(new);
        return Ok(());
    };
    let other = &mut all[k];
    let both = format!("{} and {}", other.shown(), new.shown());
    if other.parts != new.parts {
        return Err(format!("{both}: one of these values is a part of the other; give both with one option"));
    }
    if other.option.value.is_some() || new.option.value.is_some() {
        return Err(format!("{both}: both options give the same value; remove one of them"));
    }
    *other = new;
    Ok(())
}

/// Applies sorted edits to a text.
pub(super) fn replace(text: &str, edits: Vec<Edit>) -> (String, Overrides) {
    let mut out = String::new();
    let mut done = 0;
    let mut made = Overrides { file: text.into(), edits: vec![], origin: None };
    for edit in edits {
        let Range { start, end } = edit.range;
        out.push_str(&text[done..start.max(done)]);
        made.edits.push((out.len(), Edit { range: start..end, ..edit.clone() }));
        out.push_str(&edit.new);
        done = end.max(done);
    }
    out.push_str(&text[done..]);
    (out, made)
}

/// Where the pieces of a text with overrides come from.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The text before.
    file: String,
    /// Edits, and where each begins in the new text.
    edits: Vec<(usize, Edit)>,
    /// Where the text before comes from, if it is not that of the file.
    pub(super) origin: Option<Box<Origin>>,
}

/// Where a text comes from.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub path: PathBuf,
    pub overrides: Overrides,
}

/// A piece of a text and what replaces it.
#[derive(Clone, Debug)]
pub(super) struct Edit {
    pub range: Range<usize>,
    new: String,
    source: Source,
}

/// What a new piece of a text comes from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// An option of the command line.
    Option(String),
    /// A place in the text before.
    At(usize),
}

impl Edit {
    pub fn new(range: Range<usize>, new: String, source: Source) -> Self {
        Self { range, new, source }
    }
}

impl Overrides {
    /// Moves a place in the text to the place in the file, or to the option that has written it.
    pub fn locate(&self, text: &str, file: &mut PathBuf, at: &mut Option<Position>) {
        if self.edits.is_empty() && self.origin.is_none() {
            return;
        }
        if let Some(offset) = at.and_then(|at| offset_of(text, at)) {
            let before = match self.edits.iter().rev().find(|(begin, _)| *begin <= offset) {
                Some((begin, edit)) if offset < begin + edit.new.len() => match &edit.source {
                    Source::Option(option) => {
                        (*file, *at) = (option.into(), None);
                        return;
                    }
                    Source::At(place) => *place,
                },
                Some((begin, edit)) => edit.range.end + offset - begin - edit.new.len(),
                None => offset,
            };
            *at = Some(position_of(&self.file, before));
        }
        if let Some(origin) = &self.origin {
            file.clone_from(&origin.path);
            origin.overrides.locate(&self.file, file, at);
        }
    }
}

/// Returns the byte offset of a position.
fn offset_of(text: &str, at: Position) -> Option<usize> {
    let line = (at.line as usize).checked_sub(1)?;
    let begin: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let column = (at.column as usize).checked_sub(1)?;
    Some(begin + text.get(begin..)?.chars().take(column).map(char::len_utf8).sum::<usize>())
}

/// Returns the position of a byte offset.
fn position_of(text: &str, offset: usize) -> Position {
    let before = text.get(..offset).unwrap_or(text);
    let last = before.rsplit('\n').next().unwrap_or_default();
    let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
    Position { line: line as u32, column: last.chars().count() as u32 + 1 }
}

/// What a path refers to.
enum Target<'a> {
    Value(Value<'a>),
    /// A field that is absent.
    Missing {
        /// Offset after the parenthesis of the value that it belongs to.
        open: usize,
        field: String,
        /// The block that the field belongs to, if the block is absent too.
        block: Option<String>,
    },
}

fn find<'a>(body: Value<'a>, path: &str) -> Result<Target<'a>, String> {
    let mut here = body;
    let parts: Vec<&str> = path.split('.').collect();
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    for (depth, part) in parts.iter().enumerate() {
        let (name, indices) = part.split_once('[').map_or((*part, ""), |(n, i)| (n, i));
        let name = name.trim();
        if !is_name(name) {
            return Err(format!(
                "`{name}` is not the name of a field; a path has names and numbers, as in `stages[0].dt`"
            ));
        }
        let fields = here.entries().map_err(|e| match (depth.checked_sub(1), here.text().chars().next()) {
            (Some(before), Some('[' | '{')) => without_number(here, parts[before], &parts[depth..]),
            _ => e.message,
        })?;
        let Some((_, value)) = fields.iter().find(|(k, _)| k.name == name) else {
            let open = here.text().find('(').map(|n| here.offset() + n + 1).filter(|_| indices.is_empty());
            match (open, &parts[depth + 1..]) {
                (Some(open), []) => return Ok(Target::Missing { open, field: name.into(), block: None }),
                (Some(open), [field]) if depth == 0 && BLOCKS.contains(&name) && is_name(field.trim()) => {
                    return Ok(Target::Missing { open, field: field.trim().into(), block: Some(name.into()) });
                }
                _ => {}
            }
            let names: Vec<_> = fields.iter().map(|(k, _)| k.name.to_string()).collect();
            return Err(format!("there is no field `{name}`; the fields are {}", names.join(", ")));
        };
        here = *value;
        for index in indices.split('[').filter(|i| !i.is_empty()) {
            let index = index.trim().trim_end_matches(']');
            let n: usize = index.parse().map_err(|_| format!("`[{index}]` must be a number counted from 0"))?;
            let elements = match here.elements() {
                Ok(list) => list,
                Err(_) => here.map().map_err(|e| e.message)?.into_iter().map(|(_, v)| v).collect(),
            };
            here = *elements
                .get(n)
                .ok_or_else(|| format!("`{name}` has {}, counted from 0", counted(elements.len() as u64, "element")))?;
        }
    }
    Ok(Target::Value(here))
}

/// Returns the error of a path that names a list or a map without the number of an element. `rest` is what follows its name.
fn without_number(list: Value<'_>, name: &str, rest: &[&str]) -> String {
    // the name of a component is no part of a path
    let elements = list.elements().unwrap_or_default();
    let named = rest.first().and_then(|first| elements.iter().position(|e| e.name() == Some(first.trim())));
    let rest = if named.is_some() { &rest[1..] } else { rest };
    let meant = std::iter::once(format!("{name}[{}]", named.unwrap_or(0))).chain(rest.iter().map(|r| r.to_string()));
    let meant = meant.collect::<Vec<_>>().join(".");
    let what = if list.text().starts_with('[') { "a list" } else { "a map" };
    format!("`{name}` is {what}: select an element by its number, from 0, as in `{meant}`")
}

#[cfg(test)]
mod tests {
    use crate::pipeline::Pipeline;
    use std::path::Path;

    const TEXT: &str = "(seed: 1, initial: [], forces: [Dpd(r_cut: 1.0, pairs: {(\"A\", \"A\"): (a: 25.0)})], stages: [(steps: 10, dt: 0.01)])";

    fn set(overrides: &[&str]) -> Result<Pipeline, Vec<galamost_plugin_api::error::InputError>> {
        let overrides: Vec<_> = overrides.iter().map(|s| s.to_string()).collect();
        Pipeline::parse(Path::new("x.ron"), TEXT, &overrides)
    }

    #[test]
    fn values_are_replaced_and_fields_added() {
        let p = set(&["stages[0].dt=0.02", "seed = 7", "forces[0].pairs[0].a=30", "device=Cpu"]).expect("valid");
        assert_eq!((p.stages[0].dt, p.seed), (0.02, 7));
        assert_eq!(p.forces[0].text, "Dpd(r_cut: 1.0, pairs: {(\"A\", \"A\"): (a: 30)})");
        assert_eq!(p.device, crate::pipeline::DeviceChoice::Cpu);
    }

    /// Errors in the value of an option name the option; those elsewhere have their place in the file.
    #[test]
    fn errors_are_located() {
        let text = "(seed: 1,\n initial: [], stages: [\n  (steps: 10, dt: 0.01), (steps: x, dt: 1.0)])";
        let options = ["stages[0].steps=1000000".to_string(), "device=Cpu".into()];
        let (p, errors) = Pipeline::parse_partially(Path::new("x.ron"), text, &options).expect("RON");
        let located: Vec<String> = errors
            .into_iter()
            .map(|e| p.locate(crate::diagnostic::Diagnostic::new(&p.path, e.at, e.message)).to_string())
            .collect();
        assert!(located[0].starts_with("x.ron:3:34: expected a non-negative integer, found `x`"), "{located:?}");
        let options = ["stages[1].steps=5".to_string(), "stages[0].dt=-2".into(), "seed=2".into()];
        let (p, errors) = Pipeline::parse_partially(Path::new("x.ron"), text, &options).expect("RON");
        let located: Vec<String> = errors
            .into_iter()
            .map(|e| p.locate(crate::diagnostic::Diagnostic::new(&p.path, e.at, e.message)).to_string())
            .collect();
        assert!(located[0].starts_with("--set stages[0].dt=-2: -2 is not allowed here"), "{located:?}");
        assert_eq!(located.len(), 1);
    }

    #[test]
    fn the_last_value_of_a_path_counts() {
        let p = set(&[
            "seed=2",
            "stages[0].dt=0.5",
            "precision=Double",
            "seed=3",
            "stages[00] . dt=0.25",
            "precision=Single",
        ]);
        let p = p.expect("valid");
        assert_eq!((p.seed, p.stages[0].dt, p.precision.name()), (3, 0.25, "Single"));
    }

    #[test]
    fn absent_blocks_are_added() {
        let p = set(&["neighbors.buffer=0.5", "checkpoint.every=5", "neighbors.buffer=0.25", "checkpoint.keep=3"]);
        let p = p.expect("valid");
        assert_eq!((p.neighbors.buffer, p.checkpoint.every, p.checkpoint.keep), (Some(0.25), Some(5), 3));
    }

    #[test]
    fn wrong_paths_are_errors() {
        for (o, message) in [
            ("stages[3].dt=1", "1 element"),
            ("foo.bar=1", "there is no field `foo`"),
            ("seed", "path=value"),
            (
                "forces.Dpd.r_cut=1",
                "`forces` is a list: select an element by its number, from 0, as in `forces[0].r_cut`",
            ),
            ("stages.dt=1", "as in `stages[0].dt`"),
            ("=3", "--set =3: write it as path=value"),
            ("stages[0].=3", "--set stages[0].=3: `` is not the name of a field"),
            ("seed=3 // x", "--set seed=3 // x: a value cannot begin or end with a comment"),
        ] {
            let e = set(&[o]).expect_err(o);
            assert!(e[0].message.contains(message), "{}", e[0].message);
        }
    }
}
