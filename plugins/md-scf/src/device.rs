//! Densities, fields and forces on CUDA.

use crate::model::{Model, Scheme};
use crate::spectrum;
use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::{BlockSums, Kernel};
use galamost_plugin_api::views::StateView;

const BLOCK: u32 = 128;
/// Vertices of a brick.
const BRICK: usize = 64;
/// Vertices whose sums a word holds if there is a limit for them.
const PACKED: usize = 2;
const BRICK_BLOCK: u32 = 256;
const SUM_BLOCK: u32 = 256;
/// Memory of the check of sums with a limit, see `CHECKS` in grid.cuh.
const CHECK_BYTES: usize = 16 * 128;
/// Maximum number of blocks that sum energies.
const SUM_BLOCKS: u32 = 264;

/// Returns the kernel source with its settings; the Fourier transform is included only if it is needed.
fn source(model: &Model, bricks: bool) -> Result<String> {
    let mut text = format!("#define TYPES {}\n#define FIELDS {}\n", model.types, model.field_count());
    let settings = [
        ("PACKED", model.limits()),
        ("PAPER", model.scheme == Scheme::Paper),
        ("CHARGES", model.charges.is_some()),
        ("SPECTRAL", model.uses_fourier()),
    ];
    for (name, _) in settings.into_iter().filter(|s| s.1) {
        text += &format!("#define {name}\n");
    }
    text += include_str!("kernels/grid.cuh");
    text += if bricks { include_str!("kernels/bricks.cuh") } else { include_str!("kernels/whole.cuh") };
    text += include_str!("kernels/md_scf.cuh");
    if model.uses_fourier() {
        text += include_str!("kernels/spectral.cuh");
    }
    kernel_source(&[MdScfArgs::text()], &(text + include_str!("kernels/sums.cuh")))
}

/// Kernels of the Fourier transform, its two grids and its matrices.
struct Spectral {
    axis: Kernel,
    modes: Kernel,
    work: [DevicePtr<u8>; 2],
    cas: [DevicePtr<u8>; 3],
}

impl Spectral {
    /// Transforms all fields along one axis. `needed` is 1 if only fields need it, 2 if energies do as well.
    fn transform_axis(
        &self,
        host: &Host,
        call: &Launch,
        grids: [DevicePtr<u8>; 2],
        axis: u32,
        needed: u32,
    ) -> Result<()> {
        let (args, [from, to]) = (call.args, grids);
        let mut arguments: [*mut Opaque; 5] = arguments![args, from, to, axis, needed];
        // SAFETY: the kernel has these parameters
        unsafe { host.launch(self.axis, call.axis_blocks, 256, &mut arguments) }
    }
}

/// Sums of several GPUs in bricks of 4 × 4 × 4 vertices; see bricks.cuh.
struct Bricks {
    sums: BlockSums,
    /// Words of one field in a brick.
    words: usize,
    complete: Kernel,
    volume: DevicePtr<u8>,
}

impl Bricks {
    /// Returns whether a run uses bricks. They save nothing if a GPU needs all fields, as for a Fourier transform, or because its particles
    /// use fields of former steps.
    fn apply(host: &Host, model: &Model) -> bool {
        host.ranks() > 1 && !model.uses_fourier() && model.density_every == 1 && model.field_every == 1
    }

    fn new(host: &Host, model: &Model, complete: Kernel) -> Result<Self> {
        let bricks: usize = model.grid.iter().map(|n| n.div_ceil(4)).product();
        let words = if model.limits() { BRICK / PACKED } else { BRICK };
        let sums = host.block_sums(bricks as u32, words * model.field_count())?;
        Ok(Self { sums, words, complete, volume: host.allocate_bytes(8)? })
    }

    /// Returns the number of thread blocks with a thread for each word of a field.
    fn thread_blocks(&self) -> u32 {
        self.sums.blocks.div_ceil(BRICK_BLOCK / self.words as u32)
    }
}

/// Arguments of the kernels in one evaluation of the force.
struct Launch {
    args: MdScfArgs,
    /// Blocks of a transform along one axis.
    axis_blocks: u32,
}

/// Kernels and grids.
pub struct DeviceFields {
    collect: Kernel,
    field: Kernel,
    sums: Kernel,
    force: Kernel,
    potential: Kernel,
    spectral: Option<Spectral>,
    bricks: Option<Bricks>,
    sum: DevicePtr<u8>,
    /// The sums of all GPUs; `sum` with one.
    total: DevicePtr<u8>,
    densities: DevicePtr<u8>,
    fields: DevicePtr<u8>,
    matrix: DevicePtr<u8>,
    partial: DevicePtr<u8>,
    potentials: DevicePtr<u8>,
    counter: DevicePtr<u8>,
    evaluated: DevicePtr<u8>,
    collected: DevicePtr<u8>,
    check: DevicePtr<u8>,
}

#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct MdScfArgs {
    state: StateView,
    /// Sums of integer weights, 0 between density updates; one grid per field. Null if `bricks` are used. A word has one sum, or
    /// two with `PACKED`, see grid.cuh.
    #[device(cxx = "u64*")]
    sum: DevicePtr<u8>,
    /// The same of the particles of all GPUs.
    #[device(cxx = "const u64*")]
    total: DevicePtr<u8>,
    /// Number of particles (or charge) at each vertex.
    #[device(cxx = "real*")]
    density: DevicePtr<u8>,
    /// V, and the potential of charges.
    #[device(cxx = "real*")]
    field: DevicePtr<u8>,
    /// Grids in Fourier space.
    #[device(cxx = "real*")]
    work: [DevicePtr<u8>; 2],
    /// Chi + 1/kappa of each pair of types.
    #[device(cxx = "const real*")]
    matrix: DevicePtr<u8>,
    /// Transform matrix of each axis, see spectrum.rs.
    #[device(cxx = "const real*")]
    cas: [DevicePtr<u8>; 3],
    #[device(cxx = "double*")]
    partial: DevicePtr<u8>,
    /// Sum of V over the particles of each block.
    #[device(cxx = "double*")]
    potentials: DevicePtr<u8>,
    #[device(cxx = "u32*")]
    counter: DevicePtr<u8>,
    /// 1 + the step of the last evaluation; 0 before the first one.
    #[device(cxx = "u64*")]
    evaluated: DevicePtr<u8>,
    /// Nonzero: this step has new densities.
    #[device(cxx = "u32*")]
    collected: DevicePtr<u8>,
    /// Sums of all weights and a flag, to find sums that are too large; see grid.cuh.
    #[device(cxx = "u64*")]
    check: DevicePtr<u8>,
    /// The volume of the box in the last update of `bricks`.
    #[device(cxx = "double*")]
    volume: DevicePtr<u8>,
    bricks: BlockSums,
    sums: DevicePtr<Sums>,
    quantities: DevicePtr<f64>,
    density_every: u64,
    field_every: u64,
    unit_weight: f64,
    of_type: f64,
    of_charge: f64,
    rho0: f64,
    inv_kappa: f64,
    sigma: f64,
    coulomb: f64,
    alpha: f64,
    grid: [u32; 3],
    vertices: u32,
    full: u32,
    component: u32,
    virial: u32,
    reserved: u32,
}

/// Converts numbers to the precision of the run.
fn to_bytes(model: &Model, numbers: &[f64]) -> Vec<u8> {
    match model.precision {
        Precision::Double => numbers.iter().flat_map(|x| x.to_ne_bytes()).collect(),
        _ => numbers.iter().flat_map(|x| (*x as f32).to_ne_bytes()).collect(),
    }
}

/// Converts numbers from the precision of the run.
fn from_bytes(model: &Model, bytes: &[u8]) -> Vec<f64> {
    match model.precision {
        Precision::Double => bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect(),
        _ => bytes.as_chunks::<4>().0.iter().map(|b| f64::from(f32::from_ne_bytes(*b))).collect(),
    }
}

/// Allocates device memory with the given contents.
fn upload(host: &Host, bytes: &[u8]) -> Result<DevicePtr<u8>> {
    let memory = host.allocate_bytes(bytes.len())?;
    host.upload_bytes(memory, bytes)?;
    Ok(memory)
}

impl DeviceFields {
    /// Compiles the kernels and allocates empty grids.
    ///
    /// # Errors
    /// Returns an error if compilation or allocation fails.
    pub fn new(host: &Host, model: &Model) -> Result<Self> {
        let in_bricks = Bricks::apply(host, model);
        let module = host.compile("md_scf", &source(model, in_bricks)?)?;
        let kernel = |name: &str| host.kernel(module, name);
        let size = model.vertices() * model.field_count();
        let grid = || upload(host, &vec![0; model.precision.real_size() * size]);
        let spectral = if model.uses_fourier() {
            let mut cas = [DevicePtr::null(); 3];
            for (cas, n) in cas.iter_mut().zip(model.grid) {
                *cas = upload(host, &to_bytes(model, &spectrum::matrix(n)))?;
            }
            let (axis, modes) = (kernel("md_scf_axis")?, kernel("md_scf_modes")?);
            Some(Spectral { axis, modes, work: [grid()?, grid()?], cas })
        } else {
            None
        };
        let bricks = in_bricks.then(|| Bricks::new(host, model, kernel("md_scf_complete")?)).transpose()?;
        let sum = if in_bricks { DevicePtr::null() } else { upload(host, &vec![0; 8 * size])? };
        let separate = host.ranks() > 1 && !in_bricks;
        Ok(Self {
            collect: kernel("md_scf_collect")?,
            field: kernel("md_scf_field")?,
            sums: kernel("md_scf_sums")?,
            force: kernel("md_scf_force")?,
            potential: kernel("md_scf_potential")?,
            spectral,
            bricks,
            sum,
            total: if separate { host.allocate_bytes(8 * size)? } else { sum },
            densities: grid()?,
            fields: grid()?,
            matrix: upload(host, &to_bytes(model, &model.matrix))?,
            partial: host.allocate_bytes(8 * 7 * SUM_BLOCKS as usize)?,
            potentials: host.allocate_bytes(8 * model.n.div_ceil(BLOCK as usize))?,
            counter: upload(host, &[0; 4])?,
            evaluated: upload(host, &[0; 8])?,
            collected: upload(host, &[0; 4])?,
            check: upload(host, &[0; CHECK_BYTES])?,
        })
    }

    /// Returns the arguments of the kernels that do not depend on the evaluation.
    fn arguments(&self, model: &Model) -> MdScfArgs {
        let null = DevicePtr::null();
        let charges = model.charges.unwrap_or(crate::model::Charges { coulomb: 0.0, alpha: 1.0 });
        MdScfArgs {
            state: StateView::empty(),
            sum: self.sum,
            total: self.total,
            density: self.densities,
            field: self.fields,
            work: self.spectral.as_ref().map_or([null; 2], |s| s.work),
            matrix: self.matrix,
            cas: self.spectral.as_ref().map_or([null; 3], |s| s.cas),
            partial: self.partial,
            potentials: self.potentials,
            counter: self.counter,
            evaluated: self.evaluated,
            collected: self.collected,
            check: self.check,
            volume: self.bricks.as_ref().map_or(null, |b| b.volume),
            bricks: self.bricks.as_ref().map_or_else(BlockSums::default, |b| b.sums),
            sums: DevicePtr::null(),
            quantities: DevicePtr::null(),
            density_every: model.density_every,
            field_every: model.field_every,
            unit_weight: model.unit_weight() as f64,
            of_type: 1.0 / model.unit_weight() as f64,
            of_charge: 1.0 / model.unit_charge(),
            rho0: model.rho0,
            inv_kappa: model.inv_kappa,
            sigma: model.sigma,
            coulomb: charges.coulomb,
            alpha: charges.alpha,
            grid: model.grid.map(|n| n as u32),
            vertices: model.vertices() as u32,
            full: 0,
            component: 0,
            virial: u32::from(model.scheme == Scheme::Variational && model.field_every == 1),
            reserved: 0,
        }
    }

    /// Launches all kernels. They check on the device what is due in this step, because launches are replayed as a graph.
    ///
    /// # Errors
    /// Returns an error if a launch fails.
    ///
    /// # Safety
    /// The views describe valid arrays of the device.
    pub unsafe fn launch(&self, host: &Host, model: &Model, call: &ForceCall) -> Result<()> {
        let mut args = MdScfArgs {
            state: call.state,
            sums: call.device_sums,
            quantities: call.quantities,
            full: u32::from(call.wanted.more_than_force()),
            component: call.component,
            ..self.arguments(model)
        };
        let axis_blocks = (model.vertices() * model.field_count()).div_ceil(256) as u32;
        let particles = call.state.own_blocks(BLOCK);
        let mut arguments: [*mut Opaque; 1] = arguments![args];
        // SAFETY: the kernel has one MdScfArgs parameter
        unsafe { host.launch(self.collect, particles, BLOCK, &mut arguments)? };
        let (blocks, block) = match &self.bricks {
            Some(bricks) => {
                args.bricks.barrier = host.rank_barrier()?;
                (bricks.thread_blocks(), BRICK_BLOCK)
            }
            None => {
                let size = model.vertices() * model.field_count();
                host.all_reduce(self.sum.cast(), self.total.cast(), size, self.collected.cast())?;
                (args.vertices.div_ceil(BLOCK), BLOCK)
            }
        };
        let launch = Launch { args, axis_blocks };
        let mut arguments: [*mut Opaque; 1] = arguments![args];
        // SAFETY: the kernel has one MdScfArgs parameter
        unsafe { host.launch(self.field, blocks, block, &mut arguments)? };
        let mut energy_grid = self.densities;
        if let Some(s) = &self.spectral {
            let [a, b] = s.work;
            s.transform_axis(host, &launch, [self.densities, a], 0, 2)?;
            s.transform_axis(host, &launch, [a, b], 1, 2)?;
            s.transform_axis(host, &launch, [b, a], 2, 2)?;
            energy_grid = a;
        }
        if call.wanted.more_than_force() {
            let blocks = args.vertices.div_ceil(SUM_BLOCK).min(SUM_BLOCKS);
            let mut arguments: [*mut Opaque; 2] = arguments![args, energy_grid];
            // SAFETY: the kernel has these parameters
            unsafe { host.launch(self.sums, blocks, SUM_BLOCK, &mut arguments)? };
        }
        if let Some(s) = &self.spectral {
            let [a, b] = s.work;
            let mut arguments: [*mut Opaque; 3] = arguments![args, a, b];
            // SAFETY: the kernel has these parameters
            unsafe { host.launch(s.modes, args.vertices.div_ceil(BLOCK), BLOCK, &mut arguments)? };
            s.transform_axis(host, &launch, [b, a], 0, 1)?;
            s.transform_axis(host, &launch, [a, b], 1, 1)?;
            s.transform_axis(host, &launch, [b, self.fields], 2, 1)?;
        }
        // SAFETY: these kernels have one MdScfArgs parameter
        unsafe {
            host.launch(self.force, particles, BLOCK, &mut arguments)?;
            if args.full != 0 {
                host.all_gather(self.potentials, 8, BLOCK)?;
                host.launch(self.potential, 1, BLOCK, &mut arguments)?;
            }
        }
        Ok(())
    }

    /// Returns 1 + the step of the last evaluation (0: none), densities, fields.
    ///
    /// # Errors
    /// Returns an error if a copy fails.
    pub fn save(&self, host: &Host, model: &Model) -> Result<Vec<f64>> {
        if let Some(bricks) = &self.bricks {
            let args = self.arguments(model);
            let mut arguments: [*mut Opaque; 1] = arguments![args];
            // SAFETY: the kernel has one MdScfArgs parameter
            unsafe { host.launch(bricks.complete, bricks.thread_blocks(), BRICK_BLOCK, &mut arguments)? };
        }
        let mut evaluated = [0; 8];
        host.download_bytes(self.evaluated, &mut evaluated)?;
        let mut out = vec![u64::from_ne_bytes(evaluated) as f64];
        for grid in [self.densities, self.fields] {
            let mut bytes = vec![0; model.precision.real_size() * model.vertices() * model.field_count()];
            host.download_bytes(grid, &mut bytes)?;
            out.extend(from_bytes(model, &bytes));
        }
        Ok(out)
    }

    /// Restores numbers returned by `save`.
    ///
    /// # Errors
    /// Returns an error if a copy fails.
    pub fn restore(&self, host: &Host, model: &Model, numbers: &[f64]) -> Result<()> {
        host.upload_bytes(self.evaluated, &(numbers[0] as u64).to_ne_bytes())?;
        let (densities, fields) = numbers[1..].split_at(model.vertices() * model.field_count());
        host.upload_bytes(self.densities, &to_bytes(model, densities))?;
        host.upload_bytes(self.fields, &to_bytes(model, fields))
    }
}
