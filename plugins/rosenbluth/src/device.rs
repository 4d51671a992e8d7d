//! Batches on CUDA, one launch each.

use crate::model::{CONTACTS, MAX_WALLS, Model, Space, WallRow};
use crate::perm::{Control, lanes};
use crate::sums::{Layout, NOT_OVER, NUMBERS, Sums};
use crate::walk::Weight;
use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;
use std::fmt::Write as _;

const BLOCK: u32 = 128;
/// Number of concurrent threads: the capacity of 132 multiprocessors with 64 registers per thread, so that tables are
/// reused soon.
const CHAINS_AT_ONCE: u64 = 135_168;
/// Maximum memory for sites and positions, in bytes.
const ROOM: u64 = 4 << 30;
/// Chains up to this length have 32-bit keys.
const SMALL: usize = 500;

/// Returns the text of the kernel, preceded by its settings.
pub fn source(model: &Model, l: &Layout, control: Option<Control>) -> Result<String> {
    let mut text = format!(
        "#define MONOMERS {}\n#define WIDTH {}\n#define BLOCKS {}\n#define BINS {}\n#define WALLS {}\n#define WALL_UNITS {}\n",
        model.n,
        l.width,
        l.blocks,
        l.bins,
        model.walls.len(),
        model.wall_units()
    );
    let mut flags = vec![];
    match &model.space {
        Space::Lattice { offsets, .. } => {
            let list: Vec<String> = offsets.iter().map(|[x, y, z]| format!("{{{x}, {y}, {z}}}")).collect();
            let _ = write!(text, "#define Z {}\n#define OFFSETS {}\n", offsets.len(), list.join(", "));
            let _ = writeln!(text, "#define BITS {}", bits(model));
            if model.n <= SMALL {
                flags.push("SMALL");
            }
        }
        Space::Beads { trials, sigma2, reach2, reach } => {
            flags.push("BEADS");
            let _ = writeln!(text, "#define TRIALS {trials}\n#define CONTACTS {CONTACTS}");
            let _ = writeln!(text, "#define SIGMA2 {sigma2}ll\n#define REACH2 {reach2}ll\n#define REACH {reach}");
        }
    }
    let linear = model.parents.is_none();
    let beads = matches!(model.space, Space::Beads { .. });
    let known = [
        (control == Some(Control::Flat), "FLAT"),
        (!model.weights.is_empty(), "WEIGHTED"),
        (linear, "LINEAR"),
        (!linear || beads, "PLACES"),
    ];
    flags.extend(known.into_iter().filter(|f| f.0).map(|f| f.1));
    if control.is_some() {
        let _ = writeln!(text, "#define LANES {}u", lanes(l));
    }
    for flag in flags {
        let _ = writeln!(text, "#define {flag}");
    }
    let kernel = if control.is_some() { include_str!("kernels/tours.cuh") } else { include_str!("kernels/plain.cuh") };
    kernel_source(&[MeanWeight::text(), ChainArgs::text()], &(text + include_str!("kernels/chain.cuh") + kernel))
}

/// Returns the number of threads in a block. With PERM, a block grows a tour.
fn block(l: &Layout, control: Option<Control>) -> u32 {
    if control.is_some() { lanes(l) as u32 } else { BLOCK }
}

/// Returns log₂ of the number of slots in a thread's hash table.
fn bits(model: &Model) -> u32 {
    (2 * model.n).next_power_of_two().trailing_zeros().max(4)
}

/// The mean weight m 2^e of a bin.
#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct MeanWeight {
    m: f64,
    e: i32,
    reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct ChainArgs {
    first: u64,
    count: u64,
    key: RandomKey,
    threads: u32,
    reserved: u32,
    #[device(cxx = "u64*")]
    rows: DevicePtr<u8>,
    #[device(cxx = "u64*")]
    bins: DevicePtr<u8>,
    #[device(cxx = "int*")]
    over: DevicePtr<u8>,
    #[device(cxx = "int*")]
    scales: DevicePtr<u8>,
    #[device(cxx = "MeanWeight*")]
    means: DevicePtr<u8>,
    #[device(cxx = "u32*")]
    parents: DevicePtr<u8>,
    #[device(cxx = "u32*")]
    weights: DevicePtr<u8>,
    #[device(cxx = "double*")]
    factors: DevicePtr<u8>,
    #[device(cxx = "void*")]
    table: DevicePtr<u8>,
    #[device(cxx = "int4*")]
    places: DevicePtr<u8>,
    #[device(cxx = "u64*")]
    queue: DevicePtr<u8>,
    area: f64,
    per_unit: f64,
    low: f64,
    high: f64,
    walls: [WallRow; MAX_WALLS],
}

/// The kernel and its device memory.
pub struct DeviceSampler {
    kernel: Kernel,
    threads: u32,
    rows: DevicePtr<u8>,
    bins: DevicePtr<u8>,
    over: DevicePtr<u8>,
    scales: DevicePtr<u8>,
    means: DevicePtr<u8>,
    parents: DevicePtr<u8>,
    weights: DevicePtr<u8>,
    factors: DevicePtr<u8>,
    table: DevicePtr<u8>,
    places: DevicePtr<u8>,
    queue: DevicePtr<u8>,
}

fn upload(host: &Host, bytes: &[u8]) -> Result<DevicePtr<u8>> {
    let memory = host.allocate_bytes(bytes.len().max(8))?;
    host.upload_bytes(memory, bytes)?;
    Ok(memory)
}

impl DeviceSampler {
    /// Compiles the kernel and allocates memory for batches of this size.
    pub fn new(host: &Host, model: &Model, l: &Layout, control: Option<Control>, batch: u64) -> Result<Self> {
        let module = host.compile("rosenbluth", &source(model, l, control)?)?;
        let name = if control.is_some() { "rosenbluth_tours" } else { "rosenbluth_chains" };
        let key = if model.n <= SMALL { 4 } else { 8 };
        let sites = if matches!(model.space, Space::Lattice { .. }) { key << bits(model) } else { 0 };
        let plain = model.parents.is_none() && sites > 0;
        let places = if plain { 0 } else { 16 * model.n as u64 };
        let wanted = if control.is_some() { batch * lanes(l) as u64 } else { batch };
        let threads =
            CHAINS_AT_ONCE.min(ROOM / (sites + places)).min(wanted).next_multiple_of(u64::from(block(l, control)));
        let room = |bytes: u64| host.allocate_bytes((threads * bytes).max(16) as usize);
        let le32 = |list: &[u32]| list.iter().flat_map(|x| x.to_ne_bytes()).collect::<Vec<u8>>();
        let factors: Vec<u8> = model.factors.iter().flat_map(|x| x.to_ne_bytes()).collect();
        Ok(Self {
            kernel: host.kernel(module, name)?,
            threads: threads as u32,
            rows: host.allocate_bytes(8 * NUMBERS * l.blocks * l.rows())?,
            bins: host.allocate_bytes((8 * l.blocks * l.bins).max(8))?,
            over: host.allocate_bytes(4 * l.rows())?,
            scales: host.allocate_bytes(4 * l.rows())?,
            means: host.allocate_bytes(size_of::<MeanWeight>() * l.rows())?,
            parents: upload(host, &le32(model.parents.as_deref().unwrap_or_default()))?,
            weights: upload(host, &le32(&model.weights))?,
            factors: upload(host, &factors)?,
            table: room(sites)?,
            places: room(places)?,
            queue: host.allocate_bytes(8)?,
        })
    }

    /// Draws the chains or tours first … first + n − 1.
    #[expect(clippy::too_many_arguments)]
    pub fn batch(
        &self,
        host: &Host,
        model: &Model,
        l: &Layout,
        control: Option<Control>,
        scales: &[i32],
        means: &[Weight],
        first: u64,
        n: u64,
    ) -> Result<Sums> {
        let mut sums = Sums::new(l, l.blocks);
        let (row_bytes, bin_bytes) = (8 * sums.rows.len(), 8 * sums.bins.len());
        host.upload_bytes(self.rows, &vec![0; row_bytes])?;
        host.upload_bytes(self.bins, &vec![0; bin_bytes])?;
        host.upload_bytes(self.queue, &[0; 8])?;
        let le = |list: &[i32]| list.iter().flat_map(|x| x.to_ne_bytes()).collect::<Vec<u8>>();
        host.upload_bytes(self.over, &le(&vec![NOT_OVER; l.rows()]))?;
        host.upload_bytes(self.scales, &le(scales))?;
        let mean = |w: &Weight| [w.m.to_ne_bytes(), i64::from(w.e as u32).to_ne_bytes()].concat();
        host.upload_bytes(self.means, &means.iter().flat_map(mean).collect::<Vec<u8>>())?;
        let mut walls = [WallRow::default(); MAX_WALLS];
        walls.iter_mut().zip(&model.walls).for_each(|(to, w)| *to = *w);
        let (low, high) = match control {
            Some(Control::Thresholds { low, high }) => (low, high),
            _ => (0.0, 0.0),
        };
        let args = ChainArgs {
            first,
            count: n,
            key: model.key,
            threads: self.threads,
            reserved: 0,
            rows: self.rows,
            bins: self.bins,
            over: self.over,
            scales: self.scales,
            means: self.means,
            parents: self.parents,
            weights: self.weights,
            factors: self.factors,
            table: self.table,
            places: self.places,
            queue: self.queue,
            area: l.area,
            per_unit: l.per_unit,
            low,
            high,
            walls,
        };
        let mut arguments: [*mut Opaque; 1] = arguments![args];
        let block = block(l, control);
        // SAFETY: the kernel takes one `ChainArgs`
        unsafe { host.launch(self.kernel, self.threads / block, block, &mut arguments)? };
        let mut bytes = vec![0; row_bytes];
        host.download_bytes(self.rows, &mut bytes)?;
        let numbers = |bytes: &[u8], to: &mut [i64]| {
            to.iter_mut().zip(bytes.as_chunks::<8>().0).for_each(|(x, b)| *x = i64::from_ne_bytes(*b));
        };
        numbers(&bytes, &mut sums.rows);
        bytes.resize(bin_bytes, 0);
        host.download_bytes(self.bins, &mut bytes)?;
        numbers(&bytes, &mut sums.bins);
        bytes.resize(4 * l.rows(), 0);
        host.download_bytes(self.over, &mut bytes)?;
        sums.over.iter_mut().zip(bytes.as_chunks::<4>().0).for_each(|(x, b)| *x = i32::from_ne_bytes(*b));
        Ok(sums)
    }
}
