//! Files outside of a run: particle files, tables, pictures.

use crate::convert::{from_python, reals, to_python};
use crate::errors::detached;
use crate::forked::require_threads;
use crate::plugins::registry;
use galamost::output::series::{Series, SeriesCells, SeriesColumn};
use galamost::stats::{Skip, Statistics, of_series};
use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_engine::state::buffers::bytes_of;
use galamost_pictures::{ColorBy, Direction, View};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Frames of a particle file.
#[pyclass(module = "galamost._galamost")]
pub struct Reader(galamost::files::Reader);

#[pymethods]
impl Reader {
    /// Opens a file. `format` and `fields` are those of `galamost convert`.
    #[new]
    #[pyo3(signature = (path, format, fields))]
    fn new(py: Python<'_>, path: PathBuf, format: Option<String>, fields: String) -> PyResult<Self> {
        let open = || galamost::files::Reader::open_with(&path, format.as_deref(), &fields, &registry());
        Ok(Self(detached(py, open)?))
    }

    /// The number of frames.
    fn frames(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(detached(py, || self.0.frames())?.unwrap_or(1))
    }

    /// A frame as a dictionary.
    fn read<'py>(&self, py: Python<'py>, frame: i64) -> PyResult<Bound<'py, PyDict>> {
        to_python(py, &detached(py, || self.0.read(Some(frame)))?)
    }
}

/// Returns the columns of a table: name, unit, and numbers as bytes or text.
#[pyfunction]
pub fn read_table(py: Python<'_>, path: PathBuf) -> PyResult<Vec<(String, Option<String>, Py<PyAny>)>> {
    let columns = detached(py, || Series::read(&path))?.columns.into_iter();
    let one = |c: SeriesColumn| {
        let cells = match c.cells {
            SeriesCells::Numbers(v) => PyByteArray::new(py, bytes_of(&v)).into_any().unbind(),
            SeriesCells::Text(v) => v.into_pyobject(py)?.into_any().unbind(),
        };
        Ok((c.name, c.unit, cells))
    };
    columns.map(one).collect()
}

/// Returns the statistics of the columns of a table, given as names and bytes, as `galamost stats` computes them. Columns
/// with fewer than four finite values are left out.
#[pyfunction]
#[pyo3(signature = (columns, skip))]
pub fn statistics<'py>(
    py: Python<'py>,
    columns: Vec<(String, Vec<u8>)>,
    skip: Option<usize>,
) -> PyResult<Vec<(String, Bound<'py, PyDict>)>> {
    let skip = skip.map_or(Skip::Auto, Skip::Rows);
    let computed = detached(py, move || {
        let column = |(name, bytes): (String, Vec<u8>)| SeriesColumn {
            name,
            unit: None,
            cells: SeriesCells::Numbers(reals(&bytes)),
        };
        let columns = columns.into_iter().map(column).collect();
        of_series(&Series { path: PathBuf::new(), columns, cut: false }, &[], skip)
    })?;
    let one = |s: Statistics| {
        let d = PyDict::new(py);
        let numbers = [
            ("mean", s.mean),
            ("error", s.error.error),
            ("interval", s.error.interval()),
            ("deviation", s.deviation),
            ("inefficiency", s.inefficiency),
            ("drift", s.drift.change),
            ("drift_error", s.drift.error),
        ];
        numbers.into_iter().try_for_each(|(name, x)| d.set_item(name, x))?;
        d.set_item("rows", s.rows)?;
        d.set_item("skipped", s.skipped)?;
        d.set_item("start", s.equilibration.start)?;
        d.set_item("equilibrated", s.is_equilibrated())?;
        d.set_item("constant", s.constant)?;
        Ok((s.name, d))
    };
    computed.into_iter().map(one).collect()
}

/// Returns the view that the options of `galamost render` describe.
fn view(options: &BTreeMap<String, String>) -> Result<View, String> {
    let mut v = View::default();
    for (name, text) in options {
        let is_on = text == "True";
        match name.as_str() {
            "size" => v.set_size(text)?,
            "view" => v.direction = Some(Direction::parse(text)?),
            "orthographic" => v.perspective = Some(!is_on),
            "color" => v.color = ColorBy::parse(text),
            "range" => v.set_range(text)?,
            "colors" => v.set_colors(text)?,
            "radius" => v.set_radius(text)?,
            "shape" => v.set_shape(text)?,
            "hide" => v.hide = text.split(',').map(str::to_string).collect(),
            "background" => v.set_background(text)?,
            "box" => v.edges = is_on,
            "bonds" => v.bonds = is_on,
            "whole" => v.whole = is_on,
            "key" => v.key = is_on,
            _ => return Err(format!("there is no option `{name}`")),
        }
    }
    Ok(v)
}

/// Returns a picture of a state as PNG.
#[pyfunction]
pub fn render<'py>(
    py: Python<'py>,
    state: &Bound<'py, PyDict>,
    options: BTreeMap<String, String>,
) -> PyResult<Bound<'py, PyBytes>> {
    require_threads(py)?;
    let state = from_python(state)?;
    let draw = || {
        let parallel = |n: usize, f: &(dyn Fn(usize) + Sync)| galamost::all_threads(n, f);
        view(&options)?.picture(&state, &parallel)?.png().map_err(|e| e.to_string())
    };
    let wrong = |m: String| Failure::Input(vec![Diagnostic::new("render".as_ref(), None, m)]);
    Ok(PyBytes::new(py, &detached(py, || draw().map_err(wrong))?))
}
