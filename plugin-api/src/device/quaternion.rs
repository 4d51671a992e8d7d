//! Unit quaternions of the device language, for orientations of particles.

use crate::device::real::Real;
use crate::device::vector::Vec3;
use std::ops::Mul;

/// A rotation from the body frame of a particle to the lab frame: x i + y j + z k + w.
///
/// The same type exists in CUDA C++. State arrays store x, y, z, w.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quaternion<R> {
    /// Coefficient of i.
    pub x: R,
    /// Coefficient of j.
    pub y: R,
    /// Coefficient of k.
    pub z: R,
    /// Real part.
    pub w: R,
}

impl<R: Real> Quaternion<R> {
    /// Creates the quaternion x i + y j + z k + w.
    #[inline(always)]
    pub fn new(x: R, y: R, z: R, w: R) -> Self {
        Self { x, y, z, w }
    }
    /// Returns the identity.
    pub fn none() -> Self {
        Self::new(R::ZERO, R::ZERO, R::ZERO, R::ONE)
    }
    /// Rotates a vector from the body frame to the lab frame.
    #[inline(always)]
    pub fn rotate(self, v: Vec3<R>) -> Vec3<R> {
        // v + 2 u × (u × v + w v), with u the imaginary part
        let u = Vec3::new(self.x, self.y, self.z);
        v + u.cross(u.cross(v) + v * self.w) * R::lit(2.0)
    }
    /// Rotates a vector from the lab frame to the body frame.
    #[inline(always)]
    pub fn rotate_back(self, v: Vec3<R>) -> Vec3<R> {
        let u = Vec3::new(self.x, self.y, self.z);
        v + u.cross(u.cross(v) - v * self.w) * R::lit(2.0)
    }
    /// Returns the body's z axis in the lab frame: the symmetry axis of a uniaxial particle.
    #[inline(always)]
    pub fn axis(self) -> Vec3<R> {
        let two = R::lit(2.0);
        Vec3::new(
            two * (self.x * self.z + self.w * self.y),
            two * (self.y * self.z - self.w * self.x),
            R::ONE - two * (self.x * self.x + self.y * self.y),
        )
    }
    /// Returns the quaternion scaled to unit length.
    #[inline(always)]
    pub fn normalized(self) -> Self {
        let s = (self.x * self.x + self.y * self.y + self.z * self.z + self.w * self.w).rsqrt();
        Self::new(self.x * s, self.y * s, self.z * s, self.w * s)
    }
    /// Returns the shortest rotation of the z axis onto this direction; the identity for a zero vector.
    pub fn of_axis(axis: Vec3<R>) -> Self {
        let n = axis.norm();
        if n == R::ZERO {
            return Self::none();
        }
        let a = axis / n;
        // the quaternion (z × a, 1 + z·a) of twice the angle, halved by adding the identity; z onto −z is a rotation
        // about x
        if a.z < R::lit(-1.0 + 1e-7) {
            return Self::new(R::ONE, R::ZERO, R::ZERO, R::ZERO);
        }
        Self::new(-a.y, a.x, R::ZERO, R::ONE + a.z).normalized()
    }
}

impl<R: Real> Mul for Quaternion<R> {
    type Output = Self;
    /// Composes rotations: the right one is applied first.
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
