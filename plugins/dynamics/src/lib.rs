//! How a system moves and scatters: mean-square displacements, velocity autocorrelation, intermediate scattering, S(q), sizes of
//! domains.
//!
//! `lags.rs` says which earlier samples a sample is compared with; `follow.rs` follows positions through a box
//! that changes; `frames.rs` keeps samples and compares them, on the CPU and by the
//! kernels of `correlate.cuh`, for `msd.rs`, `vacf.rs` and the self part of `scattering.rs`. `waves.rs` sums density waves,
//! by `waves.cuh` on a device, for `structure.rs`, `domains.rs` and the coherent part of `scattering.rs`; `turns.rs` is their cosine.

mod domains;
mod follow;
mod frames;
mod frames_device;
mod items;
mod lags;
mod msd;
mod scattering;
mod structure;
mod turns;
mod vacf;
mod waves;

galamost_plugin_api::plugin!();
