//! Tests: files read, written, and rejected.

use crate::extended_xyz::read::{Choice, read, skip};
use crate::extended_xyz::write::{WriteOptions, frame};
use crate::forces::Quantities;
use galamost_plugin_api::error::Position;
use galamost_plugin_api::prelude::{Array, Snapshot, Values};
use galamost_text::Trajectory;

fn of(text: &[u8], number: i64, choice: &Choice) -> galamost_text::Result<Snapshot> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("f.xyz");
    std::fs::write(&path, text).expect("written");
    read(Trajectory::open(&path, skip)?.frame(number)?, choice)
}

const FILE: &str = "2\nLattice=\"10 0 0 0 8.0 0.0 0 0 6\" Properties=id:I:1:species:S:1:pos:R:3:forces:R:3:charges:R:1:radius:R:1:tags:I:1 \
    energy=-1 Step=40 stress={1 2 3} name='a b' good\n2 Cl 5 4 3 0 0 0 -1 0.5 7\n1 Na 11.0 -1.0 3.0 0 0 0 1 1.5 7\n\
    1\nplain\nA 1 2 3\n";

#[test]
fn frames_are_read() {
    let s = of(FILE.as_bytes(), 0, &Choice::default()).expect("a state");
    s.check().expect("sound");
    assert_eq!((s.step, s.box_length, s.types.join(" ")), (40, [10.0, 8.0, 6.0], "Cl Na".into()));
    // in the order of ids
    assert_eq!((s.type_id[0], s.position[0], s.image[0]), (1, [-4.0, 3.0, 0.0], [1, -1, 0]));
    assert_eq!((s.type_id[1], s.position[1], s.image[1]), (0, [0.0; 3], [0; 3]));
    assert_eq!(s.arrays["charge"].values, Values::Real(vec![1.0, -1.0]));
    assert_eq!(s.arrays["diameter"].values, Values::Real(vec![3.0, 1.0]));
    assert_eq!(s.arrays.len(), 2);
    let choice = Choice { types: vec!["Na".into()], length: Some([4.0; 3]), flat: true };
    let s = of(FILE.as_bytes(), 1, &choice).expect("a state");
    assert_eq!((s.position[0], s.types.join(" "), s.box_length), ([-1.0, 0.0, 0.0], "Na A".into(), [4.0, 4.0, 0.0]));
    s.check().expect("sound in two dimensions");
}

#[test]
fn what_is_written_is_read() {
    let mut s = Snapshot { step: 7, dimensions: 3, box_length: [10.0, 8.1, 6.0], ..Snapshot::default() };
    s.types = vec!["A".into(), "B2".into()];
    for k in 0..3 {
        s.push(k % 2, [f64::from(k) / 3.0 - 1.0, -4.05, 2.999_999_999_999]);
        s.velocity[k as usize] = [0.1, -1e-9, 1e9];
    }
    let plain = s.clone();
    s.mass[1] = 2.5;
    let real = |width, values| Array { width, values: Values::Real(values) };
    let int = |values| Array { width: 1, values: Values::Int(values) };
    s.arrays.insert("charge".into(), real(1, vec![0.5, -0.5, 0.0]));
    s.arrays.insert("diameter".into(), real(1, vec![0.7, 1.0, 1.1]));
    s.arrays.insert("quaternion".into(), real(4, [0.0, 0.6, 0.0, 0.8].repeat(3)));
    s.arrays.insert("orientation".into(), real(3, [0.0, 0.6, 0.8].repeat(3)));
    s.arrays.insert("molecule".into(), int(vec![0, -1, 1]));
    s.arrays.insert("h_init".into(), int(vec![0, 1, 1]));
    let options = WriteOptions { velocity: true, quantities: Quantities::default(), unwrapped: false, digits: None };
    let text = [frame(&plain, options), frame(&s, options)].concat();
    assert_eq!(of(&text, 0, &Choice::default()).expect("read"), plain);
    assert_eq!(of(&text, -1, &Choice::default()).expect("read"), s);
    s.image[1] = [0, -7, 2];
    let b = of(&frame(&s, WriteOptions { unwrapped: true, ..options }), 0, &Choice::default()).expect("read");
    assert_eq!(b.image, s.image);
    assert!(b.position.as_flattened().iter().zip(s.position.as_flattened()).all(|(a, b)| (a - b).abs() < 1e-13));
    let b = of(&frame(&s, WriteOptions { velocity: false, digits: Some(2), ..options }), 0, &Choice::default())
        .expect("read");
    assert_eq!((b.position[1][0], b.velocity[0]), (-0.67, [0.0; 3]));
    let mut flat =
        Snapshot { dimensions: 2, box_length: [4.0, 4.0, 0.0], types: vec!["A".into()], ..Snapshot::default() };
    flat.push(0, [1.0, -1.0, 0.0]);
    let choice = Choice { flat: true, ..Choice::default() };
    assert_eq!(of(&frame(&flat, options), 0, &choice).expect("read"), flat);
}

#[test]
fn values_that_are_not_read_give_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("f.xyz");
    let read_all = |text: &str, length: Option<[f64; 3]>| {
        std::fs::write(&path, text).expect("written");
        let mut t = Trajectory::open(&path, skip).expect("opened");
        let lines = t.frame(0).expect("a frame");
        let s = read(lines, &Choice { length, ..Choice::default() }).expect("a state");
        (s, lines.warnings())
    };
    let lattice = "Lattice=\"4 0 0 0 4 0 0 0 4\"";
    let row = "A 1 2 3";
    // velocities without a name, in both rows
    let (_, said) = read_all(&format!("2\n{lattice}\n{row} 0.5 0.5 0.5\n{row} 0.5 0.5 0.5\n"), None);
    assert!(said.len() == 1 && said[0].contains("rows have more than the 4 values"), "{said:?}");
    // of a radius and a diameter, the first one counts
    let both = format!("1\n{lattice} Properties=id:I:1:species:S:1:pos:R:3:radius:R:1:diameter:R:1\n7 {row} 0.5 3.0\n");
    let (s, said) = read_all(&both, None);
    assert_eq!(s.arrays["diameter"].values, Values::Real(vec![1.0]));
    assert!(said.len() == 1 && said[0].contains("columns that are not read: diameter"), "{said:?}");
    let (s, said) = read_all(&format!("1\n{lattice}\n{row}\n"), Some([5.0; 3]));
    assert_eq!(s.box_length, [4.0; 3]);
    assert!(said.len() == 1 && said[0].contains("`box_length` [5.0, 5.0, 5.0] has no effect"), "{said:?}");
    for (text, length) in [(format!("1\n{lattice}\n{row}\n"), 4.0), (format!("1\n\n{row}\n"), 5.0)] {
        assert_eq!(read_all(&text, Some([length; 3])).1, [""; 0], "{text}");
    }
}

#[test]
fn errors_have_their_position() {
    let cases = [
        ("2\nLat", "x\nLat", "expected a whole number, found `x`", Some((1, 1))),
        ("2\nLat", "3\nLat", "found 1 values, expected 11", Some((5, 1))),
        ("2\nLat", "99999999999\nLat", "there is no complete frame 0: the file ends", None),
        ("Lattice=\"10", "Lattice=\"0", "box lengths must be positive", Some((2, 10))),
        ("Lattice=\"10 0", "Lattice=\"10 1", "the first edge of the box must be along x", Some((2, 10))),
        ("Lattice=\"10 0", "Lattice=\"-6 8", "the first edge of the box must be along +x", Some((2, 10))),
        ("Lattice=\"10 0 ", "Lattice=\"10 ", "`Lattice` has 8 numbers, expected 9", Some((2, 10))),
        ("Lattice=\"10 ", "Lattice=\"10 x ", "expected a number, found `x`", Some((2, 13))),
        ("Lattice", "lat", "the frame has no box", Some((2, 1))),
        ("stress={1 2 3}", "stress={1 2 3", "missing closing `}`", Some((2, 140))),
        ("Step=40", "Step=-4", "expected a whole number, found `-4`", Some((2, 130))),
        ("pos:R:3", "pos:R:2", "`Properties` lacks pos:R:3", Some((2, 45))),
        ("pos:R:3", "pos:R:x", "expected a whole number, found `x`", None),
        ("tags:I:1", "tags:I", "`tags`: expected name:type:number", None),
        ("2 Cl 5", "1 Cl 5", "duplicate id 1", None),
        ("2 Cl 5", "2 Cl nan", "`nan` is not a finite number", Some((3, 6))),
        ("2 Cl 5 4", "2 Cl 5", "found 10 values, expected 11", Some((3, 1))),
    ];
    for (from, to, message, place) in cases {
        let text = FILE.replacen(from, to, 1);
        assert_ne!(text, FILE, "{from}");
        let e = of(text.as_bytes(), 0, &Choice::default()).expect_err(message);
        let at = place.map(|(line, column)| Position { line, column });
        assert!(e.message.contains(message), "{message}: {e:?}");
        assert!(at.is_none() || e.at == at, "{message}: {e:?}");
    }
}
