//! Motion through a box that changes.

use galamost_measure::pack::{Unpack, put};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::views::StateView;

/// What is to be added to unwrapped positions, r + L image, where the box has changed: whoever has crossed it n times stays where it
/// is when L becomes another one, so that displacements are sums of those inside of the box.
///
/// From sample to sample a particle moves by Δr + L Δimage, L being the new box. The sum of that is r + L image plus the sum of
/// (L_before − L) image_before, which is kept here; by tag.
#[derive(Clone, Debug, Default)]
pub struct Follow {
    /// Box lengths at the last sample; 0 before the first one.
    pub length: [f64; 3],
    /// Sums so far.
    pub carry: Vec<f64>,
    /// Images at the last sample.
    pub image: Vec<i32>,
}

impl Follow {
    /// By how much the box is smaller than it was at the last sample; nothing at the first one.
    pub fn change(&self, length: [f64; 3]) -> [f64; 3] {
        if self.length == [0.0; 3] { [0.0; 3] } else { std::array::from_fn(|k| self.length[k] - length[k]) }
    }

    /// Goes on to a sample.
    ///
    /// # Safety
    /// The view is of valid host arrays.
    pub unsafe fn advance(&mut self, s: &StateView, length: [f64; 3]) {
        let n = s.n_local as usize;
        // SAFETY: the caller's word
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

    /// What a particle's position gets.
    pub fn of(&self, tag: u32) -> [f64; 3] {
        let at = 3 * tag as usize;
        self.carry.get(at..at + 3).map_or([0.0; 3], |c| [c[0], c[1], c[2]])
    }

    /// For a checkpoint.
    pub fn save(&self, to: &mut Vec<u8>) {
        put(to, &self.length);
        put(to, &self.carry);
        put(to, &self.image);
    }

    /// From a checkpoint of a system of `n` particles.
    ///
    /// # Errors
    /// It is of another analyzer.
    pub fn load(from: &mut Unpack<'_>, n: usize) -> Result<Self> {
        let length = from.row_of::<f64>(3)?;
        Ok(Self { length: [length[0], length[1], length[2]], carry: from.row_of(3 * n)?, image: from.row_of(3 * n)? })
    }
}
