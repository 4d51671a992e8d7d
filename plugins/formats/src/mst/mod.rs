//! MST files, the format of PyGAMD: `read.rs` makes a state of one, `write.rs` the text of one.

mod analyzer;
mod generator;
mod keys;
mod read;
#[cfg(test)]
mod tests;
mod write;
