//! Integrals and polynomials of smooth functions over −1 … 1.

use std::f64::consts::PI;

/// Returns nodes cos θ and weights of Fejér's quadrature over −1 … 1.
pub fn quadrature(n: usize) -> Vec<(f64, f64)> {
    (0..n)
        .map(|j| {
            let theta = PI * (j as f64 + 0.5) / n as f64;
            let sum: f64 = (1..=n / 2).map(|m| (2.0 * m as f64 * theta).cos() / (4 * m * m - 1) as f64).sum();
            (theta.cos(), 2.0 / n as f64 * (1.0 - 2.0 * sum))
        })
        .collect()
}

/// Returns the first N coefficients of the Chebyshev series of a function over −1 … 1 from its values at `n` nodes.
pub fn chebyshev_coefficients<const N: usize>(n: usize, f: impl Fn(f64) -> f64) -> [f64; N] {
    let samples: Vec<(f64, f64)> =
        (0..n).map(|j| PI * (j as f64 + 0.5) / n as f64).map(|theta| (theta, f(theta.cos()))).collect();
    std::array::from_fn(|m| {
        let sum: f64 = samples.iter().map(|(theta, value)| value * (m as f64 * theta).cos()).sum();
        sum * if m == 0 { 1.0 } else { 2.0 } / n as f64
    })
}

/// Returns a Chebyshev series by rising powers.
pub fn rising_powers<const N: usize>(coefficients: [f64; N]) -> [f64; N] {
    let (mut before, mut now, mut series) = ([0.0; N], [0.0; N], [0.0; N]);
    for (m, coefficient) in coefficients.into_iter().enumerate() {
        // Chebyshev polynomials by rising powers
        let next: [f64; N] = match m {
            0 | 1 => std::array::from_fn(|k| if k == m { 1.0 } else { 0.0 }),
            _ => std::array::from_fn(|k| if k > 0 { 2.0 * now[k - 1] } else { 0.0 } - before[k]),
        };
        (before, now) = (now, next);
        series.iter_mut().zip(now).for_each(|(s, t)| *s += coefficient * t);
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_and_integrals_of_the_exponential_function_are_right() {
        let series = rising_powers::<16>(chebyshev_coefficients(32, f64::exp));
        for k in 0..=20 {
            let x = 0.1 * f64::from(k) - 1.0;
            let value = series.iter().rev().fold(0.0, |sum, c| sum * x + c);
            assert!((value - x.exp()).abs() < 1e-13, "exp({x}) = {value}");
        }
        let integral: f64 = quadrature(24).iter().map(|(x, w)| w * x.exp()).sum();
        assert!((integral - 2.0 * 1f64.sinh()).abs() < 1e-14, "{integral}");
    }
}
