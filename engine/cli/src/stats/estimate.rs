//! Mean and standard error of correlated series.
//!
//! The series is divided into 64 to 127 blocks that cover all rows, with lengths that differ by at most one row, which
//! removes fast fluctuations. The value of a block is the sum of its deviations from the mean of the series, divided by the
//! mean length of a block, so that the values of all blocks have the mean 0. With m blocks and their normalized
//! autocorrelation C(t):
//!
//! * s = 1 + 2 Σ C(t), summed up to the first lag W ≥ 2 s (Sokal's window; Madras and Sokal, J. Stat. Phys. 50, 109 (1988)),
//! * s′ = s (1 + (2 W + 1)/m), corrected for the bias of an estimated mean (Wolff, Comput. Phys. Commun. 156, 143 (2004)),
//! * standard error √(s′ (1 + s′/m) c₀/m), where c₀ is the variance of the blocks,
//! * 95 % interval: the standard error times Student's quantile for m/(2 W + 1) degrees of freedom.
//!
//! The statistical inefficiency g = n error²/c₀ of the n values follows: the series has n/g independent values, and
//! g = 2τ for a correlation time of τ ≫ 1 rows.

use std::ops::Range;

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

/// A series as `shift` + `scale` · `values`, with values from −1 to 1. Fluctuations that are small compared with the mean
/// keep their digits, and squares neither overflow nor underflow.
pub struct Normalized {
    /// The median of the series, because an outlier would take the digits of all other values.
    pub shift: f64,
    /// The largest deviation from the median; 1 if all values are the same.
    pub scale: f64,
    /// The normalized values.
    pub values: Vec<f64>,
}

/// Normalizes a series; of an empty one, shift and scale are 0 and 1.
pub fn normalized(x: &[f64]) -> Normalized {
    if x.is_empty() {
        return Normalized { shift: 0.0, scale: 1.0, values: vec![] };
    }
    let shift = *x.to_vec().select_nth_unstable_by(x.len() / 2, f64::total_cmp).1;
    let largest = x.iter().fold(0.0, |m: f64, v| m.max((v - shift).abs()));
    let scale = if largest > 0.0 { largest } else { 1.0 };
    Normalized { shift, scale, values: x.iter().map(|v| (v - shift) / scale).collect() }
}

/// Returns the rows of at least 64 blocks that cover the series; of shorter series, each row.
fn blocks(n: usize) -> impl Iterator<Item = Range<usize>> {
    let count = n / (n / BLOCKS).max(1);
    (0..count).map(move |k| k * n / count..(k + 1) * n / count)
}

/// Returns the sum of the normalized autocorrelation over both signs of the lag, and the largest lag in it.
fn correlation_sum(deviations: &[f64]) -> (f64, usize) {
    let m = deviations.len();
    let c0 = deviations.iter().map(|d| d * d).sum::<f64>() / m as f64;
    let (mut sum, mut lag) = (1.0, 0);
    if c0 == 0.0 {
        return (sum, lag);
    }
    while (lag as f64) < 2.0 * f64::max(sum, 1.0) && lag < m / 2 {
        lag += 1;
        let products = deviations[..m - lag].iter().zip(&deviations[lag..]).map(|(a, b)| a * b);
        sum += 2.0 * products.sum::<f64>() / ((m - lag) as f64 * c0);
    }
    (sum.max(LEAST_SUM), lag)
}

/// Returns the standard error of the mean of a correlated series. Its values must be of the order of 1.
pub fn mean_error(x: &[f64]) -> MeanError {
    let (mean, count) = (mean_of(x), blocks(x.len()).count());
    if count < 2 {
        return MeanError { error: f64::NAN, freedom: f64::INFINITY };
    }
    let (m, length) = (count as f64, x.len() as f64 / count as f64);
    // a longer block has a larger weight in the mean
    let block = |rows: Range<usize>| x[rows].iter().map(|v| v - mean).sum::<f64>() / length;
    let deviations: Vec<f64> = blocks(x.len()).map(block).collect();
    let (sum, window) = correlation_sum(&deviations);
    let lags = (2 * window + 1) as f64;
    let s = sum * (1.0 + lags / m);
    let c0 = deviations.iter().map(|d| d * d).sum::<f64>() / m;
    MeanError { error: (s * (1.0 + s / m) * c0 / m).sqrt(), freedom: (m / lags).max(1.0) }
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

impl Drift {
    /// Returns the drift of a constant.
    pub fn none() -> Self {
        Self { change: 0.0, error: 0.0, significant: false }
    }
}

/// Fits a straight line to a series. The error is that of the block means with the correlations of the residuals. The
/// values must be of the order of 1.
pub fn drift(x: &[f64]) -> Drift {
    // middles of the blocks, in rows
    let middles: Vec<f64> = blocks(x.len()).map(|r| 0.5 * (r.start + r.end - 1) as f64).collect();
    if middles.len() < 4 {
        return Drift::none();
    }
    let b: Vec<f64> = blocks(x.len()).map(|rows| mean_of(&x[rows])).collect();
    let (m, mean, middle) = (b.len() as f64, mean_of(&b), mean_of(&middles));
    let position = |k: usize| middles[k] - middle;
    let square: f64 = (0..b.len()).map(|k| position(k).powi(2)).sum();
    let slope = b.iter().enumerate().map(|(k, v)| position(k) * (v - mean)).sum::<f64>() / square;
    let rest: Vec<f64> = b.iter().enumerate().map(|(k, v)| v - mean - slope * position(k)).collect();
    let (sum, window) = correlation_sum(&rest);
    let lags = (2 * window + 1) as f64;
    // a line has two parameters: twice the bias of a mean
    let s = sum * (1.0 + 2.0 * lags / m);
    let error = (s * (1.0 + 2.0 * s / m) * rest.iter().map(|r| r * r).sum::<f64>() / m / square).sqrt();
    let limit = quantile((m / lags - 1.0).max(1.0), Level::ThreeSigma);
    let over_series = (x.len() - 1) as f64;
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
