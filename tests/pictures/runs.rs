//! Reports, records, and estimates of runs, and the log for programs.

use galamost_tests::{galamost, has_compiler, words};
use std::path::Path;

const RUN: &str = r#"(
    seed: 3,
    initial: [ Lattice(lattice: Sc, cells: [6, 6, 6], density: 0.5), Velocities(kT: 1.0) ],
    forces: [ LennardJones(r_cut: 2.5, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0) }) ], // <liquid>
    integrators: [ NoseHoover(kT: 1.0, tau: 0.5) ],
    analyzers: [
        Thermo(every: 5, file: "run.csv"),
        Rdf(every: 20, file: "rdf.csv", r_max: 2.5, bins: 50),
        Gsd(every: 200, file: "run.gsd"),
        Render(every: 200, file: "frame.{step}.png", size: "160x120"),
    ],
    checkpoint: (every: 200),
    stages: [ (name: "run", steps: 400, dt: 0.004) ],
)"#;

fn run_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("run.ron"), RUN).expect("written");
    folder
}

#[test]
#[ignore = "3 seconds"]
fn a_report_is_complete_and_self_contained() {
    let folder = run_folder();
    let run = |args: &[&str]| {
        let done = galamost(folder.path(), args);
        assert!(done.status.success(), "{args:?}: {}", words(&done));
    };
    run(&["--pipeline", "run.ron", "--device", "cpu", "--quiet", "--steps", "200"]);
    run(&["--pipeline", "run.ron", "--device", "cpu", "--quiet", "--resume"]);
    // a picture after a restart is the one of a run in one piece
    let whole = run_folder();
    let done = galamost(whole.path(), &["--pipeline", "run.ron", "--device", "cpu", "--quiet", "--threads", "1"]);
    assert!(done.status.success(), "{}", words(&done));
    let last = |f: &Path| std::fs::read(f.join("frame.0000000400.png")).expect("a picture");
    assert!(last(folder.path()) == last(whole.path()), "pictures differ after a restart");
    run(&["report", "."]);
    let page = std::fs::read_to_string(folder.path().join("run.report.html")).expect("a page");
    for part in [
        "<h1>run.ron</h1>",
        "done",
        "2 runs",
        "<h2>Particles</h2>",
        "run.gsd: step 0",
        "run.gsd: step 400",
        "frame.0000000400.png",
        "<h2>Energy, temperature, pressure</h2>",
        ">kT <span class=\"soft\">energy</span></td>",
        ">pressure_yy <span class=\"soft\">energy/volume</span></td>",
        "<h2>Observables</h2>",
        "rdf.csv (Rdf): Measures radial distribution functions g(r)",
        "<span>density</span><b>0.5</b>",
        "<span>box</span><b>7.56 × 7.56 × 7.56</b>",
        "<span>simulated time</span><b>1.6</b>",
        "<span>integrator</span><b>NoseHoover</b>",
        "neighbor list rebuild",
        "<h2>Speed</h2>",
        "LennardJones",
        "neighbor list",
        "Time per component, sampled over",
        "<h2>Software</h2>",
        "<td>pairs</td>",
        "run.checkpoint",
        "<h2>Input</h2>",
        "<i>// &lt;liquid&gt;</i>",
        "<h2>Files</h2>",
        ">run.run.json</td>",
        "CPU, ",
        "Mixed",
    ] {
        assert!(page.contains(part), "{part} is not in the page");
    }
    assert_eq!(page.matches("data:image/png;base64,iVBOR").count(), 4);
    // nothing is fetched: the one address is the name of SVG
    let addresses: Vec<&str> = page.split("http").skip(1).map(|p| &p[..p.len().min(26)]).collect();
    assert!(addresses.iter().all(|a| a.starts_with("://www.w3.org/2000/svg")), "{addresses:?}");
    assert!(!page.contains("<script") && !page.contains("<link") && !page.contains("@import"));
    // the record: two parts, the plugins' hashes, how it ended
    let text = std::fs::read_to_string(folder.path().join("run.run.json")).expect("a record");
    let record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let runs = record["runs"].as_array().expect("parts");
    assert_eq!((runs.len(), runs[1]["from_step"].as_u64(), runs[1]["steps"].as_u64()), (2, Some(200), Some(200)));
    assert!(
        runs.iter().all(|r| r["status"] == "done" && r["plugins"][0]["hash"].as_str().is_some_and(|h| h.len() == 64))
    );
    // without a record, or with a table that is broken, there is still a page
    std::fs::remove_file(folder.path().join("run.run.json")).expect("removed");
    std::fs::write(folder.path().join("rdf.csv"), "r,A-A\n1,2\nx,3\n").expect("written");
    run(&["report", "run.ron", "--no-pictures", "--out", "other.html"]);
    let page = std::fs::read_to_string(folder.path().join("other.html")).expect("a page");
    assert!(page.contains("no record of this run") && page.contains("rdf.csv:3:1") && !page.contains("<img"));
}

#[test]
fn pictures_are_the_same_on_the_device_and_on_the_cpu() {
    if !has_compiler() {
        return;
    }
    let folder = run_folder();
    let draw = |device: &str| {
        // positions are the same to the bit before the first step
        let args = ["--pipeline", "run.ron", "--quiet", "--steps", "0", "--device", device];
        let done = galamost(folder.path(), &args);
        assert!(done.status.success(), "{}", words(&done));
        std::fs::read(folder.path().join("frame.0000000000.png")).expect("a picture")
    };
    assert!(draw("cpu") == draw("emulated"));
}

#[test]
fn records_are_optional_and_contain_the_error_of_a_failed_run() {
    let folder = run_folder();
    let args = ["--pipeline", "run.ron", "--device", "cpu", "--quiet", "--no-record", "--steps", "10"];
    assert!(galamost(folder.path(), &args).status.success());
    assert!(!folder.path().join("run.run.json").exists());
    // a time step far too long
    let long = ["--set", "stages[0].dt=3.0", "--set", "integrators[0].tau=5.0"];
    let args = [&["--pipeline", "run.ron", "--device", "cpu", "--quiet"][..], &long].concat();
    assert_eq!(galamost(folder.path(), &args).status.code(), Some(1));
    let text = std::fs::read_to_string(folder.path().join("run.run.json")).expect("a record");
    let record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let run = &record["runs"][0];
    assert_eq!(run["status"], "failed");
    assert!(run["error"]["message"].as_str().is_some_and(|m| m.contains("step")), "{run}");
}

#[test]
fn every_line_of_the_log_is_json_on_request() {
    let folder = run_folder();
    let lines = |args: &[&str], status: i32| -> Vec<serde_json::Value> {
        let done = galamost(folder.path(), args);
        assert_eq!(done.status.code(), Some(status), "{}", words(&done));
        let text = words(&done);
        text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect()
    };
    let all = lines(&["--pipeline", "run.ron", "--device", "cpu", "--log", "json"], 0);
    let of = |name: &str| all.iter().filter(|l| l["event"] == name).collect::<Vec<_>>();
    assert!(all.iter().all(|l| l["time"].as_str().is_some_and(|t| t.len() == 20) && l["event"].is_string()));
    assert_eq!(of("run")[0]["particles"], 216);
    assert_eq!((of("stage")[0]["steps"].as_u64(), of("checkpoint").len()), (Some(400), 2));
    assert!(of("summary")[0]["tps"].as_f64().is_some_and(|t| t > 0.0) && of("summary")[0]["kT"].is_f64());
    assert!(
        of("message")
            .iter()
            .any(|m| m["level"] == "info" && m["message"].as_str().is_some_and(|t| t.starts_with("device")))
    );
    assert_eq!((all[all.len() - 1]["event"].as_str(), all[all.len() - 1]["status"].as_u64()), (Some("end"), Some(0)));
    // mistakes of the pipeline have places; those of the command line are JSON too
    let error = |args: &[&str]| {
        let all = lines(&[&["check", "--log=json"], args].concat(), 2);
        let error = all.into_iter().find(|l| l["event"] == "error").expect("an error")["errors"][0].clone();
        assert!(error["message"].as_str().is_some_and(|m| m.contains("NoseHoover")), "{error}");
        error
    };
    let wrong = "NoseHover(kT: 1.0, tau: 0.5)";
    let text = std::fs::read_to_string(folder.path().join("run.ron")).expect("a pipeline");
    let text = text.replace("integrators: [", &format!("integrators: [{wrong}, "));
    std::fs::write(folder.path().join("wrong.ron"), text).expect("written");
    let of_file = error(&["wrong.ron"]);
    assert!(of_file["file"] == "wrong.ron" && of_file["line"].is_u64(), "{of_file}");
    let of_option = error(&["run.ron", "--set", &format!("integrators=[{wrong}]")]);
    assert!(of_option["file"].as_str().is_some_and(|f| f.starts_with("--set integrators=")), "{of_option}");
    let all = lines(&["--nonsense", "--log", "json"], 2);
    assert_eq!((all[0]["event"].as_str(), all[1]["event"].as_str()), (Some("error"), Some("end")));
}

#[test]
#[ignore = "3 seconds"]
fn an_estimate_agrees_with_the_run_and_leaves_no_files() {
    let folder = run_folder();
    let done = galamost(folder.path(), &["check", "run.ron", "--estimate", "--device", "cpu"]);
    assert!(done.status.success(), "{}", words(&done));
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    for part in [
        "measured on CPU",
        "stage `run`:",
        "TPS",
        "neighbors:",
        "memory:",
        "Thermo every 5 steps",
        "extrapolated",
        "time:",
        "disk:",
        "checkpoints:",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("not measured"), "{text}");
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).expect("a folder").filter_map(Result::ok).map(|e| e.file_name()).collect();
    assert_eq!(left, ["run.ron"]);
    // what it says of the disk against what the run writes
    assert!(galamost(folder.path(), &["--pipeline", "run.ron", "--device", "cpu", "--quiet"]).status.success());
    let size = |e: &std::fs::DirEntry| e.metadata().map_or(0, |m| m.len());
    let outputs = |e: &std::fs::DirEntry| e.path().extension().is_some_and(|x| x == "csv" || x == "gsd" || x == "png");
    let written: u64 = std::fs::read_dir(folder.path())
        .expect("a folder")
        .filter_map(Result::ok)
        .filter(outputs)
        .map(|e| size(&e))
        .sum();
    let line = text.lines().find(|l| l.contains("disk:")).expect("the line");
    let mut parts = line.split_whitespace().skip(1);
    let number: f64 = parts.next().and_then(|n| n.parse().ok()).expect("a number");
    let unit = match parts.next() {
        Some("kB") => 1e3,
        Some("MB") => 1e6,
        _ => 1.0,
    };
    let told = number * unit;
    // positions compress differently when particles have moved, and energies have more digits than zeros
    assert!((told / written as f64 - 1.0).abs() < 0.35, "{told} told, {written} written");
}

#[test]
#[ignore = "3 seconds"]
fn an_estimate_names_the_stage_of_an_analyzer() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = "(name: \"warm\", steps: 100, dt: 0.004), \
               (name: \"run\", steps: 400, dt: 0.004, analyzers: [ Thermo(every: 7, file: \"own.csv\") ])";
    let text = RUN.replace("(name: \"run\", steps: 400, dt: 0.004)", own);
    std::fs::write(folder.path().join("run.ron"), text).expect("written");
    let done = galamost(folder.path(), &["check", "run.ron", "--estimate", "--device", "cpu"]);
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    for part in ["  Thermo every 5 steps: ", "  Thermo of stage `run` every 7 steps: "] {
        assert!(done.status.success() && text.contains(part), "{part}: {text}{}", words(&done));
    }
}

/// A slice that contains no particle at some samples does not end the run; the log says so once.
#[test]
fn a_run_goes_through_empty_slices() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = r#"(seed: 1, initial: [RandomPositions(count: 1, box: [6.0, 6.0, 6.0])], integrators: [Brownian(kT: 1.0, gamma: 1.0)],
        analyzers: [Render(every: 10, file: "r.{step}.png", size: "64x48", slice: ["z,-4,-3.5"], edges: false)],
        stages: [(steps: 20, dt: 0.001)])"#;
    std::fs::write(folder.path().join("p.ron"), text).expect("written");
    let done = galamost(folder.path(), &["--pipeline", "p.ron", "--device", "cpu", "--threads", "1"]);
    assert!(done.status.success(), "{}", words(&done));
    let warning = "Render: the slices, hidden types and radii leave no particle in ";
    assert_eq!(words(&done).matches(warning).count(), 1, "{}", words(&done));
    for step in ["0000000000", "0000000010", "0000000020"] {
        let (width, height, pixels) = super::decoded(&folder.path().join(format!("r.{step}.png")));
        assert!((width, height) == (64, 48) && pixels.iter().all(|p| *p == 255), "{step}");
    }
}
