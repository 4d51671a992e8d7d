//! `galamost doctor`: checks processor, GPUs, kernel compiler, plugins and disk, and says how to fix problems.

use crate::common::Context;
use crate::terminal::print;
use galamost_engine::cpu;
use galamost_engine::device::{
    Chosen, CudaDevice, Services, SourceUnit, cache_folder, check_peers, choose, driver, nvrtc,
};
use galamost_engine::diagnostic::{Failure, counted};
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::plugins::Registry;
use galamost_engine::processes::{Launch, check_launch, find, launch, nccl_version};
use galamost_plugin_api::abi::{Extent, Opaque};
use galamost_plugin_api::error::{self, Error};
use galamost_plugin_api::precision::Precision;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// The findings.
#[derive(Default)]
struct Findings {
    /// The printed text.
    text: String,
    /// Number of problems.
    problems: usize,
}

impl Findings {
    fn title(&mut self, title: &str) {
        let _ = writeln!(self.text, "{title}");
    }
    fn good(&mut self, what: impl std::fmt::Display) {
        let _ = writeln!(self.text, "  ok     {what}");
    }
    /// Adds a limitation and its remedy.
    fn note(&mut self, what: impl std::fmt::Display, remedy: &str) {
        let _ = writeln!(self.text, "  note   {what}");
        self.remedy(remedy);
    }
    /// Adds a problem and its remedy.
    fn bad(&mut self, what: impl std::fmt::Display, remedy: &str) {
        let _ = writeln!(self.text, "  ERROR  {what}");
        self.remedy(remedy);
        self.problems += 1;
    }
    fn remedy(&mut self, text: &str) {
        for line in text.lines() {
            let _ = writeln!(self.text, "         {line}");
        }
    }
}

/// Runs the command. The exit status is 1 if there are problems.
///
/// # Errors
/// Returns an error if the findings cannot be printed.
pub(crate) fn run(context: &Context) -> Result<u8, Failure> {
    let mut r = Findings::default();
    processor(&mut r);
    let gpu = gpus(&mut r);
    processes(&mut r);
    plugins(&mut r, &context.registry());
    kernel_cache(&mut r, gpu);
    disk(&mut r);
    let _ = match r.problems {
        0 => writeln!(r.text, "no problems found"),
        n => writeln!(r.text, "{} found", counted(n as u64, "problem")),
    };
    print(&r.text)?;
    Ok(u8::from(r.problems > 0))
}

fn processor(r: &mut Findings) {
    r.title("program and processor");
    let program = std::env::current_exe().map(|p| p.display().to_string()).unwrap_or_default();
    r.good(format_args!("galamost {}, {program}", env!("CARGO_PKG_VERSION")));
    let vectors = ["baseline vectors only", "", "", "x86-64-v3 (AVX2)", "x86-64-v4 (AVX-512)"];
    let level = cpu::vector_extension() as usize;
    let text = format!("{}, {}", counted(rayon::current_num_threads() as u64, "thread"), vectors[level]);
    match level {
        0 => r.note(text, "runs on the CPU are several times slower than with AVX2"),
        _ => r.good(text),
    }
    match memory() {
        Some((total, free)) => r.good(format_args!("{free:.1} of {total:.1} GiB of memory free")),
        None => r.note("the size of the memory is unknown", ""),
    }
}

/// Returns the total and the free memory in GiB.
fn memory() -> Option<(f64, f64)> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let gib = |key: &str| -> Option<f64> {
        let line = text.lines().find_map(|l| l.strip_prefix(key))?;
        Some(line.trim().split(' ').next()?.parse::<f64>().ok()? / 1024.0 / 1024.0)
    };
    Some((gib("MemTotal:")?, gib("MemAvailable:")?))
}

/// Checks compiler, driver and GPUs. Returns whether a GPU can be used.
fn gpus(r: &mut Findings) -> bool {
    r.title("GPU");
    let compiler = match nvrtc::version() {
        Ok((major, minor)) => {
            r.good(format_args!("NVRTC {major}.{minor}"));
            true
        }
        Err(e) => {
            let how = "NVRTC compiles the kernels: install the CUDA toolkit, or NVRTC alone (Python package\n\
                       nvidia-cuda-nvrtc), and set GALAMOST_NVRTC to the folder that contains libnvrtc.so";
            r.note(e, how);
            false
        }
    };
    let devices = match driver() {
        Ok((version, devices)) => {
            r.good(format_args!("driver for CUDA {}.{}", version / 1000, version % 1000 / 10));
            devices
        }
        Err(e) => {
            r.note(e, "runs use the CPU; a GPU needs the NVIDIA driver (nvidia-smi shows whether it works)");
            vec![]
        }
    };
    let mut usable = false;
    if devices.len() > 1 {
        let count = devices.len() as u32;
        match check_peers(0, count) {
            Ok(()) => r.good(format_args!("the GPUs read each other's memory: a run can use `--gpus {count}`")),
            Err(e) => r.note(e, "a run on several GPUs needs NVLink, or PCIe with peer access"),
        }
    }
    for (ordinal, name) in devices.into_iter().enumerate() {
        if !compiler {
            r.bad(format_args!("{name} cannot be used without NVRTC"), "");
            continue;
        }
        match run_test_kernel(ordinal as u32) {
            Ok(()) => {
                r.good(format_args!("Cuda({ordinal}): {name}; a kernel was compiled and run"));
                usable = true;
            }
            Err(e) => r.bad(
                format_args!("Cuda({ordinal}): {name}: {e}"),
                "check with nvidia-smi: driver older than NVRTC? GPU in exclusive use? GPU memory full?",
            ),
        }
    }
    match choose(DeviceChoice::Auto) {
        Ok(Chosen::Cpu { reason }) => r.good(format_args!("`device: Auto` selects the CPU: {reason}")),
        Ok(chosen) => r.good(format_args!("`device: Auto` selects {chosen:?}")),
        Err(e) => r.bad(e, ""),
    }
    match choose(DeviceChoice::Emulated) {
        Ok(_) => r.good("g++ found: `--device emulated` can be used"),
        Err(e) => r.note(e, "needed only to test kernels without a GPU"),
    }
    usable
}

/// Checks what runs of several processes need.
fn processes(r: &mut Findings) {
    r.title("several processes");
    match find() {
        Ok((path, version)) => r.good(format_args!("{version}: {}", path.display())),
        Err(e) => r.note(e, "needed only for a run of several processes, for example on several hosts"),
    }
    match nccl_version() {
        Ok(Some(version)) => r.good(format_args!("NCCL {version}")),
        Ok(None) => r.good("GALAMOST_NCCL is 0: messages between GPUs pass through the memory of the hosts"),
        Err(e) => r.note(
            e,
            "needed only for GPUs of several processes, whose messages pass through the memory of the hosts without it",
        ),
    }
    match launch() {
        Some(Launch { rank, ranks, variables: [of, count] }) => {
            r.good(format_args!("this is rank {rank} of {ranks} ({of}, {count})"));
        }
        None => match check_launch() {
            Ok(None) => r.good("this is a single process"),
            Ok(Some(warning)) => r.note(format_args!("this is a single process; {warning}"), ""),
            Err(e) => r.bad(e, ""),
        },
    }
}

/// Compiles a kernel, runs it and compares its output.
fn run_test_kernel(ordinal: u32) -> error::Result<()> {
    let device = CudaDevice::new(ordinal, 1)?;
    let text = "extern \"C\" __global__ void doctor(unsigned *out) { out[threadIdx.x] = 3 * threadIdx.x + 1; }\n";
    let kernel = device.kernel(device.compile(&SourceUnit::new("doctor", text, Precision::Mixed))?, "doctor")?;
    let out = device.allocate(4 * 32)?;
    let pointer = [std::ptr::from_ref(&out).cast_mut().cast::<Opaque>()];
    // SAFETY: the kernel takes the address of 32 numbers
    unsafe { device.launch(kernel, Extent::from(1), Extent::from(32), 0, &pointer)? };
    let mut bytes = [0; 4 * 32];
    device.download(out, &mut bytes)?;
    device.free(out)?;
    let right = (0..32u32).flat_map(|i| (3 * i + 1).to_le_bytes());
    if right.eq(bytes) { Ok(()) } else { Err(Error::Run("a test kernel returned wrong results".into())) }
}

/// Checks the plugin folders and the plugins in them.
fn plugins(r: &mut Findings, registry: &Registry) {
    r.title("plugins");
    let all = registry.components();
    for folder in registry.searched() {
        let Ok(path) = folder.canonicalize() else {
            let _ = writeln!(r.text, "  -      {} does not exist", folder.display());
            continue;
        };
        let mut here: Vec<String> =
            all.iter().filter(|(l, _)| l.path.parent() == Some(&path)).map(|(l, _)| l.record.name()).collect();
        let components = here.len();
        here.sort_unstable();
        here.dedup();
        let (plugins, components) = (counted(here.len() as u64, "plugin"), counted(components as u64, "component"));
        r.good(format_args!("{}: {plugins}, {components}", path.display()));
        if is_world_writable(&path) {
            r.bad(
                format_args!("{}: writable by all users", path.display()),
                &format!("plugins run with your permissions: chmod o-w {}", path.display()),
            );
        }
    }
    for (path, message) in registry.broken() {
        r.bad(format_args!("{} cannot be used: {message}", path.display()), "rebuild it or remove it");
    }
    if all.is_empty() {
        r.bad(
            "no plugins found",
            "install them in plugins/ beside the program or in ../lib/galamost/plugins, or give their folder with\n\
             --plugin-dir or GALAMOST_PLUGIN_PATH",
        );
    }
}

fn is_world_writable(folder: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(folder).is_ok_and(|m| m.permissions().mode() & 0o002 != 0)
}

/// Checks the cache of compiled kernels.
fn kernel_cache(r: &mut Findings, gpu: bool) {
    r.title("disk");
    match cache_folder() {
        Some(cache) => {
            let trial = cache.join(format!("doctor.{}.part", std::process::id()));
            let sizes =
                || std::fs::read_dir(&cache).into_iter().flatten().filter_map(|e| Some(e.ok()?.metadata().ok()?.len()));
            let text = format!(
                "kernel cache {}: {}, {:.1} MB",
                cache.display(),
                counted(sizes().count() as u64, "file"),
                sizes().sum::<u64>() as f64 / 1e6
            );
            match std::fs::write(&trial, "x").and_then(|()| std::fs::remove_file(&trial)) {
                Ok(()) => r.good(text),
                Err(e) => r.note(
                    format_args!("{text}; not writable: {e}"),
                    "every start compiles all kernels again; set GALAMOST_CACHE to a writable folder",
                ),
            }
        }
        None => r.note(
            "there is no folder for compiled kernels",
            if gpu { "every start compiles them again: set GALAMOST_CACHE" } else { "" },
        ),
    }
}

/// Checks the current folder.
fn disk(r: &mut Findings) {
    let here = std::env::current_dir().unwrap_or_else(|_| ".".into());
    match free_space(&here) {
        Some(gib) if gib < 1.0 => r.bad(
            format_args!("{gib:.2} GiB free in {}", here.display()),
            "a checkpoint takes about 100 bytes per particle, a trajectory frame about 30",
        ),
        Some(gib) => r.good(format_args!("{gib:.0} GiB free in {}", here.display())),
        None => r.note(format_args!("the free space in {} is unknown", here.display()), ""),
    }
    let trial = here.join(format!(".galamost-doctor-{}", std::process::id()));
    match std::fs::write(&trial, "x").and_then(|()| std::fs::remove_file(&trial)) {
        Ok(()) => r.good(format_args!("{} is writable", here.display())),
        Err(e) => r.note(format_args!("{} is not writable: {e}", here.display()), "run pipelines in a writable folder"),
    }
}

/// Returns the free disk space of a folder in GiB, according to `df`.
fn free_space(folder: &Path) -> Option<f64> {
    let out = Command::new("df").arg("-Pk").arg(folder).output().ok()?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    Some(text.lines().nth(1)?.split_whitespace().nth(3)?.parse::<f64>().ok()? / 1024.0 / 1024.0)
}
