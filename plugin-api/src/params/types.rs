//! Types of parameters.

use super::fields::FieldDoc;
use super::value::Value;
use crate::error::{Errors, Position};

/// A type that can be parsed from RON, with all mistakes collected.
pub trait FromValue: Sized {
    /// Parses a value. Records mistakes in `errors` and then returns `None`.
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self>;
    /// Describes the type in a few words.
    fn describe() -> String;
    /// Returns the value of a missing field; `None` if the field is required.
    fn absent() -> Option<Self> {
        None
    }
    /// Calls `f` with every number in the value, for range checks.
    fn each_number(&self, _f: &mut dyn FnMut(f64)) {}
    /// Returns the documentation of the fields of a struct or of a table of structs.
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
    u64: "a non-negative integer", |x| *x as f64;
    u32: "a non-negative integer", |x| f64::from(*x);
    i64: "an integer", |x| *x as f64;
    i32: "an integer", |x| f64::from(*x);
    bool: "true or false";
    String: "text in quotes";
}

/// Shortens a text for a message.
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
            // 2 N numbers may be N numbers with decimal commas
            let comma = if elements.len() == 2 * N { value.decimal_comma() } else { None };
            let hint = comma.map_or(String::new(), |c| format!("; {c}"));
            errors.push(value.error(format!("expected {N} values, found {}{hint}", elements.len())));
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

/// A value with its position in the file, for mistakes that are detected later.
#[derive(Clone, Debug, PartialEq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Position in the file.
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

/// Convention of the force constant k of a harmonic potential.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Convention {
    /// U = k (x − x₀)², as in the GALAMOST paper.
    #[default]
    Paper,
    /// U = ½ k (x − x₀)², as in most other engines. k is halved on input.
    Half,
}

impl Convention {
    /// Returns the factor that converts the user's k to the convention of the paper.
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

/// An axis of the box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// The first axis.
    X,
    /// The second axis.
    Y,
    /// The third axis; not available in two dimensions.
    Z,
}

impl Axis {
    /// Returns the unit vector along the axis.
    pub fn unit(self) -> [f64; 3] {
        std::array::from_fn(|k| if k == self as usize { 1.0 } else { 0.0 })
    }
}

impl FromValue for Axis {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.text() {
            "X" => Some(Self::X),
            "Y" => Some(Self::Y),
            "Z" => Some(Self::Z),
            _ => {
                errors.push(value.error(format!("expected {}", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "`X`, `Y` or `Z`".into()
    }
}
