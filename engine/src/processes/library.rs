//! The MPI library: found and loaded at run time, called through the standard binary interface (ABI) of MPI 5.

use galamost_plugin_api::error::{Error, Result};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::ffi::{c_char, c_int, c_void};
use std::path::{Path, PathBuf};

/// A handle of the ABI: an address, or a small number for what is predefined.
pub type Handle = *mut c_void;

/// `MPI_COMM_WORLD`.
pub const WORLD: usize = 0x101;
/// `MPI_ERRORS_RETURN`.
pub const ERRORS_RETURN: usize = 0x143;
/// `MPI_REQUEST_NULL`.
pub const NO_REQUEST: usize = 0x180;
/// `MPI_BYTE`.
pub const BYTE: usize = 0x247;
/// `MPI_THREAD_SERIALIZED`: any thread may call, one at a time.
pub const SERIALIZED: c_int = 2048;
/// `MPI_MAX_LIBRARY_VERSION_STRING`.
const VERSION: usize = 8192;
/// `MPI_MAX_ERROR_STRING`.
const MESSAGE: usize = 512;

/// Declares the functions of the library that are in use.
macro_rules! functions {
    ($($field:ident = $name:literal ($($arg:ty),*);)*) => {
        /// Functions of the library. Each returns 0, or a number of an error.
        pub struct Functions { $(pub $field: unsafe extern "C" fn($($arg),*) -> c_int,)* }

        impl Functions {
            /// Looks up the functions.
            fn of(library: &Library) -> std::result::Result<Self, String> {
                // SAFETY: the types are those of the ABI
                unsafe {
                    Ok(Self { $($field: *library.get(concat!($name, "\0").as_bytes()).map_err(|e| e.to_string())?,)* })
                }
            }
        }

        /// Returns functions that do nothing.
        #[cfg(test)]
        pub fn silent() -> Functions {
            $(unsafe extern "C" fn $field($(_: $arg),*) -> c_int { 0 })*
            Functions { $($field,)* }
        }
    };
}

functions! {
    init_thread = "MPI_Init_thread" (*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int);
    finalize = "MPI_Finalize" ();
    abort = "MPI_Abort" (Handle, c_int);
    set_errhandler = "MPI_Comm_set_errhandler" (Handle, Handle);
    rank = "MPI_Comm_rank" (Handle, *mut c_int);
    size = "MPI_Comm_size" (Handle, *mut c_int);
    send = "MPI_Isend_c" (*const c_void, i64, Handle, c_int, c_int, Handle, *mut Handle);
    receive = "MPI_Irecv_c" (*mut c_void, i64, Handle, c_int, c_int, Handle, *mut Handle);
    test_all = "MPI_Testall" (c_int, *mut Handle, *mut c_int, *mut c_void);
    probe = "MPI_Iprobe" (c_int, c_int, Handle, *mut c_int, *mut c_void);
    error_string = "MPI_Error_string" (c_int, *mut c_char, *mut c_int);
    library_version = "MPI_Get_library_version" (*mut c_char, *mut c_int);
    abi_version = "MPI_Abi_get_version" (*mut c_int, *mut c_int);
}

/// Returns a predefined handle.
pub fn handle(number: usize) -> Handle {
    std::ptr::without_provenance_mut(number)
}

impl Functions {
    /// Returns the error of a call that failed.
    pub fn check(&self, what: &str, result: c_int) -> Result<()> {
        if result == 0 {
            return Ok(());
        }
        let text = Self::text(MESSAGE, |text, length| {
            // SAFETY: `text` has room for the longest message
            unsafe { (self.error_string)(result, text, length) }
        });
        Err(Error::Run(format!("MPI, {what}: {text}")))
    }

    /// Returns the version of the library and that of its ABI.
    fn version(&self) -> String {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers are valid
        let known = unsafe { (self.abi_version)(&raw mut major, &raw mut minor) } == 0;
        let text = Self::text(VERSION, |text, length| {
            // SAFETY: `text` has room for the longest version
            unsafe { (self.library_version)(text, length) }
        });
        let first = text.lines().next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        if known { format!("{first}, MPI ABI {major}.{minor}") } else { first }
    }

    /// Returns the text that a function writes.
    fn text(room: usize, f: impl Fn(*mut c_char, *mut c_int) -> c_int) -> String {
        let (mut bytes, mut length) = (vec![0u8; room + 1], 0);
        if f(bytes.as_mut_ptr().cast(), &raw mut length) != 0 {
            return "no text".into();
        }
        bytes.truncate((length.max(0) as usize).min(room));
        String::from_utf8_lossy(&bytes).trim_end_matches('\0').into()
    }
}

/// Names of the library for the dynamic linker.
const NAMES: [&str; 3] = ["libmpi_abi.so.0", "libmpi_abi.so.1", "libmpi_abi.so"];

/// Returns the places to look at: the file of `GALAMOST_MPI`, or else what the dynamic linker finds, and the folder `lib`
/// beside that of `mpiexec`.
fn candidates() -> Vec<PathBuf> {
    if let Some(file) = std::env::var_os("GALAMOST_MPI") {
        return vec![file.into()];
    }
    let mut all: Vec<PathBuf> = NAMES.map(PathBuf::from).into();
    let path = std::env::var_os("PATH").unwrap_or_default();
    for folder in std::env::split_paths(&path).filter(|f| f.join("mpiexec").exists()) {
        let beside = folder.parent().unwrap_or(Path::new("/")).join("lib");
        all.extend(NAMES.map(|name| beside.join(name)).into_iter().filter(|file| file.exists()));
    }
    all
}

/// Returns why the system cannot load a library.
pub fn cause(e: &libloading::Error) -> String {
    std::error::Error::source(e).map_or_else(|| e.to_string(), ToString::to_string)
}

/// Adds to a message of the system what to do if the file is no library.
fn explained(cause: &str) -> String {
    let is_none = ["file too short", "invalid ELF header"].iter().any(|text| cause.contains(text));
    let advice = "the file is no library; it may be a link that became a small text file when it was copied, or a script of the \
                  linker: give the library itself, such as libmpi_abi.so.0 or libmpi_abi.so.1";
    if is_none { format!("{cause}; {advice}") } else { cause.into() }
}

/// Loads the library. It is never unloaded.
///
/// # Errors
/// Returns an error if there is none, or if it lacks functions of MPI 5.
pub fn load() -> std::result::Result<(Functions, PathBuf), String> {
    let mut found = None;
    let all = candidates();
    for path in &all {
        // SAFETY: an MPI library has no preconditions on loading
        match unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) } {
            Ok(library) => {
                let functions = Functions::of(&library).map_err(|e| format!("{}: {e}", path.display()))?;
                std::mem::forget(library);
                return Ok((functions, path.clone()));
            }
            Err(e) if path.is_absolute() || all.len() == 1 => {
                found = Some(format!("{} cannot be loaded: {}", path.display(), explained(&cause(&e))));
            }
            Err(_) => {}
        }
    }
    Err(found.unwrap_or_else(|| {
        "no MPI library with the standard ABI of MPI 5 (libmpi_abi.so.0, libmpi_abi.so.1) was found; install MPICH 5 (Python \
         package mpich) and put its mpiexec on PATH, or set GALAMOST_MPI to the library"
            .into()
    }))
}

/// Returns the file of the library and its version.
///
/// # Errors
/// Returns an error if there is no library.
pub fn find() -> std::result::Result<(PathBuf, String), String> {
    let (functions, path) = load()?;
    Ok((path, functions.version()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_library_is_called_so() {
        let folder = std::env::temp_dir().join(format!("galamost-mpi-stub-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let long = "libmpi_abi.so.0.0.0 ".repeat(20);
        for text in ["", "libmpi_abi.so.0", &long] {
            let file = folder.join("libmpi_abi.so");
            std::fs::write(&file, text).expect("written");
            // SAFETY: the file is no library, so nothing is executed
            let error = unsafe { Library::open(Some(&file), RTLD_NOW | RTLD_GLOBAL) }.expect_err("no library");
            let message = explained(&cause(&error));
            assert!(message.contains("the file is no library"), "{message}");
        }
        std::fs::remove_dir_all(&folder).expect("removed");
        assert_eq!(explained("undefined symbol: x"), "undefined symbol: x");
    }
}
