//! Velocity Verlet with a maximum displacement per step.

use galamost_plugin_api::prelude::*;

/// Returns `v`, shortened to the length `limit` if it is longer. Does not overflow for components whose squares would.
#[device_fn]
pub fn shortened(v: Vec3<real>, limit: real) -> Vec3<real> {
    let largest = v.x.abs().max(v.y.abs()).max(v.z.abs());
    let unit = v / (if largest > 0.0 { largest } else { 1.0 });
    let length = unit.norm();
    if largest * length > limit { unit * (limit / length) } else { v }
}

/// Velocity Verlet that limits each particle's displacement to `max_displacement` per step.
///
/// One step: v += F dt/2m, shortened to |v| ≤ max_displacement/dt; r += v dt; new forces; v += F dt/2m, shortened
/// likewise.
///
/// Use it in a first stage to relax overlapping particles. Where the limit acts, **neither energy nor momentum is
/// conserved**: potential energy is removed without becoming kinetic energy. If no particle reaches the limit, the
/// trajectory is that of `VelocityVerlet`. Two particles at exactly the same position still end the run with an error,
/// because their force is not a number.
///
/// Reference: Swope, Andersen, Berens & Wilson, J. Chem. Phys. 76 (1982) 637, doi:10.1063/1.442716 (velocity-Verlet).
///
/// ```ron
/// CappedVerlet(max_displacement: 0.01)
/// ```
#[component(Integrator, "CappedVerlet")]
#[derive(Clone, Debug, Params)]
pub struct CappedVerlet {
    /// Particles to integrate.
    #[param(default = Group::All)]
    group: Group,
    /// Maximum displacement of a particle per step.
    #[param(unit = "length", above = 0.0)]
    max_displacement: f64,
}

/// State of the integrator: the maximum displacement.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
pub struct CappedState {
    max_displacement: f64,
}

#[particle_fn(CappedVerlet)]
fn first_half(
    velocity: &mut Vec3<real>,
    force: Vec3<real>,
    mass: real,
    displacement: &mut Vec3<real>,
    g: &CappedState,
    step: &Step<real>,
) {
    let max_speed = (g.max_displacement as real) / step.dt;
    *velocity = shortened(*velocity + force * (0.5 * step.dt / mass), max_speed);
    *displacement = *velocity * step.dt;
}

#[particle_fn(CappedVerlet)]
fn second_half(velocity: &mut Vec3<real>, force: Vec3<real>, mass: real, g: &CappedState, step: &Step<real>) {
    let max_speed = (g.max_displacement as real) / step.dt;
    *velocity = shortened(*velocity + force * (0.5 * step.dt / mass), max_speed);
}

impl Integrator for CappedVerlet {
    type State = CappedState;
    type Extra<R: Real> = NoArrays<R>;

    fn program() -> Program<Self> {
        Program::new().before::<first_half>().after::<second_half>()
    }
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.group = self.group.need(system)?;
        needs.constrainable = true;
        needs.conserves_momentum = false;
        Ok(())
    }
    fn state(&self, _: &GroupInfo) -> Result<CappedState> {
        Ok(CappedState { max_displacement: self.max_displacement })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_vectors_above_the_limit_are_shortened() {
        let v = Vec3::new(3.0, 0.0, -4.0);
        assert_eq!(shortened::<f64>(v, 5.1), v);
        let s = shortened::<f64>(v, 0.5);
        assert!((s.x - 0.3).abs() < 1e-15 && (s.z + 0.4).abs() < 1e-15);
        assert_eq!(shortened::<f32>(Vec3::zero(), 0.5), Vec3::zero());
        // the square overflows f32
        let s = shortened::<f32>(Vec3::new(1e30, 1e30, 0.0), 1.0);
        assert!((s.norm() - 1.0).abs() < 1e-6, "{s:?}");
    }
}
