//! Parameters: RON text with the place of every value, read so that all mistakes are found at once.
//!
//! The `ron` crate reads the text; this module only cuts it into borrowed pieces (`RawValue`), so that each piece
//! still knows its line and column in the user's file, and asks `ron` again for the leaves. A component declares
//! its parameters as a struct with `#[derive(Params)]`; the derive reads every field, reports unknown and missing
//! ones with their place, checks ranges, and keeps the field's documentation for `galamost plugins NAME`.

mod fields;
mod tables;
mod types;
mod value;

pub use fields::{FieldDoc, Fields, Params, Range};
pub use tables::{TypeMap, TypePairs};
pub use types::{Axis, Convention, FromValue, Group, Spanned};
pub use value::{Key, Source, Value};
