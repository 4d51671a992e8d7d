//! Extended XYZ files: `read.rs` reads a frame, `write.rs` formats a frame, `comment.rs` parses the second line of a
//! frame.

mod analyzer;
mod comment;
mod generator;
mod read;
#[cfg(test)]
mod tests;
mod write;
