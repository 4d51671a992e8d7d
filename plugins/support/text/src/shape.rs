//! The box of a file, in the forms in which formats describe it.

use super::periodic::{fold, tilted};
use galamost_plugin_api::snapshot::Snapshot;
use galamost_plugin_api::tilt::{image_shift, to_reduced, to_space};

/// Lengths and tilt factors of a box; see [`galamost_plugin_api::tilt`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shape {
    /// Box lengths.
    pub length: [f64; 3],
    /// Tilt factors xy, xz, yz.
    pub tilt: [f64; 3],
}

impl Shape {
    /// Returns the box of a state.
    pub fn of(s: &Snapshot) -> Self {
        Self { length: s.box_length, tilt: s.tilt }
    }

    /// Returns a rectangular box.
    pub fn rectangular(length: [f64; 3]) -> Self {
        Self { length, tilt: [0.0; 3] }
    }

    /// Returns the box with these tilts xy, xz and yz, which are lengths. Tilts that are rounding become 0.
    pub fn of_tilts(length: [f64; 3], [xy, xz, yz]: [f64; 3]) -> Self {
        if !tilted(&[xy, xz, yz], &length) {
            return Self::rectangular(length);
        }
        let ratio = |t: f64, l: f64| if t == 0.0 { 0.0 } else { t / l };
        Self { length, tilt: [ratio(xy, length[1]), ratio(xz, length[2]), ratio(yz, length[2])] }
    }

    /// Returns the box with these edges, or a message if the first is not along x or the second not in the plane of x and y.
    ///
    /// # Errors
    /// Returns that message.
    pub fn of_edges([a, b, c]: [[f64; 3]; 3]) -> Result<Self, String> {
        let length = [a[0], b[1], c[2]];
        if tilted(&[a[1], a[2], b[2]], &length) {
            return Err("the first edge of the box must be along x, and the second in the plane of x and y".into());
        }
        Ok(Self::of_tilts(length, [b[0], c[0], c[1]]))
    }

    /// Returns the box whose edges have these lengths and these cosines of the angles α, β, γ; `None` if there is none.
    pub fn of_cosines([a, b, c]: [f64; 3], [alpha, beta, gamma]: [f64; 3]) -> Option<Self> {
        let sine = (1.0 - gamma * gamma).sqrt();
        let (xy, ly, xz) = (b * gamma, b * sine, c * beta);
        let yz = c * (alpha - beta * gamma) / sine;
        let length = [a, ly, (c * c - xz * xz - yz * yz).sqrt()];
        (length.iter().all(|l| *l > 0.0) && yz.is_finite()).then(|| Self::of_tilts(length, [xy, xz, yz]))
    }

    /// The same for angles in degrees.
    pub fn of_angles(edges: [f64; 3], degrees: [f64; 3]) -> Option<Self> {
        // the cosine of 90° in radians is not exactly 0
        Self::of_cosines(edges, degrees.map(|d| if d == 90.0 { 0.0 } else { d.to_radians().cos() }))
    }

    /// Returns whether the box is triclinic.
    pub fn is_tilted(&self) -> bool {
        self.tilt != [0.0; 3]
    }

    /// Returns the box with a height of 1 along each axis without length.
    #[must_use]
    pub fn finite(self) -> Self {
        Self { length: self.length.map(|l| if l > 0.0 { l } else { 1.0 }), ..self }
    }

    /// Returns the box in two dimensions, without a height.
    #[must_use]
    pub fn flat(self) -> Self {
        Self { length: [self.length[0], self.length[1], 0.0], tilt: [self.tilt[0], 0.0, 0.0] }
    }

    /// Returns the tilts xy, xz, and yz as lengths.
    pub fn tilts(&self) -> [f64; 3] {
        let ([_, ly, lz], [xy, xz, yz]) = (self.length, self.tilt);
        [xy * ly, xz * lz, yz * lz]
    }

    /// Returns the edges a, b, and c.
    pub fn edges(&self) -> [[f64; 3]; 3] {
        let ([lx, ly, lz], [xy, xz, yz]) = (self.length, self.tilts());
        [[lx, 0.0, 0.0], [xy, ly, 0.0], [xz, yz, lz]]
    }

    /// Returns the lengths of the edges, and the cosines of the angles α, β, and γ between them.
    pub fn lengths_and_cosines(&self) -> ([f64; 3], [f64; 3]) {
        let edges = self.edges();
        let dot = |i: usize, j: usize| edges[i].iter().zip(edges[j]).map(|(x, y)| x * y).sum::<f64>();
        let long: [f64; 3] = std::array::from_fn(|k| dot(k, k).sqrt());
        (long, [(1, 2), (0, 2), (0, 1)].map(|(i, j)| dot(i, j) / (long[i] * long[j])))
    }

    /// Returns the center of the box relative to its corner.
    pub fn middle(&self) -> [f64; 3] {
        to_space(self.length.map(|l| 0.5 * l), self.tilt)
    }

    /// Wraps a position, relative to the center, into the box. Returns it with its image, or `None` if it is too far away.
    pub fn fold(&self, r: [f64; 3]) -> Option<([f64; 3], [i32; 3])> {
        let (mut q, mut image) = (to_reduced(r, self.tilt), [0; 3]);
        for k in 0..3 {
            (q[k], image[k]) = fold(q[k], self.length[k])?;
        }
        Some((if image == [0; 3] { r } else { to_space(q, self.tilt) }, image))
    }

    /// Returns the unwrapped position.
    pub fn unwrapped(&self, r: [f64; 3], image: [i32; 3]) -> [f64; 3] {
        let shift = image_shift(image, self.length, self.tilt);
        std::array::from_fn(|k| r[k] + shift[k])
    }

    /// Returns a position as fractions of the edges, from 0 at the corner.
    pub fn fractions(&self, r: [f64; 3]) -> [f64; 3] {
        let q = to_reduced(r, self.tilt);
        std::array::from_fn(|k| q[k] / self.length[k] + 0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_box_are_equivalent() {
        let shape = Shape { length: [7.0, 5.0, 4.0], tilt: [0.4, -0.3, 0.25] };
        let near = |other: Option<Shape>| {
            let other = other.expect("a box");
            (0..3).all(|k| {
                (other.length[k] - shape.length[k]).abs() < 1e-14 && (other.tilt[k] - shape.tilt[k]).abs() < 1e-14
            })
        };
        assert!(near(Some(Shape::of_tilts(shape.length, shape.tilts()))));
        assert!(near(Shape::of_edges(shape.edges()).ok()));
        let (edges, cosines) = shape.lengths_and_cosines();
        assert!(near(Shape::of_cosines(edges, cosines)));
        assert!(near(Shape::of_angles(edges, cosines.map(|c| c.acos().to_degrees()))));
        assert_eq!(Shape::of_angles([2.0, 3.0, 4.0], [90.0; 3]), Some(Shape::rectangular([2.0, 3.0, 4.0])));
        assert_eq!(Shape::of_angles([1.0; 3], [60.0, 60.0, 150.0]), None);
        assert!(Shape::of_edges([[1.0, 0.1, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]).is_err());
    }

    #[test]
    fn folded_positions_keep_their_place() {
        let shape = Shape { length: [7.0, 5.0, 4.0], tilt: [0.4, -0.3, 0.25] };
        let far = [31.0, -17.5, 9.25];
        let (r, image) = shape.fold(far).expect("near enough");
        let (back, inside) = (shape.unwrapped(r, image), shape.fractions(r));
        assert!((0..3).all(|k| (back[k] - far[k]).abs() < 1e-13 && (0.0..1.0).contains(&inside[k])), "{r:?} {image:?}");
        assert_eq!(shape.fold(r), Some((r, [0; 3])));
    }
}
