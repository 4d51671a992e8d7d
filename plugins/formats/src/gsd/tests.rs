//! Tests: trajectories written, read by two readers, truncated, damaged, and rejected.

use crate::forces::Quantities;
use crate::gsd::layer::Layer;
use crate::gsd::write::Trajectory;
use galamost_plugin_api::error::Error;
use galamost_plugin_api::snapshot::{Array, Link, Snapshot, Values};
use hoomd_gsd::file_layer::{GsdFile, Mode};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Reads a frame of a file.
fn read(path: &Path, frame: i64) -> Result<Snapshot, String> {
    crate::gsd::read::read(&crate::gsd::read::open(path)?, frame)
}

/// Four particles with all properties of the schema, with values that single precision represents exactly.
fn system() -> Snapshot {
    let mut s = Snapshot { step: 5, dimensions: 3, box_length: [10.0, 12.0, 14.5], ..Snapshot::default() };
    s.types = vec!["A".into(), "Büchse".into()];
    for k in 0..4 {
        s.push(k % 2, [f64::from(k) - 1.5, -0.25, 7.0]);
    }
    s.velocity[1] = [0.5, -0.5, 2.0];
    s.image[2] = [0, -1, 3];
    s.mass[3] = 72.0;
    let real = |width, values| Array { width, values: Values::Real(values) };
    s.arrays.insert("charge".into(), real(1, vec![0.0, 0.5, -0.5, 1.0]));
    s.arrays.insert("diameter".into(), real(1, vec![1.0, 1.0, 2.0, 1.0]));
    s.arrays.insert("inert".into(), real(3, vec![1.0; 12]));
    s.arrays.insert("quaternion".into(), real(4, [[0.0, 0.0, 0.0, 1.0], [0.5, -0.5, 0.5, 0.5]].concat().repeat(2)));
    s.arrays.insert("angular_momentum".into(), real(3, [[1.0, 2.0, -3.0], [0.5, 4.0, -2.0]].concat().repeat(2)));
    s.arrays.insert("body".into(), Array { width: 1, values: Values::Int(vec![-1, 0, 0, -1]) });
    s.bond_types = vec!["A-A".into(), "A-B".into()];
    s.bonds = vec![Link { kind: 1, tags: [0, 1] }];
    s.angle_types = vec!["A-A-A".into()];
    s.angles = vec![Link { kind: 0, tags: [0, 1, 2] }];
    s.dihedral_types = vec!["d".into()];
    s.dihedrals = vec![Link { kind: 0, tags: [3, 2, 1, 0] }];
    s.improper_types = vec!["i".into(), "j".into()];
    s.impropers = vec![Link { kind: 1, tags: [1, 0, 2, 3] }];
    s
}

/// Later states of the same system: bonds form, all break, one forms again; the rest is unchanged.
fn frames() -> Vec<Snapshot> {
    let first = system();
    let later = |step: u64, x: f64, bonds: &[Link<2>]| {
        let mut s = Snapshot { step, bonds: bonds.to_vec(), ..first.clone() };
        s.position[0][0] = x;
        s
    };
    let (a, b) = (Link { kind: 1, tags: [0, 1] }, Link { kind: 0, tags: [2, 3] });
    let mut all = vec![
        first.clone(),
        later(10, 1.0, &[a, b]),
        later(15, 2.0, &[]),
        later(20, 3.0, &[a]),
        later(25, 4.0, &[Link { tags: [1, 2], ..a }]),
    ];
    all[4].type_id[0] = 1;
    all[4].box_length[0] = 11.0;
    all
}

#[test]
fn topology_that_is_not_read_is_named() {
    let folder = folder();
    let path = folder.path().join("a.gsd");
    let mut file = GsdFile::create(&path, "test", "hoomd", (1, 4)).expect("created");
    file.write_scalars("configuration/step", [0u64]).expect("written");
    for (group, n) in [("constraints", 3u32), ("pairs", 7)] {
        file.write_scalars(&format!("{group}/N"), [n]).expect("written");
    }
    file.end_frame().expect("a frame");
    file.sync_all().expect("synced");
    drop(file);
    let layer = crate::gsd::read::open(&path).expect("opened");
    let message = crate::gsd::read::ignored(&layer, -1);
    assert_eq!(message, Ok(Some("3 constraints and 7 special pairs are not read".into())));
    let path = closed(&folder, &frames());
    assert_eq!(crate::gsd::read::ignored(&crate::gsd::read::open(&path).expect("opened"), 0), Ok(None));
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn written(path: &Path, frames: &[Snapshot]) -> Trajectory {
    let mut t = Trajectory::create(path).expect("created");
    t.sync_interval = Duration::MAX;
    for s in frames {
        t.append(s, true, Quantities::default(), &[("kT", 1.25)]).expect("appended");
    }
    t
}

fn closed(folder: &TempDir, frames: &[Snapshot]) -> PathBuf {
    let path = folder.path().join("a.gsd");
    written(&path, frames).sync().expect("synced");
    path
}

fn message<T>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::Io { message, .. }) => message,
        Err(e) => panic!("{e}"),
        Ok(_) => panic!("an error was expected"),
    }
}

#[test]
fn every_frame_is_read_as_it_was_written() {
    let folder = folder();
    let path = closed(&folder, &frames());
    for (k, s) in frames().iter().enumerate() {
        s.check().expect("sound");
        assert_eq!(read(&path, k as i64).as_ref(), Ok(s), "frame {k}");
        assert_eq!(read(&path, k as i64 - 5).as_ref(), Ok(s), "frame {k}");
    }
    for k in [5, -6, i64::MAX, i64::MIN] {
        assert_eq!(read(&path, k), Err(format!("has 5 frames; frame {k} does not exist")));
    }
}

#[test]
fn the_other_library_reads_it_too() {
    let folder = folder();
    let path = closed(&folder, &frames());
    let file = GsdFile::open(&path, Mode::Read).expect("a GSD file");
    assert_eq!((file.schema(), file.schema_version(), file.n_frames()), ("hoomd", (1, 4), 5));
    let scalars = |frame, name| file.iter_scalars::<u32>(frame, name).map(|v| v.collect::<Vec<_>>()).ok();
    let bonds = |frame| file.iter_arrays::<u32, 2>(frame, "bonds/group").map(|v| v.collect::<Vec<_>>()).ok();
    // a missing chunk means "as in frame 0", never "as in the previous frame"
    assert_eq!((scalars(0, "bonds/N"), bonds(0)), (Some(vec![1]), Some(vec![[0, 1]])));
    assert_eq!((scalars(1, "bonds/N"), bonds(1)), (Some(vec![2]), Some(vec![[0, 1], [2, 3]])));
    assert_eq!((scalars(2, "bonds/N"), bonds(2)), (Some(vec![0]), None));
    assert_eq!((scalars(3, "bonds/N"), bonds(3)), (None, None));
    assert_eq!((scalars(4, "bonds/N"), bonds(4)), (None, Some(vec![[1, 2]])));
    assert_eq!((scalars(1, "bonds/typeid"), scalars(4, "bonds/typeid")), (Some(vec![1, 0]), None));
    assert_eq!((scalars(3, "particles/typeid"), scalars(4, "particles/typeid")), (None, Some(vec![1, 1, 0, 1])));
    for name in ["particles/N", "particles/types", "particles/mass", "angles/group", "configuration/dimensions"] {
        assert!(file.find_chunk(0, name).is_some() && file.find_chunk(1, name).is_none(), "{name}");
    }
    let lengths = file.iter_scalars::<f32>(4, "configuration/box").expect("a box");
    assert_eq!(lengths.collect::<Vec<_>>(), [11.0, 12.0, 14.5, 0.0, 0.0, 0.0]);
    let orientation = file.iter_arrays::<f32, 4>(0, "particles/orientation").expect("quaternions");
    assert_eq!(orientation.collect::<Vec<_>>()[..2], [[1.0, 0.0, 0.0, 0.0], [0.5, 0.5, -0.5, 0.5]]);
    assert_eq!(file.iter_scalars::<f64>(3, "log/kT").expect("a number").collect::<Vec<_>>(), [1.25]);
    assert_eq!(file.iter_scalars::<u64>(3, "configuration/step").expect("a step").collect::<Vec<_>>(), [20]);
}

#[test]
fn axes_become_quaternions_and_flat_systems_stay_flat() {
    let folder = folder();
    let mut s = Snapshot { dimensions: 2, box_length: [10.0, 10.0, 0.0], ..Snapshot::default() };
    let a = s.type_id("A");
    s.push(a, [1.0, 2.0, 0.0]);
    s.arrays.insert("orientation".into(), Array { width: 3, values: Values::Real(vec![1.0, 0.0, 0.0]) });
    let path = closed(&folder, std::slice::from_ref(&s));
    let back = read(&path, -1).expect("a sound file");
    back.check().expect("sound");
    assert_eq!((back.dimensions, back.box_length, &back.bonds), (2, [10.0, 10.0, 0.0], &s.bonds));
    let Some(Values::Real(q)) = back.arrays.get("quaternion").map(|a| &a.values) else { panic!("{back:?}") };
    // 90 degrees about y
    let half = 0.5f64.sqrt();
    for (a, b) in q.iter().zip([0.0, half, 0.0, half]) {
        assert!((a - b).abs() < 1e-7, "{q:?}");
    }
}

#[test]
fn a_killed_run_leaves_whole_frames() {
    let folder = folder();
    let path = folder.path().join("a.gsd");
    let mut t = written(&path, &frames()[..3]);
    // the first frame is on disk at once, the others after the next sync
    assert_eq!(Layer::open(&path, false).map(|l| l.frames()), Ok(1));
    t.sync().expect("synced");
    assert_eq!((Layer::open(&path, false).map(|l| l.frames()), t.synced()), (Ok(3), 3));
    // a large frame is synced at once
    let mut large = frames().remove(0);
    for _ in 0..50_000 {
        large.push(0, [0.0; 3]);
    }
    large.arrays.clear();
    t.append(&large, true, Quantities::default(), &[]).expect("appended");
    assert_eq!((read(&path, -1).map(|s| s.len()), t.synced()), (Ok(50_004), 4));
    // copying the file at any time simulates a kill
    t.append(&frames()[3], true, Quantities::default(), &[]).expect("appended");
    let copy = folder.path().join("killed.gsd");
    std::fs::copy(&path, &copy).expect("copied");
    assert_eq!(read(&copy, -1).as_ref(), Ok(&large));
}

#[test]
fn a_resumed_run_goes_on_from_its_checkpoint() {
    let folder = folder();
    let all = frames();
    let path = closed(&folder, &all[..3]);
    let whole = std::fs::metadata(&path).expect("there").len();
    let mut t = Trajectory::resume(&path, 2, 4).expect("resumed");
    assert!(std::fs::metadata(&path).expect("there").len() < whole);
    assert_eq!(t.synced(), 2);
    for s in &all[3..] {
        t.append(s, true, Quantities::default(), &[]).expect("appended");
    }
    drop(t);
    let steps = |k| read(&path, k).map(|s| s.step);
    assert_eq!([0, 1, 2, 3].map(|k| steps(k).expect("sound")), [5, 10, 20, 25]);
    assert!(steps(4).is_err());
    for (k, s) in [0, 1, 3, 4].into_iter().enumerate() {
        assert_eq!(read(&path, k as i64).as_ref(), Ok(&all[s]), "frame {k}");
    }
    let advice = "restore it, or empty it to begin it again";
    let short = format!("has 4 frames, but the checkpoint expects 5; {advice}");
    assert_eq!(message(Trajectory::resume(&path, 5, 4)), short);
    let other = format!("is not a trajectory of these 9 particles; {advice}");
    assert_eq!(message(Trajectory::resume(&path, 4, 9)), other);
    std::fs::write(&path, "step,kT\n").expect("written");
    assert_eq!(message(Trajectory::resume(&path, 4, 4)), format!("is not a GSD file; {advice}"));
}

/// A run killed while the library syncs a frame leaves data that the index does not list.
#[test]
fn what_a_killed_run_left_behind_the_frames_is_taken_off() {
    let folder = folder();
    let all = frames();
    let path = closed(&folder, &all[..3]);
    let whole = std::fs::read(&path).expect("read");
    let killed = folder.path().join("killed.gsd");
    std::fs::write(&killed, [&whole[..], &[7; 5000]].concat()).expect("written");
    for p in [&path, &killed] {
        let mut t = Trajectory::resume(p, 3, 4).expect("resumed");
        assert_eq!(std::fs::read(p).expect("read"), whole);
        t.append(&all[3], true, Quantities::default(), &[]).expect("appended");
    }
    assert_eq!(std::fs::read(&path).expect("read"), std::fs::read(&killed).expect("read"));
}

#[test]
fn a_frame_that_fails_is_taken_off() {
    let folder = folder();
    let path = folder.path().join("a.gsd");
    let all = frames();
    let mut t = written(&path, &all[..1]);
    let whole = std::fs::read(&path).expect("read");
    t.append(&all[1], true, Quantities::default(), &[]).expect("appended");
    // data left by a full disk
    std::io::Write::write_all(&mut std::fs::File::options().append(true).open(&path).expect("open"), &[7; 1000])
        .expect("written");
    let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    assert!(matches!(t.fail(&full), Error::Io { path: p, .. } if p == path));
    assert_eq!(std::fs::read(&path).expect("read"), whole);
    assert_eq!(message(t.append(&all[1], true, Quantities::default(), &[])), "an earlier frame could not be written");
    t.sync().expect("nothing to do");
    assert_eq!(t.synced(), 1);
    assert!(message(t.require_all()).starts_with("1 of 2 frames could not be written"));
    drop(t);
    assert_eq!(std::fs::read(&path).expect("read"), whole);
}

/// They depend neither on syncs nor on frames that a killed run wrote after its last checkpoint. The index grows at the frames 32, 64, 128
/// and 256.
#[test]
fn the_bytes_follow_from_the_frames() {
    let folder = folder();
    let path = folder.path().join("a.gsd");
    let append = |t: &mut Trajectory, frames: std::ops::Range<u64>, period: u64| {
        t.sync_interval = Duration::MAX;
        for k in frames {
            let mut s = system();
            (s.step, s.position[0][0]) = (k, k as f64 / 256.0);
            t.append(&s, false, Quantities::default(), &[("kT", 1.0), ("pressure", 2.0)]).expect("appended");
            if k % period == 0 {
                t.sync().expect("synced");
            }
        }
    };
    let run = |period: u64, killed: u64, kept: u64| {
        let mut t = Trajectory::create(&path).expect("created");
        append(&mut t, 0..killed, period);
        drop(t);
        if kept < killed {
            append(&mut Trajectory::resume(&path, kept, 4).expect("resumed"), kept..300, period);
        }
        std::fs::read(&path).expect("read")
    };
    let whole = run(u64::MAX, 300, 300);
    for (period, killed, kept) in
        [(5, 300, 300), (9, 40, 20), (9, 200, 31), (9, 290, 33), (50, 299, 150), (50, 140, 64)]
    {
        let case = format!("synced every {period} frames, killed at {killed}, {kept} kept");
        assert!(run(period, killed, kept) == whole, "{case}");
    }
}

/// The names of a frame with everything fit into the block that each file begins with. So this block never moves, and
/// [`Layer::cut`] need not move it back.
#[test]
fn the_block_of_names_never_moves() {
    let folder = folder();
    let path = folder.path().join("a.gsd");
    let mut s = system();
    let quantities = Quantities { force: true, energy: true, torque: true, virial: true };
    for (name, width) in quantities.arrays() {
        s.arrays.insert(name.into(), Array { width, values: Values::Real(vec![0.5; 4 * width as usize]) });
    }
    let log = ["potential_energy", "kinetic_energy", "pressure", "kT"].map(|name| (name, 1.0));
    let mut t = Trajectory::create(&path).expect("created");
    t.append(&s, true, quantities, &log).expect("appended");
    drop(t);
    let bytes = std::fs::read(&path).expect("read");
    let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|k| bytes[at + k]));
    let (begin, size) = (word(24), 64 * word(32));
    assert_eq!((begin, size), (256 + 128 * 32, 1024));
    let names = &bytes[begin as usize..(begin + size) as usize];
    assert_eq!(names.split(|c| *c == 0).filter(|n| !n.is_empty()).count(), 40);
}

#[test]
fn many_frames_make_the_index_grow() {
    let folder = folder();
    let path = folder.path().join("a.gsd");
    let mut t = Trajectory::create(&path).expect("created");
    let mut s = system();
    for step in 0..1000 {
        s.step = step;
        s.position[0][0] = step as f64 / 256.0;
        t.append(&s, false, Quantities::default(), &[("kT", 1.0), ("pressure", 2.0)]).expect("appended");
        if step % 100 == 0 {
            t.sync().expect("synced");
        }
    }
    drop(t);
    let last = read(&path, -1).expect("sound");
    assert_eq!((last.step, last.position[0][0]), (999, 999.0 / 256.0));
    let t = Trajectory::resume(&path, 500, 4).expect("resumed");
    drop(t);
    assert_eq!(read(&path, -1).map(|s| s.step), Ok(499));
}

/// The library reads the file through a memory map: without the check, the end of the file would end the program.
#[test]
fn a_file_that_another_program_shortens_gets_no_frames() {
    let folder = folder();
    let path = folder.path().join("a.gsd");
    let all = frames();
    let mut t = written(&path, &all[..2]);
    t.sync().expect("synced");
    std::fs::write(&path, "").expect("emptied");
    for _ in 0..2 {
        let said = message(t.append(&all[2], true, Quantities::default(), &[]));
        assert!(said.starts_with("was shortened to 0 of ") && said.ends_with("and resume"), "{said}");
    }
    assert!(message(t.sync()).starts_with("was shortened to 0 of "), "a checkpoint would have frames that are lost");
    drop(t);
    assert_eq!(std::fs::metadata(&path).expect("a file").len(), 0);
}

#[test]
fn damaged_files_are_refused() {
    let folder = folder();
    let path = closed(&folder, &frames());
    let bytes = std::fs::read(&path).expect("read");
    let bad = folder.path().join("bad.gsd");
    for cut in (0..bytes.len()).step_by(5) {
        std::fs::write(&bad, &bytes[..cut]).expect("written");
        let e = read(&bad, -1).expect_err("cut off");
        assert!(e.starts_with("is "), "{e}");
    }
    // no damaged byte of header, index, or names causes a panic; most bytes are unused and equal
    for at in (0..256 + 128 * 32 + 1024).filter(|at| bytes[*at] != 0 || at % 16 == 0) {
        for flip in [0x01, 0xff] {
            let mut bytes = bytes.clone();
            bytes[at] ^= flip;
            std::fs::write(&bad, &bytes).expect("written");
            let _ = (read(&bad, -1), read(&bad, 0));
        }
    }
}

/// The file of version 2 as one of version 1: names of 64 bytes each, and the entries of each frame in another order.
#[test]
fn files_of_version_1_are_read() {
    let folder = folder();
    let path = closed(&folder, &frames());
    let whole: Vec<_> = (0..5).map(|k| read(&path, k)).collect();
    let mut bytes = std::fs::read(&path).expect("read");
    let number = |bytes: &[u8], at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("8 bytes")) as usize;
    let names: Vec<Vec<u8>> = {
        let (at, size) = (number(&bytes, 24), 64 * number(&bytes, 32));
        bytes[at..at + size].split(|c| *c == 0).take_while(|n| !n.is_empty()).map(<[u8]>::to_vec).collect()
    };
    let at = bytes.len();
    for name in &names {
        bytes.extend(name);
        bytes.resize(bytes.len() + 64 - name.len(), 0);
    }
    bytes[24..32].copy_from_slice(&at.to_ne_bytes());
    bytes[32..40].copy_from_slice(&names.len().to_ne_bytes());
    bytes[44..48].copy_from_slice(&(1u32 << 16).to_ne_bytes());
    let (index, size) = (number(&bytes, 8), 32 * number(&bytes, 16));
    let mut entries: Vec<[u8; 32]> = bytes[index..index + size].as_chunks().0.to_vec();
    entries.retain(|e| number(e, 16) != 0);
    entries.sort_by_key(|e| (number(e, 0), std::cmp::Reverse(e[28])));
    bytes[index..index + 32 * entries.len()].copy_from_slice(entries.as_flattened());
    std::fs::write(&path, &bytes).expect("written");
    let old: Vec<_> = (0..5).map(|k| read(&path, k)).collect();
    assert!(whole.iter().all(Result::is_ok) && old == whole);
    let message = Layer::open(&path, true).map(|_| ()).expect_err("read only");
    assert_eq!(message, "is a GSD file of version 1.0; only version 2 can be continued");
}

#[test]
fn foreign_files_are_refused() {
    let folder = folder();
    let path = folder.path().join("a.gsd");
    assert!(read(&path, -1).is_err_and(|e| e.starts_with("cannot be ")));
    std::fs::write(&path, [b'<'; 1000]).expect("written");
    assert_eq!(read(&path, -1), Err("is not a GSD file".into()));
    let make = |schema: &str, tilt: f32, x: f32, n: u32| {
        let mut f = GsdFile::create(&path, "test", schema, (1, 4)).expect("created");
        f.write_scalars("configuration/box", [10.0f32, 10.0, 10.0, tilt, 0.0, 0.0]).expect("written");
        f.write_scalars("particles/N", [n]).expect("written");
        f.write_arrays("particles/position", [[x, 0.0, 0.0]]).expect("written");
        f.end_frame().expect("ended");
        drop(f);
        read(&path, -1)
    };
    let s = make("hoomd", 0.0, 5.0, 1).expect("sound");
    s.check().expect("sound");
    assert_eq!((s.position[0][0], s.image[0], s.types), (-5.0, [1, 0, 0], vec!["A".to_string()]));
    assert!(make("hoomd", 1e-8, 0.0, 1).is_ok(), "rounding");
    let refused = |r: Result<Snapshot, String>, words: &str| assert_eq!(r, Err(words.into()));
    refused(make("amber", 0.0, 0.0, 1), "has the schema amber 1.4; expected hoomd 1 or 2");
    assert_eq!(make("hoomd", 0.5, 0.0, 1).map(|s| s.tilt), Ok([0.5, 0.0, 0.0]));
    refused(make("hoomd", 0.0, 5.1, 1), "has particle 0 of frame 0 outside the box, at [5.099999904632568, 0.0, 0.0]");
    refused(make("hoomd", 0.0, f32::NAN, 1), {
        "is damaged: particle 0 of frame 0 is at [NaN, 0.0, 0.0], which is not a finite number"
    });
    refused(make("hoomd", 0.0, 0.0, u32::MAX), {
        "is damaged: particles/position has 1 × 3 values, expected 4294967295 × 3"
    });
    drop(GsdFile::create(&path, "test", "hoomd", (1, 4)).expect("created"));
    refused(read(&path, -1), "has 0 frames; frame -1 does not exist");
}

/// A finite mass that GSD would store as infinite, which no reader accepts.
#[test]
fn numbers_beyond_single_precision_are_refused() {
    let folder = folder();
    let path = folder.path().join("a.gsd");
    let mut t = Trajectory::create(&path).expect("created");
    let mut s = frames()[0].clone();
    t.append(&s, true, Quantities::default(), &[]).expect("written");
    s.velocity[1][2] = -1e39;
    let refused = t.append(&s, true, Quantities::default(), &[]).expect_err("refused").to_string();
    assert!(refused.contains("velocity of particle 1 is -1e39, which exceeds single precision"), "{refused}");
    // frames before and after it are whole
    t.append(&s, false, Quantities::default(), &[]).expect("written without velocities");
    drop(t);
    assert_eq!(read(&path, 0).as_ref(), Ok(&frames()[0]));
    assert!(read(&path, 1).is_ok());
}
