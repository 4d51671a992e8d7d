//! Potentials and external fields given as formulas, for researchers who have a formula and no compiler.
//!
//! `formula/` reads a formula into a graph, derives it and makes a list of operations; `law.rs` is a formula with its
//! parameters as a component reads it; `machine.rs` runs a list of operations on the CPU, `formula/cuda.rs` writes it as
//! CUDA C++. Each kind of component then is one file.

mod external;
mod formula;
mod law;
mod links;
mod machine;
mod numbers;
mod pair;
#[cfg(test)]
mod tests;

galamost_plugin_api::plugin!();
