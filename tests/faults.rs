//! Failures during a run: the message names step, particle, and component, and the state is saved if possible.

mod causes;

use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::{Link, Snapshot};
use galamost_tests::{fixture, galamost, has_compiler, plan_of, program, run_plan, words};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const LJ: &str = r#"LennardJones(r_cut: 2.5, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0) })"#;

/// A liquid on a lattice with two particles, tags 5 and 6, almost at the same place.
fn overlap() -> Snapshot {
    let mut s = Snapshot { dimensions: 3, box_length: [10.0; 3], ..Snapshot::default() };
    let a = s.type_id("A");
    for i in 0..125 {
        let cell = [i % 5, i / 5 % 5, i / 25];
        s.push(a, std::array::from_fn(|k| 2.0 * f64::from(cell[k]) - 4.0));
    }
    s.position[6] = s.position[5];
    s.position[6][0] += 1e-4;
    s
}

#[test]
fn an_overlap_is_reported_with_step_and_particle() {
    let mut devices = vec![DeviceChoice::Cpu];
    if has_compiler() {
        devices.push(DeviceChoice::Emulated);
    }
    for device in devices {
        for precision in ["Single", "Mixed", "Double"] {
            let text = format!(
                "(precision: {precision}, forces: [{LJ}], integrators: [VelocityVerlet()], stages: [(steps: 100, dt: 0.005)])"
            );
            let plan = plan_of(&text, overlap(), device).unwrap_or_else(|e| panic!("{}", e.render()));
            match run_plan(&plan) {
                Err(Failure::Run(message, _)) => {
                    println!("{device:?} {precision}: {message}");
                    assert!(message.contains("tag 5") || message.contains("tag 6"), "{message}");
                    assert!(message.contains("step 0") && message.contains("VelocityVerlet"), "{message}");
                    assert!(message.contains("overlap"), "{message}");
                }
                Err(e) => panic!("{}", e.render()),
                Ok(_) => panic!("{device:?} {precision}: the overlap was not noticed"),
            }
        }
    }
}

/// Dimers that fly apart until their bonds break: tags 8 and 9 first, then 4 and 3, 2 and 7.
fn stretching(speeds: [f64; 3]) -> Snapshot {
    let mut s = Snapshot { dimensions: 3, box_length: [30.0; 3], ..Snapshot::default() };
    let a = s.type_id("A");
    s.bond_types = vec!["X".into()];
    for i in 0..10 {
        s.push(a, [0.0, 0.0, -12.0 + f64::from(i)]);
    }
    for (tags, speed) in [[8, 9], [4, 3], [2, 7]].into_iter().zip(speeds) {
        s.bonds.push(Link { kind: 0, tags });
        let at = s.position[tags[0] as usize];
        s.position[tags[1] as usize] = [at[0] + 1.0, at[1], at[2]];
        s.velocity[tags[1] as usize] = [speed, 0.0, 0.0];
    }
    s
}

const FENE: &str = r#"Fene(bonds: { "X": (k: 30.0, R0: 1.5, epsilon: 1.0, sigma: 1.0) })"#;

#[test]
fn a_broken_bond_is_reported() {
    let mut devices = vec![DeviceChoice::Cpu];
    if has_compiler() {
        devices.push(DeviceChoice::Emulated);
    }
    for device in devices {
        for precision in ["Single", "Mixed", "Double"] {
            let broken = |s: Snapshot, steps: u64| {
                let text = format!(
                    "(precision: {precision}, forces: [{FENE}], integrators: [VelocityVerlet()], stages: [(steps: {steps}, dt: 0.01)])"
                );
                let plan = plan_of(&text, s, device).unwrap_or_else(|e| panic!("{}", e.render()));
                match run_plan(&plan) {
                    Err(Failure::Run(message, _)) => message,
                    Err(e) => panic!("{}", e.render()),
                    Ok(_) => panic!("{device:?} {precision}: the broken bond was not noticed"),
                }
            };
            // 0.6 in the first step: r = 1.6
            let said = broken(stretching([60.0, 0.0, 0.0]), 100);
            println!("{device:?} {precision}: {said}");
            let expected = "Fene: the bond to particle 9 is longer than its potential allows (particle with tag 8)";
            assert!(said.contains("step 1: ") && said.contains(expected), "{said}");
            // two at once: the smallest tag, and the partner that belongs to it
            let said = broken(stretching([0.0, 60.0, 60.0]), 100);
            assert!(said.contains("the bond to particle 7 ") && said.contains("(particle with tag 2)"), "{said}");
            // broken from the start
            let mut s = stretching([0.0; 3]);
            s.position[9][0] += 1.0;
            let said = broken(s, 0);
            assert!(said.contains("step 0: ") && said.contains(expected), "{said}");
        }
    }
}

/// A strained bond that holds is no fault: it springs back.
#[test]
fn a_bond_just_below_its_limit_does_not_break() {
    let mut s = stretching([0.0; 3]);
    s.position[9][0] += 0.45;
    let text = format!(
        "(precision: Double, forces: [{FENE}], integrators: [VelocityVerlet()], stages: [(steps: 4000, dt: 0.0005)])"
    );
    let plan = plan_of(&text, s, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
    let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
    assert!(b.sums().expect("sums").components[0].energy.is_finite());
}

/// All particles in one eighth of the box: eight times the mean density that the first list is laid out for.
#[test]
fn an_overflowing_neighbor_list_grows() {
    let mut s = Snapshot { dimensions: 3, box_length: [24.0; 3], ..Snapshot::default() };
    let a = s.type_id("A");
    for i in 0..1000 {
        let cell = [i % 10, i / 10 % 10, i / 100];
        s.push(a, std::array::from_fn(|k| 1.1 * f64::from(cell[k]) - 5.5));
    }
    let text = format!(
        "(forces: [{LJ}], integrators: [VelocityVerlet()], stages: [(steps: 10, dt: 0.002), (steps: 0, dt: 0.002)])"
    );
    let mut energies = vec![];
    let mut devices = vec![DeviceChoice::Cpu];
    if has_compiler() {
        devices.push(DeviceChoice::Emulated);
    }
    for device in devices {
        let plan = plan_of(&text, s.clone(), device).unwrap_or_else(|e| panic!("{}", e.render()));
        let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
        let longest = b.list_report().expect("a list").longest;
        assert!(longest > 50, "{longest} neighbors");
        energies.push(b.sums().expect("sums").components[0].energy);
    }
    let worst = energies.iter().fold(0.0f64, |m, e| m.max((e - energies[0]).abs()));
    // energies of −4000 in single precision sums of 50 neighbors each: 6e-8 of the sum, 2e-4
    assert!(worst < 1e-3 && energies[0] < -4000.0, "{energies:?}");
}

fn write(folder: &Path, analyzers: &str, steps: u64) {
    let text = format!(
        "(seed: 1, initial: [Lattice(lattice: Fcc, cells: [6, 6, 6], density: 0.7), Velocities(kT: 1.0)], forces: [{LJ}], \
         integrators: [VelocityVerlet()], analyzers: [{analyzers}], stages: [(steps: {steps}, dt: 0.002)])"
    );
    std::fs::write(folder.join("p.ron"), text).expect("written");
}

#[test]
fn a_panic_in_a_plugin_ends_the_run_and_saves_it() {
    let f = tempfile::tempdir().expect("a folder");
    write(f.path(), "Thermo(every: 1, file: \"t.csv\"), PanicAt(step: 30), Thermo(every: 1, file: \"u.csv\")", 100);
    let plugins = fixture();
    let plugins = plugins.to_string_lossy();
    let run = ["--pipeline", "p.ron", "--device", "cpu", "--quiet", "--plugin-dir", &plugins];
    let out = galamost(f.path(), &run);
    let said = words(&out);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("step 30: PanicAt panicked in `analyze`: panic requested by the test"), "{said}");
    assert!(said.contains("the state of step 30 is saved in p.checkpoint"), "{said}");
    assert!(!said.contains("stack backtrace"), "{said}");
    let rows = |file: &str| std::fs::read_to_string(f.path().join(file)).expect("rows").lines().count();
    // the analyzer behind the faulty one has not been called in step 30
    assert_eq!((rows("t.csv"), rows("u.csv")), (32, 31));
    // the saved state is complete: without the faulty component the run resumes
    let out = galamost(f.path(), &[run.as_slice(), &["--resume", "--set", "analyzers[1].step=1000"]].concat());
    assert!(out.status.success(), "{}", words(&out));
    assert_eq!((rows("t.csv"), rows("u.csv")), (102, 102));
}

/// Before the first step there is nothing to save.
#[test]
fn a_failure_in_step_0_saves_no_state() {
    let f = tempfile::tempdir().expect("a folder");
    write(f.path(), "PanicAt(step: 0)", 100);
    let plugins = fixture();
    let plugins = plugins.to_string_lossy();
    let out = galamost(f.path(), &["--pipeline", "p.ron", "--device", "cpu", "--quiet", "--plugin-dir", &plugins]);
    let said = words(&out);
    assert!(said.contains("step 0: PanicAt panicked") && !said.contains("resume with"), "{said}");
    assert!(!f.path().join("p.checkpoint").exists());
}

/// The state of a run that has become unstable is not saved; checkpoints of earlier steps are kept.
#[test]
fn an_unstable_run_saves_no_state() {
    let f = tempfile::tempdir().expect("a folder");
    write(f.path(), "Thermo(every: 10, file: \"t.csv\")", 1000);
    let run = ["--pipeline", "p.ron", "--device", "cpu", "--quiet", "--overwrite", "--set"];
    let out = galamost(f.path(), &[run.as_slice(), &["stages[0].dt=0.05"]].concat());
    let said = words(&out);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("tag ") && !said.contains("resume with"), "{said}");
    assert!(!f.path().join("p.checkpoint").exists());

    let out = galamost(f.path(), &[run.as_slice(), &["stages[0].dt=0.05", "--set", "checkpoint=(every: 1)"]].concat());
    let said = words(&out);
    assert!(said.contains("an earlier checkpoint is in ") && said.contains("resume with"), "{said}");
    // it is one of a time when all numbers were finite
    let out = galamost(
        f.path(),
        &["--pipeline", "p.ron", "--set", "stages[0].dt=0.05", "--set", "checkpoint=(every: 1)", "--resume"],
    );
    assert!(words(&out).contains("tag "), "{}", words(&out));
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_ends_the_run_and_saves_it() {
    let f = tempfile::tempdir().expect("a folder");
    write(f.path(), "Thermo(every: 1, file: \"t.csv\")", 100_000);
    // a limit for files takes the place of a full disk
    let out = Command::new("sh")
        .args(["-c", "ulimit -f 64; exec \"$0\" \"$@\""])
        .arg(program())
        .args(["--pipeline", "p.ron", "--device", "cpu", "--quiet"])
        .current_dir(f.path())
        .output()
        .expect("the program runs");
    let said = words(&out);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains(": Thermo: ./t.csv: File too large"), "{said}");
}

#[test]
fn signals_end_the_run_after_a_complete_step() {
    // batch systems and closed terminals may repeat theirs
    for (signal, times) in [("-INT", 1), ("-TERM", 1), ("-HUP", 3), ("-XCPU", 3), ("-USR2", 3)] {
        let f = tempfile::tempdir().expect("a folder");
        write(f.path(), "Thermo(every: 10, file: \"t.csv\")", 100_000_000);
        // tests that `nohup` has started ignore SIGHUP, and so would the run
        let mut command = Command::new("env");
        let child = command
            .arg("--default-signal")
            .arg(program())
            .args(["--pipeline", "p.ron", "--device", "cpu"])
            .current_dir(f.path())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let begun = Instant::now();
        let rows = || std::fs::read_to_string(f.path().join("t.csv")).map_or(0, |t| t.lines().count());
        while rows() < 3 && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let id = child.id().to_string();
        for _ in 0..times {
            let sent = Command::new("kill").args([signal, &id]).stderr(Stdio::null()).status().expect("kill");
            // a fast run may have ended after the first
            assert!(sent.success() || times > 1);
        }
        let out = child.wait_with_output().expect("ended");
        let said = words(&out);
        assert_eq!(out.status.code(), Some(0), "{said}");
        assert!(said.contains("stopped; resume with: galamost --pipeline p.ron --resume"), "{said}");
        assert!(f.path().join("p.checkpoint").exists());
    }
}

/// `nohup` makes a run ignore that its terminal was closed.
#[test]
fn nohup_keeps_a_run_alive() {
    let f = tempfile::tempdir().expect("a folder");
    write(f.path(), "Thermo(every: 10, file: \"t.csv\")", 100_000_000);
    let mut child = Command::new("nohup")
        .arg(program())
        .args(["--pipeline", "p.ron", "--device", "cpu", "-q"])
        .current_dir(f.path())
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("nohup starts");
    let id = child.id().to_string();
    let rows = || std::fs::read_to_string(f.path().join("t.csv")).map_or(0, |t| t.lines().count());
    let grow = |child: &mut std::process::Child| {
        let (begun, before) = (Instant::now(), rows());
        while rows() < before + 3 && begun.elapsed() < Duration::from_secs(60) {
            assert!(child.try_wait().expect("a state").is_none(), "the run has ended");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    grow(&mut child);
    assert!(Command::new("kill").args(["-HUP", &id]).status().expect("kill").success());
    grow(&mut child);
    assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill").success());
    assert!(child.wait().expect("ended").success());
    assert!(f.path().join("p.checkpoint").exists());
}

/// `--check-memory` reports a force that writes outside of its arrays on the CPU.
#[test]
fn a_force_that_writes_outside_its_array_is_reported() {
    let plugins = fixture();
    let plugins = plugins.to_string_lossy();
    for (into, expected) in [
        ("force", "Trespasser wrote past the end of the array `force`"),
        ("position", "Trespasser changed positions, velocities, images or tags, which a force may only read"),
    ] {
        let f = tempfile::tempdir().expect("a folder");
        write(f.path(), "Thermo(every: 1, file: \"t.csv\")", 20);
        let run = ["--pipeline", "p.ron", "--device", "cpu", "--quiet", "--plugin-dir", &plugins, "--check-memory"];
        // innocent forces stand before and behind it
        let set = format!("forces=[{LJ}, Trespasser(into: \"{into}\"), BodyForce(force: [0.0, 0.0, 0.0])]");
        let out = galamost(f.path(), &[run.as_slice(), &["--set", &set]].concat());
        let said = words(&out);
        assert_eq!(out.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("step 0: {expected}")), "{said}");
        // no other component is blamed
        let out = galamost(f.path(), &run);
        assert!(out.status.success(), "{}", words(&out));
        let out = galamost(f.path(), &["--pipeline", "p.ron", "--device", "emulated", "--check-memory"]);
        assert_ne!(out.status.code(), Some(0), "{}", words(&out));
    }
}

/// An invalid memory access or an abort of a plugin ends the program with the names of component, method and array.
#[test]
fn a_crash_names_component_and_array() {
    let plugins = fixture();
    let plugins = plugins.to_string_lossy();
    for (force, expected) in [
        (
            "Forgetful(array: \"charge\")",
            "step 0: Forgetful ended the program in `compute` by an invalid memory access (SIGSEGV): it reads an array \
             that is null; arrays that no component declares in `needs.arrays`: `angular_momentum`, `charge`, ",
        ),
        (
            "Forgetful(array: \"molecule\")",
            "step 0: Forgetful ended the program in `compute` by an invalid memory access (SIGSEGV): it reads an array \
             that is null; arrays that no component declares in `needs.arrays`: `molecule`\n",
        ),
        (
            "Greedy()",
            "step 0: Greedy ended the program in `compute` by an abort, for example for lack of memory (SIGABRT)",
        ),
    ] {
        let f = tempfile::tempdir().expect("a folder");
        write(f.path(), "Thermo(every: 1, file: \"t.csv\")", 20);
        let set = format!("forces=[{LJ}, {force}]");
        let run = ["--pipeline", "p.ron", "--device", "cpu", "--plugin-dir", &plugins, "--set", &set];
        let out = galamost(f.path(), &run);
        let said = words(&out);
        assert_eq!(out.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("error: {expected}")), "{said}");
        let out = galamost(f.path(), &[run.as_slice(), &["--log", "json"]].concat());
        let last = words(&out).lines().last().expect("a line").to_string();
        let last: serde_json::Value = serde_json::from_str(&last).unwrap_or_else(|e| panic!("{last}: {e}"));
        let message = last["message"].as_str().expect("a message");
        assert!(last["event"] == "error" && message.starts_with(expected.trim_end()), "{message}");
    }
}

/// Components that disagree on the format of an array would read it out of bounds.
#[test]
fn arrays_have_one_format() {
    let plugins = fixture();
    let plugins = plugins.to_string_lossy();
    let own = "Misfit(array: \"fixture.own\", width: 2, integer: false)";
    for (updaters, expected) in [
        (
            "Misfit(array: \"charge\", width: 1, integer: true)",
            "Misfit asks for 1 integer per particle in the array `charge`, but it has 1 number per particle",
        ),
        (
            "Misfit(array: \"torque\", width: 1, integer: false)",
            "Misfit asks for 1 number per particle in the array `torque`, but it has 3 numbers per particle",
        ),
        (
            &format!("{own}, Misfit(array: \"fixture.own\", width: 3, integer: false)"),
            "Misfit asks for 3 numbers per particle in the array `fixture.own`, but Misfit stores 2 numbers per particle",
        ),
        (&format!("{own}, {own}"), ""),
        (
            "Misfit(array: \"chrage\", width: 1, integer: false)",
            "Misfit asks for the array `chrage`, which is neither known nor in the initial state",
        ),
    ] {
        let f = tempfile::tempdir().expect("a folder");
        write(f.path(), "Thermo(every: 1, file: \"t.csv\")", 2);
        let set = format!("updaters=[{updaters}]");
        let run = ["--pipeline", "p.ron", "--device", "cpu", "--quiet", "--plugin-dir", &plugins, "--set", &set];
        let out = galamost(f.path(), &run);
        let said = words(&out);
        assert_eq!(out.status.code(), Some(if expected.is_empty() { 0 } else { 2 }), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

/// A component that does not come back is named; at the end of the time the program gives up.
#[test]
fn a_component_that_hangs_is_reported() {
    let plugins = fixture();
    let plugins = plugins.to_string_lossy();
    let f = tempfile::tempdir().expect("a folder");
    write(f.path(), "Thermo(every: 1, file: \"t.csv\")", 40);
    let run = |seconds: f64, more: &[&str]| {
        let set = format!("updaters=[Sleeper(step: 20, seconds: {seconds})]");
        let args = ["--pipeline", "p.ron", "--device", "cpu", "--plugin-dir", &plugins, "--set", &set];
        let out = Command::new(program())
            .args(args)
            .args(["--set", "checkpoint=(every: 10)"])
            .args(more)
            .env("GALAMOST_PATIENCE", "1")
            .current_dir(f.path())
            .output()
            .expect("the program starts");
        (out.status.code(), words(&out))
    };
    let (code, said) = run(2.0, &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("nothing has moved for ") && said.contains("the run is in Sleeper"), "{said}");
    let begun = Instant::now();
    let (code, said) = run(100.0, &["--walltime", "0:12"]);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("error: the walltime is over: nothing has moved for "), "{said}");
    assert!(said.contains("the last checkpoint is p.checkpoint"), "{said}");
    let record = std::fs::read_to_string(f.path().join("p.run.json")).expect("a record");
    assert!(record.contains("\"status\": \"failed\"") && !record.contains("\"running\""), "{record}");
    assert!(said.contains("resume with: galamost --pipeline p.ron --resume"), "{said}");
}

#[test]
fn doctor_finds_problems() {
    let f = tempfile::tempdir().expect("a folder");
    let doctor = |folder: &Path, cache: &Path| {
        let out = Command::new(program())
            .args(["doctor", "--quiet", "--plugin-dir", &folder.to_string_lossy()])
            .env("GALAMOST_CACHE", cache)
            .current_dir(f.path())
            .output()
            .expect("the program starts");
        (out.status.code(), String::from_utf8_lossy(&out.stdout).into_owned() + &words(&out))
    };
    let (empty, cache) = (f.path().join("mine"), f.path().join("cache"));
    std::fs::create_dir(&empty).expect("a folder");
    let (code, said) = doctor(&empty, &cache);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("no problems found") && said.contains("kernel cache ") && said.contains("GiB free"),
        "{said}"
    );
    assert!(said.contains("components") && said.contains("`device: Auto` selects"), "{said}");
    std::fs::write(empty.join("libbroken.so"), "no library").expect("written");
    assert!(Command::new("chmod").args(["777", &empty.to_string_lossy()]).status().expect("chmod").success());
    std::fs::write(cache.with_file_name("file"), "x").expect("written");
    let (code, said) = doctor(&empty, &cache.with_file_name("file").join("x"));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("writable by all users") && said.contains("chmod o-w"), "{said}");
    assert!(said.contains("there is no folder for compiled kernels"), "{said}");
    assert!(said.contains("libbroken.so cannot be used"), "{said}");
}
