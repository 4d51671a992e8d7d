//! The generator `Polymers`: polymers, mixtures and brushes as initial states.
//!
//! `component.rs` has the parameters, `check.rs` checks them, `species.rs` prepares each kind of molecule, `growth.rs` grows
//! molecules bead by bead, and `topology.rs` collects their bonds, angles and dihedrals.

mod check;
mod component;
mod geometry;
mod graft;
mod grid;
mod growth;
mod notation;
mod placement;
mod region;
mod species;
mod topology;

pub use grid::Grid;
pub use placement::extend_arrays;
