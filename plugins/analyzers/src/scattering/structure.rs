//! Static structure factor.

use crate::dynamics::items::{Items, Which};
use crate::scattering::waves::{
    MAX_VECTORS, MAX_WAVES, VECTOR_BYTES, Vector, WaveKernels, WavesDevice, by_bins, number_up_to, sum_here,
};
use galamost_measure::Pace;
use galamost_measure::pack::{Unpack, put};
use galamost_measure::replace;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::memory;
use galamost_plugin_api::prelude::*;
use std::path::PathBuf;

/// Measures the static structure factor S(q) = ⟨|Σ e^(i q·r)|²⟩/N and the partial structure factors S_ab(q) = ⟨ρ_a(q)
/// ρ_b*(q)⟩/√(N_a N_b).
///
/// q are reciprocal-lattice vectors up to `q_max`, in bins of width q_max/bins: 2π (n_x/L_x, n_y/L_y, n_z/L_z), and in a
/// triclinic box the vectors whose products with the edges are 2π n. At most `vectors` vectors of a bin (±q count once) are used, chosen at random but the same in every run.
///
/// `file` is a CSV table: `q` (mean |q| of the vectors in the bin, 1/length), `vectors` (their number), `S` (all
/// selected particles), then a column `A-B` for each pair of types. Bins without vectors have no row. The table is
/// replaced after the first sample, then at most once a second, and at the end of the run. For large q, S → 1, and S_ab
/// of different types → 0; for an ideal gas this holds at all q. Columns of a type without particles are NaN.
///
/// Positions are rounded to 2⁻³² of the box, phases are then exact (integers). The errors of cosines are below
/// 2·10⁻⁷ and independent of each other, so that of S is about 10⁻⁷ √S. A sample costs N × (number of vectors) cosines and sines, so choose `every` accordingly; on a GPU the run does not wait for it. The box must be constant. Types are
/// those of the first sample.
///
/// Reference: J.-P. Hansen & I. R. McDonald, Theory of Simple Liquids, section 4.1.
///
/// ```ron
/// StructureFactor(every: 100, file: "structure.csv", q_max: 10.0, bins: 50)
/// ```
#[component(Analyzer, "StructureFactor")]
#[derive(Params)]
pub struct StructureFactor {
    /// Steps between samples.
    #[param(at_least = 1.0)]
    every: u64,
    /// First step to sample; samples are at multiples of `every`.
    #[param(default = 0)]
    start: u64,
    /// Output file.
    file: String,
    /// Largest wave number |q|.
    #[param(unit = "1/length", above = 0.0)]
    q_max: Spanned<f64>,
    /// Number of bins.
    #[param(default = 100, at_least = 1, at_most = 10_000)]
    bins: u32,
    /// Maximum number of vectors per bin.
    #[param(default = 20, at_least = 1, at_most = 100_000)]
    vectors: u32,
    /// Particle types to include; default: all.
    types: Option<Spanned<Vec<String>>>,
    #[param(skip)]
    path: PathBuf,
    #[param(skip)]
    which: Option<Which>,
    #[param(skip)]
    n: u64,
    /// Tilt factors of the box.
    #[param(skip)]
    tilt: [f64; 3],
    #[param(skip)]
    names: Vec<String>,
    #[param(skip)]
    species_types: Vec<u32>,
    /// Pairs of species.
    #[param(skip)]
    columns: Vec<[usize; 2]>,
    #[param(skip)]
    host: Option<Host>,
    #[param(skip)]
    on_device: bool,
    #[param(skip)]
    kernels: Option<WaveKernels>,
    #[param(skip)]
    sampled: Option<Sampled>,
    #[param(skip)]
    samples: u64,
    #[param(skip)]
    kept: Vec<u8>,
    #[param(skip)]
    pace: Pace,
}

/// State known from the first sample on.
struct Sampled {
    items: Items,
    length: [f64; 3],
    /// Vectors of each bin, and all vectors.
    bins: Vec<Vec<Vector>>,
    vectors: Vec<[i32; 3]>,
    /// Sums for each column and vector.
    sums: Vec<f64>,
    device: Option<(WavesDevice, DevicePtr<u8>, DevicePtr<u8>)>,
}

impl Analyzer for StructureFactor {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.sample(self.every, self.start);
        needs.constant_box = true;
        needs.plain_images = true;
        (needs.triclinic, needs.constant_tilt) = (true, true);
        self.tilt = system.tilt;
        let which = Which::types(self.types.clone());
        (self.names, self.species_types) = which.bind(system, needs)?;
        self.which = Some(which);
        let species = self.names.len();
        self.columns = (0..species).flat_map(|a| (a..species).map(move |b| [a, b])).collect();
        self.path = needs.output(system, &self.file, OutputKind::Result);
        self.n = system.n;
        self.on_device = system.device == "cuda";
        self.choose(system.box_length, system.dimensions as usize).map(drop)
    }

    fn start(&mut self, host: Host) -> Result<()> {
        self.host = Some(host);
        if self.on_device {
            self.kernels = Some(WaveKernels::new(&host)?);
        }
        let kept = std::mem::take(&mut self.kept);
        if kept.is_empty() {
            return Ok(());
        }
        let mut from = Unpack(&kept);
        let items = Items::load(&mut from, self.n, self.names.len())?;
        let length = from.row_of::<f64>(3)?;
        self.samples = from.row_of::<u64>(1)?[0];
        let mut sampled = self.begin(host, items, [length[0], length[1], length[2]])?;
        sampled.sums = from.row_of(sampled.sums.len())?;
        if let Some((.., sums)) = &sampled.device {
            host.upload_bytes(*sums, &sampled.sums.iter().flat_map(|x| x.to_ne_bytes()).collect::<Vec<_>>())?;
        }
        self.sampled = Some(sampled);
        from.end()
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let Some(host) = self.host.filter(|_| frame.step() >= self.start) else { return Ok(()) };
        let call = frame.call();
        if self.sampled.is_none()
            && let Some(which) = &self.which
        {
            let items = Items::now(which, &self.species_types, &host, call)?;
            self.sampled = Some(self.begin(host, items, frame.box_length())?);
        }
        let Some(s) = &mut self.sampled else { return Ok(()) };
        if frame.box_length() != s.length {
            let message = "the box differs from that of the first sample; the structure factor needs a constant box: sample in a stage of constant volume";
            return Err(Error::Run(message.into()));
        }
        match &s.device {
            // SAFETY: the engine passes a view of valid arrays of the run's device
            Some((waves, columns, sums)) => unsafe {
                waves.sum(&call.state)?;
                waves.add_products(&call.state, *columns, self.columns.len(), *sums)?;
            },
            None => {
                // SAFETY: the engine passes a view of valid arrays; on the CPU these are host arrays
                let waves = unsafe { sum_here(&host, &call.state, s.length, &s.items, &s.vectors) };
                let n = s.vectors.len();
                for (c, [a, b]) in self.columns.iter().enumerate() {
                    for w in 0..n {
                        let (x, y) = (waves[a * n + w], waves[b * n + w]);
                        s.sums[c * n + w] += x[0] * y[0] + x[1] * y[1];
                    }
                }
            }
        }
        self.samples += 1;
        self.pace.sampled();
        self.write(false)
    }

    fn finish(&mut self) -> Result<()> {
        self.write(true)
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        if !self.kept.is_empty() {
            return Ok(self.kept.clone());
        }
        self.fetch()?;
        let Some(s) = &self.sampled else { return Ok(vec![]) };
        let mut out = vec![];
        s.items.save(&mut out);
        put(&mut out, &s.length);
        put(&mut out, &[self.samples]);
        put(&mut out, &s.sums);
        Ok(out)
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        self.kept = state.to_vec();
        self.pace.sampled();
        Ok(())
    }
}

impl StructureFactor {
    fn choose(&self, length: [f64; 3], dimensions: usize) -> Result<Vec<Vec<Vector>>> {
        let (q_max, at) = (self.q_max.value, self.q_max.at);
        let about = number_up_to(q_max, length, dimensions);
        if about > MAX_VECTORS {
            let message = format!(
                "about {about:.1e} wave vectors are below `q_max` {q_max}, more than the limit of {MAX_VECTORS:.0e}; reduce `q_max`"
            );
            return Err(InputError::at(at, message).into());
        }
        memory::require(format_args!("about {about:.1e} wave vectors below `q_max` {q_max}"), VECTOR_BYTES * about)
            .map_err(|m| InputError::at(at, m))?;
        let bins = by_bins(q_max, self.bins as usize, self.vectors as usize, length, self.tilt);
        let n: usize = bins.iter().map(Vec::len).sum();
        if n == 0 || n > MAX_WAVES {
            let message =
                format!("found {n} vectors below `q_max` {q_max}, expected 1 … {MAX_WAVES}; see `bins` and `vectors`");
            return Err(InputError::at(at, message).into());
        }
        Ok(bins)
    }

    fn begin(&self, host: Host, items: Items, length: [f64; 3]) -> Result<Sampled> {
        let bins = self.choose(length, if length[2] > 0.0 { 3 } else { 2 })?;
        let vectors: Vec<[i32; 3]> = bins.iter().flatten().map(|v| v.0).collect();
        let n = self.columns.len() * vectors.len();
        let device = match self.kernels {
            None => None,
            Some(kernels) => {
                let columns: Vec<u8> = self.columns.iter().flatten().flat_map(|s| (*s as u32).to_ne_bytes()).collect();
                let device_columns = host.allocate_bytes(columns.len())?;
                host.upload_bytes(device_columns, &columns)?;
                Some((WavesDevice::new(host, kernels, &items, &vectors)?, device_columns, host.allocate_bytes(8 * n)?))
            }
        };
        Ok(Sampled { items, length, bins, vectors, sums: vec![0.0; n], device })
    }

    fn fetch(&mut self) -> Result<()> {
        let (Some(host), Some(s)) = (self.host, &mut self.sampled) else { return Ok(()) };
        if let Some((.., sums)) = &s.device {
            let mut bytes = vec![0; 8 * s.sums.len()];
            host.download_bytes(*sums, &mut bytes)?;
            s.sums.iter_mut().zip(bytes.as_chunks::<8>().0).for_each(|(x, b)| *x = f64::from_ne_bytes(*b));
        }
        Ok(())
    }

    fn write(&mut self, at_the_end: bool) -> Result<()> {
        if !self.pace.due(at_the_end) {
            return Ok(());
        }
        self.fetch()?;
        let Some(s) = &self.sampled else { return Ok(()) };
        let mut head: Vec<String> = ["q", "vectors", "S"].map(String::from).into();
        head.extend(self.columns.iter().map(|p| p.map(|t| self.names[t].clone()).join("-")));
        let mut rows = vec![head];
        let number = |species: usize| s.items.count[species] as f64;
        let all: f64 = (0..self.names.len()).map(number).sum();
        let mut first = 0;
        for bin in s.bins.iter().filter(|b| !b.is_empty()) {
            let n = bin.len() as f64;
            let mean = |c: usize| {
                let from = c * s.vectors.len() + first;
                s.sums[from..from + bin.len()].iter().sum::<f64>() / (n * self.samples.max(1) as f64)
            };
            let products: Vec<f64> = (0..self.columns.len()).map(mean).collect();
            let total =
                products.iter().zip(&self.columns).map(|(p, [a, b])| if a == b { *p } else { 2.0 * p }).sum::<f64>();
            let norm = |[a, b]: [usize; 2]| (number(a) * number(b)).sqrt();
            let mut row = vec![format!("{:?}", bin.iter().map(|v| v.1).sum::<f64>() / n), bin.len().to_string()];
            row.push(format!("{:?}", total / all));
            row.extend(
                products
                    .iter()
                    .zip(&self.columns)
                    .map(|(p, c)| format!("{:?}", if norm(*c) > 0.0 { p / norm(*c) } else { f64::NAN })),
            );
            rows.push(row);
            first += bin.len();
        }
        replace(&self.path, &rows)
    }
}
