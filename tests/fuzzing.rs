//! Hostile input: mutated files of every kind are rejected or accepted without a panic. One second per target here; `tests/fuzz/`
//! runs for hours.

use galamost_tests::fuzz::{TARGETS, seeds};
use std::time::{Duration, Instant};

/// Numbers of a generator that needs no seed from the clock: what fails once fails again.
struct Draws(u64);

impl Draws {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

/// One to four changes: bytes, pieces, numbers, ends.
fn mutated(seed: &[u8], others: &[Vec<u8>], draws: &mut Draws) -> Vec<u8> {
    const WORDS: [&[u8]; 14] = [
        b"nan",
        b"-1",
        b"0",
        b"1e308",
        b"4294967296",
        b"99999999999999999999",
        b"\"",
        b"(",
        b")",
        b"<",
        b"\0",
        b"\n",
        b"\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\xc3\x28",
    ];
    let mut out = seed.to_vec();
    for _ in 0..1 + draws.below(4) {
        let at = draws.below(out.len());
        match draws.below(7) {
            0 if !out.is_empty() => out[at] ^= 1 << draws.below(8),
            1 if !out.is_empty() => out[at] = draws.below(256) as u8,
            2 => out.truncate(at),
            3 => {
                let end = (at + draws.below(40)).min(out.len());
                out.drain(at..end);
            }
            4 => {
                let word = WORDS[draws.below(WORDS.len())];
                let end = (at + draws.below(word.len() + 1)).min(out.len());
                out.splice(at..end, word.iter().copied());
            }
            5 => {
                let piece: Vec<u8> = out[at..(at + draws.below(60)).min(out.len())].to_vec();
                let to = draws.below(out.len());
                out.splice(to..to, piece);
            }
            _ => {
                let other = &others[draws.below(others.len())];
                let from = draws.below(other.len());
                let piece = &other[from..(from + draws.below(80)).min(other.len())];
                out.splice(at..at, piece.iter().copied());
            }
        }
    }
    out
}

#[test]
fn mutated_files_are_rejected_or_accepted() {
    // panics inside of plugins are caught; the first one that is not is reported below
    let seconds = std::env::var("GALAMOST_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(1.0);
    for (name, target) in TARGETS {
        let seeds = seeds(name);
        assert!(!seeds.is_empty(), "{name} has no corpus");
        let (begun, mut count) = (Instant::now(), 0u64);
        let mut draws = Draws(0x9e37_79b9_7f4a_7c15);
        let mut slowest = Duration::ZERO;
        for input in &seeds {
            target(input);
        }
        while begun.elapsed().as_secs_f64() < seconds {
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
        println!("{name}: {count} inputs, the slowest {slowest:?}");
        assert!(slowest < Duration::from_secs(20), "{name}: an input took {slowest:?}");
    }
}
