//! Parameters that select particles and molecules.

use galamost_plugin_api::error::Position;
use galamost_plugin_api::params::{FromValue, Value};
use galamost_plugin_api::prelude::*;

/// What an analyzer measures: particles, or centers of mass of molecules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    Particles,
    Molecules,
}

impl FromValue for Of {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.text() {
            "Particles" => Some(Self::Particles),
            "Molecules" => Some(Self::Molecules),
            text => {
                errors.push(value.error(format!("expected {}, found `{text}`", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "`Particles` or `Molecules`".into()
    }
}

/// Returns the index of the particle type `name`.
///
/// # Errors
/// Returns an error at `at` if no type has this name.
pub fn particle_type(name: &str, at: Position, system: &SystemInfo) -> std::result::Result<usize, InputError> {
    system.types.iter().position(|t| t == name).ok_or_else(|| {
        let all = system.types.join(", ");
        InputError::at(at, format!("unknown particle type \"{name}\"; the particle types are {all}"))
    })
}
