//! `galamost_xml` files: `document.rs` parses the XML, `rows.rs` the text of nodes, `read.rs` builds a state,
//! `write.rs` formats one.

mod analyzer;
mod document;
mod generator;
pub(crate) mod read;
mod report;
mod rows;
mod write;

#[cfg(test)]
mod tests;
