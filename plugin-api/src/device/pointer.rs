//! Addresses in the memory of the run's device.

use std::any::type_name;
use std::marker::PhantomData;

/// An address in the memory of the run's device (host memory when the device is the CPU).
#[repr(transparent)]
pub struct DevicePtr<T> {
    /// The address; 0 for null.
    pub address: u64,
    marker: PhantomData<*mut T>,
}

// SAFETY: an address is a number; dereferencing it is unsafe, as for `*mut T`
unsafe impl<T> Send for DevicePtr<T> {}
// SAFETY: a shared reference gives only the address; dereferencing it is unsafe
unsafe impl<T> Sync for DevicePtr<T> {}

impl<T> Clone for DevicePtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for DevicePtr<T> {}
impl<T> std::fmt::Debug for DevicePtr<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x} ({})", self.address, type_name::<T>())
    }
}
impl<T> Default for DevicePtr<T> {
    fn default() -> Self {
        Self::null()
    }
}

impl<T> DevicePtr<T> {
    /// Creates a pointer from an address.
    pub const fn new(address: u64) -> Self {
        Self { address, marker: PhantomData }
    }
    /// Creates a null pointer.
    pub const fn null() -> Self {
        Self::new(0)
    }
    /// Returns whether the pointer is null.
    pub const fn is_null(self) -> bool {
        self.address == 0
    }
    /// Returns the same address as a pointer to another type.
    pub const fn cast<U>(self) -> DevicePtr<U> {
        DevicePtr::new(self.address)
    }
    /// Returns the pointer `n` elements after this one.
    pub const fn offset(self, n: usize) -> Self {
        Self::new(self.address + (n * size_of::<T>()) as u64)
    }
    /// Returns a host pointer. Valid only if the device is the CPU.
    pub const fn host(self) -> *mut T {
        self.address as *mut T
    }
    /// Returns a slice of host memory.
    ///
    /// # Safety
    /// The address must be that of `n` initialized elements in host memory that are not written while the slice exists.
    pub unsafe fn slice<'a>(self, n: usize) -> &'a [T] {
        if n == 0 || self.is_null() {
            return &[];
        }
        // SAFETY: `n` initialized elements lie at this host address (contract of this function)
        unsafe { std::slice::from_raw_parts(self.host(), n) }
    }
}
