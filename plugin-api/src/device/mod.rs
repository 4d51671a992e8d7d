//! The device language on the CPU: its values and functions, and what crosses from Rust to CUDA C++.

pub mod lanes;
pub mod math;
pub mod philox;
mod pointer;
pub mod precision;
pub mod quaternion;
pub mod real;
pub mod rotation;
mod text;
pub mod vector;

pub use pointer::DevicePtr;
pub use text::{CxxStruct, DeviceFn, DeviceStruct, DeviceText, assemble, bytes_of};
