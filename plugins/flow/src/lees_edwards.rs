//! Lees–Edwards shear flow.

use galamost_plugin_api::prelude::*;

/// Homogeneous shear flow v_x = γ̇ y by Lees–Edwards periodic boundary conditions.
///
/// The periodic images above and below the box along y slide along x with the velocities ±γ̇ L_y. They are displaced by
/// ±offset with offset = ∫γ̇ L_y dt. A particle that leaves through the top face reenters at the bottom at x − offset with
/// v_x − γ̇ L_y.
///
/// Put this component into the list `integrators` beside an integrator that moves the particles. The viscosity is
/// η = −⟨P_xy⟩/γ̇ with `pressure_xy` of `Thermo`. Pair forces, bonds and the neighbor list use the displaced images; so
/// does the friction of `Dpd`, which acts on the relative velocity of nearest images.
///
/// Limits: a thermostat that scales or damps absolute velocities (Nosé–Hoover, Langevin and others) damps the flow itself.
/// `Brownian`, `Langevin`, `RotationalLangevin`, `Andersen` and `AndersenNpt` with ν > 0 act relative to a liquid at rest: flow
/// remains only near the two faces, and the check warns about them. Thermostats that act on relative velocities (`Dpd`,
/// `DpdThermostat`) do not damp it.
/// `kT` of `Thermo` includes the flow, which contributes m γ̇² L_y²/(12 d) per particle for uniform shear in d dimensions.
/// Unwrapped positions (image × box length) jump along x when a particle crosses the boundary along y.
///
/// In later stages without `LeesEdwards`, the images stay where they are and stand still. Components that do not know displaced
/// images are refused in its stage and in all later ones; a stage has at most one `LeesEdwards`. `BondDistribution`,
/// `AngleDistribution`, `DihedralDistribution`, `InternalDistances` and `Gyration`, for molecules that bonds connect, know them. Files
/// contain positions in the rectangular box, not the displacement: only checkpoints continue a sheared state.
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
    /// γ̇, shear rate; may vary with time.
    #[param(unit = "1/time")]
    rate: Varying,
}

/// Advances the offset of the images. Runs before particles move, so that particles cross the boundary with the new
/// offset.
#[scalar_fn(LeesEdwards)]
fn slide(step: &Step<f64>, box_length: &[f64; 3], shear_offset: &mut f64, shear_speed: &mut f64) {
    *shear_speed = step.varying[0] * box_length[1];
    *shear_offset += *shear_speed * step.dt;
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
