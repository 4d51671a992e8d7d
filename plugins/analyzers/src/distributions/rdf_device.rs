//! g(r) on a device, with the kernels of `rdf.cuh`.

use crate::distributions::pairs::Cells;
use crate::distributions::which::PairSelection;
use galamost_measure::HEADER;
use galamost_measure::molecules::Molecules;
use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;
use galamost_plugin_api::tilt::heights;
use galamost_plugin_api::views::StateView;

const BLOCK: u32 = 256;
/// Threads per counting block, and maximum number of blocks: each block adds its histogram to the global counts.
const COUNTERS: u32 = 128;
const MAX_BLOCKS: u32 = 4096;
/// Maximum number of counters in a block's own histogram (24 kB of shared memory).
const HISTOGRAM: usize = 6144;
/// Cells per thread block: `CELLS_PER_THREAD` times its threads.
const CELLS_PER_BLOCK: usize = 2048;

#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct RdfArgs {
    state: StateView,
    /// Particles in the order of the state, or centers of molecules.
    #[device(cxx = "const PosType*")]
    points: DevicePtr<u8>,
    #[device(cxx = "PosType*")]
    sorted: DevicePtr<u8>,
    /// `sorted` as lengths in single precision, for rdf_count_quick.
    #[device(cxx = "float4*")]
    quick: DevicePtr<u8>,
    /// Tags of particles in the order of `sorted`; null if all pairs are counted.
    #[device(cxx = "u32*")]
    sorted_tag: DevicePtr<u8>,
    #[device(cxx = "u32*")]
    cell_of: DevicePtr<u8>,
    #[device(cxx = "u32*")]
    arrival: DevicePtr<u8>,
    /// Index of the first point of each cell, cells + 1 entries.
    #[device(cxx = "u32*")]
    start: DevicePtr<u8>,
    #[device(cxx = "u32*")]
    block_sums: DevicePtr<u8>,
    /// Column of each pair of types, -1 for none.
    #[device(cxx = "const int*")]
    column_of: DevicePtr<u8>,
    #[device(cxx = "u64*")]
    counts: DevicePtr<u8>,
    /// Pairs / V of each column, summed over the samples.
    #[device(cxx = "double*")]
    density: DevicePtr<u8>,
    /// Number of particles of each type in this sample.
    #[device(cxx = "u32*")]
    numbers: DevicePtr<u8>,
    /// Excluded pairs.
    #[device(cxx = "const u32*")]
    first: DevicePtr<u8>,
    #[device(cxx = "const u32*")]
    partner: DevicePtr<u8>,
    #[device(cxx = "const u32*")]
    molecule: DevicePtr<u8>,
    r_max: f64,
    per_unit: f64,
    volume: f64,
    length: [f64; 3],
    tilt: [f64; 3],
    n: [u32; 3],
    reach: [u32; 3],
    points_n: u32,
    cells: u32,
    types: u32,
    columns: u32,
    bins: u32,
    same: u32,
    /// For rdf_count_quick, precomputed in f32: size of a fixed-point unit, box lengths, bins per unit of length, error bound of a distance (in bins), and upper limit of the last bin plus that bound.
    unit: [f32; 3],
    box_length: [f32; 3],
    bins_per_length: f32,
    margin: f32,
    end: f32,
    reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct CenterArgs {
    state: StateView,
    #[device(cxx = "PosType*")]
    centers: DevicePtr<u8>,
    #[device(cxx = "const u32*")]
    first: DevicePtr<u8>,
    #[device(cxx = "const u32*")]
    members: DevicePtr<u8>,
    #[device(cxx = "const u32*")]
    parent: DevicePtr<u8>,
    /// Of each member, relative to the first of its molecule.
    #[device(cxx = "long long*")]
    offset: DevicePtr<u8>,
    molecules: u32,
    reserved: u32,
}

struct Kernels {
    centers: Kernel,
    clear: Kernel,
    cells: Kernel,
    sum_cells: Kernel,
    start_cells: Kernel,
    fill: Kernel,
    count: Kernel,
    count_quick: Kernel,
    close: Kernel,
}

/// Device memory for the points of a system.
struct Room {
    sorted: DevicePtr<u8>,
    quick: DevicePtr<u8>,
    sorted_tag: DevicePtr<u8>,
    cell_of: DevicePtr<u8>,
    arrival: DevicePtr<u8>,
    start: DevicePtr<u8>,
    block_sums: DevicePtr<u8>,
}

/// Molecules on the device, and memory for their centers.
struct OnDevice {
    centers: DevicePtr<u8>,
    first: DevicePtr<u8>,
    members: DevicePtr<u8>,
    parent: DevicePtr<u8>,
    offset: DevicePtr<u8>,
    n: usize,
}

/// What to count: columns of pairs of types.
pub struct Counting<'a> {
    /// Largest distance.
    pub r_max: f64,
    /// Number of bins.
    pub bins: usize,
    /// Number of types.
    pub types: usize,
    /// Types of each column.
    pub columns: &'a [[usize; 2]],
    /// Column of each pair of types.
    pub column_of: &'a [Option<usize>],
}

/// Kernels and their device memory.
pub struct RdfDevice {
    host: Host,
    kernels: Kernels,
    counts: DevicePtr<u8>,
    density: DevicePtr<u8>,
    numbers: DevicePtr<u8>,
    column_of: DevicePtr<u8>,
    pair: DevicePtr<u8>,
    room: Option<Room>,
    molecules: Option<OnDevice>,
    /// Pair selection on the device: first, partner, molecule.
    excluded: [DevicePtr<u8>; 3],
    selection: PairSelection,
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_ne_bytes()).collect()
}

/// Allocates memory and uploads these words.
fn uploaded(host: &Host, values: &[u32]) -> Result<DevicePtr<u8>> {
    let memory = host.allocate_bytes((4 * values.len()).max(4))?;
    host.upload_bytes(memory, &words(values))?;
    Ok(memory)
}

impl RdfDevice {
    /// Compiles the kernels and allocates the counters.
    pub fn new(host: Host, c: &Counting<'_>) -> Result<Self> {
        let slots = c.columns.len() * c.bins;
        let histogram = if slots <= HISTOGRAM { slots } else { 0 };
        let text = format!(
            "{HEADER}\n#define HISTOGRAM {histogram}u\n#define TYPES {}u\n{}",
            c.types,
            include_str!("rdf.cuh")
        );
        let module = host.compile("rdf", &kernel_source(&[RdfArgs::text(), CenterArgs::text()], &text)?)?;
        let kernel = |name: &str| host.kernel(module, name);
        let column = |c: &Option<usize>| c.map_or(u32::MAX, |c| c as u32);
        let pair: Vec<u32> = c.columns.iter().flatten().map(|t| *t as u32).collect();
        Ok(Self {
            kernels: Kernels {
                centers: kernel("molecule_centers")?,
                clear: kernel("rdf_clear")?,
                cells: kernel("rdf_cells")?,
                sum_cells: kernel("rdf_sum_cells")?,
                start_cells: kernel("rdf_start_cells")?,
                fill: kernel("rdf_fill")?,
                count: kernel("rdf_count")?,
                count_quick: kernel("rdf_count_quick")?,
                close: kernel("rdf_close")?,
            },
            counts: host.allocate_bytes(8 * slots)?,
            density: host.allocate_bytes(8 * c.columns.len())?,
            numbers: host.allocate_bytes(4 * c.types)?,
            column_of: uploaded(&host, &c.column_of.iter().map(column).collect::<Vec<_>>())?,
            pair: uploaded(&host, &pair)?,
            room: None,
            molecules: None,
            excluded: [DevicePtr::null(); 3],
            selection: PairSelection::default(),
            host,
        })
    }

    /// Counts centers of these molecules instead of particles.
    pub fn set_molecules(&mut self, m: &Molecules) -> Result<()> {
        let host = &self.host;
        self.molecules = Some(OnDevice {
            centers: host.allocate_bytes(32 * m.len())?,
            first: uploaded(host, &m.first)?,
            members: uploaded(host, &m.members)?,
            parent: uploaded(host, &m.parent)?,
            offset: host.allocate_bytes(24 * m.members.len())?,
            n: m.len(),
        });
        Ok(())
    }

    /// Sets the pair selection for subsequent samples.
    pub fn select_pairs(&mut self, selection: PairSelection) -> Result<()> {
        if selection == self.selection {
            return Ok(());
        }
        for old in self.excluded.iter_mut().filter(|p| !p.is_null()) {
            self.host.free(std::mem::take(old))?;
        }
        if !selection.first.is_empty() {
            self.excluded[0] = uploaded(&self.host, &selection.first)?;
            self.excluded[1] = uploaded(&self.host, &selection.partner)?;
        }
        if !selection.molecule.is_empty() {
            self.excluded[2] = uploaded(&self.host, &selection.molecule)?;
        }
        self.selection = selection;
        Ok(())
    }

    /// Counts the pairs of a state, in a box with lengths and tilt factors.
    ///
    /// # Safety
    /// The view describes valid arrays of the device.
    pub unsafe fn sample(&mut self, c: &Counting<'_>, s: &StateView, shape: [[f64; 3]; 2], volume: f64) -> Result<()> {
        let host = self.host;
        let launch = |kernel: Kernel, threads: usize, block: u32, args: &RdfArgs| {
            let mut arguments: [*mut Opaque; 1] = arguments![*args];
            // SAFETY: the kernels take one `RdfArgs`
            unsafe { host.launch(kernel, threads.div_ceil(block as usize).max(1) as u32, block, &mut arguments) }
        };
        // SAFETY: the view describes arrays of the device (contract of this function)
        let (points, n) = unsafe { self.points(s)? };
        self.allocate_room(n, galamost_measure::positions::record(s))?;
        let Some(room) = &self.room else { return Ok(()) };
        let (cells, quick) = grid(c, s, n, shape);
        let args = self.rdf_args(c, s, room, (points, n), &cells, quick, shape, volume);
        let all: usize = cells.n.iter().product();
        let k = &self.kernels;
        let scanned = all.div_ceil(CELLS_PER_BLOCK) * BLOCK as usize;
        launch(k.clear, (all + 1).max(c.types), BLOCK, &args)?;
        launch(k.cells, n, BLOCK, &args)?;
        launch(k.sum_cells, scanned, BLOCK, &args)?;
        launch(k.start_cells, scanned, BLOCK, &args)?;
        launch(k.fill, n, BLOCK, &args)?;
        launch(if quick { k.count_quick } else { k.count }, n.min((MAX_BLOCKS * COUNTERS) as usize), COUNTERS, &args)?;
        let mut arguments: [*mut Opaque; 2] = arguments![args, self.pair];
        let blocks = c.columns.len().div_ceil(64) as u32;
        // SAFETY: the kernel takes an `RdfArgs` and a pointer
        unsafe { host.launch(k.close, blocks, 64, &mut arguments) }
    }

    /// Returns the points to count: particles, or centers of mass of molecules, which it computes.
    ///
    /// # Safety
    /// The view describes valid arrays of the device.
    unsafe fn points(&self, s: &StateView) -> Result<(DevicePtr<u8>, usize)> {
        let Some(m) = &self.molecules else { return Ok((s.pos_type, s.n_local as usize)) };
        let args = CenterArgs {
            state: *s,
            centers: m.centers,
            first: m.first,
            members: m.members,
            parent: m.parent,
            offset: m.offset,
            molecules: m.n as u32,
            reserved: 0,
        };
        let mut arguments: [*mut Opaque; 1] = arguments![args];
        // SAFETY: the kernel takes one `CenterArgs`
        unsafe { self.host.launch(self.kernels.centers, m.n.div_ceil(64).max(1) as u32, 64, &mut arguments)? };
        Ok((m.centers, m.n))
    }

    /// Allocates memory for `n` points of `record` bytes, once.
    fn allocate_room(&mut self, n: usize, record: usize) -> Result<()> {
        if self.room.is_none() {
            let host = &self.host;
            let max_cells = Cells::max_along(n).pow(3);
            self.room = Some(Room {
                sorted: host.allocate_bytes(record * n)?,
                quick: host.allocate_bytes(16 * n)?,
                sorted_tag: host.allocate_bytes(4 * n)?,
                cell_of: host.allocate_bytes(4 * n)?,
                arrival: host.allocate_bytes(4 * n)?,
                start: host.allocate_bytes(4 * (max_cells + 1))?,
                block_sums: host.allocate_bytes(4 * max_cells.div_ceil(CELLS_PER_BLOCK))?,
            });
        }
        Ok(())
    }

    /// Builds the kernel arguments. `quick`: use single precision away from bin limits.
    fn rdf_args(
        &self,
        c: &Counting<'_>,
        s: &StateView,
        room: &Room,
        points: (DevicePtr<u8>, usize),
        cells: &Cells,
        quick: bool,
        [length, tilt]: [[f64; 3]; 2],
        volume: f64,
    ) -> RdfArgs {
        let [first, partner, molecule] = self.excluded;
        let tags = if first.is_null() && molecule.is_null() { DevicePtr::null() } else { room.sorted_tag };
        // positions and shifted positions have rounding errors of at most 2⁻²⁵ L and 2⁻²⁴ L, the root and the product 3e-7
        let (per_unit, longest) = (c.bins as f64 / c.r_max, length.iter().copied().fold(0.0, f64::max));
        let margin = (5e-7 * c.bins as f64 + 6e-7 * longest * per_unit) as f32;
        RdfArgs {
            state: *s,
            points: points.0,
            sorted: room.sorted,
            quick: if quick { room.quick } else { DevicePtr::null() },
            sorted_tag: tags,
            cell_of: room.cell_of,
            arrival: room.arrival,
            start: room.start,
            block_sums: room.block_sums,
            column_of: self.column_of,
            counts: self.counts,
            density: self.density,
            numbers: self.numbers,
            first,
            partner,
            molecule,
            r_max: c.r_max,
            per_unit,
            volume,
            length,
            tilt,
            n: cells.n.map(|n| n as u32),
            reach: cells.reach.map(|r| r as u32),
            points_n: points.1 as u32,
            cells: cells.n.iter().product::<usize>() as u32,
            types: c.types as u32,
            columns: c.columns.len() as u32,
            bins: c.bins as u32,
            same: u32::from(self.selection.same),
            unit: length.map(|l| (l / 4_294_967_296.0) as f32),
            box_length: length.map(|l| l as f32),
            bins_per_length: per_unit as f32,
            margin,
            end: c.bins as f32 + margin,
            reserved: 0,
        }
    }

    /// Downloads the counts and densities so far. Waits for the device.
    pub fn download(&self, counts: &mut [u64], density: &mut [f64]) -> Result<()> {
        let mut bytes = vec![0; 8 * counts.len()];
        self.host.download_bytes(self.counts, &mut bytes)?;
        counts.iter_mut().zip(bytes.as_chunks::<8>().0).for_each(|(c, b)| *c = u64::from_ne_bytes(*b));
        let mut bytes = vec![0; 8 * density.len()];
        self.host.download_bytes(self.density, &mut bytes)?;
        density.iter_mut().zip(bytes.as_chunks::<8>().0).for_each(|(d, b)| *d = f64::from_ne_bytes(*b));
        Ok(())
    }

    /// Uploads the counts and densities of a checkpoint.
    pub fn upload(&self, counts: &[u64], density: &[f64]) -> Result<()> {
        self.host.upload_bytes(self.counts, &counts.iter().flat_map(|c| c.to_ne_bytes()).collect::<Vec<_>>())?;
        self.host.upload_bytes(self.density, &density.iter().flat_map(|d| d.to_ne_bytes()).collect::<Vec<_>>())
    }
}

/// Chooses the cell grid for `n` points, and whether single precision can decide most bins.
fn grid(c: &Counting<'_>, s: &StateView, n: usize, [length, tilt]: [[f64; 3]; 2]) -> (Cells, bool) {
    let length = heights(length, tilt);
    // on a device, few large cells are faster than many small ones; a small box may only allow small cells
    let has_cells = |c: &Cells| (0..3).all(|k| c.n[k] > 1 || length[k] == 0.0);
    let large = Cells::new(n, length, c.r_max, 1.0);
    let cells = if has_cells(&large) { large } else { Cells::new(n, length, c.r_max, 2.0) };
    // without cells along an axis, in a triclinic box, or with too many bins for f32, all distances are computed in f64
    let quick = s.precision != Precision::Double as u32 && has_cells(&cells) && tilt == [0.0; 3] && c.bins <= 100_000;
    (cells, quick)
}
