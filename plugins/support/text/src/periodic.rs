//! Coordinates in the periodic box.

/// Largest tilt of a box, in box lengths, that is rounding: the spacing of single-precision numbers.
const ROUNDING: f64 = 1.2e-7;

/// Returns whether tilts are larger than the rounding of a box with these lengths. Smaller tilts count as 0.
pub fn tilted(tilts: &[f64], lengths: &[f64]) -> bool {
    let shortest = lengths.iter().copied().filter(|l| *l > 0.0).fold(f64::INFINITY, f64::min);
    !tilts.iter().all(|t| t.abs() <= ROUNDING * shortest)
}

/// Wraps a coordinate, relative to the center of the box, to −L/2 ≤ x < L/2. Returns it with its image number.
///
/// Returns `None` if the image number does not fit 32 bits. A coordinate on an axis of length 0 does not change.
pub fn fold(x: f64, length: f64) -> Option<(f64, i32)> {
    if length <= 0.0 {
        return Some((x, 0));
    }
    let half = 0.5 * length;
    if (-half..half).contains(&x) {
        return Some((x, 0));
    }
    let image = (x / length + 0.5).floor();
    if image.is_nan() || image.abs() >= f64::from(i32::MAX) {
        return None;
    }
    let wrapped = x - image * length;
    // rounding may leave it at the upper edge or below the lower edge
    Some(if wrapped >= half { (-half, image as i32 + 1) } else { (wrapped.max(-half), image as i32) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tilts_beyond_rounding_count() {
        assert!(!tilted(&[0.0, 1e-17, -1e-9], &[0.5, 10.0, 10.0]) && !tilted(&[0.0; 3], &[0.0; 3]));
        assert!(tilted(&[1e-6], &[1.0]) && tilted(&[f64::NAN], &[1.0]) && !tilted(&[1e-6], &[10.0, 0.0]));
    }

    #[test]
    fn coordinates_are_folded() {
        for (x, l, folded) in [
            (1.0, 4.0, Some((1.0, 0))),
            (2.0, 4.0, Some((-2.0, 1))),
            (-2.0, 4.0, Some((-2.0, 0))),
            (-2.5, 4.0, Some((1.5, -1))),
            (41.0, 4.0, Some((1.0, 10))),
            (7.0, 0.0, Some((7.0, 0))),
            (1e300, 4.0, None),
            (f64::NAN, 4.0, None),
        ] {
            assert_eq!(fold(x, l), folded, "{x}");
        }
        let edge = 2f64.next_down() + 8.0;
        let (x, image) = fold(edge, 4.0).expect("near");
        assert!((-2.0..2.0).contains(&x) && (x + 4.0 * f64::from(image) - edge).abs() < 1e-14);
    }
}
