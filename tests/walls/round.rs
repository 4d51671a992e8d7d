//! Walls that are spheres or cylinders.

use super::{begun, gas};
use galamost_tests::{advance, devices, unwrapped};

/// Free particles in a sphere or a cylinder keep their speed and their angular momentum about the axis, which `Back` reverses.
#[test]
#[ignore = "20 seconds"]
fn free_particles_keep_their_angular_momentum() {
    let s = gas(200, [10.0; 3], [2.2; 3]);
    let sphere = "Sphere(center: [0.5, 0.0, 0.0], radius: 4.4, side: Inside)";
    let cylinder = "Cylinder(point: [0.5, 0.0, 0.0], axis: Z, radius: 4.4, side: Inside)";
    let momentum = |x: [f64; 3], v: [f64; 3]| {
        let r = [x[0] - 0.5, x[1], x[2]];
        [r[1] * v[2] - r[2] * v[1], r[2] * v[0] - r[0] * v[2], r[0] * v[1] - r[1] * v[0]]
    };
    for device in devices() {
        // 20 to 40 reflections, with errors of some units in the last place each
        for (precision, limit) in [("Double", 1e-11), ("Mixed", 1e-3)] {
            for (wall, axes, rule) in [(sphere, 0..3, "Forward"), (cylinder, 2..3, "Forward"), (sphere, 0..3, "Back")] {
                let text = format!(
                    "(precision: {precision}, integrators: [Bounce(wall: {wall}, rule: {rule}), VelocityVerlet()], \
                     stages: [(steps: 1, dt: 0.02)])"
                );
                let (_plan, mut b) = begun(&text, s.clone(), device);
                advance(&mut *b, 2000);
                let (x, v) = unwrapped(&mut *b);
                let of = |a: &[f64], i: usize| [a[3 * i], a[3 * i + 1], a[3 * i + 2]];
                let mut turned = 0;
                for i in 0..s.len() {
                    let (then, now) = (momentum(s.position[i], s.velocity[i]), momentum(of(&x, i), of(&v, i)));
                    for k in axes.clone() {
                        let sign = if rule == "Back" && then[k] * now[k] < 0.0 { -1.0 } else { 1.0 };
                        turned += usize::from(sign < 0.0);
                        let differ = (sign * now[k] - then[k]).abs();
                        assert!(differ < limit, "{device:?} {precision} {wall} {rule} {i}: {then:?} {now:?}");
                    }
                    let speed = |v: [f64; 3]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
                    assert!((speed(of(&v, i)) - speed(s.velocity[i])).abs() < limit, "{device:?} {precision} {i}");
                }
                assert!(rule == "Forward" || turned > 100, "{turned}");
            }
        }
    }
}

/// A particle that starts on a round wall hits it there: it keeps its angular momentum, and its speed along the wall.
#[test]
fn particles_that_start_on_a_wall_are_reflected_there() {
    let (radius, v, dt) = (4.0, [3.0, 1.0], 0.01);
    for device in devices() {
        for (precision, limit) in [("Double", 1e-12), ("Mixed", 1e-5), ("Single", 1e-5)] {
            for wall in ["Cylinder(point: [0.0, 0.0, 0.0], axis: Z", "Sphere(center: [0.0, 0.0, 0.0]"] {
                let mut s = gas(64, [10.0; 3], [1.0; 3]);
                // at angles around the wall, so that roundings to both sides occur
                let frames: Vec<[f64; 2]> = (0..s.len()).map(|i| (0.1 * i as f64).sin_cos().into()).collect();
                let turned = |[x, y]: [f64; 2], [sin, cos]: [f64; 2]| [x * cos - y * sin, x * sin + y * cos, 0.0];
                for (i, frame) in frames.iter().enumerate() {
                    s.position[i] = turned([radius, 0.0], *frame);
                    s.velocity[i] = turned(v, *frame);
                }
                let text = format!(
                    "(precision: {precision}, integrators: [Bounce(wall: {wall}, radius: {radius:?}, side: Inside), \
                     rule: Forward), VelocityVerlet()], stages: [(steps: 1, dt: {dt})])"
                );
                let (_plan, mut b) = begun(&text, s, device);
                advance(&mut *b, 1);
                let (x, w) = unwrapped(&mut *b);
                for (i, frame) in frames.iter().enumerate() {
                    let expected = [turned([radius - v[0] * dt, v[1] * dt], *frame), turned([-v[0], v[1]], *frame)];
                    for (found, truth) in [&x, &w].into_iter().zip(expected) {
                        for k in 0..3 {
                            let off = (found[3 * i + k] - truth[k]).abs();
                            assert!(off < limit, "{device:?} {precision} {wall} {i}: {off:e} from {truth:?}");
                        }
                    }
                }
            }
        }
    }
}

/// A particle that is found in an obstacle, past its closest approach to the center, was reflected where it entered.
#[test]
fn particles_past_their_closest_approach_are_reflected_where_they_entered() {
    let sphere = "Sphere(center: [0.0, 0.0, 0.0]";
    let cylinder = "Cylinder(point: [0.0, 0.0, 0.0], axis: Z";
    let (grazing, fast) = ([-0.639_776_71, 1.874_351_14, 1.489_019_16], [3.0, 0.0, 0.0]);
    let cases: [(&str, [f64; 3], [f64; 3], u64); 3] = [
        (sphere, [3.699_436_64, 1.561_347_81, -3.510_077_95], grazing, 5),
        (sphere, [-2.5, 4.5, 0.0], fast, 1),
        (cylinder, [-2.5, 4.5, 0.0], fast, 1),
    ];
    let dot = |a: [f64; 3], b: [f64; 3]| (0..3).map(|k| a[k] * b[k]).sum::<f64>();
    let radius = 5.0;
    for device in devices() {
        for (precision, limit) in [("Double", 1e-10), ("Mixed", 1e-4), ("Single", 1e-4)] {
            for (wall, r, v, steps) in cases {
                let mut s = gas(1, [20.0; 3], [1.0; 3]);
                (s.position[0], s.velocity[0]) = (r, v);
                // a unit of time
                let dt = 1.0 / steps as f64;
                let text = format!(
                    "(precision: {precision}, integrators: [Bounce(wall: {wall}, radius: {radius:?}, side: Outside), \
                     rule: Forward), VelocityVerlet()], stages: [(steps: 1, dt: {dt:?})])"
                );
                let (_plan, mut b) = begun(&text, s, device);
                advance(&mut *b, steps);
                let (x, w) = unwrapped(&mut *b);
                let (rv, vv) = (dot(r, v), dot(v, v));
                let t = (-rv - (rv * rv - vv * (dot(r, r) - radius * radius)).sqrt()) / vv;
                let hit: [f64; 3] = std::array::from_fn(|k| r[k] + t * v[k]);
                let along = 2.0 * dot(v, hit) / (radius * radius);
                for k in 0..3 {
                    let after = v[k] - along * hit[k];
                    let (off, turn) = (x[k] - hit[k] - (1.0 - t) * after, w[k] - after);
                    assert!(
                        off.abs() < limit && turn.abs() < limit,
                        "{device:?} {precision} {wall} {v:?}: {off:e} {turn:e}"
                    );
                }
            }
        }
    }
}
