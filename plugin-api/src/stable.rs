//! Types of `abi_stable`. This is the only file that names the crate.

pub(crate) use abi_stable::StableAbi;
use abi_stable::abi_stability::abi_checking::check_layout_compatibility;
use abi_stable::library::{LibHeader, RootModule, lib_header_from_path};
use abi_stable::sabi_types::VersionStrings;
pub use abi_stable::std_types::{ROption, RResult, RSlice, RSliceMut, RStr, RString, RVec};
use abi_stable::type_layout::TypeLayout;
use std::path::Path;

#[cfg(test)]
pub(crate) use abi_stable::library::ROOT_MODULE_LOADER_NAME;
pub use abi_stable::library::{__call_root_module_loader, CheckTypeLayout, RootModuleResult};
pub use abi_stable::prefix_type::PrefixTypeTrait;

/// An opaque object: only the side that created it can access its contents.
#[repr(C)]
#[derive(StableAbi)]
pub struct Opaque {
    private: [u8; 0],
}

/// A table of functions with its layout, which is checked before the table is used.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct TablePointer {
    layout: &'static TypeLayout,
    address: *const Opaque,
}

impl TablePointer {
    /// Wraps a table.
    pub const fn new<T: StableAbi>(table: &'static T) -> Self {
        Self { layout: T::LAYOUT, address: std::ptr::from_ref(table).cast() }
    }

    /// Returns the table if its layout is the expected one.
    ///
    /// # Errors
    /// Returns the report of `abi_stable`, which can be long.
    pub fn get<T: StableAbi>(self) -> Result<&'static T, String> {
        // a table of this library has the very layout
        if !std::ptr::eq(T::LAYOUT, self.layout) {
            check_layout_compatibility(T::LAYOUT, self.layout).map_err(|e| e.to_string())?;
        }
        // SAFETY: the layout was compared, and tables are statics of libraries that are never unloaded
        Ok(unsafe { &*self.address.cast::<T>() })
    }
}

/// The root module of a plugin; never changes.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = RootRef)))]
#[sabi(missing_field(panic))]
pub struct Root {
    /// Returns a table of the library by name.
    #[sabi(last_prefix_field)]
    pub interface: extern "C" fn(RStr<'_>) -> ROption<TablePointer>,
}

impl RootModule for RootRef {
    const BASE_NAME: &'static str = "galamost_plugin";
    const NAME: &'static str = "galamost_plugin";
    // the version of the root module never changes; the plugin record holds the version of the API
    const VERSION_STRINGS: VersionStrings = VersionStrings::new("1.0.0");
    abi_stable::declare_root_module_statics! {RootRef}
}

/// The header that a plugin exports; [`crate::plugin`] creates it.
pub type Header = LibHeader;

/// Creates the header of this root module.
///
/// # Safety
/// `constructor` must return a [`RootRef`].
pub const unsafe fn header(constructor: extern "C" fn() -> RootModuleResult) -> Header {
    // SAFETY: `constructor` returns a `RootRef` (contract of this function)
    unsafe { LibHeader::from_constructor::<RootRef>(constructor, CheckTypeLayout::Yes) }
}

/// Loads the root module of a plugin. The library stays loaded until the process ends.
///
/// # Errors
/// Returns the report of `abi_stable`: short if the file is not a plugin, very long if layouts differ.
pub fn load_root(path: &Path) -> Result<RootRef, String> {
    let header = lib_header_from_path(path).map_err(|e| e.to_string())?;
    header.init_root_module::<RootRef>().map_err(|e| e.to_string())
}
