//! An internal coordinate of isolated molecules against its exact distribution.

use super::*;

/// Bins of a histogram.
const BINS: usize = 16;
/// Values among which one is independent, at least: frames follow each other closely.
const CORRELATED: f64 = 10.0;

/// A function of one coordinate.
pub type Function<'a> = &'a dyn Fn(f64) -> f64;

/// The distribution of a coordinate: its density, without a factor, on low … high, and what is averaged beside it.
pub struct Distribution<'a> {
    pub name: &'a str,
    pub density: Function<'a>,
    pub range: (f64, f64),
    /// Name, function and tolerance of each mean.
    pub means: &'a [(&'a str, Function<'a>, f64)],
}

impl Distribution<'_> {
    /// The means with their standard deviations, and the shares of the bins, by Simpson's rule.
    fn quadrature(&self) -> (Vec<(f64, f64)>, [f64; BINS]) {
        const N: usize = 2000;
        let (low, high) = self.range;
        let h = (high - low) / (BINS * N) as f64;
        let (mut norm, mut sums, mut shares) = (0.0, vec![[0.0; 2]; self.means.len()], [0.0; BINS]);
        for (bin, share) in shares.iter_mut().enumerate() {
            for k in 0..=N {
                let x = low + (bin * N + k) as f64 * h;
                let simpson = if k == 0 || k == N { 1.0 } else { 2.0 + 2.0 * (k % 2) as f64 };
                let w = simpson * (self.density)(x);
                norm += w;
                *share += w;
                for (sum, (_, f, _)) in sums.iter_mut().zip(self.means) {
                    sum[0] += w * f(x);
                    sum[1] += w * f(x).powi(2);
                }
            }
        }
        let moments = |s: &[f64; 2]| (s[0] / norm, (s[1] / norm - (s[0] / norm).powi(2)).max(0.0).sqrt());
        (sums.iter().map(moments).collect(), shares.map(|s| s / norm))
    }

    /// Runs a plan, with a frame every `every` steps after as many as ten frames, and holds what `read` gives of each
    /// frame, one value a molecule, against the distribution.
    pub fn holds(&self, plan: &Plan, frames: usize, every: u64, read: &dyn Fn(&[[f64; 3]]) -> Vec<f64>) {
        let mut b = backend(plan);
        b.begin_stage(&plan.stages[0], false).expect("a stage");
        advance(&mut *b, 10 * every);
        let (low, high) = self.range;
        let (mut rows, mut shares) = (vec![vec![]; self.means.len()], vec![vec![]; BINS]);
        let mut molecules = 0;
        for _ in 0..frames {
            advance(&mut *b, every);
            let values = read(&columns(&mut *b).position);
            molecules = values.len();
            for (row, (_, f, _)) in rows.iter_mut().zip(self.means) {
                row.push(values.iter().map(|x| f(*x)).sum::<f64>() / molecules as f64);
            }
            for (bin, share) in shares.iter_mut().enumerate() {
                let edge = |k: usize| low + (high - low) * k as f64 / BINS as f64;
                let inside = values.iter().filter(|x| (edge(bin)..edge(bin + 1)).contains(*x)).count();
                share.push(inside as f64 / molecules as f64);
            }
        }
        let (means, exact) = self.quadrature();
        // one of CORRELATED values is independent at least
        let independent = (molecules * frames) as f64 / CORRELATED;
        for ((row, (what, _, tolerance)), (mean, deviation)) in rows.iter().zip(self.means).zip(means) {
            // eight standard errors: 0.07 standard deviations of one value for 120 frames of 1,000 molecules
            let detects = 8.0 * deviation / independent.sqrt() + tolerance;
            holds(&format!("{}: {what}", self.name), row, mean, *tolerance, detects);
        }
        let mut chi2 = 0.0;
        for (bin, (share, p)) in shares.iter().zip(exact).enumerate() {
            let (m, error) = estimate(share);
            let largest = (p * (1.0 - p) / independent).sqrt();
            assert!(error <= largest, "{}, bin {bin}: ± {error} is too noisy; ± {largest} is needed", self.name);
            // what as many independent values would have
            let error = error.max((p * (1.0 - p) / (molecules * frames) as f64).sqrt());
            chi2 += ((m - p) / error).powi(2);
            assert!((m - p).abs() < 4.5 * error + 5e-4, "{}, bin {bin}: {m} ± {error}, reference {p}", self.name);
        }
        let outside = 1.0 - shares.iter().map(|s| mean(s)).sum::<f64>();
        println!("{} {:?} | {}: χ² of {BINS} bins {chi2:.1}, outside {outside:.1e}", precision(), device(), self.name);
        // χ² of 16 bins exceeds 50 with a probability of 2e-5
        assert!(chi2 < 50.0 && outside < 1e-3, "{}: χ² {chi2}, outside {outside}", self.name);
    }
}

/// a − b to the nearest image, in a box of equal lengths.
pub fn between(a: [f64; 3], b: [f64; 3], length: f64) -> [f64; 3] {
    std::array::from_fn(|k| {
        let x = a[k] - b[k];
        x - length * (x / length).round()
    })
}

pub fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}
