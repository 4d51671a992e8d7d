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

galamost_plugin_api::plugin!();
