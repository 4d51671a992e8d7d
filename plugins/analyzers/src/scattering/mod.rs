//! Scattering: static structure factor, intermediate scattering functions, domain sizes.
//!
//! `waves.rs` sums density waves, on a device with the kernels of `waves.cuh`; `turns.rs` computes their cosine.
//! `structure.rs`, `domains.rs`, and `intermediate.rs` are the components.

mod domains;
mod intermediate;
mod structure;
mod turns;
mod waves;
