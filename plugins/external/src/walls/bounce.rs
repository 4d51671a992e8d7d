//! Walls from which particles bounce.

use super::shape::{Numbers, Shape, distance};
use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{FromValue, Value};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::prelude::*;

/// What happens to the velocity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Only its component along the normal is reversed.
    Forward,
    /// It is reversed as seen from the wall.
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

/// A wall from which particles bounce. It moves nothing by itself: it corrects what another integrator has moved, before
/// forces are computed. A particle that has got behind the wall by δ is put δ before it along the normal n, and
///
/// * `Forward`: v ← v − 2 (v·n) n, a smooth wall on which the liquid slips;
/// * `Back`: v ← 2 v_w − v, a rough wall to which the liquid sticks; it moves with the velocity v_w = `velocity` ·
///   `factor`, along itself, and drags the liquid (Couette flow).
///
/// Before a plane both keep a uniform density and, for v_w = 0, kinetic energies; round walls of radius R keep densities and
/// angular momenta up to parts of v dt/R. The run's integrators must move the particles of
/// `group`; it works with every one of them, and with several walls, one `Bounce` for each. `wall` is as on the page of
/// `LjWall`. A particle must not come from a wall to the other side of the box in a step, so planes lie away from the
/// faces of the box: by at least r_cut/2 of the pair forces, since particles see each other through the periodic
/// boundary behind the walls.
///
/// Forces from a wall are those of other components (`WcaWall`, frozen particles). Without them a soft liquid is denser
/// or thinner close to the wall.
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
    /// The wall.
    wall: Spanned<Shape>,
    /// What happens to the velocity.
    rule: Rule,
    /// Velocity of the wall, for `Back`.
    #[param(default = Spanned { value: [0.0; 3], at: Default::default() }, unit = "length/time")]
    velocity: Spanned<[f64; 3]>,
    /// A factor of the wall's velocity that may change with time; 1 if it is not given.
    factor: Option<Varying>,
    /// The particles that bounce.
    #[param(default = Group::All)]
    group: Group,
    #[param(skip)]
    state: BounceState,
}

/// The wall.
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
    /// The velocity's factor is `fixed` + `varies` · that of the step.
    fixed: f64,
    varies: f64,
    /// Distance from the wall that particles keep: above the rounding of their places.
    margin: f64,
    /// Farther behind the wall there is no place before it.
    deepest: f64,
    /// 1 for `Back`, 0 for `Forward`.
    back: f64,
}

#[particle_fn(Bounce)]
fn bounce(p: &mut Particle<real>, g: &BounceState, step: &Step<real>) {
    let point = Vec3::new(g.px as real, g.py as real, g.pz as real);
    let axis = Vec3::new(g.ax as real, g.ay as real, g.az as real);
    let none = Vec3::new(0.0, 0.0, 0.0);
    let (d, n) = distance(p.position, none, point, axis, g.radius as real, g.side as real, g.plane as real);
    let margin = g.margin as real;
    // the engine takes a displacement beyond the box for a fault
    let up = if d < -(g.deepest as real) { 1e30 } else { (-d).max(margin) - d };
    p.displacement = if d < margin { n * up } else { none };
    let factor = (g.fixed as real) + (g.varies as real) * step.varying[0];
    let wall = Vec3::new(g.vx as real, g.vy as real, g.vz as real) * factor;
    // by the place alone: a velocity that another integrator carries must go the same way
    let forward = p.velocity - n * (2.0 * p.velocity.dot(n));
    let back = wall * 2.0 - p.velocity;
    let after = if (g.back as real) > 0.0 { back } else { forward };
    p.velocity = if d < 0.0 { after } else { p.velocity };
}

impl Bounce {
    /// The wall's velocity, if the wall can have it.
    fn velocity(&self, w: &Numbers) -> std::result::Result<[f64; 3], &'static str> {
        let v = self.velocity.value;
        if v == [0.0; 3] {
            return Ok(v);
        }
        let along: f64 = (0..3).map(|k| v[k] * w.axis[k]).sum();
        let across = v.iter().map(|x| x * x).sum::<f64>() - along * along;
        let length = v.iter().map(|x| x * x).sum::<f64>();
        match self.wall.value {
            _ if self.rule == Rule::Forward => Err("a wall with `rule: Forward` does not drag: it has no velocity"),
            Shape::Plane { .. } if along.abs() > 1e-9 * length.sqrt() => {
                Err("a plane moves along itself: velocity · normal must be 0")
            }
            Shape::Sphere { .. } => Err("a sphere has no velocity"),
            Shape::Cylinder { .. } if across > 1e-9 * length => Err("a cylinder moves along its axis"),
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
        let w = self.wall.value.numbers(system).map_err(|message| InputError::at(self.wall.at, message))?;
        let velocity = self.velocity(&w).map_err(|message| InputError::at(self.velocity.at, message))?;
        needs.group = self.group.need(system)?;
        needs.varyings = self.factor.into_iter().collect();
        needs.conserves_momentum = false;
        needs.clearance = self.wall.value.clearance(system);
        needs.notes.extend(self.wall.value.note());
        let longest = system.box_length.iter().copied().fold(0.0, f64::max);
        // a place is known to half a unit of the last digit of the largest coordinate, and the distance to some of them
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
