//! The shape of a triclinic box.
//!
//! The edges of the box are a = (L_x, 0, 0), b = (xy L_y, L_y, 0) and c = (xz L_z, yz L_z, L_z). The three tilt factors xy,
//! xz and yz have no unit. A position is r = s_a a + s_b b + s_c c with −½ ≤ s < ½.
//!
//! The run stores reduced coordinates q = (s_a L_x, s_b L_y, s_c L_z). They are periodic like positions in a rectangular box
//! with the same lengths, and r = q + (xy q_y + xz q_z, yz q_z, 0). The nearest image of a difference of reduced
//! coordinates is the nearest image in space for every distance below half the shortest height.

/// Returns the position of reduced coordinates; also of a difference.
#[inline(always)]
pub fn to_space(q: [f64; 3], tilt: [f64; 3]) -> [f64; 3] {
    if tilt == [0.0; 3] {
        return q;
    }
    [q[0] + tilt[0] * q[1] + tilt[1] * q[2], q[1] + tilt[2] * q[2], q[2]]
}

/// Returns the reduced coordinates of a position; also of a displacement.
#[inline(always)]
pub fn to_reduced(r: [f64; 3], tilt: [f64; 3]) -> [f64; 3] {
    if tilt == [0.0; 3] {
        return r;
    }
    let y = r[1] - tilt[2] * r[2];
    [r[0] - tilt[0] * y - tilt[1] * r[2], y, r[2]]
}

/// Returns the heights of the box: for each axis, the distance between the two faces that the axis crosses.
pub fn heights(length: [f64; 3], tilt: [f64; 3]) -> [f64; 3] {
    if tilt == [0.0; 3] {
        return length;
    }
    let [xy, xz, yz] = tilt;
    let across = xy * yz - xz;
    [length[0] / (1.0 + xy * xy + across * across).sqrt(), length[1] / (1.0 + yz * yz).sqrt(), length[2]]
}

/// Returns the displacement of an image of the box.
#[inline(always)]
pub fn image_shift(image: [i32; 3], length: [f64; 3], tilt: [f64; 3]) -> [f64; 3] {
    to_space(std::array::from_fn(|k| f64::from(image[k]) * length[k]), tilt)
}

/// Returns the shortest image of a difference of positions, for distances below half the shortest height. An axis of
/// length 0 has no images.
pub fn nearest(d: [f64; 3], length: [f64; 3], tilt: [f64; 3]) -> [f64; 3] {
    let q = to_reduced(d, tilt);
    let shortest =
        |k: usize| if length[k] > 0.0 { q[k] - length[k] * (q[k] / length[k]).round_ties_even() } else { q[k] };
    to_space(std::array::from_fn(shortest), tilt)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: [f64; 3] = [7.0, 5.0, 4.0];
    const TILT: [f64; 3] = [0.4, -0.3, 0.25];

    #[test]
    fn edges_and_heights_belong_to_the_box() {
        let edge = |k: usize| image_shift(std::array::from_fn(|a| i32::from(a == k)), LENGTH, TILT);
        let (a, b, c) = (edge(0), edge(1), edge(2));
        assert_eq!((a, b), ([7.0, 0.0, 0.0], [0.4 * 5.0, 5.0, 0.0]));
        assert_eq!(c, [-0.3 * 4.0, 0.25 * 4.0, 4.0]);
        let cross = |u: [f64; 3], v: [f64; 3]| {
            [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]]
        };
        // volume / area of the face
        for (height, [u, v]) in heights(LENGTH, TILT).into_iter().zip([[b, c], [c, a], [a, b]]) {
            let area = cross(u, v).iter().map(|x| x * x).sum::<f64>().sqrt();
            assert!((height - 7.0 * 5.0 * 4.0 / area).abs() < 1e-14);
        }
    }

    #[test]
    fn reduced_coordinates_are_the_inverse() {
        let r = [1.0, -2.0, 1.5];
        let back = to_space(to_reduced(r, TILT), TILT);
        assert!((0..3).all(|k| (back[k] - r[k]).abs() < 1e-15), "{back:?}");
        assert_eq!(to_space([f64::NAN, 1.0, 2.0], [0.0; 3])[1..], [1.0, 2.0]);
    }

    /// The wrapped difference is the shortest of all images if that is below half the shortest height.
    #[test]
    fn the_nearest_image_is_found() {
        let limit = 0.5 * heights(LENGTH, TILT).into_iter().fold(f64::INFINITY, f64::min);
        let norm = |d: [f64; 3]| d.iter().map(|x| x * x).sum::<f64>().sqrt();
        let mut found = 0;
        for k in 0..4000u32 {
            let random = |m: u32| f64::from(k.wrapping_mul(m).wrapping_add(m / 7) >> 8) / f64::from(1u32 << 24) - 0.5;
            let s = [random(2_654_435_761), random(2_246_822_519), random(3_266_489_917)];
            let d = to_space(std::array::from_fn(|k| s[k] * LENGTH[k]), TILT);
            let images = (0..125).map(|n| {
                let shift = image_shift([n % 5 - 2, n / 5 % 5 - 2, n / 25 - 2], LENGTH, TILT);
                norm(std::array::from_fn(|k| d[k] + shift[k]))
            });
            let shortest = images.fold(f64::INFINITY, f64::min);
            if shortest < limit {
                found += 1;
                assert!((norm(nearest(d, LENGTH, TILT)) - shortest).abs() < 1e-13, "{d:?}");
            }
        }
        assert!(found > 500, "{found}");
    }
}
