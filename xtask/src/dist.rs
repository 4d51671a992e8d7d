//! The release folder, which needs only a driver and NVRTC to run.

use crate::{cargo, docs, repository, run, target};
use std::env::consts::{DLL_EXTENSION, DLL_PREFIX};
use std::path::{Path, PathBuf};

/// Copies a file.
///
/// # Errors
/// Returns an error if a file cannot be copied.
pub fn copy(from: &Path, to: &Path) -> Result<(), String> {
    std::fs::copy(from, to).map(|_| ()).map_err(|e| format!("{} to {}: {e}", from.display(), to.display()))
}

/// Lists the plugins: the folders of `plugins/` with a manifest. The library of a plugin has the name of its folder.
fn plugins(root: &Path) -> Result<Vec<String>, String> {
    let list = std::fs::read_dir(root.join("plugins")).map_err(|e| e.to_string())?;
    let mut names: Vec<String> = list
        .filter_map(|e| e.ok())
        .filter(|e| e.path().join("Cargo.toml").exists())
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}

/// Builds the release folder and returns it.
///
/// # Errors
/// Returns an error if the build fails or a file cannot be written.
pub fn build(folder: Option<PathBuf>) -> Result<PathBuf, String> {
    let root = repository();
    let output = build_program(&root, "dist")?;
    let version = env!("CARGO_PKG_VERSION");
    let name = format!("galamost-{version}-{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    let to = folder.unwrap_or_else(|| root.join("dist").join(name));
    for d in ["bin", "lib/galamost/plugins", "examples", "cases"] {
        empty(&to.join(d))?;
    }
    copy(&output.join("galamost"), &to.join("bin/galamost"))?;
    copy_plugins(&root, &output, &to.join("lib/galamost/plugins"))?;
    copy_examples(&root, &to.join("examples"))?;
    copy_cases(&root, &to.join("cases"))?;
    // the program contains the font, so its license must be shipped
    copy(&root.join("plugins/support/pictures/font/LICENSE-DEJAVU"), &to.join("LICENSE-DEJAVU"))?;
    for f in ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md"] {
        if root.join(f).exists() {
            copy(&root.join(f), &to.join(f))?;
        }
    }
    add_book(&root, &output.join("galamost"), &to)?;
    Ok(to)
}

/// Builds the program and all plugins, and returns cargo's output folder of the profile.
///
/// # Errors
/// Returns an error if the build fails.
pub fn build_program(root: &Path, profile: &str) -> Result<PathBuf, String> {
    let mut build = cargo();
    build.current_dir(root).args(["build", "--profile", profile, "--package", "galamost"]);
    for p in &plugins(root)? {
        build.args(["--package", p]);
    }
    run(&mut build)?;
    Ok(target(root).join(profile))
}

/// Copies the plugins from cargo's output folder.
///
/// # Errors
/// Returns an error if a file cannot be copied.
pub fn copy_plugins(root: &Path, output: &Path, to: &Path) -> Result<(), String> {
    for p in plugins(root)? {
        let file = format!("{DLL_PREFIX}{}.{DLL_EXTENSION}", p.replace('-', "_"));
        copy(&output.join(&file), &to.join(&file))?;
    }
    Ok(())
}

/// Makes an empty folder.
///
/// # Errors
/// Returns an error if the folder cannot be emptied or made.
pub fn empty(folder: &Path) -> Result<(), String> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))
}

/// Copies the examples without the output of earlier runs.
///
/// # Errors
/// Returns an error if a file cannot be copied.
pub fn copy_examples(root: &Path, to: &Path) -> Result<(), String> {
    for e in std::fs::read_dir(root.join("examples")).map_err(|e| e.to_string())?.filter_map(|e| e.ok()) {
        let path = e.path();
        // files with other extensions, or with a step before the extension, are output of a run
        let name = e.file_name().to_string_lossy().into_owned();
        let extension = name.split_once('.').map_or("", |(_, extension)| extension);
        if ["ron", "xml", "xml.gz", "dump", "pdb", "top", "itp", "gro"].contains(&extension) {
            copy(&path, &to.join(e.file_name()))?;
        } else if path.is_dir() {
            // an example of several files; its subfolders are output of a run
            let folder = to.join(e.file_name());
            std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
            for e in std::fs::read_dir(&path).map_err(|e| e.to_string())?.filter_map(|e| e.ok()) {
                if e.path().is_file() {
                    copy(&e.path(), &folder.join(e.file_name()))?;
                }
            }
        }
    }
    Ok(())
}

/// Copies the benchmark cases and their data.
///
/// # Errors
/// Returns an error if a file cannot be copied.
pub fn copy_cases(root: &Path, to: &Path) -> Result<(), String> {
    std::fs::create_dir_all(to).map_err(|e| e.to_string())?;
    for e in std::fs::read_dir(root.join("benches/cases")).map_err(|e| e.to_string())?.filter_map(|e| e.ok()) {
        copy(&e.path(), &to.join(e.file_name()))?;
    }
    let data = "dppc-water-21216.xml.xz";
    copy(&root.join("tests/data").join(data), &to.join(data))
}

/// Adds the book to the release folder, if mdbook is installed.
fn add_book(root: &Path, program: &Path, to: &Path) -> Result<(), String> {
    if !docs::has_mdbook() {
        eprintln!(
            "mdbook is not installed, so the release folder has no docs/; run `cargo install mdbook --locked` to add them"
        );
        return Ok(());
    }
    docs::copy_tree(&docs::build(root, program)?, &to.join("docs"))
}
