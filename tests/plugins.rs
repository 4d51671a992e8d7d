//! Plugins that are damaged, built for another version, or installed twice.

use galamost_plugin_api::plugin_record::API_MINOR;
use galamost_tests::{galamost, output, program, registry, repository, words};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PIPELINE: &str = r#"(
    device: Cpu,
    initial: [ RandomPositions(count: 10, box: [5.0, 5.0, 5.0]) ],
    forces: [ Springs(r_cut: 1.0) ],
    stages: [ (steps: 0, dt: 0.01) ],
)"#;

/// The bytes of a plugin of the workspace, and the position of its record.
fn dpd() -> (Vec<u8>, usize) {
    let bytes = std::fs::read(output().join("libdpd.so")).expect("libdpd.so");
    let at = bytes.windows(16).position(|w| w == b"GALAMOST-PLUGIN\0").expect("a record");
    (bytes, at)
}

fn check(file: &str, bytes: &[u8], pipeline: &str) -> (tempfile::TempDir, Output) {
    let f = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(f.path().join("plugins")).expect("a folder");
    std::fs::write(f.path().join("plugins").join(file), bytes).expect("written");
    std::fs::write(f.path().join("p.ron"), pipeline).expect("written");
    let out = galamost(f.path(), &["check", "p.ron", "--plugin-dir", "plugins"]);
    (f, out)
}

fn refused(file: &str, bytes: &[u8], expected: &[&str]) {
    let (_f, out) = check(file, bytes, PIPELINE);
    let said = words(&out);
    assert_eq!(out.status.code(), Some(2), "{said}");
    let error = said.lines().find(|l| l.starts_with("p.ron:4:15:")).unwrap_or_else(|| panic!("no error:\n{said}"));
    for e in expected {
        assert!(said.contains(e), "`{e}` is not in\n{said}");
    }
    assert!(error.contains("Springs") && error.contains("libsprings.so"), "{error}");
    // the same file is no obstacle to a pipeline that does not need it: it is warned about
    let other = PIPELINE.replace("Springs(r_cut: 1.0)", "");
    let (_f, out) = check(file, bytes, &other);
    assert_eq!(out.status.code(), Some(0), "{}", words(&out));
    assert!(words(&out).contains("WARN") && words(&out).contains(file), "{}", words(&out));
}

#[test]
fn a_truncated_library_is_reported() {
    let (bytes, _) = dpd();
    refused("libsprings.so", &bytes[..bytes.len() / 2], &["not a complete shared library"]);
    refused("libsprings.so", b"not a library at all", &["not a complete shared library"]);
}

/// What the system's loader refuses is no matter of layouts.
#[test]
fn a_library_that_the_system_cannot_load_is_reported() {
    let (mut bytes, _) = dpd();
    let (needed, missing) = (b"libgcc_s.so.1\0", b"libgcc_q.so.1\0");
    let at = bytes.windows(needed.len()).position(|w| w == needed).expect("a library that it needs");
    bytes[at..at + needed.len()].copy_from_slice(missing);
    refused("libsprings.so", &bytes, &["cannot be loaded: libgcc_q.so.1: cannot open shared object file", "`ldd`"]);
    let (_f, out) = check("libsprings.so", &bytes, PIPELINE);
    assert!(!words(&out).contains("layout") && !words(&out).contains("full report"), "{}", words(&out));
}

/// Code and data of a library overwritten, so that loading it crashes.
fn damaged() -> Vec<u8> {
    let (mut bytes, at) = dpd();
    let n = bytes.len();
    for k in (n / 8..n * 7 / 8).filter(|k| k.abs_diff(at) > 4096) {
        bytes[k] ^= 0x5a;
    }
    bytes
}

#[test]
fn a_library_that_crashes_is_reported() {
    let cache = tempfile::tempdir().expect("a folder");
    let f = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(f.path().join("plugins")).expect("a folder");
    std::fs::write(f.path().join("plugins/libsprings.so"), damaged()).expect("written");
    std::fs::write(f.path().join("p.ron"), PIPELINE).expect("written");
    let run = |args: &[&str]| {
        let out = Command::new(program())
            .args(args)
            .args(["--plugin-dir", "plugins"])
            .env("GALAMOST_CACHE", cache.path())
            .current_dir(f.path())
            .output()
            .expect("the program starts");
        (out.status.code(), String::from_utf8_lossy(&out.stdout).into_owned() + &words(&out))
    };
    let expected = "libsprings.so";
    for (args, code) in [
        (vec!["check", "p.ron"], Some(2)),
        (vec!["check", "p.ron", "--set", "forces=[]"], Some(0)),
        (vec!["plugins"], Some(0)),
        (vec!["doctor"], Some(1)),
        (vec!["test-plugin", "plugins/libsprings.so"], Some(2)),
    ] {
        let (status, said) = run(&args);
        assert_eq!(status, code, "{args:?}: {said}");
        assert!(said.contains(expected) && said.contains("crashes when it is loaded (SIG"), "{args:?}: {said}");
        assert!(said.contains("build or copy it again"), "{args:?}: {said}");
    }
    // the others are known now: only the damaged one is tried again
    let known = std::fs::read_dir(cache.path()).expect("the cache").count();
    let plugins = std::fs::read_dir(repository().join("plugins")).expect("plugins/");
    let shipped = plugins.filter_map(Result::ok).filter(|e| e.path().join("Cargo.toml").exists()).count();
    assert!(known >= shipped, "{known} libraries in the cache, {shipped} plugins");
    // a cache whose entries are damaged is ignored
    for entry in std::fs::read_dir(cache.path()).expect("the cache").filter_map(Result::ok) {
        std::fs::write(entry.path(), b"no verdict").expect("written");
    }
    let (status, said) = run(&["check", "p.ron"]);
    assert!(status == Some(2) && said.contains("crashes when it is loaded"), "{said}");
}

/// Flipped bits all over a library: it loads, is refused, or ends the program with a message that names it.
#[test]
#[ignore = "3 seconds"]
fn a_library_with_flipped_bits_is_named() {
    let cache = tempfile::tempdir().expect("a folder");
    let (bytes, _) = dpd();
    let mut refused = 0;
    for k in (0..48u64).step_by(2) {
        let f = tempfile::tempdir().expect("a folder");
        let mut flipped = bytes.clone();
        // a bit of every 64th byte in one of 48 parts of the file
        let part = bytes.len() / 48;
        for at in (k as usize * part..(k as usize + 1) * part).step_by(64) {
            flipped[at] ^= 1 << (at / 64 % 8);
        }
        std::fs::write(f.path().join("libspings.so"), &flipped).expect("written");
        let out = Command::new(program())
            .args(["plugins", "--plugin-dir", "."])
            .env("GALAMOST_CACHE", cache.path())
            .current_dir(f.path())
            .output()
            .expect("the program starts");
        let said = words(&out);
        // damage whose effect depends on the addresses of a process may show only after a trial; then the library is named
        let named = out.status.code() == Some(1) && said.contains("libspings.so ended the program in `load` by");
        assert!(out.status.success() || named, "part {k}: {said}");
        refused += u32::from(said.contains("libspings.so"));
    }
    assert!(refused > 3, "{refused} of 24 damaged libraries were refused");
}

#[test]
fn another_api_version_is_reported_in_two_lines() {
    let (mut bytes, at) = dpd();
    bytes[at + 20..at + 24].copy_from_slice(&7u32.to_ne_bytes());
    let expected = format!("built for plugin API 7.{API_MINOR}");
    refused("libsprings.so", &bytes, &[&expected, "rebuild dpd"]);
}

#[test]
fn device_code_for_a_newer_engine_is_reported() {
    let (mut bytes, at) = dpd();
    bytes[at + 28..at + 32].copy_from_slice(&99u32.to_ne_bytes());
    refused("libsprings.so", &bytes, &["99", "rebuild dpd"]);
}

#[test]
fn duplicate_components_are_reported_with_both_paths() {
    let (mut bytes, at) = dpd();
    bytes[at + 32..at + 35].copy_from_slice(b"dpe");
    // the user's folder comes first, so it is the shipped one that cannot be taken
    let (_f, out) = check("libdpe.so", &bytes, &PIPELINE.replace("Springs(r_cut: 1.0)", ""));
    let said = words(&out);
    assert!(
        said.contains("libdpd.so: has a Pair `Dpd`, which ") && said.contains("libdpe.so also has;\nremove one"),
        "{said}"
    );
}

#[test]
fn a_plugin_that_hides_a_built_in_one_is_reported() {
    let (mut bytes, _) = dpd();
    let hides = |bytes: &[u8]| {
        let (_f, out) = check("libdpd.so", bytes, &PIPELINE.replace("Springs(r_cut: 1.0)", ""));
        assert_eq!(out.status.code(), Some(0), "{}", words(&out));
        words(&out)
    };
    let said = hides(&bytes);
    assert!(!said.contains("WARN"), "a copy hides nothing: {said}");
    // another build of a crate with the same name
    bytes.push(0);
    let said = hides(&bytes);
    assert!(said.contains("WARN") && said.contains("plugins/libdpd.so hides "), "{said}");
    assert!(said.contains("both are the plugin `dpd`"), "{said}");
}

#[test]
fn a_missing_plugin_folder_is_reported() {
    let f = tempfile::tempdir().expect("a folder");
    let out = galamost(f.path(), &["plugins", "--plugin-dir", "nowhere"]);
    assert!(words(&out).contains("plugin folder nowhere cannot be read"), "{}", words(&out));
}

#[test]
fn every_component_has_its_page_and_an_example_that_its_check_knows() {
    let mut found = vec![];
    let mut printed = vec![];
    for (library, c) in registry().components() {
        if library.record.name() == "fixture" {
            continue;
        }
        found.push(format!("{} {} {}", library.record.name(), c.kind, c.name));
        assert!(c.example().is_some_and(|e| e.starts_with(&c.name)), "{} has no ```ron example", c.name);
        // one page of each kind of a plugin in the terminal; the next test reads all of them in Markdown
        let of = (library.record.name().to_string(), c.kind);
        if printed.contains(&of) {
            continue;
        }
        printed.push(of);
        let out = galamost(Path::new("."), &["plugins", &c.name]);
        let page = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.status.success() && page.contains(&c.name), "{page}");
        for f in &c.fields {
            assert!(page.contains(&f.name), "{}: the field {} is not on its page", c.name, f.name);
        }
    }
    found.sort();
    // a list of its own, so that a component cannot vanish unnoticed
    let list = std::fs::read_to_string(repository().join("tests/components.txt")).expect("the list");
    assert_eq!(found, list.lines().collect::<Vec<_>>());
}

/// Rows of the tables of fields on a Markdown page, as cells.
fn field_rows(page: &str) -> Vec<Vec<String>> {
    let rows = page.lines().filter(|l| l.starts_with("| `") && l.replace("\\|", "").matches('|').count() == 7);
    rows.map(|l| l.replace("\\|", "").split('|').map(|c| c.trim().to_string()).collect()).collect()
}

#[test]
fn every_component_has_a_markdown_page_with_all_fields() {
    let f = tempfile::tempdir().expect("a folder");
    let out = galamost(f.path(), &["plugins", "--markdown", "pages"]);
    assert!(out.status.success(), "{}", words(&out));
    let pages = f.path().join("pages");
    let read = |name: &str| std::fs::read_to_string(pages.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let (summary, index) = (read("SUMMARY.md"), read("README.md"));
    let mut n = 0;
    for line in summary.lines() {
        let entry = line.strip_prefix("  - [").and_then(|l| l.strip_suffix(')'));
        let (name, path) = entry.and_then(|l| l.split_once("](")).unwrap_or_else(|| panic!("{line}"));
        let file = path.strip_prefix("reference/components/").expect("the folder of the book");
        let page = read(file);
        assert!(index.contains(&format!("| [{name}]({file}) |")), "{file} is not in the index");
        assert!(page.starts_with(&format!("# {name}\n")) && !page.contains("```ron\n"), "{page}");
        for row in field_rows(&page) {
            assert!(!row[2].is_empty() && !row[5].is_empty() && !row[6].is_empty(), "{file}: {row:?}");
        }
        n += 1;
    }
    assert!(summary.contains("  - [LennardJones](reference/components/pair-lennard-jones.md)\n"), "{summary}");
    let shipped: Vec<_> = registry().components().into_iter().filter(|(l, _)| l.record.name() != "fixture").collect();
    assert_eq!(n, shipped.len());
    for (_, c) in shipped {
        let list = format!("| {} | `{}` |", c.kind, c.kind.list());
        let files = summary.lines().filter(|l| l.starts_with(&format!("  - [{}](", c.name)));
        let paths = files.filter_map(|l| l.split_once("reference/components/")?.1.strip_suffix(')'));
        let page = paths.map(read).find(|p| p.contains(&list)).unwrap_or_else(|| panic!("no page of {}", c.name));
        let example = c.example().expect("an example");
        assert!(page.contains(&format!("```ron,fragment\n{example}\n```")), "{}: no example", c.name);
        let rows = field_rows(&page);
        for f in &c.fields {
            assert!(rows.iter().any(|r| r[1] == format!("`{}`", f.name)), "{}: no field {}", c.name, f.name);
        }
    }
}

#[test]
fn the_readme_lists_every_component() {
    let readme = std::fs::read_to_string(repository().join("README.md")).expect("README.md");
    for (library, c) in registry().components() {
        let row = |l: &str| l.starts_with('|') && l.contains(&format!("`{}`", c.name));
        assert!(library.record.name() == "fixture" || readme.lines().any(row), "README has no row for {}", c.name);
    }
    let _: PathBuf = output();
}
