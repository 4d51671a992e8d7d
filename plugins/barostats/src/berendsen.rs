//! Berendsen's barostat.

use crate::couple::{Couple, axes};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::updater::changed;

/// The most a length changes at once.
const MOST: f64 = 0.05;

/// Berendsen's weak coupling of the box to a pressure, beside any integrator: every `every` steps
/// Lₖ ← Lₖ [1 − β n dt/τ (P − Pₖₖ)]^⅓ with n dt the time since the last change, and particles follow.
///
/// Pₖₖ is the mean over the axes that change together. In two dimensions the power is ½. A length changes by at most 5 % at
/// once. Brings a box quickly to its pressure. Not canonical: fluctuations of the volume are too small, and mean values
/// are those of no ensemble; sample with `MtkNpt` or `AndersenNpt`. The energy it adds is not counted in `conserved` of
/// `Thermo`. Every change builds the neighbor list anew.
///
/// Reference: Berendsen, Postma, van Gunsteren, DiNola & Haak, J. Chem. Phys. 81 (1984) 3684, doi:10.1063/1.448118.
///
/// ```ron
/// BerendsenBarostat(every: 10, pressure: 1.0, tau: 5.0, compressibility: 0.1)
/// ```
#[component(Updater, "BerendsenBarostat")]
#[derive(Debug, Params)]
pub struct BerendsenBarostat {
    /// n, steps from one change to the next.
    #[param(at_least = 1)]
    every: u64,
    /// P; may change with time.
    #[param(unit = "energy/length³")]
    pressure: Varying,
    /// τ, time of the relaxation.
    #[param(unit = "time", above = 0.0)]
    tau: f64,
    /// β, isothermal compressibility; it only matters as β/τ.
    #[param(unit = "length³/energy", above = 0.0)]
    compressibility: f64,
    /// Axes that change together: `Isotropic`, `Xy` (z by itself) or `None`.
    #[param(default = Couple::Isotropic)]
    couple: Couple,
    /// Axes that change.
    #[param(default = [true, true, true])]
    axes: [bool; 3],
    #[param(skip)]
    variable: [u32; 3],
}

impl Updater for BerendsenBarostat {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        self.variable = axes(self.couple, self.axes, system.dimensions)?;
        needs.period = self.every;
        needs.wants.thermo = true;
        Ok(())
    }

    unsafe fn update(&mut self, call: &mut UpdateCall) -> Result<()> {
        let target = self.pressure.at(call.step);
        // SAFETY: the engine's word
        let sim_box = unsafe { call.sim_box() }?;
        let (d, volume) = (sim_box.dimensions as usize, sim_box.volume());
        let pressure = |k: usize| (sim_box.kinetic[k] + sim_box.virial[k]) / volume;
        let time = self.every as f64 * sim_box.dt;
        let mut length = sim_box.length;
        for k in (0..d).filter(|k| self.variable[*k] > 0) {
            let together: Vec<usize> = (0..d).filter(|j| self.variable[*j] == self.variable[k]).collect();
            let mean = together.iter().map(|j| pressure(*j)).sum::<f64>() / together.len() as f64;
            let change = self.compressibility * time / self.tau * (target - mean);
            let factor = (1.0 - change).max(0.0).powf(1.0 / d as f64);
            length[k] *= factor.clamp(1.0 - MOST, 1.0 + MOST);
        }
        if length != sim_box.length {
            sim_box.length = length;
            call.changed |= changed::BOX;
        }
        Ok(())
    }
}
