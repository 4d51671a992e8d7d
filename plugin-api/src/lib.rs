//! What a GALAMOST plugin and the engine both know.
//!
//! A plugin is one cdylib that registers components; a component is named by what it does to the state
//! ([`component::Kind`]). The smallest plugin is one function and one struct:
//!
//! ```
//! # #![allow(non_camel_case_types)]
//! use galamost_plugin_api::prelude::*;
//!
//! galamost_plugin_api::plugin!();
//!
//! /// Screened Coulomb: U(r) = ε exp(−κ r)/r.
//! #[derive(PairParams)]
//! pub struct Yukawa<real> {
//!     /// ε, energy × length
//!     epsilon: real,
//!     /// κ, 1/length
//!     kappa: real,
//! }
//!
//! /// Screened Coulomb: U(r) = ε exp(−κ r)/r.
//! #[pair_potential("Yukawa")]
//! fn yukawa(r2: real, p: &Yukawa<real>) -> (real, real) {
//!     let r = r2.sqrt();
//!     let u = p.epsilon * (-p.kappa * r).exp() / r;
//!     (u * (p.kappa * r + 1.0) / r2, u)
//! }
//! # fn main() {}
//! ```
//!
//! * [`pair`], [`bonded`], [`mod@bond_potential`]: potentials; the engine owns the loop.
//! * [`external`]: forces on each particle by itself, written as one function.
//! * [`force`], [`updater`], [`analyzer`], [`generator`], [`integrator`], [`sampler`]: the other kinds.
//! * [`params`]: parameters from RON, with all mistakes found at once.
//! * [`language`]: the device language, in which potentials and functions of integrators are written.
//! * [`real`], [`vector`], [`quaternion`], [`philox`], [`precision`]: the device language's values, and how state is stored.
//! * [`lanes`]: vectors of the CPU loops.
//! * [`views`], [`device`], [`services`]: what crosses to kernels and in every step.
//! * [`abi`], [`guard`], [`layout`], [`record`], [`wire`]: the boundary itself; authors need not look at it.
//! * [`testkit`]: the tests that the macros emit.

#![deny(missing_docs)]

// the macros name this crate by its name, also in here
extern crate self as galamost_plugin_api;

pub mod abi;
#[doc(hidden)]
pub mod adapters;
pub mod device;
pub mod error;
mod kinds;
#[doc = include_str!("language.md")]
pub mod language {}
pub mod output;
pub mod params;
pub mod snapshot;
mod system;
pub mod testkit;

pub use abi::{layout, plugin_record, services, views, wire};
pub use device::{lanes, math, philox, precision, quaternion, real, rotation, vector};
pub use kinds::bonded::potential as bond_potential;
pub use kinds::{analyzer, bonded, component, external, force, generator, integrator, pair, sampler, updater};
pub use params::varying;

#[doc(hidden)]
pub use inventory;

pub use galamost_plugin_macros::{
    DeviceStruct, PairParams, Params, angle_potential, bond_potential, component, device_fn, dihedral_potential,
    external_potential, oriented_pair_potential, pair_potential, particle_fn, scalar_fn,
};
pub use real::Real;

/// What a plugin usually needs.
pub mod prelude {
    pub use crate::analyzer::{Analyzer, Frame};
    pub use crate::component::{ArrayNeed, GroupNeed, Needs, SystemInfo, Wants};
    pub use crate::error::{Error, Errors, InputError, Result};
    pub use crate::external::ExternalParams;
    pub use crate::force::{Force, ForceCall};
    pub use crate::generator::{Generator, GeneratorContext};
    pub use crate::integrator::{GroupInfo, Integrator, NoArrays, NoState, Particle, Program};
    pub use crate::output::RowFile;
    pub use crate::pair::{NoSettings, RowInput};
    pub use crate::params::{Axis, Convention, Group, Spanned, TypeMap};
    pub use crate::philox::Random;
    pub use crate::quaternion::Quaternion;
    pub use crate::real::Real;
    pub use crate::sampler::Sampler;
    pub use crate::services::{Host, Level};
    pub use crate::snapshot::{Array, Link, Snapshot, Values};
    pub use crate::updater::{Edit, UpdateCall, Updater};
    pub use crate::varying::Varying;
    pub use crate::vector::Vec3;
    pub use crate::views::{SimBox, Step, Sums};
    pub use crate::{
        DeviceStruct, PairParams, Params, angle_potential, bond_potential, component, device_fn, dihedral_potential,
        external_potential, oriented_pair_potential, pair_potential, particle_fn, scalar_fn,
    };
}
