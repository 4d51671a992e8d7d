//! Numbers that change with the time step: kT(t), a field, a driving force.

use crate::error::Errors;
use crate::params::{Fields, FromValue, Range, Value};
use galamost_plugin_macros::DeviceStruct;

/// A number as a function of the time step; evaluated on the device, so that a step needs no word from the host.
///
/// RON: a plain number, or `Ramp(from: 2.0, to: 1.0, start: 0, steps: 10_000)`: `from` up to step `start`, then a
/// straight line to `to`, which holds from step `start + steps` on.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, DeviceStruct)]
pub struct Varying {
    /// Value up to step `start`.
    pub from: f64,
    /// Value from step `start + steps` on.
    pub to: f64,
    /// First step of the ramp.
    pub start: u64,
    /// Length of the ramp in steps; 0 for a constant.
    pub steps: u64,
}

impl Varying {
    /// The same value for ever.
    pub const fn constant(x: f64) -> Self {
        Self { from: x, to: x, start: 0, steps: 0 }
    }

    /// The value at `step`.
    pub fn at(&self, step: u64) -> f64 {
        if step >= self.start.saturating_add(self.steps) {
            self.to
        } else if step <= self.start {
            self.from
        } else {
            self.from + (self.to - self.from) * ((step - self.start) as f64 / self.steps as f64)
        }
    }

    /// Whether it never changes.
    pub fn is_constant(&self) -> bool {
        self.from == self.to
    }
}

impl FromValue for Varying {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        if value.name() != Some("Ramp") {
            return f64::from_value(value, errors).map(Self::constant);
        }
        let mut fields = Fields::new(value, errors)?;
        let from = fields.required("from", Range::ANY);
        let to = fields.required("to", Range::ANY);
        let start = fields.or("start", Range::ANY, || 0);
        let steps = fields.required("steps", Range { above: 0.0, ..Range::ANY });
        fields.finish();
        Some(Self { from: from?, to: to?, start: start?, steps: steps? })
    }
    fn describe() -> String {
        "a number, or `Ramp(from: 2.0, to: 1.0, start: 0, steps: 1000)`".into()
    }
    fn each_number(&self, f: &mut dyn FnMut(f64)) {
        f(self.from);
        f(self.to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ramp() {
        let v = Varying { from: 2.0, to: 1.0, start: 10, steps: 4 };
        let values: Vec<_> = [0, 10, 11, 12, 14, 100].map(|s| v.at(s)).into();
        assert_eq!(values, [2.0, 2.0, 1.75, 1.5, 1.0, 1.0]);
        assert_eq!(Varying::constant(3.0).at(7), 3.0);
    }
}
