//! Tests: files read, written, and rejected.

use crate::mst::read::{head, read, skip};
use crate::mst::write::{Invariant, WriteOptions, state};
use galamost_plugin_api::error::Position;
use galamost_plugin_api::prelude::{Array, Link, Snapshot, Values};
use galamost_text::Trajectory;

fn of(text: &[u8], number: i64) -> galamost_text::Result<Snapshot> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("f.mst");
    std::fs::write(&path, text).expect("written");
    let mut t = Trajectory::open(&path, skip)?;
    let part = head(&mut t)?;
    read(&mut t, &part, number)
}

/// Examples of the format's manual: a state, and a trajectory.
const STATE: &str = "mst_version 1.0\n\tnum_particles\n\t\t4\n\ttimestep\n\t\t12\n\tdimension\n\t\t3\n\tbox\n\t\t10.0\t10.0\t10.0\n\tposition\n\
    \t\t-1  2 -1\n\t\t-2  3  0\n\t\t-1  4  1\n\t\t-1  5  2\n\ttype\n\t\tA\n\t\tB\n\t\tB\n\t\tA\n\tmass\n\t\t1.0\n\t\t2.1\n\t\t1.0\n\t\t1.0\n\
    # a comment\n\tbond\n\t\tpolymer 0 1\n\t\tpolymer 1 2\n\tangle\n\t\ttheta 0 1 2 # another\n\trotangle\n\t\t1 2 3\n\t\t1 2 3\n\t\t1 2 3\n\t\t1 2 3\n\
    \tinit\n\t\t0\n\t\t1\n\t\t0\n\t\t1\n\tpatch\n\t\tB 2\n\t\tp1 60 0 0 1\n\t\tp1 60 0 0 -1\n\tbody\n\t\t-1\n\t\t-1\n\t\t0\n\t\t0\nmst_end\n";

const FRAMES: &str = "mst_version 1.0\ninvariant_data\n\tnum_particles\n\t\t2\n\tdimension\n\t\t3\n\tbox\n\t\t10\t10\t10\n\tbond\n\t\tb 0 1\n\
    \ttype\n\t\tA\n\t\tB\nvariant_data\nframe\t0\n\ttimestep\n\t\t0\n\tposition\n\t\t0\t0\t0\n\t\t1\t0\t0\nframe_end\nframe\t1\n\ttimestep\n\t\t500\n\
    \tposition\n\t\t0\t1\t0\n\t\t1\t1\t6\n\ttype\n\t\tA\n\t\tC\n\tbond\nframe_end\t\t\n";

#[test]
fn files_of_the_manual_are_read() {
    let s = of(STATE.as_bytes(), -1).expect("a state");
    s.check().expect("sound");
    assert_eq!(
        (s.step, s.box_length, s.types.join(" "), &s.type_id[..]),
        (12, [10.0; 3], "A B".into(), &[0, 1, 1, 0][..])
    );
    assert_eq!((s.position[3], s.image[3], s.mass[1]), ([-1.0, -5.0, 2.0], [0, 1, 0], 2.1));
    assert_eq!((s.bonds[1], s.angles[0]), (Link { kind: 0, tags: [1, 2] }, Link { kind: 0, tags: [0, 1, 2] }));
    assert_eq!(s.arrays["h_init"].values, Values::Int(vec![0, 1, 0, 1]));
    assert_eq!(s.arrays["body"].values, Values::Int(vec![-1, -1, 0, 0]));
    let s = of(FRAMES.as_bytes(), 0).expect("a frame");
    assert_eq!((s.step, s.types.join(" "), s.bonds.len(), s.position[1]), (0, "A B".into(), 1, [1.0, 0.0, 0.0]));
    let s = of(FRAMES.as_bytes(), -1).expect("a frame");
    assert_eq!((s.step, s.types.join(" "), s.bonds.len()), (500, "A C".into(), 0));
    assert_eq!((s.position[1], s.image[1]), ([1.0, 1.0, -4.0], [0, 0, 1]));
}

fn system() -> Snapshot {
    let mut s = Snapshot { step: 7, dimensions: 3, box_length: [10.0, 8.1, 6.0], ..Snapshot::default() };
    s.types = vec!["A".into(), "B2".into()];
    for k in 0..3 {
        s.push(k % 2, [f64::from(k) / 3.0 - 1.0, -4.05, 2.999_999_999_999]);
        s.velocity[k as usize] = [0.1, -1e-9, 1e9];
        s.image[k as usize] = [0, -7, k as i32];
    }
    s.mass[1] = 2.5;
    let real = |width, values| Array { width, values: Values::Real(values) };
    let int = |values| Array { width: 1, values: Values::Int(values) };
    s.arrays.insert("charge".into(), real(1, vec![0.5, -0.5, 0.0]));
    s.arrays.insert("quaternion".into(), real(4, [0.0, 0.6, 0.0, 0.8].repeat(3)));
    s.arrays.insert("inert".into(), real(3, vec![1.0; 9]));
    s.arrays.insert("h_init".into(), int(vec![0, 1, 1]));
    s.arrays.insert("molecule".into(), int(vec![0, -1, 1]));
    (s.bond_types, s.angle_types) = (vec!["b".into()], vec!["d".into()]);
    s.bonds = vec![Link { kind: 0, tags: [0, 1] }, Link { kind: 0, tags: [2, 1] }];
    s.angles = vec![Link { kind: 0, tags: [0, 1, 2] }];
    s
}

#[test]
fn what_is_written_is_read() {
    let options = WriteOptions { velocity: true, digits: None };
    let mut all = vec![system()];
    all.push(Snapshot { step: 9, position: vec![[0.25; 3]; 3].into(), ..system() });
    // one more bond, another box, another type
    let mut other = all[1].clone();
    other.bonds.push(Link { kind: 0, tags: [0, 2] });
    other.box_length = [9.0; 3];
    other.type_id = vec![0, 1, 1].into();
    all.push(other);
    all.push(Snapshot { step: 11, ..system() });
    let (mut invariant, mut text, mut lengths) = (Invariant::default(), vec![], vec![]);
    for s in &all {
        assert_eq!(of(&state(s, options), 0).as_ref(), Ok(s));
        let (frame, next) = invariant.frame(s, options);
        // as after a checkpoint
        invariant = Invariant::of(&next.bytes()).expect("bytes");
        assert_eq!(invariant, next);
        lengths.push(frame.len());
        text.extend(frame);
    }
    assert!(lengths[2] > lengths[1] && lengths[1] < lengths[0] && lengths[3] < lengths[2], "{lengths:?}");
    for (k, s) in all.iter().enumerate() {
        assert_eq!(of(&text, k as i64).as_ref(), Ok(s), "frame {k}");
    }
    assert!(Invariant::of(b"short").is_none() && Invariant::of(&[[0; 16].as_slice(), b"\x09x"].concat()).is_none());
    // a truncated file keeps its complete frames
    let mut end = 0;
    for (k, s) in all.iter().enumerate() {
        end += lengths[k];
        assert_eq!(of(&text[..(end + 40).min(text.len())], -1).map(|t| t.step), Ok(s.step));
    }
}

/// Sections that only some frames have.
#[test]
fn frames_may_omit_what_the_first_one_has() {
    let position = "\tposition\n\t\t0\t0\t0\n\t\t1\t0\t0\n";
    let charge = |q: &str| format!("\tcharge\n\t\t{q}\n\t\t-{q}\n");
    let first = format!(
        "\tbox\n\t\t10\t10\t10\n\ttimestep\n\t\t5\n{position}\ttype\n\t\tB\n\t\tA\n\tvelocity\n\t\t1 0 0\n\t\t0 2 0\n{}\tbond\n\t\tb 0 1\n",
        charge("0.5")
    );
    let text = |frames: &[&str]| {
        let frames: Vec<String> =
            frames.iter().enumerate().map(|(k, f)| format!("frame\t{k}\n{f}frame_end\n")).collect();
        format!(
            "mst_version 1.0\ninvariant_data\n\tnum_particles\n\t\t2\n\tmass\n\t\t3\n\t\t4\nvariant_data\n{}",
            frames.concat()
        )
    };
    let three = format!(
        "\tnum_particles\n\t\t3\n{position}\t\t2 0 0\n\ttype\n\t\tC\n\t\tC\n\t\tC\n\tmass\n\t\t1\n\t\t1\n\t\t1\n"
    );
    let all = text(&[&first, position, &format!("{position}{}", charge("2")), &three, position]);
    let frame = |k: i64| of(all.as_bytes(), k).unwrap_or_else(|e| panic!("frame {k}: {e}"));
    let s = frame(1);
    assert_eq!(s, frame(0));
    assert_eq!((s.step, s.types.join(" "), s.box_length, s.velocity[1]), (5, "B A".into(), [10.0; 3], [0.0, 2.0, 0.0]));
    assert_eq!((s.mass[1], s.bonds.len()), (4.0, 1));
    assert_eq!(s.arrays["charge"].values, Values::Real(vec![0.5, -0.5]));
    // an array of an earlier frame that is not the first one does not apply
    assert_eq!(frame(2).arrays["charge"].values, Values::Real(vec![2.0, -2.0]));
    assert_eq!(frame(-1), s);
    let s = frame(3);
    assert_eq!((s.len(), s.box_length, s.velocity[1], s.bonds.len()), (3, [10.0; 3], [0.0; 3], 0));
    assert!(s.arrays.is_empty());
    // arrays that only a later frame has
    let all = text(&[&first.replace(&charge("0.5"), ""), &format!("{position}{}", charge("2"))]);
    assert!(of(all.as_bytes(), 0).expect("a frame").arrays.is_empty());
    assert!(of(all.as_bytes(), 1).expect("a frame").arrays.contains_key("charge"));
    // a mark at the end of the file is no frame
    let all = text(&[&first, position]) + "mst_end\n";
    assert!(of(all.as_bytes(), 1) == of(all.as_bytes(), -1) && of(all.as_bytes(), 2).is_err());
    // a damaged first frame does not hide the others, as long as they are complete
    let all = text(&[&first.replace("B\n", "B B\n"), &first]);
    assert!(of(all.as_bytes(), 0).is_err_and(|e| e.message == "expected one type name"));
    assert!(of(all.as_bytes(), 1).is_ok());
    let e = of(text(&[&first, ""]).as_bytes(), 1).expect_err("no positions");
    assert_eq!(e.message, "missing section `position`");
}

#[test]
fn errors_have_their_position() {
    let cases = [
        ("mst_version 1.0", "mst", "not an MST file", Some((1, 1))),
        ("mst_version 1.0", "mst_version 2.0", "unsupported format version 2.0", Some((1, 1))),
        ("\t\t4\n\ttime", "\t\tx\n\ttime", "expected a whole number, found `x`", Some((3, 3))),
        ("\t\t4\n\ttime", "\t\t5\n\ttime", "expected 3 number(s), found 1", Some((15, 1))),
        ("\t\t4\n\ttime", "\t\t99999999999\n\ttime", "expected 3 number(s), found 1", Some((15, 1))),
        ("\tnum_particles\n\t\t4\n", "", "`num_particles` must precede this", None),
        ("dimension\n\t\t3", "dimension\n\t\t4", "`dimension` is 4", Some((7, 1))),
        ("10.0\t10.0\t10.0", "10.0\t10.0", "expected 3 number(s), found 2", Some((9, 1))),
        ("10.0\t10.0\t10.0", "10.0\t-10.0\t10.0", "box lengths must be positive", None),
        ("\t\t-2  3  0", "\t\t-2  nan  0", "`nan` is not a finite number", Some((12, 7))),
        ("\t\t-2  3  0", "\t\t-2  3e99  0", "particle 1 is too far outside", None),
        ("polymer 1 2", "polymer 1 4", "unknown particle 4; the last particle is 3", Some((28, 13))),
        ("polymer 1 2", "polymer 1 -2", "expected a whole number, found `-2`", Some((28, 13))),
        ("theta 0 1 2", "theta 0 1", "expected a type and 3 particles, found 3 values", Some((30, 1))),
        ("\tmass\n", "\tmas\n", "unknown section `mas`; did you mean `mass`?", Some((20, 1))),
        ("\ttype\n\t\tA\n\t\tB\n\t\tB\n\t\tA\n", "", "missing section `type`", None),
        ("mst_end\n", "", "the file ends", None),
    ];
    for (from, to, message, place) in cases {
        let text = STATE.replacen(from, to, 1);
        assert_ne!(text, STATE, "{from}");
        let e = of(text.as_bytes(), 0).expect_err(message);
        let at = place.map(|(line, column)| Position { line, column });
        assert!(e.message.contains(message), "{message}: {e:?}");
        assert!(at.is_none() || e.at == at, "{message}: {e:?}");
    }
    let e = of(FRAMES.replace("\ttype\n\t\tA\n\t\tC", "\tnum_particles\n\t\t3").as_bytes(), 1).expect_err("rows");
    assert!(e.message.contains("3 particles, but `position` has"), "{e:?}");
    assert!(of(FRAMES.as_bytes(), 2).is_err_and(|e| e.message == "there is no frame 2: the file has 2"));
}
