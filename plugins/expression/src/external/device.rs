//! CUDA kernel of an external field.

use super::{Bound, ParticlePosition};
use crate::compiled::Domain;
use crate::formula::cuda::{lines, row_struct};
use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;
use galamost_plugin_api::views::StateView;

/// Threads per block.
const THREADS: u32 = 128;

/// The kernel argument.
#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct FieldArgs {
    state: StateView,
    #[device(cxx = "const void*")]
    row: DevicePtr<u8>,
    #[device(cxx = "double*")]
    partial: DevicePtr<u8>,
    sums: DevicePtr<Sums>,
    group: u32,
    full: u32,
    component: u32,
    reserved: u32,
}

/// The kernels and their memory on the device.
pub struct Field {
    force: Kernel,
    sums: Kernel,
    row: DevicePtr<u8>,
    partial: DevicePtr<u8>,
}

impl Field {
    /// Compiles the kernel and uploads the coefficients.
    ///
    /// # Errors
    /// Returns the compiler's or driver's error.
    pub fn new(host: &Host, bound: &Bound) -> Result<Self> {
        let mut bytes = vec![];
        for x in bound.row.iter().copied().chain(bound.row.is_empty().then_some(0.0)) {
            match bound.system.precision() {
                Precision::Double => x.push_bytes(&mut bytes),
                _ => (x as f32).push_bytes(&mut bytes),
            }
        }
        let row = host.allocate_bytes(bytes.len())?;
        host.upload_bytes(row, &bytes)?;
        let blocks = bound.system.n.div_ceil(THREADS.into()) as usize;
        let module = host.compile("external_field", &source(bound)?)?;
        Ok(Self {
            force: host.kernel(module, "external_field")?,
            sums: host.kernel(module, "external_field_sums")?,
            row,
            partial: host.allocate_bytes(8 * blocks.max(1))?,
        })
    }

    /// Launches the kernels.
    ///
    /// # Errors
    /// Returns the driver's error.
    ///
    /// # Safety
    /// The call's views describe valid device arrays.
    pub unsafe fn launch(&self, host: &Host, call: &ForceCall) -> Result<()> {
        let args = FieldArgs {
            state: call.state,
            row: self.row,
            partial: self.partial,
            sums: call.device_sums,
            group: call.group,
            full: u32::from(call.wanted.more_than_force()),
            component: call.component,
            reserved: 0,
        };
        let mut arguments: [*mut Opaque; 1] = arguments![args];
        // SAFETY: the kernels take one FieldArgs
        unsafe {
            host.launch(self.force, call.state.own_blocks(THREADS), THREADS, &mut arguments)?;
            if args.full != 0 {
                host.all_gather(self.partial, 8, THREADS)?;
                host.launch(self.sums, 1, THREADS, &mut arguments)?;
            }
        }
        Ok(())
    }
}

/// Returns the CUDA source of the kernels.
pub fn source(bound: &Bound) -> Result<String> {
    let program = &bound.formula.full;
    let body = lines(program, |k| ParticlePosition::INPUTS[k].into(), |k| format!("row.c{k}"));
    let [x, y, z, u] = [0, 1, 2, 3].map(|k| program.outputs[k]);
    let kernel = format!(
        r#"#include "galamost/reduce.cuh"

{row}

// Adds the force of the field and, with `full`, its energy.
extern "C" __global__ void __launch_bounds__({THREADS}) external_field(FieldArgs a) {{
    const StateView& s = a.state;
    if (s.globals->halt) return;
    const u32 block = particle_block(s), i = block * blockDim.x + threadIdx.x;
    double sums[1] = {{0.0}};
    if (i < own_end(s)) {{
        const PosType p = load(&s.pos_type[i]);
        if (in_group(s, i, a.group)) {{
    const Vec3<real> r = position(p, s.globals);
    const Vec3<real> length = {{real(s.globals->box_length[0]), real(s.globals->box_length[1]), real(s.globals->box_length[2])}};
    const FieldRow<real> row = *static_cast<const FieldRow<real>*>(a.row);
{body}
            Vec4 f = s.force[i];
            f.x += v{x};
            f.y += v{y};
            f.z += v{z};
            // a number differs from itself only if it is NaN
            if (v{x} != v{x} || v{y} != v{y} || v{z} != v{z} || (a.full && v{u} != v{u})) {{
                raise_fault(s.globals, FaultKind::Component, a.component, s.tag[i], 0u);
            }}
            if (a.full) {{
                f.w += v{u};
                sums[0] = double(v{u});
            }}
            s.force[i] = f;
        }}
    }}
    if (a.full) {{
        __shared__ double memory[32];
        block_sum(sums, memory);
        if (threadIdx.x == 0) a.partial[block] = sums[0];
    }}
}}

// Adds the energies of the blocks of all GPUs in a fixed order. One block.
extern "C" __global__ void __launch_bounds__({THREADS}) external_field_sums(FieldArgs a) {{
    if (a.state.globals->halt) return;
    __shared__ double memory[32];
    double total[1];
    sum_partials(a.partial, particle_blocks(a.state), total, memory);
    if (threadIdx.x == 0) a.sums->energy = total[0];
}}
"#,
        row = row_struct("FieldRow", bound.formula.slots())
    );
    kernel_source(&[FieldArgs::text()], &kernel)
}
