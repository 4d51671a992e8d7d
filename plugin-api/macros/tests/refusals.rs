//! What the macros refuse, with exact messages and places: rustc compiles each file of `ui/`, and its messages must be those of the
//! `.stderr` file beside it.
//!
//! After a change of a message run `GALAMOST_BLESS=1 cargo test --release -p galamost-plugin-macros` and read the difference. The
//! files name only the macros: nothing but their refusals is left of the functions in them, so that the rest of the plugin API
//! need not be built.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The library of the macros that cargo has built last.
fn macros() -> PathBuf {
    let exe = std::env::current_exe().expect("the test program has a path");
    let libraries = std::fs::read_dir(exe.parent().expect("a folder"))
        .expect("the folder deps")
        .map(|e| e.expect("an entry").path());
    let named = libraries.filter(|path| {
        let name = path.file_name().expect("a name").to_string_lossy();
        name.starts_with(&format!("{}galamost_plugin_macros-", std::env::consts::DLL_PREFIX))
            && name.ends_with(std::env::consts::DLL_SUFFIX)
    });
    let newest = named.max_by_key(|path| path.metadata().and_then(|m| m.modified()).expect("a time"));
    newest.expect("cargo builds the macros before this test")
}

/// Compiles a file and returns the messages without the compiler's summary.
fn messages(macros: &Path, file: &str) -> String {
    let folder = std::env::temp_dir().join(format!("galamost-refusals-{}", std::process::id()));
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut compile = Command::new(rustc);
    compile.args(["--edition=2024", "--emit=metadata", "--color=never", "--out-dir"]).arg(&folder);
    compile.arg("--extern").arg(format!("galamost_plugin_macros={}", macros.display())).arg(file);
    let out = compile.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("rustc starts");
    let _ = std::fs::remove_dir_all(folder);
    assert!(!out.status.success(), "{file} is accepted");
    let text = String::from_utf8(out.stderr).expect("messages are UTF-8");
    let is_summary = |m: &&str| {
        m.starts_with("error: aborting due to")
            || m.starts_with("Some errors have")
            || m.starts_with("For more information about")
    };
    text.split("\n\n")
        .filter(|m| !is_summary(m))
        .map(str::trim_end)
        .filter(|m| !m.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n")
        + "\n"
}

#[test]
fn refusals_name_the_place_and_the_reason() {
    let ui = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui");
    let names = std::fs::read_dir(&ui)
        .expect("tests/ui")
        .map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned());
    let mut sources: Vec<String> = names.filter(|name| name.ends_with(".rs")).collect();
    sources.sort();
    assert!(sources.len() > 20, "{sources:?}");
    let (macros, mut differ) = (macros(), vec![]);
    for name in sources {
        let (found, expected) =
            (messages(&macros, &format!("tests/ui/{name}")), ui.join(&name).with_extension("stderr"));
        if std::env::var_os("GALAMOST_BLESS").is_some() {
            std::fs::write(&expected, &found).expect("written");
        }
        let expected = std::fs::read_to_string(expected).unwrap_or_default();
        if found != expected {
            differ.push(format!("{name} has the messages\n{found}\ninstead of\n{expected}"));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}
