//! The record that every plugin exports. The engine reads it from the file before it loads the library.
//!
//! The layout never changes: fixed sizes and no pointers, so the bytes in the file are the record. A version mismatch
//! is reported from here, in two lines, before `abi_stable` compares layouts.

/// Symbol of the record.
pub const RECORD_SYMBOL: &str = "GALAMOST_PLUGIN";
/// Symbol of the root module's header, as `abi_stable` mangles it.
pub const ROOT_SYMBOL: &str = "_1as_0lib_1header_0root_bmodule_bloader";

/// First bytes of the record.
pub const MAGIC: [u8; 16] = *b"GALAMOST-PLUGIN\0";
/// Major version of the plugin API. A plugin loads only in an engine with the same major version.
pub const API_MAJOR: u32 = 1;
/// Minor version of the plugin API. Every new table increments it.
pub const API_MINOR: u32 = 0;
/// Version of the CUDA headers that device code of a plugin includes.
pub const KERNEL_API: u32 = 1;

/// Bits of [`PluginRecord::flags`].
pub mod flags {
    /// Built with `panic = "abort"`: panics cannot be caught.
    pub const ABORTS: u32 = 1;
    /// Built with debug assertions, as in the `dev` profile.
    pub const DEBUG: u32 = 2;
}

/// Identity of a plugin.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PluginRecord {
    /// [`MAGIC`].
    pub magic: [u8; 16],
    /// Size of this record in bytes.
    pub size: u32,
    /// [`API_MAJOR`] the plugin was built with.
    pub api_major: u32,
    /// [`API_MINOR`] the plugin was built with.
    pub api_minor: u32,
    /// [`KERNEL_API`] the plugin was built with.
    pub kernel_api: u32,
    /// Name of the crate, padded with 0.
    pub name: [u8; 64],
    /// Version of the crate, padded with 0.
    pub version: [u8; 32],
    /// Build options: [`flags`].
    pub flags: u32,
    /// Reserved; must be 0.
    pub reserved: [u32; 7],
}

const fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut out = [0; N];
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() && i < N - 1 {
        out[i] = bytes[i];
        i += 1;
    }
    out
}

impl PluginRecord {
    /// Creates the record of a crate that is built with this API.
    pub const fn new(name: &str, version: &str, flags: u32) -> Self {
        Self {
            magic: MAGIC,
            size: size_of::<Self>() as u32,
            api_major: API_MAJOR,
            api_minor: API_MINOR,
            kernel_api: KERNEL_API,
            name: padded(name),
            version: padded(version),
            flags,
            reserved: [0; 7],
        }
    }

    /// Reads a record from the bytes of a file.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let record = Self {
            magic: bytes.get(..16)?.try_into().ok()?,
            size: word(16)?,
            api_major: word(20)?,
            api_minor: word(24)?,
            kernel_api: word(28)?,
            name: bytes.get(32..96)?.try_into().ok()?,
            version: bytes.get(96..128)?.try_into().ok()?,
            flags: word(128)?,
            reserved: [0; 7],
        };
        // a later record may be longer, but starts with this one
        (record.magic == MAGIC && record.size as usize >= size_of::<Self>()).then_some(record)
    }

    /// Returns the name of the crate.
    pub fn name(&self) -> String {
        text(&self.name)
    }

    /// Returns the version of the crate.
    pub fn version(&self) -> String {
        text(&self.version)
    }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `plugin!` exports the header under this name, which must match the name that `abi_stable` looks for.
    #[test]
    fn the_header_has_the_name_abi_stable_looks_for() {
        assert_eq!(crate::stable::ROOT_MODULE_LOADER_NAME, ROOT_SYMBOL);
    }

    #[test]
    fn the_bytes_are_the_record() {
        let r = PluginRecord::new("lennard-jones", "1.2.3", flags::DEBUG);
        assert_eq!(size_of::<PluginRecord>(), 160);
        // SAFETY: the record is plain bytes without padding
        let bytes = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(&r).cast::<u8>(), 160) };
        assert_eq!(PluginRecord::parse(bytes), Some(r));
        assert_eq!((r.name(), r.version()), ("lennard-jones".into(), "1.2.3".into()));
        assert_eq!(PluginRecord::parse(&bytes[1..]), None);
        assert_eq!(PluginRecord::parse(&bytes[..128]), None);
    }
}
