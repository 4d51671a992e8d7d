//! The list of tolerances (`tolerances.ron`) and how it is applied.

use galamost_tests::repository;
use galamost_tests::tolerances::{Tolerance, all, disagreement, estimate};

/// The sources of the tests.
fn sources(folder: &std::path::Path, text: &mut String) {
    for path in std::fs::read_dir(folder).expect("tests/").filter_map(|e| Some(e.ok()?.path())) {
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|e| e == "rs") {
            *text += &std::fs::read_to_string(&path).expect("a source");
        }
    }
}

#[test]
fn every_tolerance_has_a_reason_and_is_used() {
    let mut text = String::new();
    sources(&repository().join("tests"), &mut text);
    for (name, t) in all() {
        let (because, numbers) = match t {
            Tolerance::Series { tolerance, detects, because, .. } => (because, vec![*tolerance, *detects - *tolerance]),
            Tolerance::Value { tolerance, because, .. } => (because, vec![*tolerance]),
            Tolerance::Bound { bound, because } => (because, vec![*bound]),
        };
        assert!(because.split_whitespace().count() > 2, "{name} has no reason");
        assert!(numbers.iter().all(|x| *x >= 0.0), "{name}: {numbers:?}");
        assert!(text.contains(&format!("\"{name}\"")), "no test uses {name}");
    }
}

#[test]
fn noise_does_not_pass_as_agreement() {
    assert_eq!(disagreement(1.02, 0.01, 1.0, 0.0, 0.02), None);
    assert!(disagreement(1.05, 0.01, 1.0, 0.0, 0.02).is_some());
    // four of its own standard errors would cover any deviation
    assert!(disagreement(9.0, 4.0, 1.0, 0.0, 0.02).is_some_and(|why| why.contains("too noisy")));
    assert!(disagreement(f64::NAN, 0.01, 1.0, 0.0, 0.02).is_some());
    assert!(disagreement(1.0, f64::NAN, 1.0, 0.0, 0.02).is_some());
    let series: Vec<f64> = (0..100).map(|k| f64::from(k / 10 % 2)).collect();
    let (mean, error) = estimate(&series);
    assert!((mean - 0.5).abs() < 1e-12 && (error - (10.0f64 / 36.0 / 10.0).sqrt()).abs() < 1e-12, "{mean} {error}");
}
