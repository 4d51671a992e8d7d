//! Rotational dynamics of oriented particles: initial orientations, and integrators of translation and rotation.

mod berendsen;
mod langevin;
mod nose_hoover;
mod orientations;
mod verlet;

use galamost_plugin_api::prelude::*;

galamost_plugin_api::plugin!();

/// Returns the numbers of translational and rotational degrees of freedom of the group under a thermostat.
///
/// # Errors
/// Returns an error if either is 0.
fn degrees_of_freedom(group: &GroupInfo) -> Result<[f64; 2]> {
    if group.degrees_of_freedom <= 0.0 {
        return Err(Error::input(format!(
            "the group of {} particle(s) has no degrees of freedom; a thermostat needs at least one",
            group.n
        )));
    }
    if group.rotational_degrees_of_freedom <= 0.0 {
        return Err(Error::input(
            "the group has no rotational degrees of freedom (all moments of inertia are 0); use RotationalVerlet or \
             RotationalLangevin for rigid bodies, and an integrator without rotation for other particles",
        ));
    }
    Ok([group.degrees_of_freedom, group.rotational_degrees_of_freedom])
}
