//! PDB files (wwPDB format 3.3): `columns.rs` knows the fields of their lines, `common.rs` what stands once for all frames, `read.rs`
//! takes a frame out of a file, `write.rs` makes the text of one.

mod analyzer;
mod columns;
mod common;
mod generator;
mod read;
#[cfg(test)]
mod tests;
mod write;
