//! Images of the box that slide along x (Lees-Edwards).

use crate::plan::StagePlan;
use crate::plugins::Component;
use crate::state::buffers::Bytes;
use crate::state::{Facts, RawState};
use galamost_plugin_api::error::Result;
use galamost_plugin_api::integrator::{MAX_SUMS, ScalarCall};
use galamost_plugin_api::philox::{DRAWS_PER_PHASE, RandomKey};
use galamost_plugin_api::views::{Globals, SimBox};

/// The displacement of images (Lees-Edwards) in checkpoints.
pub trait ShearState {
    /// Writes it to a state.
    fn export_shear(&self, state: &mut RawState);
    /// Reads it from a state, after the list of that state was rebuilt.
    fn import_shear(&mut self, state: &RawState);
    /// Gives the images the speed with which a stage begins: none, at their present displacement, if nothing moves them. `facts` are those
    /// of the system.
    ///
    /// # Errors
    /// Returns the plugin's error.
    fn begin_shear(&mut self, stage: &StagePlan, facts: &Facts) -> Result<()>;
}

impl ShearState for Globals {
    fn export_shear(&self, state: &mut RawState) {
        if self.shear_offset != 0.0 || self.shear_speed != 0.0 {
            state.put("shear", [self.shear_offset, self.shear_speed, self.shear_slid]);
            state.put("built_shear", [self.built_offset, 0.0, 0.0]);
        }
    }

    fn import_shear(&mut self, state: &RawState) {
        if let Some([offset, speed, slid]) = state.numbers("shear") {
            (self.shear_offset, self.shear_speed, self.shear_slid) = (offset, speed, slid);
            self.renew_slack();
        } else {
            (self.shear_offset, self.shear_speed, self.shear_slid) = (0.0, 0.0, 0.0);
        }
    }

    fn begin_shear(&mut self, stage: &StagePlan, facts: &Facts) -> Result<()> {
        if !stage.shears()? {
            self.shear_speed = 0.0;
            return Ok(());
        }
        // images that a checkpoint or another stage has set into motion keep their speed until the first step
        if self.shear_speed != 0.0 {
            return Ok(());
        }
        // in no time, so that the images do not move
        let dt = std::mem::replace(&mut self.dt, 0.0);
        let speeds: Result<Vec<Option<f64>>> = stage.integrators.iter().map(|c| speed_of(self, c, facts)).collect();
        self.dt = dt;
        let speed = speeds?.into_iter().flatten().sum();
        self.set_shear(self.shear_offset, speed);
        Ok(())
    }
}

/// Returns the speed that an integrator gives the images; `None` if it does not move them.
fn speed_of(globals: &Globals, component: &Component, facts: &Facts) -> Result<Option<f64>> {
    let Some(part) = component.integrator() else { return Ok(None) };
    let phases = part.program()?.phases;
    let Some(phase) = phases.iter().position(|p| p.shear) else { return Ok(None) };
    let info = facts.group_info(component.group, globals, component.first_varying, false, 0);
    let mut state = Bytes::from_bytes(&part.state(&info)?);
    let mut sim_box = SimBox::of(globals);
    let call = ScalarCall {
        size: size_of::<ScalarCall>() as u32,
        first_varying: component.first_varying,
        integrator: state.address() as *mut u8,
        sums: &[0.0; MAX_SUMS],
        globals,
        key: RandomKey::new(facts.seed, component.id),
        first_draw: phase as u32 * DRAWS_PER_PHASE,
        reserved0: 0,
        sim_box: &raw mut sim_box,
        reserved: [0; 3],
    };
    // SAFETY: `state` holds the bytes that the integrator's `state` returned, and nothing else uses it and the box
    unsafe { part.cpu_scalar(phase as u32, &call)? };
    Ok(Some(sim_box.speed))
}
