//! Sizes and shapes of molecules: `gyration.rs` has a row for each sample, `internal.rs` distances along chains.

mod gyration;
mod internal;
