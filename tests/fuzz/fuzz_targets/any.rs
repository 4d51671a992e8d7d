//! Runs one of the fuzz targets of `tests/support/fuzz.rs`, named by `GALAMOST_FUZZ`. The seeds are written to the folder
//! `GALAMOST_FUZZ_SEEDS` before libFuzzer reads it.

#![no_main]

use galamost_tests::fuzz::{TARGETS, Target, seeds};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

static SELECTED: OnceLock<Target> = OnceLock::new();

fuzz_target!(
    init: {
        let name = std::env::var("GALAMOST_FUZZ").unwrap_or_default();
        let found = TARGETS.iter().find(|(n, _)| *n == name);
        let found = found
            .unwrap_or_else(|| panic!("unknown target `{name}` in GALAMOST_FUZZ; use one of {:?}", TARGETS.map(|(n, _)| n)));
        SELECTED.get_or_init(|| found.1);
        let folder = std::env::var("GALAMOST_FUZZ_SEEDS").expect("GALAMOST_FUZZ_SEEDS must name a folder");
        for (k, seed) in seeds(&name).into_iter().enumerate() {
            std::fs::write(format!("{folder}/seed-{k}"), seed).expect("written");
        }
    },
    |data: &[u8]| {
        let target = SELECTED.get().expect("libFuzzer runs `init` first");
        let _ = target(data);
    }
);
