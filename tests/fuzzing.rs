//! Hostile input: mutated files of every kind are rejected or accepted without a panic. One second per target here; `tests/fuzz/`
//! runs for hours.

use galamost_tests::fuzz::{Draws, TARGETS, mutated, seeds};
use std::time::{Duration, Instant};

#[test]
fn mutated_files_are_rejected_or_accepted() {
    // panics inside of plugins are caught; the first one that is not is reported below
    let seconds = std::env::var("GALAMOST_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(1.0);
    for (name, target) in TARGETS {
        let seeds = seeds(name);
        assert!(!seeds.is_empty(), "{name} has no corpus");
        let (begun, mut count) = (Instant::now(), 0u64);
        let mut slowest = Duration::ZERO;
        let accepted = seeds.iter().filter(|input| target(input)).count();
        // otherwise all mutations would be refused for the same reason
        assert!(accepted > 0, "{name}: none of {} seeds is accepted", seeds.len());
        while begun.elapsed().as_secs_f64() < seconds {
            let mut draws = Draws::new(1, name, count);
            let input = mutated(&seeds[draws.below(seeds.len())], &seeds, &mut draws);
            let begun = Instant::now();
            if let Err(e) = std::panic::catch_unwind(|| target(&input)) {
                let path = std::env::temp_dir().join(format!("galamost-crash-{name}-{count}"));
                std::fs::write(&path, &input).expect("written");
                eprintln!("{name}: the input that did it is {}", path.display());
                std::panic::resume_unwind(e);
            }
            slowest = slowest.max(begun.elapsed());
            count += 1;
        }
        let of = seeds.len();
        println!("{name}: {accepted} of {of} seeds accepted, {count} inputs, the slowest {slowest:?}");
        assert!(slowest < Duration::from_secs(20), "{name}: an input took {slowest:?}");
    }
}
