//! Shear flow without walls.

use galamost_plugin_api::prelude::*;

/// Shear flow by the boundary of Lees and Edwards: v_x = γ̇ y. The periodic images above and below along y slide along x
/// with the velocities ±γ̇ L_y; they stand at x ± offset, offset = ∫γ̇ L_y dt. A particle that leaves through the top comes
/// in below at x − offset with v_x − γ̇ L_y. Stands beside an integrator that moves the particles, in the list
/// `integrators`.
///
/// The viscosity is η = −⟨P_xy⟩/γ̇ with `pressure_xy` of `Thermo`. Forces between images, list, bonds and the friction of
/// `Dpd`, which acts on the relative velocity of the nearest images, all follow. A thermostat that scales or damps
/// velocities as they are (Nosé-Hoover, Langevin and others) damps the flow itself; those that act on relative velocities
/// (`Dpd`, `DpdThermostat`) do not. `kT` of `Thermo` holds the flow's share m γ̇² L_y²/(12 d) for each particle (uniform
/// shear). Unwrapped positions (image × length) jump along x where a particle crosses the border along y.
///
/// Reference: Lees & Edwards, J. Phys. C 5 (1972) 1921, doi:10.1088/0022-3719/5/15/006.
///
/// ```ron
/// LeesEdwards(rate: 0.1),
/// VelocityVerlet()
/// ```
#[component(Integrator, "LeesEdwards")]
#[derive(Clone, Debug, Params)]
pub struct LeesEdwards {
    /// γ̇; may change with time.
    #[param(unit = "1/time")]
    rate: Varying,
}

/// The images slide on. Runs before particles move, so that those that cross the border do so where the images then are.
#[scalar_fn(LeesEdwards)]
fn slide(step: &Step<f64>, sim_box: &mut SimBox) {
    sim_box.speed = step.varying[0] * sim_box.length[1];
    sim_box.offset += sim_box.speed * step.dt;
}

impl Integrator for LeesEdwards {
    type State = NoState;
    type Extra<R: Real> = NoArrays<R>;

    fn program() -> Program<Self> {
        Program::new().before_scalar::<slide>()
    }
    fn bind(&mut self, _: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.varyings = vec![self.rate];
        Ok(())
    }
    fn state(&self, _: &GroupInfo) -> Result<NoState> {
        Ok(NoState::default())
    }
}
