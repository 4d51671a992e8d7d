//! Cutoff modes: truncation, shifts and smoothing of U and F.

use super::CutoffRow;
use crate::device::vector::Vec3;
use crate::error::Errors;
use crate::params::{FromValue, Value};
use galamost_plugin_macros::device_fn;

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
        let number = match self {
            Self::Cut => ModeNumber::Cut,
            Self::ShiftEnergy => ModeNumber::ShiftEnergy,
            Self::ShiftForce => ModeNumber::ShiftForce,
            Self::Smooth(_) => ModeNumber::Smooth,
        };
        number as u32
    }

    /// Returns whether the mode subtracts values at the cutoff.
    pub(crate) fn shifts(self) -> bool {
        matches!(self, Self::ShiftEnergy | Self::ShiftForce)
    }

    /// Returns the documentation of the modes; oriented potentials have two of them.
    pub(crate) fn doc(oriented: bool) -> &'static str {
        if oriented {
            "Treatment of the cutoff r_c. `Cut`: U and F jump to 0. `Smooth(r_on)`: S(r) U, S = 1 for r < r_on,\n\
             S = (r_c² − r²)² (r_c² + 2r² − 3r_on²)/(r_c² − r_on²)³ for r_on ≤ r < r_c."
        } else {
            "Treatment of the cutoff r_c. `Cut`: U and F jump to 0. `ShiftEnergy`: U(r) − U(r_c). `ShiftForce`:\n\
             U(r) − U(r_c) + (r − r_c) F(r_c), so that U and F vanish at r_c. `Smooth(r_on)`: S(r) U(r), S = 1 for\n\
             r < r_on, S = (r_c² − r²)² (r_c² + 2r² − 3r_on²)/(r_c² − r_on²)³ for r_on ≤ r < r_c."
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

crate::device_enum! {
    @header true;
    /// Numbers of the modes in the loops.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ModeNumber {
        /// [`Mode::Cut`].
        Cut = 0,
        /// [`Mode::ShiftEnergy`].
        ShiftEnergy = 1,
        /// [`Mode::ShiftForce`].
        ShiftForce = 2,
        /// [`Mode::Smooth`].
        Smooth = 3,
    }
}

const SHIFT_ENERGY: u32 = ModeNumber::ShiftEnergy as u32;
const SHIFT_FORCE: u32 = ModeNumber::ShiftForce as u32;
const SMOOTH: u32 = ModeNumber::Smooth as u32;

/// Applies the mode to (F/r, U) of a pair inside the cutoff.
#[device_fn]
pub fn apply_mode(mode: u32, r2: real, fu: (real, real), row: &CutoffRow<real>) -> (real, real) {
    if mode == SHIFT_ENERGY {
        (fu.0, fu.1 - row.energy_shift)
    } else if mode == SHIFT_FORCE {
        let r = r2.sqrt();
        (fu.0 - row.force_shift / r, fu.1 - row.energy_shift + (r - row.cutoff) * row.force_shift)
    } else if mode == SMOOTH {
        let (s, ds_over_r) = smoothing(r2, row);
        (s * fu.0 - fu.1 * ds_over_r, s * fu.1)
    } else {
        fu
    }
}

/// Returns S and S'/r of mode `Smooth`: S = (r_c² − r²)² (r_c² + 2r² − 3 r_on²)/(r_c² − r_on²)³ for r ≥ r_on, and S = 1
/// below.
#[device_fn]
pub fn smoothing(r2: real, row: &CutoffRow<real>) -> (real, real) {
    let out = row.cutoff2 - r2;
    let s = out * out * (row.cutoff2 + 2.0 * r2 - 3.0 * row.on2) * row.smooth_norm;
    let ds_over_r = 12.0 * out * (row.on2 - r2) * row.smooth_norm;
    if r2 < row.on2 { (1.0, 0.0) } else { (s, ds_over_r) }
}

/// Applies mode `Smooth` to the force, the torque and U of an oriented pair with r = r_i − r_j.
#[device_fn]
pub fn smooth_oriented(
    force: Vec3<real>,
    torque: Vec3<real>,
    u: real,
    r: Vec3<real>,
    r2: real,
    row: &CutoffRow<real>,
) -> (Vec3<real>, Vec3<real>, real) {
    let (s, ds_over_r) = smoothing(r2, row);
    (force * s - r * (u * ds_over_r), torque * s, u * s)
}
