//! Places in the periodic box.

/// Brings one coordinate, counted from the middle of the box, to −L/2 ≤ x < L/2, with the whole box lengths that were taken off.
/// `None` if it is so far away that they cannot be counted. An axis of length 0 is left alone.
pub fn fold(x: f64, length: f64) -> Option<(f64, i32)> {
    if length <= 0.0 {
        return Some((x, 0));
    }
    let half = 0.5 * length;
    if (-half..half).contains(&x) {
        return Some((x, 0));
    }
    let turns = (x / length + 0.5).floor();
    if turns.is_nan() || turns.abs() >= f64::from(i32::MAX) {
        return None;
    }
    let inside = x - turns * length;
    // rounding may leave it on the upper edge or below the lower one
    Some(if inside >= half { (-half, turns as i32 + 1) } else { (inside.max(-half), turns as i32) })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let (x, turns) = fold(edge, 4.0).expect("near");
        assert!((-2.0..2.0).contains(&x) && (x + 4.0 * f64::from(turns) - edge).abs() < 1e-14);
    }
}
