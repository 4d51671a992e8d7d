//! Builds plugins against older, newer, and incompatible plugin APIs and loads them.
//!
//! `abi/README.md` lists the program's messages for each of them; `GALAMOST_BLESS=1` rewrites that page.

use galamost_plugin_api::plugin_record::{API_MAJOR, API_MINOR, KERNEL_API, MAGIC, PluginRecord};
use galamost_tests::variants::{Edit, build, changed_api, outside, plugin_crate};
use galamost_tests::{galamost, repository, words};
use std::fmt::Write as _;
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

const PIPELINE: &str = r#"(
    device: Cpu,
    initial: [ RandomPositions(count: 10, box: [5.0, 5.0, 5.0]) ],
    forces: [ Tiny(f: 1.0) ],
    integrators: [ VelocityVerlet() ],
    analyzers: [ Thermo(every: 10, file: "t.csv") ],
    stages: [ (steps: 10, dt: 0.01) ],
)"#;

/// The outcome of a run with a plugin.
struct Seen {
    title: &'static str,
    exit: i32,
    said: String,
    rows: Option<String>,
}

/// Runs a pipeline with these plugins. Paths in the messages are replaced by `…`.
fn seen(title: &'static str, plugins: &[(&str, &[u8])], pipeline: &str) -> Seen {
    let f = tempfile::tempdir().expect("a folder");
    let folder = f.path().join("plugins");
    std::fs::create_dir(&folder).expect("a folder");
    for (name, bytes) in plugins {
        std::fs::write(folder.join(name), bytes).expect("written");
    }
    std::fs::write(f.path().join("p.ron"), pipeline).expect("written");
    let out = galamost(f.path(), &["--pipeline", "p.ron", "--plugin-dir", "plugins", "--quiet"]);
    let all = words(&out);
    let canonical = f.path().canonicalize().expect("a path");
    let mut said = all.replace(&canonical.display().to_string(), "…");
    // the report of abi_stable has another name in each run
    if let Some((before, rest)) = said.clone().split_once("full report: ") {
        let (report, rest) = rest.split_once(')').expect("a bracket");
        let text = std::fs::read_to_string(report).expect("the report is there");
        assert!(text.lines().count() > 5, "{text}");
        std::fs::remove_file(report).expect("removed");
        said = format!("{before}full report: FILE){rest}");
    }
    // the error repeats the warning; the line of the pipeline follows it
    if let Some(at) = said.find("p.ron:") {
        said = said[at..].split("\n  |").next().unwrap_or_default().into();
    }
    let rows = std::fs::read_to_string(f.path().join("t.csv")).ok();
    Seen { title, exit: out.status.code().expect("no signal"), said: said.trim().into(), rows }
}

/// Checks that a plugin is rejected in two lines if the pipeline names it, and with a warning otherwise.
fn rejected(title: &'static str, bytes: &[u8]) -> Seen {
    let one = seen(title, &[("libtiny.so", bytes)], PIPELINE);
    assert_eq!(one.exit, 2, "{title}: {}", one.said);
    assert_eq!(one.said.lines().count(), 2, "{title}: {}", one.said);
    assert!(one.said.starts_with("p.ron:4:15: ") && one.said.contains("…/plugins/libtiny.so"), "{}", one.said);
    assert!(one.rows.is_none(), "{title}: it was run");
    // tables are checked only when a component is created
    if !one.said.contains("layout of its interface") {
        let other = seen(title, &[("libtiny.so", bytes)], &PIPELINE.replace("Tiny(f: 1.0)", ""));
        assert_eq!(other.exit, 0, "{title}: {}", other.said);
        assert!(other.said.starts_with("WARN …/plugins/libtiny.so: "), "{title}: {}", other.said);
    }
    one
}

fn edit(file: &'static str, from: &str, to: &str) -> Edit {
    (file, from.into(), to.into())
}

/// Builds the smallest plugin with the plugin API of this workspace and these arguments of cargo. Returns its bytes.
fn tiny(variant: &str, how: &[&str]) -> Vec<u8> {
    built(variant, &repository().canonicalize().expect("a path").join("plugin-api"), &[], how)
}

/// Builds the smallest plugin with these changes of the plugin API and of its source. Returns its bytes.
fn changed_tiny(variant: &str, api: &[Edit], source: &[Edit]) -> Vec<u8> {
    built(variant, &changed_api(variant, api), source, &RELEASE)
}

fn built(variant: &str, api: &Path, source: &[Edit], how: &[&str]) -> Vec<u8> {
    let name = if variant == "twin" { "twin" } else { "tiny" };
    let to = outside().join("built").join(variant).join("libtiny.so");
    build(&plugin_crate("tiny", variant, name, api, source), how, &to);
    std::fs::read(to).expect("a library")
}

const RELEASE: [&str; 2] = ["build", "--release"];

/// Changes to the API that a later minor version may make.
fn future_api() -> (Vec<Edit>, Vec<Edit>) {
    let views = std::fs::read_to_string(repository().join("plugin-api/src/abi/views.rs")).expect("a text");
    let state = &views[views.find("pub struct StateView").expect("StateView")..];
    let (_, words) = state.split_once("pub reserved: [u64; ").expect("reserved words");
    let words: u32 = words.split(']').next().expect("a number").parse().expect("a number");
    let api = vec![
        edit(
            "plugin_record.rs",
            &format!("API_MINOR: u32 = {API_MINOR}"),
            &format!("API_MINOR: u32 = {}", API_MINOR + 41),
        ),
        // a reserved word in use
        edit(
            "views.rs",
            &format!("    /// Reserved; must be 0.\n    pub reserved: [u64; {words}],"),
            &format!(
                "    /// New.\n    pub halo: DevicePtr<u8>,\n    /// Reserved; must be 0.\n    pub reserved: [u64; {}],",
                words - 1
            ),
        ),
        edit(
            "views.rs",
            &format!("reserved: [0; {words}]"),
            &format!("halo: DevicePtr::null(),\n            reserved: [0; {}]", words - 1),
        ),
        // a table with a new method
        edit(
            "abi/tables.rs",
            "Component1: \"component/1\",",
            "Component1: \"component/1\", Component2: \"component/2\",",
        ),
        edit(
            "abi/tables.rs",
            "/// `generator/1`.",
            "/// `component/2`.\n#[repr(C)]\n#[derive(StableAbi)]\npub struct Component2 {\n    /// New.\n    pub reset: extern \"C\" fn(*mut Opaque) -> Wire<()>,\n}\n\n/// `generator/1`.",
        ),
        edit(
            "adapters/object.rs",
            "            other => A::table(other).into(),",
            "            \"component/2\" => ROption::RSome(TablePointer::new(Self::NEW)),\n            other => A::table(other).into(),",
        ),
        edit(
            "adapters/object.rs",
            "    extern \"C\" fn interface(_: *mut Opaque, name",
            "    const NEW: &'static crate::abi::Component2 = &crate::abi::Component2 { reset: Self::finish };\n\n    extern \"C\" fn interface(_: *mut Opaque, name",
        ),
        // a new kind of components, and new fields of what crosses as text
        edit("kinds/component.rs", "    Sampler = 7,", "    Sampler = 7,\n    /// New.\n    Constraint = 8,"),
        edit(
            "kinds/component.rs",
            "Self::Analyzer => \"analyzers\",",
            "Self::Analyzer => \"analyzers\",\n            Self::Constraint => \"constraints\",",
        ),
        edit(
            "kinds/component.rs",
            "    pub notes: Vec<String>,",
            "    pub notes: Vec<String>,\n    /// New.\n    pub halo: f64,",
        ),
        edit("kinds/component.rs", "            notes: vec![],", "            notes: vec![],\n            halo: 3.0,"),
        edit(
            "system.rs",
            "    pub api_minor: u32,",
            "    pub api_minor: u32,\n    /// New.\n    pub temperature: f64,",
        ),
        edit(
            "kinds/component.rs",
            "    pub fields: Vec<FieldDoc>,\n}",
            "    pub fields: Vec<FieldDoc>,\n    /// New.\n    pub since: u32,\n}",
        ),
        edit("kinds/component.rs", "fields: (self.fields)() }", "fields: (self.fields)(), since: 42 }"),
    ];
    let source = vec![edit(
        "lib.rs",
        "galamost_plugin_api::plugin!();",
        "galamost_plugin_api::inventory::submit! {\n    galamost_plugin_api::component::Registration {\n        name: \"Shake\",\n        former_names: &[],\n        kind: galamost_plugin_api::component::Kind::Constraint,\n        doc: \"\",\n        fields: || vec![],\n        create: |_, _| Err(Error::input(\"never\")),\n    }\n}\n\ngalamost_plugin_api::plugin!();",
    )];
    (api, source)
}

/// A C library that is no plugin.
fn c_library() -> Vec<u8> {
    let f = tempfile::tempdir().expect("a folder");
    std::fs::write(f.path().join("a.c"), "double twice(double x) { return 2.0 * x; }\n").expect("written");
    let built = Command::new("cc").args(["-shared", "-fPIC", "a.c", "-o", "a.so"]).current_dir(f.path()).status();
    assert!(built.expect("cc, which links Rust programs, too").success());
    std::fs::read(f.path().join("a.so")).expect("a library")
}

/// Arguments of cargo for debug assertions and overflow checks in the plugin, the plugin API and the library that checks
/// layouts. All else, also the macros, is shared with other builds.
fn debug() -> Vec<String> {
    let mut how = RELEASE.map(String::from).to_vec();
    for package in ["tiny", "galamost-plugin-api", "abi_stable"] {
        for setting in ["opt-level=0", "debug-assertions=true", "overflow-checks=true"] {
            how.extend(["--config".into(), format!("profile.release.package.{package}.{setting}")]);
        }
    }
    how
}

/// Runs plugins that must be accepted. Returns the results, and the output of the unchanged plugin.
fn accepted(sound: &[u8]) -> Vec<Seen> {
    let mut all = vec![seen("Current plugin API", &[("libtiny.so", sound)], PIPELINE)];
    let rows = all[0].rows.clone().expect("it runs");
    let kinetic = rows.lines().last().expect("a row").split(',').nth(1).expect("a number").to_string();
    assert!(all[0].exit == 0 && all[0].said.is_empty(), "{}", all[0].said);
    assert!(kinetic.parse::<f64>().is_ok(), "{rows}");
    let debug = tiny("debug", &debug().iter().map(String::as_str).collect::<Vec<_>>());
    all.push(seen("Built with debug assertions", &[("libtiny.so", &debug)], PIPELINE));
    let (api, source) = future_api();
    let future = changed_tiny("future", &api, &source);
    all.push(seen(
        "Later minor version: a reserved word in use, a new table, a new kind, new fields in RON texts",
        &[("libtiny.so", &future)],
        PIPELINE,
    ));
    let twin = tiny("twin", &RELEASE);
    all.push(seen(
        "Two plugins with a component of the same name: the first is used",
        &[("libtiny.so", sound), ("libtwin.so", &twin)],
        PIPELINE,
    ));
    for s in &all {
        assert_eq!(s.exit, 0, "{}: {}", s.title, s.said);
        assert_eq!(s.rows.as_ref(), Some(&rows), "{}: another result", s.title);
    }
    all.push(seen(
        "Later minor version, and the pipeline uses a component of the new kind",
        &[("libtiny.so", &future)],
        &PIPELINE.replace("Tiny(f: 1.0)", "Shake()"),
    ));
    assert_eq!(all.last().map(|s| s.exit), Some(2));
    all
}

/// The position of a plugin's record in its library.
fn record(library: &[u8]) -> usize {
    library.windows(MAGIC.len()).position(|w| w == MAGIC).expect("a record")
}

/// Runs plugins that were built against an incompatible API and must be rejected.
fn incompatible(sound: &[u8]) -> Vec<Seen> {
    // the versions are in the record only, so writing another there has the effect of a build with another constant
    let with = |member: usize, of: u32, to: u32| {
        let (mut library, at) = (sound.to_vec(), record(sound) + member);
        assert_eq!(library[at..at + 4], of.to_ne_bytes());
        library[at..at + 4].copy_from_slice(&to.to_ne_bytes());
        library
    };
    let mut all = vec![];
    let major = with(offset_of!(PluginRecord, api_major), API_MAJOR, API_MAJOR + 1);
    all.push(rejected("Different major version", &major));
    let kernels = with(offset_of!(PluginRecord, kernel_api), KERNEL_API, KERNEL_API + 1);
    all.push(rejected("Device code for newer kernel headers", &kernels));
    let layout = [
        edit(
            "views.rs",
            "    pub pos_low: DevicePtr<u32>,",
            "    pub middle: DevicePtr<u32>,\n    /// Was there before.\n    pub pos_low: DevicePtr<u32>,",
        ),
        edit(
            "views.rs",
            "            pos_low: DevicePtr::null(),",
            "            middle: DevicePtr::null(),\n            pos_low: DevicePtr::null(),",
        ),
    ];
    all.push(rejected("New member in the middle of a struct", &changed_tiny("layout", &layout, &[])));
    let table = [
        edit(
            "abi/tables.rs",
            "pub struct Force1 {\n",
            "pub struct Force1 {\n    /// New.\n    pub prepare: extern \"C\" fn(*mut Opaque),\n",
        ),
        edit(
            "adapters/tables.rs",
            "    force_table: Force1 in ForceInterface {\n",
            "    force_table: Force1 in ForceInterface {\n        prepare: fn() -> () = |_this| {};\n",
        ),
    ];
    all.push(rejected("Changed published table", &changed_tiny("table", &table, &[])));
    all
}

#[test]
fn every_plugin_is_accepted_or_rejected_as_documented() {
    let sound = tiny("sound", &RELEASE);
    let mut all = accepted(&sound);
    all.extend(incompatible(&sound));
    let abort = tiny("abort", &["rustc", "--release", "--", "-C", "panic=abort"]);
    all.push(rejected("Built with panic = \"abort\"", &abort));
    let mut damaged = sound.clone();
    damaged[record(&sound)] = b'X';
    all.push(rejected("Damaged plugin record", &damaged));
    all.push(rejected("C library that is not a plugin", &c_library()));
    all.push(rejected("File that is not a library", b"not a library at all"));
    for share in [1, 50, 99] {
        let cut = rejected("Truncated library", &sound[..sound.len() / 100 * share]);
        if share == 50 {
            all.push(cut);
        }
    }

    let mut page = std::fs::read_to_string(repository().join("tests/abi/HEAD.md")).expect("the page's head");
    for s in &all {
        let said = if s.said.is_empty() { "(nothing)" } else { &s.said };
        let _ = write!(page, "\n## {}\n\n```text\n{said}\n```\n\nExit status {}.\n", s.title, s.exit);
    }
    compare(&repository().join("tests/abi/README.md"), &page);
}

/// Compares with the page, or writes it if `GALAMOST_BLESS` is set.
fn compare(path: &Path, page: &str) {
    if std::env::var_os("GALAMOST_BLESS").is_some() {
        std::fs::write(path, page).expect("written");
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    for (seen, written) in page.lines().zip(written.lines()) {
        assert_eq!(seen, written, "{} has another text; GALAMOST_BLESS=1 rewrites it", path.display());
    }
    assert_eq!(page.lines().count(), written.lines().count(), "{} has other cases", path.display());
}
