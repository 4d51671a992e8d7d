//! One of the functions of `tests/support/fuzz.rs`, by its name in `GALAMOST_FUZZ`. Its seeds are written to the folder
//! `GALAMOST_FUZZ_SEEDS` before libFuzzer reads that.

#![no_main]

use galamost_tests::fuzz::{TARGETS, Target, seeds};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

static CHOSEN: OnceLock<Target> = OnceLock::new();

fuzz_target!(
    init: {
        let name = std::env::var("GALAMOST_FUZZ").unwrap_or_default();
        let found = TARGETS.iter().find(|(n, _)| *n == name);
        let found = found.unwrap_or_else(|| panic!("GALAMOST_FUZZ is `{name}`: none of {:?}", TARGETS.map(|(n, _)| n)));
        CHOSEN.get_or_init(|| found.1);
        let folder = std::env::var("GALAMOST_FUZZ_SEEDS").expect("GALAMOST_FUZZ_SEEDS is a folder");
        for (k, seed) in seeds(&name).into_iter().enumerate() {
            std::fs::write(format!("{folder}/seed-{k}"), seed).expect("written");
        }
    },
    |data: &[u8]| {
        let target = CHOSEN.get().expect("chosen");
        target(data);
    }
);
