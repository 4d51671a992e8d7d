//! The window that spreads charges over grid points.
//!
//! W is the convolution of the spline of order 2 and a Kaiser–Bessel window (see split.rs) that is p − 2 cells wide. It reaches p points.
//! Its transform is U(f) = sinc²(πf) (β/sinh β) sinh(z)/z, z = √(β² − (π (p − 2) f)²), with f in waves per cell. From the spline it has
//! double zeros at all f = 1, 2, …, so that long waves have small errors; from the other factor it has the fast decay between, at the
//! images of the waves that matter, where the spline of order p falls as sinc^p only. At low orders and for small errors that spline is the better
//! window.

use crate::series::{chebyshev_coefficients, quadrature, rising_powers};
use crate::split::Split;
use std::f64::consts::PI;

/// Terms of the even and the odd part of a piece.
pub const TERMS: usize = 6;
/// Largest number of pieces; the others are their mirror images.
pub const PIECES: usize = 4;
/// Polynomials of the points 0, 1, … of a window in u², u = d − ½: the even part, and the odd part divided by u.
pub type Pieces = [[[f64; TERMS]; 2]; PIECES];

/// The window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Window {
    /// p.
    pub order: usize,
    /// β; 0 for the spline of order p.
    pub shape: f64,
}

/// Returns the spline of an order, the charge that is constant over a cell, folded with itself, at the distance x.
fn spline(order: usize, x: f64) -> f64 {
    let half = 0.5 * order as f64;
    if order == 1 {
        return if (-0.5..0.5).contains(&x) { 1.0 } else { 0.0 };
    }
    let below = |x: f64| spline(order - 1, x);
    ((half + x) * below(x + 0.5) + (half - x) * below(x - 0.5)) / (order - 1) as f64
}

impl Window {
    /// Returns the window of an order for a split. Both β and the limit, up to which this window needs fewer points than a spline, are fits
    /// to the coarsest grids for accuracies from 10⁻³ to 10⁻⁶ (c from 9 to 17). They do not depend on the box, which may change.
    pub fn new(order: usize, split: Split) -> Self {
        let p = order as f64;
        if order < 5 || split.shape > 3.75 * p - 8.5 {
            return Self { order, shape: 0.0 };
        }
        let per_cell = 2.0 + 0.3 * (7.0 - p) + 0.1 * (split.shape - 12.0).max(0.0);
        Self { order, shape: per_cell * (p - 2.0) }
    }

    fn kernel(self) -> Split {
        Split::with_shape(0.5 * (self.order as f64 - 2.0), self.shape)
    }

    /// Returns U at f waves per cell.
    pub fn transform(self, f: f64) -> f64 {
        let x = PI * f;
        let sinc = x.sin() / x;
        match f {
            0.0 => 1.0,
            // sin x is not 0 in floating point
            _ if f.fract() == 0.0 => 0.0,
            _ if self.shape == 0.0 => sinc.powi(self.order as i32),
            _ => sinc.powi(2) * self.kernel().chi(4.0 * x * x),
        }
    }

    /// Returns W at the distance x in cells.
    pub fn at(self, x: f64) -> f64 {
        if self.shape == 0.0 {
            return spline(self.order, x);
        }
        let kernel = self.kernel();
        let nodes = quadrature(48);
        let part = |from: f64, to: f64| -> f64 {
            let (from, to) = (from.max(-kernel.radius), to.min(kernel.radius));
            if to <= from {
                return 0.0;
            }
            let at = |u: f64| 0.5 * (from + to) + 0.5 * (to - from) * u;
            nodes
                .iter()
                .map(|(u, w)| 0.5 * (to - from) * w * (1.0 - (x - at(*u)).abs()) * 0.5 * kernel.density(at(*u)))
                .sum()
        };
        part(x - 1.0, x) + part(x, x + 1.0)
    }

    /// Returns the polynomials.
    pub fn pieces(self) -> Pieces {
        let mut pieces = Pieces::default();
        for (j, piece) in pieces.iter_mut().enumerate().take(self.order.div_ceil(2)) {
            // the first point of a charge is (p − 2)/2 + d cells before it
            let first = 0.5 * (self.order as f64 - 2.0) + 0.5;
            let series: [f64; 2 * TERMS] =
                rising_powers(chebyshev_coefficients(32, |t| self.at(j as f64 - first - 0.5 * t)));
            for (k, c) in series.into_iter().enumerate() {
                piece[k % 2][k / 2] = c * 2f64.powi(k as i32);
            }
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::TAU;

    #[test]
    fn waves_are_the_transform_of_the_window() {
        for window in
            [Window { order: 3, shape: 2.5 }, Window { order: 6, shape: 9.0 }, Window { order: 7, shape: 11.0 }]
        {
            let cells = window.order as i32;
            for f in [0.1, 0.37, 0.8, 1.3] {
                let mut sum = 0.0;
                for cell in 0..cells {
                    let start = f64::from(cell) - 0.5 * f64::from(cells);
                    let at = |u: f64| start + 0.5 * (u + 1.0);
                    sum += quadrature(40)
                        .iter()
                        .map(|(u, w)| 0.5 * w * window.at(at(*u)) * (TAU * f * at(*u)).cos())
                        .sum::<f64>();
                }
                assert!(
                    (sum - window.transform(f)).abs() < 1e-11,
                    "{window:?}: at {f} {sum} and {}",
                    window.transform(f)
                );
            }
        }
    }
}
