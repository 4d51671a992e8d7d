//! Shares of the grid points in a charge: cardinal B-splines.

use galamost_plugin_api::precision::{PosTypeF64, PosTypeFixed, Precision};
use galamost_plugin_api::views::StateView;

/// Three axes, and a fourth lane that fills a vector register.
type Lanes = [f64; 4];

/// Applies a function to the lanes of two vectors.
#[inline(always)]
fn lanes(a: Lanes, b: Lanes, f: impl Fn(f64, f64) -> f64) -> Lanes {
    [f(a[0], b[0]), f(a[1], b[1]), f(a[2], b[2]), f(a[3], b[3])]
}

/// Returns the shares of `P` consecutive grid points of each axis in a charge at the distances `d` (in cells, 0 ≤ d < 1) from the
/// first, and their derivatives by d. The shares of an axis add up to 1.
#[inline(always)]
pub fn shares_of_axes<const P: usize>(d: [f64; 3]) -> [([f64; P], [f64; P]); 3] {
    let d = [d[0], d[1], d[2], 0.0];
    let (mut w, mut slope) = ([[0.0; 4]; P], [[0.0; 4]; P]);
    (w[0], w[1]) = (d.map(|d| 1.0 - d), d);
    for order in 3..=P {
        if order == P {
            // the derivative of a spline is the difference of two splines of the order below
            slope[0] = w[0].map(|w| -w);
            for j in 1..P {
                slope[j] = lanes(w[j - 1], w[j], |a, b| a - b);
            }
        }
        let inverse = 1.0 / (order - 1) as f64;
        w[order - 1] = lanes(d, w[order - 2], |d, w| inverse * d * w);
        for j in 1..order - 1 {
            let k = order - 1 - j;
            let below = lanes(d, w[k - 1], |d, w| (d + j as f64) * w);
            let same = lanes(d, w[k], |d, w| ((order - j) as f64 - d) * w);
            w[k] = lanes(below, same, |a, b| inverse * (a + b));
        }
        w[0] = lanes(w[0], d, |w, d| w * (inverse * (1.0 - d)));
    }
    std::array::from_fn(|axis| (w.map(|w| w[axis]), slope.map(|s| s[axis])))
}

/// Returns grid point and offset in cells of particle `i` along each axis; points lie at −L/2 + n L/grid.
///
/// # Safety
/// The view describes valid host arrays, and `i < n_local`.
pub unsafe fn grid_position(state: &StateView, i: usize, grid: [usize; 3]) -> ([usize; 3], [f64; 3]) {
    let (mut point, mut offset) = ([0; 3], [0.0; 3]);
    if state.precision == Precision::Double as u32 {
        // SAFETY: `i < n_local`, and positions are f64 in this precision
        let (p, length) = unsafe {
            let p = (*state.pos_type.cast::<PosTypeF64>().host().add(i)).position;
            (p, (*state.globals.host()).box_length)
        };
        for k in 0..3 {
            let s = (p[k] / length[k] + 0.5) * grid[k] as f64;
            let below = s.floor().clamp(0.0, (grid[k] - 1) as f64);
            (point[k], offset[k]) = (below as usize, s - below);
        }
    } else {
        // SAFETY: `i < n_local`, and positions are fixed-point in this precision
        let p = unsafe { (*state.pos_type.cast::<PosTypeFixed>().host().add(i)).position };
        for k in 0..3 {
            // fixed-point distance from the lower face times the grid: the upper 32 bits are the cell, the lower the offset
            let s = u64::from(p[k] as u32 ^ 0x8000_0000) * grid[k] as u64;
            (point[k], offset[k]) = ((s >> 32) as usize, (s as u32) as f64 / 4_294_967_296.0);
        }
    }
    (point, offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<const P: usize>() {
        for k in 0..=100 {
            let d = f64::from(k) / 100.0;
            let one = |d: f64| shares_of_axes::<P>([d, 0.0, 0.5]);
            let [(w, slope), (_, _), (middle, _)] = one(d);
            assert!((middle.iter().sum::<f64>() - 1.0).abs() < 1e-14);
            let mean: f64 = w.iter().enumerate().map(|(j, w)| j as f64 * w).sum();
            assert!((w.iter().sum::<f64>() - 1.0).abs() < 1e-14 && slope.iter().sum::<f64>().abs() < 1e-14);
            // the center of the shares moves with the charge
            assert!((mean - d - (P as f64 - 2.0) / 2.0).abs() < 1e-13, "order {P}, d {d}: {mean}");
            let h = 1e-6;
            let (above, below) = (one(d + h)[0].0, one(d - h)[0].0);
            for j in 0..P {
                assert!((slope[j] - (above[j] - below[j]) / (2.0 * h)).abs() < 1e-8, "order {P}, d {d}, point {j}");
            }
        }
    }

    #[test]
    fn shares_add_up_and_their_slopes_are_derivatives() {
        check::<3>();
        check::<4>();
        check::<5>();
        check::<6>();
        check::<7>();
    }
}
