//! Extended XYZ files: `read.rs` takes a frame out of a file, `write.rs` makes the text of one, `comment.rs` reads the line between.

mod analyzer;
mod comment;
mod generator;
mod read;
#[cfg(test)]
mod tests;
mod write;
