//! Warnings about the accuracy in a box that changes during a run.

use galamost_tests::{galamost, words};

/// Ions in a box of 10 that grows to 15, and the warnings of the run.
fn warnings(component: &str, to: f64) -> Vec<String> {
    let f = tempfile::tempdir().expect("a folder");
    let text = format!(
        "(seed: 4, initial: [RandomPositions(count: 200, box: [10.0, 10.0, 10.0], types: {{ \"A\": 1.0, \"B\": 1.0 }}, \
         charges: {{ \"A\": 1.0, \"B\": -1.0 }})], forces: [{component}], integrators: [VelocityVerlet()], \
         updaters: [BoxResize(every: 1, x: Ramp(from: 10.0, to: {to:?}, steps: 40), y: Ramp(from: 10.0, to: {to:?}, steps: 40), \
         z: Ramp(from: 10.0, to: {to:?}, steps: 40))], analyzers: [Thermo(every: 5, file: \"t.csv\")], \
         stages: [(steps: 50, dt: 1e-6)])"
    );
    std::fs::write(f.path().join("p.ron"), text).expect("written");
    let out = galamost(f.path(), &["--pipeline", "p.ron", "--device", "cpu"]);
    assert!(out.status.success(), "{}", words(&out));
    words(&out).lines().filter(|l| l.contains("WARN")).map(str::to_string).collect()
}

/// The estimated error in a warning of a step, its accuracy and the step.
fn numbers(warning: &str) -> [f64; 3] {
    let after = |key: &str| {
        let rest = warning.split(key).nth(1).unwrap_or_else(|| panic!("{key}: {warning}")).trim_start();
        let end = rest.find([',', ';', ':', ' ']).unwrap_or(rest.len());
        rest[..end].parse().unwrap_or_else(|_| panic!("{key}: {warning}"))
    };
    [after(" is "), after("more than the accuracy"), after("step ")]
}

/// The mesh and the waves become too coarse when the box grows: one warning with both numbers. A change without effect on the
/// accuracy has none.
#[test]
fn a_box_that_outgrows_its_accuracy_is_reported_once() {
    for component in [
        "Pppm(accuracy: 1e-3, r_cut: 3.0, alpha: 0.7265, order: 6, grid: [15, 15, 15])",
        "Ewald(accuracy: 1e-3, r_cut: 3.0, alpha: 0.7265, k_max: 3.24)",
    ] {
        let given = warnings(component, 10.2);
        assert!(given.is_empty(), "{component}: {given:?}");
        let given = warnings(component, 15.0);
        assert_eq!(given.len(), 1, "{component}: {given:?}");
        assert!(given[0].contains(" in the present box of "), "{}", given[0]);
        let [error, accuracy, step] = numbers(&given[0]);
        assert!(accuracy == 1e-3 && error > 1.5e-3, "{}", given[0]);
        assert!((5.0..=40.0).contains(&step), "{}", given[0]);
    }
}
