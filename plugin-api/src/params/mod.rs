//! Parameters of components, read from RON with the position of every value.
//!
//! A component declares its parameters as a struct with `#[derive(Params)]`. The derive reads every field, reports
//! unknown and missing fields with their positions, checks ranges, and provides the documentation for `galamost plugins
//! NAME`. All mistakes are reported at once.
//!
//! The `ron` crate parses the text. This module splits it into borrowed pieces (`RawValue`), so that each piece keeps
//! its line and column in the user's file, and parses the leaves with `ron`.

mod fields;
mod group;
mod tables;
mod types;
mod value;
pub mod varying;

pub(crate) use fields::parse;
pub use fields::{FieldDoc, Fields, Params, Range};
pub use group::Group;
pub use tables::{Cell, TypeMap, TypePairs};
pub use types::{Axis, Convention, FromValue, Spanned};
pub use value::{Key, Source, Value};
