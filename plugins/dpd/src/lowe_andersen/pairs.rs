//! What both thermostats share as updaters.

use crate::lowe_andersen::law::Law;
use crate::lowe_andersen::{cpu, device};
use galamost_plugin_api::precision::{PosTypeF64, PosTypeFixed, Precision};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::updater::changed;

/// What a thermostat keeps: nothing of it must be found again after a restart.
#[derive(Default)]
pub struct Pairs {
    cuda: bool,
    n: usize,
    started: Option<(Host, Option<device::OnDevice>)>,
}

impl Pairs {
    /// Learns the system, and says what is needed.
    pub fn bind(
        &mut self,
        system: &SystemInfo,
        needs: &mut Needs,
        group: &Group,
        kt: Varying,
        r_cut: &Spanned<f64>,
    ) -> Result<()> {
        let (half, r) = (system.half_box(), r_cut.value);
        if r > half {
            return Err(InputError::at(
                r_cut.at,
                format!(
                    "r_cut = {r} is more than half the shortest box length ({half}): a particle would meet its own image"
                ),
            )
            .into());
        }
        needs.period = 1;
        needs.plain_images = true;
        needs.group = group.need(system)?;
        needs.varyings = vec![kt];
        needs.cutoff = r;
        self.cuda = system.device == "cuda";
        self.n = system.n as usize;
        Ok(())
    }

    /// Compiles.
    pub fn start(&mut self, host: Host) -> Result<()> {
        let device = if self.cuda { Some(device::OnDevice::new(&host, self.n)?) } else { None };
        self.started = Some((host, device));
        Ok(())
    }

    /// Lets all pairs meet that do so in this step.
    ///
    /// # Safety
    /// The engine's word about the views.
    pub unsafe fn update(&mut self, law: Law, call: &mut UpdateCall) -> Result<()> {
        let Some((host, device)) = &self.started else {
            return Err(Error::Run("the thermostat was not started".into()));
        };
        call.changed = changed::VELOCITIES;
        // SAFETY: the caller's word
        unsafe {
            if let Some(d) = device {
                return d.run(host, law, call);
            }
            if call.state.precision == Precision::Double as u32 {
                cpu::update::<f64, PosTypeF64>(law, host, call);
            } else {
                cpu::update::<f32, PosTypeFixed>(law, host, call);
            }
        }
        Ok(())
    }
}
