//! Batches on CUDA, one launch each.

use crate::model::{CONTACTS, MAX_WALLS, Model, Space, WallRow};
use crate::perm::{Control, STEPS, WAITING};
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
const TOURS_AT_ONCE: u64 = 32_768;
/// Maximum memory for sites, positions, and waiting copies, in bytes.
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
    let perm = [(control.is_some(), "PERM"), (control == Some(Control::Flat), "FLAT")];
    let linear = model.parents.is_none();
    let beads = matches!(model.space, Space::Beads { .. });
    let others = [
        (!model.weights.is_empty(), "WEIGHTED"),
        (linear, "LINEAR"),
        (!linear || beads || control.is_some(), "PLACES"),
    ];
    flags.extend(perm.into_iter().chain(others).filter(|f| f.0).map(|f| f.1));
    for flag in flags {
        let _ = writeln!(text, "#define {flag}");
    }
    let _ = writeln!(text, "#define WAITING {WAITING}u\n#define BUDGET {}u", STEPS * model.n as u32);
    let kernel = if control.is_some() { include_str!("kernels/tours.cuh") } else { include_str!("kernels/plain.cuh") };
    kernel_source(&[Branch::text(), ChainArgs::text()], &(text + include_str!("kernels/chain.cuh") + kernel))
}

/// Returns log₂ of the number of slots in a thread's hash table.
fn bits(model: &Model) -> u32 {
    (2 * model.n).next_power_of_two().trailing_zeros().max(4)
}

/// A branch of a tour: its weight m 2^e, contacts and remaining copies; also the mean weight of a length.
#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct Branch {
    m: f64,
    e: i32,
    contacts: u32,
    copies: u32,
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
    #[device(cxx = "Branch*")]
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
    #[device(cxx = "Branch*")]
    stacks: DevicePtr<u8>,
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
    stacks: DevicePtr<u8>,
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
        let plain = model.parents.is_none() && sites > 0 && control.is_none();
        let places = if plain { 0 } else { 16 * model.n as u64 };
        let stack = if control.is_some() { size_of::<Branch>() as u64 * (model.n as u64 + 1) } else { 0 };
        let max_threads = if control.is_some() { TOURS_AT_ONCE } else { CHAINS_AT_ONCE };
        let threads = max_threads.min(ROOM / (sites + places + stack)).min(batch).next_multiple_of(u64::from(BLOCK));
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
            means: host.allocate_bytes(size_of::<Branch>() * l.rows())?,
            parents: upload(host, &le32(model.parents.as_deref().unwrap_or_default()))?,
            weights: upload(host, &le32(&model.weights))?,
            factors: upload(host, &factors)?,
            table: room(sites)?,
            places: room(places)?,
            stacks: room(stack)?,
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
        let mean = |w: &Weight| [w.m.to_ne_bytes(), i64::from(w.e as u32).to_ne_bytes(), [0; 8]].concat();
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
            stacks: self.stacks,
            queue: self.queue,
            area: l.area,
            per_unit: l.per_unit,
            low,
            high,
            walls,
        };
        let mut arguments: [*mut Opaque; 1] = arguments![args];
        // SAFETY: the kernel takes one `ChainArgs`
        unsafe { host.launch(self.kernel, self.threads / BLOCK, BLOCK, &mut arguments)? };
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
