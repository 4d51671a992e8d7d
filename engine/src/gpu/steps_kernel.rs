//! The persistent kernel: many time steps in one launch. A step of a small system costs mostly launch overhead.

use super::arrays::Buffer;
use super::codegen::{STEPS_BLOCK, StepsSource, steps_unit};
use super::forces::Forces;
use super::integrate::Integrators;
use crate::device::args::StepsControl;
use crate::device::{Device, Kernel};
use galamost_plugin_api::abi::{Extent, Opaque};
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::views::{LinkView, ListView, StateView};
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Largest number of particles for which grid barriers are at least as fast as launches. The environment variable
/// `GALAMOST_MANY` overrides it, for measurements; 0 disables the persistent kernel.
const MAX_PARTICLES: usize = 600_000;

/// Bytes of kernel arguments that every device accepts.
pub(super) const MAX_ARGUMENTS: usize = 4000;

/// The persistent kernel of a stage.
pub struct StepsKernel {
    device: Arc<dyn Device>,
    kernel: Kernel,
    blocks: u32,
    /// `StepsControl` of `steps.cuh`.
    control: Buffer,
    /// `StepsControl::requested`.
    requested: AtomicU32,
}

impl StepsKernel {
    /// Compiles the kernel. Returns `None` if steps need more than pairs, bonded potentials and integrators, or if
    /// launches are as fast.
    pub fn new(
        device: &Arc<dyn Device>,
        forces: &Forces,
        integrators: &Integrators,
        precision: Precision,
        n: usize,
        n_types: u32,
        team: u32,
    ) -> Result<Option<Self>> {
        let max_particles = std::env::var("GALAMOST_MANY").ok().and_then(|m| m.parse().ok()).unwrap_or(MAX_PARTICLES);
        let (Some((pairs, bonded)), Some(integrator_texts)) = (forces.texts(), integrators.texts()) else {
            return Ok(None);
        };
        if n > max_particles
            || !device.supports_grid_barrier()
            || integrators.arguments_size() + forces.arguments_size() > MAX_ARGUMENTS
        {
            return Ok(None);
        }
        let barostat = integrators.changes_box();
        let source = StepsSource { pairs, n_types, team, bonded, integrators: integrator_texts, barostat };
        let kernel = device.kernel(device.compile(&steps_unit(&source, precision))?, "steps")?;
        let useful = (n * team as usize).div_ceil(STEPS_BLOCK as usize) as u32;
        let blocks = device.max_resident_blocks(kernel, STEPS_BLOCK)?.min(useful);
        if blocks == 0 {
            return Ok(None);
        }
        Ok(Some(Self {
            device: device.clone(),
            kernel,
            blocks,
            control: Buffer::new(device, size_of::<StepsControl>())?,
            requested: AtomicU32::new(0),
        }))
    }

    /// Launches the kernel, each time after `rebuild`, until the steps set by [`Self::request`] are done, which is tested after `rounds`
    /// launches.
    pub fn run(
        &self,
        forces: &Forces,
        integrators: &Integrators,
        state: &StateView,
        list: &ListView,
        links: [LinkView; 4],
        rounds: usize,
        rebuild: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let (pair, bonds) =
            forces.arguments(state, list, links).ok_or_else(|| Error::Run("there are no pair components".into()))?;
        let phases = integrators.arguments(state);
        let control = self.control.address();
        fn pointer<T>(x: &T) -> *mut Opaque {
            std::ptr::from_ref(x).cast_mut().cast()
        }
        let mut args = vec![pointer(&pair)];
        args.extend(bonds.iter().map(pointer));
        args.extend(phases.iter().map(pointer));
        args.push(pointer(&control));
        self.device.clear(control + offset_of!(StepsControl, done) as u64, size_of::<u32>())?;
        self.device.while_nonzero(control, state.globals.address, &mut || {
            (0..rounds).try_for_each(|_| {
                rebuild()?;
                // SAFETY: the kernel takes these arguments, whose views describe arrays of this device
                unsafe { self.device.launch_cooperative(self.kernel, Extent::from(self.blocks), STEPS_BLOCK, &args) }
            })
        })
    }

    /// Sets the number of steps that each [`Self::run`] does from now on.
    pub fn request(&self, steps: u32) -> Result<()> {
        if self.requested.swap(steps, Ordering::Relaxed) == steps {
            return Ok(());
        }
        self.device.set_word(self.control.address() + offset_of!(StepsControl, requested) as u64, steps)
    }

    /// Resets the kernel after a halt. Single launches finish the current step.
    pub fn reset(&self) -> Result<()> {
        self.requested.store(0, Ordering::Relaxed);
        self.control.clear()
    }
}
