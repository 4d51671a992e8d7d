//! Dynamics of particles and molecules: mean-square displacement and velocity autocorrelation.
//!
//! `lags.rs` selects the earlier samples that a sample is compared with. `follow.rs` unwraps positions in a changing
//! box. `frames.rs` stores samples and compares them, on the CPU and with the kernels of `correlate.cuh`. `series.rs`
//! writes tables of averages over lags. `msd.rs` and `vacf.rs` are the components; `scattering` uses the same samples.

mod follow;
pub mod frames;
mod frames_device;
pub mod items;
pub mod lags;
mod msd;
mod series;
mod vacf;
