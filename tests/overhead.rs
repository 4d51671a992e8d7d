//! What the boundary costs: `cargo test --release -p galamost-tests -- --ignored --nocapture overhead`.

use galamost::selftest::standard_system;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::views::{LinkView, ListView, StateView, Wanted};
use galamost_tests::{plan, plan_of, run_plan};
use std::hint::black_box;
use std::time::Instant;

/// The fixture's `CpuOnly`, without the boundary.
struct Empty;

impl Force for Empty {
    #[inline(never)]
    unsafe fn compute(&mut self, call: &ForceCall, sums: &mut Sums) -> Result<()> {
        black_box((call, sums));
        Ok(())
    }
}

/// Nanoseconds of one call: the best of some rounds, since anything else on the machine only adds.
fn nanoseconds(mut f: impl FnMut()) -> f64 {
    const CALLS: u32 = 2_000_000;
    let round = |f: &mut dyn FnMut(u32)| {
        let begun = Instant::now();
        f(CALLS);
        begun.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
    };
    let mut all = |n: u32| (0..n).for_each(|_| f());
    (0..9).map(|_| round(&mut all)).fold(f64::INFINITY, f64::min)
}

#[test]
#[ignore = "a measurement"]
fn the_cost_of_a_plugin_call() {
    let call = ForceCall {
        size: size_of::<ForceCall>() as u32,
        component: 0,
        first_varying: 0,
        group: 32,
        wanted: Wanted::FORCE,
        state: StateView::empty(),
        list: ListView::empty(),
        bonds: LinkView::empty(2),
        device_sums: Default::default(),
        quantities: Default::default(),
        excluded_count: Default::default(),
        excluded: Default::default(),
        excluded_capacity: 0,
        special: Default::default(),
        moment: 0,
        reserved0: 0,
        reserved: [0; 2],
    };
    let mut sums = Sums::default();
    let mut empty = Empty;
    // SAFETY: an empty component does not access its arguments
    let direct = nanoseconds(|| unsafe { black_box(&mut empty).compute(black_box(&call), &mut sums).expect("done") });

    let text = "(forces: [CpuOnly()], integrators: [VelocityVerlet()], stages: [(steps: 1, dt: 0.01)])";
    let one = plan_of(text, standard_system(), DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
    let force = one.components.iter().find_map(|c| c.force()).expect("the force");
    // SAFETY: the component behind `force` is empty too: it does not access its arguments
    let across = nanoseconds(|| unsafe { black_box(&force).compute(black_box(&call), &mut sums).expect("done") });
    let overhead = across - direct;
    println!(
        "empty force: {direct:.2} ns direct, {across:.2} ns through the guarded table: {overhead:.2} ns for a call"
    );

    // a liquid with one pair and one integrator: the pair is called for every 256 particles, each of the integrator's two
    // phases for every 2048
    let text = r#"(device: Cpu, initial: [Lattice(lattice: Fcc, cells: [13, 13, 13], density: 0.8), Velocities(kT: 1.0)],
        forces: [LennardJones(r_cut: 2.5, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0) })],
        integrators: [VelocityVerlet()], stages: [(steps: 300, dt: 0.004)])"#;
    let liquid = plan(text, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
    let n = liquid.snapshot.len();
    let (summary, _) = run_plan(&liquid).unwrap_or_else(|e| panic!("{}", e.render()));
    let calls = n.div_ceil(256) + 2 * n.div_ceil(2048);
    let step = summary.seconds * 1e9 / summary.steps as f64;
    let cost = overhead * calls as f64;
    let share = 100.0 * cost / step;
    println!(
        "a step of {n} particles of a Lennard-Jones liquid: {calls} calls cost {cost:.0} ns of {:.0} µs, {share:.3} %",
        step / 1e3
    );
    assert!(across < 1000.0, "{across} ns for a call");
    assert!(share < 0.5, "the boundary costs {share} % of a step");
}
