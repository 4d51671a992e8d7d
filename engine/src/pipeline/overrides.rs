//! `--set path=value`: replaces values of the pipeline file before it is read.

use crate::diagnostic::counted;
use galamost_plugin_api::error::{InputError, Position};
use galamost_plugin_api::params::Value;
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

/// Returns the text with every option applied. Paths have the form `stages[0].dt` or `forces[0].pairs[1].a`.
///
/// # Errors
/// Returns an error for each path that does not exist.
pub(super) fn apply(
    text: &str,
    body: Value<'_>,
    options: &[Replacement],
) -> Result<(String, Overrides), Vec<InputError>> {
    let mut errors = vec![];
    let mut edits: Vec<Edit> = vec![];
    let edit = |range, new, option: &Replacement| Edit::new(range, new, Source::Option(option.to_string()));
    for o in options {
        let Some((path, rest)) = o.given.split_once('=') else {
            errors.push(InputError::new(format!("{o}: write it as path=value")));
            continue;
        };
        let new = o.value.as_deref().unwrap_or(rest);
        // an incomplete value would be reported at another place
        if let Err(e) = galamost_plugin_api::params::Source::file(new.trim()).value().check_syntax() {
            // a bare word with other characters, such as the name of a file
            let word = new.trim().starts_with(|c: char| c.is_alphabetic() || c == '/' || c == '.');
            let hint =
                if word && !new.contains(['(', '"']) { "; write text in quotes, as in 'name=\"x.csv\"'" } else { "" };
            errors.push(InputError::new(format!("{} {}: {}{hint}", o.name, path.trim(), e.message)));
            continue;
        }
        match find(body, path.trim()) {
            Ok(Target::Value(v)) => edits.push(edit(v.offset()..v.offset() + v.text().len(), new.trim().into(), o)),
            Ok(Target::Missing(v, field)) => {
                // insert a missing field before the others
                let open = v.offset() + v.text().find('(').map_or(v.text().len(), |n| n + 1);
                edits.push(edit(open..open, format!("{field}: {}, ", new.trim()), o));
            }
            Err(message) => errors.push(InputError::new(format!("{o}: {message}"))),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    edits.sort_by(|a, b| (a.range.start, a.range.end, &a.new).cmp(&(b.range.start, b.range.end, &b.new)));
    Ok(replace(text, edits))
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

enum Target<'a> {
    Value(Value<'a>),
    Missing(Value<'a>, String),
}

fn find<'a>(body: Value<'a>, path: &str) -> Result<Target<'a>, String> {
    let mut here = body;
    let parts: Vec<&str> = path.split('.').collect();
    for (depth, part) in parts.iter().enumerate() {
        let (name, indices) = part.split_once('[').map_or((*part, ""), |(n, i)| (n, i));
        let fields = here.entries().map_err(|e| match (depth.checked_sub(1), here.text().chars().next()) {
            (Some(before), Some('[' | '{')) => {
                let list = parts[before];
                format!("`{list}` has several elements: select one by its number, from 0, as in `{list}[0].{part}`")
            }
            _ => e.message,
        })?;
        let Some((_, value)) = fields.iter().find(|(k, _)| k.name == name) else {
            let last = depth + 1 == parts.len() && indices.is_empty();
            if last && here.text().contains('(') {
                return Ok(Target::Missing(here, name.into()));
            }
            let names: Vec<_> = fields.iter().map(|(k, _)| k.name.to_string()).collect();
            return Err(format!("there is no field `{name}`; the fields are {}", names.join(", ")));
        };
        here = *value;
        for index in indices.split('[').filter(|i| !i.is_empty()) {
            let index = index.trim_end_matches(']');
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
    fn wrong_paths_are_errors() {
        for (o, message) in [
            ("stages[3].dt=1", "1 element"),
            ("foo.bar=1", "there is no field `foo`"),
            ("seed", "path=value"),
            (
                "forces.Dpd.r_cut=1",
                "`forces` has several elements: select one by its number, from 0, as in `forces[0].Dpd`",
            ),
        ] {
            let e = set(&[o]).expect_err(o);
            assert!(e[0].message.contains(message), "{}", e[0].message);
        }
    }
}
