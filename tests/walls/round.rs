//! Walls that are spheres or cylinders.

use super::{begun, gas};
use galamost_tests::{advance, devices, unwrapped};

/// Free particles in a sphere or a cylinder keep their speed and their angular momentum about the axis, which `Back` reverses.
#[test]
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
