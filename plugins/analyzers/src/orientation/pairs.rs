//! Close pairs of particles in a periodic box.

/// Returns the minimum image of a difference.
fn nearest(mut d: [f64; 3], length: [f64; 3]) -> [f64; 3] {
    for k in 0..3 {
        d[k] -= length[k] * (d[k] / length[k]).round();
    }
    d
}

/// Calls `f(i, j, r_j − r_i, r²)` once for each pair closer than `r_max`, in either order of i and j. `r_max` is at
/// most half of the shortest box length.
pub fn near(position: &[[f64; 3]], length: [f64; 3], r_max: f64, mut f: impl FnMut(usize, usize, [f64; 3], f64)) {
    let mut visit = |i: usize, j: usize| {
        let d = nearest(std::array::from_fn(|k| position[j][k] - position[i][k]), length);
        let r2 = d.iter().map(|x| x * x).sum::<f64>();
        if r2 < r_max * r_max {
            f(i, j, d, r2);
        }
    };
    // at most as many cells as particles
    let max_along = ((position.len() as f64).cbrt().ceil() as usize).max(1);
    let cells = length.map(|l| ((l / r_max) as usize).clamp(1, max_along));
    if cells.iter().any(|n| *n < 3) {
        for i in 0..position.len() {
            (i + 1..position.len()).for_each(|j| visit(i, j));
        }
        return;
    }
    let cell = |p: &[f64; 3]| -> [usize; 3] {
        std::array::from_fn(|k| {
            let x = ((p[k] / length[k] + 0.5) * cells[k] as f64) as usize;
            x.min(cells[k] - 1)
        })
    };
    let index = |c: [usize; 3]| (c[2] * cells[1] + c[1]) * cells[0] + c[0];
    let mut members = vec![vec![]; cells.iter().product()];
    for (i, p) in position.iter().enumerate() {
        members[index(cell(p))].push(i);
    }
    // this cell, and half of the surrounding ones
    let half: Vec<[usize; 3]> =
        (0..27).map(|k| [k % 3, k / 3 % 3, k / 9]).filter(|d| (d[2], d[1], d[0]) > (1, 1, 1)).collect();
    for z in 0..cells[2] {
        for y in 0..cells[1] {
            for x in 0..cells[0] {
                let here = &members[index([x, y, z])];
                for (a, i) in here.iter().enumerate() {
                    here[a + 1..].iter().for_each(|j| visit(*i, *j));
                }
                for d in &half {
                    let other = [0, 1, 2].map(|k| ([x, y, z][k] + cells[k] + d[k] - 1) % cells[k]);
                    for i in here {
                        members[index(other)].iter().for_each(|j| visit(*i, *j));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grid_finds_the_same_pairs_as_the_double_loop() {
        let mut x = 1u64;
        let mut random = || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 11) as f64 / (1u64 << 53) as f64
        };
        let length = [7.0, 9.5, 12.0];
        let position: Vec<[f64; 3]> = (0..500).map(|_| length.map(|l| l * (random() - 0.5))).collect();
        let mut found = vec![];
        near(&position, length, 1.4, |i, j, _, r2| found.push((i.min(j), i.max(j), r2)));
        let mut expected = vec![];
        for i in 0..500 {
            for j in i + 1..500 {
                let d = nearest(std::array::from_fn(|k| position[j][k] - position[i][k]), length);
                let r2: f64 = d.iter().map(|x| x * x).sum();
                if r2 < 1.96 {
                    expected.push((i, j, r2));
                }
            }
        }
        found.sort_by_key(|p| (p.0, p.1));
        let same =
            |a: &(usize, usize, f64), b: &(usize, usize, f64)| a.0 == b.0 && a.1 == b.1 && (a.2 - b.2).abs() < 1e-12;
        assert!(found.len() > 1000 && found.len() == expected.len(), "{} of {}", found.len(), expected.len());
        assert!(found.iter().zip(&expected).all(|(a, b)| same(a, b)));
    }
}
