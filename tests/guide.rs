//! The code of the plugin guide and of the tutorial on plugins (docs/src) builds, passes its tests and the harness.

use galamost_tests::{build_pair_plugin, build_plugin, galamost, repository, test_outside, words};

/// The files of the guide: the name in a `<!-- file: NAME -->` comment and the code block after it.
fn files(guide: &str) -> Vec<(String, String)> {
    let pieces = guide.split("<!-- file: ").skip(1);
    let file = |piece: &str| {
        let (name, rest) = piece.split_once(" -->\n```rust\n").expect("code after the comment");
        // fences inside doc comments start with ///, so they do not end the block
        let (code, _) = rest.split_once("\n```\n").expect("the code ends");
        (name.to_string(), format!("{code}\n"))
    };
    pieces.map(file).collect()
}

/// Plugins that only validations give to the harness: the code paths are those of `yukawa`.
const LIKE_YUKAWA: [&str; 2] = ["soft-core", "born-mayer"];

/// All build and pass their unit tests; one of each kind passes the harness.
#[test]
#[ignore = "20 seconds"]
fn plugins_of_the_guide_build_and_pass_the_harness() {
    plugins_of_the_guide(|name| !LIKE_YUKAWA.contains(&name));
}

#[test]
#[ignore = "half a minute"]
fn more_pair_potentials_of_the_guide_pass_the_harness() {
    plugins_of_the_guide(|name| LIKE_YUKAWA.contains(&name));
}

fn plugins_of_the_guide(harness: impl Fn(&str) -> bool) {
    let page = |name: &str| std::fs::read_to_string(repository().join("docs/src").join(name)).expect(name);
    let api = repository().join("plugin-api").canonicalize().expect("the plugin API");
    let files = [files(&page("plugins/guide.md")), files(&page("tutorials/first-plugin.md"))].concat();
    let names: Vec<&str> = files.iter().map(|f| f.0.as_str()).collect();
    assert_eq!(names, ["yukawa", "soft-core", "patchy", "scission", "born-mayer"]);
    let f = tempfile::tempdir().expect("a folder");
    for (name, code) in &files {
        let crate_name = format!("guide-{name}");
        let kind = match name.as_str() {
            "patchy" => "oriented-pair",
            "scission" => "updater",
            _ => "pair",
        };
        let out = galamost(f.path(), &["new", kind, &crate_name, "--api", &api.to_string_lossy()]);
        assert!(out.status.success(), "{}", words(&out));
        let folder = f.path().join(&crate_name);
        std::fs::write(folder.join("src/lib.rs"), code).expect("written");
        test_outside(&folder);
        if !harness(name) {
            continue;
        }
        let build = if kind.ends_with("pair") { build_pair_plugin } else { build_plugin };
        let library = build(&folder, &crate_name.replace('-', "_"));
        // alone in a folder: the shared output folder holds other tests' plugins
        std::fs::create_dir(folder.join("built")).expect("a folder");
        let dropped = folder.join("built").join(library.file_name().expect("a name"));
        std::fs::copy(&library, &dropped).expect("copied");
        let out = galamost(&folder, &["test-plugin", &dropped.to_string_lossy(), "--quiet"]);
        let table = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.status.success() && table.contains("0 failed"), "{name}:\n{table}{}", words(&out));
        println!("{table}");
    }
}
