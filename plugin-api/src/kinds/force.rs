//! Forces with kernels of their own: fields, walls, external potentials.

use crate::abi::ForceAdapter;
use crate::component::{Kind, Needs, Registration, SystemInfo};
use crate::error::{Errors, Result};
use crate::guard::Object;
use crate::params::{FromValue, Params, Value};
use crate::services::Host;
use crate::views::{LinkView, ListView, StateView, Sums, Wanted};

/// One evaluation.
#[repr(C)]
#[derive(Clone, Copy, Debug, galamost_plugin_macros::Layout)]
pub struct ForceCall {
    /// Size of this struct in bytes.
    pub size: u32,
    /// Number of the component in the run, for faults.
    pub component: u32,
    /// The component's first slot in [`crate::views::Globals::values`].
    pub first_varying: u32,
    /// Bit of the component's group, see [`StateView::in_group`].
    pub group: u32,
    /// What is wanted besides forces.
    pub wanted: Wanted,
    /// The state; on CUDA its addresses are the device's.
    pub state: StateView,
    /// The neighbor list.
    pub list: ListView,
    /// Bonds.
    pub bonds: LinkView,
    /// Where [`Sums`] go on CUDA: device memory that the engine adds to the total (all 0 at the call).
    pub device_sums: crate::device::DevicePtr<Sums>,
    /// Where the component's [`crate::component::Needs::quantities`] go, one f64 each, where energies are wanted: memory of
    /// the run's device. Null if it has none.
    pub quantities: crate::device::DevicePtr<f64>,
    /// 0.
    pub reserved: [u64; 7],
}

/// A force with its own kernels. Its parameters are the fields of the struct (`#[derive(Params)]`).
pub trait Force: Send + Sized + 'static {
    /// Learns the system; `needs` starts as "CPU and CUDA, capturable, nothing more".
    ///
    /// # Errors
    /// Mistakes of the input that show only now.
    fn bind(&mut self, _system: &SystemInfo, _needs: &mut Needs) -> Result<()> {
        Ok(())
    }
    /// Gets the engine's services: time to compile kernels and allocate memory.
    ///
    /// # Errors
    /// Whatever keeps it from starting.
    fn start(&mut self, _host: Host) -> Result<()> {
        Ok(())
    }
    /// Adds forces; on CUDA it only launches, since the launches are captured and replayed.
    ///
    /// # Errors
    /// Whatever breaks the run.
    ///
    /// # Safety
    /// The engine's word: the views describe valid arrays of the run's device.
    unsafe fn compute(&mut self, call: &ForceCall, sums: &mut Sums) -> Result<()>;
    /// The run ended well.
    ///
    /// # Errors
    /// Whatever keeps it from ending.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
    /// State for a checkpoint, if there is any.
    ///
    /// # Errors
    /// Whatever keeps it from saving.
    fn save(&mut self) -> Result<Vec<u8>> {
        Ok(vec![])
    }
    /// State from a checkpoint; called only with what [`Self::save`] gave, if that was not empty.
    ///
    /// # Errors
    /// The state does not fit.
    fn load(&mut self, _state: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// Reads a component's struct.
pub(crate) fn parse<T: FromValue>(value: Value<'_>) -> Result<T> {
    let mut errors = Errors::default();
    let made = T::from_value(value, &mut errors);
    errors.into_result(made)
}

impl Registration {
    /// A force.
    pub const fn force<T: Force + Params + FromValue>(name: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            former_names: &[],
            kind: Kind::Force,
            doc,
            fields: T::docs,
            create: |name, value| parse::<T>(value).map(|c| Object::new(name, ForceAdapter(c))),
        }
    }
}
