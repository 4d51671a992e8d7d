//! Where the beads of a body of a file are relative to each other, across the boundary of the box.

use galamost_plugin_api::prelude::*;

/// Returns the vector from one particle to the nearest image of another.
pub fn nearest(s: &Snapshot, from: usize, to: usize) -> [f64; 3] {
    std::array::from_fn(|k| {
        let (d, l) = (s.position[to][k] - s.position[from][k], s.box_length[k]);
        d - l * (d / l).round()
    })
}

/// Returns the vectors from particle `first` to the beads first … first + n of its body.
///
/// # Errors
/// Returns an error if the nearest image of a bead depends on the bead from which it is seen, and the images of the file do
/// not determine the shape.
pub fn unwrapped(s: &Snapshot, first: usize, n: usize) -> Result<Vec<[f64; 3]>> {
    let near: Vec<[f64; 3]> = (first..first + n).map(|tag| nearest(s, first, tag)).collect();
    // in a shorter body, all beads are nearest images of each other
    let Some(axis) = long_axis(s, &near) else { return Ok(near) };
    let of_file = |tag: usize| -> [f64; 3] {
        std::array::from_fn(|k| {
            let boxes = f64::from(s.image[tag][k]) - f64::from(s.image[first][k]);
            s.position[tag][k] - s.position[first][k] + boxes * s.box_length[k]
        })
    };
    let given: Vec<[f64; 3]> = (first..first + n).map(of_file).collect();
    if (first..first + n).any(|tag| s.image[tag] != s.image[first]) {
        return Ok(given);
    }
    // many files have no images, also of bodies that cross the boundary
    let chained = chained(s, first, n);
    let differs = |k: &usize| (0..3).any(|j| (given[*k][j] - chained[*k][j]).abs() > 0.5 * s.box_length[j]);
    match (0..n).find(differs) {
        None => Ok(given),
        Some(k) => Err(Error::input(format!(
            "the body of particle {first} is longer than half the box along {}, and seems to cross the boundary, so the place of its \
             particle {} is ambiguous: write the images of the particles into the file, or move the body away from the boundary",
            ["x", "y", "z"][axis],
            first + k
        ))),
    }
}

/// Returns an axis along which these places are half a box length or more apart.
fn long_axis(s: &Snapshot, places: &[[f64; 3]]) -> Option<usize> {
    (0..3).find(|k| {
        let along = move || places.iter().map(move |r| r[*k]);
        along().fold(f64::NEG_INFINITY, f64::max) - along().fold(f64::INFINITY, f64::min) >= 0.5 * s.box_length[*k]
    })
}

/// Returns the vectors from the first of n beads to all of them. Each bead is at the image nearest to the closest one of the
/// beads placed before, so beads that are close to each other remain so.
fn chained(s: &Snapshot, first: usize, n: usize) -> Vec<[f64; 3]> {
    let mut places = vec![[0.0; 3]; n];
    // of each bead without a place: the square of the distance from the closest bead with one, and that bead
    let mut closest: Vec<Option<(f64, usize)>> = vec![Some((f64::INFINITY, 0)); n];
    closest[0] = None;
    let mut last = 0;
    for _ in 1..n {
        for (k, entry) in closest.iter_mut().enumerate() {
            let square: f64 = nearest(s, first + last, first + k).iter().map(|x| x * x).sum();
            if let Some(found) = entry.as_mut().filter(|found| square < found.0) {
                *found = (square, last);
            }
        }
        let open = closest.iter().enumerate().filter_map(|(k, entry)| entry.map(|(square, from)| (square, from, k)));
        let Some((_, from, k)) = open.min_by(|a, b| a.0.total_cmp(&b.0)) else { break };
        let (start, d) = (places[from], nearest(s, first + from, first + k));
        places[k] = std::array::from_fn(|j| start[j] + d[j]);
        closest[k] = None;
        last = k;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A body along x in a box of length 10, with the images of its beads.
    fn body(beads: &[(f64, i32)]) -> Snapshot {
        let mut s = Snapshot { dimensions: 3, box_length: [10.0; 3], ..Snapshot::default() };
        let a = s.type_id("A");
        for (tag, (x, image)) in beads.iter().enumerate() {
            s.push(a, [*x, 0.0, 0.0]);
            s.image[tag] = [*image, 0, 0];
        }
        s
    }

    fn along_x(beads: &[(f64, i32)]) -> Result<Vec<f64>> {
        Ok(unwrapped(&body(beads), 0, beads.len())?.iter().map(|r| r[0]).collect())
    }

    /// The order of the beads does not matter, and images do where the nearest ones depend on the bead.
    #[test]
    fn beads_are_placed_relative_to_each_other() {
        let cases: [(&[(f64, i32)], &[f64]); 6] = [
            // longer than half the box, inside of it
            (&[(-3.0, 0), (0.0, 0), (3.0, 0)], &[0.0, 3.0, 6.0]),
            (&[(0.0, 0), (-3.0, 0), (3.0, 0)], &[0.0, -3.0, 3.0]),
            // across the boundary, without images if it is short
            (&[(4.0, 0), (-4.0, 0)], &[0.0, 2.0]),
            (&[(4.0, 2), (-4.0, 3)], &[0.0, 2.0]),
            (&[(1.0, 0), (4.0, 0), (-3.0, 1)], &[0.0, 3.0, 6.0]),
            (&[(-3.0, 1), (1.0, 0), (4.0, 0)], &[0.0, -6.0, -3.0]),
        ];
        for (beads, expected) in cases {
            assert_eq!(along_x(beads).expect("places"), expected, "{beads:?}");
        }
    }

    #[test]
    fn ambiguous_places_are_refused() {
        let Err(e) = along_x(&[(1.0, 0), (4.0, 0), (-3.0, 0)]) else { panic!("the place of particle 2 is not known") };
        let message = e.to_string();
        assert!(message.contains("longer than half the box along x") && message.contains("particle 2"), "{message}");
    }
}
