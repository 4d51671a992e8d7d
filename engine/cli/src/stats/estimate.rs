//! Mean and standard error of correlated series.
//!
//! The series is averaged over 64 to 127 blocks of equal length, which removes fast fluctuations. With m blocks and their
//! normalized autocorrelation C(t):
//!
//! * s = 1 + 2 Σ C(t), summed up to the first lag W ≥ 2 s (Sokal's window; Madras and Sokal, J. Stat. Phys. 50, 109 (1988)),
//! * s′ = s (1 + (2 W + 1)/m), corrected for the bias of an estimated mean (Wolff, Comput. Phys. Commun. 156, 143 (2004)),
//! * standard error √(s′ (1 + s′/m) c₀/m), where c₀ is the variance of the blocks,
//! * 95 % interval: the standard error times Student's quantile for m/(2 W + 1) degrees of freedom.
//!
//! The statistical inefficiency g = n error²/c₀ of the n values follows: the series has n/g independent values, and
//! g = 2τ for a correlation time of τ ≫ 1 rows.

/// Least number of blocks of a series with as many values.
const BLOCKS: usize = 64;
/// Lower bound of s, for series whose neighboring blocks are anticorrelated.
const LEAST_SUM: f64 = 0.3;

/// Standard error of a mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanError {
    /// Standard error.
    pub error: f64,
    /// Degrees of freedom of its estimate.
    pub freedom: f64,
}

impl MeanError {
    /// Returns half the width of the 95 % interval.
    pub fn interval(&self) -> f64 {
        if self.error == 0.0 { 0.0 } else { self.error * quantile(self.freedom, Level::Percent95) }
    }
}

/// Returns the mean.
pub fn mean_of(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

/// Returns the mean-square deviation from the mean.
pub fn variance(x: &[f64]) -> f64 {
    let m = mean_of(x);
    x.iter().map(|v| (v - m).powi(2)).sum::<f64>() / x.len() as f64
}

/// Returns whether all values are the same up to rounding.
pub fn is_constant(x: &[f64]) -> bool {
    let (low, high) = x.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
    high - low <= 1e-12 * high.abs().max(low.abs())
}

/// Returns the means of at least 64 blocks that cover the end of the series; of shorter series, the values.
pub fn blocks(x: &[f64]) -> Vec<f64> {
    let width = (x.len() / BLOCKS).max(1);
    let used = x.len() / width * width;
    x[x.len() - used..].chunks_exact(width).map(mean_of).collect()
}

/// Returns the sum of the normalized autocorrelation over both signs of the lag, and the largest lag in it.
fn correlation_sum(deviations: &[f64]) -> (f64, usize) {
    let m = deviations.len();
    let c0 = deviations.iter().map(|d| d * d).sum::<f64>() / m as f64;
    let (mut sum, mut lag) = (1.0, 0);
    while (lag as f64) < 2.0 * f64::max(sum, 1.0) && lag < m / 2 {
        lag += 1;
        let products = deviations[..m - lag].iter().zip(&deviations[lag..]).map(|(a, b)| a * b);
        sum += 2.0 * products.sum::<f64>() / ((m - lag) as f64 * c0);
    }
    (sum.max(LEAST_SUM), lag)
}

/// Returns the standard error of the mean of a correlated series.
pub fn mean_error(x: &[f64]) -> MeanError {
    let b = blocks(x);
    if b.len() < 2 || is_constant(&b) {
        return MeanError { error: if b.len() < 2 { f64::NAN } else { 0.0 }, freedom: f64::INFINITY };
    }
    let (m, mean) = (b.len() as f64, mean_of(&b));
    let deviations: Vec<f64> = b.iter().map(|v| v - mean).collect();
    let (sum, window) = correlation_sum(&deviations);
    let lags = (2 * window + 1) as f64;
    let s = sum * (1.0 + lags / m);
    MeanError { error: (s * (1.0 + s / m) * variance(&b) / m).sqrt(), freedom: (m / lags).max(1.0) }
}

/// Returns by which factor correlations of the residuals of a fit with `parameters` parameters enlarge its variances; at
/// least 1.
pub fn residual_correlation(residuals: &[f64], parameters: usize) -> f64 {
    if residuals.len() < 4 || residuals.iter().all(|r| *r == 0.0) {
        return 1.0;
    }
    let (sum, window) = correlation_sum(residuals);
    (sum * (1.0 + parameters as f64 * (2 * window + 1) as f64 / residuals.len() as f64)).max(1.0)
}

/// A straight line fitted to a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Change over the series.
    pub change: f64,
    /// Standard error of the change.
    pub error: f64,
    /// Whether the change exceeds what noise causes in 99.7 % of all series.
    pub significant: bool,
}

/// Fits a straight line. The error is that of the block means with the correlations of the residuals.
pub fn drift(x: &[f64]) -> Drift {
    let b = blocks(x);
    let (m, mean, middle) = (b.len() as f64, mean_of(&b), 0.5 * (b.len() as f64 - 1.0));
    let none = Drift { change: 0.0, error: 0.0, significant: false };
    if b.len() < 4 || is_constant(&b) {
        return none;
    }
    let position = |k: usize| k as f64 - middle;
    let square: f64 = (0..b.len()).map(|k| position(k).powi(2)).sum();
    let slope = b.iter().enumerate().map(|(k, v)| position(k) * v).sum::<f64>() / square;
    let rest: Vec<f64> = b.iter().enumerate().map(|(k, v)| v - mean - slope * position(k)).collect();
    let (sum, window) = correlation_sum(&rest);
    let lags = (2 * window + 1) as f64;
    // a line has two parameters: twice the bias of a mean
    let s = sum * (1.0 + 2.0 * lags / m);
    let error = (s * (1.0 + 2.0 * s / m) * rest.iter().map(|r| r * r).sum::<f64>() / m / square).sqrt();
    let limit = quantile((m / lags - 1.0).max(1.0), Level::ThreeSigma);
    let over_series = m * (1.0 - 1.0 / x.len() as f64);
    Drift { change: slope * over_series, error: error * over_series, significant: slope.abs() > limit * error }
}

/// A two-sided confidence level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// 95 %.
    Percent95,
    /// 99.73 %, three standard deviations of a normal distribution.
    ThreeSigma,
}

/// Student's two-sided quantiles for 95 % and 99.73 %.
const QUANTILES: [(f64, f64, f64); 15] = [
    (1.0, 12.7062, 235.7837),
    (1.5, 6.0167, 42.7179),
    (2.0, 4.3027, 19.2060),
    (2.5, 3.5747, 12.2418),
    (3.0, 3.1824, 9.2187),
    (4.0, 2.7764, 6.6201),
    (5.0, 2.5706, 5.5070),
    (6.0, 2.4469, 4.9040),
    (8.0, 2.3060, 4.2766),
    (10.0, 2.2281, 3.9569),
    (14.0, 2.1448, 3.6358),
    (20.0, 2.0860, 3.4221),
    (40.0, 2.0211, 3.1987),
    (100.0, 1.9840, 3.0767),
    (f64::INFINITY, 1.9600, 3.0000),
];

/// Returns Student's quantile, interpolated linearly in the inverse of the degrees of freedom. The interpolation is at most
/// 3 % high from two degrees of freedom on.
pub fn quantile(freedom: f64, level: Level) -> f64 {
    let of = |row: &(f64, f64, f64)| if level == Level::Percent95 { row.1 } else { row.2 };
    let pair = QUANTILES.windows(2).find(|w| freedom < w[1].0);
    let Some([low, high]) = pair else { return of(&QUANTILES[QUANTILES.len() - 1]) };
    if freedom <= low.0 {
        return of(low);
    }
    let share = (1.0 / low.0 - 1.0 / freedom) / (1.0 / low.0 - 1.0 / high.0);
    of(low) + share * (of(high) - of(low))
}
