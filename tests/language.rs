//! The device language: random functions, compiled by rustc, by g++ with the header of the emulated device, and by NVRTC.
//!
//! `GALAMOST_LANGUAGE_SEED` gives other functions. The sources stay in `target/outside/language`.

#[path = "language/generator/mod.rs"]
mod generator;

use galamost_engine::device::{Device, EmulatedDevice, SourceUnit, nvrtc};
use galamost_plugin_api::abi::{Extent, Opaque};
use galamost_plugin_api::philox::philox4x32;
use galamost_plugin_api::precision::Precision;
use galamost_tests::{build_outside, has_compiler, has_nvrtc, repository};
use generator::Generator;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Functions without and with elementary functions.
const EXACT: u32 = 40;
const SMOOTH: u32 = 20;
/// Sets of arguments.
const ROWS: usize = 64;
/// Words of a row's result: four numbers, an i32, a u64.
const WORDS: usize = 6;

/// What the program around the functions wrote.
struct Native {
    folder: PathBuf,
    /// Definitions in CUDA C++.
    text: String,
    single: Vec<u64>,
    double: Vec<u64>,
}

fn seed() -> u64 {
    std::env::var("GALAMOST_LANGUAGE_SEED").map_or(1, |s| s.parse().expect("GALAMOST_LANGUAGE_SEED is a whole number"))
}

/// Writes a file only if it changes, so that cargo need not build what it has.
fn write(path: &Path, text: &str) {
    if std::fs::read_to_string(path).is_ok_and(|old| old == text) {
        return;
    }
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, text).expect("written");
}

fn sources(folder: &Path) {
    let api = repository().join("plugin-api").canonicalize().expect("plugin-api");
    let package = |name: &str| format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n");
    let api = format!("galamost-plugin-api = {{ path = {api:?} }}\n");
    let manifest = package("language")
        + "[workspace]\nmembers = [\"helpers\"]\n\n[dependencies]\nlanguage-helpers = { path = \"helpers\" }\n"
        + &api;
    write(&folder.join("Cargo.toml"), &manifest);
    write(&folder.join("helpers/Cargo.toml"), &(package("language-helpers") + "[dependencies]\n" + &api));
    write(&folder.join("helpers/src/lib.rs"), include_str!("language/helpers/lib.rs"));
    let mut text = format!("{}use language_helpers as helpers;\n\n", include_str!("language/main.rs"));
    for k in 0..EXACT + SMOOTH {
        text.push_str(&Generator::function(seed(), k, k >= EXACT));
        text.push('\n');
    }
    for (name, range) in [("exact", 0..EXACT), ("smooth", EXACT..EXACT + SMOOTH)] {
        let list: Vec<String> = range.map(|k| format!("case_{k}::<R>")).collect();
        text += &format!("fn {name}_cases<R: Real>() -> Vec<Case<R>> {{\n    vec![{}]\n}}\n", list.join(", "));
    }
    let list: Vec<String> = (0..EXACT + SMOOTH).map(|k| format!("<case_{k} as DeviceFn>::text()")).collect();
    text += "fn texts() -> Vec<&'static galamost_plugin_api::device::DeviceText> {\n    vec![";
    write(&folder.join("src/main.rs"), &(text + &list.join(", ") + "]\n}\n"));
}

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks(8).map(|b| u64::from_ne_bytes(b.try_into().expect("eight bytes"))).collect()
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_ne_bytes()).collect()
}

/// Arguments: numbers for exact functions, with all that is special, numbers near 1 for smooth ones, whole numbers.
fn inputs() -> [Vec<u64>; 3] {
    let word = |row: usize, k: usize| philox4x32::<7>([row as u32, k as u32, 1, 2], [3, 4]);
    let unit = |w: u32| f64::from(w) / f64::from(u32::MAX);
    let special = [0.0, -0.0, 1.0, -1.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e30, -1e-30, 4e9, 0.5, 2.5];
    let whole = [0, 1, 2, 31, 32, 64, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 1 << 40, u64::MAX, 1 << 63];
    let (mut exact, mut smooth, mut wholes) = (vec![], vec![], vec![]);
    for row in 0..ROWS {
        for k in 0..6 {
            let w = word(row, k);
            let ordinary = (unit(w[1]) - 0.5) * 20.0;
            let x = if w[0] % 4 == 0 { special[w[2] as usize % special.len()] } else { ordinary };
            exact.push(x.to_bits());
            smooth.push((2.0 * unit(w[3]) - 1.0).to_bits());
        }
        for k in 0..5 {
            let w = word(row, 100 + k);
            let n = if w[0] % 3 == 0 { whole[w[1] as usize % whole.len()] } else { u64::from(w[2] % 1000) };
            wholes.push(if k == 4 { n % 2 } else { n });
        }
    }
    [exact, smooth, wholes]
}

/// The functions as rustc compiles them.
fn native() -> &'static Native {
    static NATIVE: OnceLock<Native> = OnceLock::new();
    NATIVE.get_or_init(|| {
        let folder = repository().join("target/outside/language");
        sources(&folder);
        let program = build_outside(&folder).join("language");
        for (name, words) in ["exact", "smooth", "wholes"].iter().zip(inputs()) {
            std::fs::write(folder.join(name), bytes(&words)).expect("written");
        }
        let status = Command::new(program).arg(&folder).status().expect("the program runs");
        assert!(status.success());
        let read = |name: &str| std::fs::read(folder.join(name)).expect("the program's words");
        let text = String::from_utf8(read("text.cuh")).expect("text");
        Native { text, single: words(&read("single")), double: words(&read("double")), folder }
    })
}

/// One kernel for each function: a thread for each row.
fn unit(text: &str, precision: Precision) -> SourceUnit {
    let mut all = format!("#include \"galamost/state.cuh\"\nnamespace language {{\n{text}}}\n#line 1 \"kernels\"\n");
    for k in 0..EXACT + SMOOTH {
        all += &format!(
            "extern \"C\" __global__ void kernel_{k}(const double* r, const u64* n, u64* out) {{\n\
             const u32 row = threadIdx.x;\n\
             Random random = {{{{{{7u, 11u}}}}, 5ull, row, 0u}};\n\
             r += 6 * row; n += 5 * row; out += {WORDS} * row;\n\
             const auto t = language::case_{k}<real>(random, real(r[0]), real(r[1]), real(r[2]),\n\
             Vec3<real>{{real(r[3]), real(r[4]), real(r[5])}}, int(u32(n[0])), u32(n[1]), n[2], n[3], n[4] != 0ull);\n\
             const double values[4] = {{double(t.v0), double(t.v1.x), double(t.v1.y), double(t.v1.z)}};\n\
             for (int i = 0; i < 4; ++i) out[i] = u64(__double_as_longlong(values[i]));\n\
             out[4] = u64(u32(t.v2)); out[5] = t.v3;\n}}\n"
        );
    }
    SourceUnit::new("language", &all, precision)
}

/// Runs all kernels of a device.
fn run(device: &dyn Device, unit: &SourceUnit) -> Vec<u64> {
    let module = device.compile(unit).unwrap_or_else(|e| panic!("{e}"));
    let upload = |words: &[u64]| {
        let at = device.allocate(words.len() * 8).expect("memory");
        device.upload(at, &bytes(words)).expect("uploaded");
        at
    };
    let [exact, smooth, wholes] = inputs().map(|w| upload(&w));
    let size = ROWS * WORDS;
    let out = upload(&vec![0; size]);
    let mut all = vec![];
    for k in 0..EXACT + SMOOTH {
        let kernel = device.kernel(module, &format!("kernel_{k}")).expect("the kernel");
        let mut args = [if k < EXACT { exact } else { smooth }, wholes, out];
        let pointers: Vec<*mut Opaque> = args.iter_mut().map(|a| std::ptr::from_mut(a).cast()).collect();
        let one = Extent { x: 1, y: 1, z: 1 };
        // SAFETY: the kernels take three addresses of arrays with a row for each thread
        unsafe { device.launch(kernel, one, Extent { x: ROWS as u32, ..one }, 0, &pointers) }.expect("launched");
        let mut bytes = vec![0; size * 8];
        device.download(out, &mut bytes).expect("downloaded");
        all.extend(words(&bytes));
    }
    all
}

/// The largest |a − b| of numbers near 1 that smooth functions gave, in units of their precision; panics where exact
/// functions or whole numbers differ.
fn compare(native: &[u64], other: &[u64], epsilon: f64) -> f64 {
    assert_eq!((native.len(), other.len()), ((EXACT + SMOOTH) as usize * ROWS * WORDS, native.len()));
    let (mut worst, mut wrong) = (0.0f64, vec![]);
    for (i, (a, b)) in native.iter().zip(other).enumerate() {
        let (case, row, word) = (i / WORDS / ROWS, i / WORDS % ROWS, i % WORDS);
        let (x, y) = (f64::from_bits(*a), f64::from_bits(*b));
        if word >= 4 || case < EXACT as usize {
            let same = a == b || (word < 4 && x.is_nan() && y.is_nan());
            if !same {
                let value = |w: u64| if word < 4 { f64::from_bits(w).to_string() } else { w.to_string() };
                wrong.push(format!("case_{case}, row {row}, word {word}: {} in Rust, {} in C++", value(*a), value(*b)));
            }
        } else {
            assert!(x.abs() < 100.0, "case_{case}, row {row}: {x} is not near 1");
            worst = worst.max((x - y).abs() / epsilon);
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
    worst
}

/// Bit for bit without elementary functions. With them the errors of up to some ten calls, each of some 2 ulp on one
/// of the sides, add up and are enlarged.
#[test]
fn cxx_agrees_with_rust() {
    if !has_compiler() {
        return;
    }
    let native = native();
    let device = EmulatedDevice::new().expect("g++");
    for (precision, words, epsilon) in [
        (Precision::Single, &native.single, f64::from(f32::EPSILON)),
        (Precision::Double, &native.double, f64::EPSILON),
    ] {
        let worst = compare(words, &run(&device, &unit(&native.text, precision)), epsilon);
        println!("{precision:?}: smooth functions differ by {worst:.1} ulp of 1 at most");
        assert!(worst < 100.0, "{precision:?}: smooth functions differ by {worst} ulp of 1; see {:?}", native.folder);
    }
}

/// Sines, cosines and powers of kernels have the errors that `language.md` states. Logarithms and exponentials are those of the C library here.
#[test]
fn functions_of_kernels_are_as_accurate_as_stated() {
    if !has_compiler() {
        return;
    }
    const N: usize = 200_000;
    let text = "#include \"galamost/types.cuh\"\n\
                extern \"C\" __global__ void values(const double* in, double* out) {\n\
                const u32 i = blockIdx.x * blockDim.x + threadIdx.x;\n\
                const real x = real(in[3 * i]), y = real(in[3 * i + 1]), z = real(in[3 * i + 2]);\n\
                out[3 * i] = device_sin(x); out[3 * i + 1] = device_cos(x); out[3 * i + 2] = device_powf(y, z);\n}\n";
    let device: &dyn Device = &EmulatedDevice::new().expect("g++");
    let golden = |k: usize, step: f64| (k as f64 * step).fract();
    let mut rows = vec![];
    for k in 0..N {
        let (a, b) = (golden(k, 0.754_877_666_246_692_8), golden(k, 0.569_840_290_998_053_2));
        let x = if k % 2 == 0 { 2e4 * a - 1e4 } else { 8.0 * a - 4.0 };
        // numbers that both precisions have
        rows.extend([x, 0.01 + 5.0 * a, 20.0 * (b - 0.5)].map(|v| f64::from(v as f32)));
    }
    // powers of 0 and of a negative number
    rows[..9].copy_from_slice(&[0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, -1.0, 2.0]);
    let bits: Vec<u64> = rows.iter().map(|x| x.to_bits()).collect();
    for (precision, epsilon) in [(Precision::Single, f64::from(f32::EPSILON)), (Precision::Double, f64::EPSILON)] {
        let module = device.compile(&SourceUnit::new("functions", text, precision)).unwrap_or_else(|e| panic!("{e}"));
        let kernel = device.kernel(module, "values").expect("the kernel");
        let [from, to] = [(); 2].map(|()| device.allocate(8 * bits.len()).expect("memory"));
        device.upload(from, &bytes(&bits)).expect("uploaded");
        let mut args = [from, to];
        let pointers: Vec<*mut Opaque> = args.iter_mut().map(|a| std::ptr::from_mut(a).cast()).collect();
        let size = |x: usize| Extent { x: x as u32, y: 1, z: 1 };
        // SAFETY: the kernel takes two addresses of arrays with three numbers for each of N threads
        unsafe { device.launch(kernel, size(N / 100), size(100), 0, &pointers) }.expect("launched");
        let mut out = vec![0; 8 * bits.len()];
        device.download(to, &mut out).expect("downloaded");
        let found: Vec<f64> = words(&out).into_iter().map(f64::from_bits).collect();
        assert!(found[2] < 1e-15 && found[5] == 1.0 && found[8].is_nan(), "{precision:?}: {:?}", &found[..9]);
        for (row, found) in rows.chunks(3).zip(found.chunks(3)).skip(3) {
            let power = row[1].powf(row[2]);
            let bound = 3.0 * (1.0 + power.ln().abs()) * power * epsilon;
            // in double precision, the truth has an error of an ulp too
            let [sine, cosine] = [(row[0].sin() - found[0]).abs(), (row[0].cos() - found[1]).abs()];
            let good = sine <= epsilon && cosine <= epsilon && (power - found[2]).abs() <= bound;
            assert!(good, "{precision:?}: {row:?} gives {found:?}");
        }
    }
}

#[test]
fn nvrtc_accepts_random_functions() {
    if !has_nvrtc() {
        return;
    }
    for precision in [Precision::Single, Precision::Double] {
        let (cubin, _) =
            nvrtc::compile(&unit(&native().text, precision), "sm_90").unwrap_or_else(|e| panic!("{precision:?}: {e}"));
        assert!(cubin.starts_with(b"\x7fELF"));
    }
}
