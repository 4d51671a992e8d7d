//! Builds polymers, mixtures and brushes as initial states.

mod build;
mod component;
mod grid;
mod links;
mod notation;
mod region;
