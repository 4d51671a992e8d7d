//! The boundary between the engine and a plugin: all types that cross it.
//!
//! # Tables
//! The root module never changes. The engine asks it for tables of functions by name, such as `library/1`. It asks
//! every object that a plugin creates in the same way: `component/1`, `pair/1`, …. A published table never changes. An
//! extension is a new table, and the engine supports the older tables. (`abi_stable` requires that a library is at
//! least as new as its host. A table with an added field would therefore exclude every older plugin.)
//!
//! # Data
//! Data for the setup of a run crosses as RON text, which can grow by fields. Data of every step crosses as plain
//! `#[repr(C)]` structs behind raw pointers: [`calls`] and [`views`].

pub mod calls;
mod globals;
pub mod layout;
pub(crate) mod panic;
pub mod plugin_record;
pub mod services;
mod shared;
mod tables;
pub mod views;
pub mod wire;
mod wire_types;

#[doc(hidden)]
pub use crate::stable::{__call_root_module_loader, CheckTypeLayout, PrefixTypeTrait, RootModuleResult};
pub use crate::stable::{
    Header, Opaque, ROption, RResult, RSlice, RSliceMut, RStr, RString, RVec, Root, RootRef, TablePointer, header,
    load_root,
};
pub use tables::*;
pub use wire_types::*;
