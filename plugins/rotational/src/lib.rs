//! Rotation of rigid bodies: orientations at the start, and integrators that turn particles.

mod berendsen;
mod langevin;
mod nose_hoover;
mod orientations;
mod verlet;

use galamost_plugin_api::prelude::*;

galamost_plugin_api::plugin!();

/// Degrees of freedom of translation and rotation, for thermostats of both.
///
/// # Errors
/// There are none of one kind.
fn freedom(group: &GroupInfo) -> Result<[f64; 2]> {
    if group.degrees_of_freedom <= 0.0 {
        return Err(Error::input(format!("a thermostat for {} particle(s) has no degrees of freedom", group.n)));
    }
    if group.rotational_degrees_of_freedom <= 0.0 {
        return Err(Error::input(
            "none of its particles turns, since all moments of inertia are 0; an integrator without rotation moves them",
        ));
    }
    Ok([group.degrees_of_freedom, group.rotational_degrees_of_freedom])
}
