//! Selection of particles and molecules, as analyzers write it in a pipeline.

use galamost_plugin_api::error::Position;
use galamost_plugin_api::params::{FromValue, Value};
use galamost_plugin_api::prelude::*;

/// Particles, or centers of mass of molecules.
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

/// The index of a particle type.
///
/// # Errors
/// Returns an error at `at` if there is no type of this name.
pub fn particle_type(name: &str, at: Position, system: &SystemInfo) -> std::result::Result<usize, InputError> {
    system.types.iter().position(|t| t == name).ok_or_else(|| {
        let all = system.types.join(", ");
        InputError::at(at, format!("there is no particle type \"{name}\"; the particle types are {all}"))
    })
}
