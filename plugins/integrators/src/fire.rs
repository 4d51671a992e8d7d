//! The FIRE energy minimizer.

use super::capped::shortened;
use galamost_plugin_api::prelude::*;

/// FIRE (fast inertial relaxation engine): minimizes the potential energy.
///
/// Particles start at rest and move by velocity Verlet with an adaptive time step, which starts at dt of the stage. After
/// each step, with P = Σ F·v, velocities become v ← (1 − α) v + α F |v|/|F|, where |v| and |F| are norms over all
/// particles of the group. After more than `n_min` consecutive steps with P > 0, the time step is multiplied by `f_inc`
/// (up to `dt_max`) and α by `f_alpha`. If P ≤ 0, velocities are set to 0, the time step is multiplied by `f_dec`, and α
/// is reset. No particle moves by more than `max_displacement` per step.
///
/// The minimization has converged when every force in the group is below `f_max`: velocities are then 0, particles stay
/// fixed, and `kinetic` of `Thermo` is 0. It restarts if forces grow again. The column `time` of output files counts
/// steps of the length dt, not the adaptive time step.
///
/// Reference: Bitzek, Koskinen, Gähler, Moseler & Gumbsch, Phys. Rev. Lett. 97 (2006) 170201,
/// doi:10.1103/PhysRevLett.97.170201.
///
/// ```ron
/// Fire(f_max: 1.0e-3, dt_max: 0.01)
/// ```
#[component(Integrator, "Fire")]
#[derive(Clone, Debug, Params)]
pub struct Fire {
    /// Particles to move.
    #[param(default = Group::All)]
    group: Group,
    /// Convergence threshold: magnitude that every force must fall below.
    #[param(unit = "energy/length", above = 0.0)]
    f_max: f64,
    /// Maximum time step.
    #[param(unit = "time", above = 0.0)]
    dt_max: Spanned<f64>,
    /// Maximum displacement of a particle per step.
    #[param(default = 0.1, unit = "length", above = 0.0)]
    max_displacement: f64,
    /// Initial α, the weight of the force direction in the velocity.
    #[param(default = 0.1, above = 0.0, at_most = 1.0)]
    alpha: f64,
    /// Number of consecutive steps with P > 0 before the time step grows.
    #[param(default = 5)]
    n_min: u32,
    /// Growth factor of the time step.
    #[param(default = 1.1, at_least = 1.0)]
    f_inc: f64,
    /// Reduction factor of the time step.
    #[param(default = 0.5, above = 0.0, below = 1.0)]
    f_dec: f64,
    /// Reduction factor of α.
    #[param(default = 0.99, above = 0.0, at_most = 1.0)]
    f_alpha: f64,
}

/// State of the minimizer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
pub struct FireState {
    f_max: f64,
    dt_max: f64,
    max_displacement: f64,
    alpha_start: f64,
    f_inc: f64,
    f_dec: f64,
    f_alpha: f64,
    /// Current time step; 0 after convergence.
    dt: f64,
    /// Current α.
    alpha: f64,
    /// Velocity scale factor at the end of the step.
    keep: f64,
    /// Factor of the force that is added to velocities at the end of the step.
    steer: f64,
    n_min: u32,
    /// Number of consecutive steps with P > 0.
    downhill: u32,
}

/// Sets the velocity to 0. Returns 1 for a particle whose force is not below the threshold.
#[particle_fn(Fire)]
fn stop(velocity: &mut Vec3<real>, force: Vec3<real>, g: &FireState) -> real {
    *velocity = Vec3::zero();
    if force.norm() < (g.f_max as real) { 0.0 } else { 1.0 }
}

/// Initializes the minimizer before the first step and after other components have changed velocities.
#[scalar_fn(Fire)]
fn begin(g: &mut FireState, sums: &[f64; 8], step: &Step<f64>) {
    g.dt = if sums[0] > 0.0 { step.dt } else { 0.0 };
    g.alpha = g.alpha_start;
    g.downhill = 0;
}

#[particle_fn(Fire)]
fn first_half(velocity: &mut Vec3<real>, force: Vec3<real>, mass: real, displacement: &mut Vec3<real>, g: &FireState) {
    let dt = g.dt as real;
    *velocity += force * (0.5 * dt / mass);
    *displacement = shortened(*velocity * dt, g.max_displacement as real);
}

/// Returns F·v, F², v², and 1 for a particle whose force is not below the threshold. The products are f64, because
/// squared forces between overlapping particles overflow f32.
#[particle_fn(Fire)]
fn second_half(velocity: &mut Vec3<real>, force: Vec3<real>, mass: real, g: &FireState) -> (f64, f64, f64, real) {
    *velocity += force * (0.5 * (g.dt as real) / mass);
    let fx = force.x as f64;
    let fy = force.y as f64;
    let fz = force.z as f64;
    let vx = velocity.x as f64;
    let vy = velocity.y as f64;
    let vz = velocity.z as f64;
    let above = if force.norm() < (g.f_max as real) { 0.0 } else { 1.0 };
    (fx * vx + fy * vy + fz * vz, fx * fx + fy * fy + fz * fz, vx * vx + vy * vy + vz * vz, above)
}

#[scalar_fn(Fire)]
fn adapt(g: &mut FireState, sums: &[f64; 8], step: &Step<f64>) {
    if sums[3] == 0.0 {
        g.dt = 0.0;
        g.keep = 0.0;
        g.steer = 0.0;
    } else if g.dt == 0.0 {
        // forces have grown again after convergence
        g.dt = step.dt;
        g.keep = 0.0;
        g.steer = 0.0;
        g.downhill = 0;
        g.alpha = g.alpha_start;
    } else if sums[0] > 0.0 {
        g.keep = 1.0 - g.alpha;
        g.steer = g.alpha * (sums[2] / sums[1]).sqrt();
        g.downhill += 1;
        if g.downhill > g.n_min {
            g.dt = (g.dt * g.f_inc).min(g.dt_max);
            g.alpha *= g.f_alpha;
        }
    } else {
        g.keep = 0.0;
        g.steer = 0.0;
        g.downhill = 0;
        g.dt *= g.f_dec;
        g.alpha = g.alpha_start;
    }
}

#[particle_fn(Fire)]
fn mix(velocity: &mut Vec3<real>, force: Vec3<real>, g: &FireState) {
    *velocity = *velocity * (g.keep as real) + force * (g.steer as real);
}

impl Integrator for Fire {
    type State = FireState;
    type Extra<R: Real> = NoArrays<R>;

    fn program() -> Program<Self> {
        Program::new()
            .start::<stop>()
            .start_scalar::<begin>()
            .before::<first_half>()
            .after::<second_half>()
            .after_scalar::<adapt>()
            .after::<mix>()
    }
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.group = self.group.need(system)?;
        needs.conserves_momentum = false;
        needs.stops = true;
        if self.dt_max.value < system.dt {
            let message =
                format!("dt_max {} is shorter than the time step {}; use dt_max ≥ dt", self.dt_max.value, system.dt);
            return Err(InputError::at(self.dt_max.at, message).into());
        }
        Ok(())
    }
    fn state(&self, _: &GroupInfo) -> Result<FireState> {
        Ok(FireState {
            f_max: self.f_max,
            dt_max: self.dt_max.value,
            max_displacement: self.max_displacement,
            alpha_start: self.alpha,
            f_inc: self.f_inc,
            f_dec: self.f_dec,
            f_alpha: self.f_alpha,
            n_min: self.n_min,
            ..FireState::default()
        })
    }
}
