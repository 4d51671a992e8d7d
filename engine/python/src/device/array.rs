//! Arrays of a device as Python objects.

use super::{Memory, dlpack};
use crate::errors::checked_run;
use galamost_engine::device::MemoryKind;
use galamost_plugin_api::device::DevicePtr;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict, PyTuple};
use std::sync::Arc;

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// 64-bit floating-point numbers.
    F64,
    /// 32-bit integers.
    I32,
    /// 32-bit unsigned integers.
    U32,
}

impl Element {
    /// Returns the size in bytes.
    pub fn size(self) -> usize {
        if self == Self::F64 { 8 } else { 4 }
    }

    /// Returns the name of NumPy's array interface.
    fn name(self) -> &'static str {
        match self {
            Self::F64 => "<f8",
            Self::I32 => "<i4",
            Self::U32 => "<u4",
        }
    }
}

/// An array in the memory of a run's device.
///
/// `cupy.from_dlpack` and `torch.from_dlpack` take it without a copy; `numpy.asarray` copies it to the host. It stays
/// valid after the simulation is closed.
#[pyclass(frozen, skip_from_py_object, module = "galamost")]
#[derive(Clone)]
pub struct DeviceArray {
    memory: Arc<Memory>,
    n: usize,
    width: usize,
    element: Element,
}

impl DeviceArray {
    /// Returns an array of `n` rows of `width` elements.
    pub fn new(memory: Arc<Memory>, n: usize, width: usize, element: Element) -> Self {
        Self { memory, n, width, element }
    }

    /// Returns the address.
    pub fn pointer(&self) -> DevicePtr<u8> {
        DevicePtr::new(self.memory.address())
    }

    /// Returns the memory.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Returns the element type.
    pub fn element(&self) -> Element {
        self.element
    }

    /// Returns the number of elements of each dimension.
    pub fn dimensions(&self) -> Vec<usize> {
        if self.width == 1 { vec![self.n] } else { vec![self.n, self.width] }
    }
}

#[pymethods]
impl DeviceArray {
    /// The number of elements of each dimension.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.dimensions())
    }

    /// The element type.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("numpy")?.call_method1("dtype", (self.element.name(),))
    }

    fn __len__(&self) -> usize {
        self.n
    }

    fn __repr__(&self) -> String {
        format!("<DeviceArray of shape {:?} on {}>", self.dimensions(), self.memory.device().name())
    }

    /// Type and number of the device, as DLPack numbers them.
    fn __dlpack_device__(&self) -> (i32, i32) {
        dlpack::device(self.memory.device().memory_kind())
    }

    /// The array for another library. Everything that wrote it has finished, so every stream may read it.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<Bound<'py, PyAny>>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = (stream, max_version);
        dlpack::export(py, self, dl_device, copy)
    }

    /// The array for CuPy and Numba.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if self.memory.device().memory_kind() == MemoryKind::Host {
            return Err(PyAttributeError::new_err("the array is in the memory of the host"));
        }
        let d = PyDict::new(py);
        d.set_item("shape", self.shape(py)?)?;
        d.set_item("typestr", self.element.name())?;
        d.set_item("data", (self.memory.address(), false))?;
        d.set_item("version", 3)?;
        Ok(d)
    }

    /// A copy on the host.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(pyo3::exceptions::PyValueError::new_err("an array of a device must be copied to the host"));
        }
        let bytes = py.detach(|| self.memory.download());
        let bytes = PyByteArray::new(py, &checked_run(py, bytes)?);
        let flat = py.import("numpy")?.call_method1("frombuffer", (bytes, self.element.name()))?;
        let array = flat.call_method1("reshape", (self.shape(py)?,))?;
        match dtype {
            Some(dtype) => array.call_method1("astype", (dtype,)),
            None => Ok(array),
        }
    }
}
