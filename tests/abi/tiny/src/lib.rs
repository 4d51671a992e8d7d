//! The smallest plugin: a constant force on all particles.

use galamost_plugin_api::prelude::*;

/// F = (f, 0, 0).
///
/// ```ron
/// Tiny(f: 1.0)
/// ```
#[component(Force, "Tiny")]
#[derive(Params)]
pub struct Tiny {
    f: f64,
}

impl Force for Tiny {
    fn bind(&mut self, _: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.cuda = false;
        needs.conserves_momentum = false;
        Ok(())
    }
    unsafe fn compute(&mut self, call: &ForceCall, _: &mut Sums) -> Result<()> {
        for i in 0..call.state.n_local as usize {
            // SAFETY: the engine passes views of valid host arrays
            unsafe { call.state.add_force(i, [self.f, 0.0, 0.0], 0.0) };
        }
        Ok(())
    }
}

galamost_plugin_api::plugin!();
