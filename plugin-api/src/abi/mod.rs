//! The boundary between the engine and a plugin.
//!
//! The root module is frozen for ever and is asked for tables by name: `library/1`, later perhaps `library/2`. Every
//! object made by a plugin is asked the same way: `component/1`, `pair/1`, …. A published table never changes;
//! growth is a new table, and the engine adapts the older ones it still knows. (abi_stable compares layouts so that
//! a library must be at least as new as its host; a table that grew by one field would shut out every older plugin.)
//!
//! What is exchanged while a run is set up crosses as RON text, so that it can grow by fields. What is exchanged in
//! every step crosses as plain `#[repr(C)]` structs ([`crate::views`]) behind raw pointers.

mod adapter;
mod globals;
pub mod guard;
pub mod layout;
pub mod record;
pub mod services;
mod stable;
mod tables;
pub mod views;
pub mod wire;
mod wire_types;

pub(crate) use adapter::{AnalyzerAdapter, ForceAdapter, GeneratorAdapter, SamplerAdapter, UpdaterAdapter};
#[doc(hidden)]
pub use stable::{__call_root_module_loader, CheckTypeLayout, PrefixTypeTrait, RootModuleResult};
pub use stable::{
    Header, Opaque, ROption, RResult, RSlice, RSliceMut, RStr, RString, RVec, Root, RootRef, Table, header, load_root,
};
pub use tables::*;
pub use wire_types::*;
