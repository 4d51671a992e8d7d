//! Potentials out of distributions.
//!
//! A structure has a distribution for each interaction: g(r) of a pair of types, P(r) of a bond, P(θ) of an angle, P(φ) of a dihedral. Here stand the
//! numbers of finding potentials that give it: [`Interaction::first_guess`] (Boltzmann inversion), [`Interaction::ibi`] (iterative Boltzmann
//! inversion), [`imc`] (inverse Monte Carlo, Newton's method with the covariance of bin counts), and what holds a potential
//! together where nothing was sampled. Several states of one system count with weights. Lengths are the user's, angles are
//! in degrees here. It knows nothing of runs.

mod covariance;
mod interaction;
mod newton;
mod target;

pub use covariance::Covariance;
pub use interaction::{Bins, Closeness, Interaction, LIMIT, StateData};
pub use newton::{NewtonState, imc, solve};
pub use target::{columns_of, normalise, read_target};
