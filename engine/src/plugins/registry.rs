//! The plugins of a run.

use super::library::{Library, contents};
use super::trial;
use crate::pipeline::suggestion;
use galamost_plugin_api::component::{ComponentInfo, Kind};
use galamost_plugin_api::error::Error;
use galamost_plugin_api::plugin_record::{API_MAJOR, API_MINOR, PluginRecord};
use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use tracing::{debug, warn};

/// Returns the folders that are searched for plugins, in this order: `--plugin-dir`, `GALAMOST_PLUGIN_PATH`, `plugins/`
/// beside the program, `../lib/galamost/plugins`, and the program's own folder, which cargo fills.
pub fn search_path(given: &[PathBuf]) -> Vec<PathBuf> {
    let mut path = given.to_vec();
    if let Some(list) = std::env::var_os("GALAMOST_PLUGIN_PATH") {
        path.extend(std::env::split_paths(&list).filter(|p| !p.as_os_str().is_empty()));
    }
    if let Some(folder) =
        std::env::current_exe().ok().and_then(|p| Some(p.canonicalize().ok()?.parent()?.to_path_buf()))
    {
        path.push(folder.join("plugins"));
        path.push(folder.join("../lib/galamost/plugins"));
        path.push(folder);
    }
    path
}

/// The plugins of a run.
#[derive(Debug, Default)]
pub struct Registry {
    libraries: Vec<Library>,
    /// Plugin files that cannot be used, with the reason.
    broken: Vec<(PathBuf, String)>,
    searched: Vec<PathBuf>,
}

impl Registry {
    /// Loads every plugin of the folders. A missing folder is ignored, except for a warning if it is one of the first
    /// `named` folders, which the user gave.
    pub fn load(folders: &[PathBuf], named: usize) -> Self {
        let mut r = Self::default();
        r.load_more(folders, named);
        r
    }

    /// Loads every plugin of more folders.
    pub fn load_more(&mut self, folders: &[PathBuf], named: usize) {
        self.searched.extend(folders.iter().cloned());
        for (k, folder) in folders.iter().enumerate() {
            let mut files: Vec<PathBuf> = match std::fs::read_dir(folder) {
                Ok(list) => list.filter_map(|e| Some(e.ok()?.path())).filter(|p| is_library(p)).collect(),
                Err(e) => {
                    if k < named {
                        warn!("plugin folder {} cannot be read: {e}", folder.display());
                    }
                    continue;
                }
            };
            files.sort();
            self.add_all(&files);
        }
    }

    /// Loads a file if it is a plugin.
    pub fn add(&mut self, file: &Path) {
        self.add_all(&[file.into()]);
    }

    /// Loads those of the files that are plugins. Unknown libraries are tried in a child process first.
    fn add_all(&mut self, files: &[PathBuf]) {
        let mut found: Vec<(PathBuf, String, PluginRecord)> = vec![];
        for file in files {
            let canonical = file.canonicalize().unwrap_or_else(|_| file.clone());
            let again = self.libraries.iter().any(|l| l.path == canonical)
                || self.broken.iter().any(|(p, _)| *p == canonical)
                || found.iter().any(|(p, ..)| *p == canonical);
            if again {
                continue;
            }
            let bytes = match contents(&canonical) {
                Ok(bytes) => bytes,
                Err(e) => {
                    self.note_broken(&canonical, e.to_string());
                    continue;
                }
            };
            // cargo's output folder may have the Python module, which has a plugin for itself
            if !is_in_plugin_folder(&canonical) && Library::is_python_module(&bytes) {
                continue;
            }
            // a truncated file may lack the plugin symbol; in a plugin folder it is reported all the same
            if !Library::claims(&bytes) && !is_in_plugin_folder(&canonical) {
                continue;
            }
            match Library::inspect(&canonical, &bytes) {
                Ok(record) => found.push((canonical, trial::key(&bytes), record)),
                Err(e) => self.note_unusable(&canonical, e),
            }
        }
        let tried: Vec<_> = found.iter().map(|(path, key, _)| trial::Candidate { path, key: key.clone() }).collect();
        let failures = trial::failures(&tried);
        for ((path, _, record), failure) in found.into_iter().zip(failures) {
            match failure {
                Some(what) => self.note_broken(&path, format!("{what};\nbuild or copy it again")),
                None => match Library::load(&path, record) {
                    Ok(library) => self.insert(library),
                    Err(e) => self.note_unusable(&path, e),
                },
            }
        }
    }

    fn note_unusable(&mut self, path: &Path, e: Error) {
        match e {
            Error::Plugin { message, .. } => self.note_broken(path, message),
            e => self.note_broken(path, e.to_string()),
        }
    }

    fn note_broken(&mut self, path: &Path, message: String) {
        warn!("{}: {message}", path.display());
        self.broken.push((path.into(), message));
    }

    fn insert(&mut self, mut library: Library) {
        // the first component of a name is used: the user's folders come before the program's own
        let (mut shadowed, mut message) = (vec![], String::new());
        let mut names = HashSet::new();
        let twice = library.components.iter().find(|c| !names.insert((c.kind.list(), c.name.clone())));
        if let Some(c) = twice {
            let message = format!("has two components `{}` for `{}`;\nrename one of them", c.name, c.kind.list());
            return self.note_broken(&library.path, message);
        }
        for c in &library.components {
            // also one of another kind: the list of a pipeline does not say which
            let same = |o: &ComponentInfo| o.name == c.name && o.kind.list() == c.kind.list();
            let Some(first) = self.libraries.iter().find(|l| l.components.iter().any(same)) else { continue };
            let text =
                format!("has a {} `{}`, which {} also has;\nremove one of them", c.kind, c.name, first.path.display());
            if first.record.name() == library.record.name() {
                // copies of one file are usual, for example in an installation and in cargo's folder
                if std::fs::read(&first.path).ok() == std::fs::read(&library.path).ok() {
                    debug!("{}: {text}", library.path.display());
                } else {
                    warn!(
                        "{} hides {}: both are the plugin `{}`, with different contents;\nrename the crate, or remove one of them",
                        first.path.display(),
                        library.path.display(),
                        first.record.name()
                    );
                }
                return;
            }
            if shadowed.is_empty() {
                message = text;
            }
            shadowed.push((c.kind, c.name.clone()));
        }
        if !shadowed.is_empty() {
            if shadowed.len() == library.components.len() {
                return self.note_broken(&library.path, message);
            }
            library.components.retain(|c| !shadowed.contains(&(c.kind, c.name.clone())));
            warn!("{}: {message} (its other components are available)", library.path.display());
        }
        debug!("{library:?}");
        self.libraries.push(library);
    }

    /// Returns all libraries.
    pub fn libraries(&self) -> &[Library] {
        &self.libraries
    }

    /// Returns the folders that were searched, including missing ones.
    pub fn searched(&self) -> &[PathBuf] {
        &self.searched
    }

    /// Returns the files that cannot be used, with the reason.
    pub fn broken(&self) -> &[(PathBuf, String)] {
        &self.broken
    }

    /// Returns all components, sorted by name.
    pub fn components(&self) -> Vec<(&Library, &ComponentInfo)> {
        let mut all: Vec<_> = self.libraries.iter().flat_map(|l| l.components.iter().map(move |c| (l, c))).collect();
        all.sort_by(|a, b| (&a.1.name, a.1.kind).cmp(&(&b.1.name, b.1.kind)));
        all
    }

    /// Returns a component by its current name.
    pub fn find(&self, kind: Kind, name: &str) -> Option<(&Library, &ComponentInfo)> {
        self.libraries.iter().find_map(|l| Some((l, l.components.iter().find(|c| c.kind == kind && c.name == name)?)))
    }

    /// Returns the component that had this name in an earlier version.
    pub fn find_former(&self, kind: Kind, name: &str) -> Option<(&Library, &ComponentInfo)> {
        let renamed = |c: &&ComponentInfo| c.kind == kind && c.former_names.iter().any(|n| n == name);
        self.libraries.iter().find_map(|l| Some((l, l.components.iter().find(renamed)?)))
    }

    /// Returns the component `name` for a list of the pipeline. Current names take precedence over former names.
    ///
    /// # Errors
    /// Returns an error with the nearest name, the right list, or the broken plugin that should contain the component.
    pub fn find_for_list(&self, list: &str, name: &str) -> Result<(&Library, &ComponentInfo), String> {
        let kinds = || Kind::ALL.into_iter().filter(|k| k.list() == list);
        let current = kinds().find_map(|k| self.find(k, name));
        if let Some(found) = current.or_else(|| kinds().find_map(|k| self.find_former(k, name))) {
            return Ok(found);
        }
        let known = |k: Kind| self.find(k, name).or_else(|| self.find_former(k, name)).is_some();
        if let Some(kind) = Kind::ALL.into_iter().find(|k| known(*k)) {
            let article = if kind.to_string().starts_with(['A', 'I', 'U']) { "an" } else { "a" };
            return Err(format!("`{name}` is {article} {kind}: it belongs in `{}`, not in `{list}`", kind.list()));
        }
        let stem = format!("lib{}", snake_case(name));
        let culprit = self.broken.iter().find(|(p, _)| p.file_stem().is_some_and(|s| s.to_string_lossy() == stem));
        if let Some((path, message)) = culprit.or_else(|| self.broken.iter().find(|(p, _)| mentions(p, name))) {
            return Err(format!("`{name}` should be in {}, which cannot be used: {message}", path.display()));
        }
        if let Some(l) = self.libraries.iter().find(|l| l.unknown.iter().any(|n| n == name)) {
            return Err(format!(
                "`{name}` of {} has a kind that this engine does not know (the plugin is built for plugin API {}.{}, this engine has {API_MAJOR}.{API_MINOR});\nuse a newer engine",
                l.path.display(),
                l.record.api_major,
                l.record.api_minor
            ));
        }
        let mut names: Vec<&str> = self
            .components()
            .into_iter()
            .filter(|(_, c)| c.kind.list() == list)
            .map(|(_, c)| c.name.as_str())
            .collect();
        names.dedup();
        if names.is_empty() {
            let folders: Vec<_> = self.searched.iter().map(|p| p.display().to_string()).collect();
            return Err(format!(
                "there is no component `{name}`: no plugin for `{list}` was found in {}",
                folders.join(", ")
            ));
        }
        Err(format!("there is no component `{name}`; {}", suggestion(name, names.iter().copied())))
    }
}

/// Returns whether a file contains the name of a component. Read only to explain why a component is missing, and in pieces,
/// because a limit of memory may be the reason.
fn mentions(path: &Path, name: &str) -> bool {
    let Ok(mut file) = File::open(path) else { return false };
    let (mut bytes, mut kept) = (vec![0u8; 1 << 16], 0usize);
    loop {
        let filled = match file.read(&mut bytes[kept..]) {
            Ok(n) if n > 0 => kept + n,
            _ => return false,
        };
        if bytes[..filled].windows(name.len()).any(|w| w == name.as_bytes()) {
            return true;
        }
        // the name may begin in this piece and end in the next one
        kept = filled.min(name.len() - 1);
        bytes.copy_within(filled - kept..filled, 0);
    }
}

fn is_library(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == std::env::consts::DLL_EXTENSION)
}

/// Returns whether the file is in a folder for plugins only (cargo's output folder also contains other libraries).
fn is_in_plugin_folder(path: &Path) -> bool {
    let beside = std::env::current_exe().ok().and_then(|p| Some(p.canonicalize().ok()?.parent()?.to_path_buf()));
    path.parent().map(Path::to_path_buf) != beside
}

/// Converts `LennardJones` to `lennard_jones`, from which the file name of a plugin of one component follows.
fn snake_case(name: &str) -> String {
    let mut out = String::new();
    for (i, c) in name.chars().enumerate() {
        if c.is_uppercase() && i > 0 {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_converted_to_snake_case() {
        assert_eq!(super::snake_case("LennardJones"), "lennard_jones");
        assert_eq!(super::snake_case("Dpd"), "dpd");
    }
}
