//! Rules for sources: short files, short functions, few loose files in a folder, no circular dependencies between folders.

use galamost_tests::{repository, words};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The longest source file, in lines.
const MAX_FILE: usize = 500;
/// The longest function, in lines.
const MAX_FUNCTION: usize = 80;
/// Functions that may be longer, with the reason.
const LONG_FUNCTIONS: [(&str, &str, &str); 1] = [(
    "plugin-api/src/kinds/pair/cpu.rs",
    "particles",
    "the pair loop of the CPU: LLVM generates 2 % more instructions when it is split into inlined functions",
)];
/// The largest number of files directly in one folder below a `src`.
const MAX_LOOSE_FILES: usize = 12;
/// Folders with sources of this project.
const FOLDERS: [&str; 7] = ["engine", "plugin-api", "plugins", "kernels", "tests", "xtask", "examples"];

/// All files with one of these endings below a folder, without build output and hidden folders.
fn files(folder: &Path, endings: &[&str], out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").filter_map(Result::ok) {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                files(&path, endings, out);
            }
        } else if path.extension().is_some_and(|e| endings.iter().any(|k| e == *k)) {
            out.push(path);
        }
    }
}

fn sources(endings: &[&str]) -> Vec<(String, String)> {
    let root = repository();
    let mut found = vec![];
    for folder in FOLDERS {
        files(&root.join(folder), endings, &mut found);
    }
    let read = |p: PathBuf| {
        let name = p.strip_prefix(&root).unwrap_or(&p).to_string_lossy().into_owned();
        (name, std::fs::read_to_string(&p).expect("a source"))
    };
    let all: Vec<_> = found.into_iter().map(read).collect();
    assert!(all.len() > 100, "only {} sources found", all.len());
    all
}

/// Name and length of the functions of a file that rustfmt has formatted: a function ends at the brace in its own column.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = vec![];
    for (k, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let words: Vec<&str> = code.split_whitespace().take(6).collect();
        let Some(at) = words.iter().position(|w| *w == "fn") else { continue };
        let qualifier =
            |w: &&str| w.starts_with("pub") || matches!(*w, "const" | "unsafe" | "extern" | "\"C\"" | "async");
        if !words[..at].iter().all(qualifier) || code.starts_with("//") {
            continue;
        }
        let end = format!("{}}}", &line[..line.len() - code.len()]);
        let rest = &lines[k..];
        // a declaration without a body ends before any brace
        if line.trim_end().ends_with("{}") {
            continue;
        }
        let body = rest.iter().position(|l| l.trim_end().ends_with('{') || l.trim_end().ends_with('}'));
        let declaration = rest.iter().position(|l| l.trim_end().ends_with(';'));
        if body.is_none() || declaration < body && declaration.is_some() {
            continue;
        }
        if let Some(length) = rest.iter().position(|l| l.trim_end() == end) {
            let name = words.get(at + 1).map_or("", |n| n.split(['(', '<']).next().unwrap_or_default());
            found.push((name.to_string(), length + 1));
        }
    }
    found
}

#[test]
fn functions_are_measured() {
    let text = "trait T {\n    fn a(&self);\n}\nimpl T for U {\n    fn a(&self) {\n        b();\n    }\n}\npub fn c() {}\ntrait V {\n    fn d(&self) {}\n    fn e(&self);\n}\n";
    assert_eq!(functions(text), [("a".to_string(), 3)]);
}

#[test]
fn files_and_functions_are_short() {
    let mut long = vec![];
    for (name, text) in sources(&["rs", "cuh", "cu", "h"]) {
        let n = text.lines().count();
        if n > MAX_FILE {
            long.push(format!("{name} has {n} lines, more than {MAX_FILE}"));
        }
        if name.ends_with(".rs") {
            let exempt = |f: &str| LONG_FUNCTIONS.iter().any(|(file, function, _)| *file == name && *function == f);
            let too_long = functions(&text).into_iter().filter(|(f, n)| *n > MAX_FUNCTION && !exempt(f));
            long.extend(too_long.map(|(f, n)| format!("{name}: `{f}` has {n} lines, more than {MAX_FUNCTION}")));
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn folders_hold_few_loose_files() {
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for (name, _) in sources(&["rs", "cuh", "cu", "h"]) {
        let folder = Path::new(&name).parent().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
        if folder.split('/').any(|p| p == "src") {
            *count.entry(folder).or_default() += 1;
        }
    }
    count.retain(|_, n| *n > MAX_LOOSE_FILES);
    assert!(count.is_empty(), "more than {MAX_LOOSE_FILES} files: {count:?}");
}

/// A safety comment names its invariant. A reference to another comment is lost when code between the two is edited.
#[test]
fn safety_comments_name_the_invariant() {
    const REFERENCES: [&str; 7] = ["as above", "as in ", "as for ", "see ", "same", "the same", "above"];
    let mut vague = vec![];
    for (name, text) in sources(&["rs"]) {
        for (k, line) in text.lines().enumerate() {
            let comment = line.trim_start().strip_prefix("// SAFETY: ");
            if comment.is_some_and(|c| REFERENCES.iter().any(|r| c.starts_with(r))) {
                vague.push(format!("{name}:{}: {}", k + 1, line.trim()));
            }
        }
    }
    assert!(vague.is_empty(), "name the invariant:\n{}", vague.join("\n"));
}

/// The modules of a crate: path of names to source text, without comments and unit tests.
fn modules(src: &Path) -> BTreeMap<Vec<String>, String> {
    let mut found = vec![];
    files(src, &["rs"], &mut found);
    let module = |p: &PathBuf| {
        let relative = p.strip_prefix(src).expect("below src").with_extension("");
        let mut names: Vec<String> = relative.iter().map(|n| n.to_string_lossy().into_owned()).collect();
        if names.last().is_some_and(|n| matches!(n.as_str(), "mod" | "lib" | "main")) {
            names.pop();
        }
        let text = std::fs::read_to_string(p).expect("a source");
        let code: Vec<&str> = text.lines().map(|l| l.split("//").next().unwrap_or_default()).collect();
        let code = code.join("\n");
        (names, code.split("#[cfg(test)]\nmod").next().unwrap_or_default().to_string())
    };
    found.iter().map(module).collect()
}

/// The paths of a `use` after its first name, with braces taken apart.
fn expand(path: &str) -> Vec<Vec<String>> {
    let Some(open) = path.find('{') else {
        let names = path.split(" as ").next().unwrap_or_default().split("::");
        return vec![names.map(|n| n.trim().to_string()).filter(|n| !n.is_empty() && n != "*").collect()];
    };
    let before: Vec<String> =
        path[..open].split("::").map(|n| n.trim().to_string()).filter(|n| !n.is_empty()).collect();
    let inside = &path[open + 1..path.rfind('}').unwrap_or(path.len())];
    let (mut parts, mut depth, mut start) = (vec![], 0, 0);
    for (k, c) in inside.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inside[start..k]);
                start = k + 1;
            }
            _ => {}
        }
    }
    parts.push(&inside[start..]);
    let parts = parts.into_iter().filter(|p| !p.trim().is_empty());
    parts.flat_map(expand).map(|p| [before.clone(), p].concat()).collect()
}

/// All paths that a module names, from the root of its crate.
fn named(module: &[String], code: &str) -> Vec<Vec<String>> {
    let mut found = vec![];
    for piece in code.split("use ").skip(1) {
        let Some(path) = piece.split(';').next() else { continue };
        let mut base = module.to_vec();
        let mut rest = path.trim();
        if let Some(r) = rest.strip_prefix("crate::") {
            (base, rest) = (vec![], r);
        } else if let Some(r) = rest.strip_prefix("self::") {
            rest = r;
        } else if rest.starts_with("super::") {
            while let Some(r) = rest.strip_prefix("super::") {
                base.pop();
                rest = r;
            }
        } else {
            continue;
        }
        found.extend(expand(rest).into_iter().map(|p| [base.clone(), p].concat()));
    }
    let path = |piece: &str| {
        let end = piece.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').unwrap_or(piece.len());
        piece[..end].split("::").filter(|n| !n.is_empty()).map(str::to_string).collect()
    };
    found.extend(code.split("crate::").skip(1).map(path));
    found
}

/// Which top-level module of a crate names which others. `pub use folder::{name}` in the root makes `crate::name` mean
/// `folder`.
fn folders(src: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let modules = modules(src);
    let mut facade: BTreeMap<String, String> = BTreeMap::new();
    for piece in modules.get(&vec![]).map_or("", String::as_str).split("pub use ").skip(1) {
        for path in expand(piece.split(';').next().unwrap_or_default()) {
            if let [folder, .., name] = &path[..] {
                facade.insert(name.clone(), folder.clone());
            }
        }
    }
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let tops: BTreeSet<&String> = modules.keys().filter_map(|m| m.first()).collect();
    for (module, code) in modules.iter().filter(|(m, _)| !m.is_empty()) {
        for target in named(module, code).iter().filter_map(|p| p.first()) {
            let target = facade.get(target).unwrap_or(target);
            if tops.contains(target) && *target != module[0] {
                edges.entry(module[0].clone()).or_default().insert(target.clone());
            }
        }
    }
    edges
}

/// A circle through a folder, if there is one: a path from the folder back to itself.
fn circle(edges: &BTreeMap<String, BTreeSet<String>>, is_folder: impl Fn(&str) -> bool) -> Option<Vec<String>> {
    edges.keys().filter(|name| is_folder(name)).find_map(|start| {
        let mut paths = vec![vec![start.clone()]];
        let mut seen = BTreeSet::new();
        while let Some(path) = paths.pop() {
            for next in edges.get(&path[path.len() - 1]).into_iter().flatten() {
                let longer = [path.clone(), vec![next.clone()]].concat();
                if next == start {
                    return Some(longer);
                }
                if seen.insert(next.clone()) {
                    paths.push(longer);
                }
            }
        }
        None
    })
}

#[test]
fn a_dependency_circle_is_found() {
    let edges = |list: &[(&str, &str)]| {
        let mut map: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        list.iter().for_each(|(a, b)| {
            map.entry((*a).into()).or_default().insert((*b).into());
        });
        map
    };
    assert_eq!(circle(&edges(&[("a", "b"), ("b", "c"), ("a", "c")]), |_| true), None);
    let found = circle(&edges(&[("a", "b"), ("b", "c"), ("c", "b")]), |name| name == "c");
    assert_eq!(found, Some(["c", "b", "c"].map(String::from).into()));
    // files of one folder may depend on each other
    assert_eq!(circle(&edges(&[("b", "c"), ("c", "b")]), |_| false), None);
    assert_eq!(expand("a::{b, c::{d, e as f}}").concat().join(" "), "a b a c d a c e");
}

#[test]
fn folders_do_not_form_circles() {
    let root = repository();
    let mut crates: Vec<PathBuf> =
        ["engine", "engine/cli", "engine/python", "plugin-api", "plugin-api/macros", "kernels", "xtask"]
            .map(|c| root.join(c))
            .into();
    for folder in ["plugins", "plugins/support"] {
        let entries = std::fs::read_dir(root.join(folder)).expect("plugins").filter_map(Result::ok);
        crates.extend(entries.map(|e| e.path()).filter(|p| p.join("Cargo.toml").exists()));
    }
    let mut edges_found = 0;
    for c in crates {
        let edges = folders(&c.join("src"));
        edges_found += edges.len();
        let is_folder = |name: &str| c.join("src").join(name).is_dir();
        assert_eq!(
            circle(&edges, is_folder),
            None,
            "{}: folders and files of src depend on each other in a circle",
            c.display()
        );
    }
    assert!(edges_found > 50, "only {edges_found} folders with uses were found");
}

fn cargo(args: &[&str]) -> String {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let out = Command::new(cargo).args(args).arg("--offline").current_dir(repository()).output().expect("cargo runs");
    assert!(out.status.success(), "{args:?}: {}", words(&out));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// Features with which packages are built, by name and version.
fn features(selection: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in cargo(&[&["tree", "--prefix", "none", "--format", "{p}|{f}"], selection].concat()).lines() {
        if let Some((package, features)) = line.trim_end_matches(" (*)").split_once('|') {
            found.entry(package.into()).or_default().insert(features.into());
        }
    }
    found
}

/// Cargo enables the features that the selected packages need together. If the tests need others than the program and its
/// plugins, cargo compiles the engine and the program twice.
#[test]
fn tests_use_the_crates_that_cargo_build_has_compiled() {
    let (built, tested) = (features(&["--edges", "normal,build"]), features(&["--package", "galamost-tests"]));
    assert!(built.len() > 100 && tested.len() > 100, "{} and {} packages", built.len(), tested.len());
    for (package, features) in tested.iter().filter(|(p, _)| built.contains_key(*p)) {
        let more: Vec<&String> = features.difference(&built[package]).collect();
        assert!(more.is_empty(), "{package}: built with {:?}, tested with {more:?}", built[package]);
    }
}

/// Cargo would compile the dependencies of plugins outside of the workspace once more for other features.
#[test]
fn plugins_outside_of_the_workspace_use_what_cargo_build_has_compiled() {
    for plugin in ["tests/abi/fixture", "tests/abi/tiny"].map(|f| repository().join(f)) {
        std::fs::copy(repository().join("Cargo.lock"), plugin.join("Cargo.lock")).expect("copied");
        let manifest = plugin.join("Cargo.toml").to_string_lossy().into_owned();
        let (built, used) = (features(&["--edges", "normal,build"]), features(&["--manifest-path", &manifest]));
        // those of the workspace have other paths there
        let others = used.iter().filter(|(p, _)| !p.contains(" (/"));
        assert!(others.clone().count() > 30, "{used:?}");
        for (package, features) in others {
            assert!(
                built.get(package).is_some_and(|b| features.is_subset(b)),
                "{package}: built with {:?}, used with {features:?}",
                built.get(package)
            );
        }
    }
}

/// Unit tests are compiled without optimization and with assertions, in every crate.
#[test]
fn every_crate_has_its_profile_of_unit_tests() {
    let metadata: serde_json::Value =
        serde_json::from_str(&cargo(&["metadata", "--no-deps", "--format-version", "1"])).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let members: BTreeSet<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    let manifest = std::fs::read_to_string(repository().join("Cargo.toml")).expect("a manifest");
    let (_, list) = manifest.split_once("[profile.bench.package]\n").expect("a list");
    let setting = " = { opt-level = 0, debug-assertions = true, overflow-checks = true }";
    let listed: BTreeSet<&str> =
        list.lines().map_while(|l| l.strip_suffix(setting)).chain(["galamost-tests"]).collect();
    assert_eq!(listed, members);
}
