//! PDB files (wwPDB format 3.3): `columns.rs` parses fields, `common.rs` the records that apply to all frames,
//! `read.rs` reads a frame, `write.rs` formats one.

mod analyzer;
mod columns;
mod common;
mod generator;
mod read;
#[cfg(test)]
mod tests;
mod write;
