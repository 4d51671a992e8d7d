//! A force that is a wave in space.

use galamost_plugin_api::prelude::*;
use std::f64::consts::TAU;

/// Parameters of the whole component.
#[derive(Clone, Debug, Params)]
pub struct PeriodicForceParams {
    /// The particles it acts on.
    #[param(default = Group::All)]
    group: Group,
    /// A, the largest force on a particle, or its acceleration; may change with time.
    #[param(unit = "energy/length, or length/time² with per_mass")]
    force: Varying,
    /// Direction of the force.
    #[param(default = Axis::X)]
    flow: Axis,
    /// Direction in which the force changes.
    #[param(default = Axis::Z)]
    gradient: Axis,
    /// n, the number of waves in the box.
    #[param(default = 1, at_least = 1)]
    waves: u32,
    /// φ, in radians.
    #[param(default = 0.0)]
    phase: f64,
    /// The force is multiplied with the particle's mass.
    #[param(default = false)]
    per_mass: bool,
}

/// Unit vectors of force and gradient, 2πn, φ, and what the factor is of: `once` + `by_mass` · mass; `along` is 1 where the
/// force points along its gradient.
#[derive(Debug, PairParams)]
pub struct WaveRow<real> {
    fx: real,
    fy: real,
    fz: real,
    gx: real,
    gy: real,
    gz: real,
    turns: real,
    phase: real,
    once: real,
    by_mass: real,
    along: real,
}

impl PeriodicForceParams {
    fn row(&self) -> WaveRow<f64> {
        let ([fx, fy, fz], [gx, gy, gz]) = (self.flow.unit(), self.gradient.unit());
        let by_mass = if self.per_mass { 1.0 } else { 0.0 };
        let along = if self.flow == self.gradient { 1.0 } else { 0.0 };
        let turns = TAU * f64::from(self.waves);
        WaveRow { fx, fy, fz, gx, gy, gz, turns, phase: self.phase, once: 1.0 - by_mass, by_mass, along }
    }
}

impl ExternalParams for PeriodicForceParams {
    type Row = WaveRow<f64>;

    fn rows(&self, system: &SystemInfo, needs: &mut Needs) -> Result<Vec<WaveRow<f64>>> {
        if system.dimensions == 2 && (self.gradient == Axis::Z || self.flow == Axis::Z) {
            return Err(Error::input("in two dimensions `flow` and `gradient` are X and Y"));
        }
        needs.group = self.group.need(system)?;
        needs.varyings = vec![self.force];
        needs.conservative = self.flow == self.gradient;
        Ok(vec![self.row()])
    }

    /// The energy depends on the box.
    fn virial(&self) -> bool {
        false
    }

    /// A force across its gradient has no energy.
    fn sample(random: &mut dyn FnMut() -> f64) -> Option<WaveRow<f64>> {
        let axis = [Axis::X, Axis::Y, Axis::Z][(3.0 * random()) as usize % 3];
        let (group, force) = (Group::All, Varying::constant(1.0));
        let (waves, phase, per_mass) = (1 + (3.0 * random()) as u32, 6.0 * random(), random() < 0.5);
        Some(Self { group, force, flow: axis, gradient: axis, waves, phase, per_mass }.row())
    }
}

/// A force that is a wave: F = A cos(2π n x_g/L_g + φ) along the axis `flow`, x_g the coordinate along `gradient`; m · F
/// with `per_mass: true`.
///
/// Across its gradient (`flow` and `gradient` are different axes) it drives a Kolmogorov flow. With k = 2πn/L and the
/// number density ρ a Newtonian liquid has the velocity v(x_g) = (ρ A/η k²) cos(k x_g + φ), so η = ρ A/(k² V) of the
/// amplitude V of the velocity, in a box without walls. (`PeriodicPoiseuille` is the same with ±g in the two halves.)
/// Switched on at t = 0, V rises as 1 − exp(−η k² t/ρ m); switched off, it decays in the same way, which is η(k).
/// Forces heat the liquid: a thermostat must take that out, best `Dpd`. Total momentum is kept only on average: see
/// `ZeroMomentum`.
///
/// Such a force is no gradient and has no energy. Along its gradient it has U = −(A L/2πn) sin(2π n x_g/L + φ), a field
/// that makes waves of density. There is no virial.
///
/// Reference: E. M. Gosling, I. R. McDonald, K. Singer, Mol. Phys. 26 (1973) 1475, doi:10.1080/00268977300102631.
///
/// ```ron
/// PeriodicForce(force: 0.1, flow: X, gradient: Z)
/// ```
#[external_potential("PeriodicForce", input = PeriodicForceParams)]
fn periodic_force(
    position: Vec3<real>,
    length: Vec3<real>,
    mass: real,
    step: &Step<real>,
    p: &WaveRow<real>,
) -> (Vec3<real>, real) {
    let gradient = Vec3::new(p.gx, p.gy, p.gz);
    let period = length.dot(gradient);
    let angle = p.turns * (position.dot(gradient) / period) + p.phase;
    let amplitude = step.varying[0] * (p.once + p.by_mass * mass);
    let energy = -(p.along * amplitude * period / p.turns) * angle.sin();
    (Vec3::new(p.fx, p.fy, p.fz) * (amplitude * angle.cos()), energy)
}
