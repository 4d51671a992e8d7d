//! Types a parameter may have.

use super::fields::{FieldDoc, Range};
use super::tables::unknown_type;
use super::value::Value;
use crate::component::{GroupNeed, SystemInfo};
use crate::error::{Error, Errors, Position, Result};

/// A type that can be read from RON with all its mistakes.
pub trait FromValue: Sized {
    /// Reads a value; mistakes go to `errors`, and then there is no value.
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self>;
    /// The type in a few words.
    fn describe() -> String;
    /// What it means that the field is not there.
    fn absent() -> Option<Self> {
        None
    }
    /// Calls `f` with every number in it, for checks of range.
    fn each_number(&self, _f: &mut dyn FnMut(f64)) {}
    /// Documentation of the fields inside, for a struct or a table of structs.
    fn fields() -> Vec<FieldDoc> {
        vec![]
    }
}

macro_rules! leaf {
    ($($t:ty: $words:literal $(, $number:expr)?;)+) => {$(
        impl FromValue for $t {
            fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
                match value.parse() {
                    Ok(x) => Some(x),
                    Err(_) => {
                        errors.push(value.error(format!("expected {}, found `{}`", $words, short(value.text()))));
                        None
                    }
                }
            }
            fn describe() -> String {
                $words.into()
            }
            $(fn each_number(&self, f: &mut dyn FnMut(f64)) {
                let number: fn(&Self) -> f64 = $number;
                f(number(self));
            })?
        }
    )+};
}
leaf! {
    f64: "a number", |x| *x;
    f32: "a number", |x| f64::from(*x);
    u64: "a whole number from 0", |x| *x as f64;
    u32: "a whole number from 0", |x| f64::from(*x);
    i64: "a whole number", |x| *x as f64;
    i32: "a whole number", |x| f64::from(*x);
    bool: "true or false";
    String: "text in quotes";
}

/// A text cut to the length of a message.
fn short(text: &str) -> String {
    let line = text.lines().next().unwrap_or("");
    match line.char_indices().nth(40) {
        Some((n, _)) => format!("{}…", &line[..n]),
        None if line.len() < text.len() => format!("{line}…"),
        None => line.into(),
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn fields() -> Vec<FieldDoc> {
        T::fields()
    }
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        if value.text() == "None" {
            return Some(None);
        }
        T::from_value(value, errors).map(Some)
    }
    fn describe() -> String {
        T::describe()
    }
    fn absent() -> Option<Self> {
        Some(None)
    }
    fn each_number(&self, f: &mut dyn FnMut(f64)) {
        if let Some(x) = self {
            x.each_number(f);
        }
    }
}

impl<T: FromValue> FromValue for Vec<T> {
    fn fields() -> Vec<FieldDoc> {
        T::fields()
    }
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let elements = errors.absorb(value.elements())?;
        let all: Vec<_> = elements.iter().filter_map(|v| T::from_value(*v, errors)).collect();
        (all.len() == elements.len()).then_some(all)
    }
    fn describe() -> String {
        format!("a list of: {}", T::describe())
    }
    fn each_number(&self, f: &mut dyn FnMut(f64)) {
        self.iter().for_each(|x| x.each_number(f));
    }
}

impl<T: FromValue, const N: usize> FromValue for [T; N] {
    fn fields() -> Vec<FieldDoc> {
        T::fields()
    }
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let elements = errors.absorb(value.elements())?;
        if elements.len() != N {
            errors.push(value.error(format!("expected {N} values, found {}", elements.len())));
            return None;
        }
        let all: Vec<_> = elements.iter().filter_map(|v| T::from_value(*v, errors)).collect();
        all.try_into().ok()
    }
    fn describe() -> String {
        format!("{N} values, each: {}", T::describe())
    }
    fn each_number(&self, f: &mut dyn FnMut(f64)) {
        self.iter().for_each(|x| x.each_number(f));
    }
}

/// A value that remembers where it stands, for mistakes that show only later.
#[derive(Clone, Debug, PartialEq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub at: Position,
}

impl<T: FromValue> FromValue for Spanned<T> {
    fn fields() -> Vec<FieldDoc> {
        T::fields()
    }
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        T::from_value(value, errors).map(|v| Self { value: v, at: value.at() })
    }
    fn describe() -> String {
        T::describe()
    }
    fn each_number(&self, f: &mut dyn FnMut(f64)) {
        self.value.each_number(f);
    }
}

/// The particles a component acts on.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Group {
    /// Every particle.
    #[default]
    All,
    /// Particles of these types: `Types(["A", "B"])`.
    Types(Vec<Spanned<String>>),
    /// Particles with tags in first … last, both included: `Tags(first: 0, last: 99)`.
    Tags {
        /// The first tag.
        first: u32,
        /// The last tag.
        last: u32,
    },
}

impl Group {
    /// The group with types as numbers, for [`crate::component::Needs::group`].
    ///
    /// # Errors
    /// Types and tags that do not exist.
    pub fn need(&self, system: &SystemInfo) -> Result<GroupNeed> {
        match self {
            Self::All => Ok(GroupNeed::All),
            Self::Types(names) => {
                let mut errors = Errors::default();
                let mut types = vec![];
                for name in names {
                    match system.types.iter().position(|t| *t == name.value) {
                        Some(i) => types.push(i as u32),
                        None => errors.push(unknown_type(name.at, &name.value, "particle", &system.types)),
                    }
                }
                errors.into_result(Some(GroupNeed::Types(types)))
            }
            Self::Tags { first, last } if first > last || u64::from(*last) >= system.n => Err(Error::input(format!(
                "there are no particles with tags {first} … {last}: the last tag is {}",
                system.n.saturating_sub(1)
            ))),
            Self::Tags { first, last } => Ok(GroupNeed::Tags(*first, *last)),
        }
    }
}

impl FromValue for Group {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.name() {
            Some("All") => Some(Self::All),
            Some("Types") => {
                let inner = value.after_name().and_then(|v| errors.absorb(v.elements())).unwrap_or_default();
                match inner.as_slice() {
                    [list] => FromValue::from_value(*list, errors).map(Self::Types),
                    _ => {
                        errors.push(value.error("expected `Types([\"A\", …])`"));
                        None
                    }
                }
            }
            Some("Tags") => {
                let mut fields = super::Fields::new(value, errors)?;
                let first = fields.required("first", Range::ANY);
                let last = fields.required("last", Range::ANY);
                fields.finish();
                Some(Self::Tags { first: first?, last: last? })
            }
            _ => {
                errors.push(value.error(format!("expected {}", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "`All`, `Types([\"A\", …])` or `Tags(first: 0, last: 99)`".into()
    }
}

/// How the user's k of a harmonic form is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Convention {
    /// U = k (x − x₀)², as in the GALAMOST paper.
    #[default]
    Paper,
    /// U = ½ k (x − x₀)², as in most other engines: k is halved on input.
    Half,
}

impl Convention {
    /// What to multiply the user's k with to get the paper's.
    pub fn factor(self) -> f64 {
        match self {
            Self::Paper => 1.0,
            Self::Half => 0.5,
        }
    }
}

impl FromValue for Convention {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.text() {
            "Paper" => Some(Self::Paper),
            "Half" => Some(Self::Half),
            _ => {
                errors.push(value.error(format!("expected {}", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "`Paper` (U = k x²) or `Half` (U = ½ k x²)".into()
    }
}
