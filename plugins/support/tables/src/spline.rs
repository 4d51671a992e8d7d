//! Cubic splines.

/// A cubic spline through points: continuous up to the second derivative, with given slopes at both ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Spline {
    x: Vec<f64>,
    y: Vec<f64>,
    /// Second derivatives.
    curvature: Vec<f64>,
}

impl Spline {
    /// Builds the spline through (x, y) with given slopes at the ends. `x` increases and has at least two points.
    pub fn clamped(x: &[f64], y: &[f64], slopes: [f64; 2]) -> Self {
        let n = x.len();
        // second derivatives m: h m₋ + 2(h + h₊) m + h₊ m₊ = 6 (difference of slopes), a tridiagonal system
        let mut factor = vec![0.0; n];
        let mut m = vec![0.0; n];
        for i in 0..n {
            let before = if i > 0 { x[i] - x[i - 1] } else { 0.0 };
            let after = if i + 1 < n { x[i + 1] - x[i] } else { 0.0 };
            let left = if i > 0 { (y[i] - y[i - 1]) / before } else { slopes[0] };
            let right = if i + 1 < n { (y[i + 1] - y[i]) / after } else { slopes[1] };
            let (previous_factor, previous) = if i > 0 { (factor[i - 1], m[i - 1]) } else { (0.0, 0.0) };
            let pivot = 2.0 * (before + after) - before * previous_factor;
            factor[i] = after / pivot;
            m[i] = (6.0 * (right - left) - before * previous) / pivot;
        }
        for i in (0..n - 1).rev() {
            m[i] -= factor[i] * m[i + 1];
        }
        Self { x: x.to_vec(), y: y.to_vec(), curvature: m }
    }

    /// Returns the value and the first and second derivative at `x`. The outermost pieces extend beyond the ends.
    pub fn at(&self, x: f64) -> [f64; 3] {
        let i = self.x.partition_point(|k| *k <= x).clamp(1, self.x.len() - 1) - 1;
        let [c0, c1, c2, c3] = self.piece(i);
        let d = x - self.x[i];
        [c0 + d * (c1 + d * (c2 + d * c3)), c1 + d * (2.0 * c2 + d * 3.0 * c3), 2.0 * c2 + 6.0 * c3 * d]
    }

    /// Returns the coefficients of the powers of x − x_i in piece i.
    pub fn piece(&self, i: usize) -> [f64; 4] {
        let h = self.x[i + 1] - self.x[i];
        let (a, b) = (self.curvature[i], self.curvature[i + 1]);
        let slope = (self.y[i + 1] - self.y[i]) / h - h * (2.0 * a + b) / 6.0;
        [self.y[i], slope, a / 2.0, (b - a) / (6.0 * h)]
    }

    /// Returns the first and last x.
    pub fn ends(&self) -> [f64; 2] {
        [self.x[0], self.x[self.x.len() - 1]]
    }
}

/// Returns the slope at the first point of the cubic through the first four points.
pub fn end_slope(x: &[f64], y: &[f64]) -> f64 {
    let n = x.len().min(4);
    // Newton's divided differences
    let mut d = y[..n].to_vec();
    let (mut slope, mut product) = (0.0, 1.0);
    for order in 1..n {
        for i in (order..n).rev() {
            d[i] = (d[i] - d[i - 1]) / (x[i] - x[i - order]);
        }
        slope += d[order] * product;
        product *= x[0] - x[order];
    }
    slope
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cubics_are_reproduced_exactly() {
        let f = |x: f64| [1.0 - 2.0 * x + 0.5 * x * x - 0.3 * x * x * x, -2.0 + x - 0.9 * x * x, 1.0 - 1.8 * x];
        let x: Vec<f64> = [0.0, 0.3, 0.5, 1.1, 1.2, 2.0].to_vec();
        let y: Vec<f64> = x.iter().map(|x| f(*x)[0]).collect();
        assert!((end_slope(&x, &y) - f(0.0)[1]).abs() < 1e-12);
        let s = Spline::clamped(&x, &y, [f(0.0)[1], f(2.0)[1]]);
        for k in 0..=40 {
            let x = 0.05 * f64::from(k);
            for (a, b) in s.at(x).iter().zip(f(x)) {
                assert!((a - b).abs() < 1e-12, "at {x}: {a} and {b}");
            }
        }
    }
}
