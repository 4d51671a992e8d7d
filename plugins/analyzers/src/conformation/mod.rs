//! Sizes and shapes of molecules: `gyration.rs` (gyration tensor), `internal.rs` (internal distances of chains).

mod gyration;
mod internal;
