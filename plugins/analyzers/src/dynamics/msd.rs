//! Mean-square displacement.

use crate::dynamics::frames::{Measure, NoSettings};
use crate::dynamics::items::Which;
use crate::dynamics::lags::Lags;
use crate::dynamics::series::{Series, series_analyzer, shown_axes};
use galamost_plugin_api::prelude::*;

/// Squared displacement for each axis, and the fourth power of the displacement.
#[derive(Clone, Debug, Default)]
struct Squares;

impl Measure for Squares {
    const VELOCITIES: bool = false;
    const FOLLOWS: bool = true;
    type Settings = NoSettings;
    fn text() -> String {
        r"
__device__ __forceinline__ void measure(const Settings&, const Sample& now, const Sample& then, double* sums) {
    for (u32 r = 0; r < ITEMS_PER_THREAD; ++r) {
        if (!now.some[r]) continue;
        double squares[3];
        for (u32 k = 0; k < 3u; ++k) {
            const double d = minus(now.x[r][k], then.x[r][k]);
            squares[k] = times(d, d);
            sums[k] = plus(sums[k], squares[k]);
        }
        const double r2 = plus(plus(squares[0], squares[1]), squares[2]);
        sums[3] = plus(sums[3], times(r2, r2));
    }
}
"
        .into()
    }
    fn values(&self) -> usize {
        4
    }
    fn settings(&self, _: [f64; 3]) -> NoSettings {
        NoSettings::default()
    }
    #[inline]
    fn add(_: &NoSettings, now: [f64; 3], then: [f64; 3], sums: &mut [f64]) {
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
/// | `msd_x_A`, `msd_y_A`, `msd_z_A` | contributions of the axes (length², with `axes`) |
/// | `alpha2_A` | non-Gaussian parameter α₂ = d⟨r⁴⟩/((d + 2)⟨r²⟩²) − 1; 0 for Gaussian displacements in d dimensions |
///
/// Columns of a type without particles are NaN.
///
/// The second column of a name, as with types `A` and `x_A`, ends in `:2`. A run that is shorter than the shortest lag leaves a
/// table without rows, and a warning in the log.
///
/// `of: Molecules` measures centers of mass of molecules, in columns `msd_molecules`. Molecules are defined by the
/// array `molecule`, or by bonds, at the first sample. Types also are those of the first sample. `remove_drift`
/// subtracts the motion of the center of mass of all particles.
///
/// Positions are unwrapped by images, r + L image. If the box changes, displacements are summed from sample to sample
/// as Δr + L Δimage with the new L (toroidal-view-preserving scheme). In a constant box this is r + L image.
/// All stages that it samples must have the same `dt`. Displacements by a barostat inside the box are part of Δr. The tilt factors of a triclinic box must be constant.
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
    /// Whether displacements are relative to the center of mass of all particles.
    #[param(default = false)]
    remove_drift: bool,
    #[param(skip)]
    series: Series<Squares>,
}

series_analyzer!(Msd);

impl Msd {
    fn write(&mut self, at_the_end: bool) -> Result<()> {
        let d = self.series.dimensions;
        let shown = shown_axes(self.axes, d);
        let head = |name: &str| {
            let mut columns = vec![format!("msd_{name}")];
            columns.extend(shown.iter().map(|k| format!("msd_{k}_{name}")));
            columns.push(format!("alpha2_{name}"));
            columns
        };
        self.series.write(at_the_end, self.every, head, |row| {
            let mut all = vec![];
            for m in &row.means {
                let msd: f64 = m.iter().take(d).sum();
                let gaussian = (d as f64 + 2.0) * msd * msd;
                let alpha2 = if gaussian == 0.0 { 0.0 } else { d as f64 * m[3] / gaussian - 1.0 };
                all.push(msd);
                all.extend(m.iter().take(shown.len()));
                all.push(alpha2);
            }
            (row.lag > 0).then_some(all)
        })
    }
}
