//! The function that splits the interaction into a short-range part and waves.
//!
//! A smooth spherical charge around each point charge divides its potential: 1/r = [1 − E(r)]/r + E(r)/r, where E(r)/r is the
//! potential of the smooth charge. Ewald's choice is a Gaussian, E = erf(αr), whose short-range part and whose waves both
//! decay without end. Here dE/dr is a Kaiser–Bessel window that ends at the radius b, with x = r/b:
//!
//! dE/dr = (c/b sinh c) I₀(c √(1 − x²)), E(b) = 1.
//!
//! So nothing is cut off in the short-range part, and its transform
//! χ(k) = ∫ dE/dr cos(kr) dr = (c/sinh c) sinh(z)/z, z = √(c² − k²b²),
//! falls to 2c exp(−c) at k = c/b, where a Gaussian with the same error needs waves 1.5 times as long. Near its center the
//! window is the Gaussian with α = √(c/2)/b.
//!
//! The window approximates the prolate spheroidal wave function of order 0, which is optimal: D. Slepian, H. O. Pollak, Bell Syst.
//! Tech. J. 40 (1961) 43; J. F. Kaiser, R. W. Schafer, IEEE Trans. Acoust. 28 (1980) 105. For Ewald sums: J. Liang et al.,
//! arXiv:2505.09727.

use crate::series::{chebyshev_coefficients, quadrature, rising_powers};
use galamost_plugin_api::device::{CxxStruct, DeviceFn, DeviceText};
use galamost_plugin_api::prelude::*;

/// Number of terms of the polynomial for the potential E/r; that for its slope has one less.
pub const TERMS: usize = 21;
/// Largest shape c: exp(−28) is 10⁻¹², and the polynomials are accurate to 10⁻¹⁰ up to it.
pub const LARGEST_SHAPE: f64 = 28.0;

/// The window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Split {
    /// b.
    pub radius: f64,
    /// c.
    pub shape: f64,
    /// c/sinh c.
    pub scale: f64,
}

/// The window as pair functions read it: polynomials in t = 2x² − 1, by rising powers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
#[allow(non_camel_case_types)]
pub struct SplitTerms<real> {
    /// 1/b².
    pub inverse_square: real,
    /// E/r.
    pub potential: [real; TERMS],
    /// −(1/r) d/dr of E/r.
    pub slope: [real; TERMS - 1],
}

impl<R: Real> SplitTerms<R> {
    /// Converts the numbers to another type.
    pub fn cast<Q: Real>(&self, convert: impl Fn(R) -> Q + Copy) -> SplitTerms<Q> {
        SplitTerms {
            inverse_square: convert(self.inverse_square),
            potential: self.potential.map(convert),
            slope: self.slope.map(convert),
        }
    }
}

impl SplitTerms<f64> {
    /// Returns the number of terms of the potential that are not 0.
    pub fn used(&self) -> usize {
        self.potential.iter().rposition(|term| *term != 0.0).map_or(1, |last| last + 1)
    }

    /// Returns the CUDA function that [`window_potential()`] calls, with the terms that are not 0 as constants.
    pub fn device_text(&self) -> String {
        let used = self.used().max(2);
        let mut text = format!(
            "template <typename real> __device__ __forceinline__ Tuple2<real, real> split_polynomials(real t) {{\n\
             real u = real({:?}), f = real({:?});\n",
            self.potential[used - 1],
            self.slope[used - 2]
        );
        for k in (1..used - 1).rev() {
            text +=
                &format!("u = u * t + real({:?});\nf = f * t + real({:?});\n", self.potential[k], self.slope[k - 1]);
        }
        text + &format!("return {{f, u * t + real({:?})}};\n}}\n", self.potential[0])
    }
}

/// Returns −(1/r) d/dr of E/r, and E/r; of use for x² < 1 only.
#[device_fn]
pub fn polynomials(x2: real, s: &SplitTerms<real>) -> (real, real) {
    let t = 2.0 * x2 - 1.0;
    let (mut u, mut f) = (s.potential[TERMS - 1], s.slope[TERMS - 2]);
    for k in 2..TERMS {
        u = u * t + s.potential[TERMS - k];
        f = f * t + s.slope[TERMS - 1 - k];
    }
    (f, u * t + s.potential[0])
}

/// [`polynomials()`] for pair functions, whose kernels have the terms as constants.
pub fn window_potential<R: Real>(x2: R, s: &SplitTerms<R>) -> (R, R) {
    polynomials(x2, s)
}

/// The CUDA text of [`window_potential()`], for pair kernels: the terms are constants of the code, see [`SplitTerms::device_text`].
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug)]
pub struct window_potential {}

impl DeviceFn for window_potential {
    fn text() -> &'static DeviceText {
        static TEXT: DeviceText = DeviceText {
            name: "window_potential",
            text: || {
                "template <typename real> __device__ __forceinline__ Tuple2<real, real> window_potential(real x2, const SplitTerms<real>&) {\n\
                 return split_polynomials(real(2) * x2 - real(1));\n}\n"
                    .into()
            },
            needs: &[<SplitTerms<f32> as CxxStruct>::text],
            header: false,
        };
        &TEXT
    }
}

/// Returns (F/r, U) of two unit charges in the Fourier part, U = E/r; at r = 0, too.
#[device_fn]
pub fn fourier_pair(r2: real, s: &SplitTerms<real>) -> (real, real) {
    let x2 = r2 * s.inverse_square;
    let (f, u) = polynomials(x2.min(1.0), s);
    let inv = r2.max(f64::MIN_POSITIVE).rsqrt();
    if x2 < 1.0 { (f, u) } else { (inv * inv * inv, inv) }
}

/// Returns χ and −dχ/d(k²) of a window. `scale` is c/sinh c.
#[device_fn]
pub fn window_transform(k2: real, radius: real, shape: real, scale: real) -> (real, real) {
    let q = shape * shape - k2 * radius * radius;
    // sinh(z)/z, or sin(z)/z, and its derivative by q = ±z²: for small q as series
    let near =
        1.0 + q / 6.0 * (1.0 + q / 20.0 * (1.0 + q / 42.0 * (1.0 + q / 72.0 * (1.0 + q / 110.0 * (1.0 + q / 156.0)))));
    let near_slope =
        1.0 / 6.0 * (1.0 + q / 10.0 * (1.0 + q / 28.0 * (1.0 + q / 54.0 * (1.0 + q / 88.0 * (1.0 + q / 130.0)))));
    let z = q.abs().max(1.0).sqrt();
    let grow = z.exp();
    let (odd, even) = if q > 0.0 { (0.5 * (grow - 1.0 / grow), 0.5 * (grow + 1.0 / grow)) } else { (z.sin(), z.cos()) };
    let far = odd / z;
    let far_slope = 0.5 * (even - far) / q.abs().max(1.0) * (if q > 0.0 { 1.0 } else { -1.0 });
    let (mean, slope) = if q.abs() < 1.0 { (near, near_slope) } else { (far, far_slope) };
    (scale * mean, scale * radius * radius * slope)
}

/// Returns I₀(x).
fn bessel(x: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for n in 1..100 {
        term *= (0.5 * x / f64::from(n)).powi(2);
        sum += term;
    }
    sum
}

impl Split {
    /// Returns the window of a radius b and a shape c.
    pub fn with_shape(radius: f64, shape: f64) -> Self {
        Self { radius, shape, scale: shape / shape.sinh() }
    }

    /// Returns the window of an α and a cutoff. Its radius is the cutoff, or less if the shape would exceed [`LARGEST_SHAPE`].
    pub fn new(alpha: f64, r_cut: f64) -> Self {
        let radius = r_cut.min((0.5 * LARGEST_SHAPE).sqrt() / alpha);
        Self::with_shape(radius, 2.0 * (alpha * radius).powi(2))
    }

    /// Returns the shape for which 4 √(c d/b) exp(−c) is `limit`. That is the error in units of C⟨q²⟩/d² of waves beyond c/b with
    /// |χ| = (c/sinh c)/kb; those of the window are near c/b about twice as large together, and the mesh or `k_max` keeps a part of them.
    pub fn shape_for(limit: f64, radius: f64, mean_distance: f64) -> f64 {
        let mut shape = 10.0;
        for _ in 0..20 {
            shape = (4.0 * (shape * mean_distance / radius).sqrt() / limit).ln().clamp(4.0, LARGEST_SHAPE);
        }
        shape
    }

    /// Returns χ and −dχ/d(k²).
    pub fn transform(self, k2: f64) -> (f64, f64) {
        window_transform(k2, self.radius, self.shape, self.scale)
    }

    /// Returns χ.
    pub fn chi(self, k2: f64) -> f64 {
        let q = self.shape * self.shape - k2 * self.radius * self.radius;
        let z = q.abs().sqrt();
        match q {
            1.0.. => self.scale * z.sinh() / z,
            ..-1.0 => self.scale * z.sin() / z,
            _ => self.transform(k2).0,
        }
    }

    /// Returns dE/dr at r; 0 beyond the radius.
    pub fn density(self, r: f64) -> f64 {
        let y = 1.0 - (r / self.radius).powi(2);
        if y < 0.0 { 0.0 } else { self.scale * bessel(self.shape * y.sqrt()) / self.radius }
    }

    /// Returns ∫ χ² dk from `k` on. The error of all waves beyond k has the square 8/V times this, for φ = 4πχ/k² and charges at random.
    pub fn tail(self, k: f64) -> f64 {
        let square = |k: f64| self.chi(k * k).powi(2);
        // the trapezoidal rule with 30 points in a period; beyond 2c/b the mean of χ² is scale²/(2 b² k²)
        let (step, end) = (0.1 / self.radius, 2.0 * self.shape / self.radius);
        let intervals = ((end - k) / step).max(0.0).ceil() as usize;
        let inner: f64 =
            (0..intervals).map(|n| k + n as f64 * step).map(|k| 0.5 * step * (square(k) + square(k + step))).sum();
        inner + 0.5 * (self.scale / self.radius).powi(2) / (k + intervals as f64 * step)
    }

    /// Returns E/r at r = 0.
    pub fn at_center(self) -> f64 {
        self.density(0.0)
    }

    /// Returns the polynomials. That of E/r = (1/b)(c/sinh c) ∫₀¹ I₀(c √(1 − x²v²)) dv is its Chebyshev series, cut off; that
    /// of the slope is its exact derivative, so forces are gradients of the energy. The error of the slope is at most `error` times its value at
    /// the center, or that of [`TERMS`] terms.
    pub fn terms(self, error: f64) -> SplitTerms<f64> {
        let nodes = quadrature(64);
        let value = |x2: f64| -> f64 {
            let integral: f64 = nodes
                .iter()
                .map(|(u, weight)| {
                    let v = 0.5 * (u + 1.0);
                    0.5 * weight * bessel(self.shape * (1.0 - x2 * v * v).max(0.0).sqrt())
                })
                .sum();
            self.scale * integral / self.radius
        };
        let mut coefficients: [f64; TERMS] = chebyshev_coefficients(64, |t| value(0.5 * (t + 1.0)));
        // the derivatives of Chebyshev polynomials are at most m² inside −1 … 1, and have this value at the ends with alternating signs,
        // like the coefficients: so at the center, t = −1, all terms add
        let slopes: Vec<f64> = coefficients.iter().enumerate().map(|(m, c)| (m * m) as f64 * c.abs()).collect();
        let at_center: f64 = slopes.iter().sum();
        let enough = |used: &usize| slopes[*used..].iter().sum::<f64>() < error * at_center;
        let used = (2..TERMS).find(enough).unwrap_or(TERMS);
        coefficients[used..].fill(0.0);
        let potential = rising_powers(coefficients);
        let inverse_square = self.radius.powi(-2);
        // −(1/r) dt/dr = −4/b²
        let slope = std::array::from_fn(|k| -4.0 * inverse_square * (k + 1) as f64 * potential[k + 1]);
        SplitTerms { inverse_square, potential, slope }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ∫ f dr from 0 to b.
    fn integral(split: Split, f: impl Fn(f64) -> f64) -> f64 {
        quadrature(200).iter().map(|(u, w)| 0.5 * split.radius * w * f(0.5 * split.radius * (u + 1.0))).sum()
    }

    #[test]
    fn bessel_function_agrees_with_its_table() {
        // Abramowitz & Stegun, tables 9.8 and 9.11
        for (x, reference) in [(1.0, 1.266_065_877_75), (5.0, 27.239_871_823_6), (10.0, 2_815.716_628_47)] {
            assert!((bessel(x) / reference - 1.0f64).abs() < 1e-11, "I0({x}) = {}", bessel(x));
        }
    }

    #[test]
    fn potentials_are_integrals_of_the_window() {
        for (radius, shape) in [(3.0, 4.0), (2.5, 9.4), (1.0, 12.0), (4.0, 20.0), (2.0, LARGEST_SHAPE)] {
            let split = Split::with_shape(radius, shape);
            let terms = split.terms(0.0);
            assert!((integral(split, |r| split.density(r)) - 1.0).abs() < 1e-12);
            assert!((fourier_pair::<f64>(0.0, &terms).1 / split.at_center() - 1.0).abs() < 1e-10);
            for k in 1..=50 {
                let r = radius * f64::from(k) / 50.5;
                let inside = Split { radius: r, ..split };
                let expected = integral(inside, |s| split.density(s)) / r;
                let (f, u) = fourier_pair::<f64>(r * r, &terms);
                assert!((u - expected).abs() * radius < 1e-10, "{split:?}: at {r} {u} and {expected}");
                let slope = (expected - split.density(r)) / (r * r);
                assert!((f - slope).abs() * radius.powi(3) < 1e-9, "{split:?}: at {r} {f} and {slope}");
            }
            let far = fourier_pair::<f64>(4.0 * radius * radius, &terms);
            assert!((far.1 * 2.0 * radius - 1.0).abs() < 1e-12 && (far.0 * (2.0 * radius).powi(3) - 1.0).abs() < 1e-12);
        }
    }

    /// For less accuracy there are fewer terms, which are as accurate as asked for; energies stay the integrals of forces.
    #[test]
    fn fewer_terms_are_as_accurate_as_asked_for() {
        let mut seen = vec![];
        for (shape, error) in [(8.0, 1e-6), (9.5, 1e-6), (12.0, 1e-7), (14.4, 1e-8), (20.0, 1e-9), (28.0, 1e-9)] {
            let split = Split::with_shape(3.0, shape);
            let (all, few) = (split.terms(0.0), split.terms(error));
            seen.push(few.used());
            let center = fourier_pair::<f64>(0.0, &all).0;
            for k in 0..300 {
                let r2 = (0.01 * f64::from(k)).powi(2);
                let ([f, u], [exact, energy]) =
                    [&few, &all].map(|s| <[f64; 2]>::from(fourier_pair::<f64>(r2, s))).into();
                // the polynomial of all terms has an error of 1e-9
                assert!((f - exact).abs() < (error + 1e-9) * center, "{shape} {error}: {f} and {exact}");
                // E/r is the integral of r times its slope, from the radius
                assert!((u - energy).abs() < 9.0 * (error + 1e-9) * center, "{shape} {error}: {u} and {energy}");
            }
        }
        assert_eq!(seen, [9, 9, 11, 13, 16, 18]);
    }

    #[test]
    fn waves_are_the_transform_of_the_window() {
        for (radius, shape) in [(3.0, 4.0), (2.5, 9.4), (1.0, 12.0), (2.0, LARGEST_SHAPE)] {
            let split = Split::with_shape(radius, shape);
            for k in 0..60 {
                let k = 0.05 * f64::from(k) * shape / radius;
                let (chi, slope) = split.transform(k * k);
                let expected = integral(split, |r| split.density(r) * (k * r).cos());
                assert!((chi - expected).abs() < 1e-12, "{split:?}: at {k} {chi} and {expected}");
                assert!((split.chi(k * k) - chi).abs() < 1e-14, "{split:?}: at {k} {} and {chi}", split.chi(k * k));
                let h = 1e-4 / (radius * radius);
                let change = (split.transform(k * k + h).0 - split.transform((k * k - h).max(-h)).0) / (2.0 * h);
                // the next order in h = 1e-4, and rounding 1e-16/h
                assert!((slope + change).abs() < 1e-7 * radius * radius, "{split:?}: at {k} {slope} and {}", -change);
            }
        }
    }

    /// The radius shrinks if α would need a larger shape.
    #[test]
    fn sharp_windows_are_short() {
        assert_eq!(Split::new(1.0, 3.0), Split::with_shape(3.0, 18.0));
        let sharp = Split::new(2.0, 3.0);
        assert!((sharp.shape - LARGEST_SHAPE).abs() < 1e-12 && sharp.radius < 1.9, "{sharp:?}");
    }
}
