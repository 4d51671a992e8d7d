//! Error messages for mistakes in pipelines: each file of `bad/` contains cases, separated by lines of `+++`.
//!
//! Under a faulty line stands `//^ message`, with the `^` at the column of the fault; the message is a part of what is
//! reported there. `//@ file:line: message` expects a fault in another file; what is reported must also name the pipeline.
//! Every fault must be expected, and every expectation met: all faults of a file are reported at once. The files of
//! `bad/warnings/` pass the check; their markers expect warnings. A case without markers expects none.

use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::plan::Plan;
use galamost_tests::{plan_in, repository};

#[derive(Debug)]
struct Expected {
    place: String,
    message: String,
}

/// The case without its expectations' effect on lines: markers stay in the text, they are comments.
fn expectations(case: &str) -> Vec<Expected> {
    let mut out = vec![];
    let mut line = 0;
    for (n, l) in case.lines().enumerate() {
        if let Some(at) = l.find("//^") {
            let column = l[..at + 3].chars().count();
            out.push(Expected { place: format!("{line}:{column}"), message: l[at + 3..].trim().into() });
        } else if let Some(at) = l.find("//@") {
            let rest = l[at + 3..].trim();
            let (place, message) = rest.split_once(": ").unwrap_or((rest, ""));
            out.push(Expected { place: place.into(), message: message.into() });
        } else {
            line = n + 1;
        }
    }
    out
}

fn place(d: &Diagnostic, pipeline: &std::path::Path) -> String {
    let at = d.at.map(|p| p.to_string()).unwrap_or_default();
    if d.file == pipeline {
        return at;
    }
    let (reader, _) = d.read_by.as_ref().expect("the component that reads the file");
    assert_eq!(reader, pipeline);
    let name = d.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    format!("{name}:{}", d.at.map(|p| p.line.to_string()).unwrap_or_default())
}

#[test]
fn every_mistake_is_reported_at_its_position() {
    let cases = compare("tests/bad", |name, plan| match plan {
        Ok(_) => vec![],
        Err(Failure::Input(list)) => list,
        Err(e) => panic!("{name}: {}", e.render()),
    });
    assert!(cases > 0, "no cases");
}

#[test]
fn every_warning_is_given_at_its_position() {
    let cases = compare("tests/bad/warnings", |name, plan| match plan {
        Ok(plan) => plan.warnings,
        Err(e) => panic!("{name}: {}", e.render()),
    });
    assert!(cases > 0, "no cases");
}

/// Compares what is reported for each case of a folder with its expectations. Returns the number of cases.
fn compare(folder: &str, reported: impl Fn(&str, Result<Plan, Failure>) -> Vec<Diagnostic>) -> usize {
    let folder = repository().join(folder);
    let mut cases = 0;
    let mut wrong = vec![];
    let mut files: Vec<_> = std::fs::read_dir(&folder).expect("bad/").filter_map(|e| Some(e.ok()?.path())).collect();
    files.sort();
    for file in files.iter().filter(|f| f.extension().is_some_and(|e| e == "ron")) {
        let text = std::fs::read_to_string(file).expect("a file");
        for (k, case) in text.split("\n+++\n").enumerate() {
            cases += 1;
            let name = format!("{} case {}", file.file_name().unwrap_or_default().to_string_lossy(), k + 1);
            let expected = expectations(case);
            assert!(!expected.is_empty() || folder.ends_with("warnings"), "{name} expects nothing");
            let found = reported(&name, plan_in(file, case, DeviceChoice::Cpu));
            let mut rest: Vec<&Diagnostic> = found.iter().collect();
            for e in &expected {
                match rest.iter().position(|d| place(d, file) == e.place && d.message.contains(&e.message)) {
                    Some(i) => drop(rest.remove(i)),
                    None => wrong.push(format!("{name}: not reported: {} {}", e.place, e.message)),
                }
            }
            wrong.extend(rest.iter().map(|d| format!("{name}: not expected: {} {}", place(d, file), d.message)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    cases
}

/// A missing GPU is an error; the run never falls back to the CPU silently.
#[test]
fn a_missing_gpu_is_reported() {
    let text =
        "(device: Cuda(9), initial: [RandomPositions(count: 10, box: [5.0, 5.0, 5.0])], stages: [(steps: 0, dt: 0.1)])";
    let Err(Failure::Input(list)) = plan_in("x.ron".as_ref(), text, DeviceChoice::Cuda(9)) else {
        panic!("there cannot be ten GPUs here")
    };
    assert!(list[0].message.starts_with("device Cuda(9) cannot be used: "), "{}", list[0]);
    assert_eq!(list[0].at.map(|p| p.to_string()).as_deref(), Some("1:10"));
}
