//! Plugins that are built against a changed plugin API or with other compiler options.

use crate::{build_crate, repository};
use std::path::{Path, PathBuf};

/// A change of one source file: file name, text to find, replacement.
pub type Edit = (&'static str, String, String);

/// A copy of the plugin API's sources, with changes. The macros are this workspace's own, so that they are compiled
/// once for all copies.
pub fn changed_api(name: &str, edits: &[Edit]) -> PathBuf {
    let root = repository().canonicalize().expect("the repository");
    let folder = outside().join("api").join(name);
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).expect("a manifest");
    let manifest: String = manifest
        .lines()
        .map(|l| match l.split_once(" = ") {
            Some(("members", _)) => "members = [\"plugin-api\"]\n".into(),
            Some(("default-members", _)) => String::new(),
            Some(("galamost-plugin-macros", _)) => {
                format!("galamost-plugin-macros = {{ path = {:?} }}\n", root.join("plugin-api/macros"))
            }
            _ => format!("{l}\n"),
        })
        .collect();
    write_if_changed(&folder.join("Cargo.toml"), &manifest);
    let mut unused: Vec<&Edit> = edits.iter().collect();
    copy_sources(&root.join("plugin-api"), &folder.join("plugin-api"), &mut |file, text| {
        for (f, from, to) in edits.iter().filter(|(f, ..)| file.ends_with(f)) {
            assert!(text.contains(from.as_str()), "{f} has no `{from}`");
            *text = text.replacen(from.as_str(), to, 1);
            unused.retain(|e| (&e.0, &e.1) != (f, from));
        }
    });
    assert!(unused.is_empty(), "no such files: {unused:?}");
    folder.join("plugin-api")
}

/// The plugin of `tests/abi/PLUGIN` as a crate of another name, with this plugin API and a changed source. Its library is
/// named after the variant: of two libraries of one name in one output folder cargo would hand out whichever was last.
pub fn plugin_crate(plugin: &str, variant: &str, name: &str, api: &Path, edits: &[Edit]) -> PathBuf {
    let from = repository().join("tests/abi").join(plugin);
    let folder = outside().join("plugin").join(variant);
    let manifest = std::fs::read_to_string(from.join("Cargo.toml")).expect("a manifest");
    let manifest = manifest
        .replace("\"../../../plugin-api\"", &format!("{api:?}"))
        .replace(&format!("name = \"{plugin}\""), &format!("name = \"{name}\""))
        .replace(&format!("package.{plugin}]"), &format!("package.{name}]"))
        .replace("[lib]\n", &format!("[lib]\nname = \"{plugin}_{variant}\"\n"));
    write_if_changed(&folder.join("Cargo.toml"), &manifest);
    copy_sources(&from.join("src"), &folder.join("src"), &mut |file, text| {
        for (_, old, new) in edits.iter().filter(|(f, ..)| file.ends_with(f)) {
            assert!(text.contains(old.as_str()), "{} has no `{old}`", file.display());
            *text = text.replacen(old.as_str(), new, 1);
        }
    });
    folder
}

/// Builds such a crate and puts its library at `to`; `how` are arguments of `cargo`.
pub fn build(folder: &Path, how: &[&str], to: &Path) {
    build_crate(folder, how, to);
}

/// The folder for crates that do not belong to the workspace, and for their builds.
pub fn outside() -> PathBuf {
    repository().join("target/outside")
}

/// Copies Rust sources and manifests. Files that have not changed are not written, so cargo does not rebuild them.
pub fn copy_sources(from: &Path, to: &Path, change: &mut dyn FnMut(&Path, &mut String)) {
    for entry in std::fs::read_dir(from).unwrap_or_else(|e| panic!("{}: {e}", from.display())) {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name");
        if path.is_dir() {
            if name != "tests" && name != "macros" && name != "target" {
                copy_sources(&path, &to.join(name), change);
            }
        } else if path.extension().is_some_and(|e| ["rs", "toml", "md", "cuh"].iter().any(|x| e == *x)) {
            let mut text = std::fs::read_to_string(&path).expect("a text");
            change(&path, &mut text);
            write_if_changed(&to.join(name), &text);
        }
    }
}

fn write_if_changed(path: &Path, text: &str) {
    if std::fs::read_to_string(path).is_ok_and(|old| old == text) {
        return;
    }
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, text).expect("written");
}
