//! DLPack: arrays of a device to and from other libraries of the process, without a copy.

use super::Memory;
use super::array::{DeviceArray, Element};
use galamost_engine::device::MemoryKind;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

/// The name of a capsule that nobody has taken, and of one that is taken.
const NAME: &CStr = c"dltensor";
const USED: &CStr = c"used_dltensor";

/// `DLTensor`, with its device and element type.
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
struct Managed {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// What an exported tensor owns.
struct Exported {
    managed: Managed,
    shape: Vec<i64>,
    strides: Vec<i64>,
    _memory: Arc<Memory>,
}

/// Returns type and number of a device in DLPack.
pub fn device(kind: MemoryKind) -> (i32, i32) {
    match kind {
        MemoryKind::Host => (1, 0),
        MemoryKind::Cuda { ordinal, .. } => (2, ordinal as i32),
    }
}

unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: consumers pass the tensor that `export` made, once; its context is the box that contains it
    drop(unsafe { Box::from_raw((*managed).context.cast::<Exported>()) });
}

unsafe extern "C" fn drop_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: Python passes the capsule that it destroys; a capsule of this name still owns its tensor
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) == 1 {
            delete(ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast());
        }
    }
}

/// Returns a capsule with an array, whose memory it keeps.
///
/// # Errors
/// Returns `BufferError` if the consumer wants another device or a copy.
pub fn export<'py>(
    py: Python<'py>,
    array: &DeviceArray,
    wanted: Option<(i32, i32)>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let (device_type, device_id) = device(array.memory().device().memory_kind());
    if wanted.is_some_and(|w| w != (device_type, device_id)) || copy == Some(true) {
        return Err(PyBufferError::new_err("the array is given without a copy, on the device of the run"));
    }
    let shape: Vec<i64> = array.dimensions().iter().map(|n| *n as i64).collect();
    let strides: Vec<i64> = (0..shape.len()).map(|k| shape[k + 1..].iter().product()).collect();
    let (code, bits) = match array.element() {
        Element::I32 => (0, 32),
        Element::U32 => (1, 32),
        Element::F64 => (2, 64),
    };
    let tensor = Tensor {
        data: array.memory().address() as *mut c_void,
        device_type,
        device_id,
        ndim: shape.len() as i32,
        code,
        bits,
        lanes: 1,
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    let managed = Managed { tensor, context: std::ptr::null_mut(), deleter: Some(delete) };
    let exported = Box::new(Exported { managed, shape, strides, _memory: array.memory().clone() });
    let raw = Box::into_raw(exported);
    // SAFETY: `raw` is the box made above; until a consumer or the capsule deletes it, nothing else refers to it
    unsafe {
        (*raw).managed.tensor.shape = (*raw).shape.as_mut_ptr();
        (*raw).managed.tensor.strides = (*raw).strides.as_mut_ptr();
        (*raw).managed.context = raw.cast();
        let managed = &raw mut (*raw).managed;
        let capsule = ffi::PyCapsule_New(managed.cast(), NAME.as_ptr(), Some(drop_capsule));
        if capsule.is_null() {
            delete(managed);
        }
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

/// A tensor of another library.
pub struct Imported(NonNull<Managed>);

// SAFETY: DLPack lets any thread use and delete a tensor
unsafe impl Send for Imported {}

impl Drop for Imported {
    fn drop(&mut self) {
        Python::attach(|_| {
            // SAFETY: the tensor was taken from its capsule and is deleted once
            unsafe {
                if let Some(delete) = self.0.as_ref().deleter {
                    delete(self.0.as_ptr());
                }
            }
        });
    }
}

impl Imported {
    /// Takes the tensor of an object, when the work of the object's library that writes it precedes all later work of
    /// this device.
    ///
    /// # Errors
    /// Returns an error of the object, or if it is on another device.
    pub fn take(object: &Bound<'_, PyAny>, kind: MemoryKind) -> PyResult<Self> {
        let py = object.py();
        let keywords = PyDict::new(py);
        if let MemoryKind::Cuda { stream, .. } = kind {
            keywords.set_item("stream", stream)?;
        }
        let capsule = object.call_method("__dlpack__", PyTuple::empty(py), Some(&keywords))?;
        // SAFETY: `capsule` is an object; if it is a capsule of this name, it has a tensor, which the new name marks as taken
        let tensor = unsafe {
            let found = ffi::PyCapsule_GetPointer(capsule.as_ptr(), NAME.as_ptr()).cast::<Managed>();
            let found = NonNull::new(found).ok_or_else(|| PyErr::fetch(py))?;
            if ffi::PyCapsule_SetName(capsule.as_ptr(), USED.as_ptr()) != 0 {
                return Err(PyErr::fetch(py));
            }
            Self(found)
        };
        let found = (tensor.get().device_type, tensor.get().device_id);
        if found != device(kind) {
            let text = format!("the array is on the device {found:?} of DLPack, the run on {:?}", device(kind));
            return Err(PyValueError::new_err(text));
        }
        Ok(tensor)
    }

    fn get(&self) -> &Tensor {
        // SAFETY: the tensor exists until it is deleted by `drop`
        unsafe { &self.0.as_ref().tensor }
    }

    /// Returns the address of floating-point numbers of this shape, and whether they have 32 bits.
    ///
    /// # Errors
    /// Returns an error if type, shape or layout differ.
    pub fn reals(&self, shape: &[usize], what: &str) -> PyResult<(u64, bool)> {
        let t = self.get();
        if (t.code, t.lanes) != (2, 1) || ![32, 64].contains(&t.bits) {
            return Err(PyTypeError::new_err(format!("{what} must be float64 or float32")));
        }
        // SAFETY: a tensor has `ndim` numbers in `shape`, and in `strides` if that is set
        let (found, strides) = unsafe {
            let numbers = |at: *const i64| (0..t.ndim as usize).map(|k| *at.add(k)).collect::<Vec<i64>>();
            (numbers(t.shape), if t.strides.is_null() { None } else { Some(numbers(t.strides)) })
        };
        if !found.iter().copied().eq(shape.iter().map(|n| *n as i64)) {
            return Err(PyValueError::new_err(format!("{what} have the shape {found:?}, not {shape:?}")));
        }
        let dense = |strides: Vec<i64>| {
            (0..found.len()).all(|k| found[k] <= 1 || strides[k] == found[k + 1..].iter().product::<i64>())
        };
        if !strides.is_none_or(dense) {
            return Err(PyValueError::new_err(format!("{what} must be contiguous, row by row")));
        }
        Ok((t.data as u64 + t.byte_offset, t.bits == 32))
    }
}
