//! The virial of walls.

use super::begun;
use galamost_plugin_api::snapshot::Snapshot;
use galamost_tests::devices;

/// Returns the virial of a wall that acts on one particle.
fn virial(
    wall: &str,
    position: [f64; 3],
    precision: &str,
    device: galamost_engine::pipeline::DeviceChoice,
) -> [f64; 6] {
    let mut s = Snapshot { dimensions: 3, box_length: [10.0; 3], ..Snapshot::default() };
    let a = s.type_id("A");
    s.push(a, position);
    let text = format!(
        "(precision: {precision}, forces: [HarmonicWall(wall: {wall}, types: {{\"A\": (k: 1.0, r0: 1.0)}})], \
         integrators: [VelocityVerlet()], stages: [(steps: 1, dt: 0.001)])"
    );
    let (_plan, mut b) = begun(&text, s, device);
    b.sums().expect("sums").components[0].virial
}

/// Half of r F in each of the two orders: it does not matter which axis a wall faces.
#[test]
fn mirrored_walls_have_mirrored_virials() {
    // the wall acts with 2 k (r0 − d) = 1 along its normal. xx, xy, xz, yy, yz, zz
    let cases = [
        (
            "Plane(point: [-4.0, 0.0, 0.0], normal: [1.0, 0.0, 0.0])",
            [-3.5, 2.0, -1.0],
            [-3.5, 1.0, -0.5, 0.0, 0.0, 0.0],
        ),
        (
            "Plane(point: [0.0, -4.0, 0.0], normal: [0.0, 1.0, 0.0])",
            [2.0, -3.5, -1.0],
            [0.0, 1.0, 0.0, -3.5, -0.5, 0.0],
        ),
        (
            "Plane(point: [0.0, 0.0, -4.0], normal: [0.0, 0.0, 1.0])",
            [2.0, -1.0, -3.5],
            [0.0, 0.0, 1.0, 0.0, -0.5, -3.5],
        ),
        // the force is along −y
        (
            "Sphere(center: [1.0, 0.5, -1.0], radius: 3.0, side: Inside)",
            [1.0, 3.0, -1.0],
            [0.0, -0.5, 0.0, -3.0, 0.5, 0.0],
        ),
    ];
    for device in devices() {
        // positions in Mixed have steps of 10/2³² and forces 24 bits
        for (precision, limit) in [("Double", 1e-13), ("Mixed", 1e-5)] {
            for (wall, position, expected) in cases {
                let found = virial(wall, position, precision, device);
                let far = found.iter().zip(expected).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
                assert!(far < limit, "{device:?} {precision} {wall}: {found:?} and {expected:?}");
            }
        }
    }
}
