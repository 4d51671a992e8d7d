//! Uniform grids of spline coefficients, as loops over particles read them.

use crate::spline::Spline;

/// A function on a uniform grid: in cell i, U = c0 + c1 δ + c2 δ² + c3 δ³ with δ = x − (i − origin)·width.
///
/// The width has so few significant bits that (i − origin)·width is exact in single precision. The subtraction from x is then
/// exact too, so the error of δ is that of x alone.
#[derive(Clone, Debug, PartialEq)]
pub struct CoefficientGrid {
    /// Coefficients of each cell; the last cell also applies beyond the grid.
    pub cells: Vec<[f64; 4]>,
    /// Width of a cell.
    pub width: f64,
    /// Number of cells at negative x.
    pub origin: usize,
}

/// Largest number of cells of a grid.
pub const MOST_CELLS: usize = 1 << 16;

impl CoefficientGrid {
    /// Builds the cubic spline through a function's values on a grid from −`below` to `end` with about `cells` cells; `below`
    /// is 0 or equal to `end`.
    ///
    /// `f` returns the value and the slope. It is evaluated up to one cell beyond the end; only the slopes at both ends are
    /// used. `beyond` returns value, slope and curvature; it defines a parabola beyond the end.
    pub fn new(
        cells: usize,
        below: f64,
        end: f64,
        f: impl Fn(f64) -> [f64; 2],
        beyond: Option<&dyn Fn(f64) -> [f64; 3]>,
    ) -> Self {
        let sides = if below > 0.0 { 2 } else { 1 };
        let half = cells.clamp(2, MOST_CELLS).div_ceil(sides);
        let width = round_up_to_short(end / half as f64, half);
        let origin = if sides == 2 { half } else { 0 };
        let n = sides * half;
        let x: Vec<f64> = (0..=n).map(|i| (i as f64 - origin as f64) * width).collect();
        let y: Vec<f64> = x.iter().map(|x| f(*x)[0]).collect();
        let spline = Spline::clamped(&x, &y, [f(x[0])[1], f(x[n])[1]]);
        let mut cells: Vec<[f64; 4]> = (0..n).map(|i| spline.piece(i)).collect();
        if let Some(beyond) = beyond {
            let [u, slope, curvature] = beyond(x[n]);
            cells.push([u, slope, 0.5 * curvature, 0.0]);
        }
        Self { cells, width, origin }
    }

    /// Returns U and dU/dx.
    pub fn at(&self, x: f64) -> [f64; 2] {
        let i = ((x / self.width).floor() + self.origin as f64).clamp(0.0, self.cells.len() as f64 - 1.0) as usize;
        let [c0, c1, c2, c3] = self.cells[i];
        let d = x - (i as f64 - self.origin as f64) * self.width;
        [c0 + d * (c1 + d * (c2 + d * c3)), c1 + d * (2.0 * c2 + d * 3.0 * c3)]
    }
}

/// Rounds `x` up to so few significant bits that its product with any integer up to `n` has at most 24.
fn round_up_to_short(x: f64, n: usize) -> f64 {
    let bits = 24 - (usize::BITS - n.leading_zeros()) as i32;
    let unit = 2f64.powi(x.log2().floor() as i32 + 1 - bits);
    (x / unit).ceil() * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lj(z: f64) -> [f64; 2] {
        let i6 = 1.0 / (z * z * z);
        [4.0 * i6 * (i6 - 1.0), -12.0 * i6 * (2.0 * i6 - 1.0) / z]
    }

    /// Lennard-Jones, extrapolated below r = 0.8 by a parabola in z, as tables are.
    fn with_core(z: f64) -> [f64; 2] {
        const Z0: f64 = 0.64;
        if z >= Z0 {
            return lj(z);
        }
        let h = 1e-5;
        let ([u, du], curvature) = (lj(Z0), (lj(Z0 + h)[1] - lj(Z0 - h)[1]) / (2.0 * h));
        [u + du * (z - Z0) + 0.5 * curvature * (z - Z0).powi(2), du + curvature * (z - Z0)]
    }

    /// Largest errors of U and of F / max(|F|, 1) for r from 0.9 to 3.
    fn errors(cells: usize) -> [f64; 2] {
        let g = CoefficientGrid::new(cells, 0.0, 9.0, with_core, None);
        let mut worst = [0.0f64; 2];
        for k in 0..=200_000 {
            let r = 0.9 + 2.1 * f64::from(k) / 200_000.0;
            let ([u, du], [truth, slope]) = (g.at(r * r), lj(r * r));
            let force = -2.0 * r * slope;
            worst[0] = worst[0].max((u - truth).abs());
            worst[1] = worst[1].max((-2.0 * r * du - force).abs() / force.abs().max(1.0));
        }
        worst
    }

    #[test]
    fn lennard_jones_converges_with_the_order_of_a_cubic_spline() {
        let found = [1000, 2000, 4000, 8000].map(errors);
        println!("n, max |ΔU|, max |ΔF| / max(|F|, 1): {found:?}");
        // errors of a cubic spline in r² with 2000 cells
        assert!(found[1][0] < 1.0e-7 && found[1][1] < 2.5e-6, "{:?}", found[1]);
        for pair in found.windows(2) {
            let slope = |k: usize| (pair[0][k] / pair[1][k]).log2();
            assert!((slope(0) - 4.0).abs() < 0.3, "U falls as n^-{}", slope(0));
            assert!((slope(1) - 3.0).abs() < 0.3, "F falls as n^-{}", slope(1));
        }
    }

    #[test]
    fn products_with_the_width_are_exact_in_single_precision() {
        for (cells, end) in [(2000, 9.0), (5000, 6.25), (777, std::f64::consts::PI), (65536, 1.3)] {
            let g = CoefficientGrid::new(cells, 0.0, end, |x| [x, 1.0], None);
            assert!(g.width * g.cells.len() as f64 >= end);
            for i in 0..=g.cells.len() {
                let product = i as f64 * g.width;
                assert_eq!(f64::from(product as f32), product);
            }
        }
    }

    /// In single precision, as the loops compute it, only the rounding errors of r² and of the sums remain.
    #[test]
    fn single_precision_errors_are_rounding_errors() {
        let g = CoefficientGrid::new(2000, 0.0, 9.0, with_core, None);
        let mut worst = [0.0f64; 2];
        for k in 0..=200_000 {
            let z = (0.81 + 8.19 * f64::from(k) / 200_000.0) as f32;
            let i = (z / g.width as f32) as usize;
            let d = z - i as f32 * g.width as f32;
            let [c0, c1, c2, c3] = g.cells[i.min(g.cells.len() - 1)].map(|c| c as f32);
            let u = f64::from(c0 + d * (c1 + d * (c2 + d * c3)));
            let f = f64::from(-2.0 * (c1 + d * (2.0 * c2 + d * 3.0 * c3)));
            let ([exact_u, slope], r) = (g.at(f64::from(z)), f64::from(z).sqrt());
            worst[0] = worst[0].max((u - exact_u).abs() / exact_u.abs().max(1.0));
            worst[1] = worst[1].max(r * (f + 2.0 * slope).abs() / (2.0 * r * slope).abs().max(1.0));
        }
        println!("single precision: U {:e}, F {:e}", worst[0], worst[1]);
        // five roundings of 6e-8
        assert!(worst[0] < 3e-7 && worst[1] < 3e-7, "{worst:?}");
    }
}
