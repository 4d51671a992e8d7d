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

/// Threads of a block of `particles.cuh`, and of one that has a brick.
const THREADS: u32 = 256;
const BRICK_THREADS: u32 = 96;
/// Points of a brick along each axis, about. In double precision shared memory has room for fewer.
const BRICK: [usize; 3] = [16, 8, 8];
const BRICK_IN_DOUBLE: [usize; 3] = [8, 8, 4];
/// Bytes of the numbers that a block transforms, and the largest factor of their number that registers hold; as in `waves.cuh`.
const LINE_BYTES: usize = 16384;
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
    /// Particles by brick, the number of each brick and where its part begins.
    #[device(cxx = "u32*")]
    list: DevicePtr<u8>,
    #[device(cxx = "u32*")]
    count: DevicePtr<u8>,
    #[device(cxx = "u32*")]
    start: DevicePtr<u8>,
    /// Place of each particle among those of its brick.
    #[device(cxx = "u32*")]
    slot: DevicePtr<u8>,
    /// Particles with a charge, and the bits of the largest charge.
    #[device(cxx = "u32*")]
    totals: DevicePtr<u8>,
    /// Roots of unity of each axis.
    #[device(cxx = "const real*")]
    roots: [DevicePtr<u8>; 3],
    /// Sums over images of each axis, five for each wave, see influence.rs.
    #[device(cxx = "const real*")]
    tables: [DevicePtr<u8>; 3],
    /// Bits of the largest charge as an integer in double precision.
    bits: u32,
    reserved: u32,
}

/// Kernels and grids.
pub struct DeviceMesh {
    mesh: Mesh,
    charges: DeviceCharges,
    count: Kernel,
    reserve: Kernel,
    list: Kernel,
    spread: Kernel,
    forward_x: Kernel,
    forward_y: Kernel,
    z: Kernel,
    z_full: Kernel,
    inverse_y: Kernel,
    inverse_x: Kernel,
    force: Kernel,
    force_full: Kernel,
    memory: Memory,
}

/// Arrays of the kernels; see [`PppmArgs`].
#[derive(Clone, Copy)]
struct Memory {
    sums: DevicePtr<u8>,
    grid: DevicePtr<u8>,
    waves: DevicePtr<u8>,
    list: DevicePtr<u8>,
    count: DevicePtr<u8>,
    start: DevicePtr<u8>,
    slot: DevicePtr<u8>,
    totals: DevicePtr<u8>,
    roots: [DevicePtr<u8>; 3],
    tables: [DevicePtr<u8>; 3],
}

/// Returns the number of bricks along each axis.
fn bricks(grid: [usize; 3], precision: Precision) -> [usize; 3] {
    let points = if precision == Precision::Double { BRICK_IN_DOUBLE } else { BRICK };
    std::array::from_fn(|k| (grid[k] as f64 / points[k] as f64).round().max(1.0) as usize)
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

/// Returns the definitions that the kernels need.
fn settings(mesh: &Mesh, precision: Precision) -> String {
    let mut text = format!("#define ORDER {}\n#define HALF {}u\n", mesh.window.order, mesh.grid[0] / 2 + 1);
    // {:?} has all digits
    let pieces = format!("{:?}", mesh.window.pieces()).replace('[', "{").replace(']', "}");
    text += &format!("#define PIECES {pieces}\n#define TERMS {TERMS}\n#define MOST_PIECES {PIECES}\n");
    for (axis, n) in mesh.grid.into_iter().enumerate() {
        let ([a, b], lines) = (factors(n), lines(n, precision));
        let bricks = bricks(mesh.grid, precision)[axis];
        text += &format!("#define BRICKS{axis} {bricks}u\n#define MOST{axis} {}u\n", n.div_ceil(bricks));
        text += &format!(
            "#define N{axis} {n}u\n#define A{axis} {a}u\n#define B{axis} {b}u\n#define LINES{axis} {lines}u\n"
        );
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
        let kernels = concat!(include_str!("particles.cuh"), include_str!("waves.cuh"));
        let text = source(PppmArgs::text(), &settings(mesh, model.precision), kernels)?;
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
        let bricks: usize = bricks(mesh.grid, model.precision).iter().product();
        let blocks = ((nx / 2 + 1) * ny).div_ceil(lines(nz, model.precision));
        Ok(Self {
            mesh: *mesh,
            charges: DeviceCharges::new(host, model, module, blocks.max(model.n.div_ceil(THREADS as usize)))?,
            count: kernel("pppm_count")?,
            reserve: kernel("pppm_reserve")?,
            list: kernel("pppm_list")?,
            spread: kernel("pppm_spread")?,
            forward_x: kernel("pppm_forward_x")?,
            forward_y: kernel("pppm_forward_y")?,
            z: kernel("pppm_z")?,
            z_full: kernel("pppm_z_full")?,
            inverse_y: kernel("pppm_inverse_y")?,
            inverse_x: kernel("pppm_inverse_x")?,
            force: kernel("pppm_force")?,
            force_full: kernel("pppm_force_full")?,
            memory: Memory {
                sums: upload(host, &vec![0; 8 * points])?,
                grid: host.allocate_bytes(real * points)?,
                waves: host.allocate_bytes(2 * real * waves)?,
                list: host.allocate_bytes(4 * model.n)?,
                count: upload(host, &vec![0; 4 * bricks])?,
                start: host.allocate_bytes(4 * bricks)?,
                slot: host.allocate_bytes(4 * model.n)?,
                totals: upload(host, &[0; 8])?,
                roots: of_axis,
                tables,
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
        let Memory { sums, grid, waves, list, count, start, slot, totals, roots, tables } = self.memory;
        let (bits, reserved) = (model.charge_bits(), 0);
        let args =
            PppmArgs { charges, sums, grid, waves, list, count, start, slot, totals, roots, tables, bits, reserved };
        let [nx, ny, nz] = self.mesh.grid;
        let (half, n) = (nx / 2 + 1, call.state.n_local);
        let lines = |n: usize| lines(n, model.precision);
        let pairs_of_rows = (ny * nz).div_ceil(2).div_ceil(lines(nx)) as u32;
        let planes = (half.div_ceil(lines(ny)) * nz) as u32;
        let columns = (half * ny).div_ceil(lines(nz)) as u32;
        let bricks = bricks(self.mesh.grid, model.precision).iter().product::<usize>() as u32;
        let (z, force, blocks, threads) = if charges.full != 0 {
            (self.z_full, self.force_full, n.div_ceil(THREADS), THREADS)
        } else {
            (self.z, self.force, bricks, BRICK_THREADS)
        };
        let mut arguments: [*mut Opaque; 1] = arguments![args];
        // SAFETY: these kernels have one PppmArgs parameter
        unsafe {
            self.charges.launch_totals(host, &charges)?;
            host.launch(self.count, n.div_ceil(THREADS), THREADS, &mut arguments)?;
            host.launch(self.reserve, bricks.div_ceil(THREADS), THREADS, &mut arguments)?;
            host.launch(self.list, n.div_ceil(THREADS), THREADS, &mut arguments)?;
            host.launch(self.spread, bricks, BRICK_THREADS, &mut arguments)?;
            host.launch(self.forward_x, pairs_of_rows, 256, &mut arguments)?;
            host.launch(self.forward_y, planes, 256, &mut arguments)?;
            host.launch(z, columns, 256, &mut arguments)?;
            host.launch(self.inverse_y, planes, 256, &mut arguments)?;
            host.launch(self.inverse_x, pairs_of_rows, 256, &mut arguments)?;
            host.launch(force, blocks, threads, &mut arguments)
        }
    }
}
