//! Formulas: tokens, parser, expression graph, derivatives, programs and CUDA source.

pub mod cuda;
mod derivative;
pub mod graph;
pub mod parse;
pub mod program;
pub mod tokens;
