//! The Berendsen barostat.

use crate::coupling::{Couple, axis_variables};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::updater::changed;

/// Maximum relative change of a box length per update.
const MAX_CHANGE: f64 = 0.05;

/// Barostat with weak coupling (Berendsen), for use beside any integrator.
///
/// Every `every` steps, box lengths become Lₖ ← Lₖ [1 − β n dt/τ (P − Pₖₖ)]^⅓ with n dt the time since the last update,
/// and positions scale with the box. Pₖₖ is the mean over coupled axes. In two dimensions the exponent is ½. A length
/// changes by at most 5 % per update.
///
/// Use it to bring a box to its pressure quickly, with `couple: Isotropic` for a liquid, as with `MtkNpt`. **The ensemble is not canonical**: the volume fluctuates too little, and
/// averages belong to no ensemble. For sampling use `MtkNpt` or `AndersenNpt`. `conserved` of `Thermo` does not count the
/// work of the barostat. Every update rebuilds the neighbor list.
///
/// Reference: Berendsen, Postma, van Gunsteren, DiNola & Haak, J. Chem. Phys. 81 (1984) 3684, doi:10.1063/1.448118.
///
/// ```ron
/// BerendsenBarostat(every: 10, pressure: 1.0, tau: 5.0, compressibility: 0.1)
/// ```
#[component(Updater, "BerendsenBarostat")]
#[derive(Debug, Params)]
pub struct BerendsenBarostat {
    /// n, number of steps between updates.
    #[param(at_least = 1)]
    every: u64,
    /// P, target pressure; may vary with time.
    #[param(unit = "energy/length³")]
    pressure: Varying,
    /// τ, relaxation time of the pressure.
    #[param(unit = "time", above = 0.0)]
    tau: f64,
    /// β, isothermal compressibility; only β/τ matters.
    #[param(unit = "length³/energy", above = 0.0)]
    compressibility: f64,
    /// Coupling of the axes: `Isotropic`, `Xy` (z independent) or `None`.
    #[param(default = Couple::Isotropic)]
    couple: Couple,
    /// Axes x, y, z that may change.
    #[param(default = [true, true, true])]
    axes: [bool; 3],
    #[param(skip)]
    variable: [u32; 3],
}

impl Updater for BerendsenBarostat {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        self.variable = axis_variables(self.couple, self.axes, system.dimensions)?;
        needs.period = self.every;
        needs.changes_box = true;
        needs.box_axes = self.variable.map(|v| v != 0);
        needs.constrainable = true;
        needs.wants.thermo = true;
        Ok(())
    }

    unsafe fn update(&mut self, call: &mut UpdateCall) -> Result<()> {
        let target = self.pressure.at(call.step);
        // SAFETY: the engine passes views that are valid for the duration of the call
        let sim_box = unsafe { call.sim_box() }?;
        let (d, volume) = (sim_box.dimensions as usize, sim_box.volume());
        let pressure = |k: usize| (sim_box.kinetic[k] + sim_box.virial[k]) / volume;
        let time = self.every as f64 * sim_box.dt;
        let mut length = sim_box.length;
        for k in (0..d).filter(|k| self.variable[*k] > 0) {
            let coupled: Vec<usize> = (0..d).filter(|j| self.variable[*j] == self.variable[k]).collect();
            let mean = coupled.iter().map(|j| pressure(*j)).sum::<f64>() / coupled.len() as f64;
            let change = self.compressibility * time / self.tau * (target - mean);
            let factor = (1.0 - change).max(0.0).powf(1.0 / d as f64);
            length[k] *= factor.clamp(1.0 - MAX_CHANGE, 1.0 + MAX_CHANGE);
        }
        if length != sim_box.length {
            sim_box.length = length;
            call.changed |= changed::BOX;
        }
        Ok(())
    }
}
