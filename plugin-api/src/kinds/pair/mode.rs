//! Cutoff modes: truncation, shifts and smoothing of U and F.

use super::CutoffRow;
use crate::device::real::Real;
use crate::error::Errors;
use crate::params::{FromValue, Value};

/// The treatment of U and F at the cutoff r_c.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Mode {
    /// Truncation: U and F are discontinuous at r_c.
    #[default]
    Cut,
    /// U(r) − U(r_c); F is unchanged.
    ShiftEnergy,
    /// F(r) − F(r_c), and the U of this force: both vanish at r_c.
    ShiftForce,
    /// Multiplies U by a polynomial in r² that decreases from 1 at r_on to 0 at r_c (HOOMD's "xplor"). The value is
    /// r_on. Unit: length.
    Smooth(f64),
}

impl Mode {
    /// Returns the number of the mode in the loops.
    pub fn number(self) -> u32 {
        match self {
            Self::Cut => 0,
            Self::ShiftEnergy => 1,
            Self::ShiftForce => 2,
            Self::Smooth(_) => 3,
        }
    }
}

impl FromValue for Mode {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match (value.name(), value.after_name()) {
            (Some("Cut"), None) => Some(Self::Cut),
            (Some("ShiftEnergy"), None) => Some(Self::ShiftEnergy),
            (Some("ShiftForce"), None) => Some(Self::ShiftForce),
            (Some("Smooth"), Some(inner)) => match errors.absorb(inner.elements())?.as_slice() {
                [on] => f64::from_value(*on, errors).map(Self::Smooth),
                _ => {
                    errors.push(value.error("expected `Smooth(r_on)`"));
                    None
                }
            },
            _ => {
                errors.push(value.error(format!("expected {}, found `{}`", Self::describe(), value.text())));
                None
            }
        }
    }
    fn describe() -> String {
        "`Cut`, `ShiftEnergy`, `ShiftForce` or `Smooth(r_on)`".into()
    }
    fn each_number(&self, f: &mut dyn FnMut(f64)) {
        if let Self::Smooth(r) = self {
            f(*r);
        }
    }
}

/// Applies the mode to (F/r, U) of a pair inside the cutoff. `pair.cuh` contains the same code.
#[inline(always)]
pub fn apply_mode<R: Real>(mode: u32, r2: R, (f, u): (R, R), row: &CutoffRow<R>) -> (R, R) {
    match mode {
        1 => (f, u - row.energy_shift),
        2 => {
            let r = r2.sqrt();
            (f - row.force_shift / r, u - row.energy_shift + (r - row.cutoff) * row.force_shift)
        }
        3 => {
            let (s, ds_over_r) = smoothing(r2, row);
            (s * f - u * ds_over_r, s * u)
        }
        _ => (f, u),
    }
}

/// Returns S and S'/r of mode `Smooth`: S = (r_c² − r²)² (r_c² + 2r² − 3 r_on²)/(r_c² − r_on²)³ for r ≥ r_on, and S = 1
/// below.
#[inline(always)]
pub fn smoothing<R: Real>(r2: R, row: &CutoffRow<R>) -> (R, R) {
    let out = row.cutoff2 - r2;
    let s = out * out * (row.cutoff2 + R::lit(2.0) * r2 - R::lit(3.0) * row.on2) * row.smooth_norm;
    let ds_over_r = R::lit(12.0) * out * (row.on2 - r2) * row.smooth_norm;
    let inside = r2 < row.on2;
    if inside { (R::ONE, R::ZERO) } else { (s, ds_over_r) }
}
