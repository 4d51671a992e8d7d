//! The cell grid of the neighbor list.

/// The cells of a box, and the cells that can contain neighbors of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Cells along each axis.
    pub n: [u32; 3],
    /// Distance of neighbors in cells, per axis.
    pub reach: [u32; 3],
    /// Offsets (y, z) of the rows of cells along x that can contain neighbors. On an axis with fewer cells than the reach
    /// spans, the offsets are the cells of the axis, each once.
    pub rows: Vec<[i32; 2]>,
    /// Lees-Edwards: displacement along x of the image above along y, in cells.
    pub offset: Option<f64>,
}

/// The largest number of cells along an axis: cell indices must fit 32 bits, and empty cells cost time.
const MAX_CELLS: u32 = 1024;
/// The largest number of cells per particle: cells of a dilute system grow instead of becoming more.
const CELLS_PER_PARTICLE: usize = 32;
/// A number of cells that every system may have.
const FEW_CELLS: usize = 1 << 18;

/// Returns the number of cells along each axis for cells of about `edge / finer`.
fn cells_along(length: [f64; 3], dimensions: u32, edge: f64, finer: u32) -> [u32; 3] {
    let mut n = [1; 3];
    for k in 0..dimensions as usize {
        n[k] = ((length[k] / edge * f64::from(finer)).floor() as u32).clamp(1, MAX_CELLS);
    }
    n
}

impl Grid {
    /// Returns the grid for a list of this radius, with cells of about `r_list / finer` (`finer` is 1 or 2). Cells are
    /// larger if there would be many more cells than particles.
    pub fn new(length: [f64; 3], dimensions: u32, r_list: f64, finer: u32, particles: usize) -> Self {
        Self::of_heights(length, false, dimensions, r_list, finer, particles)
    }

    /// Returns the grid of a box with these heights, which are the lengths unless it is `triclinic`. Cells are cells of reduced
    /// coordinates.
    pub fn of_heights(
        length: [f64; 3],
        triclinic: bool,
        dimensions: u32,
        r_list: f64,
        finer: u32,
        particles: usize,
    ) -> Self {
        let most = particles.saturating_mul(CELLS_PER_PARTICLE).max(FEW_CELLS);
        // the first try is the grid of a dense system, bit for bit
        let mut edge = r_list;
        let mut n = cells_along(length, dimensions, edge, finer);
        while n.iter().map(|n| *n as usize).product::<usize>() > most {
            edge *= 1.1;
            n = cells_along(length, dimensions, edge, finer);
        }
        let mut reach = [0; 3];
        for k in 0..3 {
            let edge = length[k] / f64::from(n[k]);
            reach[k] = if n[k] == 1 { 0 } else { (r_list / edge).ceil() as u32 };
        }
        let offsets = |k: usize| -> Vec<i32> {
            if 2 * reach[k] + 1 >= n[k] {
                (0..n[k] as i32).collect()
            } else {
                (-(reach[k] as i32)..=reach[k] as i32).collect()
            }
        };
        // smallest distance between points of two cells at this offset; 0 where offsets are absolute
        let gap = |k: usize, d: i32| -> f64 {
            // slabs of a triclinic box are not perpendicular to each other, so their distances do not add up
            if 2 * reach[k] + 1 >= n[k] || triclinic {
                return 0.0;
            }
            f64::from(d.abs() - 1).max(0.0) * length[k] / f64::from(n[k])
        };
        let mut rows = vec![];
        for z in offsets(2) {
            for y in offsets(1) {
                if gap(1, y).powi(2) + gap(2, z).powi(2) < r_list * r_list {
                    rows.push([y, z]);
                }
            }
        }
        Self { n, reach, rows, offset: None }
    }

    /// Returns the number of cells.
    pub fn cells(&self) -> usize {
        self.n.iter().map(|n| *n as usize).product()
    }

    /// Returns the index of a cell; x runs fastest.
    #[inline(always)]
    pub fn index(&self, c: [u32; 3]) -> u32 {
        (c[2] * self.n[1] + c[1]) * self.n[0] + c[0]
    }

    /// Returns the cell at this offset along an axis.
    #[inline(always)]
    pub fn wrap(&self, k: usize, c: u32, offset: i32) -> u32 {
        let n = self.n[k] as i32;
        if 2 * self.reach[k] as i32 + 1 >= n {
            return offset as u32;
        }
        let s = c as i32 + offset;
        (if s < 0 {
            s + n
        } else if s >= n {
            s - n
        } else {
            s
        }) as u32
    }

    /// Calls `f` with every range of neighboring cells (first, one past the last) of a cell, in a fixed order.
    #[inline(always)]
    pub fn ranges(&self, c: [u32; 3], mut f: impl FnMut(u32, u32)) {
        let (n, w) = (self.n[0] as i32, self.reach[0] as i32);
        for [dy, dz] in &self.rows {
            let row = self.index([0, self.wrap(1, c[1], *dy), self.wrap(2, c[2], *dz)]);
            if let Some(offset) = self.offset {
                let (rows, s) = (self.n[1] as i32, c[1] as i32 + dy);
                let all_rows = 2 * self.reach[1] as i32 + 1 >= rows;
                let image = i32::from(s >= rows) - i32::from(s < 0);
                if all_rows || image != 0 {
                    // position x in the displaced image is x − offset in the box itself
                    let shift = -f64::from(image) * offset;
                    let from = (f64::from(c[0] as i32 - w) + shift).floor() as i32;
                    let to = (f64::from(c[0] as i32 + w + 1) + shift).ceil() as i32;
                    if all_rows || to - from >= n {
                        f(row, row + n as u32);
                        continue;
                    }
                    let (a, b) = (from.rem_euclid(n), from.rem_euclid(n) + to - from);
                    f(row + a as u32, row + b.min(n) as u32);
                    if b > n {
                        f(row, row + (b - n) as u32);
                    }
                    continue;
                }
            }
            if 2 * w + 1 >= n {
                f(row, row + n as u32);
                continue;
            }
            let (a, b) = (c[0] as i32 - w, c[0] as i32 + w + 1);
            if a < 0 {
                f(row, row + b as u32);
                f(row + (a + n) as u32, row + n as u32);
            } else if b > n {
                f(row, row + (b - n) as u32);
                f(row + a as u32, row + n as u32);
            } else {
                f(row + a as u32, row + b as u32);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a triclinic box, the cells of all pairs within the radius are neighbors, and each is visited once.
    #[test]
    fn neighbors_in_triclinic_boxes_are_visited() {
        use galamost_plugin_api::tilt::{heights, nearest, to_reduced, to_space};
        let (length, r) = ([14.0, 11.0, 13.0], 2.2);
        for (tilt, finer) in
            [([0.5, -0.4, 0.6], 1), ([0.5, -0.4, 0.6], 2), ([-0.9, 0.3, -0.5], 2), ([0.2, 0.9, 0.8], 2)]
        {
            let g = Grid::of_heights(heights(length, tilt), true, 3, r, finer, 1000);
            assert!(finer == 1 || g.n.iter().all(|n| *n > 5), "{:?}", g.n);
            let cell = |q: [f64; 3]| -> [u32; 3] {
                std::array::from_fn(|k| ((q[k] / length[k] + 0.5).rem_euclid(1.0) * f64::from(g.n[k])) as u32 % g.n[k])
            };
            let mut state = 1u32;
            let mut random = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                f64::from(state) / 4_294_967_296.0 - 0.5
            };
            for _ in 0..3000 {
                let a: [f64; 3] = std::array::from_fn(|k| random() * length[k]);
                let d: [f64; 3] = std::array::from_fn(|_| random());
                let norm = d.iter().map(|x| x * x).sum::<f64>().sqrt();
                let d = d.map(|x| x / norm * 0.999 * r);
                let b = to_reduced(std::array::from_fn(|k| to_space(a, tilt)[k] + d[k]), tilt);
                assert!((nearest(d, length, tilt)[0] - d[0]).abs() < 1e-12);
                let (mut times, at) = (0, g.index(cell(b)));
                g.ranges(cell(a), |from, to| times += u32::from((from..to).contains(&at)));
                assert_eq!(times, 1, "{tilt:?} {a:?} {d:?}");
            }
        }
    }

    /// Every cell that can hold a neighbor is visited exactly once.
    #[test]
    fn neighbors_are_visited_once() {
        for (length, r, finer) in [
            ([10.0, 10.0, 10.0], 3.4, 1),
            ([10.0, 10.0, 10.0], 3.4, 2),
            ([10.0, 7.0, 30.0], 3.4, 2),
            ([5.0, 5.0, 5.0], 3.4, 2),
            ([20.0, 20.0, 0.0], 3.0, 2),
            ([40.0, 4.0, 4.0], 2.0, 1),
        ] {
            let d = if length[2] == 0.0 { 2 } else { 3 };
            let g = Grid::new(length, d, r, finer, 1000);
            let edge: Vec<f64> = (0..3).map(|k| length[k] / f64::from(g.n[k])).collect();
            for c in [[0, 0, 0], [g.n[0] - 1, 0, g.n[2] / 2], [g.n[0] / 2, g.n[1] / 2, g.n[2] - 1]] {
                let mut seen = vec![0; g.cells()];
                g.ranges(c, |a, b| (a..b).for_each(|i| seen[i as usize] += 1));
                for z in 0..g.n[2] {
                    for y in 0..g.n[1] {
                        for x in 0..g.n[0] {
                            let other = [x, y, z];
                            let gap2: f64 = (0..3)
                                .map(|k| {
                                    let d = (other[k] as i32 - c[k] as i32).unsigned_abs();
                                    let d = d.min(g.n[k] - d);
                                    (f64::from(d.saturating_sub(1)) * edge[k]).powi(2)
                                })
                                .sum();
                            let times = seen[g.index(other) as usize];
                            assert!(times <= 1, "{length:?} {c:?} {other:?} visited {times} times");
                            assert!(times == 1 || gap2 >= r * r, "{length:?} {c:?} {other:?} not visited");
                        }
                    }
                }
            }
        }
    }

    /// The grid of a dilute system has few cells, and that of a dense one has cells of the range of the list.
    #[test]
    fn cells_are_bounded_by_particles() {
        for (length, d, r, n) in [
            ([2e4; 3], 3, 2.9, 125),
            ([10.0; 3], 3, 1e-9, 1000),
            ([1e5, 1e5, 0.0], 2, 1e-300, 10),
            ([2e4, 5.0, 5.0], 3, 0.01, 1),
        ] {
            let g = Grid::new(length, d, r, 2, n);
            assert!(g.cells() <= FEW_CELLS && g.cells() > FEW_CELLS / 4, "{length:?}: {:?}", g.n);
            assert!(g.reach.iter().all(|w| *w <= 2) && g.rows.len() <= 25, "{g:?}");
        }
        assert_eq!(Grid::new([100.0; 3], 3, 2.9, 2, 800_000).n, [68; 3]);
        assert_eq!(Grid::new([400.0; 3], 3, 1.0, 2, 16_000_000).n, [800; 3]);
    }
}
