//! An angle potential.
#![allow(non_camel_case_types)]
use galamost_plugin_api::prelude::*;

galamost_plugin_api::plugin!();

/// Parameters of one angle type.
#[derive(Debug, PairParams)]
pub struct MyComponent<real> {
    /// k, stiffness.
    #[param(unit = "energy", at_least = 0.0)]
    k: real,
}

/// Cosine angle potential: U(θ) = k (1 + cos θ), with the minimum at a straight chain (θ = 180°).
///
/// ```ron
/// MyComponent(angles: { "A-A-A": (k: 1.0), "A-A-B": (k: 2.0), "A-B-B": (k: 3.0), "B-B-B": (k: 4.0) })
/// ```
#[angle_potential("MyComponent")]
fn my_component(cos_theta: real, p: &MyComponent<real>) -> (real, real) {
    // returns (dU/dcos θ, U); possible arguments are cos_theta, sin_theta and theta
    (p.k, p.k * (1.0 + cos_theta))
}
