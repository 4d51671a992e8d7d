//! GPU
