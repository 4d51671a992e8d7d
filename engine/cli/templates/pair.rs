//! A pair potential.
#![allow(non_camel_case_types)]
use galamost_plugin_api::prelude::*;

galamost_plugin_api::plugin!();

/// Parameters of one pair of types, for the pipeline and for the Rust and CUDA code.
#[derive(Debug, PairParams)]
pub struct MyComponent<real> {
    /// ε, strength.
    #[param(unit = "energy × length", at_least = 0.0)]
    epsilon: real,
    /// κ, inverse screening length.
    #[param(unit = "1/length", at_least = 0.0)]
    kappa: real,
}

/// Screened Coulomb interaction: U(r) = ε exp(−κ r) / r.
///
/// ```ron
/// MyComponent(r_cut: 2.5, pairs: { ("A", "A"): (epsilon: 1.0, kappa: 1.0), ("A", "B"): (epsilon: 0.5, kappa: 1.0),
///     ("B", "B"): (epsilon: 1.0, kappa: 2.0) })
/// ```
#[pair_potential("MyComponent")]
fn my_component(r2: real, p: &MyComponent<real>) -> (real, real) {
    let r = r2.sqrt();
    let u = p.epsilon * (-p.kappa * r).exp() / r;
    // returns (F/r, U) with F = −dU/dr; the engine applies cutoff, modes and exclusions, and sums energy and virial
    (u * (p.kappa * r + 1.0) / r2, u)
}
