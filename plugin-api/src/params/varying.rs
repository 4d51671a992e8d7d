//! Time-dependent parameters: kT(t), a field, a driving force.

use crate::error::{Errors, InputError};
use crate::params::{Fields, FromValue, Range, Spanned, Value};
use galamost_plugin_macros::{DeviceStruct, device_fn};

/// Maximum number of points of a `Cycle`.
pub const CYCLE_POINTS: usize = 8;

/// A parameter as a function of the time step, evaluated on the device.
///
/// In RON it is a number, or one of
///
/// * `Ramp(from: 2.0, to: 1.0, start: 0, steps: 10_000)`: `from` up to step `start`, linear until step `start + steps`,
///   and `to` after it;
/// * `Cycle(points: [(0, 1.0), (500, 2.0), (1000, 1.0)])`: linear between points (step, value), repeated with the step
///   of the last point as the period. There are 2 to [`CYCLE_POINTS`] points, and the first step is 0. If the first and
///   last value differ, the parameter is discontinuous;
/// * `Sine(mean: 1.0, amplitude: 0.5, period: 1000, phase: 0.0)`: mean + amplitude · sin(2π · step/period + phase).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, DeviceStruct, galamost_plugin_macros::Layout,
)]
#[serde(default)]
#[device(header)]
pub struct Varying {
    /// Shape: 0 for a ramp, 1 for a cycle, 2 for a sine.
    pub kind: u32,
    /// Number of points of a cycle.
    pub n_points: u32,
    /// Ramp: value up to step `start`. Sine: the mean.
    pub from: f64,
    /// Ramp: value from step `start + steps`. Sine: the amplitude.
    pub to: f64,
    /// Ramp: first step of the ramp.
    pub start: u64,
    /// Ramp: length in steps; 0 for a constant. Cycle and sine: the period.
    pub steps: u64,
    /// Cycle: the steps of its points.
    pub at: [u32; CYCLE_POINTS],
    /// Cycle: the values of its points. Sine: the phase in the first entry.
    pub value: [f64; CYCLE_POINTS],
}

impl Default for Varying {
    fn default() -> Self {
        Self::constant(0.0)
    }
}

impl Varying {
    /// Creates a constant.
    pub const fn constant(x: f64) -> Self {
        Self::ramp(x, x, 0, 0)
    }

    /// Creates a ramp: `from` up to step `start`, linear until step `start + steps`, and `to` after it.
    pub const fn ramp(from: f64, to: f64, start: u64, steps: u64) -> Self {
        Self { kind: 0, n_points: 0, from, to, start, steps, at: [0; CYCLE_POINTS], value: [0.0; CYCLE_POINTS] }
    }

    /// Creates a cycle from points (step, value). Returns `None` unless the steps start with 0 and increase, and there
    /// are 2 to [`CYCLE_POINTS`] points.
    pub fn cycle(points: &[(u32, f64)]) -> Option<Self> {
        let rising = points.windows(2).all(|w| w[0].0 < w[1].0);
        if !(2..=CYCLE_POINTS).contains(&points.len()) || points[0].0 != 0 || !rising {
            return None;
        }
        let mut v = Self { kind: CYCLE, n_points: points.len() as u32, ..Self::constant(points[0].1) };
        for (k, (step, value)) in points.iter().enumerate() {
            v.steps = u64::from(*step);
            (v.at[k], v.value[k]) = (*step, *value);
        }
        Some(v)
    }

    /// Creates mean + amplitude · sin(2π · step/period + phase).
    pub fn sine(mean: f64, amplitude: f64, period: u64, phase: f64) -> Self {
        let mut v = Self { kind: SINE, ..Self::ramp(mean, amplitude, 0, period.max(1)) };
        v.value[0] = phase;
        v
    }

    /// Returns the value at `step`.
    pub fn at(&self, step: u64) -> f64 {
        varying_at(self, step)
    }

    /// Returns whether the value changes between two steps. A ramp does if its ends differ; of other functions, a thousand values are
    /// compared.
    pub fn changes_between(&self, begin: u64, end: u64) -> bool {
        const VALUES: u64 = 1000;
        let length = u128::from(end.saturating_sub(begin));
        let step = |k: u64| begin + (length * u128::from(k) / u128::from(VALUES)) as u64;
        !self.is_constant() && (1..=VALUES).any(|k| self.at(step(k)) != self.at(begin))
    }

    /// Returns whether the value never changes.
    pub fn is_constant(&self) -> bool {
        match self.kind {
            CYCLE => self.value[..self.n_points as usize].iter().all(|x| *x == self.value[0]),
            SINE => self.to == 0.0,
            _ => self.from == self.to,
        }
    }
}

const CYCLE: u32 = 1;
const SINE: u32 = 2;

/// Returns the value of a time-dependent parameter at a step.
#[device_fn]
#[allow(clippy::approx_constant, reason = "device functions contain the values of constants")]
pub fn varying_at(v: &Varying, step: u64) -> real {
    let mut x = v.from as real;
    if v.kind == CYCLE {
        let within = (step % v.steps.max(1u64)) as u32;
        x = v.value[0] as real;
        for k in 1..v.n_points {
            let a = v.at[k - 1];
            let b = v.at[k];
            if within >= a && within < b {
                let part = ((within - a) as real) / ((b - a) as real);
                let begin = v.value[k - 1] as real;
                x = begin + ((v.value[k] as real) - begin) * part;
            }
        }
    } else if v.kind == SINE {
        let period = v.steps.max(1u64);
        let angle = consts::TAU * (((step % period) as real) / (period as real)) + (v.value[0] as real);
        x += (v.to as real) * angle.sin();
    } else if step >= v.start && step - v.start >= v.steps {
        x = v.to as real;
    } else if step > v.start {
        x += ((v.to as real) - x) * (((step - v.start) as real) / (v.steps as real));
    }
    x
}

/// A point of a cycle as the user writes it: `(step, value)`.
struct Point(u32, f64);

impl FromValue for Point {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let parts = errors.absorb(value.elements())?;
        let [step, x] = parts.as_slice() else {
            errors.push(value.error(format!("expected {}", Self::describe())));
            return None;
        };
        let (step, x) = (FromValue::from_value(*step, errors), FromValue::from_value(*x, errors));
        Some(Self(step?, x?))
    }
    fn describe() -> String {
        "(step, value)".into()
    }
}

impl FromValue for Varying {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.name() {
            Some("Ramp") => {
                let mut fields = Fields::new(value, errors)?;
                let from = fields.required("from", Range::ANY);
                let to = fields.required("to", Range::ANY);
                let start = fields.or("start", Range::ANY, || 0);
                let steps = fields.required("steps", Range { above: 0.0, ..Range::ANY });
                fields.finish();
                Some(Self::ramp(from?, to?, start?, steps?))
            }
            Some("Cycle") => {
                let mut fields = Fields::new(value, errors)?;
                let points: Option<Spanned<Vec<Point>>> = fields.required("points", Range::ANY);
                fields.finish();
                let points = points?;
                let list: Vec<(u32, f64)> = points.value.iter().map(|p| (p.0, p.1)).collect();
                let made = Self::cycle(&list);
                if made.is_none() {
                    errors.push(InputError::at(
                        points.at,
                        format!("a cycle needs 2 to {CYCLE_POINTS} points (step, value) with steps that start at 0 and increase"),
                    ));
                }
                made
            }
            Some("Sine") => {
                let mut fields = Fields::new(value, errors)?;
                let mean = fields.required("mean", Range::ANY);
                let amplitude = fields.required("amplitude", Range::ANY);
                let period = fields.required("period", Range { above: 0.0, ..Range::ANY });
                let phase = fields.or("phase", Range { at_least: -100.0, at_most: 100.0, ..Range::ANY }, || 0.0);
                fields.finish();
                Some(Self::sine(mean?, amplitude?, period?, phase?))
            }
            _ => f64::from_value(value, errors).map(Self::constant),
        }
    }
    fn describe() -> String {
        "a number, `Ramp(from: 2.0, to: 1.0, start: 0, steps: 1000)`, `Cycle(points: [(0, 1.0), (500, 2.0), (1000, 1.0)])` \
         or `Sine(mean: 1.0, amplitude: 0.5, period: 1000, phase: 0.0)`"
            .into()
    }
    fn each_number(&self, f: &mut dyn FnMut(f64)) {
        match self.kind {
            CYCLE => self.value[..self.n_points as usize].iter().for_each(|x| f(*x)),
            SINE => {
                f(self.from - self.to.abs());
                f(self.from + self.to.abs());
            }
            _ => {
                f(self.from);
                f(self.to);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Source;

    #[test]
    fn ramp() {
        let v = Varying::ramp(2.0, 1.0, 10, 4);
        let values: Vec<_> = [0, 10, 11, 12, 14, 100].map(|s| v.at(s)).into();
        assert_eq!(values, [2.0, 2.0, 1.75, 1.5, 1.0, 1.0]);
        assert_eq!(Varying::constant(3.0).at(7), 3.0);
    }

    #[test]
    fn cycle() {
        let v = Varying::cycle(&[(0, 1.0), (4, 3.0), (10, 0.0)]).expect("valid");
        let values: Vec<_> = [0, 1, 2, 4, 7, 9, 10, 11, 10_000_004].map(|s| v.at(s)).into();
        assert_eq!(values, [1.0, 1.5, 2.0, 3.0, 1.5, 0.5, 1.0, 1.5, 3.0]);
        assert!(!v.is_constant());
        for points in [&[(0, 1.0)][..], &[(1, 1.0), (2, 1.0)], &[(0, 1.0), (3, 1.0), (3, 2.0)]] {
            assert!(Varying::cycle(points).is_none(), "{points:?}");
        }
    }

    #[test]
    fn sine() {
        let v = Varying::sine(1.0, 0.5, 8, 0.0);
        for (step, x) in [(0, 1.0), (2, 1.5), (4, 1.0), (6, 0.5), (8_000_000_002, 1.5)] {
            assert!((v.at(step) - x).abs() < 1e-15, "{step}: {}", v.at(step));
        }
        let shifted = Varying::sine(0.0, 2.0, 8, std::f64::consts::FRAC_PI_2);
        assert!((shifted.at(0) - 2.0).abs() < 1e-15);
    }

    fn read(text: &str) -> (Option<Varying>, Errors) {
        let mut errors = Errors::default();
        let v = FromValue::from_value(Source::file(text).value(), &mut errors);
        (v, errors)
    }

    #[test]
    fn as_it_is_written() {
        assert_eq!(read("1.5").0, Some(Varying::constant(1.5)));
        assert_eq!(read("Ramp(from: 2.0, to: 1.0, steps: 5)").0, Some(Varying::ramp(2.0, 1.0, 0, 5)));
        let cycle = Varying::cycle(&[(0, 1.0), (5, 2.0)]);
        assert_eq!(read("Cycle(points: [(0, 1.0), (5, 2.0)])").0, cycle);
        let sine = Varying::sine(1.0, 0.5, 9, 0.25);
        assert_eq!(read("Sine(mean: 1.0, amplitude: 0.5, period: 9, phase: 0.25)").0, Some(sine));
        for wrong in ["Cycle(points: [(1, 1.0), (5, 2.0)])", "Cycle(points: [1.0])", "Sine(mean: 1.0)", "Saw(1.0)"] {
            let (v, errors) = read(wrong);
            assert!(v.is_none() && !errors.0.is_empty(), "{wrong} was taken");
        }
        // values cross the boundary as RON
        let text = ron::to_string(&sine).expect("plain data");
        assert_eq!(ron::from_str::<Varying>(&text), Ok(sine));
    }
}
