//! Shares of the grid points in a charge.

use super::window::{Pieces, TERMS};
use galamost_plugin_api::precision::{PosTypeF64, PosTypeFixed, Precision};
use galamost_plugin_api::views::StateView;

/// Three axes, and a fourth lane that fills a vector register.
type Lanes = [f64; 4];

/// Returns a polynomial and its derivative.
#[inline(always)]
fn with_slope(terms: &[f64; TERMS], x: Lanes) -> [Lanes; 2] {
    let (mut value, mut slope) = ([terms[TERMS - 1]; 4], [0.0; 4]);
    for term in terms.iter().rev().skip(1) {
        for l in 0..4 {
            slope[l] = slope[l] * x[l] + value[l];
            value[l] = value[l] * x[l] + term;
        }
    }
    [value, slope]
}

/// Returns the shares of `P` consecutive grid points of each axis in a charge at the distances `d` (in cells, 0 ≤ d < 1) from the
/// first, and their derivatives by d. The shares of an axis add up to 1, to the accuracy of the polynomials.
#[inline(always)]
pub fn shares_of_axes<const P: usize>(d: [f64; 3], pieces: &Pieces) -> [([f64; P], [f64; P]); 3] {
    let u = [d[0] - 0.5, d[1] - 0.5, d[2] - 0.5, 0.0];
    let square = u.map(|u| u * u);
    let (mut w, mut slope) = ([[0.0; 4]; P], [[0.0; 4]; P]);
    for j in 0..P.div_ceil(2) {
        let [even, even_slope] = with_slope(&pieces[j][0], square);
        let [odd, odd_slope] = with_slope(&pieces[j][1], square);
        for l in 0..4 {
            let (a, b) = (even[l], u[l] * odd[l]);
            let (da, db) = (2.0 * u[l] * even_slope[l], odd[l] + 2.0 * square[l] * odd_slope[l]);
            // the middle point of an odd number is its own mirror image
            (w[P - 1 - j][l], slope[P - 1 - j][l]) = if j == P - 1 - j { (a, da) } else { (a - b, da - db) };
            if j < P - 1 - j {
                (w[j][l], slope[j][l]) = (a + b, da + db);
            }
        }
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
    use crate::pppm::window::Window;

    fn check<const P: usize>() {
        // about those of `Window::new`, which has splines for orders 3 and 4
        let typical = 2.6 * (P as f64 - 2.0);
        [0.0, 0.8 * typical, typical].into_iter().for_each(|shape| check_window::<P>(Window { order: P, shape }));
    }

    fn check_window<const P: usize>(window: Window) {
        // the window of order 3 is the sharpest in units of cells
        let limit = if P == 3 { 2e-8 } else { 1e-9 };
        let pieces = window.pieces();
        for k in 0..=100 {
            let d = f64::from(k) / 100.0;
            let one = |d: f64| shares_of_axes::<P>([d, 0.0, 0.5], &pieces);
            let [(w, slope), (_, _), (middle, _)] = one(d);
            assert!((middle.iter().sum::<f64>() - 1.0).abs() < limit);
            let mean: f64 = w.iter().enumerate().map(|(j, w)| j as f64 * w).sum();
            let (sum, slopes) = (w.iter().sum::<f64>(), slope.iter().sum::<f64>());
            assert!((sum - 1.0).abs() < limit && slopes.abs() < 10.0 * limit, "order {P}, d {d}: {sum}, {slopes}");
            // the center of the shares moves with the charge
            assert!((mean - d - (P as f64 - 2.0) / 2.0).abs() < limit, "order {P}, d {d}: {mean}");
            let h = 1e-6;
            let (above, below) = (one(d + h)[0].0, one(d - h)[0].0);
            for j in 0..P {
                let expected = window.at(j as f64 - d - (P as f64 - 2.0) / 2.0);
                assert!((w[j] - expected).abs() < limit, "order {P}, d {d}, point {j}: {} and {expected}", w[j]);
                // h² W‴, and rounding 1e-16/h = 1e-10
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
