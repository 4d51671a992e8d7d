//! Tests: files read, written, and rejected.

use crate::galamost_xml::read::parse;
use crate::galamost_xml::write::{Style, write};
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::snapshot::{Array, Link, Snapshot, Values};
use galamost_text::replace;
use std::path::Path;

/// A file with every supported node.
const ALL: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<galamost_xml version="1.3">
<configuration time_step="1500" dimensions="3" natoms="4" >
<box lx="20" ly="10.5" lz="12.964"/>
<position num="4">
     7.5840382267    -1.5888815986     1.6018663680
    -9.9999999999     5.2499999999    -0.0000000001
     0.0000000000     0.0000000000     6.4819999999
    -1.0000000000    -2.0000000000    -3.0000000000
</position>
<image num="4">
0 0 0
-1 2 13
0 0 0
1 0 0
</image>
<velocity num="4">
     0.1000000000     0.2000000000    -0.3000000000
     0.0000000000     0.0000000000     0.0000000000
 12345.0000000000 -54321.0000000000     0.0000000000
     0.0000000000     0.0000000000     1.0000000000
</velocity>
<mass num="4">
1.0000000000
72.0000000000
0.5000000000
1.0000000000
</mass>
<type num="4">
A
B
A
C1
</type>
<charge num="4">
0.0000000000
1.5000000000
-1.5000000000
0.0000000000
</charge>
<diameter num="4">
1.0000000000
1.0000000000
2.0000000000
1.0000000000
</diameter>
<body num="4">
-1
0
0
-1
</body>
<molecule num="4">
0
0
1
-1
</molecule>
<orientation num="4">
     0.0000000000     0.0000000000     1.0000000000
     0.0000000000     1.0000000000     0.0000000000
     1.0000000000     0.0000000000     0.0000000000
     0.0000000000     0.0000000000    -1.0000000000
</orientation>
<quaternion num="4">
     0.0000000000     0.0000000000     0.0000000000     1.0000000000
     0.5000000000     0.5000000000     0.5000000000     0.5000000000
     0.0000000000     0.0000000000     0.0000000000     1.0000000000
     1.0000000000     0.0000000000     0.0000000000     0.0000000000
</quaternion>
<rotation num="4">
     0.0000000000     0.0000000000     0.1000000000
     0.0000000000     0.0000000000     0.0000000000
     0.0000000000     0.0000000000     0.0000000000
     0.0000000000     0.0000000000     0.0000000000
</rotation>
<inert num="4">
     1.0000000000     1.0000000000     3.0000000000
     0.0000000000     0.0000000000     0.0000000000
     0.0000000000     0.0000000000     0.0000000000
     0.0000000000     0.0000000000     0.0000000000
</inert>
<h_init num="4">
1
0
0
0
</h_init>
<h_cris num="4">
1
0
0
1
</h_cris>
<bond num="2">
B-A 1 0
A-C1 2 3
</bond>
<angle num="1">
B-A-A 1 0 2
</angle>
<dihedral num="1">
B-A-A-C1 1 0 2 3
</dihedral>
<improper num="1">
C1-A-B-A 3 0 1 2
</improper>
</configuration>
</galamost_xml>
"#;

const BLOCKS: &str = "<Patches>\nB 1\np1 60 0 0 1\n</Patches>\n<PatchParams>\np1 p1 88.0 0.5\n</PatchParams>\n\
                      <Aspheres>\nA 1.0 1.0 1.0 3.0 3.0 3.0\n</Aspheres>\n</configuration>";

/// The smallest file; lines: 3 configuration, 4 box, 5 position, 6 and 7 its rows, 9 type, 10 and 11 its rows.
const SMALL: &str = "<?xml version=\"1.0\"?>\n<galamost_xml version=\"1.3\">\n\
    <configuration time_step=\"0\" dimensions=\"3\" natoms=\"2\">\n<box lx=\"10\" ly=\"10\" lz=\"10\"/>\n\
    <position num=\"2\">\n1 2 3\n-1 -2 -3\n</position>\n<type num=\"2\">\nA\nB\n</type>\n</configuration>\n\
    </galamost_xml>\n";

fn read(text: &str) -> Result<Snapshot> {
    parse(Path::new("a.xml"), text)
}

fn text(s: &Snapshot) -> String {
    let mut out = vec![];
    write(&mut out, s, Style { digits: 10, velocity: true }).expect("memory");
    String::from_utf8(out).expect("text")
}

/// Returns the errors of a text, as `line:column message`.
fn errors(text: &str) -> Vec<String> {
    match read(text) {
        Err(Error::Input(errors)) => errors
            .iter()
            .map(|e| {
                assert_eq!(e.file.as_deref(), Some(Path::new("a.xml")));
                e.at.map_or_else(|| e.message.clone(), |at| format!("{at} {}", e.message))
            })
            .collect(),
        Err(e) => panic!("{e}"),
        Ok(_) => panic!("no error was reported for:\n{text}"),
    }
}

/// Checks the errors of `SMALL` with `from` replaced by `to`.
fn changed(from: &str, to: &str, expected: &[&str]) {
    assert!(SMALL.contains(from), "{from}");
    assert_eq!(errors(&SMALL.replacen(from, to, 1)), expected, "{from} -> {to}");
}

#[test]
fn every_node_is_read() {
    let s = read(ALL).expect("a sound file");
    s.check().expect("a sound state");
    assert_eq!((s.step, s.dimensions, s.box_length, s.len()), (1500, 3, [20.0, 10.5, 12.964], 4));
    assert_eq!(s.position[1], [-9.9999999999, 5.2499999999, -0.0000000001]);
    assert_eq!(s.image[1], [-1, 2, 13]);
    assert_eq!(s.velocity[2], [12345.0, -54321.0, 0.0]);
    assert_eq!(s.mass, [1.0, 72.0, 0.5, 1.0]);
    assert_eq!((s.types.join(" ").as_str(), s.type_id.as_slice()), ("A B C1", [0, 1, 0, 2].as_slice()));
    let int = |name: &str| match &s.arrays[name] {
        Array { width: 1, values: Values::Int(v) } => v.clone(),
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(int("body"), [-1, 0, 0, -1]);
    assert_eq!(int("molecule"), [0, 0, 1, -1]);
    assert_eq!((int("h_init"), int("h_cris")), (vec![1, 0, 0, 0], vec![1, 0, 0, 1]));
    let real = |name: &str, width: u32, k: usize| match &s.arrays[name] {
        Array { width: w, values: Values::Real(v) } if *w == width && v.len() == 4 * width as usize => v[k],
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!((real("charge", 1, 1), real("diameter", 1, 2)), (1.5, 2.0));
    assert_eq!((real("orientation", 3, 4), real("quaternion", 4, 3)), (1.0, 1.0));
    assert_eq!((real("rotation", 3, 2), real("inert", 3, 2)), (0.1, 3.0));
    assert_eq!(s.arrays.len(), 10);
    assert_eq!(s.bond_types, ["B-A", "A-C1"]);
    assert_eq!(s.bonds, [Link { kind: 0, tags: [1, 0] }, Link { kind: 1, tags: [2, 3] }]);
    assert_eq!((s.angle_types, s.angles), (vec!["B-A-A".into()], vec![Link { kind: 0, tags: [1, 0, 2] }]));
    assert_eq!((s.improper_types, s.impropers), (vec!["C1-A-B-A".into()], vec![Link { kind: 0, tags: [3, 0, 1, 2] }]));
    assert_eq!((s.dihedral_types, s.dihedrals), (vec!["B-A-A-C1".into()], vec![Link { kind: 0, tags: [1, 0, 2, 3] }]));
}

/// Constraints and virtual sites of PyGAMD: a constraint and a bond may have types of the same name.
#[test]
fn constraints_are_bonds_and_sites_are_impropers() {
    let nodes = "<constraint num=\"2\">\nA-A 0 3\nA-B 1 3\n</constraint>\n<vsite>\nv 3 0 1 2\n</vsite>\n<improper";
    let s = read(&ALL.replacen("<improper", nodes, 1)).expect("a state");
    let plain = read(ALL).expect("a state");
    let n = plain.bonds.len();
    assert_eq!(s.bond_types[plain.bond_types.len()..], ["constraint-A-A", "constraint-A-B"]);
    let kinds = plain.bond_types.len() as u32;
    assert_eq!(s.bonds[n..], [Link { kind: kinds, tags: [0, 3] }, Link { kind: kinds + 1, tags: [1, 3] }]);
    assert_eq!(s.improper_types, ["C1-A-B-A", "vsite-v"]);
    assert_eq!(s.impropers[1..], [Link { kind: 1, tags: [3, 0, 1, 2] }]);
    let wrong = ALL.replacen("<improper", "<vsite>\nv 3 0 1\n</vsite>\n<improper", 1);
    assert!(errors(&wrong)[0].contains("vsite: expected 5 values in a row, found 4"), "{:?}", errors(&wrong));
}

/// The format from which galamost_xml descends: another root, attributes with blanks, a blank before the declaration.
#[test]
fn files_of_hoomd_are_read() {
    let old = ALL.replace("galamost_xml", "hoomd_xml").replace("num=\"4\"", "units=\"sigma\" num=\" 4\"");
    let s = read(&format!(" {old}")).expect("a state");
    assert_eq!(text(&s), text(&read(ALL).expect("a state")));
}

#[test]
fn what_is_written_is_what_was_read() {
    // also if numbers fill their columns: they do not merge
    let s = read(ALL).expect("a sound file");
    assert_eq!(text(&s), ALL);
    assert_eq!(read(&text(&s)).expect("a sound file"), s);
}

#[test]
fn defaults_and_plain_files() {
    let s = read(SMALL).expect("a sound file");
    s.check().expect("a sound state");
    assert_eq!((&s.velocity[..], &s.mass[..], &s.image[..]), (&[[0.0; 3]; 2][..], &[1.0; 2][..], &[[0; 3]; 2][..]));
    assert!(s.arrays.is_empty() && s.bonds.is_empty() && s.bond_types.is_empty());
    // without counts; with comments, Windows line ends, a byte order mark, an empty node, blocks of potentials
    let other = format!("\u{feff}{}", SMALL.replace(" num=\"2\"", "").replace(" natoms=\"2\"", ""))
        .replace("</type>", "<!-- > -->\n</type>\n<bond num=\"0\"/><angle num=\"0\"></angle>")
        .replace("</configuration>", BLOCKS)
        .replace('\n', "\r\n");
    assert_eq!(read(&other).expect("a sound file"), read(SMALL).expect("a sound file"));
}

#[test]
fn two_dimensions() {
    let flat = SMALL
        .replace("dimensions=\"3\"", "dimensions=\"2\"")
        .replace("lz=\"10\"", "lz=\"0\"")
        .replace("2 3\n", "2 0\n")
        .replace("-2 -3\n", "-2 0\n");
    let s = read(&flat).expect("a sound file");
    s.check().expect("a sound state");
    assert_eq!((s.dimensions, s.box_length), (2, [10.0, 10.0, 0.0]));
    assert_eq!(read(&text(&s)).expect("a sound file"), s);
    let bad = flat.replace("lz=\"0\"", "lz=\"1\"").replace("1 2 0", "1 2 0.5");
    assert_eq!(
        errors(&bad),
        ["4:1 box: lz=\"1\": must be 0 in two dimensions", "6:1 position: particle 0 has z = 0.5 in two dimensions"]
    );
    let moving = flat.replace("<type", "<velocity>\n1 0 0\n0 0 1\n</velocity>\n<type");
    assert_eq!(errors(&moving), ["11:1 velocity: particle 1 moves along z in two dimensions"]);
}

#[test]
fn edges_of_the_box() {
    let s = read(&SMALL.replace("1 2 3\n", "5 -5.0000001 4.99\n")).expect("a sound file");
    s.check().expect("a sound state");
    assert_eq!((s.position[0][0], s.image[0]), (-5.0, [1, -1, 0]));
    assert!((s.position[0][1] - 4.9999999).abs() < 1e-12);
    changed("-1 -2 -3", "-1 -5.1 -3", &["7:1 position: particle 1 is outside the box, which extends to ±5, ±5, ±5"]);
}

#[test]
fn errors_of_rows() {
    changed("1 2 3", "1 2", &["6:1 position: expected 3 values in a row, found 2"]);
    changed("1 2 3", "1 2 3 4", &["6:1 position: expected 3 values in a row, found 4"]);
    changed("1 2 3", "1 x2 3", &["6:3 position: expected a number, found `x2`"]);
    changed("1 2 3", "1 2 NaN", &["6:5 position: expected a number, found `NaN`"]);
    changed("1 2 3", "1 2 inf", &["6:5 position: expected a number, found `inf`"]);
    changed("1 2 3", "1 2 1e999", &["6:5 position: expected a number, found `1e999`"]);
    changed("A\n", "A B\n", &["10:1 type: expected 1 name in a row, found 2"]);
    changed(
        "1 2 3\n",
        "",
        &["3:1 natoms is 2, but <position> has 1 row", "5:1 position: num is 2, but the node has 1 row"],
    );
    changed("A\n", "", &["9:1 type: num is 2, but the node has 1 row"]);
    changed("<type num=\"2\">\nA\n", "<type num=\"1\">\n", &["9:1 type: 1 row for 2 particles"]);
    changed("<type num=\"2\"", "<type num=\"two\"", &["9:1 type: num=\"two\": expected a whole number from 0"]);
    let twice = "9:1 type: `types` lists A twice; list each type once";
    changed("<type num=\"2\"", "<type types=\"A B A\" num=\"2\"", &[twice]);
    let with = |node: &str| format!("{node}\n</configuration>");
    let extra = |node: &str, expected: &[&str]| changed("</configuration>", &with(node), expected);
    extra("<mass num=\"2\">\n1\n-1\n</mass>", &["15:1 mass: particle 1 has -1; masses must be at least 0"]);
    extra("<body>\n1.5\n1\n</body>", &["14:1 body: expected an integer, found `1.5`"]);
    extra("<body>\n1\n3000000000\n</body>", &["15:1 body: expected an integer, found `3000000000`"]);
    extra("<quaternion>\n0 0 0 1\n0 0 1\n</quaternion>", &["15:1 quaternion: expected 4 values in a row, found 3"]);
    extra("<bond num=\"1\">\nA-B 0 2\n</bond>", &["14:1 bond: unknown particle 2; the last particle is 1"]);
    extra("<bond num=\"1\">\nA-B 0 -1\n</bond>", &["14:7 bond: expected a particle number, from 0, found `-1`"]);
    extra("<bond num=\"1\">\nA-B 0\n</bond>", &["14:1 bond: expected 3 values in a row, found 2"]);
    extra("<bond num=\"1\">\nA-B 1 1\n</bond>", &["14:1 bond: particle 1 occurs twice"]);
    extra("<bond num=\"2\">\nA-B 0 1\n</bond>", &["13:1 bond: num is 2, but the node has 1 row"]);
    extra("<dihedral>\nA 0 1 0 5\n</dihedral>", &["14:1 dihedral: unknown particle 5; the last particle is 1"]);
}

#[test]
fn errors_of_nodes() {
    changed(
        "natoms=\"2\"",
        "natoms=\"3\"",
        &["3:1 natoms is 3, but <position> has 2 rows", "9:1 type: 2 rows for 3 particles"],
    );
    changed("natoms=\"2\"", "natoms=\"-2\"", &["3:1 natoms=\"-2\": expected a whole number from 0"]);
    changed("time_step=\"0\"", "time_step=\"1.5\"", &["3:1 time_step=\"1.5\": expected a whole number from 0"]);
    changed("dimensions=\"3\"", "dimensions=\"4\"", &["3:1 dimensions=\"4\": expected 2 or 3"]);
    changed("lx=\"10\"", "lx=\"-10\"", &["4:1 box: lx=\"-10\": must be a positive number"]);
    changed("ly=\"10\"", "", &["4:1 box: ly is missing"]);
    changed("lz=\"10\"", "lz=\"0\"", &["4:1 box: lz=\"0\": must be a positive number (or 0 with dimensions=\"2\")"]);
    changed("lx=\"10\"", "lx=\"10\" xy=\"0.5\"", &["4:1 box: xy=\"0.5\": only orthogonal boxes are supported"]);
    changed("<box lx=\"10\" ly=\"10\" lz=\"10\"/>\n", "", &["3:1 missing <box> in <configuration>"]);
    changed("<type num=\"2\">\nA\nB\n</type>\n", "", &["3:1 missing <type> in <configuration>"]);
    changed("<position num=\"2\">\n1 2 3\n-1 -2 -3\n</position>\n", "", &["3:1 missing <position> in <configuration>"]);
    changed(
        "</configuration>",
        "<velocty/>\n</configuration>",
        &["13:1 unknown node <velocty>; did you mean <velocity>?"],
    );
    changed("</configuration>", "<type>\nA\nA\n</type>\n</configuration>", &["13:1 duplicate <type>, first in line 9"]);
    changed(
        "</configuration>",
        "</configuration><configuration/>",
        &["13:17 duplicate <configuration>; a file holds one state"],
    );
    changed("</configuration>", "7</configuration>", &["13:1 text outside a node"]);
    changed("A\nB\n", "A\n<b/>B\n", &["11:1 <b> is inside <type>, which may contain only text"]);
    changed(
        "version=\"1.3\"",
        "version=\"2.0\"",
        &["2:1 unsupported galamost_xml version 2.0; this program reads versions 1.x"],
    );
    assert_eq!(errors("<mesh_xml>\n<x/></mesh_xml>"), ["1:1 expected <galamost_xml>, found <mesh_xml>"]);
    assert_eq!(errors(""), ["1:1 missing <galamost_xml>"]);
    assert_eq!(errors("<galamost_xml/>"), ["1:1 missing <configuration> in <galamost_xml>"]);
    assert_eq!(errors(&SMALL.replace("1 2 3\n-1 -2 -3\n", "").replace("A\nB\n", "").replace('2', "0"))[0], {
        "5:1 the file has no particles"
    });
}

#[test]
fn errors_of_xml() {
    changed("</position>", "</positions>", &["8:1 expected `</position>`, but `</positions>` was found"]);
    changed(
        "1 2 3",
        "1 2 &lt;",
        &["6:5 only plain elements and text are expected here", "6:1 position: expected 3 values in a row, found 2"],
    );
    changed(
        "</configuration>\n</galamost_xml>\n",
        "",
        &["13:1 the file ends inside <configuration>, which begins in line 3; it is truncated"],
    );
    changed(
        "-1 -2 -3\n</position>",
        "-1 -2 -3\n</position",
        &["8:1 expected `</position>`, but `</position\n<type num=\"2\">` was found"],
    );
}

#[test]
fn many_errors_are_counted() {
    let rows = "1 2\n".repeat(1_000_000);
    let all = errors(&SMALL.replace("1 2 3\n", &rows));
    assert_eq!(all.len(), 5 + 3, "{all:?}");
    assert_eq!(all[7], "and 999995 more errors");
    // the declared count is only compared, never used for allocation
    changed("num=\"2\"", "num=\"99999999999\"", &["5:1 position: num is 99999999999, but the node has 2 rows"]);
    changed(
        "natoms=\"2\"",
        "natoms=\"18446744073709551615\"",
        &[
            "3:1 natoms is 18446744073709551615, but <position> has 2 rows",
            "9:1 type: 2 rows for 18446744073709551615 particles",
        ],
    );
}

#[test]
fn a_cut_file_is_refused_wherever_it_is_cut() {
    let end = ALL.trim_end().len();
    for cut in 0..end {
        assert!(!errors(&ALL[..cut]).is_empty());
    }
    read(&ALL[..end]).expect("whole");
    // and no damaged byte makes it panic
    for at in 0..ALL.len() {
        for damage in [b'<', b'>', b'"', b'&', b'/', b'\n', b' ', 0, b'9'] {
            let mut bytes = ALL.as_bytes().to_vec();
            bytes[at] = damage;
            let _ = read(std::str::from_utf8(&bytes).expect("ASCII"));
        }
    }
}

#[test]
fn files_are_replaced_whole() {
    let folder = std::env::temp_dir().join(format!("galamost-xml-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("a.xml");
    let s = read(ALL).expect("a sound file");
    let style = Style { digits: 10, velocity: true };
    replace(&path, |out| write(out, &s, style)).expect("written");
    let whole = std::fs::read_to_string(&path).expect("read");
    assert_eq!(whole, text(&s));
    let full = replace(&path, |_| Err(std::io::ErrorKind::StorageFull.into()));
    assert_eq!(full.map_err(|e| e.kind()), Err(std::io::ErrorKind::StorageFull));
    assert_eq!(std::fs::read_to_string(&path).expect("read"), whole);
    assert_eq!(std::fs::read_dir(&folder).expect("read").count(), 1, "nothing is left behind");
    let missing = crate::galamost_xml::read::read(&folder.join("b.xml")).map_err(|e| e.to_string());
    assert!(missing.is_err_and(|e| e.contains("b.xml: cannot be read: ")));
    std::fs::write(&path, b"<galamost_xml>\n\xff").expect("written");
    let binary = crate::galamost_xml::read::read(&path).map_err(|e| e.to_string());
    assert!(binary.is_err_and(|e| e.ends_with("a.xml:2:1: this is not text (UTF-8)")));
    std::fs::remove_dir_all(&folder).expect("removed");
}

/// Velocities in units in which they are small keep their digits.
#[test]
fn small_velocities_keep_their_digits() {
    let mut s = Snapshot { dimensions: 3, box_length: [4.0; 3], types: vec!["A".into()], ..Snapshot::default() };
    s.push(0, [0.0; 3]);
    s.velocity[0] = [1.234_567_890_123e-7, -0.25, 2e-5];
    let mut text = vec![];
    write(&mut text, &s, Style { digits: 10, velocity: true }).expect("written");
    let text = String::from_utf8(text).expect("text");
    let row = text.split("<velocity num=\"1\">\n").nth(1).and_then(|t| t.lines().next()).expect("a row");
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["1.2345678901e-7", "-0.2500000000", "0.0000200000"]);
    let back = parse(Path::new("f.xml"), &text).expect("read").velocity[0];
    assert!((back[0] / s.velocity[0][0] - 1.0).abs() < 1e-10 && back[1..] == s.velocity[0][1..], "{back:?}");
}

/// Also masses and other numbers; with 17 digits, all numbers are exact.
#[test]
fn small_numbers_survive() {
    let mut s = Snapshot { dimensions: 3, box_length: [4.0; 3], types: vec!["A".into()], ..Snapshot::default() };
    s.push(0, [1.234_567_890_123_45e-9, -0.1, 2.0f64.next_down()]);
    s.mass[0] = 1.2e-12;
    s.arrays.insert("charge".into(), Array { width: 1, values: Values::Real(vec![-1.6e-19]) });
    let back = parse(Path::new("f.xml"), &text(&s)).expect("read");
    assert_eq!((back.mass[0], &back.arrays["charge"]), (1.2e-12, &s.arrays["charge"]));
    s.mass[0] = 1.234_567_890_123_45e-9;
    s.velocity[0] = [1.0 / 3.0, -1e-300, 1e22 / 3.0];
    let mut text = vec![];
    write(&mut text, &s, Style { digits: 17, velocity: true }).expect("written");
    assert_eq!(parse(Path::new("f.xml"), std::str::from_utf8(&text).expect("text")).expect("read"), s);
}

/// Positions beside the boundary are not rounded to ones outside, which readers refuse.
#[test]
fn rounded_positions_are_in_the_box() {
    let length = [9.1312, 9.1312, 4.0];
    let mut s = Snapshot { dimensions: 3, box_length: length, types: vec!["A".into()], ..Snapshot::default() };
    s.push(0, [4.5651, -4.5656, 1.999]);
    let mut text = vec![];
    write(&mut text, &s, Style { digits: 2, velocity: false }).expect("written");
    let back = parse(Path::new("f.xml"), std::str::from_utf8(&text).expect("text")).expect("read");
    // 2.00 is the boundary, which is the same as −2.00
    assert_eq!((back.position[0], back.image[0]), ([4.56, -4.56, -2.0], [0, 0, 1]));
}

/// Type names keep their numbers: the attribute `types` is written only where the order of first use differs.
#[test]
fn type_numbers_are_kept() {
    let mut s = Snapshot { dimensions: 3, box_length: [4.0; 3], ..Snapshot::default() };
    s.types = ["A", "B", "C\"D"].map(String::from).into();
    s.push(0, [0.0; 3]);
    s.push(1, [1.0; 3]);
    let text = |s: &Snapshot| {
        let mut text = vec![];
        write(&mut text, s, Style { digits: 10, velocity: false }).expect("written");
        String::from_utf8(text).expect("text")
    };
    let written = text(&s);
    assert!(written.contains("<type num=\"2\" types=\"A B C&quot;D\">"), "{written}");
    assert_eq!(parse(Path::new("f.xml"), &written).expect("read").types, s.types);
    s.types.pop();
    assert!(text(&s).contains("<type num=\"2\">"));
    s.type_id = vec![1, 0].into();
    let back = parse(Path::new("f.xml"), &text(&s)).expect("read");
    assert_eq!((back.types, back.type_id), (s.types, s.type_id));
}
