//! Files outside of a run: particle files, tables, pictures.

use crate::convert::{from_python, reals, to_python};
use crate::errors::{collect_warnings, detached};
use crate::forked::require_threads;
use crate::plugins::registry;
use galamost::output::series::{Series, SeriesCells, SeriesColumn};
use galamost::stats::{Skip, Statistics, left_out_warnings, of_series, read_statistics};
use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_engine::state::buffers::bytes_of;
use galamost_pictures::{ColorBy, Direction, Slice, View, solvent_types};
use galamost_plugin_api::snapshot::Snapshot;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Frames of a particle file, and the state that formats without particle types move.
#[pyclass(module = "galamost._galamost")]
pub struct Reader(galamost::files::Reader, Snapshot);

#[pymethods]
impl Reader {
    /// Opens a file. `format`, `fields` and `topology` are those of `galamost convert`.
    #[new]
    #[pyo3(signature = (path, format, fields, topology))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        format: Option<String>,
        fields: String,
        topology: Option<PathBuf>,
    ) -> PyResult<Self> {
        detached(py, || {
            let registry = registry();
            let reader = galamost::files::Reader::open_with(&path, format.as_deref(), &fields, &registry)?;
            let base = topology.map(|file| galamost::files::read(&file, None, &registry)).transpose()?;
            Ok(Self(reader, base.unwrap_or_default()))
        })
    }

    /// The number of frames.
    fn frames(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(detached(py, || self.0.frames())?.unwrap_or(1))
    }

    /// A frame as a dictionary.
    fn read<'py>(&self, py: Python<'py>, frame: i64) -> PyResult<Bound<'py, PyDict>> {
        to_python(py, &detached(py, || self.0.read_over(Some(frame), self.1.clone()))?)
    }
}

/// Returns the columns of a table: name, unit, and numbers as bytes or text. Warns about an incomplete last line.
#[pyfunction]
pub fn read_table(py: Python<'_>, path: PathBuf) -> PyResult<Vec<(String, Option<String>, Py<PyAny>)>> {
    collect_warnings();
    let series = detached(py, || Series::read(&path))?;
    series.warn_if_cut();
    let columns = series.columns.into_iter();
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
/// with fewer than four finite values are left out, with a warning, as are values that are not finite.
#[pyfunction]
#[pyo3(signature = (columns, skip))]
pub fn statistics<'py>(
    py: Python<'py>,
    columns: Vec<(String, Vec<u8>)>,
    skip: Option<usize>,
) -> PyResult<Vec<(String, Bound<'py, PyDict>)>> {
    collect_warnings();
    let skip = skip.map_or(Skip::Auto, Skip::Rows);
    let (computed, warnings) = detached(py, move || {
        let column = |(name, bytes): (String, Vec<u8>)| SeriesColumn {
            name,
            unit: None,
            cells: SeriesCells::Numbers(reals(&bytes)),
        };
        let columns = columns.into_iter().map(column).collect();
        let series = Series { path: PathBuf::new(), columns, cut: false };
        let list = of_series(&series, &[], skip)?;
        let warnings = left_out_warnings(&series, &[], skip, &list)?;
        Ok((list, warnings))
    })?;
    warnings.iter().for_each(|text| tracing::warn!("{text}"));
    as_dicts(py, computed)
}

/// Returns the statistics of the columns of a file, with the warnings of `galamost stats`.
#[pyfunction]
#[pyo3(signature = (path, skip))]
pub fn table_statistics<'py>(
    py: Python<'py>,
    path: PathBuf,
    skip: Option<usize>,
) -> PyResult<Vec<(String, Bound<'py, PyDict>)>> {
    collect_warnings();
    let skip = skip.map_or(Skip::Auto, Skip::Rows);
    as_dicts(py, detached(py, || Ok(read_statistics(&path, &[], skip)?.1))?)
}

/// Returns the name and the statistics of each column.
fn as_dicts(py: Python<'_>, computed: Vec<Statistics>) -> PyResult<Vec<(String, Bound<'_, PyDict>)>> {
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

/// Least height in pixels of a picture with a scale bar, as in `galamost render`.
const LEAST_SCALED: u32 = 200;

/// Returns the value of an option that is on or off.
fn flag(name: &str, text: &str) -> Result<bool, String> {
    match text {
        "True" => Ok(true),
        "False" => Ok(false),
        _ => Err(format!("`{name}` must be True or False, not {text}")),
    }
}

/// Returns whether to draw bonds.
fn bonds(text: &str, state: &Snapshot) -> Result<bool, String> {
    match text {
        "auto" => Ok(true),
        "on" if state.bonds.is_empty() => Err("`bonds` is on, but the state has no bonds".into()),
        "on" => Ok(true),
        "off" => Ok(false),
        _ => flag("bonds", text),
    }
}

/// Returns the names in a list.
fn names(text: &str) -> Vec<String> {
    text.split(',').map(str::to_string).collect()
}

/// Returns the slices in a list `axis,min,max,axis,min,max,…`.
fn slices(text: &str) -> Result<Vec<Slice>, String> {
    let parts: Vec<&str> = text.split(',').collect();
    parts.chunks(3).map(|one| Slice::parse(&one.join(","))).collect()
}

/// Sets an option of `galamost render`.
fn set_option(v: &mut View, opaque: &mut bool, name: &str, text: &str, state: &Snapshot) -> Result<(), String> {
    let on = || flag(name, text);
    match name {
        "size" => v.set_size(text)?,
        "view" => v.direction = Some(Direction::parse(text)?),
        "orthographic" => v.perspective = Some(!on()?),
        "color" => v.color = ColorBy::parse(text),
        "range" => v.set_range(text)?,
        "colors" => v.set_colors(text)?,
        "radius" => v.set_radius(text)?,
        "shape" => v.set_shape(text)?,
        "hide" => v.hide = names(text),
        "translucent" => v.translucent = names(text),
        "opaque" => *opaque = on()?,
        "slice" => v.slices = slices(text)?,
        "background" => v.set_background(text)?,
        "box" => v.edges = on()?,
        "no_box" => v.edges = !on()?,
        "scale_bar" => v.scale_bar = on()?,
        "no_scale_bar" => v.scale_bar = !on()?,
        "bonds" => v.bonds = bonds(text, state)?,
        "whole" => v.whole = on()?,
        "key" => v.key = on()?,
        _ => return Err(format!("there is no option `{name}`")),
    }
    Ok(())
}

/// Returns the view of a state that the options of `galamost render` describe.
fn view(options: &BTreeMap<String, String>, state: &Snapshot) -> Result<View, String> {
    let mut v = View { scale_bar: true, ..View::default() };
    let mut opaque = false;
    for (name, text) in options {
        // messages that do not name the option have no other hint of it
        let named = |m: String| if m.contains(&format!("`{name}`")) { m } else { format!("`{name}`: {m}") };
        set_option(&mut v, &mut opaque, name, text, state).map_err(named)?;
    }
    if opaque && options.contains_key("translucent") {
        return Err("`opaque` and `translucent` exclude each other".into());
    }
    if !opaque && !options.contains_key("translucent") {
        v.translucent = solvent_types(state);
    }
    v.scale_bar &= v.size[1] >= LEAST_SCALED;
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
        view(&options, &state)?.picture(&state, &parallel)?.png().map_err(|e| e.to_string())
    };
    let wrong = |m: String| Failure::Input(vec![Diagnostic::new("render".as_ref(), None, m)]);
    Ok(PyBytes::new(py, &detached(py, || draw().map_err(wrong))?))
}
