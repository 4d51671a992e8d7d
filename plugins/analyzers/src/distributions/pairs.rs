//! Counts pairs of particles by distance in a periodic box.

use crate::distributions::space::Space;
use galamost_plugin_api::prelude::*;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Cell grid of a periodic box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cells {
    /// Cells along each axis.
    pub n: [usize; 3],
    /// Number of neighboring cells on each side that can contain partners.
    pub reach: [usize; 3],
}

impl Cells {
    /// Returns the maximum number of cells along an axis: a cube has no more cells than points.
    pub fn max_along(points: usize) -> usize {
        (points as f64).cbrt().ceil().max(1.0) as usize
    }

    /// Builds the grid for pairs closer than `r_max`, with `along` cells per `r_max`, in a box with these heights.
    pub fn new(points: usize, length: [f64; 3], r_max: f64, along: f64) -> Self {
        let most = Self::max_along(points) as f64;
        let mut reach = [0; 3];
        let n = std::array::from_fn(|k| {
            let n = (length[k] / r_max * along).min(most).floor();
            if n >= 1.0 {
                reach[k] = (r_max * n / length[k]).ceil() as usize;
            }
            // all cells within reach must be distinct
            if n >= (2 * reach[k] + 1) as f64 {
                n as usize
            } else {
                reach[k] = 0;
                1
            }
        });
        Self { n, reach }
    }
}

/// Points sorted by cell.
struct Grid<P> {
    /// Cells along each axis.
    n: [usize; 3],
    /// Number of neighboring cells on each side that can contain partners.
    reach: [usize; 3],
    /// Index of the first point of each cell in `position` and `index`, then the number of points.
    first: Vec<usize>,
    position: Vec<P>,
    index: Vec<u32>,
}

impl<P: Copy + Send + Sync> Grid<P> {
    fn new<S: Space<Point = P>>(space: &S, position: &[P], length: [f64; 3], r_max: f64) -> Self {
        let Cells { n, reach } = Cells::new(position.len(), length, r_max, 2.0);
        let cell = |p: &P| {
            let at: [usize; 3] = std::array::from_fn(|k| match n[k] {
                1 => 0,
                n_k => ((space.fraction(p, k) * n_k as f64).max(0.0) as usize).min(n_k - 1),
            });
            (at[2] * n[1] + at[1]) * n[0] + at[0]
        };
        let cells: Vec<usize> = position.iter().map(cell).collect();
        let mut first = vec![0; n.iter().product::<usize>() + 1];
        cells.iter().for_each(|c| first[c + 1] += 1);
        for c in 1..first.len() {
            first[c] += first[c - 1];
        }
        let mut next = first.clone();
        let mut index = vec![0; position.len()];
        for (i, c) in cells.iter().enumerate() {
            index[next[*c]] = i as u32;
            next[*c] += 1;
        }
        let position = index.iter().map(|i| position[*i as usize]).collect();
        Self { n, reach, first, position, index }
    }

    fn members(&self, cell: usize) -> Range<usize> {
        self.first[cell]..self.first[cell + 1]
    }

    /// Returns the offsets to half of the surrounding cells, so that each pair of cells occurs once.
    fn half(&self) -> Vec<[usize; 3]> {
        let mut all = vec![];
        let side = self.reach.map(|r| r as i64);
        for z in -side[2]..=side[2] {
            for y in -side[1]..=side[1] {
                for x in -side[0]..=side[0] {
                    if (z, y, x) > (0, 0, 0) {
                        let shift = [x, y, z];
                        all.push(std::array::from_fn(|k| (shift[k] + self.n[k] as i64) as usize % self.n[k]));
                    }
                }
            }
        }
        all
    }
}

/// Counts pairs closer than `r_max` (at most half of the shortest box length) into slots. `slot(i, j, r)` returns the
/// slot of a pair, or `None`. `length` are the heights of the box, which are its lengths unless it is triclinic; 0 along an axis
/// that the system lacks.
pub fn count<S: Space>(
    host: &Host,
    space: &S,
    position: &[S::Point],
    length: [f64; 3],
    r_max: f64,
    slots: usize,
    slot: impl Fn(usize, usize, f64) -> Option<usize> + Sync,
) -> Vec<u64> {
    let grid = Grid::new(space, position, length, r_max);
    let half = grid.half();
    let total = Mutex::new(vec![0u64; slots]);
    let limit = r_max * r_max;
    let cells = grid.n.iter().product::<usize>();
    host.parallel(cells, cells.div_ceil(64), |range| {
        let mut counts = vec![0u64; slots];
        let mut row = |a: usize, others: Range<usize>| {
            let (p, i) = (grid.position[a], grid.index[a] as usize);
            for b in others {
                let r2 = space.r2(&p, &grid.position[b]);
                if r2 < limit
                    && let Some(s) = slot(i, grid.index[b] as usize, r2.sqrt())
                {
                    counts[s] += 1;
                }
            }
        };
        for c in range {
            let at = [c % grid.n[0], c / grid.n[0] % grid.n[1], c / (grid.n[0] * grid.n[1])];
            for a in grid.members(c) {
                row(a, a + 1..grid.members(c).end);
            }
            for d in &half {
                let other: [usize; 3] = std::array::from_fn(|k| (at[k] + d[k]) % grid.n[k]);
                let other = (other[2] * grid.n[1] + other[1]) * grid.n[0] + other[0];
                for a in grid.members(c) {
                    row(a, grid.members(other));
                }
            }
        }
        let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
        total.iter_mut().zip(&counts).for_each(|(t, n)| *t += n);
    });
    total.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the volume of the shell between two radii (area of the ring in two dimensions).
pub fn shell(inner: f64, outer: f64, dimensions: u32) -> f64 {
    use std::f64::consts::PI;
    match dimensions {
        2 => PI * (outer * outer - inner * inner),
        _ => 4.0 / 3.0 * PI * (outer.powi(3) - inner.powi(3)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::space::Lengths;

    /// Returns all pairs of points that the grid visits.
    fn visited(grid: &Grid<[f64; 3]>) -> Vec<(u32, u32)> {
        let half = grid.half();
        let mut found = vec![];
        for c in 0..grid.n.iter().product() {
            let at = [c % grid.n[0], c / grid.n[0] % grid.n[1], c / (grid.n[0] * grid.n[1])];
            for a in grid.members(c) {
                found.extend((a + 1..grid.members(c).end).map(|b| (a, b)));
                for d in &half {
                    let other: [usize; 3] = std::array::from_fn(|k| (at[k] + d[k]) % grid.n[k]);
                    let other = (other[2] * grid.n[1] + other[1]) * grid.n[0] + other[0];
                    found.extend(grid.members(other).map(|b| (a, b)));
                }
            }
        }
        found.into_iter().map(|(a, b)| (grid.index[a].min(grid.index[b]), grid.index[a].max(grid.index[b]))).collect()
    }

    #[test]
    fn grid_visits_every_close_pair_once() {
        let mut x = 1u64;
        let mut random = || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 11) as f64 / (1u64 << 53) as f64
        };
        for (length, r_max) in
            [([7.0, 9.5, 12.0], 1.4), ([7.0, 9.5, 12.0], 3.5), ([4.0, 20.0, 5.0], 1.0), ([9.0, 8.0, 0.0], 1.2)]
        {
            let position: Vec<[f64; 3]> = (0..300).map(|_| length.map(|l| l * (random() - 0.5))).collect();
            let mut found = visited(&Grid::new(&Lengths(length), &position, length, r_max));
            let number = found.len();
            found.sort_unstable();
            found.dedup();
            assert_eq!(found.len(), number, "no pair twice");
            for i in 0..300 {
                for j in i + 1..300 {
                    let r2: f64 = (0..3)
                        .map(|k| {
                            let d = (position[i][k] - position[j][k]).abs();
                            d.min((length[k] - d).abs()).powi(2)
                        })
                        .sum();
                    let seen = found.binary_search(&(i as u32, j as u32)).is_ok();
                    assert!(seen || r2 >= r_max * r_max, "{i} {j} in {length:?}");
                }
            }
        }
        // six decimals of the references
        assert!((shell(1.0, 2.0, 3) - 29.321_531).abs() < 1e-5 && (shell(1.0, 2.0, 2) - 9.424_778).abs() < 1e-5);
    }
}
