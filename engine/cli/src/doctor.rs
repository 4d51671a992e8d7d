//! `galamost doctor`: what this machine gives a run, what is wrong, and how to mend it.

use galamost_engine::cpu;
use galamost_engine::device::{Chosen, CudaDevice, Services, Unit, cache_folder, choose, driver, nvrtc};
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::plugins::Registry;
use galamost_plugin_api::abi::{Extent, Opaque};
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::precision::Precision;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// What was found.
#[derive(Default)]
pub struct Report {
    /// Lines for the user.
    pub text: String,
    /// Number of things that keep runs from being done as they should.
    pub wrong: usize,
}

impl Report {
    fn title(&mut self, title: &str) {
        let _ = writeln!(self.text, "{title}");
    }
    fn good(&mut self, what: impl std::fmt::Display) {
        let _ = writeln!(self.text, "  ok     {what}");
    }
    /// Something a user may want to know, and what can be done.
    fn note(&mut self, what: impl std::fmt::Display, mend: &str) {
        let _ = writeln!(self.text, "  note   {what}");
        self.mend(mend);
    }
    fn bad(&mut self, what: impl std::fmt::Display, mend: &str) {
        let _ = writeln!(self.text, "  WRONG  {what}");
        self.mend(mend);
        self.wrong += 1;
    }
    fn mend(&mut self, how: &str) {
        for line in how.lines() {
            let _ = writeln!(self.text, "         {line}");
        }
    }
}

/// Looks at everything.
pub fn run(registry: &Registry) -> Report {
    let mut r = Report::default();
    machine(&mut r);
    let gpu = gpus(&mut r);
    plugins(&mut r, registry);
    places(&mut r, gpu);
    let _ = match r.wrong {
        0 => writeln!(r.text, "nothing is wrong"),
        1 => writeln!(r.text, "1 thing is wrong"),
        n => writeln!(r.text, "{n} things are wrong"),
    };
    r
}

fn machine(r: &mut Report) {
    r.title("program and processor");
    let program = std::env::current_exe().map(|p| p.display().to_string()).unwrap_or_default();
    r.good(format_args!("galamost {}, {program}", env!("CARGO_PKG_VERSION")));
    let vectors = ["baseline vectors only", "", "", "x86-64-v3 (AVX2)", "x86-64-v4 (AVX-512)"];
    let level = cpu::vector_extension() as usize;
    let said = format!("{} threads, {}", rayon::current_num_threads(), vectors[level]);
    match level {
        0 => r.note(said, "runs on the CPU are several times slower than with AVX2"),
        _ => r.good(said),
    }
    match memory() {
        Some((total, free)) => r.good(format_args!("{free:.1} of {total:.1} GiB of memory free")),
        None => r.note("the memory of this machine is not told", ""),
    }
}

/// GiB of memory, in all and free.
fn memory() -> Option<(f64, f64)> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let gib = |key: &str| -> Option<f64> {
        let line = text.lines().find_map(|l| l.strip_prefix(key))?;
        Some(line.trim().split(' ').next()?.parse::<f64>().ok()? / 1024.0 / 1024.0)
    };
    Some((gib("MemTotal:")?, gib("MemAvailable:")?))
}

/// Whether a GPU can be used.
fn gpus(r: &mut Report) -> bool {
    r.title("GPU");
    let compiler = match nvrtc::version() {
        Ok((major, minor)) => {
            r.good(format_args!("NVRTC {major}.{minor}"));
            true
        }
        Err(e) => {
            let how = "it compiles the kernels: install CUDA's toolkit, or NVRTC alone (the Python package\n\
                       nvidia-cuda-nvrtc), and set GALAMOST_NVRTC to the folder with libnvrtc.so";
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
            r.note(e, "runs use the CPU; a GPU needs NVIDIA's driver (nvidia-smi shows whether it works)");
            vec![]
        }
    };
    let mut usable = false;
    for (ordinal, name) in devices.into_iter().enumerate() {
        if !compiler {
            r.bad(format_args!("{name} lies idle without NVRTC"), "");
            continue;
        }
        match tried(ordinal as u32) {
            Ok(()) => {
                r.good(format_args!("Cuda({ordinal}): {name}; a kernel was compiled and run"));
                usable = true;
            }
            Err(e) => r.bad(
                format_args!("Cuda({ordinal}): {name}: {e}"),
                "look at nvidia-smi: is the driver older than NVRTC, is the GPU in exclusive use, is its memory full?",
            ),
        }
    }
    match choose(DeviceChoice::Auto) {
        Ok(Chosen::Cpu { reason }) => r.good(format_args!("`device: Auto` takes the CPU: {reason}")),
        Ok(chosen) => r.good(format_args!("`device: Auto` takes {chosen:?}")),
        Err(e) => r.bad(e, ""),
    }
    match choose(DeviceChoice::Emulated) {
        Ok(_) => r.good("g++ is there: `--device emulated` can be used"),
        Err(e) => r.note(e, "only tests of kernels without a GPU need it"),
    }
    usable
}

/// Compiles a kernel, runs it, and looks at what it wrote.
fn tried(ordinal: u32) -> Result<()> {
    let device = CudaDevice::new(ordinal, 1)?;
    let text = "extern \"C\" __global__ void doctor(unsigned *out) { out[threadIdx.x] = 3 * threadIdx.x + 1; }\n";
    let kernel = device.kernel(device.compile(&Unit::new("doctor", text, Precision::Mixed))?, "doctor")?;
    let out = device.allocate(4 * 32)?;
    let pointer = [std::ptr::from_ref(&out).cast_mut().cast::<Opaque>()];
    device.launch(kernel, Extent::from(1), Extent::from(32), 0, &pointer)?;
    let mut bytes = [0; 4 * 32];
    device.download(out, &mut bytes)?;
    device.free(out)?;
    let right = (0..32u32).flat_map(|i| (3 * i + 1).to_le_bytes());
    if right.eq(bytes) { Ok(()) } else { Err(Error::Run("a kernel computed something wrong".into())) }
}

fn plugins(r: &mut Report, registry: &Registry) {
    r.title("plugins");
    let all = registry.components();
    for folder in registry.searched() {
        let Ok(place) = folder.canonicalize() else {
            let _ = writeln!(r.text, "  -      {} is not there", folder.display());
            continue;
        };
        let mut here: Vec<String> =
            all.iter().filter(|(l, _)| l.path.parent() == Some(&place)).map(|(l, _)| l.record.name()).collect();
        let components = here.len();
        here.sort_unstable();
        here.dedup();
        r.good(format_args!("{}: {} plugins, {components} components", place.display(), here.len()));
        if others_may_write(&place) {
            r.bad(
                format_args!("{}: everybody may write there", place.display()),
                &format!("a plugin is a program that runs as you: chmod o-w {}", place.display()),
            );
        }
    }
    for (path, message) in registry.broken() {
        r.bad(format_args!("{} cannot be used: {message}", path.display()), "rebuild it or remove it");
    }
    if all.is_empty() {
        r.bad(
            "no plugin was found",
            "they belong into plugins/ beside the program or ../lib/galamost/plugins; else name their folder with\n\
             --plugin-dir or GALAMOST_PLUGIN_PATH",
        );
    }
}

fn others_may_write(folder: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(folder).is_ok_and(|m| m.permissions().mode() & 0o002 != 0)
}

fn places(r: &mut Report, gpu: bool) {
    r.title("disk");
    match cache_folder() {
        Some(cache) => {
            let trial = cache.join(format!("doctor.{}.part", std::process::id()));
            let sizes =
                || std::fs::read_dir(&cache).into_iter().flatten().filter_map(|e| Some(e.ok()?.metadata().ok()?.len()));
            let said = format!(
                "kernel cache {}: {} files, {:.1} MB",
                cache.display(),
                sizes().count(),
                sizes().sum::<u64>() as f64 / 1e6
            );
            match std::fs::write(&trial, "x").and_then(|()| std::fs::remove_file(&trial)) {
                Ok(()) => r.good(said),
                Err(e) => r.note(
                    format_args!("{said}; it cannot be written: {e}"),
                    "every start compiles all kernels again; set GALAMOST_CACHE to a folder that can be written",
                ),
            }
        }
        None => r.note(
            "there is no folder for compiled kernels",
            if gpu { "every start compiles them again: set GALAMOST_CACHE" } else { "" },
        ),
    }
    let here = std::env::current_dir().unwrap_or_else(|_| ".".into());
    match free_space(&here) {
        Some(gib) if gib < 1.0 => r.bad(
            format_args!("{gib:.2} GiB free in {}", here.display()),
            "a checkpoint takes about 100 bytes a particle, a frame of a trajectory about 30",
        ),
        Some(gib) => r.good(format_args!("{gib:.0} GiB free in {}", here.display())),
        None => r.note(format_args!("the free space in {} is not told", here.display()), ""),
    }
    let trial = here.join(format!(".galamost-doctor-{}", std::process::id()));
    match std::fs::write(&trial, "x").and_then(|()| std::fs::remove_file(&trial)) {
        Ok(()) => r.good(format_args!("{} can be written", here.display())),
        Err(e) => {
            r.note(format_args!("{} cannot be written: {e}", here.display()), "run pipelines where you may write")
        }
    }
}

/// GiB free on the disk of a folder, as `df` tells.
fn free_space(folder: &Path) -> Option<f64> {
    let out = Command::new("df").arg("-Pk").arg(folder).output().ok()?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    Some(text.lines().nth(1)?.split_whitespace().nth(3)?.parse::<f64>().ok()? / 1024.0 / 1024.0)
}
