//! MD-SCF with new fields in every step on several GPUs, which add up only the bricks of the grid that several of them touch.

use super::{CHI, compare, pipeline, table_of_parts};
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::views::Wanted;
use galamost_tests::{has_compiler, plan, run_plan};
use std::sync::atomic::AtomicBool;

const POINTS: &str = "initial: [RandomPositions(count: 2200, box: [10.0, 9.0, 12.0], types: { \"A\": 0.6, \"B\": 0.4 }), \
                      Velocities(kT: 1.0)]";
const BUFFER: &str = "neighbors: (buffer: 0.15)";
const LANGEVIN: &str = "Langevin(kT: 1.0, gamma: 1.0)";

/// A pipeline with fields in this grid, whose lengths need not be multiples of those of a brick.
fn fields(grid: [u32; 3], scheme: &str, integrator: &str, more: &str) -> String {
    let pair = if integrator.starts_with("Dpd") {
        "Dpd(r_cut: 1.0, kT: 1.0, pairs: { (\"*\", \"*\"): (a: 25.0, sigma: 3.0) })"
    } else {
        "Gaussian(r_cut: 1.0, pairs: { (\"*\", \"*\"): (epsilon: 1.0, sigma: 0.4) })"
    };
    pipeline(POINTS, &format!("{pair}, MdScf(grid: {grid:?}, kappa: 0.2, {CHI}, scheme: {scheme})"), integrator, more)
}

#[test]
#[ignore = "5 seconds"]
fn fields_in_bricks_are_the_same_on_several_gpus() {
    if !has_compiler() {
        return;
    }
    let grid = [18, 13, 21];
    compare("Paper", &fields(grid, "Paper", LANGEVIN, BUFFER), &[3]);
    // pressure, so all fields, in every step
    let npt = "MtkNpt(kT: 1.0, tau: 0.2, pressure: 1.0, tau_p: 0.5)";
    compare("NPT", &fields(grid, "Variational", npt, BUFFER), &[2]);
}

#[test]
#[ignore = "a minute"]
fn fields_in_bricks_are_the_same_with_other_grids_and_integrators() {
    if !has_compiler() {
        return;
    }
    let grid = [18, 13, 21];
    compare("Paper", &fields(grid, "Paper", LANGEVIN, BUFFER), &[2, 8]);
    compare("Variational", &fields(grid, "Variational", LANGEVIN, BUFFER), &[3]);
    compare("many empty bricks", &fields([40, 36, 44], "Paper", LANGEVIN, BUFFER), &[4]);
    compare("a short axis", &fields([3, 37, 5], "Variational", LANGEVIN, BUFFER), &[2]);
    compare("forces twice", &fields(grid, "Variational", "DpdVerlet()", BUFFER), &[3]);
    compare("Double", &fields(grid, "Paper", LANGEVIN, &format!("{BUFFER}, precision: Double")), &[3]);
    compare("rarely", &fields(grid, "Paper, density_every: 2, field_every: 4", LANGEVIN, BUFFER), &[3]);
}

/// The first GPU knows only the fields that its particles need; a checkpoint has all of them.
#[test]
#[ignore = "3 seconds"]
fn a_checkpoint_has_the_fields_of_all_gpus() {
    checkpoints_are_whole([18, 13, 21], "Paper", &[3]);
}

#[test]
#[ignore = "a minute"]
fn a_checkpoint_has_the_fields_of_any_number_of_gpus() {
    checkpoints_are_whole([18, 13, 21], "Paper", &[2, 7]);
    checkpoints_are_whole([40, 36, 44], "Variational", &[2, 3, 7]);
}

fn checkpoints_are_whole(grid: [u32; 3], scheme: &str, several: &[u32]) {
    if !has_compiler() {
        return;
    }
    let stop = AtomicBool::new(false);
    let text = fields(grid, scheme, LANGEVIN, BUFFER);
    // after steps with all sums, and after steps with forces only
    let states = |gpus: u32| {
        let mut plan = plan(&text, DeviceChoice::Emulated).unwrap_or_else(|e| panic!("{}", e.render()));
        plan.pipeline.gpus = gpus;
        let (_, mut backend) = run_plan(&plan).unwrap_or_else(|e| panic!("{gpus} GPUs: {}", e.render()));
        let component = plan.components.iter().find(|c| c.name == "MdScf").expect("a component");
        [0, 1, 6].map(|steps| {
            backend.advance(steps, Wanted::FORCE, &stop).expect("steps");
            component.save().expect("a state")
        })
    };
    let one = states(1);
    assert!(one[0].len() > 16 * 2 * grid.iter().product::<u32>() as usize && one[1] != one[2]);
    for gpus in several {
        let state = states(*gpus);
        let equal = [0, 1, 2].map(|k| state[k] == one[k]);
        assert!(equal == [true; 3], "{grid:?}, {scheme}, {gpus} GPUs: {equal:?}");
    }
}

#[test]
#[ignore = "5 seconds"]
fn fields_of_every_step_resume_on_another_number_of_gpus() {
    if !has_compiler() {
        return;
    }
    let text = fields([18, 13, 21], "Variational", LANGEVIN, BUFFER)
        .replace("stages", "analyzers: [Thermo(every: 4, file: \"t.csv\")], checkpoint: (every: 8), stages");
    let run = |name: &str, parts: &[(&str, &[&str])]| table_of_parts(name, &text, parts);
    let whole = run("ranks-bricks-whole", &[("1", &[])]);
    let parts = run(
        "ranks-bricks-parts",
        &[("3", &["--steps", "11"]), ("2", &["--resume", "--steps", "17"]), ("1", &["--resume"])],
    );
    assert_eq!(whole, parts);
}

/// A rank that has halted takes part in the sums until the others know of it.
#[test]
fn a_fault_beside_fields_in_bricks_ends_all_ranks() {
    if !has_compiler() {
        return;
    }
    let text = fields([18, 13, 21], "Variational", "VelocityVerlet()", "").replace("dt: 0.005", "dt: 1.0");
    let mut plan = plan(&text, DeviceChoice::Emulated).expect("a plan");
    plan.pipeline.gpus = 3;
    let started = std::time::Instant::now();
    let error = run_plan(&plan).err().expect("a fault").render();
    assert!(error.contains("particle with tag") && started.elapsed().as_secs() < 60, "{error}");
}
