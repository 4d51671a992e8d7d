//! The program around the random functions: calls each of them for each row of `inputs`, in f32 and f64, and writes
//! their values and their CUDA text. The functions stand behind this file.
#![allow(warnings, arithmetic_overflow)]

use galamost_plugin_api::device::{DeviceFn, assemble};
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::prelude::*;
use own::stretched as local;

/// Numbers of a row: x, y, z, v; whole numbers n, k, w, j, b.
const REALS: usize = 6;
const WHOLES: usize = 5;

mod own {
    use galamost_plugin_api::prelude::*;

    #[device_fn]
    pub fn stretched(a: real, w: &Vec3<real>) -> real {
        a + w.x * w.y
    }
}

type Case<R> = fn(&mut Random, R, R, R, Vec3<R>, i32, u32, u64, usize, bool) -> (R, Vec3<R>, i32, u64);

fn run<R: Real>(cases: &[Case<R>], reals: &[f64], wholes: &[u64]) -> Vec<u64> {
    let mut out = vec![];
    for case in cases {
        for (row, (r, n)) in reals.chunks(REALS).zip(wholes.chunks(WHOLES)).enumerate() {
            let mut random = Random::new(RandomKey { key: [7, 11] }, 5, row as u32, 0);
            let r: Vec<R> = r.iter().map(|x| R::lit(*x)).collect();
            let v = Vec3::new(r[3], r[4], r[5]);
            let (x, v, i, w) =
                case(&mut random, r[0], r[1], r[2], v, n[0] as i32, n[1] as u32, n[2], n[3] as usize, n[4] != 0);
            out.extend([x, v.x, v.y, v.z].map(|x| x.f64().to_bits()));
            out.extend([i as u32 as u64, w]);
        }
    }
    out
}

fn main() {
    let folder = std::path::PathBuf::from(std::env::args().nth(1).expect("a folder"));
    let words = |bytes: Vec<u8>| -> Vec<u64> {
        bytes.chunks(8).map(|b| u64::from_ne_bytes(b.try_into().expect("eight bytes"))).collect()
    };
    let read = |name: &str| words(std::fs::read(folder.join(name)).expect("inputs"));
    let write = |name: &str, words: &[u64]| {
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
        std::fs::write(folder.join(name), bytes).expect("written");
    };
    let (exact, smooth): (Vec<f64>, Vec<f64>) = (
        read("exact").into_iter().map(f64::from_bits).collect(),
        read("smooth").into_iter().map(f64::from_bits).collect(),
    );
    let wholes = read("wholes");
    let all = |single: [&[Case<f32>]; 2], double: [&[Case<f64>]; 2]| {
        write("single", &[run(single[0], &exact, &wholes), run(single[1], &smooth, &wholes)].concat());
        write("double", &[run(double[0], &exact, &wholes), run(double[1], &smooth, &wholes)].concat());
    };
    let text = assemble(&texts()).expect("one definition of each name");
    std::fs::write(folder.join("text.cuh"), text).expect("written");
    all([&exact_cases::<f32>(), &smooth_cases::<f32>()], [&exact_cases::<f64>(), &smooth_cases::<f64>()]);
}

