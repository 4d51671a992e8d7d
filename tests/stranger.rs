//! A plugin written from scratch outside the workspace: built, copied to a plugin directory, and run.

use galamost_tests::{build_pair_plugin, galamost, has_compiler, has_nvrtc, repository, words};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The whole source of the plugin.
const SOURCE: &str = r#"//! The Born-Mayer repulsion.
use galamost_plugin_api::prelude::*;

/// Born-Mayer: U(r) = A exp(−r/ρ).
///
/// ```ron
/// BornMayer(r_cut: 3.0, pairs: { ("A", "A"): (a: 20.0, rho: 0.5) })
/// ```
#[derive(PairParams)]
pub struct BornMayer<real> {
    /// A.
    #[param(unit = "energy", at_least = 0.0)]
    a: real,
    /// ρ.
    #[param(unit = "length", above = 0.0)]
    rho: real,
}

#[pair_potential("BornMayer")]
fn born_mayer(r2: real, p: &BornMayer<real>) -> (real, real) {
    let r = r2.sqrt();
    let u = p.a * (-r / p.rho).exp();
    (u / (p.rho * r), u)
}

galamost_plugin_api::plugin!();
"#;

const PIPELINE: &str = r#"(
    seed: 4,
    initial: [ Lattice(lattice: Fcc, cells: [6, 6, 6], density: 0.5), Velocities(kT: 1.0) ],
    forces: [ BornMayer(r_cut: 3.0, mode: ShiftForce, pairs: { ("A", "A"): (a: 20.0, rho: 0.5) }) ],
    integrators: [ VelocityVerlet() ],
    analyzers: [ Thermo(every: 50, file: "t.csv") ],
    stages: [ (steps: 200, dt: 0.004) ],
)"#;

/// The folder of the crate, and in it the folder with the plugin, which are shared by the tests.
fn built() -> (&'static Path, &'static Path) {
    static BUILT: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (folder, dropped) = BUILT.get_or_init(build);
    (folder.path(), dropped)
}

/// Builds the crate.
fn build() -> (tempfile::TempDir, PathBuf) {
    let lines = SOURCE.lines().filter(|l| !l.trim().is_empty() && !l.trim_start().starts_with("//"));
    assert!(lines.count() <= 20, "a pair potential must need at most 20 lines");
    let crate_folder = tempfile::tempdir().expect("a folder");
    let api = repository().join("plugin-api").canonicalize().expect("plugin-api");
    let manifest = format!(
        "[package]\nname = \"born-mayer\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[lib]\ncrate-type = [\"cdylib\"]\n\n\
         [dependencies]\ngalamost-plugin-api = {{ path = {api:?} }}\n"
    );
    std::fs::write(crate_folder.path().join("Cargo.toml"), manifest).expect("written");
    std::fs::create_dir(crate_folder.path().join("src")).expect("a folder");
    std::fs::write(crate_folder.path().join("src/lib.rs"), SOURCE).expect("written");
    let library = build_pair_plugin(crate_folder.path(), "born_mayer");
    let dropped = crate_folder.path().join("my-plugins");
    std::fs::create_dir(&dropped).expect("a folder");
    std::fs::copy(library, dropped.join("libborn_mayer.so")).expect("dropped in");
    (crate_folder, dropped)
}

#[test]
fn an_external_plugin_builds_loads_and_runs() {
    let (folder, _) = built();
    std::fs::write(folder.join("p.ron"), PIPELINE).expect("written");
    let run = |device: &str| {
        let args = ["--pipeline", "p.ron", "--plugin-dir", "my-plugins", "--device", device, "--quiet"];
        let out = galamost(folder, &args);
        assert!(out.status.success(), "{}", words(&out));
        galamost_tests::csv(&folder.join("t.csv"))
    };
    let cpu = run("cpu");
    // NVE: the total energy is constant, the potential energy changes
    let (first, last) = (cpu["total"][0], cpu["total"][4]);
    assert!((last - first).abs() < 2e-4 * first.abs(), "total energy {first} → {last}");
    assert!(
        cpu["BornMayer"][0] > 100.0 && (cpu["BornMayer"][4] - cpu["BornMayer"][0]).abs() > 5.0,
        "{:?}",
        cpu["BornMayer"]
    );
    if has_compiler() {
        let gpu = run("emulated");
        for (a, b) in cpu["BornMayer"].iter().zip(&gpu["BornMayer"]) {
            // single-precision exponentials: 1e-6 of energies, growing in the steps between
            assert!((a - b).abs() < 1e-3 * a.abs(), "{a} on the CPU, {b} on the device");
        }
    }
    let selftest = |device: &str| {
        let out =
            galamost(folder, &["selftest", "BornMayer", "--plugin-dir", "my-plugins", "--device", device, "--quiet"]);
        let table = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.status.success() && table.contains("force against gradient"), "{table}{}", words(&out));
    };
    selftest(if has_compiler() { "emulated" } else { "cpu" });
}

#[test]
#[ignore = "20 seconds"]
fn device_code_of_an_external_plugin_compiles_for_the_gpu() {
    use galamost_engine::plugins::Registry;
    use galamost_plugin_api::precision::Precision;
    if !has_nvrtc() {
        return;
    }
    let (_, dropped) = built();
    let registry = Registry::load(&[dropped.to_path_buf(), galamost_tests::output()], 1);
    let text = PIPELINE.replace("analyzers: [ Thermo(every: 50, file: \"t.csv\") ],", "");
    let pipeline = galamost_engine::pipeline::Pipeline::parse("p.ron".as_ref(), &text, &[]).expect("a pipeline");
    let plan = galamost_engine::plan::check(pipeline, &registry, galamost_engine::plan::CheckOptions::default());
    let plan = plan.unwrap_or_else(|e| panic!("{}", e.render()));
    for precision in [Precision::Single, Precision::Mixed, Precision::Double] {
        let pair = plan.components.iter().find_map(|c| c.pair()).expect("the pair");
        let unit = galamost_engine::gpu::pair_unit(
            &[pair.device(precision).expect("code").text.into_string()],
            1,
            4,
            false,
            precision,
        );
        let (cubin, _) = galamost_engine::device::nvrtc::compile(&unit, "sm_90").unwrap_or_else(|e| panic!("{e}"));
        assert!(cubin.starts_with(b"\x7fELF"));
    }
}
