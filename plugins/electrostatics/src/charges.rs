//! Distributions of charges: points, Gaussians and Slater charges, one for all types or one for each.

use crate::short_range::{ShortRange, smeared};
use crate::split::SplitTerms;
use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{FromValue, TypeMap, Value};
use galamost_plugin_api::prelude::*;
use std::f64::consts::PI;

/// How the charge of a particle is distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Distribution {
    /// A point.
    #[default]
    Point,
    /// A Gaussian with this standard deviation along each axis.
    Gaussian(f64),
    /// The density exp(−2r/λ)/(πλ²r).
    Slater(f64),
}

impl FromValue for Distribution {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let text = value.text().trim();
        let number = |name: &str| {
            let inner = text.strip_prefix(name)?.trim().strip_prefix('(')?.strip_suffix(')')?;
            inner.trim().parse::<f64>().ok().filter(|x| *x > 0.0 && x.is_finite())
        };
        let found = match text {
            "Point" => Some(Self::Point),
            _ => number("Gaussian").map(Self::Gaussian).or_else(|| number("Slater").map(Self::Slater)),
        };
        if found.is_none() {
            errors.push(value.error(format!("expected {}, found `{text}`", Self::describe())));
        }
        found
    }
    fn describe() -> String {
        "`Point`, `Gaussian(width)` or `Slater(lambda)` with a length above 0".into()
    }
}

impl Distribution {
    /// Returns 2π/3 times the mean square distance of the charge from its center. ∫ s(r)/r d³r of two distributions is the
    /// sum of theirs, where 1 − s is their interaction in units of that of points.
    pub fn spread(self) -> f64 {
        match self {
            Self::Point => 0.0,
            Self::Gaussian(width) => 2.0 * PI * width * width,
            Self::Slater(lambda) => PI * lambda * lambda,
        }
    }

    /// Returns the row of two distributions. A Gaussian and a Slater charge have none.
    pub fn row(self, other: Self, coulomb: f64, split: &SplitTerms<f64>) -> ShortRange<f64> {
        let width = |d| if let Self::Gaussian(w) = d { w } else { 0.0 };
        let lambda = |d| if let Self::Slater(l) = d { l } else { 0.0 };
        let (wide, long) = (width(self).hypot(width(other)), lambda(self).max(lambda(other)));
        let short = lambda(self).min(lambda(other));
        let mut row =
            ShortRange { coulomb, point: 0.0, beta: 0.0, decay: 0.0, ratio: 0.0, difference: 0.0, split: *split };
        if wide > 0.0 {
            row.beta = std::f64::consts::FRAC_1_SQRT_2 / wide;
        } else if long > 0.0 {
            row.decay = 2.0 / long;
            if short > 0.0 {
                let faster = 2.0 / short;
                row.ratio = row.decay * row.decay / (row.decay + faster);
                row.difference = faster - row.decay;
            }
        } else {
            row.point = 1.0;
        }
        row
    }

    /// Returns s(r) of two distributions.
    pub fn missing(self, other: Self, r: f64) -> f64 {
        let row = self.row(other, 1.0, &SplitTerms::default());
        if row.point == 1.0 { 0.0 } else { smeared(r, &row).0 }
    }
}

/// Distributions as the user writes them.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Charges {
    /// Points.
    #[default]
    Point,
    /// The same distribution for all types.
    Same(Distribution),
    /// A distribution for each type.
    ByType(Spanned<TypeMap<Distribution>>),
}

impl FromValue for Charges {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        if value.text().starts_with('{') {
            FromValue::from_value(value, errors).map(Self::ByType)
        } else {
            Distribution::from_value(value, errors).map(Self::Same)
        }
    }
    fn describe() -> String {
        format!("{}, or one for each type, {{ \"A\": … }}", Distribution::describe())
    }
}

impl Charges {
    /// Returns the distribution of each type. Records all mistakes.
    pub fn bind(&self, types: &[String], errors: &mut Errors) -> Vec<Distribution> {
        let map = match self {
            Self::Point => return vec![Distribution::Point; types.len()],
            Self::Same(d) => return vec![*d; types.len()],
            Self::ByType(map) => map,
        };
        let Some(found) = map.value.bind("particle", types, errors) else { return vec![] };
        let name = |is: fn(&Distribution) -> bool| found.iter().position(|d| is(d)).map(|k| &types[k]);
        let gaussian = name(|d| matches!(d, Distribution::Gaussian(_)));
        if let (Some(a), Some(b)) = (gaussian, name(|d| matches!(d, Distribution::Slater(_)))) {
            let text = format!(
                "the Gaussian charges of type {a} cannot be combined with the Slater charges of type {b}; use one of both \
                 (`Point` can be combined with either)"
            );
            errors.push(InputError::at(map.at, text));
        }
        found.into_iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::TAU;

    /// Number of intervals and upper end of integrals over a density.
    const INTERVALS: usize = 20_000;
    const END: f64 = 12.0;

    /// Returns r ρ(r).
    fn density(d: Distribution, r: f64) -> f64 {
        match d {
            Distribution::Point => panic!("a point has no density"),
            Distribution::Gaussian(w) => r * (-r * r / (2.0 * w * w)).exp() / (TAU * w * w).powf(1.5),
            Distribution::Slater(l) => (-2.0 * r / l).exp() / (PI * l * l),
        }
    }

    /// Returns ∫ f dr from 0 to the k-th of the points up to `END`.
    fn integrals(f: impl Fn(f64) -> f64) -> Vec<f64> {
        let h = END / INTERVALS as f64;
        let mut sum = vec![0.0];
        for k in 0..INTERVALS {
            let at = |x: f64| f(h * (k as f64 + x));
            // Simpson
            sum.push(sum[k] + h / 6.0 * (at(1e-9) + 4.0 * at(0.5) + at(1.0)));
        }
        sum
    }

    /// Returns the energy of two unit charges at the distance r by integration over both densities; a point only as `b`.
    fn by_integration(a: Distribution, b: Distribution, r: f64) -> f64 {
        let h = END / INTERVALS as f64;
        // s φ(s) of b: the charge within s, and s times the potential of what is outside
        let field: Vec<f64> = if b == Distribution::Point {
            vec![1.0; INTERVALS + 1]
        } else {
            let inner = integrals(|t| 2.0 * TAU * t * density(b, t));
            let outer = integrals(|t| 2.0 * TAU * density(b, t));
            (0..=INTERVALS).map(|k| inner[k] + h * k as f64 * (outer[INTERVALS] - outer[k])).collect()
        };
        let nearest = |s: f64| field[((s / h).round() as usize).min(INTERVALS)];
        let potential = integrals(nearest);
        let at = |s: f64| {
            let x = (s / h).min(INTERVALS as f64 - 1.0);
            let k = x as usize;
            potential[k] + (x - k as f64) * (potential[k + 1] - potential[k])
        };
        // shells of a around a point at the distance r from the center of b
        let shells = integrals(|t| density(a, t) * (at(r + t) - at((r - t).abs())));
        TAU / r * shells[INTERVALS]
    }

    #[test]
    fn energies_are_integrals_over_both_densities() {
        use Distribution::{Gaussian, Point, Slater};
        let pairs = [
            (Gaussian(0.4), Gaussian(0.4)),
            (Gaussian(0.4), Gaussian(0.7)),
            (Gaussian(0.5), Point),
            (Slater(0.6), Slater(0.6)),
            (Slater(0.6), Slater(0.59)),
            (Slater(0.3), Slater(0.9)),
            (Slater(0.8), Point),
        ];
        for (a, b) in pairs {
            for r in [0.1, 0.5, 1.3, 2.5] {
                let (found, expected) = ((1.0 - a.missing(b, r)) / r, by_integration(a, b, r));
                // the integration over both densities has this error
                assert!((found / expected - 1.0).abs() < 1e-3, "{a:?} and {b:?} at {r}: {found} and {expected}");
                assert_eq!(a.missing(b, r), b.missing(a, r));
            }
            let integral = integrals(|r| 2.0 * TAU * r * a.missing(b, r))[INTERVALS];
            let spread = a.spread() + b.spread();
            // the error of the quadrature
            assert!((integral / spread - 1.0).abs() < 1e-6, "{a:?} and {b:?}: {integral} and {spread}");
        }
    }

    #[test]
    fn nearly_equal_slater_charges_do_not_cancel() {
        let equal = |r: f64| (1.0 + r / 0.5) * (-2.0 * r / 0.5).exp();
        for r in [0.01, 0.3, 1.0, 3.0] {
            let found = Distribution::Slater(0.5).missing(Distribution::Slater(0.5 + 1e-13), r);
            assert!((found / equal(r) - 1.0).abs() < 1e-11, "{found} and {}", equal(r));
            // the series and the function beyond it meet
            let either = [0.25 - 1e-9, 0.25 + 1e-9].map(|z| {
                let difference = z / r;
                let row = ShortRange {
                    ratio: 1.0,
                    difference,
                    decay: 1.0,
                    ..Distribution::Point.row(Distribution::Point, 1.0, &SplitTerms::default())
                };
                smeared::<f64>(r, &row)
            });
            // places that are 2e-9 apart, times slopes of order 1
            assert!((either[0].0 - either[1].0).abs() < 1e-8 && (either[0].1 - either[1].1).abs() < 1e-8);
        }
    }
}
