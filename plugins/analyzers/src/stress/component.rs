//! The `StressCorrelation` analyzer.

use crate::stress::multi_tau::MultiTau;
use galamost_measure::{bytes, header, number, numbers, replace};
use galamost_plugin_api::prelude::*;
use std::path::PathBuf;

/// Measures the shear relaxation modulus G(t) and the Green–Kubo viscosity η(t) = ∫₀ᵗ G(t') dt' from the pressure
/// tensor.
///
/// For isotropic systems, G is averaged over all shear components. With N_ab = P_aa − P_bb,
///
///     3D: G(t) = V/(5 kT) Σ_(ab = xy, xz, yz) ⟨P_ab(0) P_ab(t)⟩ + V/(30 kT) Σ_(ab = xy, xz, yz) ⟨N_ab(0) N_ab(t)⟩
///     2D: G(t) = V/(2 kT) ⟨P_xy(0) P_xy(t)⟩ + V/(8 kT) ⟨N_xy(0) N_xy(t)⟩
///
/// V and kT are means over the samples. Every lag of less than `points` samples is computed. Beyond, the lag spacing and the
/// averaging time of P double every `points`/2 lags (multiple-tau correlator).
///
/// `file` is a CSV table that is replaced every `report` samples and at the end of the run: `lag` (steps), `time`, `G`
/// (pressure), `eta` (pressure × time, trapezoidal rule up to this lag), `origins` (number of products; they overlap).
/// Read the viscosity from the plateau of η(t): later values only accumulate noise, whose error grows as the square
/// root of t. The system must be in equilibrium, without flow; the check refuses `LeesEdwards`.
///
/// Samples must resolve the fastest bond vibrations, so use an `every` of a few steps. Each sample computes the virial,
/// which costs about as much as a second force evaluation, and waits for the device. Momentum transport by pairwise
/// friction and random forces (DPD) is white noise that does not contribute to correlations at finite lags. For DPD,
/// measure the viscosity by shear with `LeesEdwards` or `PeriodicPoiseuille`.
///
/// Reference: J. Ramírez, S. K. Sukumaran, B. Vorselaars & A. E. Likhtman, J. Chem. Phys. 133, 154103 (2010).
///
/// ```ron
/// StressCorrelation(every: 5, file: "stress.csv", longest: 2000)
/// ```
#[component(Analyzer, "StressCorrelation")]
#[derive(Debug, Params)]
pub struct StressCorrelation {
    /// Steps between samples.
    #[param(at_least = 1.0)]
    every: u64,
    /// First step to sample; samples are at multiples of `every`.
    #[param(default = 0)]
    start: u64,
    /// Output file.
    file: String,
    /// Longest lag to reach, in samples.
    #[param(at_least = 1, at_most = 1_000_000_000)]
    longest: u64,
    /// Lags per level of the correlator; must be even.
    #[param(default = 16, at_least = 4, at_most = 1024)]
    points: u32,
    /// Samples between table updates.
    #[param(default = 1000, at_least = 1)]
    report: u64,
    #[param(skip)]
    path: PathBuf,
    #[param(skip)]
    dimensions: u32,
    #[param(skip)]
    correlator: Option<MultiTau<7>>,
    /// Number of samples, Σ V, Σ kT.
    #[param(skip)]
    sums: [f64; 3],
}

/// Product averaged in three dimensions, in units of kT/V; entries are time, xx, xy, xz, yy, yz, zz.
fn solid(a: &[f64; 7], b: &[f64; 7]) -> f64 {
    let shear = a[2] * b[2] + a[3] * b[3] + a[5] * b[5];
    let normal: f64 = [(1, 4), (1, 6), (4, 6)].iter().map(|(i, j)| (a[*i] - a[*j]) * (b[*i] - b[*j])).sum();
    shear / 5.0 + normal / 30.0
}

/// Product averaged in two dimensions, in units of kT/V.
fn flat(a: &[f64; 7], b: &[f64; 7]) -> f64 {
    a[2] * b[2] / 2.0 + (a[1] - a[4]) * (b[1] - b[4]) / 8.0
}

impl StressCorrelation {
    fn write(&self) -> Result<()> {
        let Some(correlator) = self.correlator.as_ref().filter(|_| self.sums[0] > 0.0) else { return Ok(()) };
        let factor = self.sums[1] / self.sums[2];
        let mut rows = vec![header(&["lag", "time", "G", "eta", "origins"])];
        let mut before: Option<(f64, f64)> = None;
        let mut eta = 0.0;
        for (lag, sum) in correlator.lags() {
            let (time, g) = (sum.time / sum.count, factor * sum.product / sum.count);
            if let Some((t, h)) = before {
                eta += 0.5 * (g + h) * (time - t);
            }
            before = Some((time, g));
            rows.push(vec![
                (lag * self.every).to_string(),
                number(time),
                number(g),
                number(eta),
                format!("{:.0}", sum.count),
            ]);
        }
        replace(&self.path, &rows)
    }
}

impl Analyzer for StressCorrelation {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        if !self.points.is_multiple_of(2) {
            return Err(Error::input("`points` must be an even number"));
        }
        needs.sample(self.every, self.start);
        needs.lags = true;
        needs.wants.thermo = true;
        needs.triclinic = true;
        // under shear, the mean stress is not 0, and velocities contain the flow
        needs.plain_images = true;
        self.dimensions = system.dimensions;
        self.path = needs.output(system, &self.file, OutputKind::Result);
        self.correlator = Some(MultiTau::new(self.points as usize, self.longest));
        Ok(())
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let Some(correlator) = self.correlator.as_mut().filter(|_| frame.step() >= self.start) else { return Ok(()) };
        let t = frame.thermo()?;
        if t.pressure_tensor.iter().any(|p| p.is_nan()) {
            return Err(Error::Run("the pressure is NaN: a force of this stage provides no virial".into()));
        }
        let mut sample = [frame.time(); 7];
        sample[1..].copy_from_slice(&t.pressure_tensor);
        correlator.add(sample, if self.dimensions == 2 { flat } else { solid });
        [1.0, t.volume, t.kt].iter().zip(&mut self.sums).for_each(|(x, s)| *s += x);
        if self.sums[0] % self.report as f64 == 0.0 { self.write() } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<()> {
        self.write()
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        Ok([bytes(&self.sums), self.correlator.as_ref().map(MultiTau::save).unwrap_or_default()].concat())
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        let (sums, rest) = numbers(state, 3)?;
        self.sums = [sums[0], sums[1], sums[2]];
        self.correlator.as_mut().map_or(Ok(()), |c| c.load(rest))
    }
}
