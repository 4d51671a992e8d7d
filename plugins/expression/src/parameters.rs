//! Parameter values whose names are defined by the formula.

use galamost_plugin_api::error::{Errors, Position};
use galamost_plugin_api::params::{FieldDoc, Fields, FromValue, Params, Range, Value};

/// Named parameter values of one pair of types, bond type, ….
#[derive(Clone, Debug, Default)]
pub struct Values(Vec<(String, Position, f64)>);

impl Values {
    /// Returns the value of a parameter.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(n, ..)| n == name).map(|(.., x)| *x)
    }

    /// Returns the names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(n, ..)| n.as_str())
    }

    /// Returns the names with their positions.
    pub fn positions(&self) -> impl Iterator<Item = (&str, Position)> {
        self.0.iter().map(|(n, at, _)| (n.as_str(), *at))
    }
}

impl Params for Values {
    fn take(fields: &mut Fields<'_, '_>) -> Option<Self> {
        let mut values = Some(vec![]);
        for (key, value) in fields.rest() {
            let number = f64::from_value(value, fields.errors);
            if let Some(x) = number.filter(|x| !x.is_finite()) {
                fields.errors.push(value.error(format!("{x} is not allowed here: it must be {}", Range::ANY)));
                values = None;
            }
            match (&mut values, number) {
                (Some(list), Some(x)) => list.push((key.name.to_string(), key.at, x)),
                _ => values = None,
            }
        }
        values.map(Self)
    }
    fn docs() -> Vec<FieldDoc> {
        vec![FieldDoc {
            extensions: vec![],
            name: "…".into(),
            kind: f64::describe(),
            unit: "as in the formula".into(),
            default: None,
            range: String::new(),
            doc: "Value of each parameter of the formula, by name.".into(),
            fields: vec![],
        }]
    }
}

impl FromValue for Values {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let mut fields = Fields::new(value, errors)?;
        let values = Self::take(&mut fields);
        fields.finish();
        values
    }
    fn describe() -> String {
        "the parameters of the formula, (name: number, …)".into()
    }
    fn fields() -> Vec<FieldDoc> {
        Self::docs()
    }
}
