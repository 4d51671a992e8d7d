//! Distances in a periodic box, with the same arithmetic on every device, so that bins agree.

use galamost_plugin_api::tilt::to_space;

/// Points in a periodic box.
pub trait Space: Sync {
    /// Coordinates of a point.
    type Point: Copy + Send + Sync;
    /// Returns the fractional coordinate of a point along an axis, 0 … 1.
    fn fraction(&self, p: &Self::Point, axis: usize) -> f64;
    /// Returns the minimum-image difference.
    fn difference(&self, a: &Self::Point, b: &Self::Point) -> [f64; 3];
    /// Returns the squared minimum-image distance.
    #[inline]
    fn r2(&self, a: &Self::Point, b: &Self::Point) -> f64 {
        square(self.difference(a, b))
    }
}

/// A triclinic box: reduced coordinates in another space, and its tilt factors.
pub struct Tilted<S>(pub S, pub [f64; 3]);

impl<S: Space> Space for Tilted<S> {
    type Point = S::Point;
    fn fraction(&self, p: &S::Point, axis: usize) -> f64 {
        self.0.fraction(p, axis)
    }
    #[inline]
    fn difference(&self, a: &S::Point, b: &S::Point) -> [f64; 3] {
        to_space(self.0.difference(a, b), self.1)
    }
}

fn square(d: [f64; 3]) -> f64 {
    d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
}

/// Cartesian coordinates with the box centered at 0; the length is 0 along an axis that the system lacks.
pub struct Lengths(pub [f64; 3]);

impl Space for Lengths {
    type Point = [f64; 3];
    fn fraction(&self, p: &[f64; 3], axis: usize) -> f64 {
        p[axis] / self.0[axis] + 0.5
    }
    #[inline]
    fn difference(&self, a: &[f64; 3], b: &[f64; 3]) -> [f64; 3] {
        std::array::from_fn(|k| {
            let (d, length) = (a[k] - b[k], self.0[k]);
            // positions are inside the box, so the image shift is −1, 0, or 1
            let near = if d > 0.5 * length {
                d - length
            } else if d < -0.5 * length {
                d + length
            } else {
                d
            };
            if length > 0.0 { near } else { d }
        })
    }
}

/// Fixed-point coordinates in units of 2⁻³² of the box lengths; the field is the size of one unit.
pub struct Units(pub [f64; 3]);

impl Units {
    /// Builds the space for these box lengths.
    pub fn of(length: [f64; 3]) -> Self {
        Self(length.map(|l| l / 4_294_967_296.0))
    }
}

impl Space for Units {
    type Point = [i32; 3];
    fn fraction(&self, p: &[i32; 3], axis: usize) -> f64 {
        f64::from(p[axis] as u32 ^ 0x8000_0000) / 4_294_967_296.0
    }
    #[inline]
    fn difference(&self, a: &[i32; 3], b: &[i32; 3]) -> [f64; 3] {
        std::array::from_fn(|k| f64::from(a[k].wrapping_sub(b[k])) * self.0[k])
    }
}
