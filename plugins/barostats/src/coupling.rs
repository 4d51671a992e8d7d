//! Coupling of the box axes.

use galamost_plugin_api::params::{FromValue, Value};
use galamost_plugin_api::prelude::*;

/// Coupling of the box axes: coupled axes change by the same factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Couple {
    /// All axes; the box keeps its shape.
    Isotropic,
    /// x and y; z changes independently.
    Xy,
    /// No coupling; each axis changes independently.
    None,
}

impl FromValue for Couple {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.text() {
            "Isotropic" => Some(Self::Isotropic),
            "Xy" => Some(Self::Xy),
            "None" => Some(Self::None),
            "Triclinic" => {
                errors.push(value.error("to change tilt factors as well, use `TriclinicMtkNpt`"));
                None
            }
            _ => {
                errors.push(value.error(format!("expected {}", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "`Isotropic`, `Xy` or `None`".into()
    }
}

/// Returns for each axis 1 + the index of the variable that scales it, or 0 for a fixed axis.
///
/// # Errors
/// Returns an error if all axes are fixed.
pub fn axis_variables(couple: Couple, enabled: [bool; 3], dimensions: u32) -> Result<[u32; 3]> {
    let mut variable = match couple {
        Couple::Isotropic => [1, 1, 1],
        Couple::Xy => [1, 1, 2],
        Couple::None => [1, 2, 3],
    };
    for (k, v) in variable.iter_mut().enumerate() {
        if !enabled[k] || k >= dimensions as usize {
            *v = 0;
        }
    }
    if variable == [0; 3] {
        return Err(Error::input("all `axes` are disabled; use an NVT integrator"));
    }
    Ok(variable)
}

/// Returns the number of distinct variables.
pub fn variable_count(variable: [u32; 3]) -> f64 {
    let mut distinct: Vec<u32> = variable.into_iter().filter(|v| *v > 0).collect();
    distinct.sort_unstable();
    distinct.dedup();
    distinct.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn couplings_give_the_expected_variables() {
        assert_eq!(axis_variables(Couple::Isotropic, [true; 3], 3).expect("axes"), [1, 1, 1]);
        assert_eq!(axis_variables(Couple::Xy, [true; 3], 2).expect("axes"), [1, 1, 0]);
        assert_eq!(axis_variables(Couple::None, [true, false, true], 3).expect("axes"), [1, 0, 3]);
        assert!(axis_variables(Couple::Isotropic, [false, false, true], 2).is_err());
        let counts = [[1, 1, 2], [1, 0, 3], [1, 1, 1]].map(variable_count);
        assert_eq!(counts, [2.0, 2.0, 1.0]);
    }
}
