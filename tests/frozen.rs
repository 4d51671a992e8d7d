//! Plugins built from an archived plugin API load in the current engine and give the same results.
//!
//! `cargo xtask freeze-api` writes the archives of published versions to `abi/frozen/`, each with its fixture plugin. The
//! current sources are packed and tested in the same way.

use galamost_plugin_api::plugin_record::API_MAJOR;
use galamost_tests::variants::{build, outside};
use galamost_tests::{csv, fixture, galamost, has_compiler, repository, words};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use xtask::freeze;

/// Components of all kinds, with and without custom kernels.
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

/// Archives of the plugin API by name: those published under this major version, and one of the current sources.
fn archives() -> Vec<(String, Vec<u8>)> {
    let published = std::fs::read_dir(repository().join("tests/abi/frozen")).into_iter().flatten();
    let mut all: Vec<(String, Vec<u8>)> = published
        .filter_map(|e| {
            let path = e.ok()?.path();
            let name = path.file_name()?.to_str()?.strip_suffix(".tar.gz")?.to_string();
            name.starts_with(&format!("plugin-api-{API_MAJOR}."))
                .then(|| (name, std::fs::read(&path).expect("an archive")))
        })
        .collect();
    all.push(("current".into(), freeze::pack(&repository()).expect("packed").1));
    all.sort();
    all
}

/// Unpacks an archive and returns its folder. An archive that is already unpacked is not written again, so cargo does not
/// rebuild it.
fn unpack(name: &str, packed: &[u8]) -> PathBuf {
    let to = outside().join("frozen").join(name);
    let mark = to.with_extension("unpacked");
    if std::fs::read(&mark).ok().as_deref() != Some(packed) {
        let _ = std::fs::remove_dir_all(&to);
        std::fs::create_dir_all(&to).expect("a folder");
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(packed));
        // the archive has no times; cargo must see that its files are new
        archive.set_preserve_mtime(false);
        for entry in archive.entries().expect("an archive") {
            let mut entry = entry.expect("an entry");
            // the archive has a top folder with its name
            let path: PathBuf = entry.path().expect("a path").components().skip(1).collect();
            let path = to.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            entry.unpack(path).expect("unpacked");
        }
        // a unique library name: in the shared output folder cargo would confuse it with the current fixture
        let manifest = to.join("tests/abi/fixture/Cargo.toml");
        let text = std::fs::read_to_string(&manifest).expect("a manifest");
        let library = format!("frozen_{}", name.replace(['-', '.'], "_"));
        std::fs::write(manifest, text.replace("[lib]\n", &format!("[lib]\nname = \"{library}\"\n"))).expect("written");
        std::fs::write(&mark, packed).expect("written");
    }
    to
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
#[ignore = "3 seconds"]
fn plugins_built_from_archived_apis_run_in_this_engine() {
    let archives = archives();
    let devices = if has_compiler() { &["cpu", "emulated"][..] } else { &["cpu"] };
    let today: Vec<_> = devices.iter().map(|d| run(&fixture(), d)).collect();
    assert!(today[0]["HarmonicTrap"][5] > 0.2 && today[0]["TripPair"][5] > 1.0, "{:?}", today[0]);
    for (name, packed) in archives {
        let api = unpack(&name, &packed);
        let plugins = api.join("built");
        build(&api.join("tests/abi/fixture"), &["build", "--release"], &plugins.join("libfixture.so"));
        for (device, expected) in devices.iter().zip(&today) {
            let found = run(&plugins, device);
            assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
            for (column, values) in expected {
                for (a, b) in values.iter().zip(&found[column]) {
                    let near = (a - b).abs() <= 1e-9 * a.abs().max(1.0);
                    assert!(
                        near,
                        "{name}, {device}, {column}: {a} with the current fixture, {b} with the archived one"
                    );
                }
            }
        }
    }
}
