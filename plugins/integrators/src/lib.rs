//! Integrators and thermostats of point particles.
//!
//! `nve.rs` is velocity-Verlet at constant energy, `capped.rs` limits displacements, `fire.rs` minimizes. Thermostats:
//! `andersen.rs`, `langevin.rs`, `brownian.rs` (without inertia), `nose_hoover.rs`, `nose_hoover_chain.rs`, `berendsen.rs`,
//! `bussi.rs`.

mod andersen;
mod berendsen;
mod brownian;
mod bussi;
mod capped;
mod fire;
mod langevin;
mod nose_hoover;
mod nose_hoover_chain;
mod nve;

use galamost_plugin_api::prelude::*;

galamost_plugin_api::plugin!();

/// Degrees of freedom of a group under a thermostat.
///
/// # Errors
/// Returns an error if the group has none.
fn degrees_of_freedom(group: &GroupInfo) -> Result<f64> {
    if group.degrees_of_freedom <= 0.0 {
        return Err(Error::input(format!("a thermostat for {} particle(s) has no degrees of freedom", group.n)));
    }
    Ok(group.degrees_of_freedom)
}
