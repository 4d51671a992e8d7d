//! An improper potential.
#![allow(non_camel_case_types)]
use galamost_plugin_api::prelude::*;

galamost_plugin_api::plugin!();

/// Parameters of one improper type.
#[derive(Debug, PairParams)]
pub struct MyComponent<real> {
    /// k, half of the barrier height.
    #[param(unit = "energy")]
    k: real,
}

/// Planar improper potential: U(φ) = k (1 − cos 2φ).
///
/// ```ron
/// MyComponent(impropers: { "A-A-A-A": (k: 0.5), "A-A-A-B": (k: 0.4), "A-A-B-B": (k: 0.3), "A-B-B-B": (k: 0.2),
///     "B-B-B-B": (k: 0.1) })
/// ```
#[improper_potential("MyComponent")]
fn my_component(phi: real, p: &MyComponent<real>) -> (real, real) {
    // returns (dU/dφ, U); φ is the angle of a dihedral of the four particles, 0 for cis, ±180° for trans
    (2.0 * p.k * (2.0 * phi).sin(), p.k * (1.0 - (2.0 * phi).cos()))
}
