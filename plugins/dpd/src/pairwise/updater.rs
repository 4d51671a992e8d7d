//! The updater behind both thermostats.

use crate::pairwise::collision::Collision;
use crate::pairwise::{cpu, device};
use galamost_plugin_api::precision::{PosTypeF64, PosTypeFixed, Precision};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::updater::changed;

/// State of a pairwise thermostat. Nothing of it needs to be checkpointed.
#[derive(Default)]
pub struct PairwiseUpdater {
    cuda: bool,
    n: usize,
    started: Option<(Host, Option<device::DeviceKernels>)>,
}

impl PairwiseUpdater {
    /// Checks the cutoff against the box and declares what the updater needs.
    ///
    /// # Errors
    /// Returns an error if r_cut is more than half the shortest box length or the group is invalid.
    pub fn bind(
        &mut self,
        system: &SystemInfo,
        needs: &mut Needs,
        group: &Group,
        kt: Varying,
        r_cut: &Spanned<f64>,
    ) -> Result<()> {
        let r = r_cut.value;
        if let Some(message) = system.beyond_half_box("r_cut", r) {
            return Err(InputError::at(r_cut.at, message).into());
        }
        needs.period = 1;
        needs.plain_images = true;
        (needs.group, needs.changes_velocities) = (group.need(system)?, true);
        needs.varyings = vec![kt];
        needs.kt = Some(kt);
        needs.cutoff = r;
        self.cuda = system.device == "cuda";
        self.n = system.n as usize;
        Ok(())
    }

    /// Compiles the kernels if the run uses CUDA.
    ///
    /// # Errors
    /// Returns the compiler's or driver's error.
    pub fn start(&mut self, host: Host) -> Result<()> {
        let device = if self.cuda { Some(device::DeviceKernels::new(&host, self.n)?) } else { None };
        self.started = Some((host, device));
        Ok(())
    }

    /// Performs all collisions of this step.
    ///
    /// # Errors
    /// Returns an error if the updater was not started, or the driver's error.
    ///
    /// # Safety
    /// The views of `call` describe valid arrays of the run's device and precision.
    pub unsafe fn update(&mut self, collision: Collision, call: &mut UpdateCall) -> Result<()> {
        let Some((host, device)) = &self.started else {
            return Err(Error::Run("the thermostat was not started".into()));
        };
        call.changed = changed::VELOCITIES;
        // SAFETY: the views are valid (contract of this function)
        unsafe {
            if let Some(d) = device {
                return d.run(host, collision, call);
            }
            if call.state.precision == Precision::Double as u32 {
                cpu::update::<f64, PosTypeF64>(collision, host, call);
            } else {
                cpu::update::<f32, PosTypeFixed>(collision, host, call);
            }
        }
        Ok(())
    }
}
