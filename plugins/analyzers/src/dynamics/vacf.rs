//! Velocity autocorrelation function.

use crate::dynamics::frames::{Measure, NoSettings};
use crate::dynamics::items::Which;
use crate::dynamics::lags::Lags;
use crate::dynamics::series::{Series, series_analyzer, shown_axes};
use galamost_plugin_api::prelude::*;

/// Products of velocities for each axis.
#[derive(Clone, Debug, Default)]
struct Products;

impl Measure for Products {
    const VELOCITIES: bool = true;
    const FOLLOWS: bool = false;
    type Settings = NoSettings;
    fn text() -> String {
        r"
__device__ __forceinline__ void measure(const Settings&, const Sample& now, const Sample& then, double* sums) {
    for (u32 r = 0; r < ITEMS_PER_THREAD; ++r) {
        if (!now.some[r]) continue;
        for (u32 k = 0; k < 3u; ++k) sums[k] = plus(sums[k], times(now.x[r][k], then.x[r][k]));
    }
}
"
        .into()
    }
    fn values(&self) -> usize {
        3
    }
    fn settings(&self, _: [f64; 3]) -> NoSettings {
        NoSettings::default()
    }
    #[inline]
    fn add(_: &NoSettings, now: [f64; 3], then: [f64; 3], sums: &mut [f64]) {
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
/// | `vacf_x_A`, `vacf_y_A`, `vacf_z_A` | contributions of the axes (velocity², with `axes`) |
/// | `diffusion_A` | (1/d) ∫₀ᵗ C dt', trapezoidal rule over the lags (length²/time) |
///
/// Columns of a type without particles are NaN. `diffusion_A` converges to the diffusion coefficient (Green–Kubo) if `every` is short compared with the decay time
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
    /// First step to sample; samples are at multiples of `every`.
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
    series: Series<Products>,
}

series_analyzer!(Vacf);

impl Vacf {
    fn write(&mut self, at_the_end: bool) -> Result<()> {
        let d = self.series.dimensions;
        let shown = shown_axes(self.axes, d);
        let head = |name: &str| {
            let mut columns = vec![format!("vacf_{name}")];
            columns.extend(shown.iter().map(|k| format!("vacf_{k}_{name}")));
            columns.push(format!("diffusion_{name}"));
            columns
        };
        // for each species: time and C of the previous lag, and the integral up to it
        let mut before: Vec<[f64; 3]> = vec![];
        self.series.write(at_the_end, self.every, head, |row| {
            let mut all = vec![];
            for (species, m) in row.means.iter().enumerate() {
                let c: f64 = m.iter().take(d).sum();
                let [time, earlier, integral] = before.get(species).copied().unwrap_or([row.time, c, 0.0]);
                let integral = integral + 0.5 * (c + earlier) * (row.time - time) / d as f64;
                before.resize(row.means.len(), [0.0; 3]);
                before[species] = [row.time, c, integral];
                all.push(c);
                all.extend(m.iter().take(shown.len()));
                all.push(integral);
            }
            Some(all)
        })
    }
}
