//! The compression of positions in XTC files.

pub mod bits;
pub mod decode;
pub mod encode;
