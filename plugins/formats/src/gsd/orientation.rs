//! Orientations: GSD stores quaternions w x y z; this program uses unit vectors along an axis, or quaternions x y z w.

use galamost_plugin_api::quaternion::Quaternion;
use galamost_plugin_api::vector::Vec3;

/// Returns the shortest rotation of z onto an axis, as w x y z; the identity for an axis of length 0.
pub fn of_axis(axis: [f64; 3]) -> [f64; 4] {
    let length = axis.iter().map(|a| a * a).sum::<f64>().sqrt();
    let [x, y, z] = axis.map(|a| a / length);
    if !(length > 0.0 && length.is_finite()) {
        return [1.0, 0.0, 0.0, 0.0];
    }
    // z × axis = (−y, x, 0) is the sine, 1 + z the cosine: their sum lies along the half angle
    let q = [1.0 + z, -y, x, 0.0];
    let norm = q.iter().map(|a| a * a).sum::<f64>().sqrt();
    // for an axis opposite to z, any rotation axis in the xy plane is valid
    if norm < 1e-7 { [0.0, 1.0, 0.0, 0.0] } else { q.map(|a| a / norm) }
}

/// Returns HOOMD-blue's quaternion of angular momentum, 2 q (0, l'), as w x y z; l' is the angular momentum in the body
/// frame.
pub fn conjugate_momentum(q: [f64; 4], l: [f64; 3]) -> [f64; 4] {
    let q = Quaternion::new(q[0], q[1], q[2], q[3]);
    let body = q.rotate_back(Vec3::from(l));
    let p = q * Quaternion::new(body.x, body.y, body.z, 0.0);
    [p.w, p.x, p.y, p.z].map(|x| 2.0 * x)
}

/// Returns the angular momentum in the space frame.
pub fn angular_momentum(q: [f64; 4], [w, x, y, z]: [f64; 4]) -> [f64; 3] {
    let q = Quaternion::new(q[0], q[1], q[2], q[3]);
    let body = Quaternion::new(-q.x, -q.y, -q.z, q.w) * Quaternion::new(x, y, z, w);
    q.rotate(Vec3::new(body.x, body.y, body.z) * 0.5).f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn angular_momenta_come_back() {
        let q = Quaternion::<f64>::new(0.1, -0.7, 0.3, 0.4).normalized();
        let (q, l) = ([q.x, q.y, q.z, q.w], [0.3, -2.0, 1.1]);
        let p = conjugate_momentum(q, l);
        // twice the rotational energy of a body with unit moments of inertia is |p|²/4
        let square = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>();
        assert!((square(&p) / 4.0 - square(&l)).abs() < 1e-14);
        for (a, b) in angular_momentum(q, p).iter().zip(l) {
            assert!((a - b).abs() < 1e-14);
        }
    }

    /// Rotates z.
    fn turned([w, x, y, z]: [f64; 4]) -> [f64; 3] {
        [2.0 * (x * z + w * y), 2.0 * (y * z - w * x), w * w - x * x - y * y + z * z]
    }

    #[test]
    fn z_is_turned_onto_the_axis() {
        let axes = [
            [0.0, 0.0, 1.0],
            [0.0, 0.0, -1.0],
            [1.0, 0.0, 0.0],
            [0.0, -1.0, 0.0],
            [0.6, 0.0, 0.8],
            [0.36, 0.48, -0.8],
            [1e-5, 0.0, -1.0],
        ];
        for axis in axes {
            let q = of_axis(axis.map(|a| 3.0 * a));
            assert!((q.iter().map(|a| a * a).sum::<f64>() - 1.0).abs() < 1e-12);
            for (a, b) in turned(q).into_iter().zip(axis) {
                // single precision
                assert!((a - b).abs() < 1e-7, "{axis:?}: {q:?}");
            }
        }
        assert_eq!(of_axis([0.0; 3]), [1.0, 0.0, 0.0, 0.0]);
    }
}
