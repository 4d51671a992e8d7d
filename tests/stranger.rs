//! A stranger's plugin: made in a folder of its own outside the workspace, built there, dropped into a directory, run.

use galamost_tests::{build_plugin, galamost, has_compiler, has_nvrtc, repository, words};
use std::path::PathBuf;

/// All the Rust there is.
const YUKAWA: &str = r#"//! Screened Coulomb interaction.
use galamost_plugin_api::prelude::*;

/// Screened Coulomb: U(r) = ε exp(−κ r) / r.
///
/// ```ron
/// Yukawa(r_cut: 3.0, pairs: { ("A", "A"): (epsilon: 1.0, kappa: 2.0) })
/// ```
#[derive(PairParams)]
pub struct Yukawa<real> {
    /// ε.
    #[param(unit = "energy × length")]
    epsilon: real,
    /// κ.
    #[param(unit = "1/length", at_least = 0.0)]
    kappa: real,
}

#[pair_potential("Yukawa")]
fn yukawa(r2: real, p: &Yukawa<real>) -> (real, real) {
    let r = r2.sqrt();
    let u = p.epsilon * (-p.kappa * r).exp() / r;
    (u * (p.kappa * r + 1.0) / r2, u)
}

galamost_plugin_api::plugin!();
"#;

const PIPELINE: &str = r#"(
    seed: 4,
    initial: [ Lattice(lattice: Fcc, cells: [6, 6, 6], density: 0.5), Velocities(kT: 1.0) ],
    forces: [ Yukawa(r_cut: 3.0, mode: ShiftForce, pairs: { ("A", "A"): (epsilon: 20.0, kappa: 2.0) }) ],
    integrators: [ VelocityVerlet() ],
    analyzers: [ Thermo(every: 50, file: "t.csv") ],
    stages: [ (steps: 200, dt: 0.004) ],
)"#;

/// Builds the crate, once; its output folder stays, so that the next time takes seconds.
fn build() -> (tempfile::TempDir, PathBuf) {
    let lines = YUKAWA.lines().filter(|l| !l.trim().is_empty() && !l.trim_start().starts_with("//"));
    assert!(lines.count() <= 20, "a plugin shall not need more");
    let crate_folder = tempfile::tempdir().expect("a folder");
    let api = repository().join("plugin-api").canonicalize().expect("plugin-api");
    let manifest = format!(
        "[package]\nname = \"yukawa\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[lib]\ncrate-type = [\"cdylib\"]\n\n\
         [dependencies]\ngalamost-plugin-api = {{ path = {api:?} }}\n"
    );
    std::fs::write(crate_folder.path().join("Cargo.toml"), manifest).expect("written");
    std::fs::create_dir(crate_folder.path().join("src")).expect("a folder");
    std::fs::write(crate_folder.path().join("src/lib.rs"), YUKAWA).expect("written");
    let library = build_plugin(crate_folder.path(), "yukawa");
    let dropped = crate_folder.path().join("my-plugins");
    std::fs::create_dir(&dropped).expect("a folder");
    std::fs::copy(library, dropped.join("libyukawa.so")).expect("dropped in");
    (crate_folder, dropped)
}

#[test]
fn a_yukawa_plugin_is_written_built_dropped_in_and_run() {
    let (folder, _dropped) = build();
    let folder = folder.path();
    std::fs::write(folder.join("p.ron"), PIPELINE).expect("written");
    let run = |device: &str| {
        let args = ["--pipeline", "p.ron", "--plugin-dir", "my-plugins", "--device", device, "--quiet"];
        let out = galamost(folder, &args);
        assert!(out.status.success(), "{}", words(&out));
        galamost_tests::csv(&folder.join("t.csv"))
    };
    let cpu = run("cpu");
    // NVE: the energy stays, the potential part moves
    let (first, last) = (cpu["total"][0], cpu["total"][4]);
    assert!((last - first).abs() < 2e-4 * first.abs(), "total energy {first} → {last}");
    assert!(cpu["Yukawa"][0] > 100.0 && (cpu["Yukawa"][4] - cpu["Yukawa"][0]).abs() > 5.0, "{:?}", cpu["Yukawa"]);
    if has_compiler() {
        let gpu = run("emulated");
        for (a, b) in cpu["Yukawa"].iter().zip(&gpu["Yukawa"]) {
            assert!((a - b).abs() < 1e-3 * a.abs(), "{a} on the CPU, {b} on the device");
        }
    }
    let selftest = |device: &str| {
        let out =
            galamost(folder, &["selftest", "Yukawa", "--plugin-dir", "my-plugins", "--device", device, "--quiet"]);
        let table = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.status.success() && table.contains("force against gradient"), "{table}{}", words(&out));
    };
    selftest(if has_compiler() { "emulated" } else { "cpu" });
}

#[test]
fn the_stranger_s_text_compiles_for_the_gpu() {
    use galamost::plugins::Registry;
    use galamost_plugin_api::precision::Precision;
    if !has_nvrtc() {
        return;
    }
    let (_folder, dropped) = build();
    let registry = Registry::load(&[dropped, galamost_tests::output()], 1);
    let text = PIPELINE.replace("analyzers: [ Thermo(every: 50, file: \"t.csv\") ],", "");
    let pipeline = galamost::pipeline::Pipeline::parse("p.ron".as_ref(), &text, &[]).expect("a pipeline");
    let plan = galamost::plan::check(pipeline, &registry, galamost::plan::CheckOptions::default());
    let plan = plan.unwrap_or_else(|e| panic!("{}", e.render()));
    for precision in [Precision::Single, Precision::Mixed, Precision::Double] {
        let pair = plan.components.iter().find_map(|c| c.pair()).expect("the pair");
        let unit =
            galamost::gpu::pair_unit(&[pair.device(precision).expect("code").text.into_string()], 1, 4, precision);
        let (cubin, _) = galamost::device::nvrtc::compile(&unit, "sm_90").unwrap_or_else(|e| panic!("{e}"));
        assert!(cubin.starts_with(b"\x7fELF"));
    }
}
