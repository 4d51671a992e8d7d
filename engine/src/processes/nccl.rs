//! Messages between the GPUs of several processes through NCCL, which is loaded at run time.

use super::Messages;
use super::library::cause;
use galamost_plugin_api::error::{Error, Result};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};

/// Bytes of the identifier of a communicator.
const ID: usize = 128;

/// `ncclUniqueId`.
#[repr(C)]
#[derive(Clone, Copy)]
struct UniqueId([u8; ID]);

/// `ncclUint8`.
const BYTES: c_int = 1;

type Communicator = *mut c_void;

/// Declares the functions of the library that are in use.
macro_rules! functions {
    ($($field:ident = $name:literal ($($arg:ty),*) -> $result:ty;)*) => {
        struct Functions { $($field: unsafe extern "C" fn($($arg),*) -> $result,)* }

        impl Functions {
            fn of(library: &Library) -> std::result::Result<Self, String> {
                // SAFETY: the types are those of `nccl.h`
                unsafe {
                    Ok(Self { $($field: *library.get(concat!($name, "\0").as_bytes()).map_err(|e| e.to_string())?,)* })
                }
            }
        }
    };
}

functions! {
    unique_id = "ncclGetUniqueId" (*mut UniqueId) -> c_int;
    init_rank = "ncclCommInitRank" (*mut Communicator, c_int, UniqueId, c_int) -> c_int;
    abort = "ncclCommAbort" (Communicator) -> c_int;
    send = "ncclSend" (*const c_void, usize, c_int, c_int, Communicator, *mut c_void) -> c_int;
    receive = "ncclRecv" (*mut c_void, usize, c_int, c_int, Communicator, *mut c_void) -> c_int;
    group_start = "ncclGroupStart" () -> c_int;
    group_end = "ncclGroupEnd" () -> c_int;
    error_string = "ncclGetErrorString" (c_int) -> *const c_char;
}

/// A piece of memory of a GPU: the rank that it is sent to or received from, its address and its length in bytes.
pub type Piece = (usize, u64, usize);

/// The GPUs of all ranks.
pub struct Nccl {
    nccl: Functions,
    communicator: Communicator,
    stream: *mut c_void,
}

// SAFETY: one thread at a time uses a communicator: that of the rank
unsafe impl Send for Nccl {}
// SAFETY: a shared reference does not give the communicator to several threads at once: only the rank's thread uses it
unsafe impl Sync for Nccl {}

/// Returns the library of `GALAMOST_NCCL`: a file, a folder, or `1` for that which the system finds. `None` if it is not set.
fn library() -> Option<PathBuf> {
    let name = PathBuf::from(std::env::var_os("GALAMOST_NCCL")?);
    Some(match name.to_str() {
        Some("0" | "") => return None,
        Some("1") => "libnccl.so.2".into(),
        _ if name.is_dir() => name.join("libnccl.so.2"),
        _ => name,
    })
}

/// Returns whether `GALAMOST_NCCL` names a library. With `loads`, loads it.
///
/// # Errors
/// Returns an error if the library cannot be loaded.
pub fn check_library(loads: bool) -> std::result::Result<bool, String> {
    let Some(path) = library() else { return Ok(false) };
    if loads {
        Functions::load(&path)?;
    }
    Ok(true)
}

impl Functions {
    /// Loads a library, which is never unloaded.
    fn load(path: &Path) -> std::result::Result<Self, String> {
        let named = |e: String| format!("GALAMOST_NCCL: {}: {e}", path.display());
        // SAFETY: NCCL has no preconditions on loading
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) };
        let library = library.map_err(|e| named(cause(&e)))?;
        let functions = Self::of(&library).map_err(named)?;
        std::mem::forget(library);
        Ok(functions)
    }

    fn check(&self, what: &str, result: c_int) -> Result<()> {
        if result == 0 {
            return Ok(());
        }
        // SAFETY: the library returns a static string
        let text = unsafe { CStr::from_ptr((self.error_string)(result)) };
        Err(Error::Device { what: format!("NCCL, {what}"), message: text.to_string_lossy().into_owned() })
    }
}

impl Nccl {
    /// Connects the GPUs of all ranks, whose contexts are current, if `GALAMOST_NCCL` is set. Work is queued in `stream`, a
    /// `cudaStream_t`. All ranks call it.
    ///
    /// # Errors
    /// Returns an error if only some ranks have the library, or NCCL's error.
    pub fn connect(messages: &dyn Messages, stream: u64) -> Result<Option<Self>> {
        let path = library();
        let chosen = messages.all_numbers(path.is_some().into())?;
        let Some(path) = path.filter(|_| chosen.iter().all(|c| *c == 1)) else {
            if chosen.contains(&1) {
                return Err(Error::Run("GALAMOST_NCCL must be set in all processes or in none".into()));
            }
            return Ok(None);
        };
        let nccl = Functions::load(&path).map_err(Error::Run)?;
        let mut id = UniqueId([0; ID]);
        if messages.rank() == 0 {
            // SAFETY: the pointer is valid
            nccl.check("identifier", unsafe { (nccl.unique_id)(&raw mut id) })?;
        }
        let bytes = messages.broadcast(id.0.to_vec())?;
        id.0 = bytes.try_into().map_err(|_| Error::Run("an identifier of another size".into()))?;
        let mut communicator = std::ptr::null_mut();
        // SAFETY: the pointer is valid
        let result =
            unsafe { (nccl.init_rank)(&raw mut communicator, messages.ranks() as c_int, id, messages.rank() as c_int) };
        nccl.check("connection", result)?;
        Ok(Some(Self { nccl, communicator, stream: std::ptr::with_exposed_provenance_mut(stream as usize) }))
    }

    /// Queues the transfer of pieces of memory to and from other ranks.
    ///
    /// # Errors
    /// Returns NCCL's error.
    pub fn transfer(&self, send: &[Piece], receive: &[Piece]) -> Result<()> {
        let n = &self.nccl;
        // SAFETY: the pieces are in memory of this device, and the communicator and the stream are valid
        unsafe {
            n.check("group", (n.group_start)())?;
            for (rank, address, bytes) in send {
                let from = std::ptr::with_exposed_provenance(*address as usize);
                n.check("send", (n.send)(from, *bytes, BYTES, *rank as c_int, self.communicator, self.stream))?;
            }
            for (rank, address, bytes) in receive {
                let to = std::ptr::with_exposed_provenance_mut(*address as usize);
                n.check("receive", (n.receive)(to, *bytes, BYTES, *rank as c_int, self.communicator, self.stream))?;
            }
            n.check("group", (n.group_end)())
        }
    }
}

impl Drop for Nccl {
    fn drop(&mut self) {
        // nothing is in flight; ncclCommDestroy would wait for the other ranks, which end when this one has
        // SAFETY: the communicator is valid and not used any more
        let _ = unsafe { (self.nccl.abort)(self.communicator) };
    }
}
