//! Writes states to particle files outside of a run, with the analyzers of a run.

use super::{component_error, component_for, component_named, create, has_field};
use crate::common::{file_failure, input_error};
use galamost_engine::diagnostic::Failure;
use galamost_engine::plan::files::Target;
use galamost_engine::plugins::host::HostServices;
use galamost_engine::plugins::{Component, Registry};
use galamost_plugin_api::analyzer::{FrameArray, FrameCall, FrameColumn};
use galamost_plugin_api::component::{Kind, SystemInfo};
use galamost_plugin_api::error::Error;
use galamost_plugin_api::output::OutputKind;
use galamost_plugin_api::plugin_record::API_MINOR;
use galamost_plugin_api::snapshot::{Snapshot, Values};
use galamost_plugin_api::views::{LinkView, ListView, StateView};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A temporary folder beside the output. Files are written there under their names, which may contain `{step}`, and moved when
/// all of them are complete; after a failure they are removed with it, and existing files are unchanged.
struct Unfinished {
    folder: PathBuf,
    /// The output, or the file that a symbolic link refers to.
    output: PathBuf,
}

impl Unfinished {
    fn create(path: &Path) -> Result<Self, Failure> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let target = Target::resolve(path).map_err(|e| input_error(path, e))?;
        let output = if path.is_symlink() { target.path() } else { path.to_path_buf() };
        let name = format!(".galamost-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = output.with_file_name(name);
        std::fs::create_dir(&folder).map_err(|e| input_error(path, format!("cannot be written: {e}")))?;
        Ok(Self { folder, output })
    }

    /// Returns the path of the output in the folder.
    fn path(&self) -> PathBuf {
        self.folder.join(self.output.file_name().unwrap_or_default())
    }

    /// Moves all files to their places.
    fn complete(&self) -> std::io::Result<()> {
        for file in std::fs::read_dir(&self.folder)? {
            let file = file?;
            std::fs::rename(file.path(), self.output.with_file_name(file.file_name()))?;
        }
        Ok(())
    }

    /// Converts an error of the component; its message names the output instead of the temporary file.
    fn failed(&self, path: &Path, component: &str, e: Error) -> Failure {
        let (folder, output) = (self.folder.join(""), self.output.with_file_name(""));
        match component_error(path, component, e) {
            Failure::Run(message, notes) => {
                Failure::Run(message.replace(&*folder.to_string_lossy(), &output.to_string_lossy()), notes)
            }
            other => other,
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Writes states to a particle file, which appears, or replaces an existing one, when it is complete.
pub struct Writer {
    path: PathBuf,
    /// Name of the component.
    pub format: String,
    component: Component,
    // dropped after the component, which uses it until its end
    host: HostServices,
    unfinished: Unfinished,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Writer({}, {})", self.path.display(), self.format)
    }
}

/// Returns whether a text of fields contains a field of this name.
pub(super) fn contains_field(fields: &str, name: &str) -> bool {
    let Some((before, _)) = fields.rsplit_once(':') else { return false };
    let last_word =
        |part: &str| part.trim_end().rsplit(|c: char| !c.is_alphanumeric() && c != '_').next() == Some(name);
    before.split(':').any(last_word)
}

/// Returns whether any particle moves or rotates.
pub(super) fn moves(s: &Snapshot) -> bool {
    let rotates = match s.arrays.get("angular_momentum").map(|a| &a.values) {
        Some(Values::Real(l)) => l.iter().any(|x| *x != 0.0),
        _ => false,
    };
    rotates || s.velocity.iter().any(|v| *v != [0.0; 3])
}

/// Returns an error if the component does not support the box of a state.
fn require_box(path: &Path, format: &str, component: &Component, s: &Snapshot) -> Result<(), Failure> {
    if s.is_tilted() && !component.needs.triclinic {
        let message = format!("{format} does not support triclinic boxes; the box of step {} is triclinic", s.step);
        return Err(input_error(path, message));
    }
    Ok(())
}

/// Returns an error if the name of a file for all steps contains `{step}`.
fn require_name(path: &Path, component: &Component) -> Result<(), Failure> {
    let is_pattern = path.file_name().is_some_and(|name| name.to_string_lossy().contains("{step}"));
    if is_pattern && component.needs.outputs.iter().any(|o| o.kind != OutputKind::State) {
        return Err(input_error(path, "cannot be written: it holds all steps; remove {step} from its name"));
    }
    Ok(())
}

impl Writer {
    /// Creates a file with the component that writes its format. All states must have the types of `first`. Velocities
    /// and angular momenta are written if `first` has any, unless `fields` contains `velocity`.
    ///
    /// # Errors
    /// Returns an error if no component writes the format, a field is invalid or the file cannot be written.
    pub fn create(
        path: &Path,
        format: Option<&str>,
        fields: &str,
        first: &Snapshot,
        registry: &Registry,
    ) -> Result<Self, Failure> {
        Self::create_for(path, format, fields, (first, moves(first), 1), registry)
    }

    /// Creates a file as [`Self::create`] does, with velocities if `moves`: later states may have some. `every` is the number of steps
    /// between states, for formats that store it.
    ///
    /// # Errors
    /// Returns an error if no component writes the format, a field is invalid or the file cannot be written.
    pub(crate) fn create_for(
        path: &Path,
        format: Option<&str>,
        fields: &str,
        (first, moves, every): (&Snapshot, bool, u64),
        registry: &Registry,
    ) -> Result<Self, Failure> {
        let (library, info) = match format {
            Some(name) => component_named(name, path, Kind::Analyzer, registry)?,
            None => component_for(path, Kind::Analyzer, registry)?,
        };
        let mut all = fields.trim().trim_end_matches(',').to_string();
        let mut add = |name: &str, value: String| {
            if has_field(info, name) && !contains_field(fields, name) {
                let comma = if all.is_empty() { "" } else { ", " };
                all.push_str(&format!("{comma}{name}: {value}"));
            }
        };
        add("every", every.to_string());
        add("velocity", moves.to_string());
        // the log contains energies, which exist only in a run
        add("log", "false".into());
        let unfinished = Unfinished::create(path)?;
        let mut component = create(library, info, (path, unfinished.path().as_path()), &all)?;
        let system = SystemInfo { dt: 1.0, device: "cpu".into(), api_minor: API_MINOR, ..SystemInfo::of(first) };
        component.bind(&system).map_err(|e| unfinished.failed(path, &info.name, e))?;
        if component.needs.wants.thermo || component.needs.wants.forces {
            let message = format!("{} writes energies or forces, which particle files do not contain", info.name);
            return Err(input_error(path, message));
        }
        require_name(path, &component)?;
        require_box(path, &info.name, &component, first)?;
        let host = HostServices::cpu();
        component.start(host.wire()).map_err(|e| unfinished.failed(path, &info.name, e))?;
        Ok(Self { path: path.into(), format: info.name.clone(), component, host, unfinished })
    }

    /// Writes a state.
    ///
    /// # Errors
    /// Returns the component's error, or an error if the component does not support the box of the state.
    pub fn write(&self, s: &Snapshot) -> Result<(), Failure> {
        require_box(&self.path, &self.format, &self.component, s)?;
        let arrays: Vec<FrameArray<'_>> = s
            .arrays
            .iter()
            .map(|(name, a)| match &a.values {
                Values::Real(v) => FrameArray::reals(name, a.width, v),
                Values::Int(v) => FrameArray::ints(name, a.width, v),
            })
            .collect();
        let call = FrameCall {
            size: size_of::<FrameCall>() as u32,
            dimensions: s.dimensions,
            step: s.step,
            // states have no time: as with `dt` above, a step takes 1
            time: s.step as f64,
            box_length: s.box_length,
            tilt: s.tilt,
            thermo: None,
            energies: FrameColumn::EMPTY,
            energy_names: FrameColumn::EMPTY,
            position: FrameColumn::new(&s.position),
            image: FrameColumn::new(&s.image),
            velocity: FrameColumn::new(&s.velocity),
            type_id: FrameColumn::new(&s.type_id),
            mass: FrameColumn::new(&s.mass),
            arrays: FrameColumn::new(&arrays),
            bonds: FrameColumn::new(&s.bonds),
            angles: FrameColumn::new(&s.angles),
            dihedrals: FrameColumn::new(&s.dihedrals),
            impropers: FrameColumn::new(&s.impropers),
            state: StateView::empty(),
            list: ListView::empty(),
            bond_view: LinkView::empty(2),
            shear_offset: 0.0,
            reserved: Default::default(),
        };
        let analyzer = self.component.analyzer();
        let analyzer =
            analyzer.ok_or_else(|| input_error(&self.path, format!("{} is not an analyzer", self.format)))?;
        analyzer.analyze(&call).map_err(|e| self.unfinished.failed(&self.path, &self.format, e))
    }

    /// Completes the file. Without this call, no file is written.
    ///
    /// # Errors
    /// Returns the component's error, or an error if an existing file cannot be replaced.
    pub fn finish(self) -> Result<(), Failure> {
        // dropped in reverse order: the component before the services that it uses
        let Self { path, format, unfinished, host: _host, component } = self;
        component.finish().map_err(|e| unfinished.failed(&path, &format, e))?;
        drop(component);
        unfinished.complete().map_err(|e| file_failure(&path, e))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn fields_are_found_by_name() {
        let given = |name| super::contains_field("every: 10, atom_style: Full,velocity:true", name);
        assert!(given("every") && given("atom_style") && given("velocity") && !given("style") && !given("Full"));
    }
}
