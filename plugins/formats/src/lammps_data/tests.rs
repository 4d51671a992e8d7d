//! Tests: files read, written, and rejected.

use crate::lammps_data::read::{Choice, read};
use crate::lammps_data::style::{Style, Styles};
use crate::lammps_data::write::{WriteOptions, write};
use galamost_plugin_api::error::Position;
use galamost_plugin_api::prelude::{Array, Link, Snapshot, Values};

fn of(text: &str, choice: &Choice) -> galamost_text::Result<Snapshot> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("f.data");
    std::fs::write(&path, text).expect("written");
    read(&path, choice).map(|(state, _)| state)
}

const FULL: &str = "# a comment, timestep = 12 of it\n\n4 atoms # all\n 2 atom types\n2 bonds\n1 bond types\n1 angles\n1 angle types\n\n\
    -1 9 xlo xhi\n0.0 8.0 ylo yhi\n0 6 zlo zhi\n0 0 0 xy xz yz\n\nMasses\n\n1 1.0 # A\n2 2.5 # B\n\nPair Coeffs # lj/cut\n\n1 1.0 1.0\n2 1.0 1.0\n\n\
    Atoms  # full\n\n30 1 2 0.5 4 4 3 0 0 1\n10 1 1 -0.5 9.5 4.0 -0.5 0 0 0\n20 0 1 0 0 0 0 0 0 0\n40 2 1 0 3.0 1 1 0 0 0 # last\n\n\
    Velocities\n\n10 1 2 3\n20 0 0 0\n30 -1 0 0\n40 0 0 1e-3\n\nBonds\n\n1 1 10 20\n2 1 20 40\n\nAngles\n\n1 1 10 20 40\n";

#[test]
fn a_file_is_read() {
    let s = of(FULL, &Choice::default()).expect("a state");
    s.check().expect("sound");
    assert_eq!((s.step, s.box_length, s.types.join(" ")), (12, [10.0, 8.0, 6.0], "A B".into()));
    assert_eq!((s.position[0], s.image[0], s.velocity[0]), ([-4.5, 0.0, 2.5], [1, 0, -1], [1.0, 2.0, 3.0]));
    assert_eq!((s.position[2], s.image[2], s.mass[2], s.type_id[2]), ([0.0; 3], [0, 0, 1], 2.5, 1));
    assert_eq!(s.arrays["molecule"].values, Values::Int(vec![0, -1, 0, 1]));
    assert_eq!(s.arrays["charge"].values, Values::Real(vec![-0.5, 0.0, 0.5, 0.0]));
    assert_eq!(s.bonds, [Link { kind: 0, tags: [0, 1] }, Link { kind: 0, tags: [1, 3] }]);
    assert_eq!((&s.angles[..], &s.angle_types[..]), (&[Link { kind: 0, tags: [0, 1, 3] }][..], &["1".to_string()][..]));
    let names = |n: &[&str]| Some(n.iter().map(|n| (*n).to_string()).collect::<Vec<_>>());
    let choice =
        Choice { names: [names(&["W", "P"]), names(&["x"]), None, None, None], flat: true, ..Choice::default() };
    let s = of(FULL, &choice).expect("a state");
    assert_eq!((s.types.join(" "), s.bond_types.join(" "), s.box_length[2]), ("W P".into(), "x".into(), 0.0));
    s.check().expect("sound in two dimensions");
    // labels, in any order, also in place of type numbers
    let labels = FULL
        .replace("Masses\n\n1 1.0 # A\n2", "Atom Type Labels\n\n2 P\n1 W\n\nMasses\n\nW 1.0\n2")
        .replace("30 1 2 0.5", "30 1 P 0.5");
    let s = of(&labels, &Choice::default()).expect("a state");
    assert_eq!((s.types.join(" "), s.type_id[2], s.mass[0]), ("W P".into(), 1, 1.0));
}

#[test]
fn tilts_of_rounding_are_none() {
    let s = of(&FULL.replacen("0 0 0 xy", "1e-17 -1e-9 0.0 xy", 1), &Choice::default());
    assert_eq!(s, of(FULL, &Choice::default()));
    let s = of(&FULL.replacen("0 0 0 xy", "2 -1 0.5 xy", 1), &Choice::default()).expect("read");
    let [_, ly, lz] = s.box_length;
    assert_eq!(s.tilt, [2.0 / ly, -1.0 / lz, 0.5 / lz]);
    s.check().expect("a state");
}

#[test]
fn each_style_has_its_columns() {
    let row = |style: &str, row: &str| {
        let text = format!(
            "x\n\n1 atoms\n1 atom types\n\n0 2 xlo xhi\n0 2 ylo yhi\n0 2 zlo zhi\n\nAtoms # {style}\n\n{row}\n"
        );
        of(&text, &Choice::default()).expect(style)
    };
    for (style, columns) in [
        ("atomic", "1 1 0.5 1 1"),
        ("charge", "1 1 0.25 0.5 1 1"),
        ("bond", "1 7 1 0.5 1 1"),
        ("angle", "1 7 1 0.5 1 1 0 0 0"),
        ("molecular", "1 7 1 0.5 1 1"),
        ("full", "1 7 1 0.25 0.5 1 1"),
        ("sphere", "1 1 2.0 3.0 0.5 1 1"),
    ] {
        let s = row(style, columns);
        assert_eq!(s.position[0], [-0.5, 0.0, 0.0], "{style}");
        let molecule = matches!(style, "bond" | "angle" | "molecular" | "full");
        assert_eq!(s.arrays.get("molecule").is_some_and(|a| a.values == Values::Int(vec![6])), molecule, "{style}");
        let charge = matches!(style, "full" | "charge");
        assert_eq!(s.arrays.get("charge").is_some_and(|a| a.values == Values::Real(vec![0.25])), charge, "{style}");
        let mass = if style == "sphere" { 3.0 * std::f64::consts::PI / 6.0 * 8.0 } else { 1.0 };
        assert!((s.mass[0] - mass).abs() < 1e-12, "{style}");
        assert_eq!(s.arrays.contains_key("diameter"), style == "sphere");
    }
}

#[test]
fn the_columns_tell_the_style_if_only_one_fits() {
    let full = of(FULL, &Choice::default());
    for title in ["Atoms", "Atoms # my comment", "Atoms # full of it"] {
        assert_eq!(of(&FULL.replacen("Atoms  # full", title, 1), &Choice::default()), full, "{title}");
    }
    let file = |types: u32, rows: &str| {
        let n = rows.lines().count();
        let text =
            format!("x\n\n{n} atoms\n{types} atom types\n\n0 2 xlo xhi\n0 2 ylo yhi\n0 2 zlo zhi\n\nAtoms\n\n{rows}\n");
        of(&text, &Choice::default())
    };
    let arrays = |rows: &str| file(2, rows).expect(rows).arrays.into_keys().collect::<Vec<_>>().join(" ");
    assert_eq!(arrays("1 1 0.5 1 1"), "");
    assert_eq!(arrays("1 1 0.5 0.5 1 1"), "charge");
    // a third column of types, or a second one that cannot be a type
    assert_eq!(arrays("1 7 1 0.5 1 1"), "molecule");
    assert_eq!(arrays("1 1 0.25 1.5 0 1 1 0 0 0"), "diameter");
    assert_eq!(arrays("1 2 0.25 1 1 1 1.0 0 0"), "charge orientation");
    // `atom_style` decides, but it should not contradict the file
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("f.data");
    let said = |comment: &str, style: Style| {
        let text = format!(
            "x\n\n1 atoms\n1 atom types\n\n0 2 xlo xhi\n0 2 ylo yhi\n0 2 zlo zhi\n\nMasses\n\n1 1\n\nAtoms # {comment}\n\n1 1 1 1 1 1\n"
        );
        std::fs::write(&path, text).expect("written");
        read(&path, &Choice { style: Some(Styles(vec![style])), ..Choice::default() }).expect(comment).1.join(" ")
    };
    let expected = "the file names the atom style molecular, but `atom_style` is charge";
    assert!(said("molecular", Style::Charge).contains(expected), "{}", said("molecular", Style::Charge));
    assert_eq!([said("bond", Style::Molecular), said("mine", Style::Charge)], ["", ""]);
    let error = |types: u32, rows: &str| file(types, rows).expect_err(rows);
    let e = error(2, "1 1 1 0.5 1 1\n2 1 2 0.5 1 1");
    assert_eq!(e.at, Some(Position { line: 10, column: 1 }));
    assert_eq!(
        e.message,
        "the file does not name the atom style, and its columns do not tell: they fit bond, angle, molecular and charge; set \
         `atom_style`"
    );
    assert!(error(1, "1 1 1").message.contains("they fit none of atomic, bond"));
}

#[test]
fn ellipsoids_dipoles_and_hybrids_are_read() {
    let file = |style: &str, rows: &str, choice: &Choice| {
        let n = rows.lines().count();
        let text = format!(
            "x\n\n{n} atoms\n1 ellipsoids\n1 atom types\n\n-2 2 xlo xhi\n-2 2 ylo yhi\n-2 2 zlo zhi\n\n\
             Atoms # {style}\n\n{rows}\n\nEllipsoids\n\n2 1.0 2.0 3.0 0.0 2.0 0.0 0.0\n"
        );
        of(&text, choice)
    };
    let s = file("ellipsoid", "1 1 0 2.5 0 0 0\n2 1 1 0.5 1 0 0", &Choice::default()).expect("a state");
    let mass = 0.5 * std::f64::consts::PI;
    assert_eq!(s.mass, [2.5, mass]);
    assert_eq!(s.arrays["quaternion"].values, Values::Real(vec![0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0]));
    // m/5 times the sums of squared semiaxes
    let inert = [0.25 * 13.0, 0.25 * 10.0, 0.25 * 5.0].map(|x| 0.2 * mass * x);
    let Values::Real(found) = &s.arrays["inert"].values else { panic!("reals") };
    assert!(found[3..].iter().zip(inert).all(|(a, b)| (a - b).abs() < 1e-15), "{found:?}");
    let hybrid = Choice { style: Some(Styles(vec![Style::Ellipsoid, Style::Full])), ..Choice::default() };
    let s = file("hybrid", "1 1 0 0 0 0 2.5 7 0.25\n2 1 1 0 0 1 0.5 8 -0.25 0 0 1", &hybrid).expect("a state");
    assert_eq!((s.position[1], s.image[1], s.mass[1]), ([1.0, 0.0, 0.0], [0, 0, 1], mass));
    assert_eq!(s.arrays["molecule"].values, Values::Int(vec![6, 7]));
    assert_eq!(s.arrays["charge"].values, Values::Real(vec![0.25, -0.25]));
    let e = file("ellipsoid", "1 1 1 2.5 0 0 0\n2 1 0 0.5 1 0 0", &Choice::default()).expect_err("a point");
    assert_eq!(e.message, "the section `Atoms` has no ellipsoid 2");
    // LAMMPS writes masses of 0 for types whose particles have masses of their own
    let spheres = "x\n\n1 atoms\n1 atom types\n\n-2 2 xlo xhi\n-2 2 ylo yhi\n-2 2 zlo zhi\n\nMasses\n\n1 0\n\n\
                   Atoms # hybrid\n\n1 1 1 1 1 0 3.0 0.5 0 0 0\n";
    let style = Some(Styles(vec![Style::Sphere, Style::Charge]));
    let s = of(spheres, &Choice { style, ..Choice::default() }).expect("a state");
    assert_eq!((s.mass[0], &s.arrays["charge"].values), (3.0, &Values::Real(vec![0.5])));
    let dipoles = FULL
        .replace("Atoms  # full", "Atoms # dipole")
        .replace("30 1 2 0.5 4 4 3 0 0 1", "30 2 0.5 4 4 3 0 0 2.0 0 0 1")
        .replace("10 1 1 -0.5 9.5 4.0 -0.5 0 0 0", "10 1 -0.5 9.5 4.0 -0.5 0 1 0")
        .replace("20 0 1 0 0 0 0 0 0 0", "20 1 0 0 0 0 0.6 0.8 0")
        .replace("40 2 1 0 3.0 1 1 0 0 0 # last", "40 1 0 3.0 1 1 0 0 0");
    let s = of(&dipoles, &Choice::default()).expect("a state");
    let Values::Real(found) = &s.arrays["orientation"].values else { panic!("reals") };
    assert_eq!(found, &[0.0, 1.0, 0.0, 0.6, 0.8, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
}

#[test]
fn what_is_written_is_read() {
    let mut s = Snapshot { step: 70, dimensions: 3, box_length: [10.0, 8.1, 6.0], ..Snapshot::default() };
    s.types = vec!["A".into(), "B".into()];
    for k in 0..5 {
        s.push(k % 2, [f64::from(k) / 3.0 - 1.0, -4.05, 2.9]);
        s.velocity[k as usize] = [0.1, -1e-9, 1e9];
        s.image[k as usize] = [0, -7, k as i32];
        s.mass[k as usize] = f64::from(k % 2) + 0.1;
    }
    s.arrays.insert("charge".into(), Array { width: 1, values: Values::Real(vec![0.5, -0.5, 0.0, 0.1, -0.1]) });
    s.arrays.insert("molecule".into(), Array { width: 1, values: Values::Int(vec![0, 0, 0, 0, -1]) });
    (s.bond_types, s.angle_types, s.dihedral_types) =
        (vec!["b".into(), "c".into()], vec!["d".into()], vec!["e".into()]);
    s.bonds = vec![Link { kind: 1, tags: [0, 1] }, Link { kind: 0, tags: [2, 1] }];
    s.angles = vec![Link { kind: 0, tags: [0, 1, 2] }];
    s.dihedrals = vec![Link { kind: 0, tags: [3, 2, 1, 0] }];
    s.improper_types = vec!["flat".into()];
    s.impropers = vec![Link { kind: 0, tags: [1, 0, 2, 3] }];
    let options = WriteOptions { style: Style::Full, velocity: true, labels: true, digits: None };
    let text = |s: &Snapshot, options| String::from_utf8(write(s, options).expect("text")).expect("text");
    assert_eq!(of(&text(&s, options), &Choice::default()).expect("read"), s);
    // without labels the names of bond types are lost; those of particle types are comments
    let plain = of(&text(&s, WriteOptions { labels: false, ..options }), &Choice::default()).expect("read");
    assert_eq!((plain.types.join(" "), plain.bond_types.join(" ")), ("A B".into(), "1 2".into()));
    let atomic = of(&text(&s, WriteOptions { style: Style::Atomic, ..options }), &Choice::default()).expect("read");
    assert!(atomic.bonds.is_empty() && atomic.arrays.is_empty() && atomic.mass == s.mass);
    // masses that differ within a type
    s.mass[4] = 7.0;
    assert!(write(&s, options).is_err_and(|e| e.contains("particles of type A have different masses")));
    s.arrays.insert("diameter".into(), Array { width: 1, values: Values::Real(vec![1.0, 2.0, 0.0, 0.5, 1.5]) });
    let sphere = of(&text(&s, WriteOptions { style: Style::Sphere, ..options }), &Choice::default()).expect("read");
    assert_eq!(sphere.arrays["diameter"], s.arrays["diameter"]);
    assert!(sphere.mass.iter().zip(&s.mass).all(|(a, b)| (a / b - 1.0).abs() < 1e-15), "{:?}", sphere.mass);
    // two dimensions
    let mut flat =
        Snapshot { dimensions: 2, box_length: [4.0, 4.0, 0.0], types: vec!["A".into()], ..Snapshot::default() };
    flat.push(0, [1.0, -1.0, 0.0]);
    let text = text(&flat, WriteOptions { style: Style::Atomic, ..options });
    assert_eq!(of(&text, &Choice { flat: true, ..Choice::default() }).expect("read"), flat);
}

#[test]
fn errors_have_their_position() {
    let cases = [
        ("4 atoms # all", "5 atoms", "found 1 values; the style full has 7, or 10", Some((32, 1))),
        ("4 atoms # all", "99999999999999 atoms", "found 1 values; the style full has 7, or 10", Some((32, 1))),
        ("4 atoms # all", "x atoms", "no box bounds", None),
        ("4 atoms", "4 5 atoms", "expected 1 number(s) before `atoms`, found 2", Some((3, 1))),
        ("2 atom types", "200000000 atom types", "types exceed the limit of 100000", Some((4, 2))),
        ("-1 9 xlo", "-1 -1 xlo", "invalid bounds", Some((10, 1))),
        ("0 0 0 xy xz yz", "1 0 0 avec", "general triclinic boxes are not supported", Some((13, 1))),
        ("0.0 8.0 ylo yhi\n", "", "no box bounds `ylo yhi`", None),
        ("2 2.5 # B", "2 0 # B", "masses must be positive", Some((18, 3))),
        ("2 2.5 # B", "1 2.5 # B", "duplicate mass of the type 1", Some((18, 1))),
        ("20 0 0 0\n30", "10 0 0 0\n30", "duplicate velocity of atom 10", None),
        ("Pair Coeffs", "Pair Coefs", "did you mean `Pair Coeffs`?", Some((20, 1))),
        ("Atoms  # full", "Atoms # hybrid", "set `atom_style` to its sub-styles, in order", Some((25, 1))),
        ("Atoms  # full", "Atoms # body", "unsupported atom style `body`", Some((25, 1))),
        ("10 1 1 -0.5 9.5", "10 1 1 9.5", "found 9 values; the style full has 7, or 10 with images", Some((28, 1))),
        ("10 1 1 -0.5 9.5", "10 1 3 -0.5 9.5", "unknown atom type 3", Some((28, 6))),
        ("10 1 1 -0.5 9.5", "10 1 1 -0.5 inf", "`inf` is not a finite number", Some((28, 13))),
        ("10 1 1 -0.5 9.5", "10 1 1 -0.5 9e99", "the position of atom 10 is too far outside", None),
        ("10 1 1 -0.5 9.5", "20 1 1 -0.5 9.5", "duplicate atom id 20", Some((29, 1))),
        ("10 1 1 -0.5 9.5", "10 5000000000 1 -0.5 9.5", "the number 5000000000 is too large", Some((28, 4))),
        ("30 1 2 0.5 4 4 3 0 0 1", "30 1 2 0.5 4 4 3 0 0 -5000000000", "-5000000000 is too large", Some((27, 22))),
        ("2 1 20 40", "2 1 20 41", "unknown atom 41: it is not in the section `Atoms`", Some((42, 8))),
        ("Pair Coeffs #", "Bonds\n\n1 1 10 20\n#", "unknown atom 10: the section `Atoms` must precede this one", None),
        ("2 1 20 40", "2 2 20 40", "unknown bond type 2", Some((42, 3))),
        ("1 1 10 20 40\n", "1 1 10 20\n", "expected a number, a type and 3 atoms, found 4 values", Some((46, 1))),
    ];
    for (from, to, message, place) in cases {
        let text = FULL.replacen(from, to, 1);
        assert_ne!(text, FULL, "{from}");
        let e = of(&text, &Choice::default()).expect_err(message);
        let at = place.map(|(line, column)| Position { line, column });
        assert!(e.message.contains(message), "{message}: {e:?}");
        assert!(at.is_none() || e.at == at, "{message}: {e:?}");
    }
    // a file cut anywhere is rejected, except after its last number
    for cut in 0..FULL.len() {
        if let Ok(s) = of(&FULL[..cut], &Choice::default()) {
            assert!(cut == FULL.len() - 1 && s.len() == 4, "cut at {cut}");
        }
    }
}

#[test]
fn bonds_define_molecules_if_there_is_no_array() {
    let mut s = of(FULL, &Choice::default()).expect("a state");
    s.arrays.remove("molecule");
    s.bonds = vec![Link { kind: 0, tags: [3, 1] }];
    let options = WriteOptions { style: Style::Full, velocity: true, labels: false, digits: None };
    let text = String::from_utf8(write(&s, options).expect("text")).expect("text");
    let back = of(&text, &Choice::default()).expect("read");
    assert_eq!(back.arrays["molecule"].values, Values::Int(vec![-1, 0, -1, 0]));
}

#[test]
fn particles_without_mass_are_refused() {
    let mut s = of(FULL, &Choice::default()).expect("a state");
    s.mass[2] = 0.0;
    for style in [Style::Full, Style::Sphere] {
        let options = WriteOptions { style, velocity: true, labels: false, digits: None };
        let e = write(&s, options).expect_err("no mass");
        assert!(e.starts_with("particle 2 (type B) has no mass, which LAMMPS does not allow"), "{e}");
    }
}
