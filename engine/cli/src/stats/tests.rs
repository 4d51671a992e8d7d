//! Synthetic series whose means are known.

use super::*;
use crate::output::series::SeriesCells;
use rayon::prelude::*;

/// Pseudorandom numbers.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a normal number with mean 0 and variance 1 (Box and Muller).
    fn normal(&mut self) -> f64 {
        let (a, b) = (1.0 - self.uniform(), self.uniform());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    /// Returns a stationary autoregressive series of variance 1: C(t) = φᵗ, g = (1 + φ)/(1 − φ).
    fn ar1(&mut self, n: usize, phi: f64) -> Vec<f64> {
        let (mut x, scale) = (self.normal(), (1.0 - phi * phi).sqrt());
        let mut next = || {
            x = phi * x + scale * self.normal();
            x
        };
        (0..n).map(|_| next()).collect()
    }

    /// Returns a damped oscillation driven by noise: C(t) decays as rᵗ and has the given period.
    fn oscillation(&mut self, n: usize, r: f64, period: f64) -> Vec<f64> {
        let (a1, a2) = (2.0 * r * (std::f64::consts::TAU / period).cos(), -r * r);
        let (mut x, mut before) = (0.0, 0.0);
        let mut next = || {
            (x, before) = (a1 * x + a2 * before + 0.1 * self.normal(), x);
            x
        };
        (0..n + 2000).map(|_| next()).skip(2000).collect()
    }
}

/// Returns the statistics of a series as that of a table.
fn statistics(x: &[f64], skip: Skip) -> Statistics {
    table_of(&[x], skip).remove(0)
}

/// Returns the statistics of the columns of a table.
fn table_of(columns: &[&[f64]], skip: Skip) -> Vec<Statistics> {
    let column = |(k, x): (usize, &&[f64])| SeriesColumn {
        name: format!("c{k}"),
        unit: None,
        cells: SeriesCells::Numbers(x.to_vec()),
    };
    let columns = columns.iter().enumerate().map(column).collect();
    of_series(&Series { path: PathBuf::new(), columns, cut: false }, &[], skip).expect("statistics")
}

/// A stationary series of mean 0.
type Stationary = fn(&mut Noise) -> Vec<f64>;

/// White, fast, and slow series (20 independent values), a slow part below white noise, and an oscillation.
const STATIONARY: [(&str, Stationary); 6] = [
    ("white", |s| s.ar1(1000, 0.0)),
    ("fast", |s| s.ar1(4000, 0.9)),
    ("slow", |s| s.ar1(400, 0.9)),
    ("very slow", |s| s.ar1(2000, 0.98)),
    ("hidden", |s| s.ar1(3000, 0.98).iter().map(|x| 0.1f64.sqrt() * x + 0.9f64.sqrt() * s.normal()).collect()),
    ("oscillating", |s| s.oscillation(2000, 0.97, 30.0)),
];

/// Returns how many of `count` intervals contain 0, the mean of the stationary series, after `change` of its rows.
fn covered(series: Stationary, seed: u64, count: usize, change: impl Fn(usize, usize) -> f64) -> f64 {
    let mut noise = Noise(seed);
    let hits = (0..count).filter(|_| {
        let mut x = series(&mut noise);
        let n = x.len();
        x.iter_mut().enumerate().for_each(|(k, v)| *v += change(k, n));
        let s = statistics(&x, Skip::Auto);
        s.mean.abs() < s.error.interval()
    });
    hits.count() as f64 / count as f64
}

#[test]
fn the_true_mean_is_in_95_of_100_intervals() {
    STATIONARY.into_par_iter().enumerate().for_each(|(k, (name, series))| {
        // 1000 series: the share scatters by 0.7 %
        let share = covered(series, 7919 + k as u64, 1000, |_, _| 0.0);
        assert!((0.93..=0.97).contains(&share), "{name}: {share}");
        // a change that is not left out moves the mean by many standard errors: 200 series show it, whose share scatters by
        // √(0.95 · 0.05 / 200) = 1.5 %
        let changed = |what: &str, share: f64| assert!((0.888..=1.0).contains(&share), "{name} after {what}: {share}");
        // one value that is 1000 standard deviations off: the first row of a melt of overlapping chains
        let one = |row: usize, _: usize| if row == 0 { 1000.0 } else { 0.0 };
        changed("an outlier", covered(series, 104_729 + k as u64, 200, one));
        // a transient of 20 standard deviations that decays over 2.5 % of the rows
        let decay = |row: usize, n: usize| 20.0 * (-40.0 * row as f64 / n as f64).exp();
        changed("a transient", covered(series, 15_485_863 + k as u64, 200, decay));
    });
}

#[test]
fn series_out_of_equilibrium_are_called_so() {
    for (k, (name, series)) in STATIONARY.into_iter().enumerate() {
        let mut noise = Noise(31 + k as u64);
        let mut called = |change: &dyn Fn(f64) -> f64| {
            let drifts = |_| {
                let mut x = series(&mut noise);
                let n = x.len() as f64;
                x.iter_mut().enumerate().for_each(|(k, v)| *v += change(k as f64 / n));
                statistics(&x, Skip::Auto).remarks().join("; ")
            };
            let remarks: Vec<String> = (0..200).map(drifts).collect();
            let called = remarks.iter().filter(|r| r.starts_with("not equilibrated: ")).count();
            (called, remarks.iter().filter(|r| !r.is_empty()).count())
        };
        // stationary series: 0.27 % have a drift of three standard errors
        let still = called(&|_| 0.0).0;
        // a few ramps are indistinguishable from the fluctuations of 20 independent values; their number is bounded
        let (ramps, remarks) = called(&|t| 20.0 * t);
        assert!(still <= 4 && ramps >= 170 && remarks >= 198, "{name}: {still}; {ramps} and {remarks} of 200");
    }
}

#[test]
fn all_columns_start_together_without_those_that_drift() {
    let mut noise = Noise(5);
    let (still, slow) = (noise.ar1(2000, 0.5), noise.ar1(2000, 0.5));
    let decaying: Vec<f64> = slow.iter().enumerate().map(|(k, v)| v + 20.0 * (-(k as f64) / 60.0).exp()).collect();
    let ramp: Vec<f64> = still.iter().enumerate().map(|(k, v)| v + 0.05 * k as f64).collect();
    let constant = vec![1_176.470_588_235_3; 2000];
    let all = table_of(&[&still, &decaying, &ramp, &constant], Skip::Auto);
    assert!(all.iter().all(|s| s.skipped == all[1].equilibration.start), "{all:?}");
    // 20 exp(−t/60) falls below one standard deviation at row 180 and below 0.1 at 320
    assert!((180..900).contains(&all[0].skipped), "{}", all[0].skipped);
    let remarks: Vec<String> = all.iter().map(|s| s.remarks().join("; ")).collect();
    assert_eq!(remarks, ["", "", "not equilibrated: drift", "constant"]);
    assert_eq!((all[3].rounded().as_str(), all[3].error.interval()), ("1176.47059", 0.0));
    let from_the_start = statistics(&decaying, Skip::Rows(0)).remarks().join("; ");
    assert!(from_the_start.contains("equilibrated from row "), "{from_the_start}");
    // rounding errors of a constant are no fluctuations
    let rounded: Vec<f64> = (0..100).map(|k| 1_176.470_588_235_3 * (1.0 + 1e-16 * f64::from(k % 7))).collect();
    assert!(statistics(&rounded, Skip::Auto).constant);
}

#[test]
fn standard_errors_of_correlated_series_are_right() {
    for (phi, n) in [(0.0, 4096), (0.8, 8192), (0.95, 16384)] {
        let (mut noise, known) = (Noise(17), (1.0 + phi) / (1.0 - phi));
        let (mut mean, mut square) = (0.0, 0.0);
        for _ in 0..200 {
            let s = statistics(&noise.ar1(n, phi), Skip::Rows(0));
            mean += s.inefficiency / 200.0;
            square += s.inefficiency.powi(2) / 200.0;
        }
        let deviation = (square - mean * mean).sqrt() / 200f64.sqrt();
        // 5 %: the bias of windows of finite series
        assert!((mean / known - 1.0).abs() < 0.05 + 3.0 * deviation / known, "φ {phi}: g {mean}, known {known}");
    }
}

#[test]
fn drifts_are_distinguished_from_noise() {
    let (n, mut noise) = (4000, Noise(3));
    let (mut significant, mut found) = (0, 0);
    for _ in 0..200 {
        let x = noise.ar1(n, 0.9);
        significant += u32::from(drift(&x).significant);
        let tilted: Vec<f64> = x.iter().enumerate().map(|(k, v)| v + 3.0 * k as f64 / n as f64).collect();
        let d = drift(&tilted);
        found += u32::from(d.significant);
        // standard error √(12 · 19/4000) = 0.24
        assert!((d.change - 3.0).abs() < 5.0 * 0.24, "{d:?}");
    }
    assert!(found >= 196, "{found} of 200 drifts of twelve standard errors");
    // 0.27 % of 200, with the scatter of a Poisson distribution
    assert!(significant <= 4, "{significant} of 200");
}

#[test]
fn degenerate_series_are_handled() {
    let s = statistics(&[2.0; 10], Skip::Rows(0));
    assert_eq!((s.mean, s.error.error, s.drift_in_errors(), s.constant), (2.0, 0.0, 0.0, true));
    assert!(table_of(&[&[1.0, f64::NAN, 2.0, 3.0]], Skip::Rows(0)).is_empty());
    assert!(table_of(&[&[1.0; 10]], Skip::Rows(8)).is_empty());
    let gaps: Vec<f64> = (0..40).map(|k| if k % 4 == 0 { f64::NAN } else { f64::from(k * 7 % 5) }).collect();
    assert_eq!(statistics(&gaps, Skip::Rows(20)).rows, 15);
}

#[test]
fn all_rows_are_in_the_standard_error() {
    // 129 rows: one of the 64 blocks has three rows
    let mut x: Vec<f64> = (0..129).map(|k| f64::from(k % 2)).collect();
    let naive = 50.0 / 129.0;
    for row in [0, 1, 64, 127, 128] {
        let old = std::mem::replace(&mut x[row], 50.0);
        let s = statistics(&x, Skip::Rows(0));
        assert!((s.error.error / naive - 1.0).abs() < 0.3, "50 in row {row}: {}", s.error.error);
        x[row] = old;
    }
}

#[test]
fn fluctuations_of_any_size_have_errors() {
    let mut noise = Noise(23);
    for (mean, deviation, n) in [(1e5, 1e-7, 2000), (1e9, 1e-3, 20_000), (0.0, 1e-300, 2000), (1e200, 1e199, 2000)] {
        let x: Vec<f64> = noise.ar1(n, 0.0).iter().map(|v| mean + deviation * v).collect();
        let s = statistics(&x, Skip::Rows(0));
        let expected = deviation / (n as f64).sqrt();
        assert!((0.5..2.2).contains(&(s.error.error / expected)), "{mean} ± {deviation}: {s:?}");
        assert!((s.mean - mean).abs() < 5.0 * expected, "{mean} ± {deviation}: {s:?}");
        assert!((s.deviation / deviation - 1.0).abs() < 0.1 && !s.constant, "{mean} ± {deviation}: {s:?}");
        assert!(
            (0.25..5.0).contains(&s.inefficiency) && s.drift_in_errors().is_finite(),
            "{mean} ± {deviation}: {s:?}"
        );
    }
}

#[test]
fn rows_without_numbers_are_no_equilibration() {
    let ramp = [f64::NAN, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
    assert_eq!(statistics(&ramp, Skip::Rows(0)).remarks(), ["not equilibrated: drift"]);
}

/// A quarter of the rows have other forces, as the push-off of a melt. The rows after those that are skipped are judged alone.
#[test]
fn a_transient_before_the_rows_used_does_not_count() {
    let mut noise = Noise(41);
    let still: Vec<f64> = (0..160).map(|_| noise.uniform()).collect();
    let changed =
        |change: fn(usize) -> f64| -> Vec<f64> { still.iter().enumerate().map(|(k, v)| v + change(k)).collect() };
    let (step, ramp) = (changed(|k| if k < 40 { 20.0 } else { 0.0 }), changed(|k| 0.1 * k as f64));
    for (x, skip, expected) in [
        (&step, Skip::Auto, "not equilibrated: transient until row 40"),
        (&step, Skip::Rows(39), "not equilibrated: transient until row 40"),
        (&step, Skip::Rows(80), ""),
        (&step, Skip::Rows(120), ""),
        (&ramp, Skip::Auto, "not equilibrated: drift"),
        (&ramp, Skip::Rows(80), "not equilibrated: drift"),
    ] {
        assert_eq!(statistics(x, skip).remarks().join("; "), expected, "{skip:?}");
    }
}
