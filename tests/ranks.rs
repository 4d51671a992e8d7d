//! Runs on several GPUs, with the kernels emulated on the CPU: every bit is that of a run on one GPU.

mod balance;
mod delayed;
mod fields;
mod more;
mod overflow;
pub mod placed;
pub mod starts;

use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::Values;
use galamost_tests::{galamost, has_compiler, output, plan, plan_in, program, repository, run_plan, words};
use std::collections::BTreeMap;

const SYSTEM: &str = "initial: [
    Lattice(lattice: Sc, cells: [10, 10, 10], density: 0.85, types: { \"A\": 0.5, \"B\": 0.5 }), Velocities(kT: 1.2)]";
const LJ: &str = "LennardJones(r_cut: 2.5, pairs: { (\"*\", \"*\"): (epsilon: 1.0, sigma: 1.0) })";
const DPD: &str = "Dpd(r_cut: 1.6, kT: 1.0, pairs: { (\"*\", \"*\"): (a: 25.0, sigma: 3.0) })";

/// What a run leaves: its state bit for bit, its sums and links, and the number of list builds.
fn outcome(text: &str, gpus: u32) -> (BTreeMap<String, Vec<u8>>, String, u64) {
    let path = repository().join("examples/test.ron");
    let mut plan = plan_in(&path, text, DeviceChoice::Emulated).unwrap_or_else(|e| panic!("{}", e.render()));
    plan.pipeline.gpus = gpus;
    let (_, mut backend) = run_plan(&plan).unwrap_or_else(|e| panic!("{gpus} GPUs: {}", e.render()));
    let state = backend.export().expect("a state").sections.into_iter().collect();
    let builds = backend.list_report().expect("a report").builds;
    // steps compute forces without their energies
    backend.evaluate().expect("energies");
    (state, format!("{:?} {:?}", backend.sums().expect("sums"), backend.topology()), builds)
}

/// Compares runs of one and several GPUs.
fn compare(what: &str, text: &str, gpus: &[u32]) {
    let (state, sums, builds) = outcome(text, 1);
    for gpus in gpus {
        let (other, other_sums, _) = outcome(text, *gpus);
        let differ: Vec<&String> = state.keys().filter(|k| other.get(*k) != state.get(*k)).collect();
        assert!(differ.is_empty() && other.len() == state.len(), "{what}, {gpus} GPUs: {differ:?} differ");
        assert_eq!(other_sums, sums, "{what}, {gpus} GPUs");
    }
    println!("{what}: {builds} list builds");
    assert!(builds >= 3, "{what}: {builds} list builds are too few");
}

fn pipeline(initial: &str, forces: &str, integrators: &str, more: &str) -> String {
    format!(
        "(seed: 3, {initial}, forces: [{forces}], integrators: [{integrators}],
          stages: [(steps: 24, dt: 0.005)], {more})"
    )
}

#[test]
fn liquids_are_the_same_on_any_number_of_gpus() {
    if !has_compiler() {
        return;
    }
    let buffer = "neighbors: (buffer: 0.15)";
    let text = |forces: &str, integrators: &str| pipeline(SYSTEM, forces, integrators, buffer);
    compare("LJ", &text(LJ, "NoseHoover(kT: 1.2, tau: 0.5)"), &[4]);
    compare("DPD, forces twice", &text(DPD, "DpdVerlet()"), &[3]);
    let more = format!("{buffer}, precision: Double");
    compare("Double", &pipeline(SYSTEM, LJ, "NoseHooverChain(kT: 1.2, tau: 0.5)", &more), &[2]);
}

#[test]
#[ignore = "10 seconds"]
fn eight_ranks_have_the_bits_of_one() {
    if !has_compiler() {
        return;
    }
    let larger = SYSTEM.replace("[10, 10, 10]", "[13, 13, 13]");
    let text = pipeline(&larger, LJ, "NoseHoover(kT: 1.2, tau: 0.5)", "neighbors: (buffer: 0.15)");
    compare("LJ", &text, &[8]);
}

#[test]
#[ignore = "3 seconds"]
fn virials_of_particles_are_the_same_on_several_gpus() {
    if !has_compiler() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let wall = r#"ExternalExpression(energy: "0.3*sin(x)"), LjWall(wall: Plane(point: [0.0, 0.0, -5.27], normal: [0.0, 0.0, 1.0]),
        types: { "A": (epsilon: 1.0, sigma: 0.2, r_cut: 0.5), "B": (epsilon: 1.0, sigma: 0.2, r_cut: 0.5) })"#;
    let file = folder.path().join("t.csv");
    let more = |list: &str| {
        format!(
            "neighbors: (buffer: 0.15, list: {list}), \
             analyzers: [ParticleTable(every: 12, file: {file:?}, columns: [\"energy\", \"vxx\", \"vyz\"])]"
        )
    };
    for (list, gpus) in [("Plain", 2), ("Staged", 3)] {
        compare(list, &pipeline(SYSTEM, &format!("{LJ}, {wall}"), "VelocityVerlet()", &more(list)), &[gpus]);
    }
}

#[test]
#[ignore = "3 seconds"]
fn staged_lists_are_the_same_on_any_number_of_gpus() {
    if !has_compiler() {
        return;
    }
    let more = "neighbors: (buffer: 0.15, list: Staged)";
    compare("LJ", &pipeline(SYSTEM, LJ, "Bussi(kT: 1.2, tau: 0.5)", more), &[4]);
    compare("DPD", &pipeline(SYSTEM, DPD, "GrootWarren()", more), &[3]);
    compare("DPD, forces twice", &pipeline(SYSTEM, DPD, "DpdVerlet()", more), &[2]);
    // an integrator that adds sums after the forces changes velocities that pair functions of others read
    compare("DPD and a thermostat", &pipeline(SYSTEM, DPD, "NoseHoover(kT: 1.0, tau: 0.5)", more), &[3]);
}

#[test]
#[ignore = "5 seconds"]
fn copies_of_ghosts_and_distributed_arrays_have_the_same_bits() {
    if !has_compiler() {
        return;
    }
    let system = SYSTEM.replace("[10, 10, 10]", "[11, 11, 11]");
    let more = "neighbors: (buffer: 0.15, list: Staged), analyzers: [Thermo(every: 4, file: \"o.csv\"), Gsd(every: 8, file: \"o.gsd\")]";
    // velocities are copied, too
    let text = pipeline(&system, DPD, "GrootWarren()", more);
    // ranks meet in the pair loop, and before it
    let runs = [("1", "GATE", "0"), ("3", "GHOSTS", "1"), ("3", "GATE", "10"), ("3", "GATE", "0")];
    let files = runs.map(|(gpus, variable, value)| {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("p.ron"), &text).expect("a pipeline");
        let mut command = std::process::Command::new(program());
        command.args(["--pipeline", "p.ron", "--device", "emulated", "--gpus", gpus]).current_dir(folder.path());
        let done = command.env(format!("GALAMOST_{variable}"), value).output().expect("the program runs");
        assert!(done.status.success(), "{}", words(&done));
        ["o.csv", "o.gsd"].map(|f| std::fs::read(folder.path().join(f)).expect("an output"))
    });
    assert!(files.iter().all(|f| *f == files[0]));
}

#[test]
#[ignore = "3 seconds"]
fn tags_are_found_after_a_sort_that_ranks_share() {
    if !has_compiler() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("msd.csv");
    // with a large buffer, every second rebuild sorts; `Msd` looks up particles by their tags on the device of the first rank
    let more = format!("neighbors: (buffer: 1.0, list: Staged), analyzers: [Msd(every: 10, file: {file:?})]");
    let text = |forces: &str, integrator: &str| {
        let text = pipeline(SYSTEM, forces, integrator, &more);
        text.replace("steps: 24, dt: 0.005", "steps: 70, dt: 0.01")
    };
    for (forces, integrator) in
        [(LJ.replace("2.5", "2.0"), "NoseHoover(kT: 1.2, tau: 0.5)"), (DPD.replace("1.6", "1.0"), "GrootWarren()")]
    {
        let tables = [1, 3].map(|gpus| {
            let (state, _, builds) = outcome(&text(&forces, integrator), gpus);
            assert!(builds >= 5, "{builds} list builds are too few");
            (state, std::fs::read_to_string(&file).expect("a table"))
        });
        assert!(tables[0].1.lines().count() > 7, "{}", tables[0].1);
        assert!(tables.iter().all(|t| *t == tables[0]), "{forces}: {:?}", tables.map(|t| t.1));
    }
}

#[test]
#[ignore = "5 seconds"]
fn a_list_that_grows_on_one_rank_grows_for_all() {
    if !has_compiler() {
        return;
    }
    // a trap in one octant: the list of each rank overflows several times, and not at the same rebuilds
    let initial = "initial: [Lattice(lattice: Sc, cells: [10, 10, 10], density: 0.5), Velocities(kT: 1.0)]";
    let trap = "Gaussian(r_cut: 2.5, pairs: { (\"*\", \"*\"): (epsilon: 1.0, sigma: 1.0) }), \
                ExternalExpression(energy: \"20*((x+3)^2+(y+3)^2+(z+3)^2)\")";
    let more = "neighbors: (buffer: 0.6, list: Staged)";
    let text = pipeline(initial, trap, "NoseHoover(kT: 1.0, tau: 0.5)", more);
    compare("trap", &text.replace("steps: 24, dt: 0.005", "steps: 50, dt: 0.01"), &[2, 3]);
}

#[test]
#[ignore = "5 seconds"]
fn pressure_and_walls_are_the_same_on_several_gpus() {
    if !has_compiler() {
        return;
    }
    let buffer = "neighbors: (buffer: 0.15)";
    let npt = "MtkNpt(kT: 1.2, tau: 0.5, pressure: 1.0, tau_p: 1.0)";
    compare("MtkNpt in Double", &pipeline(SYSTEM, LJ, npt, &format!("{buffer}, precision: Double")), &[2]);
    let field = format!("{LJ}, BodyForce(force: [0.1, 0.0, -0.2])");
    compare(
        "a component with kernels of its own",
        &pipeline(SYSTEM, &field, "NoseHoover(kT: 1.2, tau: 0.5)", buffer),
        &[3],
    );
}

/// Examples with bonds, orientations, reactions, updaters and stages; their output files must be the same. Those of
/// `processes.rs` are on several ranks, too.
const EXAMPLES: [(&str, u32); 2] = [("06-kremer-grest-melt", 16), ("13-janus", 20)];

const POINTS: &str = "initial: [RandomPositions(count: 1500, box: [10.0, 9.0, 8.0], types: { \"A\": 0.6, \"B\": 0.4 }, \
                      charges: { \"A\": 1.0, \"B\": -1.5 }), Velocities(kT: 1.0)]";
const CHI: &str = "chi: { (\"A\", \"A\"): 0.0, (\"A\", \"B\"): 5.0, (\"B\", \"B\"): 0.0 }";

/// Each rank computes fields, walls and formulas for its own particles.
#[test]
#[ignore = "10 seconds"]
fn forces_of_single_particles_are_shared() {
    if !has_compiler() {
        return;
    }
    let buffer = "neighbors: (buffer: 0.15)";
    let fields = |more: &str, integrator: &str| {
        let forces = format!(
            "Gaussian(r_cut: 1.0, pairs: {{(\"*\", \"*\"): (epsilon: 1.0, sigma: 0.4)}}), \
             MdScf(grid: [6, 7, 8], kappa: 0.2, {CHI}, {more})"
        );
        pipeline(POINTS, &forces, integrator, buffer)
    };
    let langevin = "Langevin(kT: 1.0, gamma: 1.0)";
    compare("fields, rarely", &fields("scheme: Paper, density_every: 3, field_every: 6", langevin), &[3]);
    let charged = "scheme: Variational, filter: 0.8, electrostatics: (coulomb: 1.0, alpha: 0.8)";
    compare("charged fields, NPT", &fields(charged, "MtkNpt(kT: 1.0, tau: 0.2, pressure: 1.0, tau_p: 0.5)"), &[5]);
    let many = format!(
        r#"{LJ}, BodyForce(force: [0.1, 0.0, -0.2]), PeriodicPoiseuille(force: 0.3, flow: X),
           ExternalExpression(energy: "0.3*sin(x)"), LjWall(wall: Plane(point: [0.0, 0.0, -5.27], normal: [0.0, 0.0, 1.0]),
           types: {{ "A": (epsilon: 1.0, sigma: 0.2, r_cut: 0.5), "B": (epsilon: 1.0, sigma: 0.2, r_cut: 0.5) }})"#
    );
    compare("many fields", &pipeline(SYSTEM, &many, "NoseHoover(kT: 1.2, tau: 0.5)", buffer), &[3]);
}

/// Bonds longer than the range of the list connect particles of different ranks.
#[test]
#[ignore = "3 seconds"]
fn bonds_of_ellipsoids_are_the_same_on_several_gpus() {
    if has_compiler() {
        ellipsoids(
            "RotationalLangevin(kT: 1.0, gamma: 1.0, gamma_r: 1.0)",
            "neighbors: (buffer: 0.1, list: Staged)",
            3,
        );
    }
}

fn ellipsoids(integrator: &str, more: &str, gpus: u32) {
    let chains = "initial: [
        Polymers(box: [11.0, 11.0, 11.0], bond_length: 2.2, distance: 0.8, molecules: [(molecule: \"A6\", count: 170)]),
        Velocities(kT: 1.0), Orientations(inertia: (0.2, 0.3, 0.1), kT: 1.0)]";
    let forces = "Gaussian(r_cut: 1.0, pairs: {(\"*\", \"*\"): (epsilon: 2.0, sigma: 0.4)}), \
                  EllipsoidBond(bonds: {\"A-A\": (k: 10.0, length: 1.7, r0: 0.3, k_angle: 3.0, theta0_deg: 20.0)})";
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("t.csv");
    let table = format!("ParticleTable(every: 12, file: {file:?}, columns: [\"energy\", \"vxx\", \"vyz\"])");
    let more = format!("{more}, analyzers: [{table}]");
    compare(more.as_str(), &pipeline(chains, forces, integrator, &more), &[gpus]);
}

/// The log names forces that the first GPU computes alone.
#[test]
#[ignore = "3 seconds"]
fn forces_that_are_not_shared_are_named() {
    if !has_compiler() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let log = |forces: &str| {
        let text = pipeline(SYSTEM, forces, "VelocityVerlet()", "").replace("steps: 24", "steps: 2");
        std::fs::write(folder.path().join("p.ron"), text).expect("written");
        let args = ["--pipeline", "p.ron", "--device", "emulated", "--gpus", "2", "--no-record"];
        let done = galamost(folder.path(), &args);
        assert!(done.status.success(), "{}", words(&done));
        words(&done)
    };
    let field = format!("{LJ}, BodyForce(force: [0.1, 0.0, -0.2])");
    assert!(!log(&field).contains("first GPU"), "{}", log(&field));
    let many_body = r#"ManyBodyDpd(B: 25.0, r_d: 0.75, r_cut: 1.0, pairs: { ("*", "*"): (A: -40.0) })"#;
    let log = log(&format!("{field}, {many_body}"));
    assert!(log.contains("ManyBodyDpd") && log.contains("computed by the first GPU"), "{log}");
}

/// Runs a pipeline in parts, each with a number of GPUs and further options, and returns its table `t.csv`.
fn table_of_parts(name: &str, text: &str, parts: &[(&str, &[&str])]) -> String {
    let folder = output().join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("p.ron"), text).expect("written");
    for (gpus, more) in parts {
        let args = ["--pipeline", "p.ron", "--device", "emulated", "--gpus", gpus, "--no-record"];
        let done = galamost(&folder, &[&args, *more].concat());
        assert!(done.status.success(), "{}", words(&done));
    }
    std::fs::read_to_string(folder.join("t.csv")).expect("a table")
}

/// Fields that are updated rarely are part of a checkpoint, which another number of GPUs continues.
#[test]
#[ignore = "5 seconds"]
fn fields_resume_on_another_number_of_gpus() {
    if !has_compiler() {
        return;
    }
    let forces = format!("MdScf(scheme: Paper, grid: [6, 7, 8], kappa: 0.2, density_every: 4, field_every: 8, {CHI})");
    let text = pipeline(POINTS, &forces, "Langevin(kT: 1.0, gamma: 1.0)", "")
        .replace("stages", "analyzers: [Thermo(every: 2, file: \"t.csv\")], checkpoint: (every: 50), stages");
    let run = |name: &str, parts: &[(&str, &[&str])]| table_of_parts(name, &text, parts);
    let whole = run("ranks-fields-whole", &[("1", &[])]);
    let parts = run("ranks-fields-parts", &[("3", &["--steps", "11"]), ("2", &["--resume"])]);
    assert_eq!(whole, parts);
}

/// Chains that grow in a melt: bonds, angles and dihedrals across the borders of ranks in every call.
const CHAINS: &str = "initial: [
    Lattice(lattice: Sc, cells: [12, 13, 14], density: 0.85, types: { \"A\": 0.5, \"B\": 0.5 }), Velocities(kT: 1.2),
    LinkTypes(bonds: [\"A-A\", \"A-B\", \"B-B\"], angles: [\"A-A-B\", \"A-B-A\", \"B-A-B\"], dihedrals: [\"A-A-B-B\", \"A-B-A-B\"])]";
const BONDED: &str = "Wca(pairs: { (\"*\", \"*\"): (epsilon: 1.0, sigma: 1.0) }),
    HarmonicBond(bonds: { \"A-A\": (k: 60.0, r0: 1.0), \"A-B\": (k: 50.0, r0: 1.1), \"B-B\": (k: 40.0, r0: 1.0) }),
    HarmonicAngle(angles: { \"A-A-B\": (k: 2.0, theta0_deg: 120.0), \"A-B-A\": (k: 1.0, theta0_deg: 180.0), \"B-A-B\": (k: 3.0, theta0_deg: 110.0) }),
    PeriodicDihedral(dihedrals: { \"A-A-B-B\": (k: 1.0, n: 1, delta_deg: 0.0), \"A-B-A-B\": (k: 0.5, n: 3, delta_deg: 0.0) })";
const JOINS: &str = "Reactions(every: 4, r_cut: 1.25, limits: { \"A\": 2, \"B\": 2 }, file: \"FILE\", reactions: [
    (kind: Join, of: (\"A\", \"B\"), p: 0.05), (kind: Join, of: (\"A\", \"A\"), p: 0.02, min_angle_deg: 90.0),
    (kind: Join, of: (\"B\", \"B\"), p: 0.02), (kind: Break, of: (\"B\", \"B\"), p: 0.1, broken: \"B-B\")])";

#[test]
#[ignore = "10 seconds"]
fn chains_grow_across_the_borders_of_ranks() {
    if !has_compiler() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("events.csv");
    let joins = JOINS.replace("FILE", &file.display().to_string());
    let text = |more: &str| {
        let more = format!("neighbors: (buffer: 0.15{more}), updaters: [{joins}]");
        pipeline(CHAINS, BONDED, "Langevin(kT: 1.2, gamma: 1.0)", &more)
    };
    compare("chains", &text(""), &[8]);
    let events = std::fs::read_to_string(&file).expect("a table").lines().count();
    println!("{events} events");
    assert!(events > 500, "{events} events");
    // pairs with bonds or angles leave the rows of both particles, and come back when a bond breaks
    compare("exclusions", &text(", exclude: [Bonds, Angles]"), &[3]);
}

/// A run with reactions is continued by another number of GPUs, and its table of reactions continues.
#[test]
#[ignore = "5 seconds"]
fn reactions_resume_on_another_number_of_gpus() {
    if !has_compiler() {
        return;
    }
    let joins = JOINS.replace("FILE", "t.csv");
    let more = format!("neighbors: (buffer: 0.15), updaters: [{joins}], checkpoint: (every: 50)");
    let text = pipeline(CHAINS, BONDED, "Langevin(kT: 1.2, gamma: 1.0)", &more);
    let whole = table_of_parts("ranks-reactions-whole", &text, &[("1", &[])]);
    let parts = [("3", &["--steps", "10"][..]), ("8", &["--resume", "--steps", "18"]), ("2", &["--resume"])];
    let parts = table_of_parts("ranks-reactions-parts", &text, &parts);
    assert!(
        whole.lines().count() > 500 && whole == parts,
        "{} and {} lines",
        whole.lines().count(),
        parts.lines().count()
    );
}

/// A force that finds a fault on one rank only ends all of them, although its sums are added over all ranks.
#[test]
fn a_fault_of_a_shared_force_ends_all_ranks() {
    if !has_compiler() {
        return;
    }
    let forces = format!(
        "MdScf(scheme: Variational, grid: [6, 7, 8], kappa: 0.2, electrostatics: (coulomb: 1.0, alpha: 0.8), {CHI})"
    );
    let one = "initial: [Polymers(box: [10.0, 9.0, 8.0], distance: 0.0, types: { \"B\": (charge: -1.0) }, \
               molecules: [(molecule: \"A\", count: 1500), (molecule: \"B\", count: 1)]), Velocities(kT: 1.0)]";
    let text = pipeline(one, &forces, "Langevin(kT: 1.0, gamma: 1.0)", "");
    let mut plan = plan(&text, DeviceChoice::Emulated).expect("a plan");
    plan.pipeline.gpus = 3;
    // the check refuses such a charge
    if let Some(Values::Real(q)) = plan.snapshot.arrays.get_mut("charge").map(|a| &mut a.values) {
        q[1500] = -300.0;
    }
    let started = std::time::Instant::now();
    let error = run_plan(&plan).err().expect("a fault").render();
    assert!(error.contains("exceeds 256") && started.elapsed().as_secs() < 60, "{error}");
}

#[test]
#[ignore = "10 seconds"]
fn charges_at_long_range_are_the_same_on_several_gpus() {
    if !has_compiler() {
        return;
    }
    let ions = "initial: [RandomPositions(count: 600, box: [10.0, 10.0, 10.0], types: {\"C\": 1.0, \"A\": 1.0}, \
                charges: {\"C\": 1.0, \"A\": -1.0}), Velocities(kT: 1.0)]";
    let forces =
        |method: &str| format!("Gaussian(r_cut: 2.0, pairs: {{(\"*\", \"*\"): (epsilon: 3.0, sigma: 0.5)}}), {method}");
    let mesh = "Pppm(accuracy: 1e-2, charges: Gaussian(0.4), r_cut: 2.5, alpha: 0.9, order: 4, grid: [12, 12, 15])";
    let pipeline = |forces: &str, integrator: &str| {
        pipeline(ions, forces, integrator, "neighbors: (buffer: 0.05)").replace("steps: 24", "steps: 14")
    };
    let barostat = "MtkNpt(kT: 1.0, tau: 0.2, pressure: 1.0, tau_p: 0.5)";
    compare("Pppm, NPT", &pipeline(&forces(mesh), barostat), &[3]);
    let sum = "Ewald(accuracy: 1e-2, charges: Gaussian(0.4), r_cut: 2.5)";
    compare("Ewald", &pipeline(&forces(sum), "NoseHoover(kT: 1.0, tau: 0.5)"), &[2]);
}

#[test]
#[ignore = "3 seconds"]
fn a_run_resumes_on_another_number_of_gpus() {
    if !has_compiler() {
        return;
    }
    let text = pipeline(SYSTEM, LJ, "NoseHoover(kT: 1.2, tau: 0.5)", "neighbors: (buffer: 0.15)")
        .replace("stages", "analyzers: [Thermo(every: 4, file: \"t.csv\")], checkpoint: (every: 8), stages");
    let run = |folder: &std::path::Path, gpus: &str, more: &[&str]| {
        let args = ["--pipeline", "p.ron", "--device", "emulated", "--gpus", gpus, "--no-record"];
        let done = galamost(folder, &[&args, more].concat());
        assert!(done.status.success(), "{}", words(&done));
    };
    let folder = |name: &str| {
        let folder = output().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("p.ron"), &text).expect("written");
        folder
    };
    let (whole, parts) = (folder("ranks-whole"), folder("ranks-parts"));
    run(&whole, "1", &[]);
    run(&parts, "2", &["--steps", "11"]);
    run(&parts, "3", &["--resume"]);
    let table = |folder: &std::path::Path| std::fs::read_to_string(folder.join("t.csv")).expect("a table");
    assert_eq!(table(&whole), table(&parts));
}

#[test]
fn a_rank_that_fails_ends_all_of_them() {
    if !has_compiler() {
        return;
    }
    // in such a long step some particles move too far
    let text = pipeline(SYSTEM, LJ, "VelocityVerlet()", "").replace("dt: 0.005", "dt: 1.0");
    let mut plan = plan(&text, DeviceChoice::Emulated).expect("a plan");
    plan.pipeline.gpus = 3;
    let error = run_plan(&plan).err().expect("a fault").render();
    assert!(error.contains("particle with tag"), "{error}");
}

#[test]
#[ignore = "10 seconds"]
fn examples_write_the_same_files_on_several_gpus() {
    examples_are_the_same(&EXAMPLES);
}

fn examples_are_the_same(examples: &[(&str, u32)]) {
    if !has_compiler() {
        return;
    }
    for (example, steps) in examples.iter().copied() {
        let mut files = vec![];
        for gpus in ["1", "3"] {
            let folder = output().join(format!("ranks-{example}-{gpus}"));
            let _ = std::fs::remove_dir_all(&folder);
            std::fs::create_dir_all(&folder).expect("a folder");
            let from = repository().join("examples");
            for ending in ["ron", "xml"] {
                let name = format!("{example}.{ending}");
                if from.join(&name).exists() {
                    std::fs::copy(from.join(&name), folder.join(&name)).expect("copied");
                }
            }
            let (pipeline, steps) = (format!("{example}.ron"), steps.to_string());
            // the first analyzer is `Thermo`, whose rows have all digits
            let often = ["--set", "analyzers[0].every=2", "--no-record"];
            let args = ["--pipeline", &pipeline, "--device", "emulated", "--gpus", gpus, "--steps", &steps];
            let run = galamost(&folder, &[&args[..], &often].concat());
            assert!(run.status.success(), "{example} on {gpus} GPUs: {}", words(&run));
            let mut all = BTreeMap::new();
            for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                // a checkpoint holds the time at which it was written
                if !name.ends_with(".ron") && !name.contains("checkpoint") {
                    all.insert(name, std::fs::read(entry.path()).expect("a file"));
                }
            }
            files.push(all);
        }
        let rows = files[0].values().map(|f| f.iter().filter(|b| **b == b'\n').count()).max();
        assert!(rows > Some(steps as usize / 2), "{example} wrote no rows: {rows:?}");
        for all in files.iter().skip(1) {
            let names: Vec<_> = files[0].keys().filter(|name| all.get(*name) != files[0].get(*name)).collect();
            assert!(names.is_empty(), "{example} on several GPUs: {names:?} differ");
        }
    }
}
