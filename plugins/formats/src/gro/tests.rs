use crate::gro::read::{Choice, read, skip};
use crate::gro::write::{WriteOptions, frame};
use galamost_plugin_api::prelude::*;
use galamost_text::Trajectory;

/// Two waters as in GROMACS' manual, and a frame of other columns without velocities.
const WATERS: &str = "MD of 2 waters, t= 0.0 step= 40
    6
    1WATER  OW1    1   0.126   1.624   1.679  0.1227 -0.0580  0.0434
    1WATER  HW2    2   0.190   1.661   1.747  0.8085  0.3191 -0.7791
    1WATER  HW3    3   0.177   1.568   1.613 -0.9045 -2.6469  1.3180
    2WATER  OW1    4   1.275   0.053   0.622  0.2519  0.3140 -0.1734
    2WATER  HW2    5   1.337   0.002   0.680 -1.0641 -1.1349  0.0257
    2WATER  HW3    6   1.326   0.120   0.568  1.9427 -0.8216 -0.0244
   1.82060   1.82060   1.82060
second
1
99999W       BB99999 -0.12345  1.00000  2.00000
 2.0 4.0 8.0 0 0 0 0 0 0
";

fn opened(text: &str) -> (tempfile::TempDir, Trajectory) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.gro");
    std::fs::write(&path, text).expect("written");
    let trajectory = Trajectory::open(&path, skip).expect("opened");
    (folder, trajectory)
}

fn all() -> Choice {
    Choice { molecules: true, ..Choice::default() }
}

#[test]
fn files_of_gromacs_are_read() {
    let (_keep, mut t) = opened(WATERS);
    assert_eq!(t.count().expect("frames"), 2);
    let s = read(t.frame(0).expect("a frame"), &all()).expect("a state");
    assert_eq!((s.len(), s.step, s.box_length), (6, 40, [1.8206; 3]));
    assert_eq!(s.types, ["OW1", "HW2", "HW3"]);
    assert!((s.position[0][0] - (0.126 - 0.9103)).abs() < 1e-12 && s.image[0] == [0; 3]);
    assert_eq!(s.velocity[2], [-0.9045, -2.6469, 1.318]);
    assert_eq!(s.arrays["molecule"].values, Values::Int(vec![0, 0, 0, 1, 1, 1]));
    let s = read(t.frame(1).expect("a frame"), &Choice { masses: Some(vec![72.0]), ..Choice::default() });
    let s = s.expect("a state");
    assert_eq!((s.types[0].as_str(), s.velocity[0], s.mass[0]), ("BB", [0.0; 3], 72.0));
    assert_eq!(t.warnings(), [""; 0]);
    read(t.frame(1).expect("a frame"), &Choice { masses: Some(vec![72.0, 1.0]), ..Choice::default() })
        .expect("a state");
    assert!(t.warnings().iter().any(|w| w.contains("`masses` lists 2 types, but there are 1")), "{:?}", t.warnings());
    assert!((s.position[0][0] - (2.0 - 0.12345 - 1.0)).abs() < 1e-12 && s.image[0] == [-1, 0, 0]);
    assert!(s.arrays.is_empty() && s.position[0][2] == -2.0);
    // blank lines at the end are no frame; a blank title is one
    let (_keep, mut t) = opened(&format!("{WATERS}\n \n"));
    assert_eq!((t.count().expect("frames"), t.warnings()), (2, vec![]));
    let (_keep, mut t) = opened(&WATERS.replace("second", ""));
    assert_eq!(t.count().expect("frames"), 2);
}

#[test]
fn frames_are_read_as_they_were_written() {
    let mut s = Snapshot { step: 7, dimensions: 3, box_length: [9.7, 10.1, 11.25], ..Snapshot::default() };
    let (a, b) = (s.type_id("A"), s.type_id("BEAD5"));
    s.push(a, [-4.85, 1.0, 5.0]);
    s.push(b, [4.0, -5.05, -5.5]);
    s.velocity = vec![[1.5, -2.25, 100.0], [0.0, 0.1234, 0.0]].into();
    s.arrays.insert("molecule".into(), Array { width: 1, values: Values::Int(vec![-1, 41]) });
    for digits in [3, 8] {
        let options = WriteOptions { unwrapped: false, velocity: true, digits };
        let text = String::from_utf8(frame(&s, options).expect("a frame")).expect("text");
        let (_keep, mut t) = opened(&text);
        let back = read(t.frame(-1).expect("a frame"), &all()).expect("a state");
        assert_eq!((back.step, back.box_length, &back.types, &back.arrays), (7, s.box_length, &s.types, &s.arrays));
        let limit = 0.5001 * 10f64.powi(-(digits as i32));
        for (x, y) in s.position.iter().zip(&back.position).chain(s.velocity.iter().zip(&back.velocity)) {
            assert!((0..3).all(|k| (x[k] - y[k]).abs() <= limit), "{x:?} {y:?}");
        }
    }
    s.position[1][2] = 1e5;
    let e = frame(&s, WriteOptions { unwrapped: false, velocity: true, digits: 3 }).expect_err("too wide");
    assert!(e.starts_with("position z = 100005.625 of the particle with tag 1 does not fit"), "{e}");
}

#[test]
fn mistakes_have_line_and_column() {
    let wrong = |from: &str, to: &str| {
        assert!(WATERS.contains(from), "{from}");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t.gro");
        std::fs::write(&path, WATERS.replacen(from, to, 1)).expect("written");
        let e = Trajectory::open(&path, skip).and_then(|mut t| read(t.frame(0)?, &all())).expect_err("a mistake");
        let at = e.at.map(|p| (p.line, p.column)).unwrap_or_default();
        format!("{}:{} {}", at.0, at.1, e.message)
    };
    assert_eq!(wrong("    6\n", "six\n"), "2:1 expected a whole number, found `six`");
    assert_eq!(wrong("1.679", "1.6x9"), "3:40 expected a number, found `1.6x9`");
    assert_eq!(wrong(" -0.0580  0.0434", ""), "3:1 expected no velocity or its three components, found 1");
    assert_eq!(wrong("    1WATER  OW1", "    1WATER     "), "3:1 expected an atom name in the columns 11 to 15");
    assert_eq!(wrong("    1WATER  OW1", "    xWATER  OW1"), "3:1 expected a residue number in the columns 1 to 5");
    assert_eq!(
        wrong("   1.82060   1.82060   1.82060", "  1.0 1.0 1.0 0.5 0 0 0 0 0"),
        "9:15 the first edge of the box must be along x, and the second in the plane of x and y"
    );
    assert_eq!(wrong("   1.82060   1.82060   1.82060", "  1.0 0.0 1.0"), "9:7 box lengths must be positive");
    // a cut file gives its complete frames, or an error
    for cut in 0..WATERS.len() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t.gro");
        std::fs::write(&path, &WATERS[..cut]).expect("written");
        if let Ok(mut t) = Trajectory::open(&path, skip)
            && let Ok(n) = t.count()
        {
            (0..n as i64).for_each(|k| assert!(read(t.frame(k).expect("a frame"), &all()).is_ok(), "cut at {cut}"));
        }
    }
}
