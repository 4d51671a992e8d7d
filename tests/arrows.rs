//! Dependencies between the crates: engine → plugin-api ← plugins, engine → kernels, inversion → tables; text, measure,
//! pictures, gromacs and sites → plugin-api. `kernels` and `tables` depend on nothing.

use galamost_tests::repository;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Dependencies on other packages of the workspace, by package.
fn workspace_dependencies() -> BTreeMap<String, Vec<String>> {
    let out = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()))
        .args([
            "tree",
            "--workspace",
            "--depth",
            "1",
            "--no-dedupe",
            "--edges",
            "normal",
            "--prefix",
            "depth",
            "--locked",
        ])
        .current_dir(repository())
        .output()
        .expect("cargo tree");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let mut map = BTreeMap::new();
    let mut package = String::new();
    for line in text.lines().filter(|l| !l.is_empty()) {
        let (depth, rest) = line.split_at(1);
        let name = rest.split_whitespace().next().unwrap_or_default().to_string();
        // only packages of this repository have a path behind them
        let ours = rest.contains("(/") || rest.contains("(proc-macro) (/");
        match depth {
            "0" => {
                package = name.clone();
                map.insert(name, vec![]);
            }
            _ if ours => map.entry(package.clone()).or_insert_with(Vec::new).push(name),
            _ => {}
        }
    }
    map
}

/// Plugins, and the workspace libraries that each may use besides the plugin API: tables and sums of analyzers, pictures,
/// splines of tables, text files, topologies of GROMACS, virtual sites.
const PLUGINS: [(&str, &[&str]); 22] = [
    ("analyzers", &["galamost-measure", "galamost-plugin-api"]),
    ("anisotropic", &["galamost-plugin-api"]),
    ("barostats", &["galamost-plugin-api"]),
    ("bodies", &["galamost-plugin-api"]),
    ("bonded", &["galamost-plugin-api"]),
    ("constraints", &["galamost-plugin-api"]),
    ("dpd", &["galamost-plugin-api"]),
    ("electrostatics", &["galamost-measure", "galamost-plugin-api"]),
    ("expression", &["galamost-plugin-api"]),
    ("external", &["galamost-plugin-api"]),
    ("flow", &["galamost-measure", "galamost-plugin-api"]),
    ("formats", &["galamost-gromacs", "galamost-measure", "galamost-plugin-api", "galamost-sites", "galamost-text"]),
    ("generators", &["galamost-plugin-api"]),
    ("integrators", &["galamost-plugin-api"]),
    ("md-scf", &["galamost-measure", "galamost-plugin-api"]),
    ("pairs", &["galamost-plugin-api"]),
    ("pictures", &["galamost-pictures", "galamost-plugin-api"]),
    ("reactions", &["galamost-measure", "galamost-plugin-api"]),
    ("rosenbluth", &["galamost-measure", "galamost-plugin-api"]),
    ("rotational", &["galamost-plugin-api"]),
    ("sites", &["galamost-plugin-api", "galamost-sites"]),
    ("table", &["galamost-plugin-api", "galamost-tables"]),
];

#[test]
fn plugins_depend_on_neither_the_engine_nor_each_other() {
    let map = workspace_dependencies();
    let there = |p: &&str| repository().join("plugins").join(p).join("Cargo.toml").exists();
    let plugins: Vec<&str> = map.keys().map(String::as_str).filter(there).collect();
    assert_eq!(plugins, PLUGINS.map(|(name, _)| name));
    for (plugin, allowed) in PLUGINS {
        assert_eq!(map[plugin], allowed, "dependencies of {plugin}");
    }
    assert_eq!(map["galamost-kernels"], Vec::<String>::new());
    assert_eq!(map["galamost-tables"], Vec::<String>::new());
    assert_eq!(map["galamost-text"], ["galamost-plugin-api"]);
    assert_eq!(map["galamost-measure"], ["galamost-plugin-api"]);
    assert_eq!(map["galamost-gromacs"], ["galamost-plugin-api"]);
    assert_eq!(map["galamost-sites"], ["galamost-plugin-api"]);
    assert_eq!(map["galamost-inversion"], ["galamost-tables"]);
    assert_eq!(map["galamost-pictures"], ["galamost-measure", "galamost-plugin-api"]);
    assert_eq!(map["galamost-plugin-api"], ["galamost-plugin-macros"]);
    assert_eq!(
        map["galamost-engine"],
        ["galamost-kernels", "galamost-plugin-api"],
        "the engine names no plugin and no tool"
    );
    assert_eq!(
        map["galamost"],
        [
            "galamost-engine",
            "galamost-gromacs",
            "galamost-inversion",
            "galamost-measure",
            "galamost-pictures",
            "galamost-plugin-api",
            "galamost-tables"
        ],
        "the program names no plugin"
    );
    assert_eq!(
        map["galamost-python"],
        ["galamost", "galamost-engine", "galamost-pictures", "galamost-plugin-api"],
        "the Python module is thin over the engine and the program"
    );
}

fn sources(folder: &Path, out: &mut Vec<std::path::PathBuf>) {
    for e in std::fs::read_dir(folder).expect("a folder").filter_map(Result::ok) {
        let path = e.path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|x| x == "rs") {
            out.push(path);
        }
    }
}

/// Lines of code (not comments) that contain a word.
fn naming(word: &str) -> Vec<String> {
    let root = repository();
    let mut files = vec![];
    for folder in ["engine/src", "engine/cli/src", "plugin-api/src", "plugin-api/macros/src", "plugins"] {
        sources(&root.join(folder), &mut files);
    }
    let mut found = vec![];
    for f in files {
        let text = std::fs::read_to_string(&f).expect("a source");
        let code = text.lines().filter(|l| !l.trim_start().starts_with("//"));
        if code.into_iter().any(|l| l.contains(&format!("{word}::"))) {
            found.push(f.strip_prefix(&root).unwrap_or(&f).to_string_lossy().into_owned());
        }
    }
    found.sort();
    found
}

#[test]
fn abi_stable_and_cudarc_are_each_used_in_one_place() {
    assert_eq!(naming("abi_stable"), ["plugin-api/src/stable.rs"]);
    let cudarc = naming("cudarc");
    assert!(!cudarc.is_empty() && cudarc.iter().all(|f| f.starts_with("engine/src/device/")), "{cudarc:?}");
}
