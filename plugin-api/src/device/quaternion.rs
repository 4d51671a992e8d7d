//! Unit quaternions of the device language: orientations of particles.

use crate::device::real::Real;
use crate::device::vector::Vec3;
use std::ops::Mul;

/// The rotation that takes the frame of a particle's body to the frame of space: x i + y j + z k + w.
///
/// `Quaternion<real>` in CUDA C++ as well; arrays of the state hold x, y, z, w.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quaternion<R> {
    /// Factor of i.
    pub x: R,
    /// Factor of j.
    pub y: R,
    /// Factor of k.
    pub z: R,
    /// Real part.
    pub w: R,
}

impl<R: Real> Quaternion<R> {
    /// The quaternion x i + y j + z k + w.
    #[inline(always)]
    pub fn new(x: R, y: R, z: R, w: R) -> Self {
        Self { x, y, z, w }
    }
    /// No rotation.
    pub fn none() -> Self {
        Self::new(R::ZERO, R::ZERO, R::ZERO, R::ONE)
    }
    /// A vector of the body's frame, as space sees it.
    #[inline(always)]
    pub fn rotate(self, v: Vec3<R>) -> Vec3<R> {
        // v + 2 u × (u × v + w v) with u the imaginary part
        let u = Vec3::new(self.x, self.y, self.z);
        v + u.cross(u.cross(v) + v * self.w) * R::lit(2.0)
    }
    /// A vector of space, as the body's frame sees it.
    #[inline(always)]
    pub fn rotate_back(self, v: Vec3<R>) -> Vec3<R> {
        let u = Vec3::new(self.x, self.y, self.z);
        v + u.cross(u.cross(v) - v * self.w) * R::lit(2.0)
    }
    /// The body's z axis, as space sees it: the axis of a particle that has only one.
    #[inline(always)]
    pub fn axis(self) -> Vec3<R> {
        let two = R::lit(2.0);
        Vec3::new(
            two * (self.x * self.z + self.w * self.y),
            two * (self.y * self.z - self.w * self.x),
            R::ONE - two * (self.x * self.x + self.y * self.y),
        )
    }
    /// Of length 1 again.
    #[inline(always)]
    pub fn normalized(self) -> Self {
        let s = (self.x * self.x + self.y * self.y + self.z * self.z + self.w * self.w).rsqrt();
        Self::new(self.x * s, self.y * s, self.z * s, self.w * s)
    }
    /// The shortest rotation of z onto this direction; none for a vector without length.
    pub fn of_axis(axis: Vec3<R>) -> Self {
        let n = axis.norm();
        if n == R::ZERO {
            return Self::none();
        }
        let a = axis / n;
        // z × a and 1 + z·a, halved in angle by the sum with no rotation; z onto −z turns about x
        if a.z < R::lit(-1.0 + 1e-7) {
            return Self::new(R::ONE, R::ZERO, R::ZERO, R::ZERO);
        }
        Self::new(-a.y, a.x, R::ZERO, R::ONE + a.z).normalized()
    }
}

impl<R: Real> Mul for Quaternion<R> {
    type Output = Self;
    /// First the rotation on the right, then the one on the left.
    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        let a = self;
        Self::new(
            a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
            a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
            a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w,
            a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: Vec3<f64>, b: Vec3<f64>) {
        assert!((a - b).norm() < 1e-14, "{a:?} {b:?}");
    }

    #[test]
    fn rotations() {
        let q = Quaternion::<f64>::new(0.1, -0.7, 0.3, 0.4).normalized();
        let p = Quaternion::<f64>::new(-0.5, 0.2, 0.9, 0.1).normalized();
        let v = Vec3::new(0.3, -1.2, 2.5);
        near(q.rotate_back(q.rotate(v)), v);
        near((p * q).rotate(v), p.rotate(q.rotate(v)));
        near(q.axis(), q.rotate(Vec3::new(0.0, 0.0, 1.0)));
        // a quarter turn about z takes x to y
        let half = std::f64::consts::FRAC_PI_4;
        let turn = Quaternion::new(0.0, 0.0, half.sin(), half.cos());
        near(turn.rotate(Vec3::new(1.0, 0.0, 0.0)), Vec3::new(0.0, 1.0, 0.0));
        for axis in [v / v.norm(), Vec3::new(0.0, 0.0, 1.0), Vec3::new(0.0, 0.0, -1.0), Vec3::new(0.0, 1.0, 0.0)] {
            near(Quaternion::of_axis(axis * 3.0).axis(), axis);
        }
    }
}
