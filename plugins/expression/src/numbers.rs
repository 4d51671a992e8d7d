//! Named numbers whose names only the formula knows.

use galamost_plugin_api::error::{Errors, Position};
use galamost_plugin_api::params::{FieldDoc, Fields, FromValue, Params, Range, Value};

/// The parameters of one pair of types, one bond type, … as the user writes them.
#[derive(Clone, Debug, Default)]
pub struct Numbers(Vec<(String, Position, f64)>);

impl Numbers {
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(n, ..)| n == name).map(|(.., x)| *x)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(n, ..)| n.as_str())
    }

    /// Names and where they stand.
    pub fn places(&self) -> impl Iterator<Item = (&str, Position)> {
        self.0.iter().map(|(n, at, _)| (n.as_str(), *at))
    }
}

impl Params for Numbers {
    fn take(fields: &mut Fields<'_, '_>) -> Option<Self> {
        let mut numbers = Some(vec![]);
        for (key, value) in fields.rest() {
            let number = f64::from_value(value, fields.errors);
            if let Some(x) = number.filter(|x| !x.is_finite()) {
                fields.errors.push(value.error(format!("{x} is not allowed here: it must be {}", Range::ANY)));
                numbers = None;
            }
            match (&mut numbers, number) {
                (Some(list), Some(x)) => list.push((key.name.to_string(), key.at, x)),
                _ => numbers = None,
            }
        }
        numbers.map(Self)
    }
    fn docs() -> Vec<FieldDoc> {
        vec![FieldDoc {
            extensions: vec![],
            name: "…".into(),
            kind: f64::describe(),
            unit: "as in the formula".into(),
            default: None,
            range: String::new(),
            doc: "Each parameter of the formula, by its name.".into(),
            fields: vec![],
        }]
    }
}

impl FromValue for Numbers {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let mut fields = Fields::new(value, errors)?;
        let numbers = Self::take(&mut fields);
        fields.finish();
        numbers
    }
    fn describe() -> String {
        "each parameter of the formula with its number, (name: number, …)".into()
    }
    fn fields() -> Vec<FieldDoc> {
        Self::docs()
    }
}
