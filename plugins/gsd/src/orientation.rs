//! Orientations: GSD has quaternions w x y z, this engine unit vectors along an axis, or quaternions x y z w.

/// The rotation that turns z onto an axis the shortest way, as w x y z; none for an axis of length 0.
pub fn of_axis(axis: [f64; 3]) -> [f64; 4] {
    let length = axis.iter().map(|a| a * a).sum::<f64>().sqrt();
    let [x, y, z] = axis.map(|a| a / length);
    if !(length > 0.0 && length.is_finite()) {
        return [1.0, 0.0, 0.0, 0.0];
    }
    // z × axis = (−y, x, 0) with the sine of the angle, 1 + z with its cosine: the sum is along the half angle
    let q = [1.0 + z, -y, x, 0.0];
    let norm = q.iter().map(|a| a * a).sum::<f64>().sqrt();
    // opposite to z every axis in the plane is as good
    if norm < 1e-7 { [0.0, 1.0, 0.0, 0.0] } else { q.map(|a| a / norm) }
}

#[cfg(test)]
mod tests {
    use super::of_axis;

    /// What the rotation makes of z.
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
                assert!((a - b).abs() < 1e-7, "{axis:?}: {q:?}");
            }
        }
        assert_eq!(of_axis([0.0; 3]), [1.0, 0.0, 0.0, 0.0]);
    }
}
