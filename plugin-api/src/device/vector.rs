//! Three-component vectors of the device language.

use crate::device::real::Real;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

/// A vector of three numbers. The same type exists in CUDA C++.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Vec3<R> {
    /// The x component.
    pub x: R,
    /// The y component.
    pub y: R,
    /// The z component.
    pub z: R,
}

impl<R: Real> Vec3<R> {
    /// Creates the vector (x, y, z).
    #[inline(always)]
    pub fn new(x: R, y: R, z: R) -> Self {
        Self { x, y, z }
    }
    /// Creates the zero vector.
    #[inline(always)]
    pub fn zero() -> Self {
        Self::new(R::ZERO, R::ZERO, R::ZERO)
    }
    /// Returns the scalar product.
    #[inline(always)]
    pub fn dot(self, other: Self) -> R {
        self.x * other.x + self.y * other.y + self.z * other.z
    }
    /// Returns the vector product.
    #[inline(always)]
    pub fn cross(self, other: Self) -> Self {
        Self::new(
            self.y * other.z - self.z * other.y,
            self.z * other.x - self.x * other.z,
            self.x * other.y - self.y * other.x,
        )
    }
    /// Returns the squared length.
    #[inline(always)]
    pub fn norm2(self) -> R {
        self.dot(self)
    }
    /// Returns the length.
    #[inline(always)]
    pub fn norm(self) -> R {
        self.norm2().sqrt()
    }
    /// Returns the components as `f64`.
    #[inline(always)]
    pub fn f64(self) -> [f64; 3] {
        [self.x.f64(), self.y.f64(), self.z.f64()]
    }
}

impl<R: Real> From<[f64; 3]> for Vec3<R> {
    #[inline(always)]
    fn from(v: [f64; 3]) -> Self {
        Self::new(R::lit(v[0]), R::lit(v[1]), R::lit(v[2]))
    }
}

macro_rules! componentwise {
    ($trait:ident $method:ident $op:tt, $assign_trait:ident $assign_method:ident) => {
        impl<R: Real> $trait for Vec3<R> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, o: Self) -> Self {
                Self::new(self.x $op o.x, self.y $op o.y, self.z $op o.z)
            }
        }
        impl<R: Real> $assign_trait for Vec3<R> {
            #[inline(always)]
            fn $assign_method(&mut self, o: Self) {
                *self = *self $op o;
            }
        }
    };
}
componentwise!(Add add +, AddAssign add_assign);
componentwise!(Sub sub -, SubAssign sub_assign);

macro_rules! by_scalar {
    ($trait:ident $method:ident $op:tt, $assign_trait:ident $assign_method:ident) => {
        impl<R: Real> $trait<R> for Vec3<R> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, s: R) -> Self {
                Self::new(self.x $op s, self.y $op s, self.z $op s)
            }
        }
        impl<R: Real> $assign_trait<R> for Vec3<R> {
            #[inline(always)]
            fn $assign_method(&mut self, s: R) {
                *self = *self $op s;
            }
        }
    };
}
by_scalar!(Mul mul *, MulAssign mul_assign);
by_scalar!(Div div /, DivAssign div_assign);

impl<R: Real> Neg for Vec3<R> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self::new(-self.x, -self.y, -self.z)
    }
}
