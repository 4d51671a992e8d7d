//! Replaces a skewed box by the least skewed one of the same lattice.
//!
//! The edges b − n a and c − m b − l a with whole numbers n, m and l have the same lattice as b and c. Particles stay where they
//! are, and so do their unwrapped positions: only reduced coordinates and images change. A box that shears for ever therefore
//! keeps its heights.

use super::buffers::Bytes;
use super::store::Store;
use galamost_plugin_api::views::{Globals, is_skewed};

/// A box is replaced when an edge is displaced by more than this fraction of another edge. Replacement at ½ would be undone by the
/// next fluctuation.
pub const MOST_TILT: f64 = 0.6;

/// A replacement of the box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reduction {
    length: [f64; 3],
    /// Whole edges: of a in b, of a in c, of b in c.
    turns: [i32; 3],
    /// The new tilt factors.
    pub tilt: [f64; 3],
}

impl Reduction {
    /// Returns the replacement of a box that is skewed by more than `most`; `None` for any other box, or if `most` is 0.
    pub fn of(g: &Globals, most: f64) -> Option<Self> {
        if most == 0.0 || !is_skewed(g, most) {
            return None;
        }
        let ([x, y, z], [xy, xz, yz]) = (g.box_length, g.tilt);
        let m = (yz * z / y).round();
        let n = (xy * y / x).round();
        let l = ((xz * z - m * xy * y) / x).round();
        let of_z = |edge: f64| if z > 0.0 { edge / z } else { 0.0 };
        let tilt = [xy - n * x / y, xz - of_z(m * xy * y + l * x), yz - of_z(m * y)];
        Some(Self { length: g.box_length, turns: [n as i32, l as i32, m as i32], tilt })
    }

    /// Converts positions, their lower bits (empty if there are none) and images.
    pub fn apply<S: Store>(&self, [pos, low, image]: [&mut Bytes; 3]) {
        let [n, l, m] = self.turns;
        let low = if low.bytes().is_empty() { &mut [] } else { low.values_mut::<[u32; 3]>() };
        let images = image.values_mut::<[i32; 3]>();
        for (i, (p, image)) in pos.values_mut::<S::PosType>().iter_mut().zip(images).enumerate() {
            let mut none = [0; 3];
            let low = low.get_mut(i).unwrap_or(&mut none);
            for (axes, turns) in [([1, 2], m), ([0, 1], n), ([0, 2], l)] {
                if turns != 0 {
                    S::shear(p, low, image, self.length, axes, turns);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use galamost_plugin_api::precision::{Fixed, Float64};
    use galamost_plugin_api::tilt::{image_shift, to_reduced, to_space};

    const LENGTH: [f64; 3] = [7.0, 5.0, 4.0];

    /// Returns the unwrapped positions before and after.
    fn unwrapped<S: Store>(tilt: [f64; 3]) -> Vec<[[f64; 3]; 2]> {
        let g = Globals { box_length: LENGTH, tilt, ..Globals::new() };
        let r = Reduction::of(&g, MOST_TILT).expect("the box is skewed");
        assert!(!is_skewed(&Globals { tilt: r.tilt, ..g }, 0.5 + 1e-12), "{:?}", r.tilt);
        let place = |p: &S::PosType, low: [u32; 3], image: [i32; 3], tilt: [f64; 3]| -> [f64; 3] {
            let (x, shift) = (to_space(S::load(p, low, LENGTH), tilt), image_shift(image, LENGTH, tilt));
            std::array::from_fn(|k| x[k] + shift[k])
        };
        let particle = |i: i32| {
            let x = [0.31, -0.72, 0.23].map(|f| (f * f64::from(i)).sin());
            let at = to_reduced(std::array::from_fn(|k| 0.5 * LENGTH[k] * x[k]), tilt);
            let (p, low, crossed) = S::store(at, 0, LENGTH);
            let image: [i32; 3] = std::array::from_fn(|k| crossed[k] + [i % 3 - 1, 2 - i % 5, i % 7][k]);
            let [mut pos, mut lows, mut images] =
                [Bytes::zeroed(size_of::<S::PosType>(), 1), Bytes::zeroed(12, 1), Bytes::zeroed(12, 1)];
            pos.values_mut::<S::PosType>()[0] = p;
            lows.values_mut::<[u32; 3]>()[0] = low;
            images.values_mut::<[i32; 3]>()[0] = image;
            r.apply::<S>([&mut pos, &mut lows, &mut images]);
            let (p_now, low_now) = (&pos.values::<S::PosType>()[0], lows.values::<[u32; 3]>()[0]);
            let q = S::load(p_now, low_now, LENGTH);
            assert!((0..3).all(|k| (-0.5 * LENGTH[k]..=0.5 * LENGTH[k]).contains(&q[k])), "{q:?}");
            [place(&p, low, image, tilt), place(p_now, low_now, images.values::<[i32; 3]>()[0], r.tilt)]
        };
        (0..200).map(particle).collect()
    }

    #[test]
    fn unwrapped_positions_stay() {
        for tilt in [[1.2, 0.0, 0.0], [-2.3, 1.7, 0.9], [0.3, -3.0, 0.1], [0.2, 0.4, -2.6]] {
            for [before, after] in unwrapped::<Fixed>(tilt).into_iter().chain(unwrapped::<Float64>(tilt)) {
                assert!((0..3).all(|k| (before[k] - after[k]).abs() < 1e-13), "{tilt:?}: {before:?} {after:?}");
            }
        }
    }

    #[test]
    fn boxes_within_the_limit_stay() {
        let g = Globals { box_length: LENGTH, tilt: [0.8, 0.0, 0.0], ..Globals::new() };
        assert_eq!(Reduction::of(&g, MOST_TILT), None);
        let g = Globals { tilt: [0.9, 0.0, 0.0], ..g };
        assert_eq!(Reduction::of(&g, 0.0), None);
        assert_eq!(Reduction::of(&g, MOST_TILT).map(|r| r.turns), Some([1, 0, 0]));
    }
}
