//! The short-range part of the interaction: the charges minus the smooth charges of the split.

use crate::split::{SplitTerms, window_potential};
use galamost_plugin_api::error::Errors;
use galamost_plugin_api::pair::{NoSettings, Row, RowInput};
use galamost_plugin_api::params::{FieldDoc, Fields, FromValue, Params, Value};
use galamost_plugin_api::prelude::*;

/// Parameters of the short-range part for a pair of types.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[allow(non_camel_case_types)]
pub struct ShortRange<real> {
    /// Coulomb constant C.
    pub coulomb: real,
    /// 1 for point charges.
    pub point: real,
    /// 1/√(2(w² + w'²)) of Gaussian charges with the widths w and w'; 0 for others.
    pub beta: real,
    /// a = 2/λ of Slater charges, λ the longer one of both; 0 for others.
    pub decay: real,
    /// a²/(a + b) with b = 2/λ of the other charge; 0 if it is a point.
    pub ratio: real,
    /// b − a; 0 if the other charge is a point.
    pub difference: real,
    /// The split.
    pub split: SplitTerms<real>,
}

impl Row for ShortRange<f64> {
    type As<R: Real> = ShortRange<R>;
    fn cast<R: Real>(&self) -> ShortRange<R> {
        ShortRange {
            coulomb: R::lit(self.coulomb),
            point: R::lit(self.point),
            beta: R::lit(self.beta),
            decay: R::lit(self.decay),
            ratio: R::lit(self.ratio),
            difference: R::lit(self.difference),
            split: self.split.cast(R::lit),
        }
    }
    fn numbers(&self) -> Vec<f64> {
        let mut all = vec![self.coulomb, self.point, self.beta, self.decay, self.ratio, self.difference];
        all.push(self.split.inverse_square);
        all.extend(self.split.potential.iter().chain(&self.split.slope));
        all
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Self {
        let split = crate::split::Split::with_shape(3.0 + random(), 8.0 + 8.0 * random());
        let widths =
            [crate::charges::Distribution::Point, crate::charges::Distribution::Gaussian(0.2 + 0.3 * random())];
        widths[usize::from(random() < 0.5)].row(
            widths[0],
            0.5 + random(),
            &split.terms(10f64.powf(-4.0 - 6.0 * random())),
        )
    }
}

// rows are made by the component, never read
impl Params for ShortRange<f64> {
    fn take(_: &mut Fields<'_, '_>) -> Option<Self> {
        None
    }
    fn docs() -> Vec<FieldDoc> {
        vec![]
    }
}

impl FromValue for ShortRange<f64> {
    fn from_value(_: Value<'_>, _: &mut Errors) -> Option<Self> {
        None
    }
    fn describe() -> String {
        "nothing".into()
    }
}

impl RowInput for ShortRange<f64> {
    type Settings = NoSettings;
    type Row = Self;
    fn row(&self, _: &NoSettings) -> std::result::Result<Self, String> {
        Ok(*self)
    }
}

/// Returns exp(x²) erfc(x) for 0 ≤ x ≤ 7, with a relative error below 2·10⁻¹².
///
/// A polynomial in t = 1/(1 + 0.3 x), interpolated at the Chebyshev nodes of the range.
#[device_fn]
pub fn scaled_erfc(x: real) -> real {
    let t = 1.0 / (1.0 + 0.3 * x);
    let p = 0.2037499595159119 - 0.026618083335780477 * t;
    let p = 1.1104649659072656 + t * (-0.6470764862267715 + t * p);
    let p = 1.023289100986363 + t * (-1.2195280561539201 + t * p);
    let p = 0.3330845370042485 + t * (-0.4903716517103697 + t * p);
    let p = 0.16185229160178052 + t * (0.053053633260059394 + t * p);
    let p = 0.1694534899613323 + t * (0.1593972869048095 + t * p);
    t * (0.16924901228361872 + t * p)
}

/// The largest argument of [`scaled_erfc`] that matters: erfc(7) is below 10⁻²².
const FAR: f64 = 7.0;
/// Below this argument [`mean_decay`] is summed as a series, which does not cancel.
const SERIES: f64 = 0.25;
/// Below this βr or ar, the differences of [`smeared`] cancel and [`overlapping`] is used. Above it, they lose less than one digit.
const OVERLAP: f64 = 1.0;
/// Largest 1/r of smeared charges, so that coinciding ones have a finite F/r, which f32 can hold.
const CLOSEST: f64 = 1e15;
/// 2/√π.
const TWO_OVER_SQRT_PI: f64 = std::f64::consts::FRAC_2_SQRT_PI;

/// U = C q q' [1 − E(r) − s(r)]/r, where E/r is the potential of the split, and 1 − s is the interaction of the charges in units of that
/// of points.
#[pair_potential]
pub fn short_range(r2: real, charge_i: real, charge_j: real, p: &ShortRange<real>) -> (real, real) {
    let inv = r2.rsqrt();
    let x2 = r2 * p.split.inverse_square;
    let (f, u) = window_potential(x2, &p.split);
    let (near, slope) = if x2 < 1.0 { (inv - u, inv * inv * inv - f) } else { (0.0, 0.0) };
    let (force, energy) = if p.point == 1.0 { (slope, near) } else { of_smeared(r2, inv, f, u, p) };
    let qq = p.coulomb * charge_i * charge_j;
    (qq * force, qq * energy)
}

/// Returns F/r and the energy of smeared unit charges at the distance r, where `inv` is 1/r, without the part of the grid, whose F/r
/// and energy are `f` and `u` inside of the cutoff.
#[device_fn]
fn of_smeared(r2: real, inv: real, f: real, u: real, p: &ShortRange<real>) -> (real, real) {
    let r = r2 * inv.min(CLOSEST);
    let (point, point_slope) = (inv, inv * inv * inv);
    let (split, split_slope) = if r2 * p.split.inverse_square < 1.0 { (u, f) } else { (point, point_slope) };
    let (s, s_slope) = smeared(r, p);
    let overlap = (p.beta + p.decay) * r < OVERLAP;
    let (whole, whole_slope) = if overlap { overlapping(r, p) } else { (0.0, 0.0) };
    let (apart, apart_slope) = ((point - split) - s * inv, (point_slope - split_slope) - (s + s_slope) * point_slope);
    let energy = if overlap { whole - split } else { apart };
    let force = if overlap { whole_slope - split_slope } else { apart_slope };
    (force, energy)
}

/// Returns s(r) and −r ds/dr of smeared charges: erfc(βr) of Gaussians, (b² exp(−ar) − a² exp(−br))/(b² − a²) of Slater
/// charges. The latter is written with [`mean_decay`], which does not cancel for a = b.
#[device_fn]
pub fn smeared(r: real, p: &ShortRange<real>) -> (real, real) {
    let x = p.beta * r;
    let gauss = (-(x * x)).exp();
    let of_gauss = (gauss * scaled_erfc(x.min(FAR)), TWO_OVER_SQRT_PI * x * gauss);
    let (y, z) = (p.decay * r, p.difference * r);
    let (slow, fast) = ((-y).exp(), (-z).exp());
    let share = p.ratio * r;
    let s = slow * (1.0 + share * mean_decay(z, fast));
    let of_slater = (s, y * s - share * slow * fast);
    if p.beta > 0.0 { (of_gauss.0, of_gauss.1) } else { (of_slater.0, of_slater.1) }
}

/// Returns (1 − s)/r of smeared charges and −(1/r) d/dr of it, for βr or ar below [`OVERLAP`], at r = 0, too.
///
/// No term cancels another. For Gaussians, the slope is an incomplete gamma function of x² = (βr)², β³ γ(3/2, x²) 2/(√π x³). For Slater
/// charges, it follows from the moments Mₙ(y) = ∫ tⁿ exp(−yt) dt over 0 … 1. M₂ = γ(3, y)/y³ gives the others:
/// M₁ = (y M₂ + exp(−y))/2, M₀ = y M₁ + exp(−y).
#[device_fn]
fn overlapping(r: real, p: &ShortRange<real>) -> (real, real) {
    let x2 = p.beta * p.beta * r * r;
    let gauss = TWO_OVER_SQRT_PI * (-x2).exp();
    let slope = gauss * (1.0 / 1.5) * gamma_series(x2, 1.5);
    let of_gauss = (p.beta * (gauss + x2 * slope), p.beta * p.beta * p.beta * slope);
    let (y, z) = (p.decay * r, p.difference * r);
    let (slow, fast) = ((-y).exp(), (-z).exp());
    let y2 = slow * (1.0 / 3.0) * gamma_series(y, 3.0);
    let y1 = 0.5 * (y * y2 + slow);
    let y0 = y * y1 + slow;
    // the other charge may be much shorter: z has no limit
    let (z0, by_z) = (mean_decay(z, fast), 1.0 / z.max(OVERLAP));
    let z1_far = (z0 - fast) * by_z;
    let z2_near = fast * (1.0 / 3.0) * gamma_series(z, 3.0);
    let z2 = if z < OVERLAP { z2_near } else { (2.0 * z1_far - fast) * by_z };
    let z1 = if z < OVERLAP { 0.5 * (z * z2_near + fast) } else { z1_far };
    let share = p.ratio * slow;
    let both = 0.5 * p.difference * (z0 - z2) + p.decay * (z0 - z1);
    let of_two = 0.5 * p.decay * p.decay * p.decay * y2 + share * p.difference * both;
    // the force of a point is constant at its center, so F/r is infinite there
    let of_point = p.decay * p.decay * y1 / r.max(1.0 / CLOSEST);
    let slater_slope = if p.ratio > 0.0 { of_two } else { of_point };
    let of_slater = (p.decay * y0 - share * z0, slater_slope);
    if p.beta > 0.0 { (of_gauss.0, of_gauss.1) } else { (of_slater.0, of_slater.1) }
}

/// Returns Σ xⁿ/((s + 1) … (s + n)), which is s exp(x) γ(s, x)/xˢ, for 0 ≤ x ≤ 1 and s ≥ 3/2 within 2·10⁻¹⁴.
#[device_fn]
fn gamma_series(x: real, s: real) -> real {
    let mut series = 1.0;
    for n in 0..14 {
        series = 1.0 + x * (1.0 / (s + ((14 - n) as real))) * series;
    }
    series
}

/// Returns (1 − exp(−z))/z for z ≥ 0, the mean of exp(−t) for t up to z, where `decayed` is exp(−z).
#[device_fn]
fn mean_decay(z: real, decayed: real) -> real {
    let mut series = 1.0;
    // Σ (−z)ⁿ/(n + 1)!
    for n in 0..10 {
        series = 1.0 - z * (1.0 / ((11 - n) as real)) * series;
    }
    let far = (1.0 - decayed) / (if z > SERIES { z } else { SERIES });
    if z > SERIES { far } else { series }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charges::Distribution;

    fn erfc(x: f64) -> f64 {
        (-x * x).exp() * scaled_erfc(x.min(FAR))
    }

    #[test]
    fn erfc_agrees_with_its_table() {
        // Abramowitz & Stegun, table 7.1, and 30-digit arithmetic
        let table = [
            (0.0, 1.0),
            (0.1, 0.887_537_083_981_715),
            (0.5, 0.479_500_122_186_953_5),
            (1.0, 0.157_299_207_050_285_13),
            (2.0, 4.677_734_981_047_266e-3),
            (3.5, 7.430_983_723_414_128e-7),
            (5.0, 1.537_459_794_428_034_8e-12),
            (6.5, 3.842_148_327_120_647e-20),
        ];
        for (x, reference) in table {
            assert!((erfc(x) / reference - 1.0f64).abs() < 3e-12, "erfc({x}) = {}", erfc(x));
        }
    }

    /// Returns (1 − s)/r and −(1/r) d/dr of it by their series in r.
    fn series(a: Distribution, b: Distribution, r: f64) -> (f64, f64) {
        use Distribution::{Gaussian, Point, Slater};
        let (mut value, mut slope, mut factorial) = (0.0, 0.0, 1.0);
        for n in 1..60 {
            factorial *= f64::from(n);
            let sign = if n % 2 == 0 { -1.0 } else { 1.0 };
            // the coefficient of −(−r)ⁿ in n! (1 − s), which is 0 for n = 2 and two Slater charges
            let c = match (a, b) {
                (Gaussian(v), Gaussian(w)) => {
                    let x = r / (2.0 * (v * v + w * w)).sqrt();
                    // odd powers only: here n counts them, and (n − 1)! is factorial/n
                    let term = TWO_OVER_SQRT_PI * sign * x.powi(2 * n - 2) / (factorial / f64::from(n)) * x / r;
                    value += term / f64::from(2 * n - 1);
                    slope -= term * f64::from(2 * n - 2) / f64::from(2 * n - 1) / (r * r);
                    continue;
                }
                (Slater(l), Point) => (2.0 / l).powi(n),
                (Slater(l), Slater(m)) => {
                    let (a, b) = (2.0 / l, 2.0 / m);
                    let sum: f64 = (0..n - 2).map(|k| a.powi(k) * b.powi(n - 3 - k)).sum();
                    if n == 1 { a * b / (a + b) } else { -a * a * b * b / (a + b) * sum }
                }
                _ => panic!("points do not overlap"),
            };
            value += sign * c * r.powi(n - 1) / factorial;
            slope -= sign * c * f64::from(n - 1) * r.powi(n - 3) / factorial;
        }
        (value, slope)
    }

    /// Returns energy and force of two unit charges.
    fn found<R: Real>(row: &ShortRange<f64>, r: f64) -> (f64, f64) {
        let (f, u) = short_range::<R>(R::lit(r * r), R::ONE, R::ONE, &row.cast::<R>());
        (u.f64(), f.f64() * r)
    }

    /// On both sides of the limit between [`smeared`] and [`overlapping`], and at r = 0.
    #[test]
    fn overlapping_charges_have_the_forces_of_their_series() {
        use Distribution::{Gaussian, Point, Slater};
        let pairs = [
            (Gaussian(0.35), Gaussian(0.35)),
            (Gaussian(0.2), Gaussian(0.5)),
            (Slater(0.5), Slater(0.5)),
            (Slater(0.5), Slater(0.499_999)),
            (Slater(0.5), Slater(0.2)),
            (Slater(0.5), Point),
        ];
        // a split of 0 leaves the interaction of the charges
        let split = SplitTerms { inverse_square: 1e-4, ..SplitTerms::default() };
        for (a, b) in pairs {
            let row = a.row(b, 1.0, &split);
            // of the order of the largest energy, 1/size, and the largest force, 0.1 to 0.5 /size²
            let size = if row.beta > 0.0 { 1.0 / row.beta } else { 1.0 / row.decay };
            let small = (0..20).map(|k| 10f64.powf(0.3 * f64::from(k) - 6.0));
            for x in small.chain((0..14).map(|k| 0.5 + 0.05 * f64::from(k))) {
                let r = size * x;
                let (value, slope) = series(a, b, r);
                // Single: 1.2e-7 for each of about five roundings of numbers of order 1, in units of a tenth; Double: 2e-12 is the error of
                // `scaled_erfc`, times erfc(1) = 0.16
                for ((u, f), limit) in [(found::<f32>(&row, r), 2e-6), (found::<f64>(&row, r), 1e-12)] {
                    let error = ((u - value).abs() * size).max((f - slope * r).abs() * size * size);
                    assert!(error < limit, "{a:?} and {b:?} at {r}: {u} {f}, {value} {}", slope * r);
                }
            }
            let center = series(a, b, 1e-9 * size).0;
            for ((u, f), limit) in [(found::<f32>(&row, 0.0), 1e-6), (found::<f64>(&row, 0.0), 1e-8)] {
                assert!((u / center - 1.0).abs() < limit && f == 0.0, "{a:?} and {b:?}: {u} {f}, {center}");
            }
        }
    }
}
