//! Particle arrays in tag order in the memory of the device.

use super::array::{DeviceArray, Element};
use super::{Memory, Source, compile, launch};
use galamost_engine::device::{Device, Kernel};
use galamost_plugin_api::device::{CxxStruct as _, DevicePtr};
use galamost_plugin_api::error::Result;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::prelude::DeviceStruct;
use galamost_plugin_api::views::StateView;
use std::sync::Arc;

/// The argument of `gather_columns`.
#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct ColumnsArgs {
    state: StateView,
    #[device(cxx = "double*")]
    position: DevicePtr<u8>,
    #[device(cxx = "double*")]
    velocity: DevicePtr<u8>,
    #[device(cxx = "double*")]
    force: DevicePtr<u8>,
    #[device(cxx = "double*")]
    mass: DevicePtr<u8>,
    #[device(cxx = "int*")]
    image: DevicePtr<u8>,
    #[device(cxx = "u32*")]
    kind: DevicePtr<u8>,
}

/// The kernel that writes [`Columns`].
pub const SOURCE: Source = ("gather_columns", ColumnsArgs::text, include_str!("columns.cuh"));

/// Arrays in tag order.
#[derive(Clone)]
pub struct Columns {
    /// Positions in the box.
    pub position: DeviceArray,
    /// Velocities.
    pub velocity: DeviceArray,
    /// Sums of all forces.
    pub force: DeviceArray,
    /// Masses.
    pub mass: DeviceArray,
    /// Periodic images.
    pub image: DeviceArray,
    /// Types.
    pub kind: DeviceArray,
}

/// Writes [`Columns`].
pub struct Gather {
    device: Arc<dyn Device>,
    precision: Precision,
    kernel: Kernel,
}

impl Gather {
    /// Compiles the kernel.
    ///
    /// # Errors
    /// Returns the compiler's error.
    pub fn new(device: &Arc<dyn Device>, precision: Precision) -> Result<Self> {
        let kernel = compile(&**device, precision, SOURCE)?;
        Ok(Self { device: device.clone(), precision, kernel })
    }

    /// Returns the device.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// Returns the run's precision.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Allocates arrays for `n` particles.
    ///
    /// # Errors
    /// Returns an error if the device is out of memory.
    pub fn allocate(&self, n: usize) -> Result<Columns> {
        let array = |width: usize, element: Element| -> Result<DeviceArray> {
            let memory = Memory::new(&self.device, n * width * element.size())?;
            Ok(DeviceArray::new(memory, n, width, element))
        };
        Ok(Columns {
            position: array(3, Element::F64)?,
            velocity: array(3, Element::F64)?,
            force: array(3, Element::F64)?,
            mass: array(1, Element::F64)?,
            image: array(3, Element::I32)?,
            kind: array(1, Element::U32)?,
        })
    }

    /// Launches the kernel.
    ///
    /// # Errors
    /// Returns the driver's error.
    ///
    /// # Safety
    /// The view describes valid arrays of this device, and `columns` has as many particles.
    pub unsafe fn fill(&self, state: &StateView, columns: &Columns) -> Result<()> {
        let args = ColumnsArgs {
            state: *state,
            position: columns.position.pointer(),
            velocity: columns.velocity.pointer(),
            force: columns.force.pointer(),
            mass: columns.mass.pointer(),
            image: columns.image.pointer(),
            kind: columns.kind.pointer(),
        };
        // SAFETY: the kernel takes these arguments; the arrays are those of the contract of this function
        unsafe { launch(&*self.device, self.kernel, state.n_local, &args) }
    }
}
