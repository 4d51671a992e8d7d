//! The commands `convert` and `info`, and the output files and tables of other commands.

use super::{chains, done, go, read};
use galamost::files;
use galamost_plugin_api::snapshot::Values;
use galamost_tests::{galamost, registry, repository, words};

/// Real files as they lie in the shared folder, compressed.
#[test]
#[ignore = "3 seconds"]
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

/// A first frame at rest, as every run from rest writes it, does not take the velocities from the others.
#[test]
fn velocities_of_later_frames_are_kept() {
    let f = tempfile::tempdir().expect("a folder");
    let frame = |v: &str| {
        format!(
            "2\nLattice=\"5 0 0 0 5 0 0 0 5\" Properties=species:S:1:pos:R:3:velo:R:3 Time=0\nA 1 1 1 {v}\nA 2 2 2 0 0 0\n"
        )
    };
    std::fs::write(f.path().join("a.xyz"), frame("0 0 0") + &frame("0.5 0.25 0")).expect("written");
    for output in ["b.gsd", "b.trr", "b.mst"] {
        let said = go(f.path(), &["convert", "a.xyz", output, "--read", "types: [\"A\"]"]);
        assert!(!said.contains("velocities"), "{said}");
        if output != "b.trr" {
            let s = read(&f.path().join(output), Some(1));
            assert_eq!(s.velocity.to_vec(), [[0.5, 0.25, 0.0], [0.0; 3]], "{output}");
        }
    }
}

/// A conversion to a format without tilts is refused if any frame has some, and leaves no files.
#[test]
fn tilts_of_later_frames_are_refused() {
    let f = tempfile::tempdir().expect("a folder");
    let frame = |step: u32, xy: f64| {
        format!(
            "2\nLattice=\"5 0 0 {xy} 5 0 0 0 5\" Properties=species:S:1:pos:R:3 Timestep={step}\nA 1 1 1\nA 2 2 2\n"
        )
    };
    std::fs::write(f.path().join("a.xyz"), frame(0, 0.0) + &frame(10, 1.0) + &frame(20, 0.0)).expect("written");
    for (output, format) in [("b.mst", "Mst"), ("b.{step}.mst", "Mst"), ("b.{step}.xml", "GalamostXml")] {
        let out = galamost(f.path(), &["convert", "a.xyz", output]);
        let refused = format!("{output}: {format} does not support triclinic boxes; the box of step 10 is triclinic");
        assert!(out.status.code() == Some(2) && words(&out).contains(&refused), "{output}: {}", words(&out));
        assert_eq!(std::fs::read_dir(f.path()).expect("a folder").count(), 1, "nothing is written");
    }
    go(f.path(), &["convert", "a.xyz", "b.mst", "--frames", "::2"]);
    go(f.path(), &["convert", "a.xyz", "b.gsd"]);
    assert!(read(&f.path().join("b.gsd"), Some(1)).is_tilted());
}

/// The number of particles and of dimensions may differ between frames.
#[test]
fn facts_of_later_frames_are_named() {
    let f = tempfile::tempdir().expect("a folder");
    let frame = |step: u32, place: &str| format!("frame\t{step}\n\ttimestep\n\t\t{step}\n{place}frame_end\n");
    let first = "\tposition\n\t\t-1.5\t-1.5\t-1.5\n\t\t-0.5\t-0.5\t-0.5\n";
    let flat = "\tdimension\n\t\t2\n\tbox\n\t\t5.0\t5.0\t0.0\n\tposition\n\t\t-1.5\t-1.5\t0\n\t\t-0.5\t-0.5\t0\n";
    let head = "mst_version 1.0\ninvariant_data\n\tnum_particles\n\t\t2\n\tdimension\n\t\t3\n\tbox\n\t\t5.0\t5.0\t5.0\n\
                \ttype\n\t\tA\n\t\tA\nvariant_data\n";
    std::fs::write(f.path().join("a.mst"), format!("{head}{}{}", frame(0, first), frame(1, flat))).expect("written");
    let said = go(f.path(), &["convert", "a.mst", "b.xyz"]);
    assert!(said.contains("not stored in b.xyz: two dimensions") && !said.contains("box lengths"), "{said}");
    let frame = |n: u32| {
        let rows: String = (0..n).map(|k| format!("A {k} 1 1\n")).collect();
        format!("{n}\nLattice=\"5 0 0 0 5 0 0 0 5\" Properties=species:S:1:pos:R:3 Timestep={n}\n{rows}")
    };
    std::fs::write(f.path().join("a.xyz"), frame(2) + &frame(4)).expect("written");
    let said = go(f.path(), &["convert", "a.xyz", "b.dump"]);
    assert!(said.contains("2 frames of 2 to 4 particles"), "{said}");
    // formats that only move particles cannot be read with two numbers of them
    for output in ["c.dcd", "c.xtc", "c.trr"] {
        let out = galamost(f.path(), &["convert", "a.xyz", output]);
        let (code, said) = (out.status.code(), words(&out));
        assert!(code == Some(2) && said.contains("a.xyz: frame 1 has 4 particles, but frame 0 has 2: "), "{said}");
        assert!(!f.path().join(output).exists());
    }
    std::fs::write(f.path().join("b.xyz"), frame(2) + &frame(0)).expect("written");
    let out = galamost(f.path(), &["convert", "b.xyz", "c.gsd"]);
    assert!(out.status.code() == Some(2) && words(&out).contains("frame 1: there are no particles"), "{}", words(&out));
}

/// A file that was written but cannot be read names the reason.
#[test]
fn files_that_cannot_be_read_back_say_why() {
    let f = tempfile::tempdir().expect("a folder");
    std::fs::write(f.path().join("in.xml"), moving("0.5 0 0")).expect("written");
    for (columns, reason) in [
        (r#"columns: ["id", "xu", "yu", "zu"]"#, "the dump has no column `type` or `element`"),
        (r#"columns: ["type", "xu", "yu", "zu"]"#, "the dump has no column `id`"),
    ] {
        let said = go(f.path(), &["convert", "in.xml", "f.dump", "--write", columns, "--overwrite"]);
        let message = "f.dump was written, but cannot be read back for comparison: f.dump:";
        assert!(said.contains(message) && said.contains(reason), "{said}");
        assert!(!said.contains("nothing was done") && !said.contains("first generator"), "{said}");
        let out = galamost(f.path(), &["info", "f.dump"]);
        assert!(out.status.code() == Some(2) && words(&out).contains(reason), "{}", words(&out));
    }
}

/// Particles that rotate in place keep their angular momenta.
#[test]
fn angular_momenta_of_resting_particles_are_kept() {
    let f = tempfile::tempdir().expect("a folder");
    let rotating = moving("0 0 0").replace("-1 0 0", "0 0 0").replace(
        "</configuration>",
        "<quaternion num=\"2\">\n0 0 0 1\n0 0 0 1\n</quaternion>\n<inert num=\"2\">\n2 1 1\n2 1 1\n</inert>\n\
         <rotation num=\"2\">\n0.5 0 0\n0 0 0.25\n</rotation>\n</configuration>",
    );
    std::fs::write(f.path().join("a.xml"), rotating).expect("written");
    for (input, output) in [("a.xml", "b.gsd"), ("b.gsd", "c.gsd")] {
        let said = go(f.path(), &["convert", input, output]);
        assert!(!said.contains("angular_momentum"), "{said}");
        let s = read(&f.path().join(output), None);
        let Values::Real(l) = &s.arrays["angular_momentum"].values else { panic!("not real") };
        // moments of inertia of 2 and 1, exact in single precision
        assert_eq!(l[..], [1.0, 0.0, 0.0, 0.0, 0.0, 0.25], "{output}");
    }
}

/// The temperature is that of the particles with mass.
#[test]
fn info_leaves_out_particles_without_mass() {
    let f = tempfile::tempdir().expect("a folder");
    let xml = "<?xml version=\"1.0\"?>\n<galamost_xml version=\"1.3\"><configuration time_step=\"0\" dimensions=\"3\" natoms=\"3\">\n\
               <box lx=\"9\" ly=\"9\" lz=\"9\"/>\n<position num=\"3\">\n0 0 0\n1 0 0\n2 0 0\n</position>\n<type num=\"3\">\nA\nA\nB\n</type>\n\
               <mass num=\"3\">\n1\n1\n0\n</mass>\n<velocity num=\"3\">\n1 0 0\n-1 0 0\n0 0 0\n</velocity>\n</configuration></galamost_xml>\n";
    std::fs::write(f.path().join("a.xml"), xml).expect("written");
    // Σ m v² = 2 for 3 · 2 − 3 degrees of freedom
    let said = go(f.path(), &["info", "a.xml", "--json"]);
    assert!(said.contains("\"kT\": 0.666666"), "{said}");
    // one particle with mass has no degree of freedom beside that of the center of mass
    let one = xml.replace("1\n1\n0\n</mass>", "1\n0\n0\n</mass>").replace("-1 0 0", "0 0 0");
    std::fs::write(f.path().join("b.xml"), one).expect("written");
    let said = go(f.path(), &["info", "b.xml", "--json"]);
    assert!(said.contains("\"momentum\"") && !said.contains("\"kT\""), "{said}");
}

#[test]
fn conversions_replace_files_only_when_asked() {
    let f = done("Mixed");
    std::fs::write(f.path().join("out.gsd"), "precious").expect("written");
    std::fs::write(f.path().join("out.0000000007.xml"), "precious").expect("written");
    for (output, kept) in [("out.gsd", "out.gsd"), ("out.{step}.xml", "out.0000000007.xml")] {
        let out = galamost(f.path(), &["convert", "in.xml", output]);
        assert_eq!(out.status.code(), Some(2), "{}", words(&out));
        assert!(
            words(&out).contains(&format!("{kept}: exists")) && words(&out).contains("--overwrite"),
            "{}",
            words(&out)
        );
        assert_eq!(std::fs::read(f.path().join(kept)).expect("a file"), b"precious");
    }
    go(f.path(), &["convert", "in.xml", "out.gsd", "--overwrite"]);
    assert_eq!(read(&f.path().join("out.gsd"), None).len(), 80);
}

#[test]
#[ignore = "3 seconds"]
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
        (&["convert", "t.gsd", "out.xyz", "--read", "frame: 2"], "`frame` does not apply to a conversion"),
        (&["convert", "t.gsd", "out.xyz", "--write", "every: 20"], "`every` does not apply to a conversion"),
        (
            &["convert", "t.gsd", "out.xyz", "--write", "digits: 6, offset: 3"],
            "`offset` does not apply to a conversion",
        ),
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

/// Two particles at rest except for a velocity of the first one.
fn moving(velocity: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<galamost_xml version=\"1.3\"><configuration time_step=\"0\" dimensions=\"3\" natoms=\"2\">\n\
         <box lx=\"9\" ly=\"9\" lz=\"9\"/>\n<position num=\"2\">\n0 0 0\n1 0 0\n</position>\n<type num=\"2\">\nA\nA\n</type>\n\
         <velocity num=\"2\">\n{velocity}\n-1 0 0\n</velocity>\n</configuration></galamost_xml>\n"
    )
}

/// A conversion that fails leaves existing files unchanged and no others.
#[test]
fn failed_conversions_change_no_files() {
    let f = tempfile::tempdir().expect("a folder");
    let names = || {
        let all = std::fs::read_dir(f.path()).expect("a folder");
        let mut names: Vec<String> =
            all.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    std::fs::write(f.path().join("good.xml"), moving("0.5 0 0")).expect("written");
    for (output, velocity, message) in [
        ("keep.gro", "1e5 0 0", "does not fit the columns"),
        ("keep.trr", "1e300 0 0", "exceeds single precision"),
        ("keep.gsd", "1e300 0 0", "keep.gsd: Gsd: velocity of particle 0"),
    ] {
        std::fs::write(f.path().join("in.xml"), moving(velocity)).expect("written");
        let before = names();
        let out = galamost(f.path(), &["convert", "in.xml", output]);
        assert!(out.status.code() == Some(2) && words(&out).contains(message), "{output}: {}", words(&out));
        assert_eq!(names(), before, "{output}: files after a failure");
        go(f.path(), &["convert", "good.xml", output]);
        let (before, kept) = (names(), std::fs::read(f.path().join(output)).expect("a file"));
        assert!(!kept.is_empty());
        let out = galamost(f.path(), &["convert", "in.xml", output, "--overwrite"]);
        assert!(!out.status.success() && words(&out).contains(message), "{output}: {}", words(&out));
        assert_eq!(std::fs::read(f.path().join(output)).expect("a file"), kept, "{output}");
        assert_eq!(names(), before, "{output}: files after a failure");
    }
    // a link is followed
    std::fs::create_dir(f.path().join("data")).expect("a folder");
    std::os::unix::fs::symlink("data/real.gro", f.path().join("link.gro")).expect("a link");
    go(f.path(), &["convert", "good.xml", "link.gro"]);
    assert!(f.path().join("link.gro").is_symlink() && f.path().join("data/real.gro").is_file());
}

/// A value that does not fit the columns of a format is wrong input of a conversion, and a fault of a run.
#[test]
fn values_that_do_not_fit_their_columns_are_named() {
    let f = tempfile::tempdir().expect("a folder");
    let mass = "</velocity>\n<mass num=\"2\">\n1e6\n1\n</mass>";
    std::fs::write(f.path().join("in.xml"), moving("1e5 0 0").replace("</velocity>", mass)).expect("written");
    for (output, writer, fields, value) in [
        (
            "o.gro",
            "Gro",
            "digits: 3",
            "velocity x = 100000 of the particle with tag 0 does not fit the columns of a GRO",
        ),
        (
            "o.pdb",
            "Pdb",
            "b_factor: Mass",
            "mass = 1000000 of the particle with tag 0 does not fit the columns of a PDB",
        ),
    ] {
        let out = galamost(f.path(), &["convert", "in.xml", output, "--write", fields]);
        let expected = format!("{output}: {writer}: {value} file");
        assert!(out.status.code() == Some(2) && words(&out).contains(&expected), "{}", words(&out));
        let text = format!(
            "(seed: 1, initial: [GalamostXml(file: \"in.xml\")], integrators: [VelocityVerlet()], \
             analyzers: [{writer}(every: 1, file: \"{output}\", {fields})], stages: [(steps: 2, dt: 1e-7)])"
        );
        std::fs::write(f.path().join("p.ron"), text).expect("written");
        let out = galamost(f.path(), &["--pipeline", "p.ron", "--device", "cpu"]);
        let expected = format!("error: step 0: {writer}: {value} file");
        assert!(out.status.code() == Some(1) && words(&out).contains(&expected), "{}", words(&out));
    }
}

/// A box that is too small for the decimals of a format is refused, and no file is left.
#[test]
fn lengths_below_the_decimals_of_a_format_are_refused() {
    let f = tempfile::tempdir().expect("a folder");
    // XTC does not round the positions of fewer particles
    let rows: String = (0..12).map(|k| format!("A {0}e-10 {0}e-10 0\n", 8 * k)).collect();
    let head = "Lattice=\"1e-8 0 0 0 1e-8 0 0 0 1e-8\" Properties=species:S:1:pos:R:3";
    std::fs::write(f.path().join("a.xyz"), format!("12\n{head}\n{rows}")).expect("written");
    for (output, reason) in [
        (
            "b.gro",
            "the box length 1e-8 does not fit the decimals of the file, which round positions by up to 5.0e-4; use more `digits`",
        ),
        ("b.xtc", "round positions by up to 5.0e-4; use a larger `precision`"),
        ("b.pdb", "round positions by up to 5.0e-4; use a larger `scale`"),
    ] {
        let out = galamost(f.path(), &["convert", "a.xyz", output]);
        assert!(out.status.code() == Some(2) && words(&out).contains(reason), "{output}: {}", words(&out));
        let writer = if output == "b.gro" {
            "Gro"
        } else if output == "b.xtc" {
            "Xtc"
        } else {
            "Pdb"
        };
        let text = format!(
            "(seed: 1, initial: [ExtendedXyz(file: \"a.xyz\")], integrators: [VelocityVerlet()], \
             analyzers: [{writer}(every: 1, file: \"{output}\")], stages: [(steps: 2, dt: 1e-7)])"
        );
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::copy(f.path().join("a.xyz"), folder.path().join("a.xyz")).expect("copied");
        std::fs::write(folder.path().join("p.ron"), text).expect("written");
        let out = galamost(folder.path(), &["check", "p.ron"]);
        assert!(out.status.code() == Some(2) && words(&out).contains(reason), "{output}: {}", words(&out));
    }
    assert_eq!(std::fs::read_dir(f.path()).expect("a folder").count(), 1, "nothing is written");
    go(f.path(), &["convert", "a.xyz", "b.gro", "--write", "digits: 12"]);
    go(f.path(), &["convert", "a.xyz", "b.xtc", "--write", "precision: 1e9"]);
}

/// Frames without steps have step 0, so that they cannot have a file each.
#[test]
fn frames_of_equal_steps_are_not_written_to_one_file() {
    let f = tempfile::tempdir().expect("a folder");
    let frame = |x: &str| format!("1\nLattice=\"5 0 0 0 5 0 0 0 5\" Properties=species:S:1:pos:R:3\nA {x} 1 1\n");
    std::fs::write(f.path().join("a.xyz"), frame("1") + &frame("2")).expect("written");
    let out = galamost(f.path(), &["convert", "a.xyz", "ns.{step}.xml"]);
    assert!(out.status.code() == Some(2) && words(&out).contains("two frames have step 0"), "{}", words(&out));
    assert_eq!(std::fs::read_dir(f.path()).expect("a folder").count(), 1, "nothing is written");
    go(f.path(), &["convert", "a.xyz", "ns.{step}.xml", "--frames", "1"]);
    assert_eq!(read(&f.path().join("ns.0000000000.xml"), None).len(), 1);
    go(f.path(), &["convert", "a.xyz", "all.gsd"]);
}

#[test]
fn a_missing_folder_of_an_output_is_an_input_error() {
    let f = tempfile::tempdir().expect("a folder");
    std::fs::write(f.path().join("in.xml"), moving("0.5 0 0")).expect("written");
    std::fs::write(f.path().join("t.csv"), "step,kT\n1,1.0\n2,1.5\n3,1.0\n4,1.5\n5,1.0\n").expect("written");
    std::fs::write(f.path().join("p.ron"), "(initial: [], stages: [(steps: 1, dt: 0.001)])").expect("written");
    let wca = "Wca(pairs: {(\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0)})";
    for args in [
        &["plot", "t.csv", "--out", "no/t.svg"][..],
        &["render", "in.xml", "--out", "no/t.png"],
        &["report", "p.ron", "--out", "no/t.html"],
        &["stats", "t.csv", "--out", "no/t.csv"],
        &["stats", "t.csv", "--blocks", "no/t.svg"],
        &["table", "make", wca, "--pair", "A", "A", "--out", "no/t.csv"],
    ] {
        let out = galamost(f.path(), args);
        assert!(out.status.code() == Some(2) && words(&out).contains("there is no folder no"), "{}", words(&out));
    }
}

/// `plot` selects a step of a table of profiles, whether `--x` is given or not.
#[test]
fn a_step_of_a_table_is_plotted_over_a_given_column() {
    let f = tempfile::tempdir().expect("a folder");
    let rows: String = [0, 10, 20].iter().flat_map(|s| (1..=6).map(move |r| format!("{s},{r},{}\n", s * r))).collect();
    std::fs::write(f.path().join("m2.csv"), format!("step,r,g\n{rows}")).expect("written");
    let plotted = |more: &[&str]| {
        let args =
            [&["plot", "m2.csv", "--y", "g", "--out", "p.svg", "--overwrite", "--title", "t"][..], more].concat();
        go(f.path(), &args);
        std::fs::read_to_string(f.path().join("p.svg")).expect("a plot")
    };
    let (first, last) = (plotted(&["--x", "r", "--at", "0"]), plotted(&["--x", "r", "--at", "20"]));
    assert!(first != last && last == plotted(&["--x", "r"]) && last == plotted(&[]));
    // over the steps, all rows are plotted
    assert_ne!(plotted(&["--x", "step"]), plotted(&["--x", "step", "--at", "20"]));
    let out = galamost(f.path(), &["plot", "m2.csv", "--x", "r", "--y", "g", "--at", "7", "--overwrite"]);
    assert!(out.status.code() == Some(2) && words(&out).contains("no step 7"), "{}", words(&out));
}

/// `stats` warns about blocks of rows and about curves, with one table and with several.
#[test]
fn tables_that_are_no_time_series_are_named() {
    let f = tempfile::tempdir().expect("a folder");
    let profile: String =
        [0, 10, 20].iter().flat_map(|s| (1..=6).map(move |r| format!("{s},{r},{}\n", s * r))).collect();
    std::fs::write(f.path().join("profile.csv"), format!("step,r,g\n{profile}")).expect("written");
    let series: String = (0..18).map(|k| format!("{},{}\n", 10 * k, k * 7 % 5)).collect();
    std::fs::write(f.path().join("series.csv"), format!("step,g\n{series}")).expect("written");
    let warning = "profile.csv: the table has several rows per step";
    for args in [
        &["stats", "profile.csv"][..],
        &["stats", "profile.csv", "--json"],
        &["stats", "profile.csv", "--out", "one.csv"],
        &["stats", "series.csv", "profile.csv", "--columns", "g"],
    ] {
        let said = go(f.path(), args);
        assert_eq!(said.matches(warning).count(), 1, "{args:?}: {said}");
        assert!(!said.contains("series.csv: "), "{args:?}: {said}");
    }
    assert!(!go(f.path(), &["stats", "series.csv"]).contains("WARN"));
}

#[test]
fn a_fit_is_printed_as_json() {
    let f = tempfile::tempdir().expect("a folder");
    std::fs::write(f.path().join("t.csv"), "step,kT\n0,1.0\n1,3.1\n2,4.9\n3,7.0\n4,9.1\n").expect("written");
    let out = galamost(f.path(), &["stats", "t.csv", "--fit", "a+b*x", "--y", "kT", "--json"]);
    assert!(out.status.success(), "{}", words(&out));
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert!(json["formula"] == "a+b*x" && json["points"] == 5, "{json}");
    let (a, b) = (&json["parameters"][0], &json["parameters"][1]);
    assert!(a["name"] == "a" && b["name"] == "b", "{json}");
    // Σ (x − 2) y / Σ (x − 2)² = 20.1/10; iterations end at a relative change of 10⁻¹³
    assert!((b["value"].as_f64().expect("a slope") - 2.01).abs() < 1e-6 && b["error"].as_f64() > Some(0.0), "{json}");
}
