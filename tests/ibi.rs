//! `galamost ibi`: potentials out of distributions.

use galamost_tests::{csv, galamost, program, repository, words};
use std::path::Path;
use std::process::{Command, Output};

/// A small WCA fluid; POTENTIAL and the analyzers vary.
const FLUID: &str = "(seed: 5, device: Cpu, initial: [Lattice(lattice: Sc, cells: [7, 7, 7], density: DENSITY), Velocities(kT: 1.0)], \
    forces: [POTENTIAL], integrators: [Langevin(kT: 1.0, gamma: 1.0)], stages: [(name: \"melt\", steps: 300, dt: 0.005), \
    (name: \"run\", steps: 600, dt: 0.005, analyzers: [ANALYZERS])])";

const TABLE: &str = "PairTable(pairs: { (\"A\", \"A\"): (file: \"pair.A-A.csv\") })";

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("written");
}

/// A folder with the g(r) of the fluid at one density, and the pipeline that iterations run.
fn prepare(folder: &Path, density: &str, rdf: &str, template: &str) {
    let wca = "Wca(pairs: { (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0) })";
    let fluid = FLUID.replace("DENSITY", density);
    let analyzer = format!("Rdf(every: 10, file: \"{rdf}\", r_max: 2.0, bins: 50)");
    write(folder, "reference.ron", &fluid.replace("POTENTIAL", wca).replace("ANALYZERS", &analyzer));
    succeed(galamost(folder, &["--pipeline", "reference.ron", "-q"]));
    write(folder, template, &fluid.replace("POTENTIAL", TABLE).replace("ANALYZERS", ""));
}

fn succeed(out: Output) -> String {
    assert!(out.status.success(), "{}", words(&out));
    words(&out)
}

const SPEC: &str = "(
    iterations: 3,
    tolerance: 0.001,
    from_last: true,
    states: [ (pipeline: \"p.ron\", kT: 1.0, every: 10) ],
    interactions: [
        Pair(types: (\"A\", \"A\"), max: 2.0, bins: 50, target: \"rdf.csv\"),
    ],
)
";

fn norms(folder: &Path) -> Vec<f64> {
    let text = std::fs::read_to_string(folder.join("convergence.csv")).expect("a table");
    text.lines().skip(1).map(|l| l.split(',').nth(3).expect("a norm").parse().expect("a number")).collect()
}

/// Iterations come nearer, are kept, and come out the same after a stop at any place.
#[test]
#[ignore = "3 seconds"]
fn iterations_converge_and_resume() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = folder.path();
    prepare(here, "0.7", "rdf.csv", "p.ron");
    write(here, "spec.ron", SPEC);
    let run = |more: &[&str]| succeed(galamost(here, &[&["ibi", "spec.ron"], more].concat()));
    let log = run(&[]);
    assert!(log.contains("the tolerance 0.001 was not reached") && !log.contains("the mean kT is"), "{log}");
    let results = here.join("spec");
    let first = norms(&results);
    println!("distances {first:?}");
    assert!(first.len() == 3 && first[2] < 0.6 * first[0], "{first:?}");
    let page = std::fs::read_to_string(results.join("report.html")).expect("a page");
    assert!(page.matches("<svg").count() == 3 && page.contains("pair A-A") && !page.contains("NaN"));
    // the table that was found is read by the run that it is for
    std::fs::copy(results.join("result/pair.A-A.csv"), here.join("pair.A-A.csv")).expect("copied");
    succeed(galamost(here, &["check", "p.ron"]));
    // done is done
    let dist =
        |k: usize| std::fs::read_to_string(results.join(format!("iter-{k:03}/main/pair.A-A.dist.csv"))).expect("g");
    let third = dist(3);
    let changed = |k: usize| {
        let path = results.join(format!("iter-{k:03}/main/thermo.ibi.csv"));
        path.metadata().and_then(|m| m.modified()).expect("a time")
    };
    let then = [1, 2].map(changed);
    // a program that ended in the third iteration: before its end, and before it had written anything
    std::fs::remove_file(results.join("iter-003/main/done.ron")).expect("removed");
    run(&[]);
    assert_eq!(dist(3), third, "a repeated iteration differs");
    std::fs::remove_dir_all(results.join("iter-003")).expect("removed");
    run(&[]);
    assert_eq!((dist(3), [1, 2].map(changed)), (third.clone(), then), "finished iterations are kept");
    // another method continues: first with the old one, since no covariances were counted, then by itself
    write(here, "spec.ron", &SPEC.replace("iterations: 3", "iterations: 5, method: Imc(lambda: 1.0)"));
    run(&[]);
    assert_eq!((dist(3), [1, 2].map(changed)), (third.clone(), then), "finished iterations are kept");
    assert!(results.join("iter-004/main/covariance.csv").exists() && norms(&results)[4] < 0.6 * first[0]);
    // with a tolerance that is reached it ends there, and says so
    write(here, "spec.ron", &SPEC.replace("0.001", &format!("{}", 1.01 * first[1])));
    let log = run(&[]);
    assert!(log.contains("of their targets after iteration 2"), "{log}");
    // other grids do not go on with these iterations
    write(here, "spec.ron", &SPEC.replace("bins: 50", "bins: 40"));
    let out = galamost(here, &["ibi", "spec.ron"]);
    assert!(
        out.status.code() == Some(2) && words(&out).contains("another target of pair A-A in main, grid of pair A-A"),
        "{}",
        words(&out)
    );
}

/// A repeated call writes the same result, also with fewer iterations; inputs that would mix two searches are refused.
#[test]
fn repeated_calls_change_nothing_and_refuse_other_inputs() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = folder.path();
    prepare(here, "0.7", "rdf.csv", "p.ron");
    let spec = SPEC.replace("iterations: 3", "iterations: 2");
    write(here, "spec.ron", &spec);
    succeed(galamost(here, &["ibi", "spec.ron"]));
    let text = |name: &str| std::fs::read_to_string(here.join(name)).expect("a file");
    let contents = || ["spec/result/pair.A-A.csv", "spec/convergence.csv", "spec/iter-002/main/pair.A-A.csv"].map(text);
    let first = contents();
    // the table does not contain the bins at the smallest distances, where U exceeds 10⁴
    assert!(first[0].lines().count() < 50, "{}", first[0]);
    succeed(galamost(here, &["ibi", "spec.ron"]));
    assert_eq!(contents(), first, "a repeated call");
    let log = succeed(galamost(here, &["ibi", "spec.ron", "--iterations", "1"]));
    assert!(log.contains("2 iterations instead of 1"), "{log}");
    assert_eq!(contents(), first, "fewer iterations");
    let (rdf, template) = (text("rdf.csv"), text("p.ron"));
    let (head, last) = rdf.trim_end().rsplit_once('\n').expect("rows");
    let last = last.split(',').next().expect("a distance");
    let moved = format!("{head}\n{last}{}\n", ",1.25".repeat(rdf.lines().next().expect("names").matches(',').count()));
    for (file, changed, message) in [
        ("spec.ron", spec.replace("kT: 1.0", "kT: 1.1"), "another kT of main:"),
        ("spec.ron", spec.replace("every: 10", "every: 10, pressure: 1.0"), "another pressure of main:"),
        ("rdf.csv", moved, "another target of pair A-A in main:"),
        ("p.ron", template.replace("steps: 600", "steps: 700"), "another pipeline of main:"),
    ] {
        let before = text(file);
        assert_ne!(before, changed);
        write(here, file, &changed);
        let out = galamost(here, &["ibi", "spec.ron"]);
        assert!(out.status.code() == Some(2) && words(&out).contains(message), "{message}: {}", words(&out));
        assert_eq!(contents(), first, "{message}");
        write(here, file, &before);
    }
    succeed(galamost(here, &["ibi", "spec.ron"]));
    assert_eq!(contents(), first, "with the first inputs again");
}

/// Potentials are derived for the kT of the specification, so a run at another one is reported.
/// While a process works on a specification, a second one is refused with the first one's host and number.
#[test]
fn two_processes_do_not_share_a_specification() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = folder.path();
    write(here, "spec.ron", SPEC);
    let lock = std::fs::File::create(here.join("spec.ron.lock")).expect("a file");
    lock.lock().expect("locked");
    write(here, "spec.ron.lock", r#"{"host": "node7", "pid": 4711, "started": "today"}"#);
    let out = galamost(here, &["ibi", "spec.ron"]);
    assert_eq!(out.status.code(), Some(2), "{}", words(&out));
    assert!(words(&out).contains("in use by process 4711 on node7, started today"), "{}", words(&out));
    assert!(!here.join("spec").exists());
    drop(lock);
    // a file that nobody has locked is taken over; then the missing files are errors
    write(here, "spec.ron.lock", "");
    let out = galamost(here, &["ibi", "spec.ron"]);
    assert!(!out.status.success() && !words(&out).contains("in use"), "{}", words(&out));
    assert!(!here.join("spec.ron.lock").exists());
}

#[test]
fn another_temperature_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = folder.path();
    prepare(here, "0.7", "rdf.csv", "p.ron");
    write(here, "spec.ron", &SPEC.replace("iterations: 3", "iterations: 1").replace("kT: 1.0", "kT: 1.2"));
    let log = succeed(galamost(here, &["ibi", "spec.ron"]));
    assert!(log.contains("iteration 1, main: the mean kT is 1.0") && log.contains("derived for 1.200"), "{log}");
}

/// A signal ends the current run with a checkpoint; the next call resumes it and gives the same numbers.
#[test]
#[ignore = "3 seconds"]
fn an_iteration_resumes_from_its_checkpoint() {
    let (a, b) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let spec = SPEC.replace("iterations: 3", "iterations: 1");
    for folder in [a.path(), b.path()] {
        prepare(folder, "0.7", "rdf.csv", "p.ron");
        let long = std::fs::read_to_string(folder.join("p.ron")).expect("text").replace("steps: 600", "steps: 6000");
        write(folder, "p.ron", &long);
        write(folder, "spec.ron", &spec);
    }
    succeed(galamost(a.path(), &["ibi", "spec.ron", "--threads", "1"]));
    let mut child = Command::new(program())
        .args(["ibi", "spec.ron", "--threads", "1"])
        .current_dir(b.path())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the program runs");
    let main = b.path().join("spec/iter-001/main");
    let begun = std::time::Instant::now();
    // some samples of the last stage are there
    while !main.join("pair.A-A.dist.csv").exists() && begun.elapsed().as_secs() < 120 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let stopped = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill");
    assert!(stopped.success() && child.wait().expect("an end").success());
    assert!(!main.join("done.ron").exists() && main.join("pipeline.checkpoint").exists(), "it was stopped on its way");
    let log = succeed(galamost(b.path(), &["ibi", "spec.ron", "--threads", "1"]));
    assert!(log.contains("resumes from its checkpoint"), "{log}");
    let g = |folder: &Path| std::fs::read_to_string(folder.join("spec/iter-001/main/pair.A-A.dist.csv")).expect("g");
    assert_eq!(g(a.path()), g(b.path()));
}

/// Newton's method on two densities of one fluid at once, and the correction of a pressure.
#[test]
#[ignore = "3 seconds"]
fn states_and_newton_and_pressure_work_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = folder.path();
    prepare(here, "0.7", "rdf-dense.csv", "dense.ron");
    prepare(here, "0.4", "rdf-thin.csv", "thin.ron");
    let spec = "(iterations: 3, method: Imc(lambda: 0.5), states: [
            (name: \"dense\", pipeline: \"dense.ron\", kT: 1.0, every: 5, pressure: 4.0),
            (name: \"thin\", pipeline: \"thin.ron\", kT: 1.0, every: 5, weight: 0.5)],
        interactions: [Pair(types: (\"A\", \"A\"), max: 2.0, bins: 50, target: \"rdf-{state}.csv\", smooth: 1, pressure_gain: 0.001)])";
    write(here, "spec.ron", spec);
    succeed(galamost(here, &["ibi", "spec.ron"]));
    let all = norms(&here.join("spec"));
    println!("distances {all:?}");
    assert_eq!(all.len(), 6);
    assert!(all[4] < all[0] && all[5] < all[1], "{all:?}");
    assert!(here.join("spec/iter-003/thin/covariance.csv").exists());
}

/// Targets measured from a trajectory with a mapping are those that an analyzer sees of the beads themselves.
#[test]
fn targets_come_from_trajectories() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = folder.path();
    prepare(here, "0.7", "rdf.csv", "p.ron");
    // frames of the fluid, each particle written as two atoms around it
    let wca = "Wca(pairs: { (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0) })";
    let analyzers = "Gsd(every: 300, file: \"beads.gsd\"), GalamostXml(every: 300, file: \"beads.{step}.xml\"), \
        Rdf(every: 300, file: \"direct.csv\", r_max: 2.0, bins: 50)";
    let text = FLUID.replace("DENSITY", "0.7").replace("POTENTIAL", wca).replace("ANALYZERS", analyzers);
    write(here, "frames.ron", &text.replace("precision: Double, ", "").replacen('(', "(precision: Double, ", 1));
    succeed(galamost(here, &["--pipeline", "frames.ron", "-q"]));
    let direct = &csv(&here.join("direct.csv"))["A-A"];
    let mut dump = String::new();
    for step in [300, 600, 900] {
        let xml = std::fs::read_to_string(here.join(format!("beads.{step:010}.xml"))).expect("a frame");
        let (_, rest) = xml.split_once("<position num=\"343\">\n").expect("positions");
        let length: f64 =
            xml.split_once("lx=\"").expect("a box").1.split('"').next().expect("a number").parse().expect("a number");
        dump += &format!("ITEM: TIMESTEP\n{step}\nITEM: NUMBER OF ATOMS\n686\nITEM: BOX BOUNDS pp pp pp\n");
        dump += &format!("0.0 {length}\n0.0 {length}\n0.0 {length}\nITEM: ATOMS id type x y z\n");
        // in any order, and with the middle of mass at a third of the way
        for (k, line) in rest.lines().take(343).enumerate().collect::<Vec<_>>().into_iter().rev() {
            let r: Vec<f64> =
                line.split_whitespace().map(|x| x.parse::<f64>().expect("a number") + 0.5 * length).collect();
            dump += &format!("{} 2 {:?} {:?} {:?}\n", 2 * k + 2, r[0] + 0.4, r[1], r[2]);
            dump += &format!("{} 1 {:?} {:?} {:?}\n", 2 * k + 1, (r[0] - 0.2).rem_euclid(length), r[1], r[2]);
        }
    }
    write(here, "atoms.dump", &dump);
    let mapping = "mapping: [(molecules: 343, atoms: 2, beads: [(type: \"A\", atoms: [0, 1])])]";
    for (k, trajectory) in [
        "(reader: Gsd(file: \"beads.gsd\"), last: 2)".to_string(),
        "(reader: GalamostXml(), files: [\"beads.0000000300.xml\", \"beads.0000000600.xml\", \"beads.0000000900.xml\"])".into(),
        format!("(reader: LammpsDump(file: \"atoms.dump\", types: [\"C\", \"H\"], masses: [2.0, 1.0]), last: 2, {mapping})"),
    ]
    .into_iter()
    .enumerate()
    {
        let spec = SPEC
            .replace("every: 10)", &format!("every: 10, trajectory: {trajectory})"))
            .replace(", target: \"rdf.csv\"", "")
            .replacen("iterations", &format!("folder: \"t{k}\", iterations"), 1);
        write(here, "spec.ron", &spec);
        let log = succeed(galamost(here, &["ibi", "spec.ron", "--check"]));
        let targets = here.join(format!("t{k}/targets/main"));
        // the second and the third frame continue the files of the first one
        let files: Vec<_> = std::fs::read_dir(&targets).expect("files").flatten().map(|e| e.file_name()).collect();
        let kept = files.iter().any(|name| name.to_string_lossy().contains(".old"));
        assert!(!kept && !log.contains("renamed"), "{files:?}: {log}");
        let g = &csv(&targets.join("pair.A-A.dist.csv"))["A-A"];
        let worst = g.iter().zip(direct).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
        println!("{trajectory:.40}: {worst:.1e} from g of the run itself");
        // digits of the files move single pairs over the edge of a bin
        assert!(worst < 0.08, "{trajectory}: {worst}");
    }
}

/// The example, two short iterations of it.
#[test]
fn the_example_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = folder.path();
    for name in ["spec.ron", "wca.ron", "rdf.csv", "reference.ron"] {
        std::fs::copy(repository().join("examples/41-ibi").join(name), here.join(name)).expect("copied");
    }
    succeed(galamost(here, &["check", "reference.ron"]));
    let wca = std::fs::read_to_string(here.join("wca.ron")).expect("text").replace("steps: 5_000", "steps: 500");
    write(here, "wca.ron", &wca);
    let log = succeed(galamost(here, &["ibi", "spec.ron", "--iterations", "2", "--device", "cpu"]));
    assert!(log.contains("iteration 2 of 2") && here.join("spec/result/pair.A-A.csv").exists(), "{log}");
    let all = norms(&here.join("spec"));
    assert!(all[1] < 0.7 * all[0], "{all:?}");
}

/// Changes of `SPEC` and the messages that they give.
fn mistakes() -> Vec<(&'static str, &'static str, &'static str)> {
    vec![
        ("iterations: 3", "iteration: 3", "spec.ron:2:5: unknown field `iteration`; did you mean `iterations`?"),
        ("kT: 1.0", "kT: -1.0", "spec.ron:5:39: -1 is not allowed here: it must be above 0"),
        ("bins: 50", "bins: 2", "is not allowed here: it must be at least 4"),
        ("Pair(", "Paar(", "spec.ron:7:9: expected `Pair(types:"),
        ("rdf.csv", "nothing.csv", "spec.ron:7:61: ./nothing.csv cannot be read"),
        ("rdf.csv", "short.csv", "short.csv:3:1: pair A-A: g(r) ends at 1, but the grid ends at 2"),
        ("rdf.csv", "down.csv", "down.csv:3:1: pair A-A: 0.4 is not above 0.5 of the previous row"),
        (
            "\"rdf.csv\"",
            "\"rdf.csv\", column: \"A-B\"",
            "rdf.csv:1:1: pair A-A: there is no column `A-B`; the columns are r, A-A",
        ),
        (
            ", target: \"rdf.csv\"",
            "",
            "spec.ron:7:9: pair A-A has no `target`, and the state `main` has no `trajectory`",
        ),
        ("p.ron", "q.ron", "spec.ron:5:26: ./q.ron cannot be read"),
        (
            "(\"A\", \"A\"), max",
            "(\"A\", \"C\"), max",
            "spec.ron:7:9: ./p.ron does not read \"pair.A-C.csv\", the table of the potential pair A-C",
        ),
        (
            "every: 10",
            "every: 901",
            "spec.ron:5:26: `every: 901` takes no sample: the last stage of ./p.ron has 600 steps, from step 300 to step 900",
        ),
        ("every: 10", "every: 10, files: [\"start.xml\"]", "spec.ron:5:63: ./start.xml cannot be read"),
        ("tolerance", "method: Imd, tolerance", "spec.ron:3:13: expected `Ibi` or `Imc(lambda: 0.1)`, found `Imd`"),
        ("max: 2.0", "max: 2.0, pressure_gain: 0.1", "`pressure_gain` requires a state with a `pressure`"),
        ("max: 2.0", "max: 8.0", "rdf.csv:51:1: pair A-A: g(r) ends at 1.98, but the grid ends at 8"),
        ("every: 10", "every: 10, trajectory: (reader: Gsd(file: \"a.gsd\"))", "spec.ron:5:67: give either `last`"),
        (
            "every: 10",
            "every: 10, trajectory: (reader: Gsd(file: \"a.gsd\"), first: 9, last: 4)",
            "spec.ron:5:67: `last: 4` is before `first: 9`",
        ),
        (", target: \"rdf.csv\"", "", "pair A-A has no `target`"),
    ]
}

#[test]
#[ignore = "3 seconds"]
fn mistakes_are_reported_at_their_position() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = folder.path();
    write(here, "p.ron", &FLUID.replace("DENSITY", "0.7").replace("POTENTIAL", TABLE).replace("ANALYZERS", ""));
    let g = (0..50).map(|k| format!("{:?},{}\n", 0.02 + 0.04 * f64::from(k), u32::from(k > 20))).collect::<String>();
    write(here, "rdf.csv", &format!("r,A-A\n{g}"));
    write(here, "short.csv", "r,A-A\n0.5,0.0\n1.0,1.0\n");
    write(here, "down.csv", "r,A-A\n0.5,0.0\n0.4,1.0\n");
    let pair = "Pair(types: (\"A\", \"A\"), max: 2.0, bins: 50, target: \"rdf.csv\")";
    for (from, to, message) in mistakes() {
        write(here, "spec.ron", &SPEC.replacen(from, to, 1));
        let out = galamost(here, &["ibi", "spec.ron", "--check"]);
        let said = words(&out);
        assert!(out.status.code() == Some(2) && said.contains(message), "{to}: wanted `{message}`, found\n{said}");
        assert!(!here.join("spec").exists(), "{to}: a mistake leaves no files");
    }
    let twice = SPEC.replace(pair, &format!("{pair},\n        {pair}"));
    let missing = SPEC
        .replace(", target: \"rdf.csv\"", "")
        .replace("every: 10", "every: 10, trajectory: (reader: Gsd(file: \"none.gsd\"), last: 3)");
    for (text, message) in [(twice, "spec.ron:8:9: pair A-A is given twice"), (missing, "spec.ron:5:76: frame 0:")] {
        write(here, "spec.ron", &text);
        let out = galamost(here, &["ibi", "spec.ron", "--check"]);
        assert!(
            out.status.code() == Some(2) && words(&out).contains(message),
            "wanted `{message}`, found\n{}",
            words(&out)
        );
    }
    let template = std::fs::read_to_string(here.join("p.ron")).expect("the template");
    write(here, "p.ron", &template.replace("Velocities(", "Velocity("));
    write(here, "spec.ron", SPEC);
    let out = galamost(here, &["ibi", "spec.ron"]);
    let said = words(&out);
    // the pipeline of the iteration, in which the mistake is, can be read
    let mistake = "spec/iter-001/main/pipeline.ron:1:88: there is no component `Velocity`; did you mean `Velocities`?";
    assert!(out.status.code() == Some(2) && said.contains(mistake), "{said}");
    assert!(here.join("spec/iter-001/main/pipeline.ron").exists());
    write(here, "p.ron", &template);
    succeed(galamost(here, &["ibi", "spec.ron", "--check"]));
    assert!(here.join("spec/iter-001/main/pipeline.ron").exists() && !here.join("spec/convergence.csv").exists());
    // longer than the last stage, which contains step 601
    write(here, "spec.ron", &SPEC.replace("every: 10", "every: 601"));
    succeed(galamost(here, &["ibi", "spec.ron", "--check"]));
}

/// The initial state has a step, from which iterations count: the check of `every` uses the steps of the runs.
#[test]
fn iterations_begin_at_the_step_of_the_initial_state() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = folder.path();
    prepare(here, "0.7", "rdf.csv", "p.ron");
    let (text, initial) = (std::fs::read_to_string(here.join("p.ron")).expect("text"), "initial: [");
    let (before, after) = text.split_once(initial).expect("an initial state");
    let (generators, rest) = after.split_once("], forces").expect("forces");
    // the last step of this run is 900
    let start = format!(
        "(seed: 5, device: Cpu, initial: [{generators}], integrators: [Langevin(kT: 1.0, gamma: 1.0)], \
                         analyzers: [Gsd(every: 900, file: \"start.gsd\")], stages: [(steps: 900, dt: 0.001)])"
    );
    write(here, "start.ron", &start);
    succeed(galamost(here, &["--pipeline", "start.ron", "-q"]));
    write(here, "p.ron", &format!("{before}{initial}Gsd(file: \"start.gsd\")], forces{rest}"));
    let check = |spec: String| {
        let spec = spec.replace("every: ", "files: [\"start.gsd\"], every: ");
        write(here, "spec.ron", &spec);
        galamost(here, &["ibi", "spec.ron", "--check"])
    };
    let alone = SPEC.replace("from_last: true", "from_last: false");
    // the last stage has 600 steps
    for (spec, what) in [
        (
            SPEC.replace("every: 10", "every: 901"),
            "`every: 901` takes no sample: the last stage of ./p.ron has 600 steps, from step 1200 to step 1800",
        ),
        (
            SPEC.replace("every: 10", "every: 1300"),
            "`every: 1300` takes no sample in iteration 3: the last stage of ./p.ron has 600 steps, from step 3000 to step 3600",
        ),
    ] {
        let out = check(spec);
        assert!(out.status.code() == Some(2) && words(&out).contains(what), "{}", words(&out));
    }
    succeed(check(alone.replace("every: 10", "every: 1300")));
}

/// A file with the name of the folder of the result is found before the first iteration.
#[test]
fn a_file_in_the_place_of_a_folder_is_an_error_before_anything_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = folder.path();
    write(here, "spec.ron", SPEC);
    std::fs::create_dir(here.join("spec")).expect("a folder");
    write(here, "spec/result", "mine");
    let out = galamost(here, &["ibi", "spec.ron"]);
    let said = words(&out);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("spec/result: this is a file, but results are written into a folder"), "{said}");
    assert_eq!(std::fs::read_dir(here.join("spec")).expect("a folder").count(), 1);
}
