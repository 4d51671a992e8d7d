//! Selection of oriented particles, and their orientations.

use crate::selection::particle_type;
use galamost_plugin_api::prelude::*;

/// Returns for each type whether it is selected; without `names` all are.
///
/// # Errors
/// Returns an error if the list is empty or a name is unknown.
pub fn selected_types(names: Option<&Spanned<Vec<String>>>, system: &SystemInfo) -> Result<Vec<bool>> {
    let Some(names) = names else { return Ok(vec![true; system.types.len()]) };
    if names.value.is_empty() {
        return Err(InputError::at(names.at, "the list is empty; add particle types").into());
    }
    for name in &names.value {
        particle_type(name, names.at, system)?;
    }
    Ok(system.types.iter().map(|t| names.value.contains(t)).collect())
}

/// Checks that the system is three-dimensional and has orientations.
///
/// # Errors
/// Returns an error otherwise.
pub fn need_orientations(system: &SystemInfo) -> Result<()> {
    if system.dimensions != 3 {
        return Err(Error::input("requires three dimensions"));
    }
    if !system.has_array("quaternion") {
        return Err(Error::input("particles have no orientations; add the array `quaternion` to the initial state"));
    }
    Ok(())
}

/// Returns the orientations of all particles, by tag.
///
/// # Errors
/// Returns an error if the frame has none.
pub fn quaternions(frame: &Frame<'_>) -> Result<Vec<Quaternion<f64>>> {
    match frame.array("quaternion") {
        Some((4, q)) => Ok(q.as_chunks::<4>().0.iter().map(|[x, y, z, w]| Quaternion::new(*x, *y, *z, *w)).collect()),
        _ => Err(Error::Run("the frame has no quaternions".into())),
    }
}

/// Returns the tags of the particles of the selected types.
pub fn tags(frame: &Frame<'_>, selected: &[bool]) -> Vec<usize> {
    frame.type_id().iter().enumerate().filter(|(_, t)| selected[**t as usize]).map(|(tag, _)| tag).collect()
}
