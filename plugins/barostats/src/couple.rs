//! Axes that change together.

use galamost_plugin_api::params::{FromValue, Value};
use galamost_plugin_api::prelude::*;

/// Which axes of the box change together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Couple {
    /// All: the shape stays.
    Isotropic,
    /// x and y; z by itself.
    Xy,
    /// None: each axis by itself.
    None,
}

impl FromValue for Couple {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.text() {
            "Isotropic" => Some(Self::Isotropic),
            "Xy" => Some(Self::Xy),
            "None" => Some(Self::None),
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

/// For each axis 1 + the number of the variable that moves it, or 0 for an axis that stays.
///
/// # Errors
/// No axis changes.
pub fn axes(couple: Couple, changing: [bool; 3], dimensions: u32) -> Result<[u32; 3]> {
    let mut variable = match couple {
        Couple::Isotropic => [1, 1, 1],
        Couple::Xy => [1, 1, 2],
        Couple::None => [1, 2, 3],
    };
    for (k, v) in variable.iter_mut().enumerate() {
        if !changing[k] || k >= dimensions as usize {
            *v = 0;
        }
    }
    if variable == [0; 3] {
        return Err(Error::input("`axes` says that no axis changes; an NVT integrator does that"));
    }
    Ok(variable)
}

/// How many variables these are.
pub fn spread(variable: [u32; 3]) -> f64 {
    let mut kinds: Vec<u32> = variable.into_iter().filter(|v| *v > 0).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_coupled_as_said() {
        assert_eq!(axes(Couple::Isotropic, [true; 3], 3).expect("axes"), [1, 1, 1]);
        assert_eq!(axes(Couple::Xy, [true; 3], 2).expect("axes"), [1, 1, 0]);
        assert_eq!(axes(Couple::None, [true, false, true], 3).expect("axes"), [1, 0, 3]);
        assert!(axes(Couple::Isotropic, [false, false, true], 2).is_err());
        assert_eq!((spread([1, 1, 2]), spread([1, 0, 3]), spread([1, 1, 1])), (2.0, 2.0, 1.0));
    }
}
