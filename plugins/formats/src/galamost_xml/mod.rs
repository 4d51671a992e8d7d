//! Systems in `galamost_xml` files: read at the start of a run, written while it goes on.

mod analyzer;
mod document;
mod generator;
mod read;
mod report;
mod rows;
mod write;

#[cfg(test)]
mod tests;
