//! Replicas: one pipeline for several runs that differ in values only.
//!
//! In the pipeline of replica number r (from 0), `Each([…])` is replaced by its value number r and `{replica}` by r; the seed
//! is that of the file plus r. Such a pipeline belongs to an ordinary run.

use super::overrides::{Edit, Origin, Overrides, Replacement, Source as EditSource, apply, replace};
use super::{Pipeline, body, folder_of};
use crate::diagnostic::{Diagnostic, Failure, counted};
use galamost_plugin_api::error::{InputError, Position};
use galamost_plugin_api::input;
use galamost_plugin_api::params::{Source, Value};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The name of a value that differs between replicas.
const EACH: &str = "Each";
/// The part of a text that stands for the number of the replica.
const REPLICA: &str = "{replica}";
/// The beginning of the first line of a replica's pipeline.
pub const REPLICA_MARK: &str = "// Replica ";
/// What precedes the checksum at the end of this line.
const CHECKSUM: &str = " Checksum: ";
/// Digits of the checksum.
const DIGITS: usize = 16;
/// The largest number of replicas. Each has a thread and open files.
pub const MAX_REPLICAS: u32 = 1024;

/// A value that differs between replicas: `Each([…])`.
struct Each<'a> {
    range: Range<usize>,
    at: Position,
    /// Offsets and texts.
    values: Vec<(usize, &'a str)>,
}

/// Returns the path of the pipeline of a replica: `sim.3.ron` for `sim.ron`.
pub fn replica_path(pipeline: &Path, replica: u32) -> PathBuf {
    pipeline.with_extension(format!("{replica}.ron"))
}

/// Reads the pipelines of all replicas, with the errors of their fields. Returns `None` if the file, `sweeps` and `replicas`
/// request none. `sweeps` have the form `path=[value, …]`, and `replicas` overrides the number in the file.
///
/// # Errors
/// Returns an error if the file cannot be read, is not RON, or has lists of different lengths.
pub fn read_replicas(
    path: &Path,
    overrides: &[String],
    sweeps: &[String],
    replicas: Option<u32>,
) -> Result<Option<Vec<(Pipeline, Vec<Diagnostic>)>>, Failure> {
    let text = input::text(path).map_err(|e| Failure::Input(vec![Diagnostic::new(path, e.at, e.message)]))?;
    let whole = body(&text);
    if whole.text().is_empty() || whole.check_syntax().is_err() {
        // reading it as a single pipeline reports the error
        return Ok(None);
    }
    let diagnostics =
        |list: Vec<InputError>| list.into_iter().map(|e| Diagnostic::new(path, e.at, e.message)).collect::<Vec<_>>();
    let fail = |list: Vec<InputError>| Failure::Input(diagnostics(list));
    let mut all: Vec<Replacement> = overrides.iter().map(|o| Replacement::set(o)).collect();
    for sweep in sweeps {
        let list = sweep.split_once('=').filter(|(_, values)| values.trim_start().starts_with('['));
        let Some((_, values)) = list else {
            return Err(fail(vec![InputError::new(format!("--sweep {sweep}: write it as path=[value, …]"))]));
        };
        all.push(Replacement::sweep(sweep, format!("{EACH}({values})")));
    }
    let (text, origin) = apply(&text, whole, &all).map_err(fail)?;
    let template = Template { path, text: &text, origin: &origin };
    let each = template.find_each().map_err(|e| template.fail(e))?;
    let field = template.field("replicas");
    let given = match (replicas, field) {
        (Some(n), _) => Some(n),
        (None, Some(v)) => Some(v.parse::<u32>().map_err(|e| template.fail(e))?),
        (None, None) => each.first().map(|e| e.values.len() as u32),
    };
    // the pipeline of one replica is an ordinary one
    let Some(n) = given.filter(|n| *n != 1 || replicas.is_some() || !each.is_empty()) else { return Ok(None) };
    if n == 0 || n > MAX_REPLICAS {
        let message = format!("{n} replicas; a run can have 1 to {MAX_REPLICAS}");
        let at = field.map(Value::at).filter(|_| replicas.is_none());
        return Err(template.fail(InputError { at, ..InputError::new(message) }));
    }
    let wrong = each.iter().filter(|e| e.values.len() != n as usize).map(|e| {
        let has = counted(e.values.len() as u64, "value");
        InputError::at(e.at, format!("`{EACH}` has {has}, but there are {}", counted(u64::from(n), "replica")))
    });
    let wrong: Vec<Diagnostic> = wrong.map(|e| template.locate(e)).collect();
    if !wrong.is_empty() {
        return Err(Failure::Input(wrong));
    }
    if folder_of(path).to_str().is_none() {
        return Err(fail(vec![InputError::new("the name of the folder is not UTF-8; rename the folder")]));
    }
    (0..n).map(|r| template.replica(r, &each)).collect::<Result<Vec<_>, Failure>>().map(Some)
}

/// The text that the pipelines of replicas are made from.
struct Template<'a> {
    path: &'a Path,
    text: &'a str,
    origin: &'a Overrides,
}

impl<'a> Template<'a> {
    /// Returns an error at its place in the file.
    fn locate(&self, e: InputError) -> Diagnostic {
        let mut d = Diagnostic::new(self.path, e.at, e.message);
        self.origin.locate(self.text, &mut d.file, &mut d.at);
        d
    }

    fn fail(&self, e: InputError) -> Failure {
        Failure::Input(vec![self.locate(e)])
    }

    /// Returns the value of a field of the pipeline.
    fn field(&self, name: &str) -> Option<Value<'a>> {
        let entries = body(self.text).entries().ok()?;
        entries.into_iter().find(|(k, _)| k.name == name).map(|(_, v)| v)
    }

    /// Returns all values that differ between replicas.
    fn find_each(&self) -> Result<Vec<Each<'a>>, InputError> {
        let whole = body(self.text);
        let mut found = vec![];
        let mut from = whole.offset();
        for (start, word) in words(self.text) {
            if word != EACH || start < from {
                continue;
            }
            let at = whole.place(start - whole.offset());
            let open = start + EACH.len();
            if !self.text[open..].trim_start().starts_with('(') {
                // a value of that name, as in `partners: Each`
                continue;
            }
            let wrong = || InputError::at(at, format!("expected `{EACH}([value, …])`, with a value for each replica"));
            let end = open + closing(&self.text[open..]).ok_or_else(wrong)?;
            // the text in parentheses begins at this position
            let inside = Source { text: &self.text[open..end], start: whole.place(open - whole.offset()) };
            let list = inside.value().elements()?;
            let [list] = list[..] else { return Err(wrong()) };
            let values = list.elements().map_err(|_| wrong())?;
            if values.is_empty() {
                return Err(wrong());
            }
            let values = values.into_iter().map(|v| (open + v.offset(), v.text())).collect();
            found.push(Each { range: start..end, at, values });
            from = end;
        }
        Ok(found)
    }

    /// Returns the pipeline of a replica.
    fn replica(&self, r: u32, each: &[Each<'a>]) -> Result<(Pipeline, Vec<Diagnostic>), Failure> {
        let number = r.to_string();
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let mark = format!("{REPLICA_MARK}{r} of {name}; `galamost --pipeline {name}` writes this file.");
        let mark = format!("{mark}{CHECKSUM}{}\n", "0".repeat(DIGITS));
        let mut edits = vec![Edit::new(0..0, mark, EditSource::At(0))];
        for e in each {
            let (at, value) = e.values[r as usize];
            edits.push(Edit::new(e.range.clone(), value.replace(REPLICA, &number), EditSource::At(at)));
        }
        let inside = |k: usize| each.iter().any(|e| e.range.contains(&k));
        for (k, _) in self.text.match_indices(REPLICA).filter(|(k, _)| !inside(*k)) {
            edits.push(Edit::new(k..k + REPLICA.len(), number.clone(), EditSource::At(k)));
        }
        let of = |v: Value<'_>| v.offset()..v.offset() + v.text().len();
        if let Some(v) = self.field("replicas") {
            edits.push(Edit::new(of(v), "1".into(), EditSource::At(v.offset())));
        }
        match self.field("seed") {
            Some(v) if !inside(v.offset()) => {
                if let Ok(seed) = v.parse::<u64>() {
                    let seed = seed.wrapping_add(r.into()).to_string();
                    edits.push(Edit::new(of(v), seed, EditSource::At(v.offset())));
                }
            }
            Some(_) => {}
            None => {
                let whole = body(self.text);
                let open = whole.offset() + whole.text().find('(').map_or(0, |n| n + 1);
                edits.push(Edit::new(open..open, format!("seed: {r}, "), EditSource::At(open)));
            }
        }
        edits.sort_by_key(|e| (e.range.start, e.range.end));
        let path = replica_path(self.path, r);
        let (mut text, mut overrides) = replace(self.text, edits);
        if let Some((at, checksum)) = checksum(&text) {
            text.replace_range(at, &checksum);
        }
        overrides.origin = Some(Box::new(Origin { path: self.path.into(), overrides: self.origin.clone() }));
        match Pipeline::parse_partially(&path, &text, &[]) {
            Ok((pipeline, errors)) => {
                let errors = errors.into_iter().map(|e| Diagnostic::new(&path, e.at, e.message)).collect();
                Ok((Pipeline { overrides, replica: Some(r), ..pipeline }, errors))
            }
            Err(errors) => Err(Failure::Input(
                errors
                    .into_iter()
                    .map(|e| {
                        let mut d = Diagnostic::new(&path, e.at, e.message);
                        overrides.locate(&text, &mut d.file, &mut d.at);
                        d
                    })
                    .collect(),
            )),
        }
    }
}

/// Returns where the pipeline of a replica has its checksum, and that of the other text.
fn checksum(text: &str) -> Option<(Range<usize>, String)> {
    let line = text.lines().next()?;
    let start = line.rfind(CHECKSUM)? + CHECKSUM.len();
    let rest = text.get(line.len()..).filter(|_| line.len() == start + DIGITS)?;
    let mut hash = blake3::Hasher::new();
    hash.update(&text.as_bytes()[..start]).update(rest.as_bytes());
    Some((start..line.len(), hash.finalize().to_hex()[..DIGITS].into()))
}

/// Returns whether the pipeline of a replica was edited after a run had written it. Those of earlier versions count as edited.
pub fn is_edited(text: &str) -> bool {
    checksum(text).is_none_or(|(at, checksum)| text[at] != checksum)
}

/// Returns the identifiers of a text with their offsets, without those in strings and comments.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut found = vec![];
    let mut k = 0;
    while k < text.len() {
        let rest = &text[k..];
        let first = rest.chars().next().map_or(1, char::len_utf8);
        let length = skipped(rest);
        if length > 0 {
            k += length;
        } else if rest.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            found.push((k, &rest[..end]));
            k += end;
        } else {
            k += first;
        }
    }
    found
}

/// Returns the length of the string or comment at the start of a text; 0 if there is none.
fn skipped(text: &str) -> usize {
    let until = |from: usize, end: &str| text[from..].find(end).map_or(text.len(), |n| from + n + end.len());
    if text.starts_with("//") {
        return until(2, "\n");
    }
    if text.starts_with("/*") {
        let (mut depth, mut k) = (1, 2);
        while depth > 0 && k < text.len() {
            let rest = &text[k..];
            let (step, change) = if rest.starts_with("/*") {
                (2, 1)
            } else if rest.starts_with("*/") {
                (2, -1)
            } else {
                (rest.chars().next().map_or(1, char::len_utf8), 0)
            };
            (k, depth) = (k + step, depth + change);
        }
        return k;
    }
    if let Some(raw) = text.strip_prefix('r') {
        let hashes = raw.bytes().take_while(|b| *b == b'#').count();
        if raw[hashes..].starts_with('"') {
            return until(2 + hashes, &format!("\"{}", "#".repeat(hashes)));
        }
    }
    if text.starts_with('"') {
        let mut escaped = false;
        for (k, c) in text.char_indices().skip(1) {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => return k + 1,
                _ => {}
            }
        }
        return text.len();
    }
    0
}

/// Returns the length of a text in parentheses, which may follow whitespace.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut k = 0;
    while k < text.len() {
        let rest = &text[k..];
        let length = skipped(rest);
        if length > 0 {
            k += length;
            continue;
        }
        let c = rest.chars().next()?;
        k += c.len_utf8();
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(k),
            ')' => depth = depth.checked_sub(1)?,
            c if depth == 0 && !c.is_whitespace() => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edited_pipeline_of_a_replica_is_recognized() {
        let f = tempfile::tempdir().expect("a folder");
        let path = f.path().join("p.ron");
        let initial = "Lattice(lattice: Sc, cells: [3, 3, 3], density: 0.5)";
        let text =
            format!("(seed: Each([3, 4]), device: Cpu, initial: [ {initial} ], stages: [ (steps: 10, dt: 0.01) ])");
        std::fs::write(&path, text).expect("written");
        let all = read_replicas(&path, &[], &[], None).ok().flatten().expect("replicas");
        let texts: Vec<String> = all.into_iter().map(|(pipeline, _)| pipeline.text).collect();
        assert_eq!(texts.len(), 2);
        for text in &texts {
            assert!(text.lines().next().is_some_and(|l| l.starts_with(REPLICA_MARK) && l.contains(CHECKSUM)), "{text}");
            assert!(!is_edited(text), "{text}");
            assert!(is_edited(&text.replace("device", "/* mine */ device")) && is_edited(&text.replace("1", "2")));
            assert!(is_edited(text.split_once('\n').expect("lines").1));
        }
    }
}
