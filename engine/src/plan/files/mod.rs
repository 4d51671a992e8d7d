//! The files of a run, and the check that they exclude each other.
//!
//! A component declares the files that it writes ([`galamost_plugin_api::component::Needs::output`]). Inputs are existing files
//! whose path is the value of a field that names a file (`strings::values_of`, `names_a_file`).

mod continued;
mod engine;
mod names;
mod strings;
mod target;

pub use continued::{TIMES, other_values, partners};
pub use target::Target;
use target::without_temporary;

use crate::diagnostic::Diagnostic;
use crate::pipeline::{Entry, Pipeline};
use crate::plan::StagePlan;
use crate::plugins::{Component, Registry};
use galamost_plugin_api::component::ComponentInfo;
use galamost_plugin_api::error::Position;
use galamost_plugin_api::output::{self, OutputFile, OutputKind};
use galamost_plugin_api::params::FieldDoc;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a run does with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileUse {
    /// A component reads it, or it is the pipeline.
    Input,
    /// A component writes it.
    Output(OutputFile),
    /// A component writes an output under this name and renames it.
    Temporary,
    /// The engine writes it.
    Engine,
    /// The newest checkpoint.
    Checkpoint,
}

/// Who uses a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The engine; in words what the file is.
    Engine(String),
    /// A component.
    Component {
        name: String,
        /// Its number; generators have none.
        id: Option<u32>,
    },
}

impl Owner {
    /// Returns the name of a component.
    pub fn component(&self) -> Option<&str> {
        match self {
            Self::Engine(_) => None,
            Self::Component { name, .. } => Some(name),
        }
    }

    fn id(&self) -> Option<u32> {
        match self {
            Self::Engine(_) => None,
            Self::Component { id, .. } => *id,
        }
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Engine(name) | Self::Component { name, .. }) = self;
        f.write_str(name)
    }
}

/// Endings of compressed files, which only inputs can be.
const COMPRESSED: [&str; 4] = [".xz", ".gz", ".bz2", ".zst"];

/// A file of a run.
#[derive(Clone, Debug)]
pub struct RunFile {
    /// The pipeline.
    pub pipeline: PathBuf,
    /// Position of its name in the pipeline, if it has one.
    pub at: Option<Position>,
    /// Who uses it.
    pub owner: Owner,
    /// The path as the pipeline gives it.
    pub shown: String,
    /// What the run does with it.
    pub usage: FileUse,
    /// The file.
    pub target: Target,
}

impl RunFile {
    /// Returns an output with what its owner declares.
    pub fn output(&self) -> Option<&OutputFile> {
        match &self.usage {
            FileUse::Output(output) => Some(output),
            _ => None,
        }
    }

    /// Returns whether this is an output that is written in this way.
    pub fn is_output(&self, kind: OutputKind) -> bool {
        self.output().is_some_and(|o| o.kind == kind)
    }

    /// Returns the owner with its position.
    fn described(&self) -> String {
        let path = self.pipeline.display();
        match self.at {
            Some(at) => format!("{} ({path}:{at})", self.owner),
            None => format!("{} ({path})", self.owner),
        }
    }

    /// Returns an error at its position.
    pub fn error(&self, message: String) -> Diagnostic {
        let mut d = Diagnostic::new(&self.pipeline, self.at, message);
        d.component = self.owner.component().map(Into::into);
        d
    }
}

/// Returns the path of the record of a pipeline.
pub fn record_path(pipeline: &Path) -> PathBuf {
    pipeline.with_extension("run.json")
}

/// Returns the path of the lock of a run.
pub fn lock_path(checkpoint: &Path) -> PathBuf {
    let mut name = checkpoint.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// Checks that a file can be created in a folder.
///
/// # Errors
/// Returns the error of the file system.
pub fn probe_folder(folder: &Path) -> std::io::Result<()> {
    // a file without a name, where the file system supports it
    tempfile::tempfile_in(folder).map(drop)
}

/// The files of one pipeline, with errors of outputs that cannot be written.
pub fn find(
    registry: &Registry,
    pipeline: &Pipeline,
    components: &[Arc<Component>],
    resumed: bool,
    errors: &mut Vec<Diagnostic>,
) -> Vec<RunFile> {
    let mut files = engine::files(pipeline, errors);
    let mut probed: BTreeMap<PathBuf, Option<String>> = BTreeMap::new();
    for c in components {
        for output in &c.needs.outputs {
            let at = strings::position(&pipeline.text, c.at, &output.path).unwrap_or(c.at);
            let checked = Target::resolve(&pipeline.directory().join(&output.path)).and_then(|target| {
                writable(&target, output, resumed, &mut probed)?;
                Ok(target)
            });
            match checked {
                Ok(target) => {
                    let file = RunFile {
                        pipeline: pipeline.path.clone(),
                        at: Some(at),
                        owner: Owner::Component { name: c.name.clone(), id: Some(c.id) },
                        shown: output.path.clone(),
                        usage: FileUse::Output(output.clone()),
                        target,
                    };
                    files.extend(temporary(&file));
                    files.push(file);
                }
                Err(why) => {
                    let mut d = Diagnostic::new(
                        &pipeline.path,
                        Some(at),
                        format!("the output file `{}` cannot be written: {why}", output.path),
                    );
                    d.component = Some(c.name.clone());
                    errors.push(d);
                }
            }
        }
    }
    files.extend(exchange_table(pipeline, resumed, errors));
    files.extend(inputs(registry, pipeline, components));
    files
}

/// The table of exchanges, which belongs to the first replica.
fn exchange_table(pipeline: &Pipeline, resumed: bool, errors: &mut Vec<Diagnostic>) -> Option<RunFile> {
    let exchange = pipeline.exchange.as_ref().filter(|_| pipeline.replica == Some(0))?;
    let path = exchange.table(pipeline.common_path());
    let given = exchange.file.as_ref();
    let at = given.and_then(|f| strings::position(&pipeline.text, exchange.at, f)).unwrap_or(exchange.at);
    let shown = given.cloned().unwrap_or_else(|| path.file_name().unwrap_or_default().to_string_lossy().into_owned());
    let (output, probed) = (OutputFile::new(&shown, OutputKind::Growing), &mut BTreeMap::new());
    let checked = Target::resolve(&path).and_then(|t| writable(&t, &output, resumed, probed).map(|()| t));
    let failed = |why| {
        let message = format!("the table of exchanges `{shown}` cannot be written: {why}");
        errors.push(Diagnostic::new(&pipeline.path, Some(at), message));
    };
    let target = checked.map_err(failed).ok()?;
    let owner = Owner::Engine("the table of exchanges".into());
    let usage = FileUse::Output(output);
    Some(RunFile { pipeline: pipeline.path.clone(), at: Some(at), owner, shown, usage, target })
}

/// The name under which an output is written before it is renamed; nothing for files that grow.
fn temporary(output: &RunFile) -> Option<RunFile> {
    let file = output.output()?;
    let renamed = file.kind != OutputKind::Growing || is_table(file);
    renamed.then(|| RunFile {
        shown: output::temporary(Path::new(&output.shown)).to_string_lossy().into_owned(),
        usage: FileUse::Temporary,
        target: output.target.temporary(),
        ..output.clone()
    })
}

/// Returns whether an output is a growing Parquet table, which is a folder. Components choose the format by the name in the pipeline,
/// which may be that of a symbolic link.
fn is_table(output: &OutputFile) -> bool {
    output.kind == OutputKind::Growing && output.path.to_ascii_lowercase().ends_with(".parquet")
}

/// Checks that an output can be written.
fn writable(
    target: &Target,
    output: &OutputFile,
    resumed: bool,
    probed: &mut BTreeMap<PathBuf, Option<String>>,
) -> Result<(), String> {
    let kind = output.kind;
    if let Some(ending) = COMPRESSED.iter().find(|e| target.name.to_ascii_lowercase().ends_with(**e)) {
        return Err(format!("outputs are not compressed; remove `{ending}` from its name"));
    }
    if target.is_folder && !is_table(output) {
        return Err("this is a folder".into());
    }
    if kind != OutputKind::State && target.name.contains("{step}") {
        return Err("it holds all steps; remove {step} from its name".into());
    }
    names::check_length(target, names::RENAMED)?;
    if resumed {
        target.check_existing(kind == OutputKind::Growing)?;
    }
    let probe = || probe_folder(&target.folder).err().map(|e| format!("no file can be created in its folder: {e}"));
    match probed.entry(target.folder.clone()).or_insert_with(probe) {
        Some(why) => Err(why.clone()),
        None => Ok(()),
    }
}

/// Returns whether the values of a field of a component are paths of files. Other texts, such as the name of a type, may be the name of
/// a file by chance. The component declares `extensions` for the field, or it has one of the names that the project uses.
fn names_a_file(registry: &Registry, component: &str, field: &str) -> bool {
    fn declares(fields: &[FieldDoc], field: &str) -> bool {
        fields.iter().any(|f| (f.name == field && !f.extensions.is_empty()) || declares(&f.fields, field))
    }
    let has_name = |c: &ComponentInfo| c.name == component || c.former_names.iter().any(|n| n == component);
    field == "file"
        || field.ends_with("_file")
        || ["topology", "coordinates"].contains(&field)
        || registry.components().iter().any(|(_, c)| has_name(c) && declares(&c.fields, field))
}

/// The existing files that fields of components name, except their outputs.
fn inputs(registry: &Registry, pipeline: &Pipeline, components: &[Arc<Component>]) -> Vec<RunFile> {
    let folder = pipeline.directory();
    let mut outputs: HashMap<Position, BTreeSet<&str>> = HashMap::new();
    for c in components {
        outputs.entry(c.at).or_default().extend(c.needs.outputs.iter().map(|o| o.path.as_str()));
    }
    let input = |entry: &Entry, (at, shown): (Position, String)| {
        let path = folder.join(&shown);
        if shown.is_empty() || outputs.get(&entry.at).is_some_and(|o| o.contains(shown.as_str())) || !path.is_file() {
            return None;
        }
        let target = Target::resolve(&path).ok()?;
        Some(RunFile {
            pipeline: pipeline.path.clone(),
            at: Some(at),
            owner: Owner::Component { name: entry.name.clone(), id: None },
            shown,
            usage: FileUse::Input,
            target,
        })
    };
    let of = |e: &Entry| {
        let paths = strings::values_of(e, |field| names_a_file(registry, &e.name, field));
        paths.into_iter().filter_map(|s| input(e, s)).collect::<Vec<_>>()
    };
    entries(pipeline).flat_map(of).collect()
}

/// All components that the pipeline names.
fn entries(pipeline: &Pipeline) -> impl Iterator<Item = &Entry> {
    let own = pipeline.stages.iter().flat_map(|s| [&s.forces, &s.integrators, &s.updaters, &s.analyzers]);
    let common = [&pipeline.initial, &pipeline.forces, &pipeline.integrators, &pipeline.updaters, &pipeline.analyzers];
    common.into_iter().chain(own.flatten()).chain([&pipeline.ensemble]).flatten()
}

/// Returns an error for each file of a pipeline that excludes another, or that two stages would write differently.
pub fn collisions(files: &[RunFile], pipeline: &Pipeline, stages: &[StagePlan]) -> Vec<Diagnostic> {
    let active = continued::active_stages(stages);
    let staged = pipeline.ensemble.is_empty();
    let mut errors = pairs(files, staged, |a, b| !continued::may_share(a, b, &active));
    errors.extend(continued::mixed(files, pipeline, stages));
    errors
}

/// Returns an error for each file of one pipeline that excludes a file of another.
pub fn collisions_between<'a>(plans: impl IntoIterator<Item = &'a [RunFile]>) -> Vec<Diagnostic> {
    let all: Vec<RunFile> = plans.into_iter().flatten().cloned().collect();
    // two checkpoints of one name would also share older checkpoints and the lock
    let follows = |a: &RunFile, b: &RunFile| a.owner == b.owner && a.usage == FileUse::Engine;
    pairs(&all, false, |a, b| a.pipeline != b.pipeline && !follows(a, b))
}

/// Returns an error for the second file of each pair that collides, if `counts` accepts the pair; the first such pair of
/// each file. With `staged`, components may be those of stages that could continue a file.
fn pairs(files: &[RunFile], staged: bool, counts: impl Fn(&RunFile, &RunFile) -> bool) -> Vec<Diagnostic> {
    let mut order: Vec<&RunFile> = files.iter().collect();
    // the position of an error is that of the later component; files without a position come first
    order.sort_by_key(|f| f.at);
    let mut index = Index::default();
    let mut errors = vec![];
    for (k, f) in order.iter().enumerate() {
        let writes = |f: &RunFile| f.usage != FileUse::Input;
        let found = index
            .candidates(f)
            .into_iter()
            .map(|i| order[i])
            // if two temporary names are equal, the outputs are too
            .filter(|other| f.usage != FileUse::Temporary || other.usage != FileUse::Temporary)
            .find(|other| (writes(f) || writes(other)) && overlap(f, other) && counts(f, other));
        if let Some(other) = found {
            // the error belongs to a component, if there is one
            let (at, other) = if f.owner.component().is_none() && other.owner.component().is_some() {
                (other, *f)
            } else {
                (*f, other)
            };
            errors.push(at.error(message(at, other, staged)));
        }
        index.insert(k, f);
    }
    errors
}

/// Returns whether two files may be the same, or one is inside the folder that the other is.
fn overlap(a: &RunFile, b: &RunFile) -> bool {
    // one error for each file: other names of a file inside are left out
    let counts = |f: &RunFile| !matches!(f.usage, FileUse::Temporary | FileUse::Engine);
    let inside = counts(a) && counts(b) && (a.target.is_inside(&b.target) || b.target.is_inside(&a.target));
    inside || a.target.overlaps(&b.target)
}

fn message(file: &RunFile, other: &RunFile, staged: bool) -> String {
    let owner = other.described();
    if file.target.is_inside(&other.target) {
        let folder = &other.shown;
        return format!("`{}` is inside the folder `{folder}`, a table of {owner}; choose another file", file.shown);
    }
    if other.target.is_inside(&file.target) {
        let (table, inside) = (&file.shown, &other.shown);
        return format!("`{table}` is a folder with the file `{inside}` of {owner}; choose another file");
    }
    let shown = match file.usage {
        FileUse::Temporary => {
            format!("`{}`, the name of `{}` while it is written,", file.shown, without_temporary(&file.shown))
        }
        _ => format!("`{}`", file.shown),
    };
    let verb = if file.usage == FileUse::Input { "read" } else { "written" };
    let what = match (other.owner.component(), &other.usage) {
        (None, _) => format!("{shown} is {owner}, so it cannot be {verb} here"),
        (_, FileUse::Input) => format!("{shown} is also read by {owner}, and this would overwrite it"),
        (_, FileUse::Temporary) => {
            let output = without_temporary(&other.shown);
            format!("{shown} is the name of `{output}` of {owner} while it is written")
        }
        (name, FileUse::Output(o)) if staged && file.owner.component() == name && file.is_output(o.kind) => {
            let why = match o.kind {
                OutputKind::Result => "results of all samples, such as averages, cannot be continued",
                _ => "only stages that follow each other can continue a table or a trajectory",
            };
            format!("{shown} is also written by {owner}; {why}")
        }
        _ => format!("{shown} is also written by {owner}"),
    };
    format!("{what}; choose another file")
}

/// Finds the files that may collide with a file without comparing all pairs.
#[derive(Default)]
struct Index {
    names: HashMap<PathBuf, Vec<usize>>,
    inodes: HashMap<(u64, u64), Vec<usize>>,
    folders: HashMap<PathBuf, Vec<usize>>,
    patterns: HashMap<PathBuf, Vec<usize>>,
}

impl Index {
    fn insert(&mut self, k: usize, f: &RunFile) {
        self.names.entry(f.target.path()).or_default().push(k);
        if let Some(inode) = f.target.inode {
            self.inodes.entry(inode).or_default().push(k);
        }
        self.folders.entry(f.target.folder.clone()).or_default().push(k);
        if f.target.is_pattern() {
            self.patterns.entry(f.target.folder.clone()).or_default().push(k);
        }
    }

    fn candidates(&self, f: &RunFile) -> Vec<usize> {
        let path = f.target.path();
        let folder = if f.target.is_pattern() { &self.folders } else { &self.patterns };
        let inode = f.target.inode.and_then(|i| self.inodes.get(&i));
        let lists = [self.names.get(&path), inode, folder.get(&f.target.folder)];
        // a table in Parquet is a folder
        let around = f.target.folder.ancestors().filter_map(|folder| self.names.get(folder));
        let inside = self.folders.iter().filter(|(folder, _)| f.target.is_folder && folder.starts_with(&path));
        let nested = around.chain(inside.map(|(_, files)| files));
        let mut found: Vec<usize> = lists.into_iter().flatten().chain(nested).flatten().copied().collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}
