//! Mean-square displacements.

use crate::dynamics::frames::{Frames, Measure};
use crate::dynamics::items::Which;
use crate::dynamics::lags::Lags;
use galamost_measure::Pace;
use galamost_measure::replace;
use galamost_plugin_api::prelude::*;
use std::path::PathBuf;

/// Squares of displacements per axis, and the fourth power.
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

/// Mean-square displacement ⟨|r(t₀ + t) − r(t₀)|²⟩ and the non-Gaussian parameter, over many origins t₀, from samples every
/// `every` steps.
///
/// Lags lie in octaves: from 1 to `points` samples, then `points`/2 more up to twice the longest, and so on for `levels` levels, so
/// a few dozen of them reach points × 2^(levels − 1) samples. Every sample is an origin of the first level's lags, every
/// second one of the second level's, and so on. With `lags` there are those alone, from origins that are `origins` steps apart.
///
/// `file` is a CSV table: `lag` (steps), `time`, `origins` (they overlap, so they are not independent), and for each type
/// `msd_A` (length²), with `axes` also `msd_x_A`, `msd_y_A`, `msd_z_A`, and
/// `alpha2_A` = d⟨r⁴⟩/((d + 2)⟨r²⟩²) − 1, which is 0 for Gaussian displacements in d dimensions. For diffusion msd = 2 d D t. It is
/// replaced after the first sample, then at most once a second, and at the end of the run.
///
/// With `of: Molecules` centers of mass of molecules move, in columns `msd_molecules`: those that the array `molecule`, or bonds,
/// make at the first sample. Types are those of the first sample. `remove_drift` takes off the motion of the center of mass of all particles.
///
/// Positions are unwrapped by images, r + L image. In a box that changes that would be wrong: whoever has crossed the box n times would
/// be moved by n ΔL. So positions are followed from sample to sample, by Δr + L Δimage with the new L, as the toroidal-view-preserving
/// scheme has it; where the box stays as it is this is r + L image. What a barostat moves inside of the box is part of Δr.
/// S. von Bülow, J. T. Bullerjahn, G. Hummer, J. Chem. Phys. 153 (2020) 021101.
///
/// Samples stay on the device, which the run does not wait for. Memory: 24 bytes × (particles or molecules) × (points + 1 +
/// (levels − 1) points/2), by default 37 samples (with `lags`, longest lag / `origins` + 2), and 36 bytes × particles; in checkpoints too.
/// J. Ramírez, S. K. Sukumaran, B. Vorselaars, A. E. Likhtman, J. Chem. Phys. 133 (2010) 154103; D. Frenkel, B. Smit,
/// Understanding Molecular Simulation, section 4.4.2.
///
/// ```ron
/// Msd(every: 10, file: "msd.csv")
/// ```
#[component(Analyzer, "Msd")]
#[derive(Params)]
pub struct Msd {
    /// Steps from one sample to the next.
    #[param(at_least = 1.0)]
    every: u64,
    /// Samples of earlier steps are passed over.
    #[param(default = 0)]
    start: u64,
    /// File to write.
    file: Spanned<String>,
    #[param(flatten)]
    lags: Lags,
    #[param(flatten)]
    which: Which,
    /// Columns for each axis.
    #[param(default = false)]
    axes: bool,
    /// Displacements are relative to the center of mass of all particles.
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
        // SAFETY: the engine's word about the view
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
