//! Generators: surfaces with initiators, and types of bonds that appear during a run.

mod link_types;
mod surface;
