//! Time correlation of orientations.

use crate::orientation::chosen::{need_orientations, quaternions, selected_types, tags};
use galamost_measure::{bytes, header, numbers, replace};
use galamost_plugin_api::prelude::*;
use std::path::PathBuf;

/// Measures the time correlation of particle axes, C1(t) = ⟨n_i(0)·n_i(t)⟩ and C2(t) = ⟨(3 (n_i(0)·n_i(t))² − 1)/2⟩.
///
/// Every sample is an origin for the following `lags` samples. `file` is a CSV table that is replaced after each
/// sample: `lag` (steps), `time` (mean time between the two samples), `C1`, `C2`, `origins` (number of origins
/// averaged; they overlap, so they are not independent).
///
/// A free rotor with rotational diffusion has C1 = exp(−2 D_r t) and C2 = exp(−6 D_r t). Memory: 12 bytes × particles ×
/// lags, also in checkpoints. The system must have three dimensions.
///
/// ```ron
/// OrientationCorrelation(every: 100, file: "orientation-correlation.csv", lags: 50)
/// ```
#[component(Analyzer, "OrientationCorrelation")]
#[derive(Debug, Params)]
pub struct OrientationCorrelation {
    /// Steps between samples.
    #[param(at_least = 1.0)]
    every: u64,
    /// Output file.
    file: String,
    /// Longest lag, in samples.
    #[param(at_least = 1, at_most = 100_000)]
    lags: u32,
    /// Particle types to consider; default: all.
    types: Option<Spanned<Vec<String>>>,
    #[param(skip)]
    selected: Vec<bool>,
    #[param(skip)]
    path: PathBuf,
    /// Last samples, newest last: time and axes.
    #[param(skip)]
    samples: std::collections::VecDeque<(f64, Vec<[f32; 3]>)>,
    /// For each lag: Σ C1, Σ C2, Σ time, number of samples.
    #[param(skip)]
    sums: Vec<[f64; 4]>,
}

impl Analyzer for OrientationCorrelation {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        need_orientations(system)?;
        self.selected = selected_types(self.types.as_ref(), system)?;
        needs.period = self.every;
        needs.lags = true;
        needs.wants.particles = true;
        self.path = needs.output(system, &self.file, OutputKind::Result);
        self.sums = vec![[0.0; 4]; self.lags as usize + 1];
        Ok(())
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let q = quaternions(frame)?;
        let now: Vec<[f32; 3]> =
            tags(frame, &self.selected).iter().map(|t| q[*t].axis().f64().map(|x| x as f32)).collect();
        if self.samples.back().is_some_and(|(_, before)| before.len() != now.len()) {
            return Err(Error::Run("the number of particles of these types has changed".into()));
        }
        self.samples.push_back((frame.time(), now));
        if self.samples.len() > self.lags as usize + 1 {
            self.samples.pop_front();
        }
        let Some((time, now)) = self.samples.back() else { return Ok(()) };
        let n = now.len().max(1) as f64;
        for (sum, (then, old)) in self.sums.iter_mut().zip(self.samples.iter().rev()) {
            let (mut first, mut second) = (0.0, 0.0);
            for (a, b) in now.iter().zip(old) {
                let c: f64 = a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum();
                first += c;
                second += 1.5 * c * c - 0.5;
            }
            sum.iter_mut().zip([first / n, second / n, time - then, 1.0]).for_each(|(s, x)| *s += x);
        }
        let mut rows = vec![header(&["lag", "time", "C1", "C2", "origins"])];
        for (lag, [c1, c2, time, count]) in self.sums.iter().enumerate().filter(|(_, s)| s[3] > 0.0) {
            let mut row = vec![(lag as u64 * self.every).to_string()];
            row.extend([time / count, c1 / count, c2 / count].map(|x| format!("{x:?}")));
            row.push(count.to_string());
            rows.push(row);
        }
        replace(&self.path, &rows)
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        let n = self.samples.back().map_or(0, |(_, a)| a.len());
        let mut out = bytes(&[self.samples.len() as f64, n as f64]);
        out.extend(bytes(self.sums.as_flattened()));
        for (time, axes) in &self.samples {
            out.extend(time.to_le_bytes());
            out.extend(axes.as_flattened().iter().flat_map(|x| x.to_le_bytes()));
        }
        Ok(out)
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        let (head, rest) = numbers(state, 2)?;
        let (sums, mut rest) = numbers(rest, 4 * self.sums.len())?;
        self.sums = sums.as_chunks::<4>().0.to_vec();
        let (count, n) = (head[0] as usize, head[1] as usize);
        if rest.len() != count * (8 + 12 * n) {
            return Err(Error::Run("the checkpoint belongs to another analyzer".into()));
        }
        self.samples.clear();
        for _ in 0..count {
            let (time, after) = numbers(rest, 1)?;
            let (axes, after) = after.split_at(12 * n);
            let axes: Vec<f32> = axes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
            self.samples.push_back((time[0], axes.as_chunks::<3>().0.to_vec()));
            rest = after;
        }
        Ok(())
    }
}
