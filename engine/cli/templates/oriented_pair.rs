//! A pair potential of oriented particles.
#![allow(non_camel_case_types)]
use galamost_plugin_api::prelude::*;

galamost_plugin_api::plugin!();

/// Parameters of one pair of types, for the pipeline and for the Rust and CUDA code.
#[derive(Debug, PairParams)]
pub struct MyComponent<real> {
    /// ε, strength of the repulsion.
    #[param(unit = "energy", at_least = 0.0)]
    epsilon: real,
    /// μ, anisotropy.
    #[param(at_least = 0.0, at_most = 1.0)]
    mu: real,
}

/// Soft repulsion that is weaker along the particle axes: U = ε (1 − r/r_cut)² {1 − μ [(n_i·e)² + (n_j·e)²]/2}, e =
/// r/|r|.
///
/// ```ron
/// MyComponent(r_cut: 1.5, pairs: { ("A", "A"): (epsilon: 20.0, mu: 0.8), ("A", "B"): (epsilon: 20.0, mu: 0.4),
///     ("B", "B"): (epsilon: 25.0, mu: 0.0) })
/// ```
#[oriented_pair_potential("MyComponent")]
fn my_component(
    r: Vec3<real>,
    r2: real,
    r_cut: real,
    axis_i: Vec3<real>,
    axis_j: Vec3<real>,
    p: &MyComponent<real>,
) -> (Vec3<real>, Vec3<real>, real) {
    let inv_r = r2.rsqrt();
    let e = r * inv_r;
    let c_i = axis_i.dot(e);
    let c_j = axis_j.dot(e);
    let depth = 1.0 - r2 * inv_r / r_cut;
    let shape = 1.0 - 0.5 * p.mu * (c_i * c_i + c_j * c_j);
    let u = p.epsilon * depth * depth * shape;
    // ∂U/∂r, ∂U/∂(n_i·e) and ∂U/∂(n_j·e)
    let slope = -2.0 * p.epsilon * depth * shape / r_cut;
    let by_i = -p.epsilon * depth * depth * p.mu * c_i;
    let by_j = -p.epsilon * depth * depth * p.mu * c_j;
    // F = −∂U/∂r e − Σ ∂U/∂(n·e) (n − (n·e) e)/r, τ = n_i × (−∂U/∂n_i)
    let across = (axis_i - e * c_i) * by_i + (axis_j - e * c_j) * by_j;
    (-e * slope - across * inv_r, -axis_i.cross(e) * by_i, u)
}
