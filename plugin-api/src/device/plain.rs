//! Plain data: values that are the same thing as their bytes.

use super::{DevicePtr, quaternion::Quaternion, real::Real, vector::Vec3};
use std::mem::MaybeUninit;

/// Plain data: values that may be copied as bytes, to a device, to a checkpoint and back.
///
/// `#[derive(DeviceStruct)]` implements it for a `#[repr(C)]` struct and checks the layout when the struct is compiled.
///
/// # Safety
/// The type has no padding, every bit pattern is a valid value, and no value changes behind a shared reference.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not plain data",
    label = "not plain data",
    note = "a member of a `DeviceStruct` is a number, Vec3<real>, Quaternion<real>, another `DeviceStruct`, an array of \
            these or a DevicePtr; for a flag, use u32"
)]
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

macro_rules! numbers {
    ($($t:ty),+) => {$(
        // SAFETY: a number has no padding, and every bit pattern is a number
        unsafe impl Plain for $t {}
    )+};
}
numbers!(u8, u32, i32, u64, i64, f32, f64);

// SAFETY: an array has no padding between its elements
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}
// SAFETY: three numbers of the same type
unsafe impl<R: Real> Plain for Vec3<R> {}
// SAFETY: four numbers of the same type
unsafe impl<R: Real> Plain for Quaternion<R> {}
// SAFETY: an address is a 64-bit number
unsafe impl<T: 'static> Plain for DevicePtr<T> {}

/// Returns the bytes of plain values.
pub fn bytes_of<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: plain data has no padding, so all bytes are initialized, and it does not change while it is borrowed
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// Returns the value with these bytes, or `None` if their number is not the size of a `T`.
pub fn from_bytes<T: Plain>(bytes: &[u8]) -> Option<T> {
    if bytes.len() != size_of::<T>() {
        return None;
    }
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: `value` has room for as many bytes, all of them are written, and every bit pattern is a valid `T`
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), value.as_mut_ptr().cast(), bytes.len());
        Some(value.assume_init())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_bytes_and_back() {
        let values = [[1.5f64, -2.0], [0.25, 1e300]];
        let bytes = bytes_of(&values).to_vec();
        assert_eq!(bytes.len(), 32);
        // at an odd address
        let shifted: Vec<u8> = [7].into_iter().chain(bytes).collect();
        assert_eq!(from_bytes::<[[f64; 2]; 2]>(&shifted[1..]), Some(values));
        assert_eq!(from_bytes::<[f64; 2]>(&shifted[1..]), None);
        assert_eq!(from_bytes::<[u8; 0]>(&[]), Some([]));
    }
}
