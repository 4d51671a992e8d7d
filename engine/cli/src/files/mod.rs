//! Files of particles outside of a run: which component reads or writes a file, and reading one into a state.
//!
//! No format is known here. Components say on their field `file` which endings they serve, and are made from a piece of
//! pipeline text as in a run.

mod convert;
mod info;
mod writer;

pub(crate) use convert::ConvertArgs;
pub(crate) use convert::run as convert;
pub(crate) use info::InfoArgs;
pub(crate) use info::run as info;
pub use writer::Writer;

use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_engine::pipeline::Entry;
use galamost_engine::plugins::{Component, Library, Registry};
use galamost_plugin_api::component::{ComponentInfo, Kind};
use galamost_plugin_api::error::{Error, Position};
use galamost_plugin_api::generator::GeneratorContext;
use galamost_plugin_api::params::FieldDoc;
use galamost_plugin_api::snapshot::Snapshot;
use std::path::{Path, PathBuf};

/// Endings of compressed files, which readers look through.
const COMPRESSED: [&str; 2] = [".xz", ".gz"];

/// The field of a component that names its file.
fn file_field(c: &ComponentInfo) -> Option<&FieldDoc> {
    c.fields.iter().find(|f| !f.extensions.is_empty())
}

fn has_field(c: &ComponentInfo, name: &str) -> bool {
    c.fields.iter().any(|f| f.name == name)
}

/// A mistake that belongs to a file as a whole.
pub(crate) fn about(path: &Path, message: impl Into<String>) -> Failure {
    Failure::Input(vec![Diagnostic::new(path, None, message)])
}

/// The component that reads (a generator) or writes (an analyzer) files whose names end like this one.
///
/// # Errors
/// There is none; with all endings that are known.
pub fn component_for<'r>(
    path: &Path,
    kind: Kind,
    registry: &'r Registry,
) -> Result<(&'r Library, &'r ComponentInfo), Failure> {
    let mut name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    if kind == Kind::Generator
        && let Some(inner) = COMPRESSED.iter().find_map(|e| name.strip_suffix(e))
    {
        name = inner.to_string();
    }
    let all: Vec<_> = registry.components().into_iter().filter(|(_, c)| c.kind == kind).collect();
    let ends = |e: &String| name.strip_suffix(e.as_str()).is_some_and(|rest| rest.ends_with('.'));
    let found = all.iter().find(|(_, c)| file_field(c).is_some_and(|f| f.extensions.iter().any(ends)));
    found.copied().ok_or_else(|| {
        let one = |c: &ComponentInfo| Some(format!("*.{} ({})", file_field(c)?.extensions.join(", *."), c.name));
        let known: Vec<String> = all.iter().filter_map(|(_, c)| one(c)).collect();
        let what = if kind == Kind::Generator { "reads" } else { "writes" };
        let known = if known.is_empty() { "no plugin does".into() } else { format!("known are {}", known.join(", ")) };
        about(path, format!("no component {what} files whose names end like this; {known}"))
    })
}

/// The generator or analyzer of this name, which must have a file.
///
/// # Errors
/// There is none.
fn component_named<'r>(
    name: &str,
    path: &Path,
    kind: Kind,
    registry: &'r Registry,
) -> Result<(&'r Library, &'r ComponentInfo), Failure> {
    let found = registry.find(kind, name).filter(|(_, c)| file_field(c).is_some());
    found.ok_or_else(|| {
        let all = registry.components();
        let known: Vec<&str> = all
            .iter()
            .filter(|(_, c)| c.kind == kind && file_field(c).is_some())
            .map(|(_, c)| c.name.as_str())
            .collect();
        about(path, format!("`{name}` is no {kind} of files; known are {}", known.join(", ")))
    })
}

/// What a component said about a file, as the user reads it. Places in `text`, which the user has not seen, are left out.
pub(crate) fn told(path: &Path, name: &str, e: Error) -> Failure {
    match e {
        Error::Input(list) => {
            let one = |e: galamost_plugin_api::error::InputError| match e.file {
                Some(file) => Diagnostic { file, at: e.at, component: Some(name.into()), message: e.message },
                None => Diagnostic { file: path.into(), at: None, component: Some(name.into()), message: e.message },
            };
            Failure::Input(list.into_iter().map(one).collect())
        }
        other => other.into(),
    }
}

/// A file that frames are read from.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    /// Name of the component.
    pub format: String,
    component: Component,
    context: GeneratorContext,
}

impl Reader {
    /// Finds the component for a file.
    ///
    /// # Errors
    /// There is no such file, or no component for it.
    pub fn open(path: &Path, registry: &Registry) -> Result<Self, Failure> {
        Self::open_with(path, None, "", registry)
    }

    /// As [`Self::open`], with a component's name instead of the file's ending, and further fields of the component as they stand
    /// in a pipeline: `types: ["A", "B"]`.
    ///
    /// # Errors
    /// As there, or the fields are wrong.
    pub fn open_with(path: &Path, format: Option<&str>, fields: &str, registry: &Registry) -> Result<Self, Failure> {
        std::fs::metadata(path).map_err(|e| about(path, format!("cannot be read: {e}")))?;
        let (library, info) = match format {
            Some(name) => component_named(name, path, Kind::Generator, registry)?,
            None => component_for(path, Kind::Generator, registry)?,
        };
        let component = make(library, info, path, fields)?;
        Ok(Self { path: path.into(), format: info.name.clone(), component, context: GeneratorContext::default() })
    }

    fn part(&self) -> Result<galamost_engine::plugins::GeneratorPart<'_>, Failure> {
        self.component.generator().ok_or_else(|| about(&self.path, format!("{} is no generator", self.format)))
    }

    /// Number of whole frames; `None` for a format of single states.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn frames(&self) -> Result<Option<u64>, Failure> {
        self.part()?.frames(&self.context).map_err(|e| told(&self.path, &self.format, e))
    }

    /// Reads a frame, from 0; a negative number counts from the end; `None` is the last one.
    ///
    /// # Errors
    /// What is wrong with the file, or there is no such frame.
    pub fn read(&self, frame: Option<i64>) -> Result<Snapshot, Failure> {
        self.read_over(frame, Snapshot::default())
    }

    /// As [`Self::read`], for formats that only change a state which another file has given.
    ///
    /// # Errors
    /// As there.
    pub fn read_over(&self, frame: Option<i64>, mut snapshot: Snapshot) -> Result<Snapshot, Failure> {
        let part = self.part()?;
        let frames = self.frames()?;
        let answer = match (frames, frame) {
            (Some(n), frame) if n > 0 => {
                let wanted = frame.unwrap_or(-1);
                let number = if wanted < 0 { n.checked_add_signed(wanted) } else { Some(wanted as u64) };
                let Some(number) = number.filter(|k| *k < n) else {
                    return Err(about(&self.path, format!("there is no frame {wanted}: the file has {n}")));
                };
                part.frame(&self.context, number, &mut snapshot)
            }
            (None, Some(k)) if k != 0 && k != -1 => {
                return Err(about(&self.path, format!("there is no frame {k}: {} holds one state", self.format)));
            }
            // a file without a frame is refused with the component's own words
            _ => part.generate(&self.context, &mut snapshot),
        };
        answer.map_err(|e| told(&self.path, &self.format, e))?;
        snapshot.check().map_err(|e| told(&self.path, &self.format, e))?;
        Ok(snapshot)
    }
}

/// Makes a component for a file, with further fields.
fn make(library: &Library, info: &ComponentInfo, path: &Path, fields: &str) -> Result<Component, Failure> {
    let file = file_field(info).map_or("file", |f| &f.name);
    let fields = fields.trim().trim_end_matches(',');
    let comma = if fields.is_empty() { "" } else { ", " };
    let text = format!("{}({file}: {:?}{comma}{fields})", info.name, path.to_string_lossy());
    let entry = Entry { name: info.name.clone(), text, at: Position { line: 1, column: 1 } };
    Component::create(library, info, &entry, 0).map_err(|e| told(path, &info.name, e))
}

/// Reads a frame of a file, from 0; a negative number counts from the end; `None` is the last one.
///
/// # Errors
/// There is no such file, no component for it, no such frame, or something is wrong with what it holds.
pub fn read(path: &Path, frame: Option<i64>, registry: &Registry) -> Result<Snapshot, Failure> {
    Reader::open(path, registry)?.read(frame)
}

/// Number of whole frames of a file; `None` for a format of single states.
///
/// # Errors
/// As [`read`].
pub fn frames(path: &Path, registry: &Registry) -> Result<Option<u64>, Failure> {
    Reader::open(path, registry)?.frames()
}
