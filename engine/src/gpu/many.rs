//! Many steps as one kernel: what a step of a small system costs is mostly launches.

use super::arrays::Buffer;
use super::codegen::{STEPS_BLOCK, StepsParts, steps_unit};
use super::forces::Forces;
use super::integrate::Integrators;
use crate::device::{Device, Kernel};
use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::views::{LinkView, ListView, StateView};
use std::sync::Arc;

/// Largest number of particles for which blocks that meet are at least as fast as launches; `GALAMOST_MANY` overrides it, for measurements.
const MOST: usize = 600_000;

/// Bytes of arguments that every device takes.
const ARGUMENTS: usize = 4000;

/// Bytes of `StepsControl`.
const CONTROL: usize = 32;

/// The kernel of many steps of a stage.
pub struct Many {
    device: Arc<dyn Device>,
    kernel: Kernel,
    blocks: u32,
    /// `StepsControl` of `steps.cuh`.
    control: Buffer,
}

impl Many {
    /// Compiles it; `None` where steps need more than pairs, bonds and integrators, or launches are as fast.
    pub fn new(
        device: &Arc<dyn Device>,
        forces: &Forces,
        integrators: &Integrators,
        precision: Precision,
        n: usize,
        n_types: u32,
        team: u32,
    ) -> Result<Option<Self>> {
        let most = std::env::var("GALAMOST_MANY").ok().and_then(|m| m.parse().ok()).unwrap_or(MOST);
        let (Some((pairs, bonded)), Some(moving)) = (forces.texts(), integrators.texts()) else { return Ok(None) };
        if n > most
            || !device.together()
            || integrators.changes_box()
            || integrators.arguments_size() + forces.arguments_size() > ARGUMENTS
        {
            return Ok(None);
        }
        let parts = StepsParts { pairs, n_types, team, bonded, moving };
        let kernel = device.kernel(device.compile(&steps_unit(&parts, precision))?, "steps")?;
        let useful = (n * team as usize).div_ceil(STEPS_BLOCK as usize) as u32;
        let blocks = device.resident(kernel, STEPS_BLOCK)?.min(useful);
        if blocks == 0 {
            return Ok(None);
        }
        Ok(Some(Self { device: device.clone(), kernel, blocks, control: Buffer::new(device, CONTROL)? }))
    }

    /// Launches steps until as many are done as [`Self::ask`] asked for, with rebuilds between them.
    pub fn run(
        &self,
        forces: &Forces,
        integrators: &Integrators,
        state: &StateView,
        list: &ListView,
        links: [LinkView; 3],
        rebuild: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let (pair, bonds) =
            forces.arguments(state, list, links).ok_or_else(|| Error::Run("there are no pairs".into()))?;
        let phases = integrators.arguments(state);
        let control = self.control.address();
        fn pointer<T>(x: &T) -> *mut Opaque {
            std::ptr::from_ref(x).cast_mut().cast()
        }
        let mut args = vec![pointer(&pair)];
        args.extend(bonds.iter().map(pointer));
        args.extend(phases.iter().map(pointer));
        args.push(pointer(&control));
        self.device.while_left(control, state.globals.address, &mut || {
            self.device.if_rebuild(state.globals.address, rebuild)?;
            self.device.launch_together(self.kernel, self.blocks, STEPS_BLOCK, &args)
        })
    }

    /// Asks for steps.
    pub fn ask(&self, steps: u32) -> Result<()> {
        self.device.set_word(self.control.address(), steps)
    }

    /// After kernels were stopped half-way: the step under way is ended by others.
    pub fn reset(&self) -> Result<()> {
        self.control.clear()
    }
}
