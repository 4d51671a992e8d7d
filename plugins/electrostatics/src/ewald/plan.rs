//! Choice of α, cutoff and wave vectors from the accuracy.

use crate::params::{Common, Model, rounded_up};
use crate::split::Split;
use galamost_plugin_api::prelude::*;
use std::f64::consts::{PI, TAU};

/// Wave vectors 2π(x/Lx, y/Ly, z/Lz), half of them: those with x > 0, or x = 0 and y > 0, or x = y = 0 and z > 0.
/// Consecutive vectors with equal x and y form a group.
#[derive(Clone, Debug, Default)]
pub struct Waves {
    pub vectors: Vec<[i32; 3]>,
    /// First vector of each group, and the number of vectors at the end.
    pub groups: Vec<usize>,
}

impl Waves {
    /// Returns the waves up to the length `k_max` in a box.
    pub fn new(k_max: f64, length: [f64; 3]) -> Self {
        let most = length.map(|l| (k_max * l / TAU).floor() as i32);
        let mut waves = Self { vectors: vec![], groups: vec![] };
        for x in 0..=most[0] {
            for y in if x > 0 { -most[1] } else { 0 }..=most[1] {
                let first = waves.vectors.len();
                let inside = |v: [i32; 3]| {
                    let k2: f64 = (0..3).map(|a| (TAU * f64::from(v[a]) / length[a]).powi(2)).sum();
                    k2 <= k_max * k_max * (1.0 + 1e-12)
                };
                let from = if x > 0 || y > 0 { -most[2] } else { 1 };
                waves.vectors.extend((from..=most[2]).map(|z| [x, y, z]).filter(|v| inside(*v)));
                if waves.vectors.len() > first {
                    waves.groups.push(first);
                }
            }
        }
        waves.groups.push(waves.vectors.len());
        waves
    }
}

/// Returns the error of the waves beyond `k_max` in units of the accuracy: for independent charges its square is
/// Σ k² φ(k)²/V² = (8/V) ∫ χ² dk with φ = 4πχ/k².
pub fn wave_error(model: &Model, split: Split, k_max: f64) -> f64 {
    let volume: f64 = model.box_length.iter().product();
    (8.0 * split.tail(k_max) / volume).sqrt() / model.error_unit()
}

/// Returns the length of the longest wave with which the error is the accuracy.
fn longest(model: &Model, split: Split) -> f64 {
    let (mut low, mut high) = (0.0, 2.0 * split.shape / split.radius);
    for _ in 0..30 {
        let middle = 0.5 * (low + high);
        if wave_error(model, split, middle) > model.accuracy { low = middle } else { high = middle }
    }
    rounded_up(high)
}

/// Chooses the cutoff of least cost, α and `k_max`, and returns `k_max`.
pub fn plan(common: &Common, model: &mut Model, system: &SystemInfo, k_max: Option<f64>) -> f64 {
    /// Cost of a wave and a particle, in units of that of a pair.
    const PER_WAVE: f64 = 1.5;
    let volume: f64 = model.box_length.iter().product();
    let density = system.n as f64 / volume;
    let cost = |r: f64| {
        let k = k_max.unwrap_or_else(|| longest(model, Split::new(common.alpha(model, r), r)));
        let (sphere, waves) = (4.0 / 3.0 * PI * r.powi(3), k.powi(3) * volume / (12.0 * PI * PI));
        density * sphere + PER_WAVE * waves
    };
    let cutoffs = common.cutoffs(system);
    model.r_cut = cutoffs.into_iter().min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap_or(system.half_box());
    model.set_alpha(common.alpha(model, model.r_cut));
    k_max.unwrap_or_else(|| longest(model, model.split))
}
