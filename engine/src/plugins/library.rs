//! One plugin library: its record is read from the file before it is loaded.

use galamost_plugin_api::abi::{Library1, ROption, RResult, RString, WireObject, load_root};
use galamost_plugin_api::component::{ComponentInfo, Kind};
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::params::Value;
use galamost_plugin_api::record::{API_MAJOR, API_MINOR, KERNEL_API, PluginRecord, RECORD_SYMBOL, ROOT_SYMBOL};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// A loaded plugin. It stays loaded for ever.
#[derive(Clone)]
pub struct Library {
    /// The file.
    pub path: PathBuf,
    /// What it says of itself.
    pub record: PluginRecord,
    /// SHA-256 of the file, in hexadecimal.
    pub hash: String,
    /// Its components.
    pub components: Vec<ComponentInfo>,
    table: &'static Library1,
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} ({})", self.record.name(), self.record.version(), self.path.display())
    }
}

impl Library {
    /// Whether the file claims to be a plugin: other libraries in a folder are none of our business.
    pub fn claims(bytes: &[u8]) -> bool {
        bytes.windows(RECORD_SYMBOL.len()).any(|w| w == RECORD_SYMBOL.as_bytes())
    }

    /// Loads a plugin.
    ///
    /// # Errors
    /// In two lines what is wrong and what to do.
    pub fn load(path: &Path, bytes: &[u8]) -> Result<Self> {
        let fail = |message: String| Error::Plugin { path: path.into(), message };
        let record = record(bytes).map_err(&fail)?;
        check_version(&record).map_err(&fail)?;
        let root = load_root(path).map_err(|long| fail(shorten(path, &record, &long)))?;
        let table: Option<galamost_plugin_api::abi::Table> = match (root.interface())("library/1".into()) {
            ROption::RSome(t) => Some(t),
            ROption::RNone => None,
        };
        let table = table
            .ok_or_else(|| fail("it has no table `library/1`; rebuild it with this engine's plugin API".into()))?;
        let table = table.get::<Library1>().map_err(|long| fail(shorten(path, &record, &long)))?;
        let described: RString = (table.describe)();
        let components = ron::from_str(described.as_str())
            .map_err(|e| fail(format!("its description of its components cannot be read: {e}")))?;
        let hash = Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect();
        Ok(Self { path: path.into(), record, hash, components, table })
    }

    /// Makes a component from its value in the pipeline.
    ///
    /// # Errors
    /// The component's mistakes.
    pub fn create(&self, kind: Kind, name: &str, value: Value<'_>) -> Result<WireObject> {
        let at = value.at();
        match (self.table.create)(kind as u32, name.into(), value.text().into(), at.line, at.column) {
            RResult::ROk(o) => Ok(o),
            RResult::RErr(e) => Err(e.into()),
        }
    }
}

/// The record as it stands in the file, after a check that the file is whole.
fn record(bytes: &[u8]) -> std::result::Result<PluginRecord, String> {
    let broken = |e: object::Error| format!("is not a whole shared library ({e}); build or copy it again");
    let file = object::File::parse(bytes).map_err(broken)?;
    // a truncated library may parse, and would crash the process when its pages are touched
    for section in file.sections() {
        if let Some((offset, size)) = section.file_range()
            && offset.checked_add(size).is_none_or(|end| end > bytes.len() as u64)
        {
            let name = section.name().unwrap_or("?").to_string();
            return Err(format!(
                "is truncated: section {name} reaches beyond the end of the file; build or copy it again"
            ));
        }
    }
    let symbols: Vec<_> = file.dynamic_symbols().collect();
    let find = |name: &str| symbols.iter().find(|s| s.name() == Ok(name));
    let Some(symbol) = find(RECORD_SYMBOL) else {
        return Err(format!(
            "exports no {RECORD_SYMBOL}: it is no GALAMOST plugin (is `galamost_plugin_api::plugin!();` missing?)"
        ));
    };
    let section = symbol.section_index().and_then(|i| file.section_by_index(i).ok());
    let data = section.and_then(|s| s.data_range(symbol.address(), symbol.size()).ok().flatten());
    let record = data.and_then(PluginRecord::parse);
    let Some(record) = record else {
        return Err(format!("its {RECORD_SYMBOL} is damaged; rebuild it"));
    };
    if find(ROOT_SYMBOL).is_none() {
        return Err("has no root module; rebuild it with this engine's plugin API".into());
    }
    Ok(record)
}

fn check_version(r: &PluginRecord) -> std::result::Result<(), String> {
    let (major, minor) = (r.api_major, r.api_minor);
    if major != API_MAJOR {
        return Err(format!(
            "built for plugin API {major}.{minor}, this engine has {API_MAJOR}.{API_MINOR};\nrebuild {} {} with galamost-plugin-api {API_MAJOR}.{API_MINOR}",
            r.name(),
            r.version()
        ));
    }
    if r.kernel_api > KERNEL_API {
        return Err(format!(
            "its CUDA text is written for kernel headers {}, this engine has {KERNEL_API};\nuse a newer engine, or rebuild {} with galamost-plugin-api {API_MAJOR}.{API_MINOR}",
            r.kernel_api,
            r.name()
        ));
    }
    Ok(())
}

/// abi_stable's report can have a thousand lines: it goes to a file, and the message names the file.
fn shorten(path: &Path, record: &PluginRecord, long: &str) -> String {
    let advice = format!("rebuild {} with galamost-plugin-api {API_MAJOR}.{API_MINOR}", record.name());
    if long.lines().count() <= 3 {
        return format!("{}; {advice}", long.trim());
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let report = std::env::temp_dir().join(format!("galamost-{stem}-{}.txt", std::process::id()));
    let told = match std::fs::write(&report, long) {
        Ok(()) => format!("the whole report is in {}", report.display()),
        Err(e) => format!("the report could not be written: {e}"),
    };
    format!("the layout of its interface is not this engine's; {advice}\n({told})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_library_and_other_versions_are_told_shortly() {
        let e = record(b"not a library").expect_err("no ELF");
        assert!(e.contains("not a whole shared library"), "{e}");
        let mut r = PluginRecord::new("yukawa", "0.3.0");
        check_version(&r).expect("the same version");
        r.api_major = 7;
        let e = check_version(&r).expect_err("another major version");
        assert_eq!(e.lines().count(), 2);
        assert!(e.contains("built for plugin API 7.") && e.contains("rebuild yukawa 0.3.0"), "{e}");
    }
}
