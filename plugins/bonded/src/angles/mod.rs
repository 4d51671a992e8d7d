//! Angle potentials.
#![allow(clippy::approx_constant)]

mod cosine;
mod cosine_periodic;
mod cosine_squared;
mod harmonic;
mod restricted;

use galamost_plugin_api::prelude::*;

/// Settings of the component.
#[derive(Clone, Debug, Params)]
pub struct AngleSettings {
    /// Prefactor convention: `Paper` for U = k x², `Half` for U = ½ k x².
    #[param(default = Convention::Paper)]
    convention: Convention,
}

/// Parameters of one angle type.
#[derive(Clone, Debug, Params)]
pub struct AngleParameters {
    /// Stiffness k.
    #[param(unit = "energy", at_least = 0.0)]
    k: f64,
    /// Equilibrium angle θ₀; 180 is a straight line.
    #[param(unit = "degrees", at_least = 0.0, at_most = 180.0)]
    theta0_deg: f64,
}
