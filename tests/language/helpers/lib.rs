//! What the random functions call from another crate.
#![allow(non_camel_case_types)]

use galamost_plugin_api::prelude::*;

pub const HALF: f64 = 0.5;
pub const TURNS: u32 = 3;
pub const SIZE: usize = 4;
pub const YES: bool = true;

#[device_fn]
pub fn blend(a: real, b: real, first: bool) -> real {
    if first { a } else { HALF * (a + b) }
}

#[device_fn]
pub fn next(n: &mut u32, k: u32) -> u32 {
    *n = *n * 1664525 + 1013904223;
    *n ^ k
}

#[device_fn]
pub fn count(n: &mut i32) {
    *n += 1;
    if *n > 100 {
        *n -= 7;
    }
}
