//! The archive of `cargo xtask freeze-api`: the sources of the plugin API. `tests/frozen.rs` builds a plugin from each
//! published archive and loads it in the current engine.

use flate2::{Compression, write::GzEncoder};
use std::path::{Path, PathBuf};

/// Folders in the archive; the plugins of `tests/abi` are archived with the API that they are written for.
const FOLDERS: [&str; 3] = ["plugin-api", "tests/abi/fixture", "tests/abi/tiny"];

/// Packs the API. Returns the archive's name, `plugin-api-MAJOR.MINOR`, and its bytes (tar, gzip).
///
/// # Errors
/// Returns an error if a source cannot be read.
pub fn pack(root: &Path) -> Result<(String, Vec<u8>), String> {
    let record = read(&root.join("plugin-api/src/abi/plugin_record.rs"))?;
    let number = |name: &str| {
        let (_, rest) = record.split_once(&format!("pub const {name}: u32 = ")).ok_or(format!("no {name}"))?;
        Ok::<_, String>(rest.chars().take_while(char::is_ascii_digit).collect::<String>())
    };
    let name = format!("plugin-api-{}.{}", number("API_MAJOR")?, number("API_MINOR")?);
    let mut files = vec![PathBuf::from("Cargo.lock")];
    for folder in FOLDERS {
        list(root, Path::new(folder), &mut files)?;
    }
    files.sort();

    // reproducible: no times, owners or paths of this machine
    let mut archive = tar::Builder::new(GzEncoder::new(vec![], Compression::best()));
    archive.mode(tar::HeaderMode::Deterministic);
    let mut add = |path: &Path, bytes: &[u8]| {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        archive.append_data(&mut header, Path::new(&name).join(path), bytes).map_err(|e| format!("{name}: {e}"))
    };
    add(Path::new("Cargo.toml"), workspace(&read(&root.join("Cargo.toml"))?).as_bytes())?;
    for f in &files {
        add(f, &std::fs::read(root.join(f)).map_err(|e| format!("{}: {e}", f.display()))?)?;
    }
    let bytes = archive.into_inner().and_then(GzEncoder::finish).map_err(|e| format!("{name}: {e}"))?;
    Ok((name, bytes))
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// Returns the sources that a plugin is built with, path and text: the plugin API and the manifest of its workspace.
///
/// # Errors
/// Returns an error if a source cannot be read.
pub fn sources(root: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    let mut files = vec![];
    list(root, Path::new(FOLDERS[0]), &mut files)?;
    let mut sources = vec![("Cargo.toml".into(), workspace(&read(&root.join("Cargo.toml"))?))];
    for f in files {
        let text = read(&root.join(&f))?;
        sources.push((f, text));
    }
    Ok(sources)
}

/// Reduces the manifest of the workspace to the members in the archive.
fn workspace(manifest: &str) -> String {
    let members = "members = [\"plugin-api\", \"plugin-api/macros\"]";
    let kept = manifest.lines().filter(|l| !l.starts_with("default-members = "));
    let line = |l: &str| if l.starts_with("members = ") { members.to_string() } else { l.to_string() };
    kept.map(|l| line(l) + "\n").collect()
}

/// Lists the sources under a folder, as paths relative to the root.
fn list(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = std::fs::read_dir(root.join(folder)).map_err(|e| format!("{}: {e}", folder.display()))?;
    for entry in entries.filter_map(Result::ok) {
        let path = folder.join(entry.file_name());
        let name = entry.file_name().to_string_lossy().into_owned();
        if root.join(&path).is_dir() {
            if name != "tests" && name != "target" {
                list(root, &path, files)?;
            }
        } else if [".rs", ".toml", ".cuh", ".h", ".cu", ".md"].iter().any(|e| name.ends_with(e)) {
            files.push(path);
        }
    }
    Ok(())
}
