//! Potentials from distributions.
//!
//! A structure has a distribution for each interaction: g(r) of a pair of types, P(r) of a bond, P(θ) of an angle, P(φ) of a
//! dihedral. This crate computes potentials that reproduce these distributions:
//!
//! * [`Interaction::first_guess`]: Boltzmann inversion.
//! * [`Interaction::ibi`]: iterative Boltzmann inversion.
//! * [`imc`]: inverse Monte Carlo, Newton's method with the covariance of bin counts.
//!
//! It also extrapolates potentials to bins that were not sampled. Several thermodynamic states of one system contribute with
//! weights. Lengths are in the user's units, angles in degrees. The crate does not run simulations.

mod covariance;
mod interaction;
mod newton;
mod target;

pub use covariance::Covariance;
pub use interaction::{Bins, Closeness, Interaction, LIMIT, StateData};
pub use newton::{NewtonState, imc, solve};
pub use target::{columns_of, normalize, normalize as normalise, read_target};
