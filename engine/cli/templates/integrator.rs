//! An integrator: velocity-Verlet with friction.
use galamost_plugin_api::prelude::*;

galamost_plugin_api::plugin!();

/// Velocity-Verlet with friction, m dv/dt = f − γ m v, for the relaxation of an initial state.
///
/// ```ron
/// MyComponent(gamma: 0.5)
/// ```
#[component(Integrator, "MyComponent")]
#[derive(Clone, Debug, Params)]
pub struct MyComponent {
    /// γ, friction rate.
    #[param(unit = "1/time", at_least = 0.0)]
    gamma: f64,
    /// Particles to move.
    #[param(default = Group::All)]
    group: Group,
}

/// State that all particles share; the engine stores it, also in checkpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, DeviceStruct)]
#[repr(C)]
pub struct MyComponentState {
    /// γ.
    pub gamma: f64,
}

#[particle_fn(MyComponent)]
fn first_half(
    velocity: &mut Vec3<real>,
    force: Vec3<real>,
    mass: real,
    displacement: &mut Vec3<real>,
    g: &MyComponentState,
    step: &Step<real>,
) {
    let damping = (-0.5 * (g.gamma as real) * step.dt).exp();
    *velocity = *velocity * damping + force * (0.5 * step.dt / mass);
    *displacement = *velocity * step.dt;
}

#[particle_fn(MyComponent)]
fn second_half(velocity: &mut Vec3<real>, force: Vec3<real>, mass: real, g: &MyComponentState, step: &Step<real>) {
    let damping = (-0.5 * (g.gamma as real) * step.dt).exp();
    *velocity = (*velocity + force * (0.5 * step.dt / mass)) * damping;
}

impl Integrator for MyComponent {
    type State = MyComponentState;
    type Extra<R: Real> = NoArrays<R>;

    fn program() -> Program<Self> {
        Program::new().before::<first_half>().after::<second_half>()
    }
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.group = self.group.need(system)?;
        Ok(())
    }
    fn state(&self, _: &GroupInfo) -> Result<MyComponentState> {
        Ok(MyComponentState { gamma: self.gamma })
    }
}
