//! Plugins built with the plugin API as it was published: they load in today's engine, and run.
//!
//! `cargo xtask freeze-api` makes the archives in `abi/frozen/`; with each comes the fixture plugin of its day.

use galamost_plugin_api::record::API_MAJOR;
use galamost_tests::variants::{build, outside};
use galamost_tests::{csv, fixture, galamost, has_compiler, repository, words};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Components of all kinds, with and without kernels of their own.
const PIPELINE: &str = r#"(
    seed: 3,
    precision: Double,
    initial: [ TripGenerator(n: 64), Velocities(kT: 0.2) ],
    forces: [
        TripPair(r_cut: 2.5, pairs: { ("A", "A"): (a: 0.1) }),
        TripBond(bonds: { "A-A": (k: 0.5) }),
        HarmonicTrap(k: 0.3),
        TripForce(),
    ],
    integrators: [ TripIntegrator() ],
    updaters: [ PairUp(every: 10, r: 1.2, broken: 6), TripUpdater(every: 5) ],
    analyzers: [ TripAnalyzer(every: 5), Thermo(every: 10, file: "t.csv") ],
    checkpoint: (every: 20),
    stages: [ (steps: 50, dt: 0.005) ],
)"#;

/// The archives of this major version, by name.
fn archives() -> Vec<PathBuf> {
    let list = std::fs::read_dir(repository().join("tests/abi/frozen")).expect("abi/frozen");
    let mut all: Vec<PathBuf> = list.filter_map(|e| Some(e.ok()?.path())).collect();
    all.retain(|p| {
        let name = p.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with(&format!("plugin-api-{API_MAJOR}.")) && name.ends_with(".tar.gz")
    });
    all.sort();
    all
}

/// Unpacks an archive and returns its folder. What is there from the last time stays, so that cargo builds nothing anew.
fn unpack(archive: &Path) -> PathBuf {
    let packed = std::fs::read(archive).expect("an archive");
    let name = archive.file_name().expect("a name").to_string_lossy().replace(".tar.gz", "");
    let to = outside().join("frozen");
    let mark = to.join(format!("{name}.unpacked"));
    if std::fs::read(&mark).ok().as_ref() != Some(&packed) {
        let _ = std::fs::remove_dir_all(to.join(&name));
        std::fs::create_dir_all(&to).expect("a folder");
        tar::Archive::new(flate2::read::GzDecoder::new(packed.as_slice())).unpack(&to).expect("unpacked");
        // a library of a name of its own: cargo would mix it up with today's in their common output folder
        let manifest = to.join(&name).join("tests/abi/fixture/Cargo.toml");
        let text = std::fs::read_to_string(&manifest).expect("a manifest");
        let library = name.replace(['-', '.'], "_");
        std::fs::write(manifest, text.replace("[lib]\n", &format!("[lib]\nname = \"{library}\"\n"))).expect("written");
        std::fs::write(&mark, &packed).expect("written");
    }
    to.join(name)
}

fn run(plugins: &Path, device: &str) -> BTreeMap<String, Vec<f64>> {
    let f = tempfile::tempdir().expect("a folder");
    std::fs::write(f.path().join("p.ron"), PIPELINE).expect("written");
    let folder = plugins.to_string_lossy();
    let out = galamost(f.path(), &["--pipeline", "p.ron", "--plugin-dir", &folder, "--device", device, "--quiet"]);
    assert!(out.status.success(), "{device}: {}", words(&out));
    csv(&f.path().join("t.csv"))
}

#[test]
fn a_plugin_of_the_first_api_runs_in_this_engine() {
    let archives = archives();
    assert!(!archives.is_empty(), "there is no archive of API {API_MAJOR}: cargo xtask freeze-api");
    let devices = if has_compiler() { &["cpu", "emulated"][..] } else { &["cpu"] };
    let today: Vec<_> = devices.iter().map(|d| run(&fixture(), d)).collect();
    assert!(today[0]["HarmonicTrap"][5] > 0.2 && today[0]["TripPair"][5] > 1.0, "{:?}", today[0]);
    for archive in archives {
        let api = unpack(&archive);
        let plugins = api.join("built");
        // it is built for this test alone and runs for a second
        let quick = ["build", "--release", "--config", "profile.release.package.galamost-plugin-api.opt-level=1"];
        build(&api.join("tests/abi/fixture"), &quick, &plugins.join("libfixture.so"));
        for (device, expected) in devices.iter().zip(&today) {
            let found = run(&plugins, device);
            assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
            for (name, values) in expected {
                for (a, b) in values.iter().zip(&found[name]) {
                    let near = (a - b).abs() <= 1e-9 * a.abs().max(1.0);
                    assert!(near, "{}, {device}, {name}: {a} today, {b} with it", archive.display());
                }
            }
        }
    }
}
