//! Parameters: RON text with the place of every value, read so that all mistakes are found at once.
//!
//! The `ron` crate reads the text; this module only cuts it into borrowed pieces (`RawValue`), so that each piece
//! still knows its line and column in the user's file, and asks `ron` again for the leaves. A component declares
//! its parameters as a struct with `#[derive(Params)]`; the derive reads every field, reports unknown and missing
//! ones with their place, checks ranges, and keeps the field's documentation for `galamost plugins NAME`.

mod fields;
mod group;
mod tables;
mod types;
mod value;
pub mod varying;

pub(crate) use fields::parse;
pub use fields::{FieldDoc, Fields, Params, Range};
pub use group::Group;
pub use tables::{TypeMap, TypePairs};
pub use types::{Axis, Convention, FromValue, Spanned};
pub use value::{Key, Source, Value};
