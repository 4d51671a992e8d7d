//! Unwrapped trajectories in a box that changes.

use galamost_measure::pack::{Unpack, put};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::views::StateView;

/// Corrections to unwrapped positions r + L image in a box that changes. Displacements then are sums of the
/// displacements between samples, and a particle with image n does not move by n ΔL when L changes.
///
/// Between samples, a particle moves by Δr + L Δimage, where L is the new box length. The sum over samples is r + L
/// image plus the sum of (L_before − L) image_before. This type stores the second sum by tag.
#[derive(Clone, Debug, Default)]
pub struct Follow {
    /// Box lengths at the last sample; 0 before the first.
    pub length: [f64; 3],
    /// Accumulated corrections.
    pub carry: Vec<f64>,
    /// Images at the last sample.
    pub image: Vec<i32>,
}

impl Follow {
    /// Returns the decrease of the box lengths since the last sample; zero at the first sample.
    pub fn change(&self, length: [f64; 3]) -> [f64; 3] {
        if self.length == [0.0; 3] { [0.0; 3] } else { std::array::from_fn(|k| self.length[k] - length[k]) }
    }

    /// Accumulates the corrections up to a sample.
    ///
    /// # Safety
    /// The view describes valid host arrays.
    pub unsafe fn advance(&mut self, s: &StateView, length: [f64; 3]) {
        let n = s.n_local as usize;
        // SAFETY: the view describes valid host arrays (contract of this function)
        let (index, image) = unsafe { (s.index_of_tag.slice(n), s.image.slice(3 * n)) };
        let change = self.change(length);
        self.carry.resize(3 * n, 0.0);
        self.image.resize(3 * n, 0);
        for (tag, i) in index.iter().enumerate() {
            for k in 0..3 {
                let last = &mut self.image[3 * tag + k];
                self.carry[3 * tag + k] += change[k] * f64::from(*last);
                *last = image[3 * *i as usize + k];
            }
        }
        self.length = length;
    }

    /// Returns the correction for a particle.
    pub fn of(&self, tag: u32) -> [f64; 3] {
        let at = 3 * tag as usize;
        self.carry.get(at..at + 3).map_or([0.0; 3], |c| [c[0], c[1], c[2]])
    }

    /// Serializes the state for a checkpoint.
    pub fn save(&self, to: &mut Vec<u8>) {
        put(to, &self.length);
        put(to, &self.carry);
        put(to, &self.image);
    }

    /// Restores the state from a checkpoint of a system of `n` particles.
    ///
    /// # Errors
    /// Returns an error if the checkpoint belongs to another analyzer.
    pub fn load(from: &mut Unpack<'_>, n: usize) -> Result<Self> {
        let length = from.row_of::<f64>(3)?;
        Ok(Self { length: [length[0], length[1], length[2]], carry: from.row_of(3 * n)?, image: from.row_of(3 * n)? })
    }
}
