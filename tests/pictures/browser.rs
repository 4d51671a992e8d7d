//! Reports in a browser: nothing is wider than the window, on a phone, on a screen, and on paper.

use galamost_tests::{galamost, repository, words};
use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

/// Returns a Chromium: `GALAMOST_BROWSER`, or one of the search path. Reports a skip if there is none.
fn browser() -> Option<OsString> {
    let starts = |name: &OsString| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    let given = std::env::var_os("GALAMOST_BROWSER");
    let known = ["chromium", "chromium-browser", "google-chrome", "headless_shell"].map(OsString::from);
    let found = given.into_iter().chain(known).find(starts);
    if found.is_none() {
        let why = "reports are not rendered; set GALAMOST_BROWSER to the path of Chromium";
        // directly to standard error: the test harness hides the output of tests that pass
        let _ = writeln!(std::io::stderr(), "SKIPPED: needs a browser: {why}");
    }
    found
}

/// Runs a pipeline of `new pipeline` for a few steps and writes its report.
fn report(folder: &Path, kind: &str) -> String {
    let run = |folder: &Path, args: &[&str]| {
        let done = galamost(folder, args);
        assert!(done.status.success(), "{kind} {args:?}: {}", words(&done));
    };
    run(folder, &["new", "pipeline", kind, "--folder", kind, "--steps", "500"]);
    run(&folder.join(kind), &["--pipeline", "sim.ron", "--device", "cpu", "--quiet"]);
    run(&folder.join(kind), &["report", "sim.ron"]);
    format!("{kind}/sim.report.html")
}

#[test]
fn reports_fit_a_phone_a_screen_and_paper() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let mut pages: Vec<String> = ["melt", "dpd", "janus", "polymerization"].map(|k| report(folder.path(), k)).into();
    let compared = galamost(folder.path(), &["report", "dpd/sim.ron", "polymerization/sim.ron", "--out", "two.html"]);
    assert!(compared.status.success(), "{}", words(&compared));
    pages.push("two.html".into());
    let script = repository().join("tests/python/browser.py");
    let mut python = Command::new("python3");
    python.arg(script).arg(&browser).arg(".").args(&pages).current_dir(folder.path());
    let done = python.output().expect("Python runs");
    assert!(done.status.success(), "{}", words(&done));
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let looks: Vec<serde_json::Value> =
        text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect();
    // five pages in two widths and in print, and one in the dark
    assert_eq!(looks.len(), 16, "{text}");
    for look in &looks {
        assert_eq!((&look["inner"], &look["content"]), (&look["width"], &look["width"]), "{look}");
        assert!(look["wide"].as_array().is_some_and(Vec::is_empty), "{look}");
    }
    // paper is white also for readers of dark pages
    let paper = looks.iter().filter(|l| l["media"] == "print");
    assert!(paper.clone().count() == 5 && paper.clone().all(|l| l["ground"] == "rgb(255, 255, 255)"), "{text}");
    let name = |k: usize| format!("sim.report.html-light-{}.png", [400, 1400][k]);
    assert!((0..2).all(|k| std::fs::read(folder.path().join(name(k))).is_ok_and(|b| b.starts_with(b"\x89PNG"))));
}
