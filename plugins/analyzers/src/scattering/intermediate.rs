//! Intermediate scattering functions.

use crate::dynamics::frames::{Frames, Measure};
use crate::dynamics::items::Which;
use crate::dynamics::lags::{Lags, Pair};
use crate::scattering::turns;
use crate::scattering::waves::{
    MAX_VECTORS, VECTOR_BYTES, Vector, WaveKernels, WavesDevice, choose, number_up_to, sum_here,
};
use galamost_measure::Pace;
use galamost_measure::pack::{Unpack, put};
use galamost_measure::replace;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::memory;
use galamost_plugin_api::prelude::*;
use std::path::PathBuf;

/// Maximum number of vectors of all q together, and maximum number of q.
const MAX_SELF_VECTORS: usize = 64;
const MAX_Q: usize = 8;

/// cos q·(r(t) − r(0)), summed over the vectors of each q.
#[derive(Clone, Debug, Default)]
struct Phases {
    /// Vectors of each q.
    vectors: Vec<Vec<[i32; 3]>>,
    /// Number of q.
    n: usize,
}

#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct VectorSettings {
    /// Turns for a unit of length, in the unit of `cosine`; 0 if the box has no length.
    turns: [f64; 3],
    vector: [i32; 3 * MAX_SELF_VECTORS],
    first: [u32; MAX_Q + 1],
    reserved: u32,
}

impl Measure for Phases {
    const VELOCITIES: bool = false;
    const FOLLOWS: bool = false;
    type Settings = VectorSettings;
    fn text() -> String {
        let own = r"
__device__ __forceinline__ void measure(const Settings& s, const Sample& now, const Sample& then, double* sums) {
    u32 d[ITEMS_PER_THREAD][3];
    for (u32 r = 0; r < ITEMS_PER_THREAD; ++r) {
        for (u32 k = 0; k < 3u; ++k) d[r][k] = fixed(times(minus(now.x[r][k], then.x[r][k]), s.turns[k]));
    }
#pragma unroll
    for (u32 v = 0; v < VALUES; ++v) {
        float sum[ITEMS_PER_THREAD] = {};
        // a vector is read once for all items
        for (u32 w = s.first[v]; w < s.first[v + 1u]; ++w) {
            const u32 x = u32(s.vector[3u * w]), y = u32(s.vector[3u * w + 1u]), z = u32(s.vector[3u * w + 2u]);
#pragma unroll
            for (u32 r = 0; r < ITEMS_PER_THREAD; ++r) sum[r] = plus(sum[r], cosine(x * d[r][0] + y * d[r][1] + z * d[r][2]));
        }
        for (u32 r = 0; r < ITEMS_PER_THREAD; ++r) {
            if (now.some[r]) sums[v] = plus(sums[v], double(sum[r]));
        }
    }
}
";
        format!("{}{own}", turns::text())
    }
    fn values(&self) -> usize {
        self.n
    }
    fn settings(&self, length: [f64; 3]) -> VectorSettings {
        let turns = length.map(|l| if l > 0.0 { turns::TURN / l } else { 0.0 });
        let mut s = VectorSettings { turns, vector: [0; 3 * MAX_SELF_VECTORS], first: [0; MAX_Q + 1], reserved: 0 };
        s.vector.iter_mut().zip(self.vectors.iter().flatten().flatten()).for_each(|(to, n)| *to = *n);
        let mut first = 0;
        for (to, of) in s.first[1..].iter_mut().zip(&self.vectors) {
            first += of.len() as u32;
            *to = first;
        }
        s
    }
    #[inline]
    fn add(s: &VectorSettings, now: [f64; 3], then: [f64; 3], sums: &mut [f64]) {
        let d: [u32; 3] = std::array::from_fn(|k| turns::fixed((now[k] - then[k]) * s.turns[k]));
        for (v, sum) in sums.iter_mut().enumerate() {
            let all = &s.vector[3 * s.first[v] as usize..3 * s.first[v + 1] as usize];
            let phase =
                |n: &[i32; 3]| (0..3).fold(0u32, |x, k| x.wrapping_add(n[k].cast_unsigned().wrapping_mul(d[k])));
            *sum += f64::from(all.as_chunks::<3>().0.iter().fold(0.0, |s, n| s + turns::cosine(phase(n))));
        }
    }
}

/// Measures self and coherent intermediate scattering functions at selected q, averaged over many origins t₀.
///
///     F_s(q, t) = ⟨Σ_i cos q·(r_i(t₀ + t) − r_i(t₀))⟩/N    for each type
///     F(q, t) = ⟨ρ(q, t₀ + t) ρ*(q, t₀)⟩/N,  ρ(q) = Σ_i e^(i q·r_i)    for all selected particles
///
/// For each q, the average is over `vectors` reciprocal-lattice vectors with q − width/2 < |q| ≤ q + width/2, chosen at
/// random but the same in every run. Lags are in octaves or explicit, as for `Msd`.
///
/// `file` is a CSV table: `lag` (steps, from 0), `time`, `origins`, and for each q (here 7.1) the mean |q| of its
/// vectors `q_7.1`, then `F_7.1`, and for each type `Fs_7.1_A`. F(q, 0) is S(q); divide by it to normalize F to 1 at t
/// = 0. The table is replaced after the first sample, then at most once a second, and at the end of the run.
///
/// F_s costs N × vectors × lags cosines for each sample. Phases are exact to 2⁻³² turns of the box, cosines to 2·10⁻⁷. At most 8 q and 64 vectors in total are allowed. Positions are
/// unwrapped by images, and the box must be constant. Types are those of the first sample. Memory: as for `Msd`, 24
/// bytes × particles × (points + 1 + (levels − 1) points/2), also in checkpoints.
///
/// Reference: J.-P. Hansen & I. R. McDonald, Theory of Simple Liquids, section 7.4.
///
/// ```ron
/// IntermediateScattering(every: 20, file: "scattering.csv", q: [2.0, 7.0], width: 0.8, vectors: 6)
/// ```
#[component(Analyzer, "IntermediateScattering")]
#[derive(Params)]
pub struct IntermediateScattering {
    /// Steps between samples.
    #[param(at_least = 1.0)]
    every: u64,
    /// First step to sample; samples are at multiples of `every`.
    #[param(default = 0)]
    start: u64,
    /// Output file.
    file: Spanned<String>,
    /// Wave numbers |q|, at most 8.
    #[param(unit = "1/length", above = 0.0)]
    q: Spanned<Vec<f64>>,
    /// Width of the range of |q| of the vectors.
    #[param(unit = "1/length", above = 0.0)]
    width: f64,
    /// Maximum number of vectors for each q.
    #[param(default = 8, at_least = 1, at_most = 64)]
    vectors: u32,
    #[param(flatten)]
    lags: Lags,
    /// Particle types, each with separate columns; default: all.
    types: Option<Spanned<Vec<String>>>,
    #[param(skip)]
    path: PathBuf,
    #[param(skip)]
    frames: Frames<Phases>,
    #[param(skip)]
    host: Option<Host>,
    #[param(skip)]
    kernels: Option<WaveKernels>,
    #[param(skip)]
    on_device: bool,
    /// Mean |q| of the vectors of each q.
    #[param(skip)]
    lengths: Vec<f64>,
    /// Box lengths that the vectors were chosen for.
    #[param(skip)]
    chosen: Option<[f64; 3]>,
    /// Density waves of the stored samples, by slot.
    #[param(skip)]
    waves: Vec<Vec<[f64; 2]>>,
    /// Σ ρ ρ* for each lag and vector.
    #[param(skip)]
    sums: Vec<f64>,
    #[param(skip)]
    device: Option<OnDevice>,
    #[param(skip)]
    kept: Vec<u8>,
    #[param(skip)]
    pace: Pace,
}

struct OnDevice {
    waves: WavesDevice,
    kept: DevicePtr<u8>,
    sums: DevicePtr<u8>,
}

fn bytes(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_ne_bytes()).collect()
}

impl Analyzer for IntermediateScattering {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.sample(self.every, self.start);
        self.path = needs.output(system, &self.file.value, OutputKind::Result);
        self.on_device = system.device == "cuda";
        let n = self.q.value.len();
        if n == 0 || n > MAX_Q || n * self.vectors as usize > MAX_SELF_VECTORS {
            let message = format!(
                "expected 1 … {MAX_Q} q and at most {MAX_SELF_VECTORS} vectors in total, found {n} q with {} vectors each",
                self.vectors
            );
            return Err(InputError::at(self.q.at, message).into());
        }
        let twice = |k: &usize| self.q.value[..*k].contains(&self.q.value[*k]);
        if let Some(k) = (0..n).find(twice) {
            return Err(InputError::at(self.q.at, format!("q {:?} is listed twice", self.q.value[k])).into());
        }
        self.choose(system.box_length)?;
        self.frames.measure.n = n;
        let which = Which::types(self.types.clone());
        self.frames.bind(&which, self.lags.schedule(self.every)?, false, system, needs, self.file.at)
    }

    fn start(&mut self, host: Host) -> Result<()> {
        self.host = Some(host);
        if self.on_device {
            self.kernels = Some(WaveKernels::new(&host)?);
        }
        let kept = std::mem::take(&mut self.kept);
        if kept.is_empty() {
            return self.frames.start(host);
        }
        let mut from = Unpack(&kept);
        self.frames.load(&from.row::<u8>()?);
        self.frames.start(host)?;
        let length = from.row_of::<f64>(3)?;
        self.begin([length[0], length[1], length[2]])?;
        self.sums = from.row_of(self.sums.len())?;
        if let Some(d) = &self.device {
            host.upload_bytes(d.sums, &bytes(&self.sums))?;
        }
        let n = self.count();
        for origin in self.frames.schedule().kept() {
            let row = from.row_of::<f64>(2 * n)?;
            match &self.device {
                Some(d) => host.upload_bytes(d.kept.offset(16 * n * origin.slot as usize), &bytes(&row))?,
                None => self.waves[origin.slot as usize] = row.as_chunks::<2>().0.to_vec(),
            }
        }
        from.end()
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let Some(host) = self.host.filter(|_| frame.step() >= self.start) else { return Ok(()) };
        if self.frames.items().is_none() {
            self.choose(frame.box_length())?;
        }
        // SAFETY: the engine passes a view of valid arrays of the run's device
        let (slot, pairs) = unsafe { self.frames.sample(frame)? };
        if self.sums.is_empty() {
            self.begin(frame.box_length())?;
        }
        // SAFETY: the engine passes a view of valid arrays of the run's device
        unsafe { self.coherent(&host, frame, slot, &pairs)? };
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
        let (Some(host), Some(_)) = (self.host, self.frames.items()) else { return Ok(vec![]) };
        let mut out = vec![];
        put(&mut out, &self.frames.save()?);
        put(&mut out, &self.frames.length());
        put(&mut out, &self.sums);
        let n = self.count();
        for origin in self.frames.schedule().kept() {
            let mut row = self.waves[origin.slot as usize].as_flattened().to_vec();
            if let Some(d) = &self.device {
                let mut bytes = vec![0; 16 * n];
                host.download_bytes(d.kept.offset(16 * n * origin.slot as usize), &mut bytes)?;
                row = bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect();
            }
            put(&mut out, &row);
        }
        Ok(out)
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        self.kept = state.to_vec();
        self.pace.sampled();
        Ok(())
    }
}

impl IntermediateScattering {
    /// Chooses the vectors for a box, unless those are there.
    fn choose(&mut self, length: [f64; 3]) -> Result<()> {
        if self.chosen == Some(length) {
            return Ok(());
        }
        (self.frames.measure.vectors, self.lengths) = (vec![], vec![]);
        let d = if length[2] > 0.0 { 3 } else { 2 };
        for q in &self.q.value {
            let (low, high) = (q - 0.5 * self.width, q + 0.5 * self.width);
            let about = number_up_to(high, length, d);
            if about > MAX_VECTORS {
                let message = format!(
                    "about {about:.1e} wave vectors are below q {high}, more than the limit of {MAX_VECTORS:.0e}; reduce `q`"
                );
                return Err(InputError::at(self.q.at, message).into());
            }
            memory::require(format_args!("about {about:.1e} wave vectors below q {high}"), VECTOR_BYTES * about)
                .map_err(|m| InputError::at(self.q.at, m))?;
            let found: Vec<Vector> = choose(low.max(0.0), high, self.vectors as usize, length);
            if found.is_empty() {
                let message =
                    format!("no wave vector of the box has |q| in {low} … {high}; increase `width` or change `q`");
                return Err(InputError::at(self.q.at, message).into());
            }
            self.lengths.push(found.iter().map(|v| v.1).sum::<f64>() / found.len() as f64);
            self.frames.measure.vectors.push(found.into_iter().map(|v| v.0).collect());
        }
        self.chosen = Some(length);
        Ok(())
    }

    /// Returns the number of vectors.
    fn count(&self) -> usize {
        self.frames.measure.vectors.iter().map(Vec::len).sum()
    }

    /// Allocates memory once the particles are known, for a box of these lengths.
    fn begin(&mut self, length: [f64; 3]) -> Result<()> {
        self.choose(length)?;
        let vectors: Vec<[i32; 3]> = self.frames.measure.vectors.iter().flatten().copied().collect();
        let (n, slots) = (vectors.len(), self.frames.schedule().slots());
        self.sums = vec![0.0; self.frames.schedule().lags() * n];
        self.waves = vec![vec![]; slots];
        if let (Some(host), Some(kernels), Some(items)) = (self.host, self.kernels, self.frames.items()) {
            self.device = Some(OnDevice {
                waves: WavesDevice::new(host, kernels, items, &vectors)?,
                kept: host.allocate_bytes(16 * n * slots)?,
                sums: host.allocate_bytes(8 * self.sums.len())?,
            });
        }
        Ok(())
    }

    /// Computes the density waves of a sample and correlates them with earlier ones.
    ///
    /// # Safety
    /// The frame's view describes valid arrays of the run's device.
    unsafe fn coherent(&mut self, host: &Host, frame: &Frame<'_>, slot: u32, pairs: &[Pair]) -> Result<()> {
        let (n, state) = (self.count(), &frame.call().state);
        if let Some(d) = &self.device {
            let at = |slot: u32| d.kept.offset(16 * n * slot as usize);
            // SAFETY: the view describes arrays of the device (contract of this function)
            unsafe { d.waves.sum(state)? };
            d.waves.keep(state, at(slot))?;
            return d.waves.correlate(d.kept, slot, pairs, d.sums);
        }
        let Some(items) = self.frames.items() else { return Ok(()) };
        let vectors: Vec<[i32; 3]> = self.frames.measure.vectors.iter().flatten().copied().collect();
        // SAFETY: on the CPU, the view describes host arrays (contract of this function)
        let waves = unsafe { sum_here(host, state, frame.box_length(), items, &vectors) };
        let species = items.count.len();
        let all = |w: usize| {
            (0..species).fold([0.0, 0.0], |[re, im], s| [re + waves[s * n + w][0], im + waves[s * n + w][1]])
        };
        self.waves[slot as usize] = (0..n).map(all).collect();
        for p in pairs {
            let (now, then) = (&self.waves[slot as usize], &self.waves[p.slot as usize]);
            let sums = &mut self.sums[p.lag as usize * n..][..n];
            for (sum, (x, y)) in sums.iter_mut().zip(now.iter().zip(then)) {
                *sum += x[0] * y[0] + x[1] * y[1];
            }
        }
        Ok(())
    }

    fn fetch(&mut self) -> Result<()> {
        self.frames.fetch()?;
        if let (Some(host), Some(d)) = (self.host, &self.device) {
            let mut bytes = vec![0; 8 * self.sums.len()];
            host.download_bytes(d.sums, &mut bytes)?;
            self.sums.iter_mut().zip(bytes.as_chunks::<8>().0).for_each(|(x, b)| *x = f64::from_ne_bytes(*b));
        }
        Ok(())
    }

    fn write(&mut self, at_the_end: bool) -> Result<()> {
        if !self.pace.due(at_the_end) {
            return Ok(());
        }
        self.fetch()?;
        let Some(items) = self.frames.items() else { return Ok(()) };
        let particles: u64 = items.count.iter().sum();
        let mut head: Vec<String> = ["lag", "time", "origins"].map(String::from).into();
        for q in &self.q.value {
            head.extend([format!("q_{q}"), format!("F_{q}")]);
            head.extend(self.frames.species.iter().map(|s| format!("Fs_{q}_{s}")));
        }
        let mut rows = vec![head];
        let n = self.count();
        for row in self.frames.rows() {
            let mut text = vec![(row.lag * self.every).to_string(), format!("{:?}", row.time), row.origins.to_string()];
            let mut first = 0;
            for (k, vectors) in self.frames.measure.vectors.iter().enumerate() {
                let own = vectors.len();
                let coherent: f64 = self.sums[row.index * n + first..][..own].iter().sum();
                let mut all = vec![self.lengths[k], coherent / (own as u64 * particles * row.origins) as f64];
                all.extend(row.means.iter().map(|m| m[k] / own as f64));
                text.extend(all.iter().map(|x| format!("{x:?}")));
                first += own;
            }
            rows.push(text);
        }
        replace(&self.path, &rows)
    }
}
