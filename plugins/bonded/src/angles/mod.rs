//! Angle potentials.
#![allow(clippy::approx_constant)]

mod cosine;
mod cosine_squared;
mod harmonic;

use galamost_plugin_api::prelude::*;

/// Parameters of the whole component.
#[derive(Clone, Debug, Params)]
pub struct AngleSettings {
    /// How k is meant.
    #[param(default = Convention::Paper)]
    convention: Convention,
}

/// Parameters of one angle type.
#[derive(Clone, Debug, Params)]
pub struct AngleParameters {
    /// k, stiffness.
    #[param(unit = "energy", at_least = 0.0)]
    k: f64,
    /// θ₀, angle at rest; 180 is a straight line.
    #[param(unit = "degrees", at_least = 0.0, at_most = 180.0)]
    theta0_deg: f64,
}
