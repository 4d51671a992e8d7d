//! A sinusoidal force field.

use galamost_plugin_api::prelude::*;
use std::f64::consts::TAU;

/// Settings of the component.
#[derive(Clone, Debug, Params)]
pub struct PeriodicForceParams {
    /// Group of particles that the force acts on.
    #[param(default = Group::All)]
    group: Group,
    /// Amplitude A of the force on a particle, or of its acceleration with `per_mass`; can vary with time.
    #[param(unit = "energy/length, or length/time² with per_mass")]
    force: Varying,
    /// Axis of the force.
    #[param(default = Axis::X)]
    flow: Axis,
    /// Axis along which the force changes.
    #[param(default = Axis::Z)]
    gradient: Axis,
    /// Number n of waves in the box.
    #[param(default = 1, at_least = 1)]
    waves: u32,
    /// Phase φ in radians.
    #[param(default = 0.0)]
    phase: f64,
    /// Whether the force is multiplied by the particle mass.
    #[param(default = false)]
    per_mass: bool,
}

/// Unit vectors of force and gradient, 2πn, φ, and the factor `constant` + `by_mass` · mass; `along` is 1 if the force is
/// parallel to its gradient.
#[derive(Debug, PairParams)]
pub struct WaveRow<real> {
    fx: real,
    fy: real,
    fz: real,
    gx: real,
    gy: real,
    gz: real,
    phase_span: real,
    phase: real,
    constant: real,
    by_mass: real,
    along: real,
}

impl PeriodicForceParams {
    fn row(&self) -> WaveRow<f64> {
        let ([fx, fy, fz], [gx, gy, gz]) = (self.flow.unit(), self.gradient.unit());
        let by_mass = if self.per_mass { 1.0 } else { 0.0 };
        let along = if self.flow == self.gradient { 1.0 } else { 0.0 };
        let phase_span = TAU * f64::from(self.waves);
        WaveRow { fx, fy, fz, gx, gy, gz, phase_span, phase: self.phase, constant: 1.0 - by_mass, by_mass, along }
    }
}

impl ExternalParams for PeriodicForceParams {
    type Row = WaveRow<f64>;

    fn rows(&self, system: &SystemInfo, needs: &mut Needs) -> Result<Vec<WaveRow<f64>>> {
        if system.dimensions == 2 && (self.gradient == Axis::Z || self.flow == Axis::Z) {
            return Err(Error::input("in two dimensions `flow` and `gradient` must be X and Y"));
        }
        needs.group = self.group.need(system)?;
        needs.varyings = vec![self.force];
        needs.conservative = self.flow == self.gradient;
        // the displaced images above and below have other phases
        needs.plain_images = self.gradient == Axis::X;
        Ok(vec![self.row()])
    }

    /// No virial: the energy depends on the box.
    fn virial(&self) -> bool {
        false
    }

    /// Samples only forces parallel to their gradient, which have an energy.
    fn sample(random: &mut dyn FnMut() -> f64) -> Option<WaveRow<f64>> {
        let axis = [Axis::X, Axis::Y, Axis::Z][(3.0 * random()) as usize % 3];
        let (group, force) = (Group::All, Varying::constant(1.0));
        let (waves, phase, per_mass) = (1 + (3.0 * random()) as u32, 6.0 * random(), random() < 0.5);
        Some(Self { group, force, flow: axis, gradient: axis, waves, phase, per_mass }.row())
    }
}

/// Sinusoidal force: F = A cos(2π n x_g/L_g + φ) along the axis `flow`, with x_g the coordinate along `gradient`.
///
/// With `per_mass: true` the force is m · F.
///
/// If `flow` and `gradient` are different axes, it drives a Kolmogorov flow without walls. With k = 2πn/L and the number
/// density ρ, a Newtonian liquid has the velocity v(x_g) = (ρ A/η k²) cos(k x_g + φ). Its viscosity is η = ρ A/(k² V), with V
/// the velocity amplitude. After switching the force on at t = 0, V grows as 1 − exp(−η k² t/ρ m); after switching it off,
/// V decays with the same rate, which gives η(k). `PeriodicPoiseuille` applies ±g in the two halves instead.
///
/// The force heats the liquid, so add a thermostat, preferably `Dpd`. Total momentum is conserved only on average; see
/// `ZeroMomentum`, also for the temperature of few particles. Such a force has no potential and no energy.
///
/// If `flow` and `gradient` are the same axis, the energy is U = −(A L/2πn) sin(2π n x_g/L + φ), a field that induces density
/// waves. There is no virial contribution.
///
/// In a box sheared by `LeesEdwards`, `gradient` cannot be X: the displaced images above and below the box would have other
/// phases.
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
    let angle = p.phase_span * (position.dot(gradient) / period) + p.phase;
    let amplitude = step.varying[0] * (p.constant + p.by_mass * mass);
    let energy = -(p.along * amplitude * period / p.phase_span) * angle.sin();
    (Vec3::new(p.fx, p.fy, p.fz) * (amplitude * angle.cos()), energy)
}
