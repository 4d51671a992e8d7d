//! Averages, jackknife errors, fits, and output tables.

use crate::sums::{Layout, NO_SCALE, NUMBERS, Totals};
use std::f64::consts::LN_2;
use std::fmt::Write as _;

/// Averages over chains of n monomers: chains, ln Z, effective number of chains, R², R_g², contacts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Average {
    pub chains: f64,
    pub ln_z: f64,
    pub effective: f64,
    /// R², R_g², contacts.
    pub means: [f64; 3],
}

/// Computes the averages at n monomers over all contact bins with weights e^{contacts × beta}, optionally without one
/// block.
pub fn average(l: &Layout, t: &Totals, n: usize, beta: f64, without: Option<usize>) -> Option<Average> {
    let rows = (n - 1) * l.width..n * l.width;
    let blocks = || (0..l.blocks).filter(|b| Some(*b) != without);
    let begun: u64 = blocks().map(|b| t.begun[b]).sum();
    let tilt = |row: usize| (row % l.width) as f64 * beta / LN_2;
    let log = |row: usize| f64::from(t.scale[row]) + tilt(row);
    let known = || rows.clone().filter(|row| t.scale[*row] != NO_SCALE);
    let largest = known().map(log).fold(f64::NEG_INFINITY, f64::max);
    let mut sum = [0.0; NUMBERS];
    for row in known() {
        let f = (log(row) - largest).exp2();
        for b in blocks() {
            let from = &t.rows[(b * l.rows() + row) * NUMBERS..][..NUMBERS];
            sum[0] += from[0];
            sum[1] += f * from[1];
            sum[2] += f * f * from[2];
            (3..6).for_each(|k| sum[k] += f * from[k]);
        }
    }
    let [chains, w, w2, ..] = sum;
    (begun > 0 && w > 0.0).then(|| Average {
        chains,
        ln_z: (w / begun as f64).ln() + largest * LN_2,
        effective: w * w / w2,
        means: [sum[3] / w, sum[4] / w, sum[5] / w],
    })
}

/// A value with its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub error: f64,
}

/// Computes the jackknife error of `f`, which gets the block to omit.
pub fn jackknife(l: &Layout, f: impl Fn(Option<usize>) -> Option<f64>) -> Option<Estimate> {
    let value = f(None)?;
    let left: Vec<f64> = (0..l.blocks).filter_map(|b| f(Some(b))).collect();
    let n = left.len() as f64;
    let mean = left.iter().sum::<f64>() / n;
    let square: f64 = left.iter().map(|x| (x - mean).powi(2)).sum();
    let error = if left.len() < l.blocks { f64::INFINITY } else { ((n - 1.0) / n * square).sqrt() };
    Some(Estimate { value, error })
}

/// Returns the default numbers of monomers in tables: all up to 64, then about 16 per doubling.
pub fn lengths(n: usize) -> Vec<usize> {
    let mut out = vec![];
    let mut k = 2;
    while k < n {
        out.push(k);
        k += if k < 64 { 1 } else { k / 16 };
    }
    out.push(n);
    out
}

/// Returns averages at n monomers, and ln Z, R², R_g², and contacts with their errors.
fn row(l: &Layout, t: &Totals, n: usize, beta: f64) -> Option<(Average, [Estimate; 4])> {
    let all = average(l, t, n, beta, None)?;
    let left: Vec<Option<Average>> = (0..l.blocks).map(|b| average(l, t, n, beta, Some(b))).collect();
    let of = |f: &dyn Fn(&Average) -> f64| {
        let one = |without: Option<usize>| without.map_or(Some(all), |b| left[b]).map(|a| f(&a));
        jackknife(l, one).unwrap_or(Estimate { value: f64::NAN, error: f64::NAN })
    };
    let rows = [of(&|a| a.ln_z), of(&|a| a.means[0]), of(&|a| a.means[1]), of(&|a| a.means[2])];
    Some((all, rows))
}

/// Formats the table of averages as CSV; `counted`: contacts were counted.
pub fn table(l: &Layout, t: &Totals, lengths: &[usize], counted: bool) -> String {
    let mut out = String::from(
        "monomers,begun,chains,ln_Z,ln_Z_error,R2,R2_error,Rg2,Rg2_error,contacts,contacts_error,effective\n",
    );
    let begun: u64 = t.begun.iter().sum();
    for n in lengths {
        let Some((a, [z, r, g, mut c])) = row(l, t, *n, 0.0) else {
            let _ = writeln!(out, "{n},{begun},0,NaN,NaN,NaN,NaN,NaN,NaN,NaN,NaN,0");
            continue;
        };
        if !counted {
            c = Estimate { value: f64::NAN, error: f64::NAN };
        }
        let _ = writeln!(
            out,
            "{n},{begun},{},{:.9},{:.3e},{:.9},{:.3e},{:.9},{:.3e},{:.9},{:.3e},{:.1}",
            a.chains, z.value, z.error, r.value, r.error, g.value, g.error, c.value, c.error, a.effective
        );
    }
    out
}

/// Formats averages at several temperatures as CSV, with kT in units of ε.
pub fn scan(l: &Layout, t: &Totals, lengths: &[usize], temperatures: &[f64]) -> String {
    let mut out = String::from("kT,monomers,ln_Z,ln_Z_error,R2,R2_error,Rg2,Rg2_error,contacts,contacts_error\n");
    for kt in temperatures {
        for n in lengths {
            let Some((_, [z, r, g, c])) = row(l, t, *n, 1.0 / kt) else { continue };
            let _ = writeln!(
                out,
                "{kt},{n},{:.9},{:.3e},{:.9},{:.3e},{:.9},{:.3e},{:.9},{:.3e}",
                z.value, z.error, r.value, r.error, g.value, g.error, c.value, c.error
            );
        }
    }
    out
}

/// Weighted least squares by the normal equations: y = Σ p_k x_k.
fn least_squares<const P: usize>(points: &[([f64; P], f64, f64)]) -> Option<[f64; P]> {
    let mut m = [[0.0; P]; P];
    let mut v = [0.0; P];
    for (x, y, w) in points {
        for i in 0..P {
            v[i] += w * x[i] * y;
            (0..P).for_each(|j| m[i][j] += w * x[i] * x[j]);
        }
    }
    for i in 0..P {
        let p = (i..P).max_by(|a, b| m[*a][i].abs().total_cmp(&m[*b][i].abs()))?;
        m.swap(i, p);
        v.swap(i, p);
        if m[i][i] == 0.0 {
            return None;
        }
        for j in i + 1..P {
            let f = m[j][i] / m[i][i];
            (i..P).for_each(|k| m[j][k] -= f * m[i][k]);
            v[j] -= f * v[i];
        }
    }
    for i in (0..P).rev() {
        let known: f64 = (i + 1..P).map(|k| m[i][k] * v[k]).sum();
        v[i] = (v[i] - known) / m[i][i];
    }
    Some(v)
}

/// Fits μ, γ, and ν over a range of numbers of monomers.
pub fn fits(l: &Layout, t: &Totals, [from, to]: [usize; 2], beta: f64) -> Vec<(&'static str, Estimate)> {
    let errors: Vec<Option<[Estimate; 4]>> = (from..=to).map(|n| row(l, t, n, beta).map(|r| r.1)).collect();
    // power laws are in the number of steps; the next term of the series is 1/steps
    let series = |n: usize| ((n - 1) as f64).ln();
    let of_z = |without: Option<usize>| {
        let mut points = vec![];
        for (k, e) in errors.iter().enumerate() {
            let (n, e) = (from + k, (*e)?);
            let steps = (n - 1) as f64;
            let a = average(l, t, n, beta, without)?;
            points.push(([1.0, steps, series(n), 1.0 / steps], a.ln_z, 1.0 / e[0].error.powi(2).max(1e-18)));
        }
        least_squares(&points)
    };
    let of_r = |which: usize, without: Option<usize>| {
        let mut points = vec![];
        for (k, e) in errors.iter().enumerate() {
            let (n, e) = (from + k, (*e)?);
            let a = average(l, t, n, beta, without)?;
            let relative = e[1 + which].error / a.means[which];
            points.push((
                [1.0, series(n), 1.0 / (n - 1) as f64],
                a.means[which].ln(),
                1.0 / relative.powi(2).max(1e-18),
            ));
        }
        least_squares(&points)
    };
    let all = [
        ("mu", jackknife(l, |b| Some(of_z(b)?[1].exp()))),
        ("gamma", jackknife(l, |b| Some(of_z(b)?[2] + 1.0))),
        ("nu_R", jackknife(l, |b| Some(0.5 * of_r(0, b)?[1]))),
        ("nu_Rg", jackknife(l, |b| Some(0.5 * of_r(1, b)?[1]))),
    ];
    all.into_iter().filter_map(|(name, e)| Some((name, e?))).collect()
}

/// Finds, by bisection, the temperature at which R²/steps is equal for chains of n and n/2 monomers.
pub fn theta(l: &Layout, t: &Totals, [low, high]: [f64; 2]) -> Option<Estimate> {
    let half = l.n / 2;
    jackknife(l, |without| {
        let excess = |kt: f64| {
            let per_step = |n: usize| Some(average(l, t, n, 1.0 / kt, without)?.means[0] / (n - 1) as f64);
            Some(per_step(l.n)? - per_step(half)?)
        };
        let (mut a, mut b) = (low, high);
        if excess(a)? > 0.0 || excess(b)? < 0.0 {
            return None;
        }
        for _ in 0..50 {
            let middle = 0.5 * (a + b);
            if excess(middle)? < 0.0 { a = middle } else { b = middle }
        }
        Some(0.5 * (a + b))
    })
}

/// Formats the histogram of distances as CSV.
pub fn histogram(l: &Layout, t: &Totals, width: f64) -> String {
    let mut out = String::from("r,density,error\n");
    let sum = |bin: Option<usize>, without: Option<usize>| -> f64 {
        let blocks = (0..l.blocks).filter(|b| Some(*b) != without);
        blocks.map(|b| &t.bins[b * l.bins..][..l.bins]).map(|h| bin.map_or(h.iter().sum(), |k| h[k])).sum()
    };
    for bin in 0..l.bins {
        let density = |without| {
            let all = sum(None, without);
            (all > 0.0).then(|| sum(Some(bin), without) / (all * width))
        };
        let Some(e) = jackknife(l, density) else { continue };
        let _ = writeln!(out, "{:.6},{:.9e},{:.3e}", (bin as f64 + 0.5) * width, e.value, e.error);
    }
    out
}
