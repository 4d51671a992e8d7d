//! All tests of the workspace as a whole, in one program. If you add something:
//!
//! * a new example: `examples.rs` runs it as it is; give its expectation there.
//! * a page of the book: `book.rs` checks its links, pipelines, and commands; blocks marked `sh,run` are run.
//! * a mistake a user can make: a file in `bad/`, with the message behind `//^` under its place.
//! * numbers a component must give: a file in `reference/`.
//! * a construct of the device language: `language/generator.rs` writes random functions with it.
//! * a kernel: `kernels.rs` compiles it, `emulated.rs` runs it on the emulated device.
//! * a kind of plugin that must be taken or refused: `abi.rs`; a method that may break: `tripping.rs`.
//! * physics that takes minutes: `physics.rs`, behind `--ignored`.

mod abi;
mod arrows;
mod bad;
mod barostats;
mod bench;
mod book;
mod budget;
mod builder;
mod checkpoints;
mod distributions;
mod dynamics;
mod emulated;
mod examples;
mod expression;
mod faults;
mod files;
mod fixtures;
mod formats;
mod frozen;
mod fuzzing;
mod guide;
mod house;
mod ibi;
mod kernels;
mod language;
mod many_body;
mod md_scf;
mod molecules;
mod movers;
mod new;
mod observables;
mod overhead;
mod pair_thermostats;
mod parquet;
mod physics;
mod pictures;
mod plugins;
mod reactions;
mod reference;
mod restart;
mod reverse;
mod rosenbluth;
mod rotation;
mod several;
mod shear;
mod steps;
mod stranger;
mod tables;
mod tripping;
mod walls;
