//! Tests: files read, written, and rejected.

use crate::pdb::columns::Extra;
use crate::pdb::common::Common;
use crate::pdb::read::{Choice, Molecules, read, skip};
use crate::pdb::write::{END, WriteOptions, model, state};
use galamost_plugin_api::error::Position;
use galamost_plugin_api::prelude::{Array, Link, Snapshot, Values};
use galamost_text::Trajectory;

fn open(text: &[u8], run: impl FnOnce(Trajectory, &Common) -> galamost_text::Result<()>) -> galamost_text::Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("f.pdb");
    std::fs::write(&path, text).expect("written");
    let mut trajectory = Trajectory::open(&path, skip)?;
    let common = Common::of(trajectory.begin()?)?;
    run(trajectory, &common)
}

fn of(text: &[u8], number: i64, choice: &Choice) -> galamost_text::Result<Snapshot> {
    let mut out = Err(galamost_plugin_api::error::InputError::new("not read"));
    open(text, |mut t, common| {
        out = read(t.frame(number)?, choice, common);
        Ok(())
    })?;
    out
}

fn count(text: &[u8]) -> galamost_text::Result<u64> {
    let mut n = 0;
    open(text, |mut t, _| t.count().map(|found| n = found)).map(|()| n)
}

/// A file of another program: an alternate location, residues of two chains, a double bond, no remark.
const FILE: &str = "\
HEADER    SOMETHING                                                             \n\
CRYST1   10.000    8.000    6.000  90.00  90.00  90.00 P 1           1\n\
ATOM      1  CA AGLY A   1       5.000   4.000   3.000  0.50 12.25           C  \n\
ATOM      2  CA BGLY A   1       5.100   4.000   3.000  0.50 12.50           C  \n\
ATOM      3  N   GLY A   2      11.000  -1.000   3.000  1.00  0.00           N  \n\
TER       4      GLY A   2\n\
HETATM    5 CL    CL B   1       1.000   1.000   1.000  1.00 -1.00          CL1-\n\
CONECT    1    3    3\n\
CONECT    2    3\n\
CONECT    3    1    1    2\n\
MASTER        0    0    0    0    0    0    0    0    3    0    2    0\n\
END\n";

#[test]
fn files_of_others_are_read() {
    let s = of(FILE.as_bytes(), 0, &Choice::default()).expect("a state");
    s.check().expect("sound");
    assert_eq!((s.len(), s.box_length, s.types.join(" "), s.step), (3, [10.0, 8.0, 6.0], "CA N CL".into(), 0));
    assert_eq!((s.position[0], s.image[0]), ([0.0; 3], [0; 3]));
    assert_eq!((s.position[1], s.image[1]), ([-4.0, 3.0, 0.0], [1, -1, 0]));
    // the bond record of the other location is ignored
    assert_eq!((s.bond_types.join(" "), &s.bonds[..]), ("CA-N".into(), &[Link { kind: 0, tags: [0, 1] }][..]));
    assert!(s.arrays.is_empty());
    let choice = Choice {
        scale: Some(0.5),
        types: vec!["N".into()],
        masses: Some(vec![14.0, 12.0, 35.5]),
        molecules: Some(Molecules::Residues),
        b_factor: Some(Extra::Charge),
        occupancy: Some(Extra::Body),
        ..Choice::default()
    };
    assert!(of(FILE.as_bytes(), 0, &choice).is_err_and(|e| e.message.contains("an integer body number, found `0.50`")));
    let choice = Choice { occupancy: None, ..choice };
    let s = of(FILE.as_bytes(), 0, &choice).expect("a state");
    assert_eq!(
        (s.box_length, s.position[1], s.mass),
        ([20.0, 16.0, 12.0], [-8.0, 6.0, 0.0], vec![12.0, 14.0, 35.5].into())
    );
    assert_eq!((s.types.join(" "), s.bond_types.join(" ")), ("N CA CL".into(), "N-CA".into()));
    assert_eq!(s.arrays["molecule"].values, Values::Int(vec![0, 1, 2]));
    assert_eq!(s.arrays["charge"].values, Values::Real(vec![12.25, 0.0, -1.0]));
    let choice = Choice {
        molecules: Some(Molecules::Chains),
        length: Some([4.0; 3]),
        flat: true,
        occupancy: Some(Extra::Mass),
        ..Choice::default()
    };
    let s = of(FILE.as_bytes(), -1, &choice).expect("a state");
    s.check().expect("sound in two dimensions");
    assert_eq!((s.box_length, s.position[2], s.mass[0]), ([4.0, 4.0, 0.0], [-1.0, -1.0, 0.0], 0.5));
    assert_eq!(s.arrays["molecule"].values, Values::Int(vec![0, 0, 1]));
}

#[test]
fn errors_have_their_position() {
    let cases = [
        ("CRYST1", "REMARK", "missing box (CRYST1) before the first atom; set `box_length`", Some((3, 1))),
        ("10.000    8.000    6.000", " 1.000    1.000    1.000", "missing box (CRYST1)", Some((3, 1))),
        ("  10.000", "   0.000", "a = 0; box lengths must be positive", Some((2, 11))),
        ("  90.00  90.00 P", " 180.00  90.00 P", "no box has the angles 90°, 180°, 90°", Some((2, 1))),
        ("  90.00 P 1           1", "", "γ (columns 48 to 54) is missing", Some((2, 48))),
        ("11.000  -1.000", "11.000      .x", "expected a number, found `.x`", Some((5, 45))),
        ("11.000  -1.000", "nan     -1.000", "`nan` is not a finite number", None),
        ("11.000  -1.000", "  1e99  -1.000", "the position is too far outside", None),
        ("5.000   4.000   3.000  0.50 12.25           C  ", "5.000", "y (columns 39 to 46) is missing", Some((3, 39))),
        ("  N   GLY", "      GLY", "the name of the atom (columns 13 to 16) is missing", Some((5, 13))),
        ("GLY A   2  ", "GLY A  2x  ", "expected a residue number, found `2x`", Some((5, 25))),
        ("  N   GLY", "  N   GLÜ", "unsupported character `Ü`", Some((5, 20))),
        ("ATOM      3", "ATPM      3", "unknown PDB record `ATPM`", Some((5, 1))),
        ("ATOM      3", "ATOM      1", "cannot join 1 and 3: duplicate serial number 1", Some((8, 16))),
        ("ATOM      3", "ATOM      7", "cannot join 1 and 3: unknown atom 3", Some((8, 16))),
        ("CONECT    2    3", "CONECT    3    3", "cannot join 3 and 3: they are the same atom", Some((9, 16))),
        ("CONECT    2    3", "CONECT    2    x", "expected the serial number of an atom, found `x`", Some((9, 16))),
        ("CONECT    2    3", "CONECT", "the serial number of an atom (columns 7 to 11) is missing", Some((9, 7))),
        (
            "0    2    0\nEND\n",
            "0    2    0",
            "there is no complete frame 0: the file ends without ENDMDL or END",
            Some((11, 1)),
        ),
    ];
    for (from, to, message, place) in cases {
        let text = FILE.replacen(from, to, 1);
        assert_ne!(text, FILE, "{from}");
        let e = of(text.as_bytes(), 0, &Choice::default()).expect_err(message);
        let at = place.map(|(line, column)| Position { line, column });
        assert!(e.message.contains(message), "{message}: {e:?}");
        assert!(at.is_none() || e.at == at, "{message}: {e:?}");
    }
    // without END, and with angles that `box_length` overrides
    let whole = of(FILE.as_bytes(), 0, &Choice::default());
    assert_eq!(of(FILE.replacen("END\n", "", 1).as_bytes(), 0, &Choice::default()), whole);
    let skew = FILE.replacen("  90.00  90.00 P", " 101.25  60.00 P", 1);
    let choice = Choice { length: Some([10.0, 8.0, 6.0]), ..Choice::default() };
    assert_eq!(of(skew.as_bytes(), 0, &choice), whole);
    let twice = format!("MODEL        1\n{}", FILE.replacen("TER   ", "MODEL ", 1));
    assert!(of(twice.as_bytes(), 0, &Choice::default()).is_err_and(|e| e.message.starts_with("a MODEL begins before")));
    for text in ["", "HEADER\nEND\n"] {
        assert!(of(text.as_bytes(), 0, &Choice::default()).is_err_and(|e| e.message.contains("there is no frame 0")));
    }
    let empty = "CRYST1   10.000    8.000    6.000  90.00  90.00  90.00\nMODEL        1\nENDMDL\n";
    assert!(of(empty.as_bytes(), 0, &Choice::default()).is_err_and(|e| e.message.starts_with("missing atoms")));
    let masses = Choice { masses: Some(vec![1.0]), ..Choice::default() };
    assert!(of(FILE.as_bytes(), 0, &masses).is_err_and(|e| e.message == "`masses` lacks the type N"));
}

/// Three particles with all supported properties, with values that three decimals represent exactly.
fn sample() -> Snapshot {
    let mut s = Snapshot { step: 7, dimensions: 3, box_length: [10.0, 8.125, 6.0], ..Snapshot::default() };
    s.types = vec!["A".into(), "Long".into()];
    for (k, x) in [-5.0, 0.125, 4.5].into_iter().enumerate() {
        s.push(k as u32 % 2, [x, -4.0625, 2.0]);
    }
    s.bond_types = vec!["A-Long".into()];
    s.bonds = vec![Link { kind: 0, tags: [0, 1] }, Link { kind: 0, tags: [1, 2] }];
    let real = |values| Array { width: 1, values: Values::Real(values) };
    s.arrays.insert("charge".into(), real(vec![0.5, -99.25, 0.0]));
    s.arrays.insert("molecule".into(), Array { width: 1, values: Values::Int(vec![12_345, 12_345, -1]) });
    s.mass = vec![1.0, 2.5, 1.0].into();
    s
}

const OPTIONS: WriteOptions = WriteOptions {
    scale: 8.0,
    unwrapped: false,
    molecules: true,
    bonds: true,
    occupancy: Some(Extra::Mass),
    b_factor: Some(Extra::Charge),
};

fn choice() -> Choice {
    Choice { occupancy: Some(Extra::Mass), b_factor: Some(Extra::Charge), ..Choice::default() }
}

#[test]
fn what_is_written_is_read() {
    let mut s = sample();
    let text = state(&s, OPTIONS).expect("written");
    let lines: Vec<&str> = std::str::from_utf8(&text).expect("text").lines().collect();
    // y is 65 Å/2 − 32.5 Å
    assert_eq!(lines[1], "CRYST1   80.000   65.000   48.000  90.00  90.00  90.00 P 1           1");
    assert_eq!(lines[3], "ATOM      2 Long UNK B2346      41.000   0.000  40.000  2.50-99.25");
    assert_eq!(lines[4], "ATOM      3  A   UNK A   0      76.000   0.000  40.000  1.00  0.00");
    assert_eq!(
        &lines[5..],
        ["TER       4      UNK A   0", "CONECT    1    2", "CONECT    2    1    3", "CONECT    3    2", "END"]
    );
    assert_eq!(of(&text, 0, &choice()).expect("read"), s);
    s.image = vec![[0, 1, 0], [-1, 0, 0], [0, 0, 3]].into();
    let far = WriteOptions { unwrapped: true, ..OPTIONS };
    let models =
        [model(&sample(), OPTIONS, 0).expect("written"), model(&s, far, 1).expect("written"), END.to_vec()].concat();
    assert_eq!((count(&models), of(&models, 0, &choice()), of(&models, -1, &choice())), (Ok(2), Ok(sample()), Ok(s)));
    // a truncated file keeps its complete models
    let whole = models.windows(7).enumerate().filter(|(_, w)| w == b"ENDMDL\n").map(|(at, _)| at);
    let ends: Vec<usize> = whole.collect();
    for cut in 0..models.len() {
        // END also matches the beginning of ENDMDL
        let n = ends.iter().filter(|end| **end + 6 <= cut || **end + 3 == cut).count() as u64;
        match count(&models[..cut]) {
            Ok(found) => assert_eq!(found, n, "cut at {cut}"),
            Err(e) => assert!(n == 0, "cut at {cut}: {e}"),
        }
    }
    let mut flat =
        Snapshot { dimensions: 2, box_length: [4.0, 4.0, 0.0], types: vec!["A".into()], ..Snapshot::default() };
    flat.push(0, [1.0, -1.0, 0.0]);
    let plain = WriteOptions { occupancy: None, b_factor: None, ..OPTIONS };
    let text = state(&flat, plain).expect("written");
    assert_eq!(of(&text, 0, &Choice { flat: true, ..Choice::default() }).expect("read"), flat);
}

#[test]
fn atoms_have_as_many_bonds_as_they_like() {
    let mut s = Snapshot { dimensions: 3, box_length: [10.0; 3], types: vec!["A".into()], ..Snapshot::default() };
    s.bond_types = vec!["A-A".into()];
    for k in 0..12 {
        s.push(0, [0.5 * f64::from(k) - 3.0, 0.0, 0.0]);
        if k > 0 {
            s.bonds.push(Link { kind: 0, tags: [0, k as u32] });
        }
    }
    let text = state(&s, WriteOptions { occupancy: None, b_factor: None, ..OPTIONS }).expect("written");
    assert_eq!(String::from_utf8_lossy(&text).matches("CONECT    1").count(), 3);
    assert_eq!(of(&text, 0, &Choice::default()).expect("read"), s);
}

#[test]
fn numbers_above_99999_are_hybrid_36() {
    let n = 100_010u32;
    let mut s = Snapshot { dimensions: 3, box_length: [50.0; 3], types: vec!["A".into()], ..Snapshot::default() };
    for k in 0..n {
        s.push(0, [f64::from(k % 50) - 25.0, f64::from(k / 50 % 50) - 25.0, f64::from(k / 2500 % 50) - 25.0]);
    }
    s.bond_types = vec!["A-A".into()];
    s.bonds = vec![Link { kind: 0, tags: [0, n - 1] }, Link { kind: 0, tags: [n - 2, n - 1] }];
    let all = (0..n as i32).collect();
    s.arrays.insert("molecule".into(), Array { width: 1, values: Values::Int(all) });
    let text = state(&s, WriteOptions { scale: 1.0, occupancy: None, b_factor: None, ..OPTIONS }).expect("written");
    let words = String::from_utf8_lossy(&text);
    assert!(
        words.contains("\nATOM  99999  A   UNK J9999 ") && words.contains("\nATOM  A0000  A   UNK K   0 "),
        "their numbers"
    );
    assert!(words.contains("\nCONECTA000A    1A0009\n"), "{}", &words[words.len() - 60..]);
    assert_eq!(of(&text, 0, &Choice::default()).expect("read"), s);
}

#[test]
fn values_that_do_not_fit_are_reported_with_the_tag() {
    let s = sample();
    let e = |s: &Snapshot, options| state(s, options).expect_err("too wide");
    assert_eq!(
        e(&s, WriteOptions { scale: 1960.0, ..OPTIONS }),
        "x = 10045 of the particle with tag 1 does not fit the columns of a PDB file; use a smaller `scale`"
    );
    assert!(
        e(&s, WriteOptions { scale: 1e6, ..OPTIONS })
            .starts_with("the box length 10000000 (times `scale`) does not fit")
    );
    assert!(e(&s, WriteOptions { scale: 1e-6, ..OPTIONS }).starts_with("the box length"));
    let mut far = s.clone();
    far.image[2] = [-13, 0, 0];
    assert!(state(&far, WriteOptions { unwrapped: true, ..OPTIONS }).is_ok(), "-964.000 fits");
    far.image[2] = [-14, 0, 0];
    assert!(
        e(&far, WriteOptions { unwrapped: true, ..OPTIONS })
            .starts_with("x = -1044 of the particle with tag 2 does not fit")
    );
    let mut s = sample();
    s.mass[2] = 1000.0;
    assert!(e(&s, OPTIONS).starts_with("mass = 1000 of the particle with tag 2 does not fit"));
    let mut s = sample();
    s.arrays.insert("molecule".into(), Array { width: 1, values: Values::Int(vec![0, 619_999, 0]) });
    assert!(e(&s, OPTIONS).starts_with("the molecule 619999 of the particle with tag 1 does not fit"));
    assert!(state(&s, WriteOptions { molecules: false, ..OPTIONS }).is_ok());
}
