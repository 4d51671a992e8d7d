//! Positions and velocities of sites, and the forces that they pass on, for the CPU and CUDA.
//!
//! The arms u₁, u₂, u₃ point from the first constructing particle to the others; a site is at the displacement d from the
//! first one. The first particle receives what the others leave of the force.

use galamost_plugin_api::prelude::*;

/// d = Σ w_k u_k, handled without these functions.
pub const LINEAR: u32 = 1;
/// d = b t/|t| with t = (1 − a) u₁ + a u₂; numbers a, b.
pub const DISTANCE: u32 = 2;
/// d = a u₁/|u₁| + b p/|p|, p the part of u₂ − u₁ perpendicular to u₁; numbers a, b.
pub const ANGLE: u32 = 3;
/// d = a u₁ + b u₂ + c u₁ × u₂; numbers a, b, c.
pub const OUT: u32 = 4;
/// d = c m/|m| with m = (a u₂ − u₁) × (b u₃ − u₁); numbers a, b, c.
pub const NORMAL: u32 = 5;

/// Squares of lengths below this part of their scale have no direction.
const DEGENERATE: f64 = 1e-10;

/// Returns the change of the unit vector of a vector of this length that changes by `v`. The map is symmetric, so it also
/// takes the gradient with respect to the unit vector to that with respect to the vector.
#[device_fn]
pub fn change_of_unit(unit: Vec3<real>, length: real, v: Vec3<real>) -> Vec3<real> {
    (v - unit * unit.dot(v)) / length
}

/// Returns the displacement of a site, its velocity relative to the first particle, and whether its direction is defined.
/// v₁, v₂, v₃ are the velocities of the arms.
#[device_fn]
pub fn place_site(
    form: u32,
    p: Vec3<real>,
    u1: Vec3<real>,
    u2: Vec3<real>,
    u3: Vec3<real>,
    v1: Vec3<real>,
    v2: Vec3<real>,
    v3: Vec3<real>,
) -> (Vec3<real>, Vec3<real>, bool) {
    if form == DISTANCE {
        let t = u1 * (1.0 - p.x) + u2 * p.x;
        let length = t.norm();
        let unit = t / length;
        let rate = change_of_unit(unit, length, v1 * (1.0 - p.x) + v2 * p.x);
        (unit * p.y, rate * p.y, t.norm2() > DEGENERATE * (u1.norm2() + u2.norm2()))
    } else if form == ANGLE {
        let (length, w) = (u1.norm(), u2 - u1);
        let unit = u1 / length;
        let across = w - unit * unit.dot(w);
        let width = across.norm();
        let side = across / width;
        let (turn, dw) = (change_of_unit(unit, length, v1), v2 - v1);
        let dacross = dw - unit * (unit.dot(dw) + turn.dot(w)) - turn * unit.dot(w);
        let rate = turn * p.x + change_of_unit(side, width, dacross) * p.y;
        (unit * p.x + side * p.y, rate, across.norm2() > DEGENERATE * (u1.norm2() + w.norm2()) && u1.norm2() > 0.0)
    } else if form == OUT {
        let rate = v1 * p.x + v2 * p.y + (v1.cross(u2) + u1.cross(v2)) * p.z;
        (u1 * p.x + u2 * p.y + u1.cross(u2) * p.z, rate, true)
    } else {
        let (a, b) = (u2 * p.x - u1, u3 * p.y - u1);
        let m = a.cross(b);
        let length = m.norm();
        let unit = m / length;
        let change = (v2 * p.x - v1).cross(b) + a.cross(v3 * p.y - v1);
        let defined = m.norm2() > DEGENERATE * a.norm2() * b.norm2();
        (unit * p.z, change_of_unit(unit, length, change) * p.z, defined)
    }
}

/// Returns the parts of the force on a site that the second, third and fourth particle receive: the transpose of the map
/// from the velocities of the arms to that of the site.
#[device_fn]
pub fn spread_force(
    form: u32,
    p: Vec3<real>,
    u1: Vec3<real>,
    u2: Vec3<real>,
    u3: Vec3<real>,
    f: Vec3<real>,
) -> (Vec3<real>, Vec3<real>, Vec3<real>) {
    if form == DISTANCE {
        let t = u1 * (1.0 - p.x) + u2 * p.x;
        let length = t.norm();
        let g = change_of_unit(t / length, length, f) * p.y;
        (g * (1.0 - p.x), g * p.x, Vec3::zero())
    } else if form == ANGLE {
        let (length, w) = (u1.norm(), u2 - u1);
        let unit = u1 / length;
        let across = w - unit * unit.dot(w);
        let width = across.norm();
        let g = change_of_unit(across / width, width, f) * p.y;
        let on_w = g - unit * unit.dot(g);
        let on_unit = f * p.x - w * unit.dot(g) - g * unit.dot(w);
        (change_of_unit(unit, length, on_unit) - on_w, on_w, Vec3::zero())
    } else if form == OUT {
        (f * p.x + u2.cross(f) * p.z, f * p.y + f.cross(u1) * p.z, Vec3::zero())
    } else {
        let (a, b) = (u2 * p.x - u1, u3 * p.y - u1);
        let m = a.cross(b);
        let length = m.norm();
        let g = change_of_unit(m / length, length, f) * p.z;
        let (on_a, on_b) = (b.cross(g), g.cross(a));
        (-(on_a + on_b), on_a * p.x, on_b * p.y)
    }
}
