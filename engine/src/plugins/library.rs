//! A plugin library. Its record is read from the file before the library is loaded.

use super::component::receive;
use crate::activity;
use galamost_plugin_api::abi::{AbiTable, Layouts1, Library1, ROption, RootRef, WireObject, load_root};
use galamost_plugin_api::component::{ComponentInfo, Kind};
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::layout;
use galamost_plugin_api::params::{FieldDoc, Value};
use galamost_plugin_api::plugin_record::{
    API_MAJOR, API_MINOR, KERNEL_API, PluginRecord, RECORD_SYMBOL, ROOT_SYMBOL, flags,
};
use memmap2::Mmap;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A loaded plugin. Plugins are never unloaded.
#[derive(Clone)]
pub struct Library {
    /// The file.
    pub path: PathBuf,
    /// Its record: name, versions, flags.
    pub record: PluginRecord,
    hash: OnceLock<String>,
    /// Its components.
    pub components: Vec<ComponentInfo>,
    /// Names of components whose kind this engine does not know.
    pub unknown: Vec<String>,
    table: &'static Library1,
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} ({})", self.record.name(), self.record.version(), self.path.display())
    }
}

impl Library {
    /// Returns whether the file contains the symbol of a plugin. Other libraries in a plugin folder are ignored.
    pub fn claims(bytes: &[u8]) -> bool {
        bytes.windows(RECORD_SYMBOL.len()).any(|w| w == RECORD_SYMBOL.as_bytes())
    }

    /// Returns whether the file is a module of Python, which only Python can load.
    pub fn is_python_module(bytes: &[u8]) -> bool {
        let starts = |name: &[u8]| name.starts_with(b"PyInit_");
        object::File::parse(bytes).is_ok_and(|f| f.dynamic_symbols().any(|s| s.name_bytes().is_ok_and(starts)))
    }

    /// Reads and checks the record of a plugin without loading it.
    ///
    /// # Errors
    /// Returns two lines: the cause and the remedy.
    pub fn inspect(path: &Path, bytes: &[u8]) -> Result<PluginRecord> {
        let fail = |message: String| Error::Plugin { path: path.into(), message };
        let record = record(bytes).map_err(fail)?;
        check_version(&record).map_err(fail)?;
        Ok(record)
    }

    /// Loads a plugin whose record was checked by [`Self::inspect`].
    ///
    /// # Errors
    /// Returns two lines: the cause and the remedy.
    pub fn load(path: &Path, record: PluginRecord) -> Result<Self> {
        let fail = |message: String| Error::Plugin { path: path.into(), message };
        let name = path.to_string_lossy();
        // whether a damaged library survives may depend on the addresses that it gets, so a trial cannot always tell
        let _activity = activity::enter(activity::ANY, &name, "load");
        let root = load_root(path).map_err(|long| fail(shorten(path, &record, &long)))?;
        let theirs = (table::<Layouts1>(root, path, &record).map_err(&fail)?.structs)();
        let theirs: Vec<layout::StructLayout> = ron::from_str(theirs.as_str())
            .map_err(|e| fail(format!("the description of its structs cannot be read ({e});\n{}", rebuild(&record))))?;
        if let Some(what) = layout::difference(&theirs, &layout::crossing()) {
            return Err(fail(format!(
                "the layout of its structs differs from this engine's: {what};\n{}",
                rebuild(&record)
            )));
        }
        let table = table::<Library1>(root, path, &record).map_err(&fail)?;
        let described = receive("describe", (table.describe)()).map_err(|e| fail(e.to_string()))?;
        let described: Vec<Described> = ron::from_str(described.as_str())
            .map_err(|e| fail(format!("the description of its components cannot be read: {e}")))?;
        let (mut components, mut unknown) = (vec![], vec![]);
        for Described { name, kind, former_names, doc, fields } in described {
            match kind {
                SomeKind::Known(kind) => components.push(ComponentInfo { name, kind, former_names, doc, fields }),
                SomeKind::Unknown => unknown.push(name),
            }
        }
        Ok(Self { path: path.into(), record, hash: OnceLock::new(), components, unknown, table })
    }

    /// Returns the BLAKE3 hash of the file. It is computed on first use, because most plugins found are not used.
    pub fn hash(&self) -> &str {
        self.hash.get_or_init(|| match contents(&self.path) {
            Ok(bytes) => blake3::hash(&bytes).to_hex().to_string(),
            Err(e) => format!("unknown: the file can no longer be read: {e}"),
        })
    }

    /// Returns the remedy for an incompatible plugin.
    pub fn rebuild(&self) -> String {
        rebuild(&self.record)
    }

    /// Shortens a report of `abi_stable` to two lines.
    pub fn shorten(&self, long: &str) -> String {
        shorten(&self.path, &self.record, long)
    }

    /// Creates a component from its value in the pipeline.
    ///
    /// # Errors
    /// Returns the errors of its parameters.
    pub fn create(&self, kind: Kind, name: &str, value: Value<'_>) -> Result<WireObject> {
        let at = value.at();
        let _activity = activity::enter(activity::ANY, name, "create");
        receive("create", (self.table.create)(kind as u32, name.into(), value.text().into(), at.line, at.column))
    }
}

/// [`ComponentInfo`] as a plugin sends it. A newer plugin may have kinds that this engine does not know.
#[derive(serde::Deserialize)]
struct Described {
    name: String,
    kind: SomeKind,
    /// Absent in plugins of an older API.
    #[serde(default)]
    former_names: Vec<String>,
    doc: String,
    fields: Vec<FieldDoc>,
}

enum SomeKind {
    Known(Kind),
    Unknown,
}

impl<'de> serde::Deserialize<'de> for SomeKind {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        struct Name;
        impl<'de> serde::de::Visitor<'de> for Name {
            type Value = SomeKind;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the name of a kind")
            }
            fn visit_str<E: serde::de::Error>(self, name: &str) -> std::result::Result<SomeKind, E> {
                let known = Kind::ALL.into_iter().find(|k| k.to_string() == name);
                Ok(known.map_or(SomeKind::Unknown, SomeKind::Known))
            }
        }
        d.deserialize_identifier(Name)
    }
}

/// Returns a function table of the library.
fn table<T: AbiTable>(root: RootRef, path: &Path, record: &PluginRecord) -> std::result::Result<&'static T, String> {
    match (root.interface())(T::NAME.into()) {
        ROption::RSome(t) => t.get::<T>().map_err(|long| shorten(path, record, &long)),
        ROption::RNone => Err(format!("it has no table `{}`;\n{}", T::NAME, rebuild(record))),
    }
}

fn rebuild(r: &PluginRecord) -> String {
    format!("rebuild {} {} with galamost-plugin-api {API_MAJOR}.{API_MINOR}", r.name(), r.version())
}

/// Maps a library's file to memory, which takes a third of the time of reading it.
///
/// # Errors
/// Returns an error if the file cannot be opened or mapped.
pub fn contents(path: &Path) -> std::io::Result<Mmap> {
    let file = File::open(path)?;
    // SAFETY: the mapped bytes are those of the file as long as no other program writes it. A library that is written while it is loaded can
    // crash any program, with the mapping of `dlopen` as with this one
    unsafe { Mmap::map(&file) }
}

/// Reads the record from the file, after checking that the file is complete.
fn record(bytes: &[u8]) -> std::result::Result<PluginRecord, String> {
    let broken = |e: object::Error| format!("is not a complete shared library ({e});\nbuild or copy it again");
    let file = object::File::parse(bytes).map_err(broken)?;
    // a truncated library may parse, but accessing its missing pages would crash the process
    for section in file.sections() {
        if let Some((offset, size)) = section.file_range()
            && offset.checked_add(size).is_none_or(|end| end > bytes.len() as u64)
        {
            let name = section.name().unwrap_or("?").to_string();
            return Err(format!(
                "is truncated: section {name} reaches beyond the end of the file;\nbuild or copy it again"
            ));
        }
    }
    let symbols: Vec<_> = file.dynamic_symbols().collect();
    let find = |name: &str| symbols.iter().find(|s| s.name() == Ok(name));
    let Some(symbol) = find(RECORD_SYMBOL) else {
        return Err(format!(
            "exports no {RECORD_SYMBOL}, so it is not a GALAMOST plugin;\nto make it one, add `galamost_plugin_api::plugin!();`"
        ));
    };
    let section = symbol.section_index().and_then(|i| file.section_by_index(i).ok());
    let data = section.and_then(|s| s.data_range(symbol.address(), symbol.size()).ok().flatten());
    let record = data.and_then(PluginRecord::parse);
    let Some(record) = record else {
        return Err(format!(
            "its {RECORD_SYMBOL} is damaged;\nrebuild it with galamost-plugin-api {API_MAJOR}.{API_MINOR}"
        ));
    };
    if find(ROOT_SYMBOL).is_none() {
        return Err(format!("has no root module;\n{}", rebuild(&record)));
    }
    Ok(record)
}

fn check_version(r: &PluginRecord) -> std::result::Result<(), String> {
    let (major, minor) = (r.api_major, r.api_minor);
    if major != API_MAJOR {
        return Err(format!(
            "built for plugin API {major}.{minor}, this engine has {API_MAJOR}.{API_MINOR};\n{}",
            rebuild(r)
        ));
    }
    if r.kernel_api > KERNEL_API {
        return Err(format!(
            "its CUDA code is written for kernel headers {}, this engine has {KERNEL_API};\nuse a newer engine, or {}",
            r.kernel_api,
            rebuild(r)
        ));
    }
    if r.flags & flags::ABORTS != 0 {
        return Err(format!(
            "built with panic = \"abort\": a panic in it would end the run without saving;\nbuild {} {} with panic = \"unwind\"",
            r.name(),
            r.version()
        ));
    }
    Ok(())
}

/// Returns the message of the system's loader from a report of abi_stable, if a library could not be opened.
fn loader_message(path: &Path, long: &str) -> Option<String> {
    let (_, cause) = long.trim().strip_prefix("Could not open library at:")?.split_once("because:")?;
    let cause = cause.split_whitespace().collect::<Vec<_>>().join(" ");
    let named = format!("{}: ", path.display());
    Some(cause.strip_prefix(&named).map_or_else(|| cause.clone(), String::from))
}

/// Writes a long report of abi_stable to a file and returns a message that names the file.
fn shorten(path: &Path, record: &PluginRecord, long: &str) -> String {
    if let Some(cause) = loader_message(path, long) {
        return format!(
            "cannot be loaded: {cause};\ncheck the libraries that it needs (`ldd`), the memory limit (`ulimit -v`) and that its \
             file system is not mounted with `noexec`"
        );
    }
    let advice = rebuild(record);
    if long.trim().lines().count() <= 1 {
        return format!("{};\n{advice}", long.trim());
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let report = std::env::temp_dir().join(format!("galamost-{stem}-{}.txt", std::process::id()));
    let location = match std::fs::write(&report, long) {
        Ok(()) => format!("full report: {}", report.display()),
        Err(e) => format!("the report cannot be written: {e}"),
    };
    format!("the layout of its interface differs from this engine's ({location});\n{advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_loader_says_is_no_difference_of_layouts() {
        let long = "\nCould not open library at:\n\t/p/libx.so\nbecause:\n\t/p/libx.so: failed to map segment from shared object\n\n";
        let r = PluginRecord::new("x", "0.1.0", 0);
        let e = shorten(Path::new("/p/libx.so"), &r, long);
        assert!(e.starts_with("cannot be loaded: failed to map segment from shared object;\n"), "{e}");
        assert!(!e.contains("layout") && !e.contains("rebuild") && e.lines().count() == 2, "{e}");
    }

    #[test]
    fn errors_are_two_lines() {
        let e = record(b"not a library").expect_err("no ELF");
        assert!(e.contains("not a complete shared library"), "{e}");
        let mut r = PluginRecord::new("yukawa", "0.3.0", 0);
        check_version(&r).expect("the same version");
        r.api_major = 7;
        let e = check_version(&r).expect_err("another major version");
        assert_eq!(e.lines().count(), 2);
        assert!(e.contains("built for plugin API 7.") && e.contains("rebuild yukawa 0.3.0"), "{e}");
        r = PluginRecord::new("yukawa", "0.3.0", flags::DEBUG | flags::ABORTS);
        let e = check_version(&r).expect_err("no unwinding");
        assert_eq!(e.lines().count(), 2);
        r = PluginRecord { api_minor: API_MINOR + 5, ..PluginRecord::new("yukawa", "0.3.0", flags::DEBUG) };
        check_version(&r).expect("a newer minor version, built for debugging");
    }
}
