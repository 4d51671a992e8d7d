//! Mean-square displacement.

use crate::dynamics::frames::{Frames, Measure};
use crate::dynamics::items::Which;
use crate::dynamics::lags::Lags;
use galamost_measure::Pace;
use galamost_measure::replace;
use galamost_plugin_api::prelude::*;
use std::path::PathBuf;

/// Squared displacement for each axis, and the fourth power of the displacement.
#[derive(Clone, Debug, Default)]
struct Squares;

impl Measure for Squares {
    const VELOCITIES: bool = false;
    const FOLLOWS: bool = true;
    type Settings = [u32; 2];
    fn text() -> String {
        r"
struct Settings { u32 none[2]; };
__device__ __forceinline__ void measure(const Settings&, const double* now, const double* then, double* sums) {
    double squares[3];
    for (u32 k = 0; k < 3u; ++k) {
        const double d = minus(now[k], then[k]);
        squares[k] = times(d, d);
        sums[k] = plus(sums[k], squares[k]);
    }
    const double r2 = plus(plus(squares[0], squares[1]), squares[2]);
    sums[3] = plus(sums[3], times(r2, r2));
}
"
        .into()
    }
    fn values(&self) -> usize {
        4
    }
    fn settings(&self, _: [f64; 3]) -> [u32; 2] {
        [0; 2]
    }
    #[inline]
    fn add(_: &[u32; 2], now: [f64; 3], then: [f64; 3], sums: &mut [f64]) {
        let squares: [f64; 3] = std::array::from_fn(|k| (now[k] - then[k]) * (now[k] - then[k]));
        sums.iter_mut().zip(squares).for_each(|(s, x)| *s += x);
        let r2 = squares[0] + squares[1] + squares[2];
        sums[3] += r2 * r2;
    }
}

/// Measures the mean-square displacement ⟨|r(t₀ + t) − r(t₀)|²⟩ and the non-Gaussian parameter, averaged over many
/// origins t₀.
///
/// Lags are in octaves: 1 to `points` samples, then `points`/2 more up to twice the longest, and so on for `levels`
/// levels. A few dozen lags thus reach points × 2^(levels − 1) samples. Every sample is an origin for lags of the first
/// level, every second one for the second level, and so on. `lags` selects explicit lags instead, with origins
/// `origins` steps apart.
///
/// `file` is a CSV table. It is replaced after the first sample, then at most once a second, and at the end of the run.
///
/// | column | meaning |
/// |---|---|
/// | `lag`, `time` | lag in steps and in time units |
/// | `origins` | number of origins; they overlap, so they are not independent |
/// | `msd_A` | mean-square displacement of type A (length²); for diffusion 2 d D t |
/// | `msd_x_A`, `msd_y_A`, `msd_z_A` | contributions of the axes (with `axes`) |
/// | `alpha2_A` | d⟨r⁴⟩/((d + 2)⟨r²⟩²) − 1; 0 for Gaussian displacements in d dimensions |
///
/// `of: Molecules` measures centers of mass of molecules, in columns `msd_molecules`. Molecules are defined by the
/// array `molecule`, or by bonds, at the first sample. Types also are those of the first sample. `remove_drift`
/// subtracts the motion of the center of mass of all particles.
///
/// Positions are unwrapped by images, r + L image. If the box changes, displacements are summed from sample to sample
/// as Δr + L Δimage with the new L (toroidal-view-preserving scheme). In a constant box this is r + L image.
/// Displacements by a barostat inside the box are part of Δr.
///
/// Samples stay on the device, and the run does not wait for them. Memory: 24 bytes × (particles or molecules) ×
/// (points + 1 + (levels − 1) points/2), by default 37 samples (with `lags`: longest lag / `origins` + 2), and 36 bytes
/// × particles. Checkpoints contain the samples.
///
/// References: J. Ramírez, S. K. Sukumaran, B. Vorselaars & A. E. Likhtman, J. Chem. Phys. 133, 154103 (2010); S. von
/// Bülow, J. T. Bullerjahn & G. Hummer, J. Chem. Phys. 153, 021101 (2020); D. Frenkel & B. Smit, Understanding
/// Molecular Simulation, section 4.4.2.
///
/// ```ron
/// Msd(every: 10, file: "msd.csv")
/// ```
#[component(Analyzer, "Msd")]
#[derive(Params)]
pub struct Msd {
    /// Steps between samples.
    #[param(at_least = 1.0)]
    every: u64,
    /// First step to sample.
    #[param(default = 0)]
    start: u64,
    /// Output file.
    file: Spanned<String>,
    #[param(flatten)]
    lags: Lags,
    #[param(flatten)]
    which: Which,
    /// Whether to add columns for each axis.
    #[param(default = false)]
    axes: bool,
    /// Whether displacements are relative to the center of mass of all particles.
    #[param(default = false)]
    remove_drift: bool,
    #[param(skip)]
    path: PathBuf,
    #[param(skip)]
    dimensions: usize,
    #[param(skip)]
    frames: Frames<Squares>,
    #[param(skip)]
    pace: Pace,
}

impl Analyzer for Msd {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.period = self.every;
        self.path = system.path(&self.file.value);
        self.dimensions = system.dimensions as usize;
        self.frames.bind(&self.which, self.lags.schedule(self.every)?, self.remove_drift, system, needs, self.file.at)
    }

    fn start(&mut self, host: Host) -> Result<()> {
        self.frames.start(host)
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        if frame.step() < self.start {
            return Ok(());
        }
        // SAFETY: the engine passes a view of valid arrays of the run's device
        unsafe { self.frames.sample(frame)? };
        self.pace.sampled();
        self.write(false)
    }

    fn finish(&mut self) -> Result<()> {
        self.write(true)
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        self.frames.save()
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        self.frames.load(state);
        self.pace.sampled();
        Ok(())
    }
}

impl Msd {
    fn write(&mut self, at_the_end: bool) -> Result<()> {
        if !self.pace.due(at_the_end) {
            return Ok(());
        }
        self.frames.fetch()?;
        let d = self.dimensions;
        let mut head: Vec<String> = ["lag", "time", "origins"].map(String::from).into();
        for name in &self.frames.species {
            head.push(format!("msd_{name}"));
            head.extend(["x", "y", "z"].iter().take(if self.axes { d } else { 0 }).map(|k| format!("msd_{k}_{name}")));
            head.push(format!("alpha2_{name}"));
        }
        let mut rows = vec![head];
        for row in self.frames.rows().into_iter().filter(|r| r.lag > 0) {
            let mut text = vec![(row.lag * self.every).to_string(), format!("{:?}", row.time), row.origins.to_string()];
            for m in &row.means {
                let msd: f64 = m.iter().take(d).sum();
                let gaussian = (d as f64 + 2.0) * msd * msd;
                let alpha2 = if gaussian > 0.0 { d as f64 * m[3] / gaussian - 1.0 } else { 0.0 };
                let mut all = vec![msd];
                all.extend(m.iter().take(if self.axes { d } else { 0 }));
                all.push(alpha2);
                text.extend(all.iter().map(|x| format!("{x:?}")));
            }
            rows.push(text);
        }
        replace(&self.path, &rows)
    }
}
