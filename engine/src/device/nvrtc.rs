//! NVRTC: compiles CUDA C++ to machine code for one architecture.

use super::source::SourceUnit;
use super::{KernelReport, cache};
use cudarc::nvrtc::sys;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::precision::Precision;
use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tracing::debug;

fn fail(what: &str, message: impl std::fmt::Display) -> Error {
    Error::Device { what: what.into(), message: message.to_string() }
}

/// Loads the compiler library.
///
/// The environment variable `GALAMOST_NVRTC` names the library or its folder. Otherwise, the system's search path and
/// the usual CUDA folders are searched.
///
/// # Errors
/// Returns an error if the library is not found.
pub fn load() -> Result<()> {
    static LOADED: OnceLock<std::result::Result<(), String>> = OnceLock::new();
    LOADED.get_or_init(find_library).clone().map_err(|e| fail("NVRTC", e))
}

fn find_library() -> std::result::Result<(), String> {
    if let Some(given) = std::env::var_os("GALAMOST_NVRTC") {
        return preload(Path::new(&given));
    }
    // SAFETY: the call only searches for the library
    if unsafe { sys::is_culib_present() } {
        return Ok(());
    }
    let folders = ["/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib", "/usr/lib/x86_64-linux-gnu"];
    for folder in folders {
        if preload(Path::new(folder)).is_ok() {
            return Ok(());
        }
    }
    if beside_program().iter().any(|folder| preload(folder).is_ok()) {
        return Ok(());
    }
    Err("libnvrtc.so was not found; install CUDA's NVRTC, or set GALAMOST_NVRTC to its folder".into())
}

/// Returns the folders of the Python package `nvidia-cuda-nvrtc` in the environment that the program is installed in.
fn beside_program() -> Vec<PathBuf> {
    let program = std::env::current_exe().and_then(|p| p.canonicalize()).unwrap_or_default();
    let libraries = program.parent().map(|bin| bin.join("../lib")).unwrap_or_default();
    let entries = std::fs::read_dir(libraries).into_iter().flatten().filter_map(|e| Some(e.ok()?.path()));
    let python = entries.filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("python3")));
    python.map(|p| p.join("site-packages/nvidia/cu13/lib")).filter(|p| p.is_dir()).collect()
}

/// Opens the library of a folder (or the file itself), so later searches by name find it. The built-ins are opened
/// first because NVRTC searches for them by name only.
fn preload(path: &Path) -> std::result::Result<(), String> {
    let folder: PathBuf = if path.is_dir() { path.into() } else { path.parent().unwrap_or(path).into() };
    let list = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut names: Vec<PathBuf> = list.filter_map(|e| Some(e.ok()?.path())).collect();
    names.sort();
    let is_library = |p: &Path, s: &str| {
        p.file_name().is_some_and(|n| n.to_string_lossy().starts_with(s) && !n.to_string_lossy().contains(".alt."))
    };
    let builtins = names.iter().rev().find(|p| is_library(p, "libnvrtc-builtins.so"));
    let compiler = names.iter().rev().find(|p| is_library(p, "libnvrtc.so"));
    let Some(compiler) = compiler else { return Err(format!("{} does not contain libnvrtc.so", folder.display())) };
    for path in builtins.into_iter().chain([compiler]) {
        // SAFETY: NVIDIA's libraries have no preconditions on initialization, and they are never unloaded
        let library = unsafe {
            use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
            Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL)
        };
        std::mem::forget(library.map_err(|e| format!("{}: {e}", path.display()))?);
    }
    // SAFETY: the call only searches for the library
    if unsafe { sys::is_culib_present() } { Ok(()) } else { Err(format!("{} cannot be loaded", compiler.display())) }
}

/// Returns the version of the compiler, as major and minor number.
///
/// # Errors
/// Returns an error if the library is not found.
pub fn version() -> Result<(i32, i32)> {
    load()?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both pointers are valid
    check("nvrtcVersion", unsafe { sys::nvrtcVersion(&raw mut major, &raw mut minor) })?;
    Ok((major, minor))
}

fn check(what: &str, r: sys::nvrtcResult) -> Result<()> {
    if r == sys::nvrtcResult::NVRTC_SUCCESS { Ok(()) } else { Err(fail(what, format!("{r:?}"))) }
}

/// Compiles a unit to machine code for an architecture such as `sm_90`, or takes it from the cache. Also returns the
/// assembler's reports on the kernels; they are empty for cached code.
///
/// # Errors
/// Returns the compiler's messages.
pub fn compile(unit: &SourceUnit, architecture: &str) -> Result<(Vec<u8>, Vec<KernelReport>)> {
    let version = version()?;
    let headers = SourceUnit::headers()?;
    let options = options(unit, architecture);
    let mut inputs: Vec<&str> = vec![&unit.text];
    inputs.extend(options.iter().map(String::as_str));
    inputs.extend(headers.iter().map(|(_, t)| t.as_str()));
    let compiler = format!("NVRTC {}.{}", version.0, version.1);
    inputs.push(&compiler);
    let key = cache::key(&inputs);
    if let Some(cubin) = cache::get(&key, "cubin") {
        return Ok((cubin, vec![]));
    }
    let start = std::time::Instant::now();
    let (cubin, log) = run_compiler(unit, &options, &headers)?;
    debug!("{} compiled in {:.2} s", unit.name, start.elapsed().as_secs_f64());
    cache::put(&key, "cubin", &cubin);
    Ok((cubin, reports(&log)))
}

fn options(unit: &SourceUnit, architecture: &str) -> Vec<String> {
    let mut o = vec![
        format!("--gpu-architecture={architecture}"),
        "--std=c++17".into(),
        "--ptxas-options=-v".into(),
        "--extra-device-vectorization".into(),
        // a function must give the same bits in every kernel; products that are fused with sums are written as such
        "--fmad=false".into(),
    ];
    if unit.precision != Precision::Double {
        // divisions and square roots in f32 with an error of 2 ulp instead of ½ ulp, far below the error of a sum over
        // neighbors
        o.extend(["--ftz=true", "--prec-div=false", "--prec-sqrt=false"].map(String::from));
    }
    o.extend(unit.defines().iter().map(|d| format!("-D{d}")));
    o
}

fn run_compiler(unit: &SourceUnit, options: &[String], headers: &[(&str, String)]) -> Result<(Vec<u8>, String)> {
    let c = |s: &str| CString::new(s).map_err(|e| fail(&unit.name, e));
    let (text, name) = (c(&unit.text)?, c(&unit.name)?);
    let header_texts = headers.iter().map(|(_, t)| c(t)).collect::<Result<Vec<_>>>()?;
    let header_names = headers.iter().map(|(n, _)| c(n)).collect::<Result<Vec<_>>>()?;
    let options = options.iter().map(|o| c(o)).collect::<Result<Vec<_>>>()?;
    let pointers = |list: &[CString]| list.iter().map(|s| s.as_ptr()).collect::<Vec<_>>();
    let (texts, names, options) = (pointers(&header_texts), pointers(&header_names), pointers(&options));
    let mut program = std::ptr::null_mut();
    // SAFETY: every pointer refers to a string that lives until the end of this function, and the sizes are those of
    // the arrays
    unsafe {
        check(
            "nvrtcCreateProgram",
            sys::nvrtcCreateProgram(
                &raw mut program,
                text.as_ptr(),
                name.as_ptr(),
                texts.len() as i32,
                texts.as_ptr(),
                names.as_ptr(),
            ),
        )?;
        let result = sys::nvrtcCompileProgram(program, options.len() as i32, options.as_ptr());
        let mut size = 0;
        check("nvrtcGetProgramLogSize", sys::nvrtcGetProgramLogSize(program, &raw mut size))?;
        let mut log = vec![0u8; size.max(1)];
        check("nvrtcGetProgramLog", sys::nvrtcGetProgramLog(program, log.as_mut_ptr().cast()))?;
        let log = CStr::from_bytes_until_nul(&log).map(|l| l.to_string_lossy().into_owned()).unwrap_or_default();
        if result != sys::nvrtcResult::NVRTC_SUCCESS {
            let _ = sys::nvrtcDestroyProgram(&raw mut program);
            return Err(fail(&format!("compiling {}", unit.name), log.trim()));
        }
        let mut size = 0;
        check("nvrtcGetCUBINSize", sys::nvrtcGetCUBINSize(program, &raw mut size))?;
        let mut cubin = vec![0u8; size];
        check("nvrtcGetCUBIN", sys::nvrtcGetCUBIN(program, cubin.as_mut_ptr().cast()))?;
        check("nvrtcDestroyProgram", sys::nvrtcDestroyProgram(&raw mut program))?;
        Ok((cubin, log))
    }
}

/// Parses the assembler's lines about registers, spills and shared memory.
fn reports(log: &str) -> Vec<KernelReport> {
    let mut list: Vec<KernelReport> = vec![];
    let number_before = |line: &str, word: &str| -> u32 {
        let head = line.find(word).map_or("", |n| &line[..n]);
        head.split_whitespace().last().and_then(|n| n.parse().ok()).unwrap_or(0)
    };
    for line in log.lines() {
        if let Some(rest) = line.split("Compiling entry function '").nth(1) {
            list.push(KernelReport {
                name: rest.split('\'').next().unwrap_or_default().into(),
                ..KernelReport::default()
            });
        } else if let Some(k) = list.last_mut() {
            if line.contains("bytes spill stores") {
                k.stack = number_before(line, "bytes stack frame");
                k.spills = number_before(line, "bytes spill stores").max(number_before(line, "bytes spill loads"));
            }
            if line.contains("registers") {
                k.registers = number_before(line, "registers");
                k.shared = number_before(line, "bytes smem");
            }
        }
    }
    list
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_assembler_log_is_read() {
        let log = "ptxas info    : 0 bytes gmem\nptxas info    : Compiling entry function 'pair_force' for 'sm_90'\nptxas info    : Function properties for pair_force\n    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\nptxas info    : Used 40 registers, used 1 barriers, 1024 bytes smem\n";
        let r = super::reports(log);
        assert_eq!((r[0].name.as_str(), r[0].registers, r[0].shared), ("pair_force", 40, 1024));
        assert_eq!((r[0].stack, r[0].spills), (16, 12));
    }
}
