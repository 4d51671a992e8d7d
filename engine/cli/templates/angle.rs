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

/// Bending: U(θ) = k (1 + cos θ), least for a straight chain.
///
/// ```ron
/// MyComponent(angles: { "A-A-A": (k: 1.0), "A-A-B": (k: 2.0), "A-B-B": (k: 3.0), "B-B-B": (k: 4.0) })
/// ```
#[angle_potential("MyComponent")]
fn my_component(cos_theta: real, p: &MyComponent<real>) -> (real, real) {
    // (dU/dcos θ, U); offered are cos_theta, sin_theta and theta
    (p.k, p.k * (1.0 + cos_theta))
}
