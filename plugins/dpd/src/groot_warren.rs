//! The Groot-Warren integrator.

use galamost_plugin_api::prelude::*;

/// Groot-Warren velocity-Verlet integrator for velocity-dependent forces such as DPD.
///
/// r += v dt + f dt²/2m; ṽ = v + λ f dt/m; f' = f(r, ṽ); v += dt (f + f')/2m.
///
/// λ = ½ is velocity-Verlet. λ = 0.65 keeps kT closest to its target for DPD at ρ = 3, σ = 3.
///
/// Reference: Groot & Warren, J. Chem. Phys. 107 (1997) 4423.
///
/// ```ron
/// GrootWarren(lambda: 0.65)
/// ```
#[component(Integrator, "GrootWarren")]
#[derive(Clone, Debug, Params)]
pub struct GrootWarren {
    /// Group of particles to integrate.
    #[param(default = Group::All)]
    group: Group,
    /// Prediction factor λ of the velocity.
    #[param(default = 0.65, at_least = 0.0, at_most = 1.0)]
    lambda: f64,
}

/// State of the integrator: λ.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
pub struct GrootWarrenState {
    lambda: f64,
}

/// Velocity v + f dt/2m of the current step.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
pub struct GrootWarrenArrays<real> {
    half_velocity: Vec3<real>,
}

#[particle_fn(GrootWarren)]
fn first_half(
    velocity: &mut Vec3<real>,
    force: Vec3<real>,
    mass: real,
    displacement: &mut Vec3<real>,
    x: &mut GrootWarrenArrays<real>,
    g: &GrootWarrenState,
    step: &Step<real>,
) {
    let kick = force * (step.dt / mass);
    x.half_velocity = *velocity + kick * 0.5;
    *displacement = x.half_velocity * step.dt;
    *velocity += kick * (g.lambda as real);
}

#[particle_fn(GrootWarren)]
fn second_half(
    velocity: &mut Vec3<real>,
    force: Vec3<real>,
    mass: real,
    x: &mut GrootWarrenArrays<real>,
    step: &Step<real>,
) {
    *velocity = x.half_velocity + force * (0.5 * step.dt / mass);
}

impl Integrator for GrootWarren {
    type State = GrootWarrenState;
    type Extra<R: Real> = GrootWarrenArrays<R>;

    fn program() -> Program<Self> {
        Program::new().before::<first_half>().after::<second_half>().carries_velocity()
    }
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.group = self.group.need(system)?;
        Ok(())
    }
    fn state(&self, _: &GroupInfo) -> Result<GrootWarrenState> {
        Ok(GrootWarrenState { lambda: self.lambda })
    }
}
