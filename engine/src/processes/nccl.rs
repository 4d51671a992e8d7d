//! Messages between the GPUs of several processes through NCCL, which is loaded at run time.

use super::library::cause;
use super::{Messages, failed};
use galamost_plugin_api::error::{Error, Result};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicPtr, Ordering};
use tracing::warn;

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
    version = "ncclGetVersion" (*mut c_int) -> c_int;
    error_string = "ncclGetErrorString" (c_int) -> *const c_char;
}

/// A piece of memory of a GPU: the rank that it is sent to or received from, its address and its length in bytes.
pub type Piece = (usize, u64, usize);

/// The GPUs of all ranks.
pub struct Nccl {
    nccl: Functions,
    /// Null after [`Self::abort`].
    communicator: AtomicPtr<c_void>,
    stream: *mut c_void,
}

// SAFETY: one thread at a time uses a communicator: that of the rank
unsafe impl Send for Nccl {}
// SAFETY: a shared reference does not give the communicator to several threads at once: only the rank's thread uses it
unsafe impl Sync for Nccl {}

/// What `GALAMOST_NCCL` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Not set: NCCL is used if all processes find it.
    IfFound,
    /// `0`.
    Never,
    /// `1`, a file, or a folder: this library must be there.
    Required(PathBuf),
}

/// The name of the library, which the system searches for.
const NAME: &str = "libnccl.so.2";

impl Choice {
    /// Reads the variable.
    pub fn of_environment() -> Self {
        let Some(name) = std::env::var_os("GALAMOST_NCCL").filter(|name| !name.is_empty()).map(PathBuf::from) else {
            return Self::IfFound;
        };
        match name.to_str() {
            Some("0") => Self::Never,
            Some("1") => Self::Required(NAME.into()),
            _ if name.is_dir() => Self::Required(name.join(NAME)),
            _ => Self::Required(name),
        }
    }

    /// Returns a word for it that is the same on hosts with the library in other folders.
    pub fn name(&self) -> &'static str {
        match self {
            Self::IfFound => "unset",
            Self::Never => "0",
            Self::Required(_) => "set",
        }
    }
}

/// Loads the library that `GALAMOST_NCCL` requires, if it requires one.
///
/// # Errors
/// Returns an error if it cannot be loaded.
pub fn check_nccl() -> std::result::Result<(), String> {
    match Choice::of_environment() {
        Choice::Required(path) => Functions::load(&path).map(drop),
        _ => Ok(()),
    }
}

/// Returns the version of the library that a run would use, such as 2.28.9. `None` if `GALAMOST_NCCL` is 0.
///
/// # Errors
/// Returns an error if it cannot be loaded.
pub fn nccl_version() -> std::result::Result<Option<String>, String> {
    let path = match Choice::of_environment() {
        Choice::Never => return Ok(None),
        Choice::IfFound => NAME.into(),
        Choice::Required(path) => path,
    };
    let nccl = Functions::load(&path)?;
    let mut number = 0;
    // SAFETY: the pointer is valid
    nccl.check("version", unsafe { (nccl.version)(&raw mut number) }).map_err(|e| e.to_string())?;
    Ok(Some(format!("{}.{}.{}", number / 10_000, number / 100 % 100, number % 100)))
}

impl Functions {
    /// Loads a library, which is never unloaded.
    fn load(path: &Path) -> std::result::Result<Self, String> {
        let named = |e: String| format!("NCCL: {}: {e}", path.display());
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
    /// Connects the GPUs of all ranks, whose contexts are current, if all of them have the library. Work is queued in `stream`, a
    /// `cudaStream_t`; 0 for memory of the host, which only a library that is required handles. NCCL refuses two ranks that share a GPU (`shared`).
    /// All ranks call it.
    ///
    /// # Errors
    /// Returns an error if the library is required and cannot be loaded, or NCCL's error.
    pub fn connect(messages: &dyn Messages, stream: u64, shared: bool) -> Result<Option<Self>> {
        let choice = Choice::of_environment();
        let looks = choice == Choice::IfFound && stream != 0 && !shared;
        let found = match choice {
            Choice::Required(path) => Some(Functions::load(&path).map_err(Error::Run)?),
            _ if looks => Functions::load(Path::new(NAME)).ok(),
            _ => None,
        };
        let all = messages.all_numbers(found.is_some().into())?;
        let Some(nccl) = found.filter(|_| all.iter().all(|n| *n == 1)) else {
            if looks && messages.rank() == 0 {
                let missing: Vec<_> = (0..all.len()).filter(|r| all[*r] == 0).map(|r| r.to_string()).collect();
                let ranks = missing.join(", ");
                let slow = "messages between GPUs pass through the memory of the hosts, which is slow";
                warn!("{slow}: NCCL is missing for rank {ranks} (see `galamost doctor`)");
            }
            return Ok(None);
        };
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
        nccl.check("connection (with GALAMOST_NCCL=0, messages pass through the memory of the hosts)", result)?;
        let communicator = AtomicPtr::new(communicator);
        Ok(Some(Self { nccl, communicator, stream: std::ptr::with_exposed_provenance_mut(stream as usize) }))
    }

    /// Queues the transfer of pieces of memory to and from other ranks.
    ///
    /// # Errors
    /// Returns NCCL's error.
    pub fn transfer(&self, send: &[Piece], receive: &[Piece]) -> Result<()> {
        let (n, communicator) = (&self.nccl, self.communicator.load(Ordering::Relaxed));
        if communicator.is_null() {
            return Err(failed());
        }
        // SAFETY: the pieces are in memory of this device, and the communicator and the stream are valid
        unsafe {
            n.check("group", (n.group_start)())?;
            for (rank, address, bytes) in send {
                let from = std::ptr::with_exposed_provenance(*address as usize);
                n.check("send", (n.send)(from, *bytes, BYTES, *rank as c_int, communicator, self.stream))?;
            }
            for (rank, address, bytes) in receive {
                let to = std::ptr::with_exposed_provenance_mut(*address as usize);
                n.check("receive", (n.receive)(to, *bytes, BYTES, *rank as c_int, communicator, self.stream))?;
            }
            n.check("group", (n.group_end)())
        }
    }
}

impl Nccl {
    /// Ends all transfers, also those that wait on the device for a rank that is lost. There are no others afterwards.
    pub fn abort(&self) {
        let communicator = self.communicator.swap(std::ptr::null_mut(), Ordering::Relaxed);
        if !communicator.is_null() {
            // SAFETY: the communicator is valid, and nobody else has its address any more
            let _ = unsafe { (self.nccl.abort)(communicator) };
        }
    }
}

impl Drop for Nccl {
    fn drop(&mut self) {
        // nothing is in flight; ncclCommDestroy would wait for the other ranks, which end when this one has
        self.abort();
    }
}
