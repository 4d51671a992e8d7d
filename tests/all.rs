//! All integration tests of the workspace, in one program. What to extend if you add:
//!
//! * an example: a test in `examples/` runs it and checks its results.
//! * a page of the book: `book.rs` checks its links, pipelines, and commands, and runs blocks marked `sh,run`.
//! * an error message for a mistake in a pipeline: a case in `bad/`, with the message after `//^` below its position.
//! * reference values of a component: a file in `reference/`.
//! * a construct of the device language: `language/generator/` writes random functions that use it.
//! * a kernel: `kernels.rs` compiles it, `emulated.rs` runs it on the emulated device.
//! * a plugin that must be accepted or rejected: `abi.rs`. A plugin method that may panic: `tripping.rs`.
//! * physics that takes minutes: `physics.rs`, which runs with `cargo test -- --ignored`.

mod abi;
mod arrows;
mod bad;
mod barostats;
mod bench;
mod bodies;
mod book;
mod budget;
mod builder;
mod checkpoints;
mod commands;
mod constraints;
mod contact;
mod distributions;
mod drift;
mod dynamics;
mod electrostatics;
mod ellipsoids;
mod emulated;
mod examples;
mod exchange;
mod expression;
mod faults;
mod files;
mod fixtures;
mod force_field;
mod formats;
mod frozen;
mod full_cell;
mod fuzzing;
mod gromacs;
mod guide;
mod harness;
mod house;
mod ibi;
mod kernels;
mod language;
mod limits;
mod many_body;
mod md_scf;
mod molecules;
mod movers;
mod new;
mod notation;
mod observables;
mod outputs;
mod overhead;
mod pair_thermostats;
mod parquet;
mod physics;
mod pictures;
mod plain_list;
mod plugins;
mod processes;
mod pygamd;
mod ranks;
mod reaction_laws;
mod reactions;
mod reference;
mod replicas;
mod restart;
mod resumed;
mod reverse;
mod rosenbluth;
mod rotation;
mod rows;
mod sessions;
mod several;
mod shear;
mod sites;
mod special;
mod staged;
mod steps;
mod stranger;
mod tables;
mod terminal;
mod thermostats;
mod tilted_analyzers;
mod tolerances;
mod triclinic;
mod tripping;
mod walls;
mod watch;
