//! Parameters by type: one row for each pair of particle types, or for each bond, angle or dihedral type.

use super::types::FromValue;
use super::value::Value;
use crate::error::{Errors, InputError, Position, nearest};

/// Rows keyed by a pair of particle types, `{ ("A", "B"): (…), … }`. The order of the two types does not matter.
#[derive(Clone, Debug, PartialEq)]
pub struct TypePairs<T> {
    rows: Vec<Row<[String; 2], T>>,
    at: Position,
}

/// Rows keyed by a type name, `{ "A-B": (…), … }`.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeMap<T> {
    rows: Vec<Row<String, T>>,
    at: Position,
}

#[derive(Clone, Debug, PartialEq)]
struct Row<K, T> {
    key: K,
    at: Position,
    value: T,
}

fn read<K, T: FromValue>(
    value: Value<'_>,
    errors: &mut Errors,
    key: impl Fn(Value<'_>, &mut Errors) -> Option<K>,
    same: impl Fn(&K, &K) -> bool,
) -> Option<Vec<Row<K, T>>> {
    let entries = errors.absorb(value.map())?;
    let mut rows: Vec<Row<K, T>> = vec![];
    let mut complete = true;
    for (k, v) in entries {
        let row = T::from_value(v, errors);
        match (key(k, errors), row) {
            (Some(name), Some(_)) if rows.iter().any(|r| same(&r.key, &name)) => {
                errors.push(k.error(format!("{} is given twice", k.text())));
                complete = false;
            }
            (Some(key), Some(value)) => rows.push(Row { key, at: k.at(), value }),
            _ => complete = false,
        }
    }
    complete.then_some(rows)
}

/// The required fields of a row, for messages: `(epsilon: …, sigma: …)`.
fn row_example<T: FromValue>() -> String {
    let fields = T::fields();
    let required: Vec<_> = fields.iter().filter(|f| f.default.is_none()).map(|f| format!("{}: …", f.name)).collect();
    match (fields.is_empty(), required.is_empty()) {
        (true, _) => "…".into(),
        (_, true) => "()".into(),
        _ => format!("({})", required.join(", ")),
    }
}

pub(super) fn unknown_type(at: Position, name: &str, what: &str, types: &[String]) -> InputError {
    let hint = match nearest(name, types.iter().map(String::as_str)) {
        Some(n) => format!("did you mean \"{n}\"?"),
        None if types.is_empty() => format!("the system has no {what} types"),
        None => format!("the {what} types are {}", types.join(", ")),
    };
    InputError::at(at, format!("there is no {what} type \"{name}\"; {hint}"))
}

impl<T: FromValue> FromValue for TypePairs<T> {
    fn fields() -> Vec<super::FieldDoc> {
        T::fields()
    }
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let same = |a: &[String; 2], b: &[String; 2]| a == b || (a[0] == b[1] && a[1] == b[0]);
        let rows = read(value, errors, FromValue::from_value, same)?;
        Some(Self { rows, at: value.at() })
    }
    fn describe() -> String {
        format!("for each pair of types {{ (\"A\", \"B\"): … }}: {}", T::describe())
    }
    fn each_number(&self, f: &mut dyn FnMut(f64)) {
        self.rows.iter().for_each(|r| r.value.each_number(f));
    }
}

impl<T> TypePairs<T> {
    /// Creates a table without rows.
    pub fn empty(at: Position) -> Self {
        Self { rows: vec![], at }
    }

    /// Returns the index of the row of types i and j, at i·n + j; see [`Self::get`]. Every pair must have a row.
    ///
    /// Records unknown types and missing pairs, all of them, and then returns `None`.
    pub fn bind(&self, types: &[String], errors: &mut Errors) -> Option<Vec<usize>>
    where
        T: FromValue,
    {
        let before = errors.0.len();
        let table = self.bind_some(types, errors);
        let n = types.len();
        let missing: Vec<_> = (0..n)
            .flat_map(|i| (i..n).map(move |j| (i, j)))
            .filter(|(i, j)| table[i * n + j].is_none())
            .map(|(i, j)| format!("({}, {})", types[i], types[j]))
            .collect();
        if !missing.is_empty() {
            let what = if missing.len() == 1 { "pair" } else { "pairs" };
            let first = table.iter().position(Option::is_none).map_or([0, 0], |k| [k / n, k % n]);
            let [a, b] = first.map(|i| types[i].as_str());
            errors.push(InputError::at(
                self.at,
                format!(
                    "missing parameters for the {what} {}; add (\"{a}\", \"{b}\"): {}",
                    missing.join(", "),
                    row_example::<T>()
                ),
            ));
        }
        if errors.0.len() > before { None } else { table.into_iter().collect() }
    }

    /// As [`Self::bind`], but pairs may be omitted. Records unknown types, all of them.
    pub fn bind_some(&self, types: &[String], errors: &mut Errors) -> Vec<Option<usize>> {
        let n = types.len();
        let mut table = vec![None; n * n];
        for (r, row) in self.rows.iter().enumerate() {
            let mut index = [0; 2];
            let mut known = true;
            for (slot, name) in index.iter_mut().zip(&row.key) {
                match types.iter().position(|t| t == name) {
                    Some(i) => *slot = i,
                    None => {
                        errors.push(unknown_type(row.at, name, "particle", types));
                        known = false;
                    }
                }
            }
            if known {
                table[index[0] * n + index[1]] = Some(r);
                table[index[1] * n + index[0]] = Some(r);
            }
        }
        table
    }

    /// Returns the row with this index.
    pub fn get(&self, row: usize) -> &T {
        &self.rows[row].value
    }

    /// Returns the rows with the names of their types.
    pub fn iter(&self) -> impl Iterator<Item = (&[String; 2], Position, &T)> {
        self.rows.iter().map(|r| (&r.key, r.at, &r.value))
    }

    /// Returns the position of the table in the file.
    pub fn at(&self) -> Position {
        self.at
    }
}

impl<T: FromValue> FromValue for TypeMap<T> {
    fn fields() -> Vec<super::FieldDoc> {
        T::fields()
    }
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let rows = read(value, errors, FromValue::from_value, |a: &String, b| a == b)?;
        Some(Self { rows, at: value.at() })
    }
    fn describe() -> String {
        format!("for each type {{ \"A\": … }}: {}", T::describe())
    }
    fn each_number(&self, f: &mut dyn FnMut(f64)) {
        self.rows.iter().for_each(|r| r.value.each_number(f));
    }
}

impl<T> TypeMap<T> {
    /// Returns the rows with the names of their types.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.rows.iter().map(|r| (r.key.as_str(), &r.value))
    }

    /// Returns the row of each type. Every type must have a row. `what` is "bond", "angle", ….
    ///
    /// Records unknown types and types without a row, all of them, and then returns `None`.
    pub fn bind(&self, what: &str, types: &[String], errors: &mut Errors) -> Option<Vec<&T>>
    where
        T: FromValue,
    {
        let before = errors.0.len();
        let mut table = vec![None; types.len()];
        for row in &self.rows {
            match types.iter().position(|t| *t == row.key) {
                Some(i) => table[i] = Some(&row.value),
                None => errors.push(unknown_type(row.at, &row.key, what, types)),
            }
        }
        let missing: Vec<_> = types.iter().zip(&table).filter(|(_, r)| r.is_none()).map(|(t, _)| t.as_str()).collect();
        if !missing.is_empty() {
            let s = if missing.len() == 1 { "" } else { "s" };
            errors.push(InputError::at(
                self.at,
                format!(
                    "missing parameters for the {what} type{s} {}; add \"{}\": {}",
                    missing.join(", "),
                    missing[0],
                    row_example::<T>()
                ),
            ));
        }
        if errors.0.len() > before { None } else { table.into_iter().collect() }
    }
}
