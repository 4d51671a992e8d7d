//! The mesh on CUDA.
//!
//! A transform along an axis of n = a b points is one of a and one of b points in shared memory, which works for every n.
//! The transform along z, the product with the influence function and the transform back are one kernel.

use super::influence::AxisSums;
use super::plan::Mesh;
use crate::device_charges::{BLOCK, ChargeArgs, DeviceCharges, source, to_bytes, upload};
use crate::params::Model;
use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;
use std::f64::consts::TAU;

/// Numbers of a block's buffer for transforms.
const ELEMENTS: usize = 1024;

/// Arguments of all kernels.
#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct PppmArgs {
    charges: ChargeArgs,
    /// Sums of integer shares, 0 between evaluations.
    #[device(cxx = "u64*")]
    sum: DevicePtr<u8>,
    /// Complex grid of waves.
    #[device(cxx = "void*")]
    waves: DevicePtr<u8>,
    /// Potential of a unit charge.
    #[device(cxx = "real*")]
    potential: DevicePtr<u8>,
    /// Roots of unity of each axis.
    #[device(cxx = "const real*")]
    roots: [DevicePtr<u8>; 3],
    /// Sums over images of each axis, five for each wave, see influence.rs.
    #[device(cxx = "const double*")]
    tables: [DevicePtr<u8>; 3],
    unit: f64,
    inverse_unit: f64,
}

/// Kernels and grids.
pub struct DeviceMesh {
    mesh: Mesh,
    charges: DeviceCharges,
    spread: Kernel,
    forward_x: Kernel,
    forward_y: Kernel,
    z: Kernel,
    z_full: Kernel,
    inverse_y: Kernel,
    inverse_x: Kernel,
    force: Kernel,
    sum: DevicePtr<u8>,
    waves: DevicePtr<u8>,
    potential: DevicePtr<u8>,
    roots: [DevicePtr<u8>; 3],
    tables: [DevicePtr<u8>; 3],
}

/// Returns two factors of n that are as equal as possible.
fn factors(n: usize) -> [usize; 2] {
    let a = (1..=n).take_while(|a| a * a <= n).filter(|a| n.is_multiple_of(*a)).last().unwrap_or(1);
    [a, n / a]
}

/// Returns the number of lines that a block transforms; as `lines_of` of the kernels.
fn lines(n: usize) -> usize {
    (ELEMENTS / n).clamp(1, 16)
}

/// Returns the definitions that the kernels need.
fn settings(mesh: &Mesh) -> String {
    let mut text = format!("#define ORDER {}\n#define HALF {}u\n", mesh.order, mesh.grid[0] / 2 + 1);
    text += &format!("#define ELEMENTS {ELEMENTS}u\n");
    for (axis, n) in mesh.grid.into_iter().enumerate() {
        let [a, b] = factors(n);
        text += &format!("#define N{axis} {n}u\n#define A{axis} {a}u\n#define B{axis} {b}u\n");
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
        let text = source(PppmArgs::text(), &settings(mesh), include_str!("pppm.cuh"))?;
        let module = host.compile("pppm", &text)?;
        let kernel = |name: &str| host.kernel(module, name);
        let [nx, ny, nz] = mesh.grid;
        let (points, waves) = (nx * ny * nz, (nx / 2 + 1) * ny * nz);
        let real = if model.precision == Precision::Double { 8 } else { 4 };
        let (mut of_axis, mut tables) = ([DevicePtr::null(); 3], [DevicePtr::null(); 3]);
        for (k, n) in mesh.grid.into_iter().enumerate() {
            of_axis[k] = upload(host, &to_bytes(model, roots(n)))?;
            let t = AxisSums::new(n, mesh.order);
            let rows = (0..n).flat_map(|m| [t.number[m], t.first[m], t.zeroth[m], t.linear[m], t.square[m]]);
            tables[k] = upload(host, &rows.flat_map(f64::to_ne_bytes).collect::<Vec<u8>>())?;
        }
        let blocks = ((nx / 2 + 1) * ny).div_ceil(lines(nz));
        Ok(Self {
            mesh: *mesh,
            charges: DeviceCharges::new(host, model, module, blocks)?,
            spread: kernel("pppm_spread")?,
            forward_x: kernel("pppm_forward_x")?,
            forward_y: kernel("pppm_forward_y")?,
            z: kernel("pppm_z")?,
            z_full: kernel("pppm_z_full")?,
            inverse_y: kernel("pppm_inverse_y")?,
            inverse_x: kernel("pppm_inverse_x")?,
            force: kernel("pppm_force")?,
            sum: host.allocate_bytes(8 * points)?,
            waves: host.allocate_bytes(2 * real * waves)?,
            potential: host.allocate_bytes(real * points)?,
            roots: of_axis,
            tables,
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
        let unit = model.charge_unit();
        let args = PppmArgs {
            charges,
            sum: self.sum,
            waves: self.waves,
            potential: self.potential,
            roots: self.roots,
            tables: self.tables,
            unit,
            inverse_unit: 1.0 / unit,
        };
        let [nx, ny, nz] = self.mesh.grid;
        let (half, n) = (nx / 2 + 1, call.state.n_local);
        let rows = (ny * nz).div_ceil(lines(nx)) as u32;
        let planes = (half.div_ceil(lines(ny)) * nz) as u32;
        let columns = (half * ny).div_ceil(lines(nz)) as u32;
        let z = if charges.full != 0 { self.z_full } else { self.z };
        let mut arguments: [*mut Opaque; 1] = arguments![args];
        // SAFETY: these kernels have one PppmArgs parameter
        unsafe {
            self.charges.launch_dipole(host, &charges)?;
            host.launch(self.spread, (n * self.mesh.order as u32).div_ceil(BLOCK), BLOCK, &mut arguments)?;
            host.launch(self.forward_x, rows, 256, &mut arguments)?;
            host.launch(self.forward_y, planes, 256, &mut arguments)?;
            host.launch(z, columns, 256, &mut arguments)?;
            host.launch(self.inverse_y, planes, 256, &mut arguments)?;
            host.launch(self.inverse_x, rows, 256, &mut arguments)?;
            host.launch(self.force, n.div_ceil(BLOCK), BLOCK, &mut arguments)
        }
    }
}
