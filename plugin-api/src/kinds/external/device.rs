//! CUDA kernel of an external potential.

use crate::abi::Opaque;
use crate::abi::services::{Host, Kernel};
use crate::abi::views::{StateView, Sums};
use crate::arguments;
use crate::device::precision::Precision;
use crate::device::real::Real;
use crate::device::{CxxStruct as _, DevicePtr, DeviceText, kernel_source};
use crate::error::Result;
use crate::kinds::component::SystemInfo;
use crate::kinds::force::ForceCall;

/// Threads per block.
const BLOCK: u32 = 128;
/// Bytes of the sums of a block.
const ROW: usize = 7 * 8;

/// Input of the function, as its CUDA text names it.
static INPUT: DeviceText = DeviceText {
    name: "ExternalInput",
    text: || {
        "template <class real> struct ExternalInput {\nVec3<real> position, unwrapped, length, velocity;\n\
         real mass, charge;\nu32 kind, tag;\nStep<real> step;\n};\n"
            .into()
    },
    needs: &[],
    header: false,
};

/// Argument of the kernel.
#[repr(C)]
#[derive(Clone, Copy, galamost_plugin_macros::DeviceStruct)]
struct ExternalArgs {
    state: StateView,
    #[device(cxx = "const ExternalRow<real>*")]
    rows: DevicePtr<u8>,
    #[device(cxx = "double*")]
    partial: DevicePtr<u8>,
    sums: DevicePtr<Sums>,
    component: u32,
    group: u32,
    first_varying: u32,
    by_type: u32,
    full: u32,
    virial: u32,
}

/// The compiled kernels with their parameter rows.
pub(super) struct OnDevice {
    force: Kernel,
    sums: Kernel,
    rows: DevicePtr<u8>,
    partial: DevicePtr<u8>,
}

impl OnDevice {
    /// Compiles the function and uploads the rows.
    pub fn new(
        host: &Host,
        text: &'static DeviceText,
        numbers: &[f64],
        charge: bool,
        system: &SystemInfo,
    ) -> Result<Self> {
        let mut bytes = vec![];
        for x in numbers {
            match system.precision() {
                Precision::Double => x.push_bytes(&mut bytes),
                _ => (*x as f32).push_bytes(&mut bytes),
            }
        }
        let rows = host.allocate_bytes(bytes.len().max(8))?;
        host.upload_bytes(rows, &bytes)?;
        let kernel = format!(
            "#include \"galamost/reduce.cuh\"\nstatic constexpr bool EXTERNAL_CHARGE = {charge};\n#line 1 \"loop.cuh\"\n{}",
            include_str!("loop.cuh")
        );
        let source = kernel_source(&[&INPUT, text, ExternalArgs::text()], &kernel)?;
        let blocks = (system.n.div_ceil(BLOCK.into()) as usize).max(1);
        let module = host.compile("external_force", &source)?;
        Ok(Self {
            force: host.kernel(module, "external_force")?,
            sums: host.kernel(module, "external_sums")?,
            rows,
            partial: host.allocate_bytes(ROW * blocks)?,
        })
    }

    /// Launches the kernels.
    ///
    /// # Safety
    /// The views in `call` must describe valid device arrays.
    pub unsafe fn launch(&self, host: &Host, call: &ForceCall, by_type: bool, virial: bool) -> Result<()> {
        let args = ExternalArgs {
            state: call.state,
            rows: self.rows,
            partial: self.partial,
            sums: call.device_sums,
            component: call.component,
            group: call.group,
            first_varying: call.first_varying,
            by_type: u32::from(by_type),
            full: u32::from(call.wanted.more_than_force()),
            virial: u32::from(virial),
        };
        let mut arguments: [*mut Opaque; 1] = arguments![args];
        // SAFETY: the kernels take one `ExternalArgs`
        unsafe {
            host.launch(self.force, call.state.own_blocks(BLOCK), BLOCK, &mut arguments)?;
            if args.full != 0 {
                host.all_gather(self.partial, ROW, BLOCK)?;
                host.launch(self.sums, 1, BLOCK, &mut arguments)?;
            }
        }
        Ok(())
    }
}
