//! What crosses from Rust to CUDA C++: struct layouts, function texts, pointers.

use std::any::type_name;
use std::marker::PhantomData;

/// An address in the memory of the run's device (host memory when the device is the CPU).
#[repr(transparent)]
pub struct DevicePtr<T> {
    /// The address; 0 for "not there".
    pub address: u64,
    marker: PhantomData<*mut T>,
}

// SAFETY: an address is a number; who dereferences it must know that it is valid, as with `*mut T`
unsafe impl<T> Send for DevicePtr<T> {}
// SAFETY: as above
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
    /// The pointer at this address.
    pub const fn new(address: u64) -> Self {
        Self { address, marker: PhantomData }
    }
    /// No pointer.
    pub const fn null() -> Self {
        Self::new(0)
    }
    /// Whether it points nowhere.
    pub const fn is_null(self) -> bool {
        self.address == 0
    }
    /// The same address as a pointer to another type.
    pub const fn cast<U>(self) -> DevicePtr<U> {
        DevicePtr::new(self.address)
    }
    /// The pointer `n` elements further on.
    pub const fn offset(self, n: usize) -> Self {
        Self::new(self.address + (n * size_of::<T>()) as u64)
    }
    /// As a pointer of this process; only where the device is the CPU.
    pub const fn host(self) -> *mut T {
        self.address as *mut T
    }
    /// As a slice of this process.
    ///
    /// # Safety
    /// The address must be that of `n` initialised elements in host memory that nobody writes meanwhile.
    pub unsafe fn slice<'a>(self, n: usize) -> &'a [T] {
        if n == 0 || self.is_null() {
            return &[];
        }
        // SAFETY: the caller's word
        unsafe { std::slice::from_raw_parts(self.host(), n) }
    }
}

/// A struct with a definition in CUDA C++.
pub trait CxxStruct {
    /// The definition, a template over `real` where the Rust struct is generic.
    fn text() -> &'static DeviceText;
}

/// A struct that has the same layout in Rust and in CUDA C++; derive it.
///
/// # Safety
/// The C++ definition must lay the struct out exactly as `#[repr(C)]` does here.
pub unsafe trait DeviceStruct: CxxStruct + Copy + 'static {}

/// A function of the device language, as a type; made by `#[device_fn]`.
pub trait DeviceFn {
    /// Its text.
    fn text() -> &'static DeviceText;
}

/// The bytes of a device struct, as they are uploaded.
pub fn bytes_of<T: DeviceStruct>(rows: &[T]) -> &[u8] {
    // SAFETY: a DeviceStruct is plain data; reading its bytes (padding included) is only ever copied to a device
    unsafe { std::slice::from_raw_parts(rows.as_ptr().cast(), size_of_val(rows)) }
}

/// The CUDA C++ text of one function or struct of the device language, with what it calls.
#[derive(Debug)]
pub struct DeviceText {
    /// Name in C++.
    pub name: &'static str,
    /// Definition.
    pub text: fn() -> String,
    /// What must stand before it.
    pub needs: &'static [fn() -> &'static DeviceText],
}

/// The text of `roots` and of everything they need, each definition once, in an order C++ accepts.
///
/// # Errors
/// Two different definitions of one name, or functions that call each other in a circle.
pub fn assemble(roots: &[&'static DeviceText]) -> Result<String, String> {
    fn visit(
        node: &'static DeviceText,
        seen: &mut Vec<(&'static str, String)>,
        above: &mut Vec<&'static str>,
    ) -> Result<(), String> {
        let text = (node.text)();
        if above.contains(&node.name) && seen.iter().any(|(n, t)| *n == node.name && *t == text) {
            return Err(format!("`{}` calls itself through {}: there is no recursion", node.name, above.join(", ")));
        }
        match seen.iter().find(|(n, _)| *n == node.name) {
            Some((_, t)) if *t == text => return Ok(()),
            Some(_) => {
                return Err(format!("two different device definitions are named `{}`; rename one", node.name));
            }
            None => {}
        }
        let place = seen.len();
        seen.push((node.name, text));
        above.push(node.name);
        for need in node.needs {
            visit(need(), seen, above)?;
        }
        above.pop();
        let entry = seen.remove(place);
        seen.push(entry);
        Ok(())
    }
    let mut seen = vec![];
    for root in roots {
        visit(root, &mut seen, &mut vec![])?;
    }
    Ok(seen.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    static A: DeviceText = DeviceText { name: "a", text: || "A".into(), needs: &[] };
    static B: DeviceText = DeviceText { name: "b", text: || "B".into(), needs: &[|| &A] };
    static C: DeviceText = DeviceText { name: "c", text: || "C".into(), needs: &[|| &B, || &A] };
    static A2: DeviceText = DeviceText { name: "a", text: || "other".into(), needs: &[] };

    static LOOP: DeviceText = DeviceText { name: "l", text: || "L".into(), needs: &[|| &B, || &BACK] };
    static BACK: DeviceText = DeviceText { name: "m", text: || "M".into(), needs: &[|| &LOOP] };

    #[test]
    fn circles_are_told() {
        assert_eq!(assemble(&[&LOOP]), Err("`l` calls itself through l, m: there is no recursion".into()));
    }

    #[test]
    fn definitions_stand_before_their_use_and_once() {
        assert_eq!(assemble(&[&C, &B]).as_deref(), Ok("A\nB\nC"));
        assert!(assemble(&[&C, &A2]).is_err());
    }
}
