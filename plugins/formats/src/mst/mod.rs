//! MST files, the format of PyGAMD: `read.rs` reads a state, `write.rs` formats one.

mod analyzer;
mod generator;
mod keys;
mod read;
#[cfg(test)]
mod tests;
mod write;
