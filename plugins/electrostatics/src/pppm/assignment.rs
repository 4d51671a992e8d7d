//! Shares of the grid points in a charge: cardinal B-splines.

use galamost_plugin_api::precision::{PosTypeF64, PosTypeFixed, Precision};
use galamost_plugin_api::views::StateView;

/// Returns the shares of `P` consecutive grid points in a charge at the distance `d` (in cells, 0 ≤ d < 1) from the first,
/// and their derivatives by d. The shares add up to 1.
pub fn shares<const P: usize>(d: f64) -> ([f64; P], [f64; P]) {
    let (mut w, mut slope) = ([0.0; P], [0.0; P]);
    (w[0], w[1]) = (1.0 - d, d);
    for order in 3..=P {
        if order == P {
            // the derivative of a spline is the difference of two splines of the order below
            slope[0] = -w[0];
            for j in 1..P {
                slope[j] = w[j - 1] - w[j];
            }
        }
        let inverse = 1.0 / (order - 1) as f64;
        w[order - 1] = inverse * d * w[order - 2];
        for j in 1..order - 1 {
            let k = order - 1 - j;
            w[k] = inverse * ((d + j as f64) * w[k - 1] + ((order - j) as f64 - d) * w[k]);
        }
        w[0] *= inverse * (1.0 - d);
    }
    (w, slope)
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
            let (w, slope) = shares::<P>(d);
            let mean: f64 = w.iter().enumerate().map(|(j, w)| j as f64 * w).sum();
            assert!((w.iter().sum::<f64>() - 1.0).abs() < 1e-14 && slope.iter().sum::<f64>().abs() < 1e-14);
            // the center of the shares moves with the charge
            assert!((mean - d - (P as f64 - 2.0) / 2.0).abs() < 1e-13, "order {P}, d {d}: {mean}");
            let h = 1e-6;
            let (above, below) = (shares::<P>(d + h).0, shares::<P>(d - h).0);
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
