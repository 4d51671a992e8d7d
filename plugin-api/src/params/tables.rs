//! Parameters by type: one row for each pair of particle types, or for each bond, angle or dihedral type.

use super::types::FromValue;
use super::value::Value;
use crate::error::{Errors, InputError, Position, nearest};

/// Stands for every type in the key of a row.
const ANY: &str = "*";
/// Number of missing pairs or types that a message lists.
const LISTED: usize = 3;

/// Rows keyed by a pair of particle types, `{ ("A", "B"): (…), … }`. The order of the two types does not matter.
///
/// `"*"` stands for every type; of several rows for the same pair the last one counts. The value `None` removes the pair.
#[derive(Clone, Debug, PartialEq)]
pub struct TypePairs<T> {
    rows: Vec<Row<[String; 2], T>>,
    at: Position,
}

/// Rows keyed by a type name, `{ "A-B": (…), … }`. `"*"` and `None` are as in [`TypePairs`].
#[derive(Clone, Debug, PartialEq)]
pub struct TypeMap<T> {
    rows: Vec<Row<String, T>>,
    at: Position,
}

#[derive(Clone, Debug, PartialEq)]
struct Row<K, T> {
    key: K,
    at: Position,
    /// `None` if the key has no parameters on purpose.
    value: Option<T>,
}

/// What a table says about a pair of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// There is no row.
    Missing,
    /// The row is `None`.
    Off,
    /// The index of the row, see [`TypePairs::get`].
    Row(usize),
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
        let row = if v.text() == "None" { Some(None) } else { T::from_value(v, errors).map(Some) };
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
        format!("for each pair of types {{ (\"A\", \"B\"): … }}, `\"*\"` for all types: {}", T::describe())
    }
    fn each_number(&self, f: &mut dyn FnMut(f64)) {
        self.rows.iter().filter_map(|r| r.value.as_ref()).for_each(|v| v.each_number(f));
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
        let cells = self.cells(types, errors);
        self.require(&cells, types, errors);
        for row in self.rows.iter().filter(|r| r.value.is_none()) {
            errors.push(InputError::at(row.at, "`None` is not possible here: every pair of types needs parameters"));
        }
        let row = |c: Cell| if let Cell::Row(k) = c { Some(k) } else { None };
        if errors.0.len() > before { None } else { cells.into_iter().map(row).collect() }
    }

    /// Records the missing pairs of types: all of them if they are few, otherwise their number and examples.
    pub fn require(&self, cells: &[Cell], types: &[String], errors: &mut Errors)
    where
        T: FromValue,
    {
        let n = types.len();
        let pairs = (0..n).flat_map(|i| (i..n).map(move |j| (i, j)));
        let missing: Vec<(usize, usize)> = pairs.filter(|(i, j)| cells[i * n + j] == Cell::Missing).collect();
        let Some((a, b)) = missing.first() else { return };
        let names: Vec<_> = missing.iter().map(|(i, j)| format!("({}, {})", types[*i], types[*j])).collect();
        let (a, b, row) = (&types[*a], &types[*b], row_example::<T>());
        let what = listed("pair", "pairs", &names);
        errors.push(InputError::at(self.at, format!("missing parameters for {what}; add (\"{a}\", \"{b}\"): {row}")));
    }

    /// As [`Self::bind`], but pairs may be omitted or be `None`. Records unknown types, all of them.
    pub fn bind_some(&self, types: &[String], errors: &mut Errors) -> Vec<Option<usize>> {
        let row = |c: Cell| if let Cell::Row(k) = c { Some(k) } else { None };
        self.cells(types, errors).into_iter().map(row).collect()
    }

    /// Returns what the table says about types i and j, at i·n + j. Records unknown types, all of them.
    pub fn cells(&self, types: &[String], errors: &mut Errors) -> Vec<Cell> {
        let n = types.len();
        let mut table = vec![Cell::Missing; n * n];
        for (r, row) in self.rows.iter().enumerate() {
            let [first, second] = [0, 1].map(|k| matching(&row.key[k], row.at, "particle", types, errors));
            let cell = if row.value.is_some() { Cell::Row(r) } else { Cell::Off };
            for (i, j) in first.iter().flat_map(|i| second.iter().map(move |j| (*i, *j))) {
                table[i * n + j] = cell;
                table[j * n + i] = cell;
            }
        }
        table
    }

    /// Returns the row with this index.
    ///
    /// # Panics
    /// Panics if the row is `None`.
    pub fn get(&self, row: usize) -> &T {
        self.rows[row].value.as_ref().expect("a cell with an index has a value")
    }

    /// Returns the rows that are not `None`, with the names of their types.
    pub fn iter(&self) -> impl Iterator<Item = (&[String; 2], Position, &T)> {
        self.rows.iter().filter_map(|r| Some((&r.key, r.at, r.value.as_ref()?)))
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
        self.rows.iter().filter_map(|r| r.value.as_ref()).for_each(|v| v.each_number(f));
    }
}

impl<T> TypeMap<T> {
    /// Returns the rows that are not `None`, with the names of their types.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.rows.iter().filter_map(|r| Some((r.key.as_str(), r.value.as_ref()?)))
    }

    /// Returns the row of each type. Every type must have a row. `what` is "bond", "angle", ….
    ///
    /// Records unknown types and types without a row, all of them, and then returns `None`.
    pub fn bind(&self, what: &str, types: &[String], errors: &mut Errors) -> Option<Vec<&T>>
    where
        T: FromValue,
    {
        let before = errors.0.len();
        let table = self.bind_some(what, types, errors);
        let missing: Vec<_> =
            types.iter().zip(&table).filter(|(_, r)| r.flatten().is_none()).map(|(t, _)| t.clone()).collect();
        if let Some(first) = missing.first() {
            let names = listed(&format!("{what} type"), &format!("{what} types"), &missing);
            let row = row_example::<T>();
            errors.push(InputError::at(self.at, format!("missing parameters for {names}; add \"{first}\": {row}")));
        }
        if errors.0.len() > before { None } else { table.into_iter().map(Option::flatten).collect() }
    }

    /// Returns the row of each type: `None` without a row, `Some(None)` if the row is `None`. Records unknown types.
    pub fn bind_some(&self, what: &str, types: &[String], errors: &mut Errors) -> Vec<Option<Option<&T>>> {
        let mut table = vec![None; types.len()];
        for row in &self.rows {
            for k in matching(&row.key, row.at, what, types, errors) {
                table[k] = Some(row.value.as_ref());
            }
        }
        table
    }
}

/// Returns the numbers of the types with this name, all of them for `*`. Records an unknown type.
fn matching(name: &str, at: Position, what: &str, types: &[String], errors: &mut Errors) -> Vec<usize> {
    if let Some(k) = types.iter().position(|t| t == name) {
        return vec![k];
    }
    if name == ANY {
        return (0..types.len()).collect();
    }
    errors.push(unknown_type(at, name, what, types));
    vec![]
}

/// Lists names: `the pair (A, B)`, `the pairs (A, B), (A, C)`, `465 pairs: (1, 1), (1, 2), (1, 3), …`.
fn listed(one: &str, several: &str, names: &[String]) -> String {
    match names {
        [name] => format!("the {one} {name}"),
        _ if names.len() <= LISTED => format!("the {several} {}", names.join(", ")),
        _ => format!("{} {several}: {}, …", names.len(), names[..LISTED].join(", ")),
    }
}
