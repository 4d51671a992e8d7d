//! Integrators and thermostats for point particles.
//!
//! `nve.rs` is velocity Verlet at constant energy, `capped.rs` limits displacements, and `fire.rs` minimizes the energy.
//! Thermostats: `andersen.rs`, `langevin.rs`, `brownian.rs` (overdamped), `nose_hoover.rs`, `nose_hoover_chain.rs`,
//! `berendsen.rs`, `bussi.rs`.

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

/// Returns the number of degrees of freedom of the group under a thermostat.
///
/// # Errors
/// Returns an error if the group has none.
fn degrees_of_freedom(group: &GroupInfo) -> Result<f64> {
    if group.degrees_of_freedom <= 0.0 {
        return Err(Error::input(format!(
            "the group of {} particle(s) has no degrees of freedom; a thermostat needs at least one",
            group.n
        )));
    }
    Ok(group.degrees_of_freedom)
}
