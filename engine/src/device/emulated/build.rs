//! Kernels compiled with g++ to shared libraries, which are cached.

use super::fail;
use crate::device::cache;
use crate::device::source::{SourceUnit, kernel_names};
use galamost_plugin_api::error::Result;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the version of g++.
///
/// # Errors
/// Returns an error if g++ cannot be started.
pub fn probe() -> std::result::Result<String, String> {
    let out = Command::new("g++").arg("--version").output().map_err(|e| format!("g++ cannot be started: {e}"))?;
    let text = String::from_utf8_lossy(&out.stdout).lines().next().unwrap_or_default().to_string();
    if out.status.success() { Ok(text) } else { Err("g++ --version failed".into()) }
}

/// g++.
pub struct Compiler {
    /// Version, which is part of the cache's keys.
    pub version: String,
}

impl Compiler {
    /// Loads the library of a unit.
    ///
    /// # Errors
    /// Returns an error if g++ fails or the library cannot be written or loaded.
    pub fn load(&self, unit: &SourceUnit) -> Result<libloading::Library> {
        let headers: String = SourceUnit::headers()?.into_iter().map(|(_, t)| t).collect();
        let defines = unit.defines().join(" ");
        let key =
            cache::key(&[&unit.text, &headers, &host_texts(), &defines, &self.version, UNIT_LEVEL, &FLAGS.join(" ")]);
        let folder = std::env::temp_dir().join(format!("galamost-{key}-{}", cache::unique()));
        std::fs::create_dir_all(&folder).map_err(|e| fail("emulated device", e))?;
        let library = folder.join("unit.so");
        let ready = self.ready(unit, &key, &folder, &library);
        // SAFETY: the library contains only the unit's kernels, which have no initializers
        let loaded =
            ready.and_then(|()| unsafe { libloading::Library::new(&library) }.map_err(|e| fail(&unit.name, e)));
        // the file is not needed once the library is loaded
        let _ = std::fs::remove_dir_all(&folder);
        loaded
    }

    /// Writes the library of a unit, from the cache or compiled. Ranks that start together need the same units: one compiles,
    /// and the others wait.
    fn ready(&self, unit: &SourceUnit, key: &str, folder: &Path, library: &Path) -> Result<()> {
        let cached = || Some(std::fs::write(library, cache::get(key, "so")?).map_err(|e| fail("emulated device", e)));
        if let Some(written) = cached() {
            return written;
        }
        let _one = cache::lock(&format!("units-{}.lock", &key[..1]));
        if let Some(written) = cached() {
            return written;
        }
        self.build(unit, folder, library)?;
        if let Ok(bytes) = std::fs::read(library) {
            cache::put(key, "so", &bytes);
        }
        Ok(())
    }

    /// Compiles a unit to a shared library, with `folder` for temporary files.
    fn build(&self, unit: &SourceUnit, folder: &Path, library: &Path) -> Result<()> {
        let io = |e: std::io::Error| fail(&format!("building {}", unit.name), e);
        for (name, text) in SourceUnit::headers()? {
            let path = folder.join(name);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent).map_err(io)?;
            }
            std::fs::write(path, text).map_err(io)?;
        }
        let blocks = self.blocks(folder)?;
        let mut text = unit.text.clone();
        text.push_str("\n#line 1 \"entries\"\n");
        for name in kernel_names(&unit_with_headers(&unit.text)) {
            text.push_str(&format!("GALAMOST_HOST_ENTRY({name})\n"));
        }
        let source = folder.join("unit.cpp");
        std::fs::write(&source, text).map_err(io)?;
        let mut command = Command::new("g++");
        command.args(FLAGS).args([UNIT_LEVEL, "-shared", "-include", HOST_HEADER]);
        command.args(unit.defines().iter().map(|d| format!("-D{d}")));
        compiled(&unit.name, command.arg("-I").arg(folder).arg(&source).arg(&blocks).arg("-o").arg(library))
    }

    /// Writes the headers of the emulation to `folder`, and beside them, precompiled, the one that units include and the
    /// object file that they are linked with. Returns the path of the object file.
    fn blocks(&self, folder: &Path) -> Result<PathBuf> {
        let (source, text) = galamost_kernels::HOST_SOURCE;
        for (name, text) in galamost_kernels::HOST_HEADERS.into_iter().chain([(source, text)]) {
            std::fs::write(folder.join(name), text).map_err(|e| fail(&format!("building {source}"), e))?;
        }
        // g++ uses it in place of the header, and ignores it if it does not fit the options; without it, units only take longer
        let header = "galamost_host.h.gch";
        if self.common(folder, header, &[UNIT_LEVEL, "-x", "c++-header", HOST_HEADER]).is_err() {
            let _ = std::fs::remove_file(folder.join(header));
        }
        self.common(folder, "blocks.o", &["-O2", "-c", source])
    }

    /// Makes a file that all units have in common, with these arguments of g++ in `folder`, or takes it from the cache.
    /// Returns its path.
    fn common(&self, folder: &Path, name: &str, arguments: &[&str]) -> Result<PathBuf> {
        let io = |e: std::io::Error| fail(&format!("building {name}"), e);
        let path = folder.join(name);
        let key = cache::key(&[&[host_texts().as_str(), &self.version, name], FLAGS.as_slice(), arguments].concat());
        let _one = cache::lock("common.lock");
        if let Some(bytes) = cache::get(&key, "o") {
            std::fs::write(&path, bytes).map_err(io)?;
        } else {
            compiled(name, Command::new("g++").current_dir(folder).args(FLAGS).args(arguments).args(["-o", name]))?;
            cache::put(&key, "o", &std::fs::read(&path).map_err(io)?);
        }
        Ok(path)
    }
}

/// Options of g++ for everything that is part of a unit's library.
const FLAGS: [&str; 7] =
    ["-std=c++17", "-fPIC", "-pthread", "-fvisibility=hidden", "-fno-gnu-unique", "-w", "-ffp-contract=off"];

/// The level of optimization of units, and the header that they include first. A precompiled header fits one level.
const UNIT_LEVEL: &str = "-O1";
const HOST_HEADER: &str = "galamost_host.h";

/// Runs g++, which compiles `what`.
fn compiled(what: &str, command: &mut Command) -> Result<()> {
    let what = format!("compiling {what} with g++");
    let out = command.output().map_err(|e| fail(&what, e))?;
    if out.status.success() { Ok(()) } else { Err(fail(&what, String::from_utf8_lossy(&out.stderr).trim())) }
}

/// The texts that every unit's library depends on.
fn host_texts() -> String {
    galamost_kernels::HOST_HEADERS.map(|(_, text)| text).concat() + galamost_kernels::HOST_SOURCE.1
}

/// Returns a unit's text together with the headers that it includes, to find the kernels' names.
fn unit_with_headers(text: &str) -> String {
    let mut all = String::new();
    for (name, header) in galamost_kernels::HEADERS {
        if text.contains(name) {
            all.push_str(header);
        }
    }
    all + text
}
