//! States as Python objects: arrays are `bytearray`s, from which NumPy makes arrays without a copy.

use galamost_engine::state::buffers::bytes_of;
use galamost_plugin_api::snapshot::{Array, KNOWN_ARRAYS, Link, Snapshot, Values};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict};
use std::collections::BTreeMap;

/// Returns the name of each array that the engine knows, its width, and whether it has integers.
#[pyfunction]
pub fn known_arrays() -> Vec<(&'static str, u32, bool)> {
    KNOWN_ARRAYS.iter().map(|&(name, width, integer, _)| (name, width, integer)).collect()
}

/// Returns a state as a dictionary.
pub fn to_python<'py>(py: Python<'py>, s: &Snapshot) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    let put = |name: &str, bytes: &[u8]| out.set_item(name, PyByteArray::new(py, bytes));
    put("position", bytes_of(&s.position))?;
    put("image", bytes_of(&s.image))?;
    put("velocity", bytes_of(&s.velocity))?;
    put("type", bytes_of(&s.type_id))?;
    put("mass", bytes_of(&s.mass))?;
    out.set_item("step", s.step)?;
    out.set_item("dimensions", s.dimensions)?;
    out.set_item("box", s.box_length.to_vec())?;
    out.set_item("tilt", s.tilt.to_vec())?;
    out.set_item("types", &s.types)?;
    let arrays = PyDict::new(py);
    for (name, a) in &s.arrays {
        let (integer, bytes) = match &a.values {
            Values::Real(v) => (false, bytes_of(v)),
            Values::Int(v) => (true, bytes_of(v)),
        };
        arrays.set_item(name, (a.width, integer, PyByteArray::new(py, bytes)))?;
    }
    out.set_item("arrays", arrays)?;
    out.set_item("bonds", links(py, &s.bonds, &s.bond_types))?;
    out.set_item("angles", links(py, &s.angles, &s.angle_types))?;
    out.set_item("dihedrals", links(py, &s.dihedrals, &s.dihedral_types))?;
    out.set_item("impropers", links(py, &s.impropers, &s.improper_types))?;
    Ok(out)
}

/// Returns type names, types and members of links.
fn links<'py, const N: usize>(
    py: Python<'py>,
    links: &[Link<N>],
    types: &[String],
) -> (Vec<String>, Bound<'py, PyByteArray>, Bound<'py, PyByteArray>) {
    let kinds: Vec<u32> = links.iter().map(|l| l.kind).collect();
    let members: Vec<[u32; N]> = links.iter().map(|l| l.tags).collect();
    (types.to_vec(), PyByteArray::new(py, bytes_of(&kinds)), PyByteArray::new(py, bytes_of(&members)))
}

/// Returns the numbers in the bytes of an array.
macro_rules! numbers {
    ($name:ident, $t:ty, $size:literal) => {
        pub fn $name(bytes: &[u8]) -> Vec<$t> {
            bytes.as_chunks::<$size>().0.iter().map(|b| <$t>::from_ne_bytes(*b)).collect()
        }
    };
}
numbers!(reals, f64, 8);
numbers!(ints, i32, 4);
numbers!(words, u32, 4);

/// Returns the rows of an array.
pub fn rows<T: Copy, const N: usize>(numbers: &[T]) -> Vec<[T; N]> {
    numbers.as_chunks::<N>().0.to_vec()
}

/// Returns a state from a dictionary of the form of [`to_python`].
pub fn from_python(d: &Bound<'_, PyDict>) -> PyResult<Snapshot> {
    let item = |name: &str| d.get_item(name)?.ok_or_else(|| PyKeyError::new_err(name.to_string()));
    let bytes = |name: &str| item(name)?.extract::<Vec<u8>>();
    let mut arrays = BTreeMap::new();
    for (name, array) in item("arrays")?.extract::<BTreeMap<String, (u32, bool, Vec<u8>)>>()? {
        let (width, integer, bytes) = array;
        let values = if integer { Values::Int(ints(&bytes)) } else { Values::Real(reals(&bytes)) };
        arrays.insert(name, Array { width, values });
    }
    let box_length: Vec<f64> = item("box")?.extract()?;
    let tilt: Vec<f64> = item("tilt")?.extract()?;
    let (bond_types, bonds) = from_links(item("bonds")?)?;
    let (angle_types, angles) = from_links(item("angles")?)?;
    let (dihedral_types, dihedrals) = from_links(item("dihedrals")?)?;
    let (improper_types, impropers) = from_links(item("impropers")?)?;
    Ok(Snapshot {
        step: item("step")?.extract()?,
        dimensions: item("dimensions")?.extract()?,
        box_length: box_length.try_into().map_err(|_| PyValueError::new_err("the box has three lengths"))?,
        tilt: tilt.try_into().map_err(|_| PyValueError::new_err("the box has three tilt factors"))?,
        types: item("types")?.extract()?,
        position: rows(&reals(&bytes("position")?)).into(),
        image: rows(&ints(&bytes("image")?)).into(),
        velocity: rows(&reals(&bytes("velocity")?)).into(),
        type_id: words(&bytes("type")?).into(),
        mass: reals(&bytes("mass")?).into(),
        arrays,
        bond_types,
        bonds,
        angle_types,
        angles,
        dihedral_types,
        dihedrals,
        improper_types,
        impropers,
    })
}

fn from_links<const N: usize>(item: Bound<'_, PyAny>) -> PyResult<(Vec<String>, Vec<Link<N>>)> {
    let (types, kinds, members) = item.extract::<(Vec<String>, Vec<u8>, Vec<u8>)>()?;
    let links = words(&kinds).into_iter().zip(rows::<u32, N>(&words(&members)));
    Ok((types, links.map(|(kind, tags)| Link { kind, tags }).collect()))
}
