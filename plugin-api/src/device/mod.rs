//! The device language at run time: its values and functions on the CPU, their text for CUDA C++, and stored formats.

pub mod lanes;
pub mod math;
pub mod philox;
mod plain;
mod pointer;
pub mod precision;
pub mod quaternion;
pub mod real;
pub mod rotation;
pub mod scaling;
mod text;
pub mod tilt;
pub mod vector;

pub use plain::{Plain, bytes_of, from_bytes};
pub use pointer::DevicePtr;
#[doc(hidden)]
pub use text::layout_checks;
pub use text::{CxxStruct, DeviceFn, DeviceStruct, DeviceText, assemble, assemble_header, constants, kernel_source};
