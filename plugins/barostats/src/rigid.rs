//! The barostat of Martyna, Tobias and Klein for particles that turn.

use crate::couple::axes;
use crate::mtk::{MtkNpt, MtkState, begin_step, end_step, kicked, resize, take};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::rotation::{pushed, turned, twice_energy};

/// NPT for particles that turn: `MtkNpt`, with rotation as in `RigidVerlet` and a Nosé-Hoover chain of its own,
/// dL/dt = T − ξ_r L, Q_r = g_r kT τ_r², 2K_r = Σ_k L_k²/I_k.
///
/// g_r is the number of moments of inertia that are not 0 (2 for each rod). The box feels the pressure of the centers,
/// Pₖₖ V = Σ m vₖ² + Σ rₖFₖ; rotation adds nothing to it. `conserved` of `Thermo` is H' of `MtkNpt` with the chain of
/// rotation. Axes of the box that change by themselves (`couple: Xy` or `None`) let layers of disks and rods choose their
/// distance. Particles need `inert`, and `quaternion` or `orientation`.
///
/// Reference: as `MtkNpt`; Dullweber, Leimkuhler & McLachlan, J. Chem. Phys. 107 (1997) 5840, doi:10.1063/1.474310 (rotation).
///
/// ```ron
/// RigidMtkNpt(kT: 1.0, tau: 0.5, tau_r: 0.5, pressure: 1.0, tau_p: 2.0)
/// ```
#[component(Integrator, "RigidMtkNpt")]
#[derive(Clone, Debug, Params)]
pub struct RigidMtkNpt {
    #[param(flatten)]
    npt: MtkNpt,
    /// τ_r, period of the exchange of heat between rotation and its thermostats.
    #[param(unit = "time", above = 0.0)]
    tau_r: f64,
}

#[particle_fn(RigidMtkNpt)]
fn measure(p: &mut Particle<real>) -> (real, real, real, real) {
    let v = p.velocity;
    (
        p.mass * v.x * v.x,
        p.mass * v.y * v.y,
        p.mass * v.z * v.z,
        twice_energy(p.quaternion, p.angular_momentum, p.inertia),
    )
}

/// Before the first step, and whenever velocities were changed from outside.
#[scalar_fn(RigidMtkNpt)]
fn begin(g: &mut MtkState, sums: &[f64; 8], step: &Step<f64>, sim_box: &mut SimBox) {
    take(g, sums);
    begin_step(g, step, sim_box);
}

#[scalar_fn(RigidMtkNpt)]
fn dilate(g: &mut MtkState, step: &Step<f64>, sim_box: &mut SimBox) {
    resize(g, step, sim_box);
}

#[particle_fn(RigidMtkNpt)]
fn first_half(p: &mut Particle<real>, g: &MtkState, step: &Step<real>) {
    let v = kicked(p, g, 0.5 * step.dt, g.begin_scale as real);
    p.velocity = v;
    p.displacement = Vec3::new(v.x * (g.flight[0] as real), v.y * (g.flight[1] as real), v.z * (g.flight[2] as real));
    let l = p.angular_momentum * (g.begin_spin as real);
    p.angular_momentum = pushed(l, p.torque, p.quaternion, p.inertia, 0.5 * step.dt);
    p.quaternion = turned(p.quaternion, p.angular_momentum, p.inertia, step.dt);
}

#[particle_fn(RigidMtkNpt)]
fn second_half(p: &mut Particle<real>, g: &MtkState, step: &Step<real>) -> (real, real, real, real) {
    let v = kicked(p, g, 0.5 * step.dt, 1.0);
    p.velocity = v;
    p.angular_momentum = pushed(p.angular_momentum, p.torque, p.quaternion, p.inertia, 0.5 * step.dt);
    (
        p.mass * v.x * v.x,
        p.mass * v.y * v.y,
        p.mass * v.z * v.z,
        twice_energy(p.quaternion, p.angular_momentum, p.inertia),
    )
}

#[scalar_fn(RigidMtkNpt)]
fn barostat(g: &mut MtkState, sums: &[f64; 8], step: &Step<f64>, sim_box: &mut SimBox) {
    take(g, sums);
    end_step(g, step, sim_box);
}

#[particle_fn(RigidMtkNpt)]
fn rescale(p: &mut Particle<real>, g: &MtkState) {
    p.velocity *= g.end_scale as real;
    p.angular_momentum *= g.end_spin as real;
}

impl Integrator for RigidMtkNpt {
    type State = MtkState;
    type Extra<R: Real> = NoArrays<R>;

    fn program() -> Program<Self> {
        Program::new()
            .start::<measure>()
            .start_scalar::<begin>()
            .before_scalar::<dilate>()
            .before::<first_half>()
            .after::<second_half>()
            .after_scalar::<barostat>()
            .after::<rescale>()
    }
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        axes(self.npt.couple, self.npt.axes, system.dimensions)?;
        needs.varyings = vec![self.npt.kt, self.npt.pressure];
        Ok(())
    }
    fn state(&self, group: &GroupInfo) -> Result<MtkState> {
        if group.rotational_degrees_of_freedom <= 0.0 {
            return Err(Error::input("no particle turns, since all moments of inertia are 0: use MtkNpt"));
        }
        MtkState::new(&self.npt, group, [group.rotational_degrees_of_freedom, self.tau_r])
    }
    fn conserved(state: &MtkState) -> f64 {
        state.reservoir
    }
}
