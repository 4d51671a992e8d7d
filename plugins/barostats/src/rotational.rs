//! The Martyna–Tobias–Klein barostat for translation and rotation.

use crate::coupling::axis_variables;
use crate::mtk::{MtkNpt, MtkState, begin_step, check_time, end_step, kicked, resize, store_kinetic};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::rotation::{pushed, turned, twice_energy};
use galamost_plugin_api::scaling::scaled;

/// Martyna–Tobias–Klein barostat (NPT) for translation and rotation: `MtkNpt` with rotation as in `RotationalVerlet` and a
/// third Nosé–Hoover chain for rotation.
///
/// dL/dt = T − ξ_r L, Q_r = g_r kT τ_r², 2K_r = Σ_k L_k²/I_k. L is the angular momentum, T the torque, and g_r the number
/// of nonzero moments of inertia (2 for each rod). The box responds to the pressure of the centers of mass,
/// Pₖₖ V = Σ m vₖ² + Σ rₖFₖ; rotation does not contribute. `conserved` of `Thermo` is H' of `MtkNpt` plus the energies of
/// rotation and its chain. None of τ, τ_P and τ_r may be shorter than dt.
///
/// With independent box axes (`couple: Xy` or `None`), layers of disks and rods can adjust their distance; in a liquid, box lengths
/// then drift without limit, as with `MtkNpt`. Particles need
/// the array `inert`, and `quaternion` or `orientation`.
///
/// Reference: as `MtkNpt`; Dullweber, Leimkuhler & McLachlan, J. Chem. Phys. 107 (1997) 5840, doi:10.1063/1.474310 (rotation).
///
/// ```ron
/// RotationalMtkNpt(kT: 1.0, tau: 0.5, tau_r: 0.5, pressure: 1.0, tau_p: 2.0)
/// ```
#[component(Integrator, "RotationalMtkNpt", former = "RigidMtkNpt")]
#[derive(Clone, Debug, Params)]
pub struct RotationalMtkNpt {
    #[param(flatten)]
    npt: MtkNpt,
    /// τ_r, time constant of the thermostats of rotation, in the sense of τ.
    #[param(unit = "time", above = 0.0)]
    tau_r: Spanned<f64>,
}

/// Returns m vₖ² and 2K_r of a particle.
#[particle_fn(RotationalMtkNpt)]
fn measure(
    velocity: Vec3<real>,
    mass: real,
    quaternion: Quaternion<real>,
    angular_momentum: Vec3<real>,
    inertia: Vec3<real>,
) -> (real, real, real, real) {
    let v = velocity;
    (mass * v.x * v.x, mass * v.y * v.y, mass * v.z * v.z, twice_energy(quaternion, angular_momentum, inertia))
}

/// Initializes the chains before the first step and after other components have changed velocities.
#[scalar_fn(RotationalMtkNpt)]
fn begin(g: &mut MtkState, sums: &[f64; 8], step: &Step<f64>, box_length: &[f64; 3], virial: &[f64; 3]) {
    store_kinetic(g, sums);
    begin_step(g, step, box_length, virial);
}

#[scalar_fn(RotationalMtkNpt)]
fn dilate(g: &MtkState, step: &Step<f64>, box_length: &mut [f64; 3]) {
    resize(g, step, box_length);
}

#[particle_fn(RotationalMtkNpt)]
fn first_half(
    velocity: &mut Vec3<real>,
    force: Vec3<real>,
    mass: real,
    displacement: &mut Vec3<real>,
    quaternion: &mut Quaternion<real>,
    angular_momentum: &mut Vec3<real>,
    torque: Vec3<real>,
    inertia: Vec3<real>,
    g: &MtkState,
    step: &Step<real>,
) {
    let v = kicked(*velocity, force, mass, g, 0.5 * step.dt, &g.begin_keep);
    *velocity = v;
    *displacement = Vec3::new(v.x * (g.flight[0] as real), v.y * (g.flight[1] as real), v.z * (g.flight[2] as real));
    let l = scaled(*angular_momentum, g.begin_spin);
    *angular_momentum = pushed(l, torque, *quaternion, inertia, 0.5 * step.dt);
    *quaternion = turned(*quaternion, *angular_momentum, inertia, step.dt);
}

#[particle_fn(RotationalMtkNpt)]
fn second_half(
    velocity: &mut Vec3<real>,
    force: Vec3<real>,
    mass: real,
    quaternion: Quaternion<real>,
    angular_momentum: &mut Vec3<real>,
    torque: Vec3<real>,
    inertia: Vec3<real>,
    g: &MtkState,
    step: &Step<real>,
) -> (real, real, real, real) {
    let v = kicked(*velocity, force, mass, g, 0.5 * step.dt, &g.keep);
    *velocity = v;
    *angular_momentum = pushed(*angular_momentum, torque, quaternion, inertia, 0.5 * step.dt);
    (mass * v.x * v.x, mass * v.y * v.y, mass * v.z * v.z, twice_energy(quaternion, *angular_momentum, inertia))
}

#[scalar_fn(RotationalMtkNpt)]
fn barostat(g: &mut MtkState, sums: &[f64; 8], step: &Step<f64>, box_length: &[f64; 3], virial: &[f64; 3]) {
    store_kinetic(g, sums);
    end_step(g, step, box_length, virial);
}

#[particle_fn(RotationalMtkNpt)]
fn rescale(velocity: &mut Vec3<real>, angular_momentum: &mut Vec3<real>, g: &MtkState) {
    *velocity = scaled(*velocity, g.end_scale);
    *angular_momentum = scaled(*angular_momentum, g.end_spin);
}

impl Integrator for RotationalMtkNpt {
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
        needs.box_axes = axis_variables(self.npt.couple, self.npt.axes, system.dimensions)?.map(|v| v != 0);
        needs.varyings = vec![self.npt.kt, self.npt.pressure];
        needs.rescales = true;
        self.npt.check_times(system.dt)?;
        check_time("tau_r", &self.tau_r, system.dt)
    }
    fn state(&self, group: &GroupInfo) -> Result<MtkState> {
        if group.rotational_degrees_of_freedom <= 0.0 {
            return Err(Error::input(
                "the group has no rotational degrees of freedom (all moments of inertia are 0); use RotationalVerlet or \
                 RotationalLangevin for rigid bodies, and MtkNpt for other particles",
            ));
        }
        MtkState::new(&self.npt, group, [group.rotational_degrees_of_freedom, self.tau_r.value])
    }
    fn conserved(state: &MtkState) -> f64 {
        state.reservoir
    }
}
