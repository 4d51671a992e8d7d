//! Domain size from the structure factor of the composition.

use crate::dynamics::items::{Items, Which};
use crate::scattering::waves::{
    MAX_VECTORS, MAX_WAVES, Vector, WaveKernels, WavesDevice, by_bins, number_up_to, sum_here,
};
use galamost_measure::pack::{Unpack, put};
use galamost_measure::{Cell, Table};
use galamost_plugin_api::prelude::*;
use std::f64::consts::TAU;

/// Measures the domain size of a phase-separating mixture or a microphase, one row for each sample.
///
/// The composition is ψ(r) = Σ δ(r − r_i) over particles of the types `positive`, minus the same sum over `negative`.
/// Its structure factor is S(q) = |Σ ±e^(i q·r)|²/N, where N is the number of these particles. Without `negative`, S(q)
/// is the structure factor of their density. q are reciprocal-lattice vectors 2π (n_x/L_x, n_y/L_y, n_z/L_z) with 0 <
/// |q| ≤ `q_max`, in `bins` shells of equal width. At most `vectors` vectors of a shell (±q count once) are used,
/// chosen at random but the same in every run. With q_k the mean |q| and S_k the mean S of shell k, the moments are
/// ⟨qᵐ⟩ = Σ q_kᵐ S_k/Σ S_k.
///
/// | column | meaning |
/// |---|---|
/// | `step`, `time` | step number, time |
/// | `L (length)` | domain size 2π/⟨q⟩ (the period: one stripe of each phase) |
/// | `L2 (length)` | 2π/⟨q²⟩^(1/2); gives sharp interfaces more weight |
/// | `q_mean (1/length)` | ⟨q⟩ |
/// | `q_peak (1/length)` | q_k of the shell with the largest S_k (the first if equal) |
/// | `S_peak` | that S_k |
/// | `L_peak (length)` | 2π/`q_peak` |
///
/// A list, `positive` or `negative`, without any particle at the first sample is an error, because ψ would not be a composition.
/// A file name that ends in `.parquet` selects a folder of Parquet files. If all S_k are 0, sizes are NaN.
///
/// How to choose `q_max`: beyond the peak, S decays as q⁻⁴, so ⟨q⟩ depends little on `q_max` if it is a few times the
/// peak. At larger q, S is that of a liquid and only adds noise. Use about 2π divided by the interface thickness, and
/// the same value for all runs to be compared. Domains larger than half of the box cannot be resolved.
///
/// Positions are rounded to 2⁻³² of the box, phases are then exact (integers). The errors of cosines are below 2·10⁻⁷ and
/// independent of each other, so that of S is about 10⁻⁷ √S. A sample costs N × (number of vectors) cosines
/// and sines, and on a GPU the run waits for it. Vectors and types are those of the first sample. If the box changes, q
/// scales with it.
///
/// References: C. Roland & M. Grant, Phys. Rev. B 39, 11971 (1989); A. J. Bray, Adv. Phys. 43, 357 (1994).
///
/// ```ron
/// DomainSize(every: 100, file: "domains.csv", positive: ["A"], q_max: 3.0)
/// ```
#[component(Analyzer, "DomainSize")]
#[derive(Params)]
pub struct DomainSize {
    /// Steps between samples.
    #[param(at_least = 1.0)]
    every: u64,
    /// First step to sample; samples are at multiples of `every`.
    #[param(default = 0)]
    start: u64,
    /// Output file.
    file: String,
    /// Particle types with weight +1.
    positive: Spanned<Vec<String>>,
    /// Particle types with weight −1; default: none.
    negative: Option<Spanned<Vec<String>>>,
    /// Largest wave number |q|.
    #[param(unit = "1/length", above = 0.0)]
    q_max: Spanned<f64>,
    /// Number of shells; default: shells about as wide as the smallest q, 2π/(longest box length).
    #[param(at_least = 2, at_most = 10_000)]
    bins: Option<u32>,
    /// Maximum number of vectors per shell.
    #[param(default = 100, at_least = 1, at_most = 100_000)]
    vectors: u32,
    #[param(skip)]
    rows: Table,
    /// Types: the positive ones, then the negative ones.
    #[param(skip)]
    types: Vec<u32>,
    #[param(skip)]
    n_positive: usize,
    #[param(skip)]
    n: u64,
    #[param(skip)]
    host: Option<Host>,
    #[param(skip)]
    kernels: Option<WaveKernels>,
    #[param(skip)]
    on_device: bool,
    #[param(skip)]
    sampled: Option<Sampled>,
    #[param(skip)]
    kept: Vec<u8>,
}

/// State known from the first sample on.
struct Sampled {
    items: Items,
    /// Box lengths at the first sample.
    length: [f64; 3],
    /// Vectors of each nonempty shell.
    shells: Vec<Vec<Vector>>,
    vectors: Vec<[i32; 3]>,
    device: Option<WavesDevice>,
}

const NAMES: [&str; 8] = [
    "step",
    "time",
    "L (length)",
    "L2 (length)",
    "q_mean (1/length)",
    "q_peak (1/length)",
    "S_peak",
    "L_peak (length)",
];

/// Returns 2π/⟨q⟩, 2π/√⟨q²⟩, ⟨q⟩, q of the peak, S of the peak, and 2π/q of the peak.
fn sizes(shells: &[[f64; 2]]) -> [f64; 6] {
    let sum = |power: i32| shells.iter().map(|[q, s]| q.powi(power) * s).sum::<f64>();
    let (mean, square) = (sum(1) / sum(0), sum(2) / sum(0));
    let peak = shells.iter().fold([f64::NAN, 0.0], |best, shell| if shell[1] > best[1] { *shell } else { best });
    [TAU / mean, TAU / square.sqrt(), mean, peak[0], peak[1], TAU / peak[0]]
}

/// Returns |q| of a reciprocal-lattice vector.
fn norm(n: [i32; 3], length: [f64; 3]) -> f64 {
    (0..3)
        .map(|k| if length[k] > 0.0 { (f64::from(n[k]) * (TAU / length[k])).powi(2) } else { 0.0 })
        .sum::<f64>()
        .sqrt()
}

impl Analyzer for DomainSize {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.sample(self.every, self.start);
        needs.plain_images = true;
        let mut list = |types: &Spanned<Vec<String>>| {
            if types.value.is_empty() {
                return Err(InputError::at(types.at, "the list is empty; add particle types").into());
            }
            Which::types(Some(types.clone())).bind(system, needs).map(|(_, types)| types)
        };
        self.types = list(&self.positive)?;
        self.n_positive = self.types.len();
        if let Some(negative) = &self.negative {
            let others = list(negative)?;
            if let Some(both) = others.iter().find(|k| self.types.contains(k)) {
                let name = &system.types[*both as usize];
                return Err(InputError::at(negative.at, format!("the type \"{name}\" is in both lists")).into());
            }
            self.types.extend(others);
        }
        self.n = system.n;
        self.on_device = system.device == "cuda";
        self.rows.bind(system, needs, &self.file);
        self.choose(system.box_length).map(drop)
    }

    fn start(&mut self, host: Host) -> Result<()> {
        self.host = Some(host);
        if self.on_device {
            self.kernels = Some(WaveKernels::new(&host)?);
        }
        self.rows.start()?;
        let kept = std::mem::take(&mut self.kept);
        if kept.is_empty() {
            return Ok(());
        }
        let mut from = Unpack(&kept);
        let items = Items::load(&mut from, self.n, self.types.len())?;
        let length = from.row_of::<f64>(3)?;
        self.sampled = Some(self.begin(host, items, [length[0], length[1], length[2]])?);
        from.end()
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let Some(host) = self.host.filter(|_| frame.step() >= self.start) else { return Ok(()) };
        let (call, length) = (frame.call(), frame.box_length());
        let s = match self.sampled.take() {
            Some(s) => s,
            None => {
                let items = Items::now(&Which::types(None), &self.types, &host, call)?;
                self.require_particles(&items)?;
                self.begin(host, items, length)?
            }
        };
        let waves = match &s.device {
            // SAFETY: the engine passes a view of valid arrays of the run's device
            Some(waves) => unsafe {
                waves.sum(&call.state)?;
                waves.fetch()?
            },
            // SAFETY: the engine passes a view of valid arrays; on the CPU these are host arrays
            None => unsafe { sum_here(&host, &call.state, length, &s.items, &s.vectors) },
        };
        let row = self.row(&s, &waves, length);
        self.sampled = Some(s);
        let mut cells = vec![frame.step().into(), frame.time().into()];
        cells.extend(row.map(Cell::from));
        self.rows.append(&NAMES, &[cells])
    }

    fn finish(&mut self) -> Result<()> {
        self.rows.finish()
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        let mut out = self.rows.save()?;
        if let Some(s) = &self.sampled {
            s.items.save(&mut out);
            put(&mut out, &s.length);
        }
        Ok(out)
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        self.kept = self.rows.load(state)?.to_vec();
        Ok(())
    }
}

impl DomainSize {
    fn choose(&self, length: [f64; 3]) -> Result<Vec<Vec<Vector>>> {
        let (q_max, at) = (self.q_max.value, self.q_max.at);
        let about = number_up_to(q_max, length, if length[2] > 0.0 { 3 } else { 2 });
        if about > MAX_VECTORS {
            let message = format!(
                "about {about:.1e} wave vectors are below `q_max` {q_max}, more than the limit of {MAX_VECTORS:.0e}; reduce `q_max`"
            );
            return Err(InputError::at(at, message).into());
        }
        let longest = length.into_iter().fold(0.0, f64::max);
        let bins = self.bins.map_or_else(|| (q_max * longest / TAU).ceil() as usize, |b| b as usize);
        let mut shells = by_bins(q_max, bins.max(1), self.vectors as usize, length, [0.0; 3]);
        shells.retain(|s| !s.is_empty());
        let n: usize = shells.iter().map(Vec::len).sum();
        if shells.len() < 2 || n > MAX_WAVES {
            let message = format!(
                "found {n} vectors in {} shells below `q_max` {q_max}, expected at least two shells and at most {MAX_WAVES} \
     vectors; the smallest q of the box is {:.4}; see `bins` and `vectors`",
                shells.len(),
                TAU / longest
            );
            return Err(InputError::at(at, message).into());
        }
        Ok(shells)
    }

    /// Returns an error if no particle has a type in one of the lists.
    fn require_particles(&self, items: &Items) -> Result<()> {
        let (positive, negative) = items.count.split_at(self.n_positive);
        for (name, counts) in [("positive", positive), ("negative", negative)] {
            if !counts.is_empty() && counts.iter().all(|n| *n == 0) {
                return Err(Error::Run(format!(
                    "no particle has a type in `{name}`, so there is no composition; list types with particles, \
                     or begin later with `start`"
                )));
            }
        }
        Ok(())
    }

    fn begin(&self, host: Host, items: Items, length: [f64; 3]) -> Result<Sampled> {
        let shells = self.choose(length)?;
        let vectors: Vec<[i32; 3]> = shells.iter().flatten().map(|v| v.0).collect();
        let device = match self.kernels {
            None => None,
            Some(kernels) => Some(WavesDevice::new(host, kernels, &items, &vectors)?),
        };
        Ok(Sampled { items, length, shells, vectors, device })
    }

    /// Computes the sizes from the density waves of each type.
    fn row(&self, s: &Sampled, waves: &[[f64; 2]], length: [f64; 3]) -> [f64; 6] {
        let (n, number) = (s.vectors.len(), s.items.count.iter().sum::<u64>() as f64);
        let power = |w: usize| {
            let psi = (0..self.types.len()).fold([0.0, 0.0], |[re, im], t| {
                let (sign, wave) = (if t < self.n_positive { 1.0 } else { -1.0 }, waves[t * n + w]);
                [re + sign * wave[0], im + sign * wave[1]]
            });
            (psi[0] * psi[0] + psi[1] * psi[1]) / number
        };
        let mut first = 0;
        let shell = |vectors: &Vec<Vector>| {
            let (from, m) = (first, vectors.len() as f64);
            first += vectors.len();
            let q = vectors.iter().map(|v| norm(v.0, length)).sum::<f64>() / m;
            [q, (from..first).map(power).sum::<f64>() / m]
        };
        sizes(&s.shells.iter().map(shell).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_the_peak() {
        let [l, l2, q, peak, s, l_peak] = sizes(&[[0.5, 1.0], [1.0, 4.0], [1.5, 4.0], [2.0, 1.0]]);
        assert!((q - 1.25).abs() < 1e-15 && (l - TAU / 1.25).abs() < 1e-14);
        // (0.25 + 4 + 9 + 4)/10
        assert!((l2 - TAU / 1.725f64.sqrt()).abs() < 1e-14);
        assert_eq!((peak, s, l_peak), (1.0, 4.0, TAU));
        let nothing = sizes(&[[0.5, 0.0], [1.0, 0.0]]);
        assert!(nothing[0].is_nan() && nothing[3].is_nan() && nothing[4] == 0.0);
    }

    #[test]
    fn the_box_scales_q() {
        assert!((norm([3, 4, 0], [TAU, TAU, 0.0]) - 5.0).abs() < 1e-15);
        assert!((norm([0, 0, -2], [1.0, 1.0, TAU]) - 2.0).abs() < 1e-15);
    }
}
