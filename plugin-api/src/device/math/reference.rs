//! Reference for the tests of the elementary functions, with about 100 bits: sums of two f64 and Taylor series.

use std::ops::{Add, Mul, Neg, Sub};

/// The unevaluated sum of two f64; the second is at most half an ulp of the first.
#[derive(Clone, Copy, Debug)]
pub struct Wide(pub f64, pub f64);

const LN2: Wide = Wide(std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17);
const HALF_PI: Wide = Wide(std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17);
const ONE: Wide = Wide(1.0, 0.0);

fn sum(a: f64, b: f64) -> Wide {
    let s = a + b;
    let c = s - a;
    Wide(s, (a - (s - c)) + (b - c))
}

fn product(a: f64, b: f64) -> Wide {
    let p = a * b;
    Wide(p, a.mul_add(b, -p))
}

impl From<f64> for Wide {
    fn from(x: f64) -> Self {
        Self(x, 0.0)
    }
}
impl Add for Wide {
    type Output = Self;
    fn add(self, o: Self) -> Self {
        let (s, t) = (sum(self.0, o.0), sum(self.1, o.1));
        let u = sum(s.0, s.1 + t.0);
        sum(u.0, u.1 + t.1)
    }
}
impl Neg for Wide {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0, -self.1)
    }
}
impl Sub for Wide {
    type Output = Self;
    fn sub(self, o: Self) -> Self {
        self + -o
    }
}
impl Mul for Wide {
    type Output = Self;
    fn mul(self, o: Self) -> Self {
        let p = product(self.0, o.0);
        sum(p.0, p.1 + (self.0 * o.1 + self.1 * o.0))
    }
}

impl Wide {
    fn over(self, o: Self) -> Self {
        let q = self.0 / o.0;
        let r = self - o * q.into();
        let q2 = r.0 / o.0;
        let r = r - o * q2.into();
        Self::from(q) + q2.into() + (r.0 / o.0).into()
    }
    /// Square root.
    pub fn sqrt(self) -> Self {
        if self.0 == 0.0 {
            return self;
        }
        let s = self.0.sqrt();
        let r = self - product(s, s);
        Self::from(s) + (r.0 / (2.0 * s)).into()
    }
    /// 1/√x.
    pub fn rsqrt(self) -> Self {
        ONE.over(self.sqrt())
    }
    /// eˣ as a number and a power of two, because it may be too small for f64.
    fn exp_scaled(self) -> (Self, i32) {
        let n = (self.0 / LN2.0).round();
        let r = self - LN2 * n.into();
        // e^r = (e^(r/256))^256
        let r = Self(r.0 / 256.0, r.1 / 256.0);
        let (mut term, mut total) = (ONE, ONE);
        for k in 1..14 {
            term = (term * r).over(f64::from(k).into());
            total = total + term;
        }
        for _ in 0..8 {
            total = total * total;
        }
        (total, n as i32)
    }
    /// eˣ for results far from the limits of the range.
    pub fn exp(self) -> Self {
        let (e, n) = self.exp_scaled();
        // in two steps, because 2¹⁰²⁴ is not an f64
        let (a, b) = (2f64.powi(n / 2), 2f64.powi(n - n / 2));
        Self(e.0 * a * b, e.1 * a * b)
    }
    /// ln x: one step of Newton's method from the f64 value.
    pub fn ln(self) -> Self {
        let y = self.0.ln();
        let (e, n) = Self::from(-y).exp_scaled();
        let (a, b) = (2f64.powi(n / 2), 2f64.powi(n - n / 2));
        let scaled = Self(self.0 * a * b, self.1 * a * b);
        let d = scaled * e - ONE;
        // ln(1 + d), d about 10⁻¹⁶
        Self::from(y) + d - Self::from(0.5 * d.0 * d.0)
    }
    /// (sin x, cos x) for |x| up to about 10⁴.
    pub fn sin_cos(self) -> (Self, Self) {
        let n = (self.0 / HALF_PI.0).round();
        let r = self - HALF_PI * n.into();
        let r2 = r * r;
        let series = |first: Self, from: u32| {
            let (mut term, mut total) = (first, first);
            let mut k = f64::from(from);
            for _ in 0..16 {
                term = -(term * r2).over((k * (k + 1.0)).into());
                total = total + term;
                k += 2.0;
            }
            total
        };
        let (s, c) = (series(r, 2), series(ONE, 1));
        match (n as i64).rem_euclid(4) {
            0 => (s, c),
            1 => (c, -s),
            2 => (-s, -c),
            _ => (-c, s),
        }
    }
    /// The angle of the point (x, y) = (`other`, `self`): the f64 value plus the remaining angle.
    pub fn atan2(self, other: Self) -> Self {
        let a = self.0.atan2(other.0);
        let (s, c) = Self::from(a).sin_cos();
        let (y, x) = (self * c - other * s, other * c + self * s);
        Self::from(a) + y.over(x)
    }
    /// arccos x.
    pub fn acos(self) -> Self {
        ((ONE - self) * (ONE + self)).sqrt().atan2(self)
    }
    /// xʸ.
    pub fn powf(self, y: Self) -> Self {
        (y * self.ln()).exp()
    }
}

/// Values to 40 digits from another program (mpmath).
#[test]
fn the_reference_agrees_with_tabulated_values() {
    for (name, value, truth) in [
        ("Wide::from(0.7).exp()", Wide::from(0.7).exp(), Wide(2.0137527074704766, -2.0058243549764793e-16)),
        ("Wide::from(-300.25).exp()", Wide::from(-300.25).exp(), Wide(4.009422364622857e-131, -9.421845746665655e-148)),
        ("Wide::from(650.5).exp()", Wide::from(650.5).exp(), Wide(3.2252284201050854e+282, 2.291790547181322e+265)),
        ("Wide::from(0.3).ln()", Wide::from(0.3).ln(), Wide(-1.2039728043259361, 8.935521583403776e-17)),
        ("Wide::from(1e-200).ln()", Wide::from(1e-200).ln(), Wide(-460.51701859880916, 2.2080942657241066e-14)),
        ("Wide::from(12345.678).ln()", Wide::from(12345.678).ln(), Wide(9.421061321291832, -1.9085650743481053e-16)),
        ("Wide::from(0.5).sin_cos().0", Wide::from(0.5).sin_cos().0, Wide(0.479425538604203, -5.103969860556013e-18)),
        ("Wide::from(0.5).sin_cos().1", Wide::from(0.5).sin_cos().1, Wide(0.8775825618903728, -4.2623149864279997e-17)),
        (
            "Wide::from(9999.25).sin_cos().0",
            Wide::from(9999.25).sin_cos().0,
            Wide(0.42541135805242675, 2.3326935954642682e-17),
        ),
        (
            "Wide::from(9999.25).sin_cos().1",
            Wide::from(9999.25).sin_cos().1,
            Wide(-0.9050000974806521, -4.7855623677757587e-17),
        ),
        (
            "Wide::from(-1234.5).sin_cos().0",
            Wide::from(-1234.5).sin_cos().0,
            Wide(-0.14539565052293643, 1.0722076316516586e-17),
        ),
        (
            "Wide::from(-1234.5).sin_cos().1",
            Wide::from(-1234.5).sin_cos().1,
            Wide(-0.989373592132422, 3.4382785047781725e-17),
        ),
        ("Wide::from(0.1).acos()", Wide::from(0.1).acos(), Wide(1.4706289056333368, 3.599216618329489e-18)),
        ("Wide::from(-0.99).acos()", Wide::from(-0.99).acos(), Wide(3.000053180265366, -9.171809678765519e-17)),
        (
            "Wide::from(0.999999).acos()",
            Wide::from(0.999999).acos(),
            Wide(0.0014142136802445852, -6.143951608164765e-20),
        ),
        (
            "Wide::from(1.5).atan2(Wide::from(-2.5))",
            Wide::from(1.5).atan2(Wide::from(-2.5)),
            Wide(2.601173153319209, 1.92805387078992e-17),
        ),
        (
            "Wide::from(-0.001).atan2(Wide::from(7.0))",
            Wide::from(-0.001).atan2(Wide::from(7.0)),
            Wide(-0.00014285714188532557, -4.7503092165029476e-21),
        ),
        (
            "Wide::from(1.7).powf(Wide::from(33.3))",
            Wide::from(1.7).powf(Wide::from(33.3)),
            Wide(47200769.82952171, -2.485293320117473e-09),
        ),
        (
            "Wide::from(0.01).powf(Wide::from(-5.5))",
            Wide::from(0.01).powf(Wide::from(-5.5)),
            Wide(99999999999.99998, 3.809614121053074e-06),
        ),
        ("Wide::from(3.0).rsqrt()", Wide::from(3.0).rsqrt(), Wide(0.5773502691896257, 3.3450280739356345e-17)),
        ("Wide::from(10000000000.0).rsqrt()", Wide::from(10000000000.0).rsqrt(), Wide(1e-05, -8.180305391403131e-22)),
    ] {
        let error = ((value - truth).0 / truth.0).abs();
        assert!(error < 1e-27, "{name}: {error:e}");
    }
}
