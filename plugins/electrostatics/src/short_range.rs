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
    let (s, s_slope) = if p.point == 1.0 { (0.0, 0.0) } else { smeared(inv * r2, p) };
    let qq = p.coulomb * charge_i * charge_j;
    (qq * (slope - (s + s_slope) * inv * inv * inv), qq * (near - s * inv))
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
}
