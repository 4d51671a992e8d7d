//! The named fields of a component's parameters.

use super::types::FromValue;
use super::value::{Key, Value};
use crate::error::{Errors, InputError, Result, nearest};

/// The numbers a parameter may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// Every number must be above this.
    pub above: f64,
    /// Every number must be at least this.
    pub at_least: f64,
    /// Every number must be below this.
    pub below: f64,
    /// Every number must be at most this.
    pub at_most: f64,
}

impl Range {
    /// Any finite number.
    pub const ANY: Self =
        Self { above: f64::NEG_INFINITY, at_least: f64::NEG_INFINITY, below: f64::INFINITY, at_most: f64::INFINITY };

    /// Whether `x` is allowed.
    pub fn contains(&self, x: f64) -> bool {
        x.is_finite() && x > self.above && x >= self.at_least && x < self.below && x <= self.at_most
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts = vec![];
        let mut part = |word, x: f64| {
            if x.is_finite() {
                parts.push(format!("{word} {x}"));
            }
        };
        part("above", self.above);
        part("at least", self.at_least);
        part("below", self.below);
        part("at most", self.at_most);
        if parts.is_empty() {
            parts.push("finite".into());
        }
        f.write_str(&parts.join(" and "))
    }
}

/// What `galamost plugins NAME` prints about one field.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct FieldDoc {
    /// Name in RON.
    pub name: String,
    /// Type in words: `number`, `list of text`.
    pub kind: String,
    /// Unit in words, empty if it has none.
    pub unit: String,
    /// The default as RON text; `None` for a required field.
    pub default: Option<String>,
    /// Allowed numbers in words, empty if any.
    pub range: String,
    /// What it means.
    pub doc: String,
    /// Fields of a nested struct.
    pub fields: Vec<FieldDoc>,
    /// Of a field that names a file: the endings of the names of files that the component reads or writes, without a point.
    #[serde(default)]
    pub extensions: Vec<String>,
}

/// A struct of parameters; derive it.
pub trait Params: Sized {
    /// Reads its fields out of `fields` and leaves the others.
    fn take(fields: &mut Fields<'_, '_>) -> Option<Self>;
    /// Documentation of its fields, in order.
    fn docs() -> Vec<FieldDoc>;
}

/// The fields of one struct in the file while they are being read.
pub struct Fields<'a, 'e> {
    value: Value<'a>,
    entries: Vec<(Key<'a>, Value<'a>, bool)>,
    asked: Vec<&'static str>,
    /// Where mistakes are noted.
    pub errors: &'e mut Errors,
}

impl<'a, 'e> Fields<'a, 'e> {
    /// The fields of `value`; a mistake and `None` if it is no struct.
    pub fn new(value: Value<'a>, errors: &'e mut Errors) -> Option<Self> {
        let list = errors.absorb(value.entries())?;
        let mut entries: Vec<(Key<'a>, Value<'a>, bool)> = vec![];
        for (key, v) in list {
            if entries.iter().any(|(k, ..)| k.name == key.name) {
                errors.push(key.error(format!("field `{}` is given twice", key.name)));
            } else {
                entries.push((key, v, false));
            }
        }
        Some(Self { value, entries, asked: vec![], errors })
    }

    /// The struct these fields belong to.
    pub fn value(&self) -> Value<'a> {
        self.value
    }

    /// The text of a field, if it is there; it then counts as read.
    pub fn raw(&mut self, name: &'static str) -> Option<Value<'a>> {
        self.asked.push(name);
        let entry = self.entries.iter_mut().find(|(k, ..)| k.name == name)?;
        entry.2 = true;
        Some(entry.1)
    }

    fn read<T: FromValue>(&mut self, value: Value<'a>, range: Range) -> Option<T> {
        let parsed = T::from_value(value, self.errors)?;
        let mut bad = None;
        parsed.each_number(&mut |x| {
            if !range.contains(x) && bad.is_none() {
                bad = Some(x);
            }
        });
        match bad {
            None => Some(parsed),
            Some(x) => {
                self.errors.push(value.error(format!("{x} is not allowed here: it must be {range}")));
                None
            }
        }
    }

    /// A field that must be there, unless its type says what its absence means (`Option`).
    pub fn required<T: FromValue>(&mut self, name: &'static str, range: Range) -> Option<T> {
        match self.raw(name) {
            Some(value) => self.read(value, range),
            None => T::absent().or_else(|| {
                self.errors.push(self.value.error(format!("missing field `{name}` ({})", T::describe())));
                None
            }),
        }
    }

    /// A field with a default.
    pub fn or<T: FromValue>(&mut self, name: &'static str, range: Range, default: impl FnOnce() -> T) -> Option<T> {
        match self.raw(name) {
            Some(value) => self.read(value, range),
            None => Some(default()),
        }
    }

    /// The fields nobody asked for yet, in their order; they then count as read.
    pub fn rest(&mut self) -> Vec<(Key<'a>, Value<'a>)> {
        let left = self.entries.iter_mut().filter(|(.., used)| !used);
        left.map(|entry| {
            entry.2 = true;
            (entry.0.clone(), entry.1)
        })
        .collect()
    }

    /// Reports the fields nobody asked for.
    pub fn finish(self) {
        for (key, _, used) in &self.entries {
            if !used {
                self.errors.push(unknown(key, &self.asked));
            }
        }
    }
}

fn unknown(key: &Key<'_>, known: &[&'static str]) -> InputError {
    let hint = match nearest(&key.name, known.iter().copied()) {
        Some(n) => format!("did you mean `{n}`?"),
        None if known.is_empty() => "there are no fields here".into(),
        None => format!("the fields are {}", known.join(", ")),
    };
    key.error(format!("unknown field `{}`; {hint}", key.name))
}

/// Reads a component's struct.
pub(crate) fn parse<T: FromValue>(value: Value<'_>) -> Result<T> {
    let mut errors = Errors::default();
    let made = T::from_value(value, &mut errors);
    errors.into_result(made)
}
