//! Files that are truncated, endless, too large, or not what their name says.

use super::{chains, write};
use galamost_plugin_api::snapshot::Snapshot;
use galamost_tests::{galamost, words};
use std::io::Write as _;
use std::path::Path;

/// Runs, and returns everything that was said, with single blanks; `status` is the exit status wanted.
fn said(folder: &Path, args: &[&str], status: i32) -> String {
    let out = galamost(folder, args);
    let said = words(&out) + &String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(status), "{args:?}: {said}");
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(vec![], flate2::Compression::best());
    out.write_all(bytes).expect("packed");
    out.finish().expect("packed")
}

const XYZ: &str = "1\nLattice=\"9 0 0 0 9 0 0 0 9\" Properties=species:S:1:pos:R:3\nA 1 2 3\n\
                   1\nLattice=\"9 0 0 0 9 0 0 0 9\" Properties=species:S:1:pos:R:3\nA 1 2 3.25\n";
const DUMP: &str = "ITEM: TIMESTEP\n0\nITEM: NUMBER OF ATOMS\n1\nITEM: BOX BOUNDS pp pp pp\n0 4\n0 4\n0 4\nITEM: ATOMS id type x y z\n1 1 1 1 1\n\
                    ITEM: TIMESTEP\n5\nITEM: NUMBER OF ATOMS\n1\nITEM: BOX BOUNDS pp pp pp\n0 4\n0 4\n0 4\nITEM: ATOMS id type x y z\n1 1 1 1 2.5\n";

#[test]
fn a_last_frame_counts_without_its_line_break() {
    let f = tempfile::tempdir().expect("a folder");
    for (name, text, line) in [("t.xyz", XYZ, 6), ("t.dump", DUMP, 20)] {
        let path = f.path().join(name);
        std::fs::write(&path, text.trim_end()).expect("written");
        let all = said(f.path(), &["info", name], 0);
        assert!(all.contains("frames: 2"), "{name}: {all}");
        assert!(all.contains(&format!("{name}:{line}:1: the last line has no line break")), "{name}: {all}");
        // a pipeline gets the warning too
        let reader = if name == "t.xyz" { "ExtendedXyz" } else { "LammpsDump" };
        std::fs::write(
            f.path().join("p.ron"),
            format!("(initial: [{reader}(file: \"{name}\")], stages: [(steps: 0, dt: 0.1)])"),
        )
        .expect("written");
        let all = said(f.path(), &["check", "p.ron"], 0);
        assert!(all.contains(&format!("{name}:{line}:1: the last line has no line break")), "{name}: {all}");
        // also if the file ends where blocks of a disk do, as after a kill
        let missing = 512 - text.trim_end().len() % 512;
        let padded = format!("{}{}", text.trim_end(), "0".repeat(missing));
        std::fs::write(&path, padded).expect("written");
        assert_eq!(std::fs::metadata(&path).expect("a file").len() % 512, 0);
        let all = said(f.path(), &["info", name], 0);
        assert!(all.contains("frames: 2"), "{name}: {all}");
        assert!(all.contains(&format!("{name}:{line}:1: the last line has no line break")), "{name}: {all}");
        // a row is incomplete: the frame before it remains, and the warning names the line
        std::fs::write(&path, text.trim_end().rsplit_once(' ').expect("a row").0).expect("written");
        let all = said(f.path(), &["info", name], 0);
        assert!(all.contains("frames: 1"), "{name}: {all}");
        assert!(all.contains(&format!("{name}:{line}:1: frame 1 is incomplete and was ignored")), "{name}: {all}");
    }
}

#[test]
fn counts_of_a_dcd_file_that_do_not_fit_are_told() {
    let f = tempfile::tempdir().expect("a folder");
    write(&Snapshot { step: 0, ..chains() }, &f.path().join("in.xml"));
    said(f.path(), &["convert", "in.xml", "t.dcd"], 0);
    let whole = std::fs::read(f.path().join("t.dcd")).expect("a file");
    let info = |bytes: &[u8]| {
        std::fs::write(f.path().join("t.dcd"), bytes).expect("written");
        said(f.path(), &["info", "t.dcd", "--topology", "in.xml"], 0)
    };
    assert!(!info(&whole).contains("WARN"));
    let mut more = whole.clone();
    more[8..12].copy_from_slice(&7u32.to_le_bytes());
    assert!(info(&more).contains("the header declares 7 frames, but the file has 1; 1 are used"), "{}", info(&more));
    let half = [&whole[..], &whole[whole.len() - 100..]].concat();
    assert!(info(&half).contains("frame 1 is incomplete and was ignored: it has 100 of"), "{}", info(&half));
}

#[test]
#[ignore = "3 seconds"]
fn files_that_are_no_files_are_refused_at_once() {
    let f = tempfile::tempdir().expect("a folder");
    let pipeline = "(initial: [Lattice(lattice: Sc, cells: [4, 4, 4], density: 0.5)], forces: [PairTable(pairs: \
        {(\"A\", \"A\"): (file: \"t.pot\")})], stages: [(steps: 0, dt: 0.1)])";
    std::fs::write(f.path().join("p.ron"), pipeline).expect("written");
    let commands = |name: &str| -> Vec<Vec<String>> {
        let all: &[&[&str]] = match name {
            "t.ron" => &[&["check", "t.ron"], &["ibi", "t.ron"]],
            "t.pot" => &[&["check", "p.ron"], &["table", "convert", "t.pot", "--kind", "pair", "--out", "o.csv"]],
            "t.csv" => &[&["info", "t.csv"], &["stats", "t.csv"], &["plot", "t.csv"]],
            _ => &[&["info", name]],
        };
        all.iter().map(|c| c.iter().map(|w| (*w).to_string()).collect()).collect()
    };
    for (device, expected) in [("/dev/zero", ""), ("/dev/urandom", ""), (".", "folder")] {
        for ending in [
            "xml", "data", "dump", "xyz", "mst", "pdb", "gro", "gsd", "dcd", "xtc", "trr", "csv", "parquet", "pot",
            "ron",
        ] {
            let name = format!("t.{ending}");
            std::os::unix::fs::symlink(device, f.path().join(&name)).expect("linked");
            for command in commands(&name) {
                // `info` and `stats` take a folder of Parquet files
                let folder = device == "." && ["parquet", "ron"].contains(&ending);
                let args: Vec<&str> = command.iter().map(String::as_str).collect();
                let all = said(f.path(), &args, 2);
                assert!(all.contains(&name), "{args:?} {device}: {all}");
                let why = ["device or a pipe", "not text", expected];
                assert!(folder || why.iter().any(|w| !w.is_empty() && all.contains(w)), "{args:?} {device}: {all}");
            }
            std::fs::remove_file(f.path().join(&name)).expect("removed");
        }
    }
}

#[test]
#[ignore = "5 seconds"]
fn compressed_files_say_what_is_wrong() {
    let f = tempfile::tempdir().expect("a folder");
    write(&Snapshot { step: 0, ..chains() }, &f.path().join("in.xml"));
    let text = std::fs::read(f.path().join("in.xml")).expect("a file");
    let mut xz = vec![];
    lzma_rs::xz_compress(&mut text.as_slice(), &mut xz).expect("packed");
    for (name, packed) in [("t.xml.gz", gz(&text)), ("t.xml.xz", xz)] {
        std::fs::write(f.path().join(name), &packed[..packed.len() * 2 / 3]).expect("written");
        let all = said(f.path(), &["info", name], 2);
        assert!(all.contains(&format!("{name}: GalamostXml: is truncated: its compressed data end after")), "{all}");
    }
    // a quarter of a gigabyte in 260 kB
    for (byte, why) in [(0, "zero byte"), (b' ', "bytes expand to more than")] {
        std::fs::write(f.path().join("bomb.xyz.gz"), gz(&vec![byte; 256 << 20])).expect("written");
        let all = said(f.path(), &["info", "bomb.xyz.gz"], 2);
        assert!(all.contains(why), "{all}");
    }
}

/// The mark that some editors write at the start of a file.
#[test]
#[ignore = "3 seconds"]
fn byte_order_marks_are_accepted() {
    let f = tempfile::tempdir().expect("a folder");
    write(&Snapshot { step: 0, ..chains() }, &f.path().join("in.xml"));
    let marked = |name: &str, text: &[u8]| {
        std::fs::write(f.path().join(name), [&b"\xef\xbb\xbf"[..], text].concat()).expect("written");
    };
    for name in ["out.data", "out.dump", "out.xyz", "out.mst", "out.pdb", "out.xml"] {
        said(f.path(), &["convert", "in.xml", name], 0);
        let bytes = std::fs::read(f.path().join(name)).expect("a file");
        marked(name, &bytes);
        assert!(said(f.path(), &["info", name], 0).contains("80"), "{name}");
    }
    marked("t.csv", b"step,a\n0,1\n1,2\n2,3\n3,2\n4,1\n5,2\n");
    assert!(said(f.path(), &["stats", "t.csv"], 0).contains('a'));
    marked("t.pot", b"0.5 3\n1.0 1\n1.5 0.25\n2.0 0\n");
    marked(
        "p.ron",
        b"(initial: [Lattice(lattice: Sc, cells: [4, 4, 4], density: 0.05)],\n forces: [PairTable(pairs: \
          {(\"A\", \"A\"): (file: \"t.pot\")})],\n stages: [(steps: 0, dt: 0.1)])",
    );
    said(f.path(), &["check", "p.ron"], 0);
    // lines and columns are those of the text
    marked("p.ron", b"(seed: x, initial: [])");
    assert!(said(f.path(), &["check", "p.ron"], 2).contains("p.ron:1:8:"));
}

#[test]
fn text_that_is_none_is_named_with_its_line() {
    let f = tempfile::tempdir().expect("a folder");
    for (name, text, place) in [
        ("p.ron", &b"(seed: 1,\n\xff\n)"[..], "p.ron:2:1: this is not text (UTF-8)"),
        ("p.ron", b"\xff\xfe(\0", "p.ron:1:1: this is UTF-16 text; save the file as UTF-8"),
        ("p.ron", b"(\n\0)", "p.ron:2:1: this is not text: it contains a zero byte"),
        ("p.ron", b"", "the file is empty"),
        ("t.xyz", b"1\n\xff\n", "t.xyz:2:1: ExtendedXyz: this is not text (UTF-8)"),
        ("t.csv", b"a,b\n1,\xff\n", "t.csv:2:3: this is not text (UTF-8)"),
        ("t.csv", b"", "t.csv: empty file"),
        ("t.xml", b"", "t.xml:1:1: GalamostXml: "),
        ("t.xyz", b"", "t.xyz"),
    ] {
        std::fs::write(f.path().join(name), text).expect("written");
        let command = if name == "p.ron" { "check" } else { "info" };
        let all = said(f.path(), &[command, name], 2);
        assert!(all.contains(place), "{name} {text:?}: {all}");
    }
}

/// A count in the file must not reserve memory for rows that are not there.
#[test]
fn counts_beyond_the_rows_are_refused() {
    let f = tempfile::tempdir().expect("a folder");
    let n = "1000000000000000";
    let mst = format!(
        "mst_version 1.0\nnum_particles\n1\nbox\n9 9 9\nposition\n1 1 1\ntype\nA\nnum_particles\n{n}\nmst_end\n"
    );
    for (name, text) in [
        ("t.mst", mst),
        ("t.xyz", XYZ.replacen("1\n", &format!("{n}\n"), 1)),
        ("t.dump", DUMP.replacen("ATOMS\n1\n", &format!("ATOMS\n{n}\n"), 1)),
        (
            "t.data",
            format!(
                "x\n\n{n} atoms\n1 atom types\n0 9 xlo xhi\n0 9 ylo yhi\n0 9 zlo zhi\n\nAtoms # atomic\n\n1 1 1 1 1\n"
            ),
        ),
    ] {
        std::fs::write(f.path().join(name), text).expect("written");
        assert!(said(f.path(), &["info", name], 2).contains(name));
    }
}

/// Colors that show nothing.
#[test]
fn coloring_by_absent_data_is_told() {
    let f = tempfile::tempdir().expect("a folder");
    let bare = Snapshot { step: 0, arrays: [].into(), ..chains() };
    write(&bare, &f.path().join("in.xml"));
    let render = |color: &str, status: i32| {
        said(f.path(), &["render", "in.xml", "--size", "64x64", "--overwrite", "--color", color], status)
    };
    assert!(render("charge", 2).contains("there is no property `charge`"));
    assert!(!render("speed", 0).contains("WARN") && !render("molecule", 0).contains("WARN"));
    let (angles, dihedrals) = (vec![], vec![]);
    let still =
        Snapshot { velocity: vec![[0.0; 3]; 80].into(), bonds: vec![], bond_types: vec![], angles, dihedrals, ..bare };
    write(&still, &f.path().join("in.xml"));
    assert!(render("speed", 0).contains("WARN in.xml: the particles have no velocities"));
    let each = "the particles have neither bonds nor the array `molecule`";
    assert!(render("molecule", 0).contains(each));
    let text = "(initial: [GalamostXml(file: \"in.xml\")], analyzers: [Render(every: 1, file: \"x.png\", color: \"molecule\")],\n\
                stages: [(steps: 0, dt: 0.1)])";
    std::fs::write(f.path().join("p.ron"), text).expect("written");
    assert!(said(f.path(), &["check", "p.ron"], 0).contains(&format!("Render: {each}")));
}
