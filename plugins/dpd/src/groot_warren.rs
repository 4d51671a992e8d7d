//! Integrators for dissipative particle dynamics: Groot-Warren, and velocity-Verlet with forces computed again.

use galamost_plugin_api::prelude::*;

/// Groot-Warren velocity-Verlet, for forces that depend on velocities: r += v dt + f dt²/2m; ṽ = v + λ f dt/m;
/// f' = f(r, ṽ); v += dt (f + f')/2m.
///
/// λ = ½ is velocity-Verlet; λ = 0.65 keeps kT closest to its target in DPD at ρ = 3, σ = 3.
///
/// Reference: Groot & Warren, J. Chem. Phys. 107 (1997) 4423.
///
/// ```ron
/// GrootWarren(lambda: 0.65)
/// ```
#[component(Integrator, "GrootWarren")]
#[derive(Clone, Debug, Params)]
pub struct GrootWarren {
    /// The particles to move.
    #[param(default = Group::All)]
    group: Group,
    /// λ, how far the velocity is predicted.
    #[param(default = 0.65, at_least = 0.0, at_most = 1.0)]
    lambda: f64,
}

/// λ.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
pub struct GrootWarrenState {
    lambda: f64,
}

/// v + f dt/2m of the step under way.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
pub struct GrootWarrenArrays<real> {
    half_velocity: Vec3<real>,
}

#[particle_fn(GrootWarren)]
fn first_half(p: &mut Particle<real>, x: &mut GrootWarrenArrays<real>, g: &GrootWarrenState, step: &Step<real>) {
    let kick = p.force * (step.dt / p.mass);
    x.half_velocity = p.velocity + kick * 0.5;
    p.displacement = x.half_velocity * step.dt;
    p.velocity += kick * (g.lambda as real);
}

#[particle_fn(GrootWarren)]
fn second_half(p: &mut Particle<real>, x: &mut GrootWarrenArrays<real>, step: &Step<real>) {
    p.velocity = x.half_velocity + p.force * (0.5 * step.dt / p.mass);
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
