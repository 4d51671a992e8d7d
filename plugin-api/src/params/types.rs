//! Types a parameter may have.

use super::fields::{FieldDoc, Range};
use super::tables::unknown_type;
use super::value::Value;
use crate::component::{GroupNeed, SystemInfo};
use crate::error::{Error, Errors, InputError, Position, Result};

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
    /// Particles of the molecules first … last, both included, by the array `molecule` of the initial state:
    /// `Molecules(first: 0, last: 9)`.
    Molecules {
        /// The first molecule.
        first: i32,
        /// The last molecule.
        last: i32,
        /// Where it stands.
        at: Position,
    },
    /// Particles whose initial position is in min ≤ r < max: `Box(min: [-5.0, -5.0, -5.0], max: [5.0, 5.0, 0.0])`.
    Box {
        /// Lower corner.
        min: [f64; 3],
        /// Upper corner.
        max: [f64; 3],
    },
    /// All other particles: `Not(Types(["A"]))`.
    Not(Box<Group>),
    /// Particles that are in all of the groups: `And([Types(["A"]), Not(Tags(first: 0, last: 9))])`.
    And(Vec<Group>),
    /// Particles that are in at least one of the groups: `Or([Tags(first: 0, last: 9), Tags(first: 20, last: 29)])`.
    Or(Vec<Group>),
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
            Self::Molecules { at, .. } if !system.arrays.iter().any(|a| a == "molecule") => {
                Err(InputError::at(*at, "the initial state does not say which molecule a particle belongs to").into())
            }
            Self::Molecules { first, last, .. } => Ok(GroupNeed::Molecules(*first, *last)),
            Self::Box { min, max } => Ok(GroupNeed::Box(*min, *max)),
            Self::Not(group) => Ok(GroupNeed::Not(Box::new(group.need(system)?))),
            Self::And(groups) => Ok(GroupNeed::And(Self::needs(groups, system)?)),
            Self::Or(groups) => Ok(GroupNeed::Or(Self::needs(groups, system)?)),
        }
    }
}

impl Group {
    /// Each of some groups, with the mistakes of all of them.
    fn needs(groups: &[Self], system: &SystemInfo) -> Result<Vec<GroupNeed>> {
        let mut errors = Errors::default();
        let mut needs = vec![];
        for g in groups {
            match g.need(system) {
                Ok(n) => needs.push(n),
                Err(Error::Input(list)) => list.into_iter().for_each(|e| errors.push(e)),
                Err(e) => return Err(e),
            }
        }
        errors.into_result(Some(needs))
    }

    /// The one value in the brackets behind a name.
    fn inner<T: FromValue>(value: Value<'_>, errors: &mut Errors) -> Option<T> {
        let inner = value.after_name().and_then(|v| errors.absorb(v.elements())).unwrap_or_default();
        match inner.as_slice() {
            [one] => T::from_value(*one, errors),
            _ => {
                errors.push(value.error(format!("expected {}", Self::describe())));
                None
            }
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
            Some("Molecules") => {
                let mut fields = super::Fields::new(value, errors)?;
                let first = fields.required("first", Range::ANY);
                let last = fields.required("last", Range::ANY);
                fields.finish();
                Some(Self::Molecules { first: first?, last: last?, at: value.at() })
            }
            Some("Box") => {
                let mut fields = super::Fields::new(value, errors)?;
                let min: Option<[f64; 3]> = fields.required("min", Range::ANY);
                let max: Option<[f64; 3]> = fields.required("max", Range::ANY);
                fields.finish();
                let (min, max) = (min?, max?);
                if min.iter().zip(&max).any(|(a, b)| a > b) {
                    errors.push(value.error("no component of `min` may be above that of `max`"));
                    return None;
                }
                Some(Self::Box { min, max })
            }
            Some("Not") => Self::inner(value, errors).map(|g| Self::Not(Box::new(g))),
            Some("And") => Self::inner(value, errors).map(Self::And),
            Some("Or") => Self::inner(value, errors).map(Self::Or),
            _ => {
                errors.push(value.error(format!("expected {}", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "`All`, `Types([\"A\", …])`, `Tags(first: 0, last: 99)`, `Molecules(first: 0, last: 9)`, `Box(min: [x, y, z], \
         max: [x, y, z])`, `Not(group)`, `And([group, …])` or `Or([group, …])`"
            .into()
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

/// An axis of the box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// The first.
    X,
    /// The second.
    Y,
    /// The third; there is none in two dimensions.
    Z,
}

impl Axis {
    /// The unit vector along it.
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
