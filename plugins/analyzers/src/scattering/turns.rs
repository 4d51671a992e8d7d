//! cos 2πx, bit-identical on every device: products and sums are rounded separately, as in `cosine.cuh`.

/// Coefficients (−1)^k (2π)^(2k)/(2k)! for k = 0 … 12: cos 2πy for y ≤ ¼ to 10⁻¹⁶.
pub const SERIES: [f64; 13] = series();

const fn series() -> [f64; 13] {
    const TAU2: f64 = 39.478_417_604_357_43;
    let mut all = [1.0; 13];
    let mut k = 1;
    while k < 13 {
        all[k] = -all[k - 1] * TAU2 / ((2 * k - 1) * (2 * k)) as f64;
        k += 1;
    }
    all
}

/// Returns cos 2πx.
#[inline]
pub fn cosine(x: f64) -> f64 {
    let y = (x - x.round_ties_even()).abs();
    let far = y > 0.25;
    let y = if far { 0.5 - y } else { y };
    let z = y * y;
    let mut sum = SERIES[12];
    for c in SERIES[..12].iter().rev() {
        sum = sum * z + *c;
    }
    if far { -sum } else { sum }
}

/// Returns the same function in CUDA C++.
pub fn text() -> String {
    let constants: String = SERIES.iter().enumerate().map(|(k, c)| format!("#define COSINE_{k} {c:?}\n")).collect();
    constants + include_str!("cosine.cuh")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_matches_the_cosine() {
        for k in -3000..3000 {
            let x = f64::from(k) * 0.001_234_5;
            let exact = (std::f64::consts::TAU * (x - x.round())).cos();
            assert!((cosine(x) - exact).abs() < 4e-16, "cos 2π{x}: {} and {exact}", cosine(x));
        }
    }
}
