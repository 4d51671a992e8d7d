//! Which particles are looked at, and where they point.

use crate::selection::particle_type;
use galamost_plugin_api::prelude::*;

/// Types by name; all types where the user names none.
///
/// # Errors
/// A name that is no type.
pub fn kinds(names: Option<&Spanned<Vec<String>>>, system: &SystemInfo) -> Result<Vec<bool>> {
    let Some(names) = names else { return Ok(vec![true; system.types.len()]) };
    for name in &names.value {
        particle_type(name, names.at, system)?;
    }
    Ok(system.types.iter().map(|t| names.value.contains(t)).collect())
}

/// Particles must have orientations, in three dimensions.
///
/// # Errors
/// They have none.
pub fn need_orientations(system: &SystemInfo) -> Result<()> {
    if system.dimensions != 3 {
        return Err(Error::input("needs three dimensions"));
    }
    if !system.has_array("quaternion") {
        return Err(Error::input("particles have no `quaternion`: the initial state must give one to each"));
    }
    Ok(())
}

/// Orientations of all particles, by tag.
///
/// # Errors
/// The engine gave none.
pub fn quaternions(frame: &Frame<'_>) -> Result<Vec<Quaternion<f64>>> {
    match frame.array("quaternion") {
        Some((4, q)) => Ok(q.as_chunks::<4>().0.iter().map(|[x, y, z, w]| Quaternion::new(*x, *y, *z, *w)).collect()),
        _ => Err(Error::Run("the frame has no quaternions".into())),
    }
}

/// Tags of the particles of these types.
pub fn tags(frame: &Frame<'_>, kinds: &[bool]) -> Vec<usize> {
    frame.type_id().iter().enumerate().filter(|(_, k)| kinds[**k as usize]).map(|(tag, _)| tag).collect()
}
