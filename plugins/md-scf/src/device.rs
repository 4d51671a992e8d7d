//! Densities, fields and forces on CUDA.

use crate::law::{Law, Scheme};
use crate::spectrum;
use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;
use galamost_plugin_api::views::StateView;

const BLOCK: u32 = 128;
const SUM_BLOCK: u32 = 256;
/// Blocks that sum energies, at most.
const SUM_BLOCKS: u32 = 264;

/// The text of the kernels with their settings; Fourier space is there only if it is needed.
fn source(law: &Law) -> String {
    let mut text = format!("#define TYPES {}\n#define FIELDS {}\n", law.types, law.fields());
    let settings =
        [("PAPER", law.scheme == Scheme::Paper), ("CHARGES", law.charges.is_some()), ("SPECTRAL", law.spectral())];
    for (name, _) in settings.into_iter().filter(|s| s.1) {
        text += &format!("#define {name}\n");
    }
    text += include_str!("md_scf.cuh");
    if law.spectral() {
        text += include_str!("spectral.cuh");
    }
    text + include_str!("sums.cuh")
}

/// Kernels of the way through Fourier space, and its two grids.
struct Spectral {
    axis: Kernel,
    modes: Kernel,
    work: [DevicePtr<u8>; 2],
    cas: [DevicePtr<u8>; 3],
}

/// Kernels and grids.
pub struct OnDevice {
    collect: Kernel,
    field: Kernel,
    sums: Kernel,
    force: Kernel,
    spectral: Option<Spectral>,
    sum: DevicePtr<u8>,
    densities: DevicePtr<u8>,
    fields: DevicePtr<u8>,
    matrix: DevicePtr<u8>,
    partial: DevicePtr<u8>,
    counter: DevicePtr<u8>,
    valid: DevicePtr<u8>,
}

#[repr(C)]
struct MdScfArgs {
    state: StateView,
    sum: DevicePtr<u8>,
    density: DevicePtr<u8>,
    field: DevicePtr<u8>,
    work: [DevicePtr<u8>; 2],
    matrix: DevicePtr<u8>,
    cas: [DevicePtr<u8>; 3],
    partial: DevicePtr<u8>,
    counter: DevicePtr<u8>,
    valid: DevicePtr<u8>,
    sums: DevicePtr<Sums>,
    quantities: DevicePtr<f64>,
    density_every: u64,
    field_every: u64,
    whole: f64,
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

/// Numbers in the run's precision.
fn to_bytes(law: &Law, numbers: &[f64]) -> Vec<u8> {
    match law.precision {
        Precision::Double => numbers.iter().flat_map(|x| x.to_ne_bytes()).collect(),
        _ => numbers.iter().flat_map(|x| (*x as f32).to_ne_bytes()).collect(),
    }
}

fn from_bytes(law: &Law, bytes: &[u8]) -> Vec<f64> {
    match law.precision {
        Precision::Double => bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect(),
        _ => bytes.as_chunks::<4>().0.iter().map(|b| f64::from(f32::from_ne_bytes(*b))).collect(),
    }
}

/// New memory with these bytes.
fn upload(host: &Host, bytes: &[u8]) -> Result<DevicePtr<u8>> {
    let memory = host.allocate_bytes(bytes.len())?;
    host.upload_bytes(memory, bytes)?;
    Ok(memory)
}

impl OnDevice {
    /// Compiles, and makes empty grids.
    pub fn new(host: &Host, law: &Law) -> Result<Self> {
        let module = host.compile("md_scf", &source(law))?;
        let kernel = |name: &str| host.kernel(module, name);
        let size = law.vertices() * law.fields();
        let grid = || upload(host, &vec![0; law.precision.real_size() * size]);
        let spectral = if law.spectral() {
            let mut cas = [DevicePtr::null(); 3];
            for (cas, n) in cas.iter_mut().zip(law.grid) {
                *cas = upload(host, &to_bytes(law, &spectrum::matrix(n)))?;
            }
            let (axis, modes) = (kernel("md_scf_axis")?, kernel("md_scf_modes")?);
            Some(Spectral { axis, modes, work: [grid()?, grid()?], cas })
        } else {
            None
        };
        let partial = (7 * SUM_BLOCKS as usize).max(law.n.div_ceil(BLOCK as usize));
        Ok(Self {
            collect: kernel("md_scf_collect")?,
            field: kernel("md_scf_field")?,
            sums: kernel("md_scf_sums")?,
            force: kernel("md_scf_force")?,
            spectral,
            sum: upload(host, &vec![0; 8 * size])?,
            densities: grid()?,
            fields: grid()?,
            matrix: upload(host, &to_bytes(law, &law.matrix))?,
            partial: host.allocate_bytes(8 * partial)?,
            counter: upload(host, &[0; 4])?,
            valid: upload(host, &[0; 4])?,
        })
    }

    /// Launches everything; whether something is due is decided on the device, since launches are replayed.
    ///
    /// # Safety
    /// The views describe arrays of the device.
    pub unsafe fn launch(&self, host: &Host, law: &Law, call: &ForceCall) -> Result<()> {
        let null = DevicePtr::null();
        let charges = law.charges.unwrap_or(crate::law::Charges { coulomb: 0.0, alpha: 1.0 });
        let full = call.wanted.more_than_force();
        let vertices = law.vertices() as u32;
        let args = MdScfArgs {
            state: call.state,
            sum: self.sum,
            density: self.densities,
            field: self.fields,
            work: self.spectral.as_ref().map_or([null; 2], |s| s.work),
            matrix: self.matrix,
            cas: self.spectral.as_ref().map_or([null; 3], |s| s.cas),
            partial: self.partial,
            counter: self.counter,
            valid: self.valid,
            sums: call.device_sums,
            quantities: call.quantities,
            density_every: law.density_every,
            field_every: law.field_every,
            whole: law.whole() as f64,
            of_type: 1.0 / law.whole() as f64,
            of_charge: 1.0 / law.charge_whole(),
            rho0: law.rho0,
            inv_kappa: law.inv_kappa,
            sigma: law.sigma,
            coulomb: charges.coulomb,
            alpha: charges.alpha,
            grid: law.grid.map(|n| n as u32),
            vertices,
            full: u32::from(full),
            component: call.component,
            virial: u32::from(law.scheme == Scheme::Variational && law.field_every == 1),
            reserved: 0,
        };
        let mut arguments: [*mut Opaque; 1] = arguments![args];
        let particles = call.state.n_local.div_ceil(BLOCK);
        // SAFETY: these kernels take one MdScfArgs
        unsafe {
            host.launch(self.collect, particles, BLOCK, &mut arguments)?;
            host.launch(self.field, vertices.div_ceil(BLOCK), BLOCK, &mut arguments)?;
        }
        let mut of_energy = self.densities;
        if let Some(s) = &self.spectral {
            let axis = |from: DevicePtr<u8>, to: DevicePtr<u8>, axis: u32, needed: u32| {
                let mut arguments: [*mut Opaque; 5] = arguments![args, from, to, axis, needed];
                let blocks = (law.vertices() * law.fields()).div_ceil(256) as u32;
                // SAFETY: the kernel takes these
                unsafe { host.launch(s.axis, blocks, 256, &mut arguments) }
            };
            let [a, b] = s.work;
            axis(self.densities, a, 0, 2)?;
            axis(a, b, 1, 2)?;
            axis(b, a, 2, 2)?;
            of_energy = a;
        }
        if full {
            let blocks = vertices.div_ceil(SUM_BLOCK).min(SUM_BLOCKS);
            let mut arguments: [*mut Opaque; 2] = arguments![args, of_energy];
            // SAFETY: the kernel takes these
            unsafe { host.launch(self.sums, blocks, SUM_BLOCK, &mut arguments)? };
        }
        if let Some(s) = &self.spectral {
            let [a, b] = s.work;
            let mut arguments: [*mut Opaque; 3] = arguments![args, a, b];
            // SAFETY: the kernel takes these
            unsafe { host.launch(s.modes, vertices.div_ceil(BLOCK), BLOCK, &mut arguments)? };
            let axis = |from: DevicePtr<u8>, to: DevicePtr<u8>, axis: u32| {
                let needed = 1u32;
                let mut arguments: [*mut Opaque; 5] = arguments![args, from, to, axis, needed];
                let blocks = (law.vertices() * law.fields()).div_ceil(256) as u32;
                // SAFETY: as above
                unsafe { host.launch(s.axis, blocks, 256, &mut arguments) }
            };
            axis(b, a, 0)?;
            axis(a, b, 1)?;
            axis(b, self.fields, 2)?;
        }
        // SAFETY: the kernel takes one MdScfArgs
        unsafe { host.launch(self.force, particles, BLOCK, &mut arguments) }
    }

    /// Whether there are fields (1 or 0), densities, fields.
    pub fn save(&self, host: &Host, law: &Law) -> Result<Vec<f64>> {
        let mut valid = [0; 4];
        host.download_bytes(self.valid, &mut valid)?;
        let mut out = vec![f64::from(u32::from_ne_bytes(valid))];
        for grid in [self.densities, self.fields] {
            let mut bytes = vec![0; law.precision.real_size() * law.vertices() * law.fields()];
            host.download_bytes(grid, &mut bytes)?;
            out.extend(from_bytes(law, &bytes));
        }
        Ok(out)
    }

    /// Takes up what `save` gave.
    pub fn restore(&self, host: &Host, law: &Law, numbers: &[f64]) -> Result<()> {
        host.upload_bytes(self.valid, &(numbers[0] as u32).to_ne_bytes())?;
        let (densities, fields) = numbers[1..].split_at(law.vertices() * law.fields());
        host.upload_bytes(self.densities, &to_bytes(law, densities))?;
        host.upload_bytes(self.fields, &to_bytes(law, fields))
    }
}
