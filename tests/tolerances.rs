//! The list of tolerances (`tolerances.ron`) and how it is applied.

use galamost_tests::repository;
use galamost_tests::tolerances::{Tolerance, all, disagreement, estimate, largest_error};
use std::path::Path;

/// Calls `with` for each source of the tests.
fn sources(folder: &Path, with: &mut dyn FnMut(&Path, &str)) {
    for path in std::fs::read_dir(folder).expect("tests/").filter_map(|e| Some(e.ok()?.path())) {
        if path.is_dir() {
            sources(&path, with);
        } else if path.extension().is_some_and(|e| e == "rs") {
            with(&path, &std::fs::read_to_string(&path).expect("a source"));
        }
    }
}

#[test]
fn every_tolerance_has_a_reason_and_is_used() {
    let mut text = String::new();
    sources(&repository().join("tests"), &mut |_, source| text += source);
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
    // a result that is off by 0.2 must fail
    assert_eq!(largest_error(0.04, 0.2), 0.02);
    assert_eq!(disagreement(1.02, 0.01, 1.0, 0.0, 0.2), None);
    assert!(disagreement(1.05, 0.01, 1.0, 0.0, 0.2).is_some());
    // four of its own standard errors would cover any deviation
    assert!(disagreement(9.0, 4.0, 1.0, 0.0, 0.2).is_some_and(|why| why.contains("too noisy")));
    assert!(disagreement(1.0, 0.021, 1.0, 0.04, 0.2).is_some_and(|why| why.contains("too noisy")));
    // with the largest error, a wrong result fails even if it is four standard errors nearer
    assert!(disagreement(1.2 - 0.0799, 0.02, 1.0, 0.04, 0.2).is_some());
    assert!(disagreement(f64::NAN, 0.01, 1.0, 0.0, 0.2).is_some());
    assert!(disagreement(1.0, f64::NAN, 1.0, 0.0, 0.2).is_some());
    let series: Vec<f64> = (0..100).map(|k| f64::from(k / 10 % 2)).collect();
    let (mean, error) = estimate(&series);
    assert!((mean - 0.5).abs() < 1e-12 && (error - (10.0f64 / 36.0 / 10.0).sqrt()).abs() < 1e-12, "{mean} {error}");
}

/// Returns the numbers that follow `<` or `<=` in a line of code, also as factors.
fn compared(code: &str) -> Vec<f64> {
    fn number(text: &str) -> Option<(f64, &str)> {
        let text = text.trim_start_matches('=').trim_start();
        let end =
            text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | 'e' | '-' | '_'))).unwrap_or(text.len());
        Some((text[..end].replace('_', "").parse::<f64>().ok()?, text[end..].trim_start()))
    }
    let mut found = vec![];
    for piece in code.split('<').skip(1) {
        let Some((first, rest)) = number(piece) else { continue };
        found.push(first);
        found.extend(rest.strip_prefix('*').and_then(|factor| number(factor.trim_start())).map(|(x, _)| x));
    }
    found
}

/// Returns the lines of a test with a tolerance beyond rounding and without a reason: a comment in the line, or in the three above.
fn unexplained(text: &str) -> Vec<usize> {
    const TOLERANCES: std::ops::RangeInclusive<f64> = 1e-8..=0.1;
    let lines: Vec<&str> = text.lines().collect();
    let is_reason = |line: &&str| line.trim_start().starts_with("//") && !line.trim_start().starts_with("///");
    let lacks = |k: &usize| {
        let code = lines[*k].split("//").next().unwrap_or_default();
        let tests = ["assert", "abs()", "near", "close"].iter().any(|word| code.contains(word));
        tests
            && compared(code).iter().any(|x| TOLERANCES.contains(x))
            && !lines[*k].contains("//")
            && !lines[k.saturating_sub(3)..*k].iter().any(is_reason)
    };
    (0..lines.len()).filter(lacks).map(|k| k + 1).collect()
}

#[test]
fn tolerances_in_sources_have_reasons() {
    assert_eq!(compared("a <= 1e-3 && b < 2.0 * 1_0.0e-4 * c && d < e"), [1e-3, 2.0, 1e-3]);
    assert_eq!(
        unexplained("assert!(x < 1e-3);\n// why\nassert!(x < 1e-3);\nassert!(y < 1e-12);\nlet z = x < 1e-3;"),
        [1]
    );
    let mut all = vec![];
    for folder in ["tests", "plugins", "plugin-api/src", "engine/src", "engine/cli/src"] {
        sources(&repository().join(folder), &mut |path, text| {
            let name = path.strip_prefix(repository()).unwrap_or(path).to_string_lossy();
            // plugins and programs that tests build, and this check
            let other = ["abi", "fuzz", "instruments", "language/", "tolerances.rs"];
            if other.iter().any(|f| name.strip_prefix("tests/").is_some_and(|n| n.starts_with(f))) {
                return;
            }
            // elsewhere, tests are at the ends of files
            let code = if folder == "tests" { 0 } else { text.find("#[cfg(test)]").unwrap_or(text.len()) };
            let begin = text[..code].lines().count();
            all.extend(unexplained(&text[code..]).into_iter().map(|line| format!("{name}:{}", begin + line)));
        });
    }
    assert!(all.is_empty(), "give a reason in a comment or in tests/tolerances.ron:\n{}", all.join("\n"));
}
