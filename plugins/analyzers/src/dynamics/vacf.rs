//! Velocity autocorrelation function.

use crate::dynamics::frames::{Frames, Measure};
use crate::dynamics::items::Which;
use crate::dynamics::lags::Lags;
use galamost_measure::Pace;
use galamost_measure::replace;
use galamost_plugin_api::prelude::*;
use std::path::PathBuf;

/// Products of velocities for each axis.
#[derive(Clone, Debug, Default)]
struct Products;

impl Measure for Products {
    const VELOCITIES: bool = true;
    const FOLLOWS: bool = false;
    type Settings = [u32; 2];
    fn text() -> String {
        r"
struct Settings { u32 none[2]; };
__device__ __forceinline__ void measure(const Settings&, const double* now, const double* then, double* sums) {
    for (u32 k = 0; k < 3u; ++k) sums[k] = plus(sums[k], times(now[k], then[k]));
}
"
        .into()
    }
    fn values(&self) -> usize {
        3
    }
    fn settings(&self, _: [f64; 3]) -> [u32; 2] {
        [0; 2]
    }
    #[inline]
    fn add(_: &[u32; 2], now: [f64; 3], then: [f64; 3], sums: &mut [f64]) {
        (0..3).for_each(|k| sums[k] += now[k] * then[k]);
    }
}

/// Measures the velocity autocorrelation function C(t) = ⟨v(t₀)·v(t₀ + t)⟩ and its integral, averaged over many origins
/// t₀.
///
/// Lags are in octaves or explicit, as for `Msd`. `file` is a CSV table. It is replaced after the first sample, then at
/// most once a second, and at the end of the run.
///
/// | column | meaning |
/// |---|---|
/// | `lag`, `time` | lag in steps (from 0) and in time units |
/// | `origins` | number of origins |
/// | `vacf_A` | C(t) of type A (velocity²); C(0) = d kT/m |
/// | `vacf_x_A`, `vacf_y_A`, `vacf_z_A` | contributions of the axes (with `axes`) |
/// | `diffusion_A` | (1/d) ∫₀ᵗ C dt', trapezoidal rule over the lags (length²/time) |
///
/// `diffusion_A` converges to the diffusion coefficient (Green–Kubo) if `every` is short compared with the decay time
/// of C.
///
/// `of: Molecules` measures velocities of centers of mass, in columns `vacf_molecules`. Types and molecules are those
/// of the first sample. `remove_drift` subtracts the velocity of the center of mass of all particles. Samples stay on
/// the device, and the run does not wait for them. Memory: 24 bytes × (particles or molecules) × (points + 1 + (levels
/// − 1) points/2). Checkpoints contain the samples.
///
/// ```ron
/// Vacf(every: 2, file: "vacf.csv")
/// ```
#[component(Analyzer, "Vacf")]
#[derive(Params)]
pub struct Vacf {
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
    /// Whether velocities are relative to the center of mass of all particles.
    #[param(default = false)]
    remove_drift: bool,
    #[param(skip)]
    path: PathBuf,
    #[param(skip)]
    dimensions: usize,
    #[param(skip)]
    frames: Frames<Products>,
    #[param(skip)]
    pace: Pace,
}

impl Analyzer for Vacf {
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

impl Vacf {
    fn write(&mut self, at_the_end: bool) -> Result<()> {
        if !self.pace.due(at_the_end) {
            return Ok(());
        }
        self.frames.fetch()?;
        let d = self.dimensions;
        let shown = if self.axes { d } else { 0 };
        let mut head: Vec<String> = ["lag", "time", "origins"].map(String::from).into();
        for name in &self.frames.species {
            head.push(format!("vacf_{name}"));
            head.extend(["x", "y", "z"].iter().take(shown).map(|k| format!("vacf_{k}_{name}")));
            head.push(format!("diffusion_{name}"));
        }
        let mut rows = vec![head];
        // for each species: time and C of the previous lag, and the integral up to it
        let mut before: Vec<[f64; 3]> = vec![];
        for row in self.frames.rows() {
            let mut text = vec![(row.lag * self.every).to_string(), format!("{:?}", row.time), row.origins.to_string()];
            for (species, m) in row.means.iter().enumerate() {
                let c: f64 = m.iter().take(d).sum();
                let [time, earlier, integral] = before.get(species).copied().unwrap_or([row.time, c, 0.0]);
                let integral = integral + 0.5 * (c + earlier) * (row.time - time) / d as f64;
                before.resize(row.means.len(), [0.0; 3]);
                before[species] = [row.time, c, integral];
                let mut all = vec![c];
                all.extend(m.iter().take(shown));
                all.push(integral);
                text.extend(all.iter().map(|x| format!("{x:?}")));
            }
            rows.push(text);
        }
        replace(&self.path, &rows)
    }
}
