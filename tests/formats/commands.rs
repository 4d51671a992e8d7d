//! The commands `convert` and `info`.

use super::{chains, done, go, read};
use galamost::files;
use galamost_tests::{galamost, registry, repository, words};

/// Real files as they lie in the shared folder, compressed.
#[test]
fn compressed_files_are_read() {
    let f = tempfile::tempdir().expect("a folder");
    let packed = repository().join("tests/data/a5b5-dpd-24000.xml.xz");
    let said = go(f.path(), &["info", &packed.to_string_lossy()]);
    assert!(said.contains("24000") && said.contains("A-A 9600, A-B 2400, B-B 9600"), "{said}");
    go(f.path(), &["convert", &packed.to_string_lossy(), "out.data"]);
    galamost_tests::unpack("a5b5-dpd-24000.xml.xz", &f.path().join("in.xml"));
    let (a, b) = (read(&packed, None), read(&f.path().join("in.xml"), None));
    assert_eq!(a, b);
    assert_eq!(read(&f.path().join("out.data"), None).position, a.position);
    let out = galamost(f.path(), &["convert", "in.xml", "out.xml.gz"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(words(&out).contains("no component writes files with this extension"), "{}", words(&out));
}

#[test]
fn trajectories_are_converted_in_part_and_as_a_whole() {
    let f = done("Mixed");
    go(f.path(), &["--pipeline", "p.ron", "--device", "cpu", "--quiet"]);
    let steps = |file: &str| -> Vec<u64> {
        let reader = files::Reader::open(&f.path().join(file), registry()).expect("a reader");
        let n = reader.frames().expect("frames").unwrap_or(1);
        (0..n as i64).map(|k| reader.read(Some(k)).unwrap_or_else(|e| panic!("{}", e.render())).step).collect()
    };
    let said = go(f.path(), &["convert", "t.mst", "all.dump"]);
    assert!(said.contains("7 frames of 80 particles"), "{said}");
    assert_eq!(steps("all.dump"), [0, 10, 20, 30, 40, 50, 60]);
    go(f.path(), &["convert", "t.gsd", "some.xyz", "--frames", "1:-2:2"]);
    assert_eq!(steps("some.xyz"), [10, 30, 50]);
    go(f.path(), &["convert", "t.dcd", "last.mst", "--topology", "in.xml", "--frames", "-1"]);
    assert_eq!(steps("last.mst"), [60]);
    // a format of single states: the last one, or a file for each
    let said = go(f.path(), &["convert", "t.dump", "last.data"]);
    assert!(said.contains("last.data stores a single frame: writing the last of 7 frames"), "{said}");
    assert_eq!(steps("last.data"), [60]);
    go(f.path(), &["convert", "t.dump", "each.{step}.data", "--frames", ":2"]);
    assert_eq!([0, 10, 20].map(|k| steps(&format!("each.{k:010}.data"))), [[0], [10], [20]]);
}

#[test]
fn conversions_that_fail_are_reported() {
    let f = done("Mixed");
    go(f.path(), &["--pipeline", "p.ron", "--device", "cpu", "--quiet"]);
    for (args, said) in [
        (&["convert", "none.xml", "out.gsd"][..], "none.xml: cannot be read"),
        (
            &["convert", "in.xml", "out.foo"],
            "out.foo: no component writes files with this extension; choose a writer with --to; known extensions: *.",
        ),
        (
            &["convert", "p.ron", "out.gsd"],
            "p.ron: no component reads files with this extension; no reader recognizes its contents",
        ),
        (&["convert", "in.xml", "in.xml"], "input and output are the same file"),
        (&["convert", "in.xml", "no/out.gsd"], "there is no folder"),
        (
            &["convert", "t.gsd", "out.data", "--frames", "0:3"],
            "LammpsData files have one frame: select one with --frames",
        ),
        (&["convert", "t.gsd", "out.xyz", "--frames", "7"], "no frame 7: the file has 7 frames"),
        (&["convert", "t.gsd", "out.xyz", "--frames", "a:b"], "`a` is not a frame number"),
        (&["convert", "t.gsd", "out.xyz", "--write", "digit: 3"], "digit"),
        (&["convert", "t.gsd", "out.xyz", "--to", "Thermo"], "`Thermo` does not write particle files"),
        (&["convert", "t.dcd", "out.xyz"], "create the particles with an earlier generator"),
        (&["convert", "t.dump", "out.gsd", "--read", "types: [\"A\"]"], "found type 2, but `types` lists only 1"),
        (&["info", "none.xml"], "none.xml: cannot be read"),
        (&["info", "in.xml", "--frame", "3"], "no frame 3: GalamostXml files have one frame"),
    ] {
        let out = galamost(f.path(), args);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {}", words(&out));
        assert!(words(&out).contains(said), "{args:?}: {}", words(&out));
    }
}

#[test]
fn info_reports_the_contents_of_a_file() {
    let f = done("Mixed");
    go(f.path(), &["--pipeline", "p.ron", "--device", "cpu", "--quiet"]);
    let said = go(f.path(), &["info", "t.gsd", "--json"]);
    for fact in [
        "\"format\": \"Gsd\"",
        "\"frames\": 7",
        "\"last\": 60",
        "\"particles\": 80",
        "\"A\": 40",
        "\"bonds\": 70",
        "\"A-B\": 10",
    ] {
        assert!(said.contains(fact), "{fact}: {said}");
    }
    let s = chains();
    let mean = |k: usize| s.velocity.iter().zip(&s.mass).map(|(v, m)| m * v[k]).sum::<f64>();
    let total: f64 = s.mass.iter().sum();
    let twice: f64 = s
        .velocity
        .iter()
        .zip(&s.mass)
        .map(|(v, m)| m * (0..3).map(|k| (v[k] - mean(k) / total).powi(2)).sum::<f64>())
        .sum();
    let said = go(f.path(), &["info", "in.xml"]);
    let line = |key: &str| {
        said.lines().find(|l| l.trim().starts_with(key)).unwrap_or_else(|| panic!("{key}: {said}")).to_string()
    };
    let number = |key: &str| line(key).split_whitespace().last().and_then(|w| w.parse::<f64>().ok()).expect("a number");
    // six digits are printed
    assert!((number("kT:") - twice / (3.0 * 79.0)).abs() < 1e-6, "{said}");
    assert!((number("number density:") - 80.0 / (9.5 * 10.0 * 11.25)).abs() < 1e-6, "{said}");
    assert!(line("molecules:").contains("number 10, least 8, mean 8, most 8"), "{said}");
    assert!(line("charge:").contains("from -0.25, to 0.25, sum 0"), "{said}");
    let said = go(f.path(), &["info", "p.checkpoint"]);
    for fact in ["checkpoint", "60", "Gsd", "formats-0.1.0", "Mixed"] {
        assert!(said.contains(fact), "{fact}: {said}");
    }
    let said = go(f.path(), &["info", "first.csv", "--json"]);
    assert!(
        said.contains("\"format\": \"CSV\"") && said.contains("\"rows\": 2") && said.contains("\"step\": 60"),
        "{said}"
    );
    // damaged
    let bytes = std::fs::read(f.path().join("p.checkpoint")).expect("a checkpoint");
    std::fs::write(f.path().join("p.checkpoint"), &bytes[..bytes.len() / 2]).expect("written");
    let out = galamost(f.path(), &["info", "p.checkpoint"]);
    assert!(out.status.code() == Some(2) && words(&out).contains("is damaged or truncated"), "{}", words(&out));
}
