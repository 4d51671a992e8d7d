//! A bond potential.
#![allow(non_camel_case_types)]
use galamost_plugin_api::prelude::*;

galamost_plugin_api::plugin!();

/// Parameters of one bond type.
#[derive(Debug, PairParams)]
pub struct MyComponent<real> {
    /// k, stiffness.
    #[param(unit = "energy/length²", at_least = 0.0)]
    k: real,
    /// r₀, equilibrium length.
    #[param(unit = "length", at_least = 0.0)]
    r0: real,
}

/// Bond potential, harmonic in r²: U(r) = k (r² − r₀²)²/(4 r₀²).
///
/// ```ron
/// MyComponent(bonds: { "A-A": (k: 10.0, r0: 1.0), "A-B": (k: 10.0, r0: 1.1), "B-B": (k: 10.0, r0: 1.2) })
/// ```
#[bond_potential("MyComponent")]
fn my_component(r2: real, p: &MyComponent<real>) -> (real, real) {
    let r02 = p.r0 * p.r0;
    let stretch = r2 - r02;
    // returns (F/r, U) with F = −dU/dr
    (-p.k * stretch / r02, 0.25 * p.k * stretch * stretch / r02)
}
