//! Density waves ρ(q) = Σ e^(i q·r) of reciprocal-lattice vectors, by species.

use crate::dynamics::items::{Items, NONE};
use crate::dynamics::lags::{MAX_PAIRS, Pair};
use crate::scattering::turns;
use galamost_measure::positions::is_double;
use galamost_measure::tree::ITEMS;
use galamost_measure::{HEADER, tasks};
use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::device::{DevicePtr, constants};
use galamost_plugin_api::philox::philox4x32;
use galamost_plugin_api::precision::{PosTypeF64, PosTypeFixed};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;
use galamost_plugin_api::views::StateView;

/// Maximum number of vectors to choose from.
pub const MAX_VECTORS: f64 = 2e7;
/// Maximum number of vectors that are summed.
pub const MAX_WAVES: usize = 20_000;

/// A reciprocal-lattice vector: integers, and its length.
pub type Vector = ([i32; 3], f64);
/// Memory for each vector to choose from: it is listed, and then put into a bin; vectors grow by factors of 2.
pub const VECTOR_BYTES: f64 = 4.0 * size_of::<Vector>() as f64;

/// Estimates the number of reciprocal-lattice vectors up to length `q`, counting ±q once.
pub fn number_up_to(q: f64, length: [f64; 3], dimensions: usize) -> f64 {
    use std::f64::consts::{PI, TAU};
    let n = length.iter().take(dimensions).map(|l| q * l / TAU).product::<f64>();
    0.5 * n * if dimensions == 2 { PI } else { 4.0 / 3.0 * PI }
}

/// Returns the reciprocal-lattice vector q whose products with the edges of the box are 2π n.
fn reciprocal(n: [i32; 3], length: [f64; 3], [xy, xz, yz]: [f64; 3]) -> [f64; 3] {
    let unit = length.map(|l| if l > 0.0 { std::f64::consts::TAU / l } else { 0.0 });
    let x = f64::from(n[0]) * unit[0];
    let y = f64::from(n[1]) * unit[1] - xy * x;
    [x, y, f64::from(n[2]) * unit[2] - xz * x - yz * y]
}

/// Returns all reciprocal-lattice vectors with low < |q| ≤ high of a box with these lengths and tilt factors, one of each ±q:
/// the last nonzero integer is positive.
fn vectors(low: f64, high: f64, length: [f64; 3], tilt: [f64; 3]) -> Vec<Vector> {
    let [xy, xz, yz] = tilt;
    let edges = [1.0, (1.0 + xy * xy).sqrt(), (1.0 + xz * xz + yz * yz).sqrt()];
    let unit: [f64; 3] =
        std::array::from_fn(|k| if length[k] > 0.0 { std::f64::consts::TAU / (length[k] * edges[k]) } else { 0.0 });
    let most: [i32; 3] = std::array::from_fn(|k| if unit[k] > 0.0 { (high / unit[k]).floor() as i32 } else { 0 });
    let mut found = vec![];
    for z in 0..=most[2] {
        for y in if z > 0 { -most[1] } else { 0 }..=most[1] {
            for x in if z > 0 || y > 0 { -most[0] } else { 1 }..=most[0] {
                let n = [x, y, z];
                let q = reciprocal(n, length, tilt).iter().map(|q| q.powi(2)).sum::<f64>().sqrt();
                if q > low && q <= high {
                    found.push((n, q));
                }
            }
        }
    }
    found
}

/// Returns at most `most` of the vectors with low < |q| ≤ high, chosen at random but the same in every run.
pub fn choose(low: f64, high: f64, most: usize, length: [f64; 3]) -> Vec<Vector> {
    thin(vectors(low, high, length, [0.0; 3]), most)
}

/// Returns vectors in bins of |q|: at most `most` in each of the `bins` bins up to `q_max`.
pub fn by_bins(q_max: f64, bins: usize, most: usize, length: [f64; 3], tilt: [f64; 3]) -> Vec<Vec<Vector>> {
    let mut all = vec![vec![]; bins];
    for v in vectors(0.0, q_max, length, tilt) {
        all[((v.1 / q_max * bins as f64) as usize).min(bins - 1)].push(v);
    }
    all.into_iter().map(|b| thin(b, most)).collect()
}

fn thin(mut all: Vec<Vector>, most: usize) -> Vec<Vector> {
    if all.len() > most {
        let draw = |n: &[i32; 3]| philox4x32::<7>([n[0] as u32, n[1] as u32, n[2] as u32, 0], [7, 11]);
        // millions of vectors: each number is drawn once, and nothing is sorted
        let mut drawn: Vec<([u32; 4], Vector)> = all.into_iter().map(|v| (draw(&v.0), v)).collect();
        drawn.select_nth_unstable_by_key(most, |(number, (n, _))| (*number, *n));
        all = drawn.into_iter().take(most).map(|(_, v)| v).collect();
    }
    all.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    all
}

#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct WaveArgs {
    state: StateView,
    #[device(cxx = "const u32*")]
    items: DevicePtr<u8>,
    /// First block of each species, then the number of blocks.
    #[device(cxx = "const u32*")]
    first: DevicePtr<u8>,
    /// Three integers for each wave.
    #[device(cxx = "const int*")]
    vectors: DevicePtr<u8>,
    #[device(cxx = "double*")]
    partial: DevicePtr<u8>,
    /// Real and imaginary part for each species and wave.
    #[device(cxx = "double*")]
    waves: DevicePtr<u8>,
    blocks: u32,
    species: u32,
    n: u32,
    reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct CorrelateArgs {
    /// Waves of the stored samples, by slot.
    #[device(cxx = "const double*")]
    kept: DevicePtr<u8>,
    #[device(cxx = "double*")]
    sums: DevicePtr<u8>,
    now: u32,
    n: u32,
    n_pairs: u32,
    reserved: u32,
    slot: [u32; MAX_PAIRS],
    lag: [u32; MAX_PAIRS],
}

/// Threads per block.
const BLOCK: usize = 128;
/// Particles that a block keeps in shared memory.
const TILE: usize = 256;
/// Particles whose cosines are added in single precision; these sums are added in double precision.
const SINGLE: usize = 32;
/// Blocks whose sums are added in order; the sums of these runs are added in order.
const RUN: usize = 16;
/// Waves for which a block of threads adds these sums.
const ADDED: usize = 8;

/// Compiled kernels.
#[derive(Clone, Copy)]
pub struct WaveKernels {
    sum: Kernel,
    add: Kernel,
    products: Kernel,
    keep: Kernel,
    correlate: Kernel,
}

impl WaveKernels {
    /// Compiles the kernels.
    pub fn new(host: &Host) -> Result<Self> {
        let shared = constants(&[
            ("WAVES", BLOCK as u32),
            ("TILE", TILE as u32),
            ("MAX_PAIRS", MAX_PAIRS as u32),
            ("ITEMS", ITEMS as u32),
            ("SINGLE", SINGLE as u32),
            ("RUN", RUN as u32),
            ("ADDED", ADDED as u32),
        ]);
        let text = format!("{HEADER}\n{}{shared}{}", turns::text(), include_str!("waves.cuh"));
        let module = host.compile("waves", &kernel_source(&[WaveArgs::text(), CorrelateArgs::text()], &text)?)?;
        Ok(Self {
            sum: host.kernel(module, "sum_waves")?,
            add: host.kernel(module, "add_blocks")?,
            products: host.kernel(module, "add_products")?,
            keep: host.kernel(module, "keep_waves")?,
            correlate: host.kernel(module, "correlate_waves")?,
        })
    }
}

/// Density waves on a device.
pub struct WavesDevice {
    host: Host,
    kernels: WaveKernels,
    items: DevicePtr<u8>,
    first: DevicePtr<u8>,
    vectors: DevicePtr<u8>,
    partial: DevicePtr<u8>,
    waves: DevicePtr<u8>,
    blocks: usize,
    species: usize,
    n: usize,
}

fn uploaded(host: &Host, words: impl Iterator<Item = u32>) -> Result<DevicePtr<u8>> {
    let bytes: Vec<u8> = words.flat_map(|x| x.to_ne_bytes()).collect();
    let memory = host.allocate_bytes(bytes.len().max(4))?;
    host.upload_bytes(memory, &bytes)?;
    Ok(memory)
}

impl WavesDevice {
    /// Allocates memory for the waves of these items.
    pub fn new(host: Host, kernels: WaveKernels, items: &Items, vectors: &[[i32; 3]]) -> Result<Self> {
        let (blocks, species, n) = (items.entries.len() / ITEMS, items.count.len(), vectors.len());
        Ok(Self {
            items: uploaded(&host, items.entries.iter().copied())?,
            first: uploaded(&host, items.first.iter().copied())?,
            vectors: uploaded(&host, vectors.iter().flatten().map(|x| *x as u32))?,
            partial: host.allocate_bytes(16 * blocks * n)?,
            waves: host.allocate_bytes(16 * species * n)?,
            host,
            kernels,
            blocks,
            species,
            n,
        })
    }

    fn args(&self, s: &StateView) -> WaveArgs {
        WaveArgs {
            state: *s,
            items: self.items,
            first: self.first,
            vectors: self.vectors,
            partial: self.partial,
            waves: self.waves,
            blocks: self.blocks as u32,
            species: self.species as u32,
            n: self.n as u32,
            reserved: 0,
        }
    }

    /// Computes the waves of a state.
    ///
    /// # Safety
    /// The view describes valid arrays of the device.
    pub unsafe fn sum(&self, s: &StateView) -> Result<()> {
        let args = self.args(s);
        let mut arguments: [*mut Opaque; 1] = arguments![args];
        let groups = self.n.div_ceil(BLOCK);
        // SAFETY: both kernels take one `WaveArgs`
        unsafe {
            self.host.launch(self.kernels.sum, (self.blocks * groups) as u32, BLOCK as u32, &mut arguments)?;
            let blocks = (self.species * self.n).div_ceil(ADDED) as u32;
            self.host.launch(self.kernels.add, blocks, BLOCK as u32, &mut arguments)
        }
    }

    /// Downloads the waves of each species and vector.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn fetch(&self) -> Result<Vec<[f64; 2]>> {
        let mut bytes = vec![0; 16 * self.species * self.n];
        self.host.download_bytes(self.waves, &mut bytes)?;
        let numbers: Vec<f64> = bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect();
        Ok(numbers.as_chunks::<2>().0.to_vec())
    }

    /// Adds products of the waves of two species to `sums`, for each column and wave.
    pub fn add_products(&self, s: &StateView, columns: DevicePtr<u8>, n: usize, sums: DevicePtr<u8>) -> Result<()> {
        let (args, n_columns) = (self.args(s), n as u32);
        let mut arguments: [*mut Opaque; 4] = arguments![args, columns, n_columns, sums];
        let blocks = (n * self.n).div_ceil(BLOCK) as u32;
        // SAFETY: the kernel takes these four arguments
        unsafe { self.host.launch(self.kernels.products, blocks, BLOCK as u32, &mut arguments) }
    }

    /// Stores the waves summed over all species.
    pub fn keep(&self, s: &StateView, kept: DevicePtr<u8>) -> Result<()> {
        let args = self.args(s);
        let mut arguments: [*mut Opaque; 2] = arguments![args, kept];
        // SAFETY: the kernel takes these two arguments
        unsafe {
            self.host.launch(self.kernels.keep, (2 * self.n).div_ceil(BLOCK) as u32, BLOCK as u32, &mut arguments)
        }
    }

    /// Adds the correlations of the sample in slot `now` of `kept` with earlier ones to `sums`, for each lag and wave.
    pub fn correlate(&self, kept: DevicePtr<u8>, now: u32, pairs: &[Pair], sums: DevicePtr<u8>) -> Result<()> {
        pairs.chunks(MAX_PAIRS).try_for_each(|some| {
            let [slot, lag] = Pair::arrays(some);
            let (n, n_pairs) = (self.n as u32, some.len() as u32);
            let args = CorrelateArgs { kept, sums, now, n, n_pairs, reserved: 0, slot, lag };
            let mut arguments: [*mut Opaque; 1] = arguments![args];
            let blocks = (some.len() * self.n).div_ceil(BLOCK) as u32;
            // SAFETY: the kernel takes one `CorrelateArgs`
            unsafe { self.host.launch(self.kernels.correlate, blocks, BLOCK as u32, &mut arguments) }
        })
    }
}

/// Returns the fractional coordinates of a particle in units of 2⁻³², as `turn` of the kernels.
///
/// # Safety
/// The view describes valid host arrays, and `i < n_local`.
unsafe fn turns_of(s: &StateView, length: [f64; 3], i: usize) -> [u32; 3] {
    // SAFETY: valid host arrays and `i < n_local` (contract of this function)
    unsafe {
        if is_double(s) {
            let p = (*s.pos_type.cast::<PosTypeF64>().host().add(i)).position;
            return std::array::from_fn(
                |k| if length[k] > 0.0 { turns::fixed(p[k] / length[k] * turns::TURN) } else { 0 },
            );
        }
        (*s.pos_type.cast::<PosTypeFixed>().host().add(i)).position.map(i32::cast_unsigned)
    }
}

/// Computes the waves of each species and vector on the CPU, with the summation order of the kernels.
///
/// # Safety
/// The view describes valid host arrays.
pub unsafe fn sum_here(
    host: &Host,
    s: &StateView,
    length: [f64; 3],
    items: &Items,
    vectors: &[[i32; 3]],
) -> Vec<[f64; 2]> {
    // SAFETY: valid host arrays (contract of this function)
    let index = unsafe { s.index_of_tag.slice(s.n_local as usize) };
    let partial = tasks::map(host, items.entries.len() / ITEMS, |b| {
        let entries = items.entries[b * ITEMS..][..ITEMS].iter().take_while(|e| **e != NONE);
        // SAFETY: items are tags of the system, so the index of each is < n_local; the arrays are valid (contract of this function)
        let places: Vec<[u32; 3]> =
            entries.map(|e| unsafe { turns_of(s, length, index[*e as usize] as usize) }).collect();
        let wave = |n: &[i32; 3]| {
            let n = n.map(i32::cast_unsigned);
            let phase = |p: &[u32; 3]| (0..3).fold(0u32, |x, k| x.wrapping_add(n[k].wrapping_mul(p[k])));
            places.chunks(SINGLE).fold([0.0, 0.0], |[re, im], few| {
                let add = |[c, s]: [f32; 2], x| [c + turns::cosine(x), s + turns::sine(x)];
                let [c, s] = few.iter().map(phase).fold([0.0, 0.0], add);
                [re + f64::from(c), im + f64::from(s)]
            })
        };
        vectors.iter().map(wave).collect::<Vec<_>>()
    });
    let add = |[re, im]: [f64; 2], [x, y]: [f64; 2]| [re + x, im + y];
    let total = |species: usize, w: usize| {
        let blocks: Vec<usize> = items.blocks(species).collect();
        let runs = blocks.chunks(RUN).map(|run| run.iter().map(|b| partial[*b][w]).fold([0.0; 2], add));
        runs.fold([0.0; 2], add)
    };
    let total = &total;
    (0..items.count.len()).flat_map(|species| (0..vectors.len()).map(move |w| total(species, w))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contains_one_of_each_vector_and_its_opposite() {
        let all = vectors(0.0, 2.0, [10.0, 12.0, 9.0], [0.0; 3]);
        for (n, q) in &all {
            assert!(*q <= 2.0 && !all.iter().any(|(m, _)| *m == n.map(|x| -x)));
        }
        let mut count = 0;
        for x in -5i32..=5 {
            for y in -5i32..=5 {
                for z in -5i32..=5 {
                    let q2: f64 = [(x, 10.0), (y, 12.0), (z, 9.0)]
                        .iter()
                        .map(|(n, l)| (std::f64::consts::TAU * f64::from(*n) / l).powi(2))
                        .sum();
                    count += usize::from(q2 > 0.0 && q2.sqrt() <= 2.0);
                }
            }
        }
        assert_eq!(count, 2 * all.len());
        let about = number_up_to(2.0, [10.0, 12.0, 9.0], 3);
        assert!((about / all.len() as f64 - 1.0).abs() < 0.2, "{about} {}", all.len());
        assert_eq!(vectors(0.0, 2.0, [10.0, 12.0, 0.0], [0.0; 3]).iter().filter(|(n, _)| n[2] != 0).count(), 0);
        let some = choose(1.5, 2.0, 10, [10.0, 12.0, 9.0]);
        assert!(some.len() == 10 && some.windows(2).all(|w| w[0].1 <= w[1].1));
    }

    /// The reciprocal lattice of a box that is tilted by a whole edge is that of the rectangular one.
    #[test]
    fn boxes_of_one_lattice_have_the_same_vectors() {
        let length = [10.0, 12.0, 9.0];
        let norms = |tilt: [f64; 3]| {
            let mut q: Vec<f64> = vectors(0.0, 3.0, length, tilt).iter().map(|v| v.1).collect();
            q.sort_by(f64::total_cmp);
            q
        };
        let expected = norms([0.0; 3]);
        for tilt in [[10.0 / 12.0, 0.0, 0.0], [-10.0 / 12.0, 10.0 / 9.0, 0.0], [0.0, 10.0 / 9.0, -12.0 / 9.0]] {
            let found = norms(tilt);
            assert_eq!(found.len(), expected.len());
            assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12), "{tilt:?}");
        }
        let tilt = [0.3, -0.2, 0.4];
        let q = reciprocal([2, -1, 3], length, tilt);
        let edges = [[10.0, 0.0, 0.0], [0.3 * 12.0, 12.0, 0.0], [-0.2 * 9.0, 0.4 * 9.0, 9.0]];
        for (edge, n) in edges.iter().zip([2.0, -1.0, 3.0]) {
            let turns = (0..3).map(|k| q[k] * edge[k]).sum::<f64>() / std::f64::consts::TAU;
            assert!((turns - n).abs() < 1e-14, "{turns} {n}");
        }
    }
}
