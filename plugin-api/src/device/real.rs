//! The number type of the device language.
//!
//! A function of the device language is written over a type parameter called `real`. rustc compiles it for `f32` and
//! `f64`, and the same text becomes CUDA C++. [`Real`] lists the operations on such a number. The elementary functions
//! are branch-free polynomials ([`crate::math`]), because a call of libm would prevent LLVM from vectorizing the
//! surrounding loop.

use crate::device::lanes::Lanes;
use crate::device::math;
use crate::device::plain::Plain;
use std::fmt::{Debug, Display};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

/// A floating-point number of the device language: `f32` or `f64`.
///
/// The stated errors hold on the CPU over the whole range of normal results; tests check them. 1 ulp is the spacing of
/// adjacent numbers. [`crate::language`] also lists the errors on CUDA.
pub trait Real:
    Cast
    + Plain
    + Lanes
    + Send
    + Sync
    + Default
    + Debug
    + Display
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + Sum
    + 'static
{
    /// The name of this type in CUDA C++.
    const CXX: &'static str;
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;

    /// Returns the number nearest to `x`. Literals of the device language are converted by this function.
    fn lit(x: f64) -> Self;
    /// Returns the number nearest to `n`.
    fn from_i32(n: i32) -> Self;
    /// Returns the number nearest to `n`.
    fn from_u32(n: u32) -> Self;
    /// Returns the number nearest to `n`.
    fn from_u64(n: u64) -> Self;
    /// Converts `x` to this type.
    fn from_f32(x: f32) -> Self;
    /// Converts this number to `f64`, exactly.
    fn f64(self) -> f64;
    /// Appends the bytes of this number in the byte order of the device.
    fn push_bytes(self, bytes: &mut Vec<u8>);
    /// Square root, correctly rounded.
    fn sqrt(self) -> Self;
    /// 1/√x as `1 / sqrt(x)`, within 1.5 ulp.
    fn rsqrt(self) -> Self;
    /// 1/x, correctly rounded.
    fn recip(self) -> Self;
    /// eˣ, within 1.25 ulp; 0 below the smallest normal number.
    fn exp(self) -> Self;
    /// Natural logarithm of a positive normal number, within 2 ulp.
    fn ln(self) -> Self;
    /// Sine of an angle in radians, |x| ≤ 10⁴, absolute error within 1 ulp of 1.
    fn sin(self) -> Self;
    /// Cosine of an angle in radians, |x| ≤ 10⁴, absolute error within 1 ulp of 1.
    fn cos(self) -> Self;
    /// Arc cosine in radians of a number in −1 … 1, absolute error within 2.5 ulp of 1.
    fn acos(self) -> Self;
    /// Angle of the point (x, y) = (`other`, `self`) in −π … π, absolute error within 2.5 ulp of 1.
    fn atan2(self, other: Self) -> Self;
    /// xⁿ by repeated multiplication.
    fn powi(self, n: i32) -> Self;
    /// xʸ = exp(y ln x) for x > 0, within 3 (1 + |y ln x|) ulp.
    fn powf(self, y: Self) -> Self;
    /// |x|.
    fn abs(self) -> Self;
    /// The smaller number: `self` if `self < other`, else `other`, also if one of them is NaN.
    fn min(self, other: Self) -> Self;
    /// The larger number: `self` if `self > other`, else `other`, also if one of them is NaN.
    fn max(self, other: Self) -> Self;
    /// The largest integer not above x, |x| < 2³¹.
    fn floor(self) -> Self;
    /// The nearest integer, ties to even.
    fn round(self) -> Self;
}

/// Conversion with `as` in the device language: `n as real`, `x as i32`. The results are those of Rust's `as`.
pub trait Cast: Copy {
    /// As a `real`.
    fn to_real<R: Real>(self) -> R;
    /// As `f64`.
    fn to_f64(self) -> f64;
    /// As `f32`.
    fn to_f32(self) -> f32;
    /// As `i32`.
    fn to_i32(self) -> i32;
    /// As `u32`.
    fn to_u32(self) -> u32;
    /// As `u64`.
    fn to_u64(self) -> u64;
    /// As `usize`.
    fn to_usize(self) -> usize;
}

macro_rules! cast {
    ($($t:ty: $to_real:ident),+) => {$(
        impl Cast for $t {
            #[inline(always)]
            fn to_real<R: Real>(self) -> R { R::$to_real(self) }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn to_f32(self) -> f32 { self as f32 }
            #[inline(always)]
            fn to_i32(self) -> i32 { self as i32 }
            #[inline(always)]
            fn to_u32(self) -> u32 { self as u32 }
            #[inline(always)]
            fn to_u64(self) -> u64 { self as u64 }
            #[inline(always)]
            fn to_usize(self) -> usize { self as usize }
        }
    )+};
}
cast!(u32: from_u32, i32: from_i32, u64: from_u64, f32: from_f32, f64: lit);

macro_rules! cast_by {
    ($t:ty: $via:ty) => {
        impl Cast for $t {
            #[inline(always)]
            fn to_real<R: Real>(self) -> R {
                (self as $via).to_real()
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                (self as $via).to_f64()
            }
            #[inline(always)]
            fn to_f32(self) -> f32 {
                (self as $via).to_f32()
            }
            #[inline(always)]
            fn to_i32(self) -> i32 {
                (self as $via).to_i32()
            }
            #[inline(always)]
            fn to_u32(self) -> u32 {
                (self as $via).to_u32()
            }
            #[inline(always)]
            fn to_u64(self) -> u64 {
                (self as $via).to_u64()
            }
            #[inline(always)]
            fn to_usize(self) -> usize {
                (self as $via).to_usize()
            }
        }
    };
}
cast_by!(usize: u64);
cast_by!(bool: u32);

/// `min` and `max` of the device language, under names that Rust's numbers do not have: `f64::min` treats NaN
/// differently.
#[doc(hidden)]
pub trait Ordered: Copy + PartialOrd {
    /// Returns `self` if it is smaller, else `other`.
    #[inline(always)]
    fn device_min(self, other: Self) -> Self {
        if self < other { self } else { other }
    }
    /// Returns `self` if it is larger, else `other`.
    #[inline(always)]
    fn device_max(self, other: Self) -> Self {
        if self > other { self } else { other }
    }
}
impl<R: Real> Ordered for R {}
impl Ordered for i32 {}
impl Ordered for u32 {}
impl Ordered for u64 {}
impl Ordered for usize {}

/// As [`Ordered`], for `round` and `powi`: `f64::round` rounds ties away from 0, and `f64::powi` multiplies in a
/// different order.
#[doc(hidden)]
pub trait Rounded: Real {
    /// Returns [`Real::round`].
    #[inline(always)]
    fn device_round(self) -> Self {
        Real::round(self)
    }
    /// Returns [`Real::powi`].
    #[inline(always)]
    fn device_powi(self, n: i32) -> Self {
        Real::powi(self, n)
    }
}
impl<R: Real> Rounded for R {}

/// A Rust constant in a function of the device language. f64 becomes `real`; other types are unchanged.
pub trait Constant: Copy {
    /// The type of the constant in a function over `R`.
    type As<R: Real>;
    /// Returns the value in a function over `R`.
    fn of<R: Real>(self) -> Self::As<R>;
    /// Returns the value in C++.
    fn cxx(self) -> String;
}

macro_rules! constant {
    ($($t:ty, $format:literal);+) => {$(
        impl Constant for $t {
            type As<R: Real> = $t;
            #[inline(always)]
            fn of<R: Real>(self) -> $t { self }
            fn cxx(self) -> String { format!($format, self) }
        }
    )+};
}
constant!(u32, "{}u"; u64, "{}ull"; usize, "{}ull"; bool, "{}");

impl Constant for i32 {
    type As<R: Real> = i32;
    #[inline(always)]
    fn of<R: Real>(self) -> i32 {
        self
    }
    fn cxx(self) -> String {
        // 2147483648 is not an int in C++
        if self == i32::MIN { "(-2147483647 - 1)".into() } else { format!("({self})") }
    }
}
impl Constant for f32 {
    type As<R: Real> = f32;
    #[inline(always)]
    fn of<R: Real>(self) -> f32 {
        self
    }
    fn cxx(self) -> String {
        format!("float({})", f64::from(self).cxx())
    }
}
impl Constant for f64 {
    type As<R: Real> = R;
    #[inline(always)]
    fn of<R: Real>(self) -> R {
        R::lit(self)
    }
    fn cxx(self) -> String {
        // conversion of a C++ constant beyond the range of f32 is undefined; infinity and NaN have no literals
        let (bits, range) = (self.to_bits(), f64::from(f32::MAX));
        if self.abs() <= range { format!("real({self:?})") } else { format!("device_bits<real>({bits}ull)") }
    }
}

macro_rules! real {
    ($t:ident, $cxx:literal, $m:ident) => {
        impl Real for $t {
            const CXX: &'static str = $cxx;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            #[inline(always)]
            fn lit(x: f64) -> Self {
                x as $t
            }
            #[inline(always)]
            fn from_i32(n: i32) -> Self {
                n as $t
            }
            #[inline(always)]
            fn from_u32(n: u32) -> Self {
                n as $t
            }
            #[inline(always)]
            fn from_u64(n: u64) -> Self {
                n as $t
            }
            #[inline(always)]
            fn from_f32(x: f32) -> Self {
                x as $t
            }
            #[inline(always)]
            fn f64(self) -> f64 {
                self as f64
            }
            fn push_bytes(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_ne_bytes());
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $t::sqrt(self)
            }
            #[inline(always)]
            fn rsqrt(self) -> Self {
                1.0 / $t::sqrt(self)
            }
            #[inline(always)]
            fn recip(self) -> Self {
                1.0 / self
            }
            #[inline(always)]
            fn exp(self) -> Self {
                math::$m::exp(self)
            }
            #[inline(always)]
            fn ln(self) -> Self {
                math::$m::ln(self)
            }
            #[inline(always)]
            fn sin(self) -> Self {
                math::$m::sin_cos(self).0
            }
            #[inline(always)]
            fn cos(self) -> Self {
                math::$m::sin_cos(self).1
            }
            #[inline(always)]
            fn acos(self) -> Self {
                math::$m::acos(self)
            }
            #[inline(always)]
            fn atan2(self, other: Self) -> Self {
                math::$m::atan2(self, other)
            }
            #[inline(always)]
            fn powi(self, n: i32) -> Self {
                let mut result = 1.0;
                let mut base = self;
                let mut left = n.unsigned_abs();
                while left > 0 {
                    if left & 1 == 1 {
                        result *= base;
                    }
                    base *= base;
                    left >>= 1;
                }
                if n < 0 { 1.0 / result } else { result }
            }
            #[inline(always)]
            fn powf(self, y: Self) -> Self {
                math::$m::exp(y * math::$m::ln(self))
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $t::abs(self)
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                if self < other { self } else { other }
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                if self > other { self } else { other }
            }
            #[inline(always)]
            fn floor(self) -> Self {
                math::$m::floor(self)
            }
            #[inline(always)]
            fn round(self) -> Self {
                math::$m::round(self)
            }
        }
    };
}
real!(f32, "float", single);
real!(f64, "double", double);
