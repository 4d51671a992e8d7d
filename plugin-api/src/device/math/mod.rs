//! Branch-free elementary functions for the CPU.
//!
//! Every function is straight-line code: selects instead of branches, no tables, no calls. LLVM therefore vectorizes a
//! loop over an array of arguments. The method is standard: argument reduction by a constant that is split into a high
//! and a low part (Cody & Waite), then a Taylor polynomial or series on the reduced interval with a remainder below
//! half a unit in the last place. On CUDA the same names are the functions of the toolkit.

macro_rules! elementary {
    (
        $name:ident, $t:ident, $bits:ident, $int:ident,
        mantissa: $mantissa:literal, bias: $bias:literal, magic: $magic:literal,
        exp: ($exp_min:literal, $exp_max:literal, $exp_terms:literal),
        ln2: ($ln2_hi:literal, $ln2_lo:literal), ln_terms: $ln_terms:literal,
        half_pi: ($p1:literal, $p2:literal, $p3:literal), sin_terms: $sin_terms:literal,
        atan_terms: $atan_terms:literal,
    ) => {
        #[doc = concat!("Elementary functions of `", stringify!($t), "`.")]
        pub mod $name {
            use std::f64::consts;

            /// 1.5 · 2^mantissa: adding it rounds to an integer, which is then in the low bits.
            const MAGIC: $t = $magic;
            /// All numbers above this are integers.
            const WHOLE: $t = MAGIC / 1.5;

            /// 1/n!, highest power first, for n = N … 0.
            const fn inverse_factorials<const N: usize>() -> [$t; N] {
                let mut c = [0.0; N];
                let mut factorial = 1.0f64;
                let mut n = 0;
                while n < N {
                    if n > 0 {
                        factorial *= n as f64;
                    }
                    c[N - 1 - n] = (1.0 / factorial) as $t;
                    n += 1;
                }
                c
            }

            /// Remainder of the series of sine (first = 3) or cosine (first = 4): ±1/first!, ∓1/(first+2)!, …, highest
            /// power first.
            const fn alternating<const N: usize>(first: u32, sign: f64) -> [$t; N] {
                let mut c = [0.0; N];
                let mut term = sign;
                let mut k = 1;
                while k <= first {
                    term /= k as f64;
                    k += 1;
                }
                let mut n = 0;
                while n < N {
                    c[N - 1 - n] = term as $t;
                    term = -term / ((k as f64) * ((k + 1) as f64));
                    k += 2;
                    n += 1;
                }
                c
            }

            /// scale/3, ±scale/5, scale/7, …, highest power first.
            const fn odd_reciprocals<const N: usize>(scale: f64, alternate: bool) -> [$t; N] {
                let mut c = [0.0; N];
                let mut n = 0;
                while n < N {
                    let sign = if alternate && n % 2 == 0 { -1.0 } else { 1.0 };
                    c[N - 1 - n] = (sign * scale / (2 * n + 3) as f64) as $t;
                    n += 1;
                }
                c
            }

            const EXP: [$t; $exp_terms] = inverse_factorials();
            const LN: [$t; $ln_terms] = odd_reciprocals(2.0, false);
            const SIN: [$t; $sin_terms] = alternating(3, -1.0);
            const COS: [$t; $sin_terms] = alternating(4, 1.0);
            const ATAN: [$t; $atan_terms] = odd_reciprocals(1.0, true);

            #[inline(always)]
            fn horner<const N: usize>(x: $t, coefficients: &[$t; N]) -> $t {
                let mut sum = 0.0;
                for &c in coefficients {
                    sum = sum * x + c;
                }
                sum
            }

            /// The nearest integer, ties to even.
            #[inline(always)]
            pub fn round(x: $t) -> $t {
                let whole = $t::copysign(WHOLE, x);
                let r = (x + whole) - whole;
                // −0.3 gives −0, as C's rint
                if x.abs() < WHOLE { $t::copysign(r, x) } else { x }
            }

            /// The largest integer not above x.
            #[inline(always)]
            pub fn floor(x: $t) -> $t {
                let r = round(x);
                if r > x { r - 1.0 } else { r }
            }

            /// eˣ: x = n ln 2 + r, |r| ≤ ½ ln 2; 2ⁿ is assembled from bits.
            #[inline(always)]
            pub fn exp(x: $t) -> $t {
                let inside = if x < $exp_min { $exp_min } else { x };
                let inside = if inside > $exp_max { $exp_max } else { inside };
                let shifted = inside * (consts::LOG2_E as $t) + MAGIC;
                let n = shifted - MAGIC;
                let r = (inside - n * $ln2_hi) - n * $ln2_lo;
                let p = horner(r, &EXP);
                // 2ⁿ as a product of two factors, so that the exponent field does not overflow at either end of the
                // range
                let n = shifted.to_bits().wrapping_sub(MAGIC.to_bits()) as $int;
                let half = n >> 1;
                let a = $t::from_bits(((half + $bias) << $mantissa) as $bits);
                let b = $t::from_bits(((n - half + $bias) << $mantissa) as $bits);
                let result = p * a * b;
                if x < $exp_min { 0.0 } else { result }
            }

            /// ln x: x = m 2ᵉ with m between √½ and √2, and the series of artanh in s = (m − 1)/(m + 1).
            #[inline(always)]
            pub fn ln(x: $t) -> $t {
                let bits = x.to_bits();
                let sqrt_half = (consts::FRAC_1_SQRT_2 as $t).to_bits();
                let e = (bits.wrapping_sub(sqrt_half) as $int) >> $mantissa;
                let m = $t::from_bits(bits.wrapping_sub((e << $mantissa) as $bits));
                let s = (m - 1.0) / (m + 1.0);
                let s2 = s * s;
                let e = e as $t;
                e * $ln2_hi + (2.0 * s + (s * s2 * horner(s2, &LN) + e * $ln2_lo))
            }

            /// (sin x, cos x): x = n π/2 + r, |r| ≤ π/4.
            #[inline(always)]
            pub fn sin_cos(x: $t) -> ($t, $t) {
                let shifted = x * (consts::FRAC_2_PI as $t) + MAGIC;
                let n = shifted - MAGIC;
                let quadrant = shifted.to_bits();
                let r = ((x - n * $p1) - n * $p2) - n * $p3;
                let r2 = r * r;
                let s = r + r * r2 * horner(r2, &SIN);
                let c = (1.0 - 0.5 * r2) + r2 * r2 * horner(r2, &COS);
                let (s, c) = if quadrant & 1 == 0 { (s, c) } else { (c, s) };
                let s = if quadrant & 2 == 0 { s } else { -s };
                let c = if quadrant.wrapping_add(1) & 2 == 0 { c } else { -c };
                (s, c)
            }

            /// The angle of the point (x, y), −π … π; 0 at the origin.
            #[inline(always)]
            pub fn atan2(y: $t, x: $t) -> $t {
                let (ax, ay) = (x.abs(), y.abs());
                let steep = ay > ax;
                let (num, den) = if steep { (ax, ay) } else { (ay, ax) };
                let t = num / (if den == 0.0 { 1.0 } else { den });
                // atan t = π/4 + atan((t − 1)/(t + 1)): the argument of the series is at most tan π/8
                let far = t > (consts::SQRT_2 - 1.0) as $t;
                let u = if far { (t - 1.0) / (t + 1.0) } else { t };
                let u2 = u * u;
                let a = u + u * u2 * horner(u2, &ATAN);
                let a = if far { a + consts::FRAC_PI_4 as $t } else { a };
                let a = if steep { consts::FRAC_PI_2 as $t - a } else { a };
                let a = if x < 0.0 { consts::PI as $t - a } else { a };
                $t::copysign(a, y)
            }

            /// arccos x = atan2(√(1 − x²), x), with 1 − x² as (1 − x)(1 + x).
            #[inline(always)]
            pub fn acos(x: $t) -> $t {
                let s2 = (1.0 - x) * (1.0 + x);
                let s2 = if s2 < 0.0 { 0.0 } else { s2 };
                atan2(s2.sqrt(), x)
            }
        }
    };
}

elementary! {
    single, f32, u32, i32,
    mantissa: 23, bias: 127, magic: 12_582_912.0,
    exp: (-87.336_54, 88.722_83, 8),
    ln2: (0.693_359_4, -2.121_944_4e-4), ln_terms: 5,
    half_pi: (1.570_312_5, 4.837_513e-4, 7.549_79e-8), sin_terms: 4,
    atan_terms: 9,
}

elementary! {
    double, f64, u64, i64,
    mantissa: 52, bias: 1023, magic: 6_755_399_441_055_744.0,
    exp: (-708.396_418_532_264_1, 709.782_712_893_384, 14),
    ln2: (6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10), ln_terms: 10,
    half_pi: (1.570_796_326_734_125_6, 6.077_100_506_303_966e-11, 2.022_266_248_795_950_6e-21), sin_terms: 8,
    atan_terms: 20,
}

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
