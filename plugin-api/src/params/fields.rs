//! Named fields of a component's parameters.

use super::types::FromValue;
use super::value::{Key, Value};
use crate::error::{Errors, InputError, Result, nearest};

/// The allowed range of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// Exclusive lower limit.
    pub above: f64,
    /// Inclusive lower limit.
    pub at_least: f64,
    /// Exclusive upper limit.
    pub below: f64,
    /// Inclusive upper limit.
    pub at_most: f64,
}

impl Range {
    /// Any finite number.
    pub const ANY: Self =
        Self { above: f64::NEG_INFINITY, at_least: f64::NEG_INFINITY, below: f64::INFINITY, at_most: f64::INFINITY };

    /// Returns whether `x` is in the range.
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

/// Documentation of one field, as `galamost plugins NAME` prints it.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct FieldDoc {
    /// Name in RON.
    pub name: String,
    /// Type in words: `a number`, `a list of: text in quotes`.
    pub kind: String,
    /// Unit in words, empty if it has none.
    pub unit: String,
    /// The default as RON text; `None` for a required field.
    pub default: Option<String>,
    /// Allowed range in words; empty if there is no limit.
    pub range: String,
    /// Meaning of the field.
    pub doc: String,
    /// Fields of a nested struct.
    pub fields: Vec<FieldDoc>,
    /// For fields that name a file: extensions of the files that the component reads or writes, without the dot. A resumed run
    /// notices other contents of an input, whatever its extension.
    #[serde(default)]
    pub extensions: Vec<String>,
}

/// A struct of parameters. Derive it with [`crate::Params`].
pub trait Params: Sized {
    /// A field is called `r_cut` or `r_on`. A pair potential cannot have such a field, because its component has these fields, unless
    /// it sets `OWN_CUTOFF`: a compile error. The derive macro sets this constant.
    const HAS_CUTOFF: bool = false;
    /// Reads its fields from `fields`; the others stay unread.
    fn take(fields: &mut Fields<'_, '_>) -> Option<Self>;
    /// Returns the documentation of its fields, in order.
    fn docs() -> Vec<FieldDoc>;
}

/// The fields of one struct while they are being read.
pub struct Fields<'a, 'e> {
    value: Value<'a>,
    entries: Vec<(Key<'a>, Value<'a>, bool)>,
    asked: Vec<&'static str>,
    /// Collects the mistakes.
    pub errors: &'e mut Errors,
}

impl<'a, 'e> Fields<'a, 'e> {
    /// Splits `value` into fields. Records a mistake and returns `None` if it is not a struct.
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

    /// Returns the value that contains the fields.
    pub fn value(&self) -> Value<'a> {
        self.value
    }

    /// Returns the text of a field, if given, and marks it as read.
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

    /// Reads a required field. If it is missing, [`FromValue::absent`] provides the value or a mistake is recorded.
    pub fn required<T: FromValue>(&mut self, name: &'static str, range: Range) -> Option<T> {
        match self.raw(name) {
            Some(value) => self.read(value, range),
            None => T::absent().or_else(|| {
                self.errors.push(self.value.error(format!("missing field `{name}` ({})", T::describe())));
                None
            }),
        }
    }

    /// Reads a field with a default.
    pub fn or<T: FromValue>(&mut self, name: &'static str, range: Range, default: impl FnOnce() -> T) -> Option<T> {
        match self.raw(name) {
            Some(value) => self.read(value, range),
            None => Some(default()),
        }
    }

    /// Returns the key of a field that belongs to another component, if given, and marks it as read.
    pub fn stray(&mut self, name: &str) -> Option<Key<'a>> {
        let entry = self.entries.iter_mut().find(|(k, _, used)| !used && k.name == name)?;
        entry.2 = true;
        Some(entry.0.clone())
    }

    /// Returns the unread fields in order and marks them as read.
    pub fn rest(&mut self) -> Vec<(Key<'a>, Value<'a>)> {
        let left = self.entries.iter_mut().filter(|(.., used)| !used);
        left.map(|entry| {
            entry.2 = true;
            (entry.0.clone(), entry.1)
        })
        .collect()
    }

    /// Reports all unread fields as unknown.
    pub fn finish(self) {
        for (key, _, used) in &self.entries {
            if !used {
                self.errors.push(unknown(key, &self.asked));
            }
        }
    }
}

fn unknown(key: &Key<'_>, asked: &[&'static str]) -> InputError {
    // a field may be asked for twice
    let mut known: Vec<&str> = vec![];
    for name in asked {
        if !known.contains(name) {
            known.push(name);
        }
    }
    let hint = match nearest(&key.name, known.iter().copied()) {
        Some(n) => format!("did you mean `{n}`?"),
        None if known.is_empty() => "no fields are allowed here".into(),
        None => format!("the fields are {}", known.join(", ")),
    };
    key.error(format!("unknown field `{}`; {hint}", key.name))
}

/// Parses a component's struct.
pub(crate) fn parse<T: FromValue>(value: Value<'_>) -> Result<T> {
    let mut errors = Errors::default();
    let made = T::from_value(value, &mut errors);
    errors.into_result(made)
}

#[cfg(test)]
#[allow(dead_code, reason = "only the names of the fields matter")]
mod tests {
    use super::Params;

    #[derive(galamost_plugin_macros::Params)]
    struct Named {
        #[param(name = "r_cut", default = 1.0, above = 0.0)]
        range: f64,
    }

    #[derive(galamost_plugin_macros::Params)]
    struct Flattened {
        k: f64,
        #[param(flatten)]
        inner: Named,
    }

    #[derive(galamost_plugin_macros::Params)]
    struct Other {
        r_max: f64,
    }

    #[test]
    fn fields_with_the_name_of_a_cutoff_are_found() {
        assert_eq!([Named::HAS_CUTOFF, Flattened::HAS_CUTOFF, Other::HAS_CUTOFF], [true, true, false]);
    }
}
