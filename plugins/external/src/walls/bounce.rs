//! Walls that reflect particles.

use super::shape::{Shape, WallGeometry, distance};
use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{FromValue, Value};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::prelude::*;

/// Reflection rule of the velocity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Reverses the component along the normal.
    Forward,
    /// Reverses the velocity relative to the wall.
    Back,
}

impl FromValue for Rule {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.text() {
            "Forward" => Some(Self::Forward),
            "Back" => Some(Self::Back),
            _ => {
                errors.push(value.error(format!("expected {}", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "`Forward` (v − 2 (v·n) n) or `Back` (2 v_wall − v)".into()
    }
}

/// Reflecting wall: particles behind the wall are moved back in front of it and their velocities are reversed.
///
/// `Bounce` corrects the positions that another integrator has updated, before forces are computed. A particle found at
/// depth δ behind a plane is placed at distance δ in front of it along the normal n. Behind a round wall it is followed back along its
/// velocity to the point where it hit the wall, which determines n, and from there for the same time with the new velocity. `rule` sets
/// its velocity:
///
/// * `Forward`: v ← v − 2 (v·n) n, a smooth wall with slip;
/// * `Back`: v ← 2 v_w − v, a rough wall without slip. The wall moves tangentially with v_w = `velocity` · `factor` and
///   drags the liquid (Couette flow).
///
/// `wall` is described on the page of `LjWall`. The integrators of the run must move the particles of `group`; for several walls
/// add one `Bounce` each. For wall forces add other components (`WcaWall`, frozen
/// particles). Without wall forces the density of a soft liquid deviates close to the wall.
///
/// Beads of rigid bodies and virtual sites are not reflected, because they follow other particles. The check refuses a `group`
/// that contains them, as `All` does: use a wall with a potential, or a group without them, such as `Types` of the centers of
/// bodies. Then only the centers are reflected, and beads may be behind the wall. `Constraints` are refused, too.
///
/// Reflections have no virial: `Thermo` prints the pressure without the momentum that the wall takes. A barostat would find a
/// wrong density, so the check refuses those that change the box along the normal: all axes for a sphere, both axes across a
/// cylinder. Use `axes: (true, true, false)` for a plane normal to z, or a wall with a potential, such as `WcaWall`.
///
/// Limits: planes keep the density uniform and, for v_w = 0, the kinetic energy constant. So do round walls, and `Forward` keeps the angular
/// momentum about their axis, but for particles that hit the wall twice in one step. In one step a particle must not pass from a wall to the other
/// side of the box. Particles should begin in front of the wall: one that begins behind it is put in front of it in the first step, without
/// a message, and a round wall then changes its angular momentum. A particle on the wall is put in front of it by the rounding error of
/// positions, 2⁻²¹ of the longest box length (2⁻⁴⁹ with `precision: Double`). Place planes at least r_cut/2 of the pair forces away from the box faces, since particles interact
/// through the periodic boundary behind the walls.
///
/// Reference: M. Revenga, I. Zúñiga, P. Español, Comput. Phys. Commun. 121-122 (1999) 309,
/// doi:10.1016/S0010-4655(99)00341-0.
///
/// ```ron
/// Bounce(
///     wall: Plane(point: [0.0, 0.0, -5.62], normal: [0.0, 0.0, 1.0]),
///     rule: Back,
///     velocity: [0.5, 0.0, 0.0],
/// ),
/// VelocityVerlet()
/// ```
#[component(Integrator, "Bounce")]
#[derive(Clone, Debug, Params)]
pub struct Bounce {
    /// Shape and position of the wall.
    wall: Spanned<Shape>,
    /// Reflection rule of the velocity.
    rule: Rule,
    /// Velocity v_w of the wall, for `Back`.
    #[param(default = Spanned { value: [0.0; 3], at: Default::default() }, unit = "length/time")]
    velocity: Spanned<[f64; 3]>,
    /// Time-dependent factor of the wall velocity; default 1.
    factor: Option<Varying>,
    /// Group of particles that the wall reflects; without particles that follow others, such as beads of rigid bodies.
    #[param(default = Group::All)]
    group: Group,
    #[param(skip)]
    state: BounceState,
}

/// Wall data of the device function.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
pub struct BounceState {
    px: f64,
    py: f64,
    pz: f64,
    ax: f64,
    ay: f64,
    az: f64,
    radius: f64,
    side: f64,
    plane: f64,
    vx: f64,
    vy: f64,
    vz: f64,
    /// The velocity factor is `fixed` + `varies` · the factor of the step.
    fixed: f64,
    varies: f64,
    /// Minimum distance from the wall, above the rounding error of positions.
    margin: f64,
    /// Maximum depth behind the wall that can be corrected.
    deepest: f64,
    /// 1 for `Back`, 0 for `Forward`.
    back: f64,
}

#[particle_fn(Bounce)]
fn bounce(
    velocity: &mut Vec3<real>,
    position: Vec3<real>,
    displacement: &mut Vec3<real>,
    g: &BounceState,
    step: &Step<real>,
) {
    let point = Vec3::new(g.px as real, g.py as real, g.pz as real);
    let axis = Vec3::new(g.ax as real, g.ay as real, g.az as real);
    let none = Vec3::new(0.0, 0.0, 0.0);
    let (d, n) = distance(position, none, point, axis, g.radius as real, g.side as real, g.plane as real);
    let margin = g.margin as real;
    // the engine reports a displacement larger than the box as a fault
    let up = if d < -(g.deepest as real) { 1e30 } else { (-d).max(margin) - d };
    let mirrored = n * up;
    let factor = (g.fixed as real) + (g.varies as real) * step.varying[0];
    let wall = Vec3::new(g.vx as real, g.vy as real, g.vz as real) * factor;
    // depends on the position alone, so that a velocity stored by another integrator is reflected too
    let backward = (g.back as real) > 0.0;
    let from = position - point;
    let t_hit = time_behind(from, *velocity, axis, g.radius as real, g.side as real, d);
    // a particle that was on the wall at the start of the step hit it there: rounding makes the time shorter or longer than dt
    let start = from - *velocity * step.dt;
    let (before, _) = distance(start, none, none, axis, g.radius as real, g.side as real, 0.0);
    let in_step = t_hit <= step.dt || before > -margin;
    let hits = (g.plane as real) <= 0.0 && t_hit >= 0.0 && in_step && up < 1e30;
    let t = t_hit.min(step.dt);
    let at = from - *velocity * t;
    let (_, hit) = distance(at, none, none, axis, g.radius as real, g.side as real, 0.0);
    let normal = if hits { hit } else { n };
    let forward = *velocity - normal * (2.0 * velocity.dot(normal));
    let after = if backward { wall * 2.0 - *velocity } else { forward };
    let path = (after - *velocity) * t;
    // rounding, or a second hit in the same step
    let (left, inward) = distance(position + path, none, point, axis, g.radius as real, g.side as real, 0.0);
    let followed = path + inward * (margin - left).max(0.0);
    let moved = if hits { followed } else { mirrored };
    *displacement = if d < margin { moved } else { none };
    *velocity = if d < 0.0 { after } else { *velocity };
}

/// Returns how long ago a particle behind a round wall hit it, on a straight path; negative if it did not come through the wall. `from` is
/// its position from the center, `d` its distance in front of the wall.
#[device_fn]
fn time_behind(from: Vec3<real>, velocity: Vec3<real>, axis: Vec3<real>, radius: real, side: real, d: real) -> real {
    let across = from - axis * from.dot(axis);
    let v = velocity - axis * velocity.dot(axis);
    // |across − v t| = radius; the difference of squares from `d`, which has no rounding error of the squares
    let c = side * d * (across.norm() + radius);
    let b = across.dot(v);
    let inner = b * b - v.dot(v) * c;
    let sum = b.abs() + inner.max(0.0).sqrt();
    // an obstacle has been entered at the root above 0, which is the larger one for a particle past its closest approach
    let past = side > 0.0 && b > 0.0;
    let t = if past { sum / v.dot(v).max(1e-30) } else { c.abs() / sum.max(1e-30) };
    if d < 0.0 && (past || b * side < 0.0) && inner >= 0.0 { t } else { -1.0 }
}

impl Bounce {
    /// Returns the wall velocity, or an error message if this wall cannot have it.
    fn velocity(&self, w: &WallGeometry) -> std::result::Result<[f64; 3], &'static str> {
        let v = self.velocity.value;
        if v == [0.0; 3] {
            return Ok(v);
        }
        let along: f64 = (0..3).map(|k| v[k] * w.axis[k]).sum();
        let across = v.iter().map(|x| x * x).sum::<f64>() - along * along;
        let length = v.iter().map(|x| x * x).sum::<f64>();
        match self.wall.value {
            _ if self.rule == Rule::Forward => Err("a wall with `rule: Forward` exerts no drag: it has no velocity"),
            Shape::Plane { .. } if along.abs() > 1e-9 * length.sqrt() => {
                Err("a plane moves along itself: velocity · normal must be 0")
            }
            Shape::Sphere { .. } => Err("a sphere must have zero velocity"),
            Shape::Cylinder { .. } if across > 1e-9 * length => {
                Err("a cylinder moves along its axis: the other components of velocity must be 0")
            }
            _ => Ok(v),
        }
    }
}

impl Integrator for Bounce {
    type State = BounceState;
    type Extra<R: Real> = NoArrays<R>;

    fn program() -> Program<Self> {
        Program::new().correct::<bounce>()
    }

    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        let w = self.wall.value.geometry(system).map_err(|message| InputError::at(self.wall.at, message))?;
        let velocity = self.velocity(&w).map_err(|message| InputError::at(self.velocity.at, message))?;
        needs.group = self.group.need(system)?;
        needs.varyings = self.factor.into_iter().collect();
        needs.conserves_momentum = false;
        needs.drives = velocity != [0.0; 3];
        needs.without_virial_along = self.wall.value.normal_axes();
        self.wall.value.need_box(system, needs);
        needs.notes.extend(self.wall.value.note());
        let longest = system.box_length.iter().copied().fold(0.0, f64::max);
        // a position is rounded to half a unit in the last place of the largest coordinate, the distance to a few units
        let digits = if system.precision() == Precision::Double { 2f64.powi(-49) } else { 2f64.powi(-21) };
        let ([px, py, pz], [ax, ay, az], [vx, vy, vz]) = (w.point, w.axis, velocity);
        let varies = if self.factor.is_some() { 1.0 } else { 0.0 };
        self.state = BounceState {
            px,
            py,
            pz,
            ax,
            ay,
            az,
            radius: w.radius,
            side: w.side,
            plane: w.plane,
            vx,
            vy,
            vz,
            fixed: 1.0 - varies,
            varies,
            margin: longest * digits,
            deepest: if w.plane > 0.0 { longest } else { w.radius },
            back: if self.rule == Rule::Back { 1.0 } else { 0.0 },
        };
        Ok(())
    }

    fn state(&self, _: &GroupInfo) -> Result<BounceState> {
        Ok(self.state)
    }
}
