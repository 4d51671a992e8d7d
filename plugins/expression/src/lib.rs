//! Potentials and external fields given as formulas, without a compiler.
//!
//! | module | contents |
//! |---|---|
//! | `formula` | parses a formula into a graph, differentiates it, lowers it to a program, writes CUDA C++ |
//! | `compiled` | a formula in the pipeline, checked against its parameters and compiled |
//! | `interpreter` | runs a program on the CPU |
//! | `pair`, `bonded`, `external` | the components |

mod bonded;
mod compiled;
mod external;
mod formula;
mod interpreter;
mod pair;
mod parameters;
#[cfg(test)]
mod tests;

galamost_plugin_api::plugin!();
