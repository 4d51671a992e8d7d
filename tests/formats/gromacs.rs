//! XTC and TRR files, written here and read by MDAnalysis, and the other way round. The readers and writers of MDAnalysis are
//! those of GROMACS' library `xdrfile`.

use super::go;
use galamost::files::{Reader, Writer};
use galamost_plugin_api::snapshot::Snapshot;
use galamost_tests::{galamost, python_with, registry, repository, skip, words};
use std::path::Path;
use std::process::Command;

/// Files that `check_formats.py` writes: number of particles, box length, and `precision`.
const FILES: [(&str, usize, f64, f64); 6] = [
    ("few.xtc", 9, 3.0, 1e3),
    ("ten.xtc", 10, 3.0, 1e3),
    ("water.xtc", 30_000, 6.5, 1e3),
    ("fine.xtc", 3_000, 6.5, 1e5),
    // a range of 10⁸, which exceeds 24 bits
    ("far.xtc", 3_000, 100_000.0, 1e3),
    ("water.trr", 3_000, 6.5, 1e3),
];

/// Three numbers for each particle, as `check_formats.py` writes them.
fn numbers(path: &Path) -> Vec<[f64; 3]> {
    let bytes = std::fs::read(path).expect("a file");
    let all: Vec<f64> = bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b).into()).collect();
    all.as_chunks::<3>().0.to_vec()
}

fn python(folder: &Path, python: &Path, what: &str) -> String {
    let script = repository().join("tests/python/check_formats.py");
    let out = Command::new(python).arg(script).arg(what).current_dir(folder).output().expect("python runs");
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success() && said.contains("all sound"), "{said}{}", words(&out));
    said
}

fn state(n: usize, length: f64) -> Snapshot {
    let mut s = Snapshot { dimensions: 3, box_length: [length; 3], types: vec!["A".into()], ..Snapshot::default() };
    (0..n).for_each(|_| _ = s.push(0, [0.0; 3]));
    s
}

#[test]
#[ignore = "3 seconds"]
fn xtc_and_trr_files_are_those_of_gromacs() {
    let script = match python_with("MDAnalysis, numpy") {
        Ok(python) => python,
        Err(why) => return skip("Python with MDAnalysis", &why),
    };
    let f = tempfile::tempdir().expect("a folder");
    python(f.path(), script.as_ref(), "gromacs_write");
    for (name, n, length, precision) in FILES {
        let path = f.path().join(name);
        let x = numbers(&f.path().join(format!("{name}.x")));
        let reader = Reader::open(&path, registry()).unwrap_or_else(|e| panic!("{}", e.render()));
        assert_eq!(reader.frames().unwrap_or_else(|e| panic!("{}", e.render())), Some(2), "{name}");
        let fields =
            if name.ends_with("xtc") { format!("precision: {precision:?}, ") } else { "double: true, ".into() };
        let fields = format!("{fields}unwrapped: true");
        let ours = f.path().join(format!("ours-{name}"));
        let first = reader.read_over(Some(0), state(n, 1.0)).unwrap_or_else(|e| panic!("{}", e.render()));
        let writer =
            Writer::create(&ours, None, &fields, &first, registry()).unwrap_or_else(|e| panic!("{}", e.render()));
        for frame in 0..2 {
            let s = reader.read_over(Some(frame), state(n, 1.0)).unwrap_or_else(|e| panic!("{}", e.render()));
            assert_eq!((s.step, s.len()), (10 * frame as u64, n), "{name}");
            // coordinates are in single precision there; the second frame is shifted by 0.25
            let coordinate = f64::from(f32::EPSILON) * length * 1.5;
            let limit = 0.5001 / precision * f64::from(u8::from(n > 9 && name.ends_with("xtc"))) + coordinate;
            for (tag, x) in x.iter().enumerate() {
                for (k, x) in x.iter().enumerate() {
                    let found = s.position[tag][k] + s.box_length[k] * (0.5 + f64::from(s.image[tag][k]));
                    let wanted = x + 0.25 * frame as f64;
                    assert!((found - wanted).abs() <= limit, "{name}: particle {tag} at {found}, not {wanted}");
                }
            }
            if name.ends_with("trr") {
                let v = numbers(&f.path().join(format!("{name}.v")));
                assert_eq!(s.velocity, v);
            }
            writer.write(&s).unwrap_or_else(|e| panic!("{}", e.render()));
        }
        writer.finish().unwrap_or_else(|e| panic!("{}", e.render()));
        let size = |path: &Path| path.metadata().expect("a file").len() as f64;
        let ratio = size(&ours) / size(&path);
        println!("{name}: {} bytes here, {ratio:.4} of those there", size(&ours));
        assert!(!name.ends_with("xtc") || ratio < 1.05, "{name}: {ratio}");
    }
    println!("{}", python(f.path(), script.as_ref(), "gromacs_read"));
}

/// A killed run may leave half a frame; `convert` reads the others and warns.
#[test]
fn an_incomplete_frame_is_left_out() {
    let f = tempfile::tempdir().expect("a folder");
    super::write(&Snapshot { step: 0, ..super::chains() }, &f.path().join("in.xml"));
    for name in ["t.xtc", "t.trr"] {
        go(f.path(), &["convert", "in.xml", name]);
        let whole = std::fs::read(f.path().join(name)).expect("a file");
        let half = [&whole[..], &whole[..whole.len() / 2]].concat();
        std::fs::write(f.path().join(name), &half).expect("written");
        let said = go(f.path(), &["convert", name, "out.gsd", "--topology", "in.xml", "--overwrite"]);
        let begin = whole.len();
        let expected = format!(
            "frame 1 is incomplete and was ignored: it has {} of {begin} bytes, from byte {begin}; the file is truncated",
            begin / 2
        );
        let one_line = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(one_line.contains(&expected) && said.contains("1 frame of 80 particles"), "{said}");
        // the only frame, and only a part of its header
        for (bytes, part) in
            [(begin / 2, format!("{} of {begin} bytes", begin / 2)), (20, "20 bytes of its header".into())]
        {
            std::fs::write(f.path().join(name), &whole[..bytes]).expect("written");
            let out = galamost(f.path(), &["convert", name, "out.gsd", "--topology", "in.xml", "--overwrite"]);
            let expected = format!("the file has 0 frames and is truncated: frame 0 has {part}, from byte 0");
            assert!(out.status.code() == Some(2) && words(&out).contains(&expected), "{}", words(&out));
        }
    }
}

/// Frames of other sizes are errors with their number, and `info` describes the others.
#[test]
fn frames_of_other_sizes_are_named() {
    let f = tempfile::tempdir().expect("a folder");
    let path = |name: &str| f.path().join(name);
    super::write(&Snapshot { step: 0, ..super::chains() }, &path("in.xml"));
    super::write(&state(20, 5.0), &path("small.xml"));
    for (first, second, all) in [("a.xtc", "b.xtc", "t.xtc"), ("a.trr", "b.trr", "t.trr")] {
        go(f.path(), &["convert", "in.xml", first]);
        go(f.path(), &["convert", "small.xml", second]);
        let bytes = [first, second].map(|name| std::fs::read(path(name)).expect("a file"));
        std::fs::write(path(all), bytes.concat()).expect("written");
        let info = |frame: &str| galamost(f.path(), &["info", all, "--topology", "in.xml", "--frame", frame]);
        let wrong = "frame 1 has 20 particles, but the state has 80";
        let (good, bad) = (info("0"), info("1"));
        assert_eq!((good.status.code(), bad.status.code()), (Some(0), Some(2)), "{}", words(&good));
        assert!(words(&bad).contains(wrong), "{}", words(&bad));
        let said = words(&good).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("the last frame cannot be read") && said.contains(wrong), "{said}");
    }
}
