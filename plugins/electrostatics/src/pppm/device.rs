//! The mesh on CUDA.
//!
//! The charge at each point is summed in shared memory, brick by brick of the grid, from lists of the particles of bricks. A
//! transform along an axis of n = a b points is one of a and one of b points, in registers if both are at most 40. The transform along z, the
//! product with the influence function and the transform back are one kernel.

use super::influence::AxisSums;
use super::plan::Mesh;
use super::window::{PIECES, TERMS};
use crate::device_charges::{ChargeArgs, DeviceCharges, source, to_bytes, upload};
use crate::params::Model;
use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;
use std::f64::consts::TAU;

/// Threads of a block of `particles.cuh` that has no brick.
const THREADS: u32 = 256;
/// Least and largest number of threads of a block that has a brick.
const BRICK_THREADS: [usize; 2] = [96, 512];
/// Maximum number of threads of a block that has a plane.
const PLANE_THREADS: usize = 512;
/// Maximum number of points of a brick along each axis. In double precision shared memory has room for fewer.
const BRICK: [usize; 3] = [16, 16, 8];
const BRICK_IN_DOUBLE: [usize; 3] = [16, 8, 8];
/// Bytes of the numbers that a block transforms, and the largest factor of their number that registers hold; as in `waves.cuh`.
const LINE_BYTES: usize = 32768;
const MOST_IN_REGISTERS: usize = 40;

/// Arguments of all kernels.
#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct PppmArgs {
    charges: ChargeArgs,
    /// Charge at each point, in units that particles.cuh defines; 0 between evaluations.
    #[device(cxx = "u64*")]
    sums: DevicePtr<u8>,
    /// Potential of a unit charge at each point.
    #[device(cxx = "real*")]
    grid: DevicePtr<u8>,
    /// Complex grid of waves.
    #[device(cxx = "void*")]
    waves: DevicePtr<u8>,
    /// Particles by brick, each of which has room for as many, and the number of each brick; 0 between evaluations.
    #[device(cxx = "u32*")]
    list: DevicePtr<u8>,
    #[device(cxx = "u32*")]
    count: DevicePtr<u8>,
    /// Place of each particle among those of its brick.
    #[device(cxx = "u32*")]
    slot: DevicePtr<u8>,
    /// Bits of the largest charge; 0 between evaluations.
    #[device(cxx = "u32*")]
    largest: DevicePtr<u8>,
    /// Complex roots of unity of each axis.
    #[device(cxx = "const void*")]
    roots: [DevicePtr<u8>; 3],
    /// Sums over images of each axis, five for each wave, see influence.rs.
    #[device(cxx = "const real*")]
    tables: [DevicePtr<u8>; 3],
    /// The influence function times C/V of each wave, and the lengths of the box that it is for.
    #[device(cxx = "real*")]
    influence: DevicePtr<u8>,
    #[device(cxx = "double*")]
    table_box: DevicePtr<u8>,
    /// Bits of the largest charge as an integer in double precision.
    bits: u32,
    reserved: u32,
}

/// Kernels and grids.
pub struct DeviceMesh {
    mesh: Mesh,
    charges: DeviceCharges,
    bricks: Bricks,
    list: Kernel,
    spread: Kernel,
    transforms: Transforms,
    z: Kernel,
    z_full: Kernel,
    force: Kernel,
    force_full: Kernel,
    memory: Memory,
}

/// Kernels of the transforms along x and y, together or one after the other.
enum Transforms {
    Planes { planes: Planes, forward: Kernel, inverse: Kernel },
    Lines { forward: [Kernel; 2], inverse: [Kernel; 2] },
}

/// Arrays of the kernels; see [`PppmArgs`].
#[derive(Clone, Copy)]
struct Memory {
    sums: DevicePtr<u8>,
    grid: DevicePtr<u8>,
    waves: DevicePtr<u8>,
    list: DevicePtr<u8>,
    count: DevicePtr<u8>,
    slot: DevicePtr<u8>,
    largest: DevicePtr<u8>,
    roots: [DevicePtr<u8>; 3],
    tables: [DevicePtr<u8>; 3],
    influence: DevicePtr<u8>,
    table_box: DevicePtr<u8>,
}

impl Memory {
    /// Returns the arguments of an evaluation.
    fn arguments(self, charges: ChargeArgs, model: &Model) -> PppmArgs {
        let Self { sums, grid, waves, list, count, slot, largest, roots, tables, influence, table_box } = self;
        let bits = model.charge_bits();
        PppmArgs {
            charges,
            sums,
            grid,
            waves,
            list,
            count,
            slot,
            largest,
            roots,
            tables,
            influence,
            table_box,
            bits,
            reserved: 0,
        }
    }
}

/// Bricks of the grid; see particles.cuh.
#[derive(Clone, Copy)]
struct Bricks {
    /// Bricks along each axis.
    along: [usize; 3],
    /// Threads of a brick's block.
    threads: usize,
    /// Particles for which a brick's list has room, a multiple of the threads.
    capacity: usize,
    /// Largest share of a point in a charge, and a bit more.
    peak: f64,
}

impl Bricks {
    fn new(mesh: &Mesh, model: &Model) -> Self {
        let points = if model.precision == Precision::Double { BRICK_IN_DOUBLE } else { BRICK };
        let along: [usize; 3] = std::array::from_fn(|k| mesh.grid[k].div_ceil(points[k]));
        let peak = 1.01 * mesh.window.at(0.0).powi(3);
        // most bricks of a liquid have a thread for each particle; as many charges as threads must not overflow
        let mean = model.charged / along.iter().product::<usize>() as f64;
        let [least, most] = BRICK_THREADS;
        let most = most.min((126.0 / peak) as usize / 32 * 32).max(least);
        let threads = ((mean + 3.0 * mean.sqrt()) as usize).next_multiple_of(32).clamp(least, most);
        // a system may be much denser than on average in a part of the box
        let capacity = ((16.0 * mean) as usize).max(2 * threads).min(model.n).next_multiple_of(threads);
        Self { along, threads, capacity, peak }
    }

    fn number(&self) -> usize {
        self.along.iter().product()
    }
}

/// Returns two factors of n that are as equal as possible.
fn factors(n: usize) -> [usize; 2] {
    let a = (1..=n).take_while(|a| a * a <= n).filter(|a| n.is_multiple_of(*a)).last().unwrap_or(1);
    [a, n / a]
}

/// Returns the number of lines of n numbers that a block transforms.
fn lines(n: usize, precision: Precision) -> usize {
    if factors(n)[1] > MOST_IN_REGISTERS {
        return 1;
    }
    let bytes = if precision == Precision::Double { 16 } else { 8 };
    [16, 8, 4, 2].into_iter().find(|lines| bytes * n * lines <= LINE_BYTES).unwrap_or(1)
}

/// A kernel that transforms planes of constant z in shared memory; see planes.cuh.
#[derive(Clone, Copy)]
struct Planes {
    /// Factors of the points along x. A number of 64 bytes between places of a line would put many of them into one bank.
    factors: [usize; 2],
    threads: usize,
    bytes: usize,
}

impl Planes {
    /// Returns the kernel for a grid; `None` if the transforms are not in registers, pairs of rows are not even, or a block has less memory.
    fn new(grid: [usize; 3], precision: Precision, memory: usize) -> Option<Self> {
        let [nx, ny, _] = grid;
        let (mut of_x, mut of_y) = (factors(nx), factors(ny));
        if [of_x[1], of_y[1]].iter().any(|n| *n > MOST_IN_REGISTERS) || !ny.is_multiple_of(2) {
            return None;
        }
        if of_x[0].is_multiple_of(8) && !of_x[1].is_multiple_of(8) {
            of_x.swap(0, 1);
        }
        if !of_y[0].is_multiple_of(2) {
            of_y.swap(0, 1);
        }
        let padding = if of_x[0].is_multiple_of(8) { of_x[1] - 1 } else { 0 };
        let complex = if precision == Precision::Double { 16 } else { 8 };
        let bytes = complex * ny / 2 * ((nx + padding + 2) | 1);
        // small transforms of a stage, in as few rounds as the threads of a block allow
        let items = of_x[1].max(of_x[0]) * ny / 2;
        let items = items.max((nx / 2 + 1) * of_y[1].max(of_y[0]));
        let threads = items.div_ceil(items.div_ceil(PLANE_THREADS)).next_multiple_of(32).max(64);
        (bytes <= memory).then_some(Self { factors: of_x, threads, bytes })
    }

    /// Launches a kernel for all planes.
    ///
    /// # Errors
    /// Returns the driver's error.
    ///
    /// # Safety
    /// As [`Host::launch`]; the kernel was compiled for these planes.
    unsafe fn launch(self, host: &Host, kernel: Kernel, nz: usize, arguments: &mut [*mut Opaque]) -> Result<()> {
        // SAFETY: the contract is that of this function; the kernel's array has `bytes` bytes
        unsafe { host.launch_with_memory(kernel, nz as u32, self.threads as u32, self.bytes as u32, arguments) }
    }
}

/// Returns the threads of a block that transforms along z: one for each small transform.
fn threads_along_z(n: usize, precision: Precision) -> u32 {
    let items = factors(n)[1] * lines(n, precision);
    (items.next_multiple_of(32) as u32).clamp(64, THREADS)
}

/// Returns the definitions that the kernels need.
fn settings(mesh: &Mesh, precision: Precision, bricks: &Bricks, planes: Option<Planes>) -> String {
    let mut text = format!("#define ORDER {}\n#define HALF {}u\n", mesh.window.order, mesh.grid[0] / 2 + 1);
    // {:?} has all digits
    let pieces = format!("{:?}", mesh.window.pieces()).replace('[', "{").replace(']', "}");
    text += &format!("#define PIECES {pieces}\n#define TERMS {TERMS}\n#define MOST_PIECES {PIECES}\n");
    for (axis, n) in mesh.grid.into_iter().enumerate() {
        let ([a, b], lines) = (factors(n), lines(n, precision));
        let along = bricks.along[axis];
        text += &format!("#define BRICKS{axis} {along}u\n#define MOST{axis} {}u\n", n.div_ceil(along));
        text += &format!(
            "#define N{axis} {n}u\n#define A{axis} {a}u\n#define B{axis} {b}u\n#define LINES{axis} {lines}u\n"
        );
    }
    let Bricks { threads, capacity, peak, .. } = bricks;
    text += &format!("#define BRICK_THREADS {threads}u\n#define CAPACITY {capacity}u\n#define PEAK {peak:?}\n");
    if let Some(Planes { factors: [a, b], threads, bytes }) = planes {
        text += &format!("#define PLANE_A {a}u\n#define PLANE_B {b}u\n");
        text += &format!("#define PLANE_THREADS {threads}u\n#define PLANE_BYTES {bytes}u\n");
    }
    text
}

/// Returns cos and sin of the multiples of 2π/n.
fn roots(n: usize) -> impl Iterator<Item = f64> {
    (0..n).flat_map(move |k| {
        let (sin, cos) = (TAU * k as f64 / n as f64).sin_cos();
        [cos, sin]
    })
}

impl DeviceMesh {
    /// Compiles the kernels and allocates grids and tables.
    ///
    /// # Errors
    /// Returns an error if compilation or allocation fails.
    pub fn new(host: &Host, model: &Model, mesh: &Mesh) -> Result<Self> {
        let planes = Planes::new(mesh.grid, model.precision, host.block_memory()? as usize);
        let bricks = Bricks::new(mesh, model);
        let of_planes = if planes.is_some() { include_str!("cuda/planes.cuh") } else { include_str!("cuda/lines.cuh") };
        let kernels = concat!(
            include_str!("cuda/particles.cuh"),
            include_str!("cuda/transform.cuh"),
            include_str!("cuda/waves.cuh")
        );
        let text = source(
            PppmArgs::text(),
            &settings(mesh, model.precision, &bricks, planes),
            &format!("{kernels}{of_planes}"),
        )?;
        let module = host.compile("pppm", &text)?;
        let kernel = |name: &str| host.kernel(module, name);
        let [nx, ny, nz] = mesh.grid;
        let (points, waves) = (nx * ny * nz, (nx / 2 + 1) * ny * nz);
        let real = if model.precision == Precision::Double { 8 } else { 4 };
        let (mut of_axis, mut tables) = ([DevicePtr::null(); 3], [DevicePtr::null(); 3]);
        for (k, n) in mesh.grid.into_iter().enumerate() {
            of_axis[k] = upload(host, &to_bytes(model, roots(n)))?;
            let t = AxisSums::new(n, mesh.window);
            let rows = (0..n).flat_map(|m| [t.number[m], t.first[m], t.zeroth[m], t.linear[m], t.square[m]]);
            tables[k] = upload(host, &to_bytes(model, rows))?;
        }
        let blocks = ((nx / 2 + 1) * ny).div_ceil(lines(nz, model.precision));
        Ok(Self {
            mesh: *mesh,
            charges: DeviceCharges::new(host, model, module, blocks.max(model.n.div_ceil(THREADS as usize)))?,
            bricks,
            list: kernel("pppm_list")?,
            spread: kernel("pppm_spread")?,
            transforms: match planes {
                Some(planes) => Transforms::Planes {
                    planes,
                    forward: kernel("pppm_forward_plane")?,
                    inverse: kernel("pppm_inverse_plane")?,
                },
                None => Transforms::Lines {
                    forward: [kernel("pppm_forward_x")?, kernel("pppm_forward_y")?],
                    inverse: [kernel("pppm_inverse_x")?, kernel("pppm_inverse_y")?],
                },
            },
            z: kernel("pppm_z")?,
            z_full: kernel("pppm_z_full")?,
            force: kernel("pppm_force")?,
            force_full: kernel("pppm_force_full")?,
            memory: Memory {
                sums: upload(host, &vec![0; 8 * points])?,
                grid: host.allocate_bytes(real * points)?,
                waves: host.allocate_bytes(2 * real * waves)?,
                // blocks read an entry before they know the number of entries
                list: upload(host, &vec![0; 4 * bricks.number() * bricks.capacity])?,
                count: host.allocate_bytes(4 * bricks.number())?,
                slot: host.allocate_bytes(4 * model.n)?,
                largest: host.allocate_bytes(8)?,
                roots: of_axis,
                tables,
                influence: host.allocate_bytes(real * waves)?,
                table_box: host.allocate_bytes(24)?,
            },
        })
    }

    /// Launches the kernels of one evaluation.
    ///
    /// # Errors
    /// Returns an error if a launch fails.
    ///
    /// # Safety
    /// The views describe valid arrays of the device.
    pub unsafe fn launch(&self, host: &Host, model: &Model, call: &ForceCall) -> Result<()> {
        let charges = self.charges.arguments(model, call);
        let args = self.memory.arguments(charges, model);
        let [nx, ny, nz] = self.mesh.grid;
        let (half, n) = (nx / 2 + 1, call.state.n_local);
        let lines = |n: usize| lines(n, model.precision);
        let pairs_of_rows = (ny * nz).div_ceil(2).div_ceil(lines(nx)) as u32;
        let parts_of_planes = (half.div_ceil(lines(ny)) * nz) as u32;
        let columns = (half * ny).div_ceil(lines(nz)) as u32;
        let bricks = self.bricks.number() as u32;
        let (z, force, blocks, threads) = if charges.full != 0 {
            (self.z_full, self.force_full, n.div_ceil(THREADS), THREADS)
        } else {
            (self.z, self.force, bricks, self.bricks.threads as u32)
        };
        let mut arguments: [*mut Opaque; 1] = arguments![args];
        // SAFETY: these kernels have one PppmArgs parameter
        unsafe {
            self.charges.launch_totals(host, &charges)?;
            host.launch(self.list, n.div_ceil(THREADS), THREADS, &mut arguments)?;
            host.launch(self.spread, bricks, self.bricks.threads as u32, &mut arguments)?;
            match self.transforms {
                Transforms::Planes { planes, forward, .. } => planes.launch(host, forward, nz, &mut arguments)?,
                Transforms::Lines { forward: [x, y], .. } => {
                    host.launch(x, pairs_of_rows, 256, &mut arguments)?;
                    host.launch(y, parts_of_planes, 256, &mut arguments)?;
                }
            }
            host.launch(z, columns, threads_along_z(nz, model.precision), &mut arguments)?;
            match self.transforms {
                Transforms::Planes { planes, inverse, .. } => planes.launch(host, inverse, nz, &mut arguments)?,
                Transforms::Lines { inverse: [x, y], .. } => {
                    host.launch(y, parts_of_planes, 256, &mut arguments)?;
                    host.launch(x, pairs_of_rows, 256, &mut arguments)?;
                }
            }
            host.launch(force, blocks, threads, &mut arguments)
        }
    }
}
