//! All tests of the workspace as a whole, in one program. If you add something:
//!
//! * a new example: it is run by `examples.rs` as it is; give its expectation there.
//! * a mistake a user can make: a file in `bad/`, with the message behind `//^`.
//! * numbers a component must give: a file in `reference/`.
//! * a kernel: `kernels.rs` compiles it and runs it on the emulated device.

mod kernels;
