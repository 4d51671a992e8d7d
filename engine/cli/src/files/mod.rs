//! Particle files outside of a run: finds the component that reads or writes a file, and reads states.
//!
//! This module knows no formats. Components declare the file extensions of their field `file`, and are created from
//! pipeline text as in a run.

pub mod contents;
mod convert;
mod force_field;
mod gromacs;
mod info;
mod losses;
mod writer;

pub(crate) use convert::ConvertArgs;
pub(crate) use convert::run as convert;
pub(crate) use convert::select_frames;
pub(crate) use info::InfoArgs;
pub(crate) use info::run as info;
pub use writer::Writer;

use crate::common::{OverwriteArgs, exists, input_error, refuse_in_use};
use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_engine::pipeline::Entry;
use galamost_engine::plan::files::Target;
use galamost_engine::plugins::{Component, GeneratorHandle, Library, Registry};
use galamost_plugin_api::component::{ComponentInfo, Kind};
use galamost_plugin_api::error::{Error, Position};
use galamost_plugin_api::generator::GeneratorContext;
use galamost_plugin_api::params::FieldDoc;
use galamost_plugin_api::snapshot::Snapshot;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tracing::warn;

/// Extensions of compressed files, which readers decompress.
const COMPRESSED: [&str; 4] = [".xz", ".gz", ".bz2", ".zst"];

/// Returns the field of a component that names its file.
fn file_field(c: &ComponentInfo) -> Option<&FieldDoc> {
    c.fields.iter().find(|f| !f.extensions.is_empty())
}

fn has_field(c: &ComponentInfo, name: &str) -> bool {
    c.fields.iter().any(|f| f.name == name)
}

/// Returns the generator that reads, or the analyzer that writes, files with the extension of `path`.
///
/// # Errors
/// Returns an error with all known extensions if there is no such component.
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
    let fits = |e: &String| name.strip_suffix(e.as_str()).is_some_and(|rest| rest.ends_with('.'));
    let found = all.iter().find(|(_, c)| file_field(c).is_some_and(|f| f.extensions.iter().any(fits)));
    found.copied().ok_or_else(|| {
        let one = |c: &ComponentInfo| Some(format!("*.{} ({})", file_field(c)?.extensions.join(", *."), c.name));
        let known: Vec<String> = all.iter().filter_map(|(_, c)| one(c)).collect();
        let what = if kind == Kind::Generator { "reads" } else { "writes" };
        let known =
            if known.is_empty() { "no plugin does".into() } else { format!("known extensions: {}", known.join(", ")) };
        let hint = if kind == Kind::Generator {
            "no reader recognizes its contents; choose one with --from"
        } else {
            "choose a writer with --to"
        };
        input_error(path, format!("no component {what} files with this extension; {hint}; {known}"))
    })
}

/// Returns the generator or analyzer with this name, which must have a file.
///
/// # Errors
/// Returns an error with all such components if there is none.
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
        let verb = if kind == Kind::Generator { "read" } else { "write" };
        input_error(path, format!("`{name}` does not {verb} particle files; choose from {}", known.join(", ")))
    })
}

/// Converts the error of a component to an error about a file. Positions in the generated pipeline text are dropped,
/// since the user does not see that text.
pub(crate) fn component_error(path: &Path, name: &str, e: Error) -> Failure {
    match e {
        Error::Input(list) => {
            let one = |e: galamost_plugin_api::error::InputError| match e.file {
                Some(file) => Diagnostic { component: Some(name.into()), ..Diagnostic::new(&file, e.at, e.message) },
                None => Diagnostic { component: Some(name.into()), ..Diagnostic::new(path, None, e.message) },
            };
            Failure::Input(list.into_iter().map(one).collect())
        }
        other => other.into(),
    }
}

/// Reads frames of a particle file.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    /// Name of the component.
    pub format: String,
    component: Component,
    context: GeneratorContext,
    /// The state that formats without particles update.
    base: Snapshot,
    /// Warnings that were logged.
    warned: Mutex<BTreeSet<String>>,
    /// Whether warnings are not logged.
    quiet: bool,
}

impl Reader {
    /// Opens a file with the component that reads its format.
    ///
    /// # Errors
    /// Returns an error if the file does not exist or no component reads it.
    pub fn open(path: &Path, registry: &Registry) -> Result<Self, Failure> {
        Self::open_with(path, None, "", registry)
    }

    /// Like [`Self::open`], with an optional component name and with further fields of the component in pipeline
    /// syntax: `types: ["A", "B"]`.
    ///
    /// # Errors
    /// Like [`Self::open`]; also returns an error if a field is invalid.
    pub fn open_with(path: &Path, format: Option<&str>, fields: &str, registry: &Registry) -> Result<Self, Failure> {
        let metadata = std::fs::metadata(path).map_err(|e| input_error(path, format!("cannot be read: {e}")))?;
        if format.is_none() && !metadata.is_file() {
            let what = if metadata.is_dir() { "a folder" } else { "a device or a pipe" };
            return Err(input_error(path, format!("is {what}, not a particle file")));
        }
        let (library, info) = match format {
            Some(name) => component_named(name, path, Kind::Generator, registry)?,
            None => match component_for(path, Kind::Generator, registry) {
                Err(error) => recognize(path, fields, registry).ok_or(error)?,
                found => found?,
            },
        };
        let component = create(library, info, (path, path), fields)?;
        Ok(Self {
            path: path.into(),
            format: info.name.clone(),
            component,
            context: GeneratorContext::default(),
            base: Snapshot::default(),
            warned: Mutex::default(),
            quiet: false,
        })
    }

    /// Sets a file with particles, whose last state formats without particles update, such as DCD.
    ///
    /// # Errors
    /// Returns an error if that file cannot be read, or if the format of this reader has particles itself.
    pub(crate) fn with_topology(mut self, file: Option<&Path>, registry: &Registry) -> Result<Self, Failure> {
        let Some(file) = file else { return Ok(self) };
        if self.has_particles()? {
            let message = format!("{} files have their particles themselves; leave out --topology", self.format);
            return Err(input_error(&self.path, message));
        }
        if file.extension().is_some_and(|e| e == "ron") {
            let message = "is a pipeline; --topology needs a particle file, such as one that the run has written";
            return Err(input_error(file, message));
        }
        self.base = read(file, None, registry)?;
        Ok(self)
    }

    /// Returns whether the file has particles itself: formats without them refuse an empty state.
    ///
    /// # Errors
    /// Returns an error if the frames of the file cannot be counted.
    pub fn has_particles(&self) -> Result<bool, Failure> {
        let (generator, mut empty) = (self.generator()?, Snapshot::default());
        let found = match self.frames()? {
            Some(n) if n > 0 => generator.frame(&self.context, 0, &mut empty),
            _ => generator.generate(&self.context, &mut empty),
        };
        Ok(found.is_ok())
    }

    fn generator(&self) -> Result<GeneratorHandle<'_>, Failure> {
        self.component.generator().ok_or_else(|| input_error(&self.path, format!("{} is not a generator", self.format)))
    }

    /// Returns the number of complete frames; `None` for single-frame formats.
    ///
    /// # Errors
    /// Returns an error if the file is invalid.
    pub fn frames(&self) -> Result<Option<u64>, Failure> {
        self.generator()?.frames(&self.context).map_err(|e| component_error(&self.path, &self.format, e))
    }

    /// Logs each warning of the component once.
    fn warn(&self, generator: &GeneratorHandle<'_>) -> Result<(), Failure> {
        let warnings = generator.warnings().map_err(|e| component_error(&self.path, &self.format, e))?;
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        for warning in warnings {
            if warned.insert(warning.clone()) && !self.quiet {
                warn!("{}: {warning}", self.format);
            }
        }
        Ok(())
    }

    /// Reads a frame, counted from 0. Negative numbers count from the end; `None` is the last frame.
    ///
    /// # Errors
    /// Returns an error if the file is invalid or has no such frame.
    pub fn read(&self, frame: Option<i64>) -> Result<Snapshot, Failure> {
        self.read_over(frame, self.base.clone())
    }

    /// Like [`Self::read`], for formats that only update a given state.
    ///
    /// # Errors
    /// Like [`Self::read`].
    pub fn read_over(&self, frame: Option<i64>, mut snapshot: Snapshot) -> Result<Snapshot, Failure> {
        let generator = self.generator()?;
        let frames = self.frames()?;
        let mut which = String::new();
        let result = match (frames, frame) {
            (Some(n), frame) if n > 0 => {
                let wanted = frame.unwrap_or(-1);
                let number = if wanted < 0 { n.checked_add_signed(wanted) } else { Some(wanted as u64) };
                let Some(number) = number.filter(|k| *k < n) else {
                    return Err(input_error(&self.path, format!("no frame {wanted}: the file has {n} frames")));
                };
                if n > 1 {
                    which = format!("frame {number}: ");
                }
                generator.frame(&self.context, number, &mut snapshot)
            }
            (None, Some(k)) if k != 0 && k != -1 => {
                return Err(input_error(&self.path, format!("no frame {k}: {} files have one frame", self.format)));
            }
            // the component reports a file without frames
            _ => generator.generate(&self.context, &mut snapshot),
        };
        result.map_err(|e| component_error(&self.path, &self.format, e))?;
        self.warn(&generator)?;
        match snapshot.check().map_err(|e| component_error(&self.path, &self.format, e)) {
            Ok(()) => Ok(snapshot),
            Err(Failure::Input(mut list)) => {
                list.iter_mut().for_each(|d| d.message.insert_str(0, &which));
                Err(Failure::Input(list))
            }
            Err(other) => Err(other),
        }
    }
}

/// Returns the generator that reads a file with an unknown extension: the only one that finds no error in it.
fn recognize<'r>(path: &Path, fields: &str, registry: &'r Registry) -> Option<(&'r Library, &'r ComponentInfo)> {
    let readers =
        registry.components().into_iter().filter(|(_, c)| c.kind == Kind::Generator && file_field(c).is_some());
    let context = GeneratorContext::default();
    let reads = |(library, info): &(&Library, &ComponentInfo)| {
        let Ok(component) = create(library, info, (path, path), fields) else { return false };
        let Some(generator) = component.generator() else { return false };
        match generator.frames(&context) {
            Ok(Some(frames)) => frames > 0,
            Ok(None) => generator.generate(&context, &mut Snapshot::default()).is_ok(),
            Err(_) => false,
        }
    };
    let mut found = readers.filter(reads);
    found.next().filter(|_| found.next().is_none())
}

/// Refuses to write to existing files, to folders, and to files of a run in progress.
///
/// # Errors
/// Returns an error if the file, or a file of a pattern with `{step}`, exists, unless `--overwrite` is set; also with it if it is a folder
/// or a run writes it.
pub(crate) fn refuse_existing(output: &Path, overwrite: OverwriteArgs) -> Result<(), Failure> {
    let target = Target::resolve(output).map_err(|e| input_error(output, e))?;
    let found = target.existing().map_err(|e| input_error(output, e.to_string()))?;
    if let Some(folder) = found.iter().find(|path| path.is_dir()) {
        return Err(input_error(folder, "this is a folder; remove it, or choose another name"));
    }
    refuse_in_use(output)?;
    match found.first() {
        Some(first) if !overwrite.replace => Err(exists(first)),
        _ => Ok(()),
    }
}

/// Creates a component for a file, with further fields. Errors name the first path; the component uses the second one.
fn create(
    library: &Library,
    info: &ComponentInfo,
    (named, path): (&Path, &Path),
    fields: &str,
) -> Result<Component, Failure> {
    let file = file_field(info).map_or("file", |f| &f.name);
    let fields = fields.trim().trim_end_matches(',');
    let comma = if fields.is_empty() { "" } else { ", " };
    let text = format!("{}({file}: {:?}{comma}{fields})", info.name, path.to_string_lossy());
    let entry = Entry { name: info.name.clone(), text, at: Position { line: 1, column: 1 } };
    Component::create(library, info, &entry, 0).map_err(|e| component_error(named, &info.name, e))
}

/// Reads a frame of a file, counted from 0. Negative numbers count from the end; `None` is the last frame.
///
/// # Errors
/// Returns an error if the file cannot be read, is invalid or has no such frame.
pub fn read(path: &Path, frame: Option<i64>, registry: &Registry) -> Result<Snapshot, Failure> {
    Reader::open(path, registry)?.read(frame)
}

/// Returns the number of complete frames of a file; `None` for single-frame formats.
///
/// # Errors
/// Returns an error if the file cannot be read or is invalid.
pub fn frames(path: &Path, registry: &Registry) -> Result<Option<u64>, Failure> {
    Reader::open(path, registry)?.frames()
}
