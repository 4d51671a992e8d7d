//! RON text as Python objects.

use galamost_plugin_api::error::InputError;
use galamost_plugin_api::params::{Source, Value};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

/// Converts a value: lists, tuples, text, numbers and `true` become their Python forms, `(a: 1)` a `dict`, `{…}` a
/// `Map`, and `Name(…)` a `Variant`.
#[pyfunction]
pub fn parse_ron<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    let mut value = Source::file(text).value();
    while value.text().starts_with("#![") {
        let Some(end) = value.text().find(']') else { break };
        value = value.skip(end + 1);
    }
    value.check_syntax().map_err(wrong)?;
    Notation { module: py.import("galamost._notation")? }.convert(value)
}

fn wrong(e: InputError) -> PyErr {
    PyValueError::new_err(match e.at {
        Some(at) => format!("{at}: {}", e.message),
        None => e.message,
    })
}

/// The Python classes of named values and maps.
struct Notation<'py> {
    module: Bound<'py, PyModule>,
}

impl<'py> Notation<'py> {
    fn convert(&self, value: Value<'_>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.module.py();
        let text = value.text();
        match (value.name(), value.after_name()) {
            (Some("None"), None) => return Ok(py.None().into_bound(py)),
            (Some("Some"), Some(inner)) => return self.convert(inner.elements().map_err(wrong)?[0]),
            (Some(name), None) => return self.module.getattr("Variant")?.call1((name,)),
            (Some(name), Some(inner)) => return self.module.getattr("Variant")?.call1((name, self.inside(inner)?)),
            (None, _) => {}
        }
        match text.as_bytes().first() {
            Some(b'(') => self.inside(value),
            Some(b'[') => Ok(PyList::new(py, self.all(value)?)?.into_any()),
            Some(b'{') => {
                let map = self.module.getattr("Map")?.call0()?;
                for (key, value) in value.map().map_err(wrong)? {
                    map.set_item(self.convert(key)?, self.convert(value)?)?;
                }
                Ok(map)
            }
            Some(b'"' | b'r' | b'\'') => Ok(value.parse::<String>().map_err(wrong)?.into_pyobject(py)?.into_any()),
            _ => self.number(value),
        }
    }

    /// Converts what is in parentheses: named fields to a `dict`, others to a `tuple`.
    fn inside(&self, value: Value<'_>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.module.py();
        if let Ok(entries) = value.entries() {
            let fields = PyDict::new(py);
            for (key, value) in entries {
                fields.set_item(&*key.name, self.convert(value)?)?;
            }
            return Ok(fields.into_any());
        }
        Ok(PyTuple::new(py, self.all(value)?)?.into_any())
    }

    fn all(&self, value: Value<'_>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        value.elements().map_err(wrong)?.into_iter().map(|v| self.convert(v)).collect()
    }

    fn number(&self, value: Value<'_>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.module.py();
        if let Ok(b) = value.parse::<bool>() {
            return Ok(b.into_pyobject(py)?.to_owned().into_any());
        }
        match value.parse::<i64>() {
            Ok(n) => Ok(n.into_pyobject(py)?.into_any()),
            Err(_) => Ok(value.parse::<f64>().map_err(wrong)?.into_pyobject(py)?.into_any()),
        }
    }
}
