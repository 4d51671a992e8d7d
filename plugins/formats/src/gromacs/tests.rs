//! Tests: files read, written, and rejected.

use crate::gromacs::compression::bits::{BitReader, BitWriter, FIRST, Layout, SIZES};
use crate::gromacs::compression::decode::{Compression, decode};
use crate::gromacs::compression::encode::{encode, rounded};
use crate::gromacs::fields::put_box;
use crate::gromacs::index::{Format, FrameData, FrameIndex};
use crate::gromacs::trr;
use crate::gromacs::trr::{Contents, Trr};
use crate::gromacs::xtc::{Xtc, frame};
use galamost_text::Shape;
use std::path::PathBuf;

/// A cube with edges of 3.
const CUBE: Shape = Shape { length: [3.0; 3], tilt: [0.0; 3] };

/// Random numbers from 0 to 1.
fn draws(mut seed: u64) -> impl FnMut() -> f64 {
    move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// `n` particles: molecules of three, whose particles are 0.1 apart, in a box of these lengths.
fn waters(n: usize, length: [f64; 3], seed: u64) -> Vec<[f64; 3]> {
    let mut draw = draws(seed);
    let mut center = [0.0; 3];
    let mut place = |k: usize| {
        if k.is_multiple_of(3) {
            center = length.map(|l| l * draw());
            return center;
        }
        center.map(|x| x + 0.2 * (draw() - 0.5))
    };
    (0..n).map(&mut place).collect()
}

/// A file of these bytes; the folder is removed when it is dropped.
fn file(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t");
    std::fs::write(&path, bytes).expect("written");
    (folder, path)
}

/// All frames of a file, and warnings about it.
fn all<F: Format>(bytes: &[u8], n: u64) -> Result<(Vec<(u64, FrameData)>, Vec<String>), String> {
    let (_keep, path) = file(bytes);
    let mut index = FrameIndex::<F>::open(&path)?;
    let frames = (0..index.frames() as i64).map(|k| index.frame(k, n)).collect::<Result<_, _>>()?;
    Ok((frames, index.notices()))
}

fn farthest(a: &[[f64; 3]], b: &[[f64; 3]]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.as_flattened().iter().zip(b.as_flattened()).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs()))
}

#[test]
fn bits_are_read_as_they_were_written() {
    let mut draw = draws(1);
    // sizes of 24 bits make triples of 72 bits
    for sizes in [[1, 1, 1], [8; 3], [5, 300, 70_000], [0xff_ffff; 3], [0x100_0000, 3, 1], [u32::MAX - 5, 7, 1 << 31]] {
        let layout = Layout::of(sizes);
        let mut draw_below = || sizes.map(|s| (f64::from(s) * draw()) as u32);
        let x: Vec<[u32; 3]> = (0..50).map(|_| draw_below()).chain([sizes.map(|s| s - 1)]).collect();
        let mut w = BitWriter::default();
        for x in &x {
            w.put_position(layout, sizes, *x);
            w.put(3, 5);
        }
        let bytes = w.finish();
        assert_eq!(bytes.len(), (x.len() * (layout.bits() as usize + 3)).div_ceil(8), "{sizes:?}");
        let mut r = BitReader::new(&bytes);
        for x in &x {
            assert_eq!((r.position(layout, sizes), r.take(3)), (Some(*x), Some(5)), "{sizes:?}");
        }
        assert_eq!(r.position(layout, sizes).and(r.take(9)), None);
    }
    assert_eq!(Layout::of([8, 8, 8]), Layout::Packed(10));
    assert_eq!(Layout::of([0x100_0000, 8, 1]), Layout::Separate([25, 4, 1]));
    // triples of numbers below a size fit its bits
    for (k, size) in SIZES.iter().enumerate().skip(FIRST) {
        assert!(u128::from(*size).pow(3) <= 1 << k, "{k}");
    }
}

#[test]
fn xtc_positions_are_rounded_to_half_a_unit() {
    // plain numbers, compressed ones, and coordinates whose range needs more than 24 bits
    for (n, length, precision) in [
        (1, [3.0, 4.0, 5.0], 1e3),
        (9, [3.0, 4.0, 5.0], 1e3),
        (10, [3.0, 4.0, 5.0], 1e3),
        (11, [0.004, 0.004, 0.004], 1e3),
        (3_000, [6.0, 7.5, 50.0], 1e3),
        (3_001, [6.0, 7.5, 50.0], 1e6),
        (500, [30_000.0, 1.0, 2.0], 1e3),
        (500, [1_000.0, 1_100.0, 900.0], 1e6),
        (500, [1_000.0, 1.0, 2.0], 1.0),
    ] {
        let x = waters(n, length, n as u64);
        let bytes = frame(40, 0.5, &Shape::rectangular(length), &x, precision).expect("a frame");
        assert!(bytes.len().is_multiple_of(4));
        let (frames, notices) = all::<Xtc>(&[&bytes[..], &bytes].concat(), n as u64).expect("a file");
        assert!(frames.len() == 2 && frames[0] == frames[1] && notices.is_empty(), "{notices:?}");
        let (step, found) = &frames[0];
        assert_eq!((*step, found.shape.map(|s| s.length.map(|x| x as f32))), (40, Some(length.map(|x| x as f32))));
        let limit = if n > 9 { 0.5 / precision * (1.0 + 1e-9) + 1e-12 } else { 1e-6 };
        let d = farthest(&found.position, &x);
        assert!(d <= limit, "{n} {length:?} {precision}: {d}");
    }
}

/// Runs of every length, and particles at one place.
#[test]
fn differences_of_any_size_are_compressed() {
    let mut draw = draws(3);
    for n in (10..60).chain([1_000]) {
        for step in [0.0, 2.0, 30.0, 1e4] {
            let mut at = [0.0; 3];
            let x: Vec<[f64; 3]> = (0..n)
                .map(|k| {
                    // a jump now and then
                    let far = if k % 13 == 12 { 1e5 } else { step };
                    at = at.map(|x| x + (far * (draw() - 0.5)).round());
                    at
                })
                .collect();
            let q = rounded(&x, 1.0).expect("rounded");
            for wide in [false, true] {
                let mut out = vec![];
                encode(&mut out, &q, 1.0, wide);
                let int = |k: usize| i32::from_be_bytes(std::array::from_fn(|b| out[4 * k + b]));
                let head =
                    Compression { precision: 1.0, low: [1, 2, 3].map(int), high: [4, 5, 6].map(int), small: int(7) };
                let begin = if wide { 40 } else { 36 };
                let bytes = int(begin / 4 - 1) as usize;
                assert_eq!(bytes.next_multiple_of(4), out.len() - begin);
                let back = decode(&out[begin..begin + bytes], n, &head).expect("decoded");
                assert_eq!(farthest(&back, &x), 0.0, "{n} {step}");
            }
        }
    }
}

#[test]
fn frames_of_large_systems_are_read() {
    let x = waters(60, [3.0; 3], 5);
    let bytes = frame(1, 0.0, &CUBE, &x, 1e3).expect("a frame");
    let wide = [&2023i32.to_be_bytes(), &bytes[4..88], &[0; 4], &bytes[88..]].concat();
    let expected = all::<Xtc>(&bytes, 60).expect("a file");
    assert_eq!(all::<Xtc>(&wide, 60), Ok(expected));
}

#[test]
fn coordinates_that_do_not_fit_name_their_particle() {
    let mut x = waters(20, [3.0; 3], 1);
    x[7][1] = 3e6;
    let e = frame(0, 0.0, &CUBE, &x, 1e3).expect_err("too large");
    assert!(e.starts_with("position y = 3000000 of the particle with tag 7 exceeds an XTC file"), "{e}");
    // each one fits, their distance does not
    (x[7][1], x[9][1]) = (-2e6, 2e6);
    let e = frame(0, 0.0, &CUBE, &x, 1e3).expect_err("too far");
    assert!(e.starts_with("position y = 2000000 of the particle with tag 9"), "{e}");
    x[7][1] = f64::NAN;
    assert!(frame(0, 0.0, &CUBE, &x, 1e3).is_err());
}

/// Two frames of TRR.
fn trr(double: bool) -> (Vec<u8>, Vec<[f64; 3]>, Vec<[f64; 3]>) {
    let (x, v) = (waters(12, [3.0, 4.0, 5.0], 1), waters(12, [1.0; 3], 2));
    let c = Contents {
        step: 7,
        time: 0.25,
        shape: Shape::rectangular([3.0, 4.0, 5.0]),
        position: &x,
        velocity: Some(&v),
        force: Some(v.as_flattened()),
        double,
    };
    let first = trr::frame(&c);
    let second = trr::frame(&Contents { step: 8, velocity: None, force: None, ..c });
    ([first, second].concat(), x, v)
}

#[test]
fn trr_files_are_read_as_they_were_written() {
    for (double, limit) in [(false, 3e-7), (true, 0.0)] {
        let (bytes, x, v) = trr(double);
        let (frames, notices) = all::<Trr>(&bytes, 12).expect("a file");
        assert_eq!((frames.len(), frames[0].0, frames[1].0, notices.len()), (2, 7, 8, 0));
        let first = &frames[0].1;
        assert_eq!(first.shape, Some(Shape::rectangular([3.0, 4.0, 5.0])));
        assert!(farthest(&first.position, &x) <= limit);
        assert!(farthest(first.velocity.as_deref().unwrap_or_default(), &v) <= limit);
        assert!(frames[1].1.velocity.is_none() && frames[1].1.position == first.position);
        // a frame of velocities alone
        let only = Contents {
            step: 9,
            time: 0.0,
            shape: Shape::rectangular([3.0; 3]),
            position: &[],
            velocity: Some(&v),
            force: None,
            double,
        };
        let mut bare = trr::frame(&only);
        bare[64..68].copy_from_slice(&12i32.to_be_bytes());
        let (frames, notices) = all::<Trr>(&[&bare[..], &bytes].concat(), 12).expect("a file");
        assert_eq!((frames.len(), frames[0].0), (2, 7));
        assert_eq!(notices, ["left out frames without positions: 1"]);
    }
}

#[test]
fn errors_have_their_byte_offset() {
    let (bytes, ..) = trr(false);
    let with = |at: usize, x: i32| {
        let mut b = bytes.clone();
        b[at..at + 4].copy_from_slice(&x.to_be_bytes());
        all::<Trr>(&b, 12).expect_err("damaged")
    };
    assert_eq!(with(0, 1995), "byte 0: not a frame of a TRR file (expected 1993, found 1995)");
    assert_eq!(with(4, 14), "byte 0: unsupported version of the TRR format (expected `GMX_trn_file`)");
    assert_eq!(with(64, 0), "byte 0: unsupported number of particles, 0");
    assert_eq!(with(24, 4), "byte 0: unsupported size of the input record, 4 bytes for 12 particles");
    assert_eq!(with(52, -1), "byte 0: invalid size of the positions, -1 bytes");
    assert_eq!(with(64, 13), "byte 0: unsupported size of the positions, 144 bytes for 13 particles");
    let e = with(88, 0.5f32.to_bits() as i32);
    assert!(e.starts_with("byte 84: the first edge of the box must be along x, and the second in the plane of x and y; the box vectors are [[3.0, 0.5, 0.0]"), "{e}");
    assert_eq!(with(120, f32::NAN.to_bits() as i32), "byte 0: frame 0: a coordinate of particle 0 is NaN");
    assert_eq!(all::<Trr>(&bytes, 13).expect_err("other particles"), "frame 0 has 12 particles, but the state has 13");

    let bytes = frame(0, 0.0, &CUBE, &waters(12, [3.0; 3], 1), 1e3).expect("a frame");
    let with = |at: usize, x: i32| {
        let mut b = bytes.clone();
        b[at..at + 4].copy_from_slice(&x.to_be_bytes());
        all::<Xtc>(&b, 12).expect_err("damaged")
    };
    assert_eq!(with(0, 1993), "byte 0: not a frame of an XTC file (expected 1995 or 2023, found 1993)");
    assert_eq!(with(4, -3), "byte 0: unsupported number of particles, -3");
    assert_eq!(with(52, 13), "byte 0: a frame of 12 particles has 13 positions");
    assert_eq!(with(56, 0), "byte 0: frame 0: the precision is 0, expected a positive number");
    assert_eq!(
        with(60, i32::MAX),
        format!("byte 0: frame 0: invalid bounds 2147483647 to {}", {
            i32::from_be_bytes(std::array::from_fn(|k| bytes[72 + k]))
        })
    );
    assert_eq!(with(84, 73), "byte 0: frame 0: the size of small differences is 73, expected 9 to 72");
    assert_eq!(with(88, -1), "byte 0: a frame of 12 particles has 4294967295 bytes of positions");
}

/// A triclinic box whose tilts are rounding is rectangular; a frame without a box has none.
#[test]
fn boxes_are_rectangular_but_for_rounding() {
    let bytes = frame(0, 0.0, &CUBE, &waters(12, [3.0; 3], 1), 1e3).expect("a frame");
    let with_box = |tilt: f32, length: f64| {
        let mut sim_box = vec![];
        put_box(&mut sim_box, &Shape::rectangular([length; 3]), false);
        sim_box[12..16].copy_from_slice(&tilt.to_be_bytes());
        all::<Xtc>(&[&bytes[..16], &sim_box, &bytes[52..]].concat(), 12).map(|(frames, _)| frames[0].1.shape)
    };
    assert_eq!(with_box(1e-7, 3.0), Ok(Some(Shape::rectangular([3.0; 3]))));
    assert_eq!(with_box(0.0, 0.0), Ok(None));
    let tilt = f64::from(1e-3f32) / 3.0;
    assert_eq!(with_box(1e-3, 3.0), Ok(Some(Shape { tilt: [tilt, 0.0, 0.0], ..CUBE })));
    assert!(with_box(0.0, -3.0).is_err());
}

/// Truncated files give their complete frames; wrong bytes give an error or a frame, never a panic.
#[test]
fn damaged_files_give_errors_or_complete_frames() {
    let x = waters(12, [3.0; 3], 1);
    let xtc = [1, 2].map(|k| frame(k, 0.0, &CUBE, &x, 1e3).expect("a frame"));
    let few = [1, 2].map(|k| frame(k, 0.0, &CUBE, &x[..5], 1e3).expect("a frame"));
    check::<Xtc>(&xtc.concat(), 12, xtc[0].len());
    check::<Xtc>(&few.concat(), 5, few[0].len());
    let (bytes, ..) = trr(false);
    check::<Trr>(&bytes, 12, 84 + 36 + 3 * 144);
}

fn check<F: Format>(bytes: &[u8], n: u64, first: usize) {
    for cut in 0..bytes.len() {
        let (frames, notices) = all::<F>(&bytes[..cut], n).expect("complete frames");
        assert_eq!(frames.len(), usize::from(cut >= first), "cut at {cut}");
        assert_eq!(notices.len(), usize::from(cut != 0 && cut != first), "cut at {cut}: {notices:?}");
    }
    for at in 0..bytes.len() {
        for flip in [1 << (at % 8), 0x80, 0xff] {
            let mut b = bytes.to_vec();
            b[at] ^= flip;
            match all::<F>(&b, n) {
                Ok((frames, _)) => assert!(frames.iter().all(|(_, f)| f.position.len() as u64 == n), "byte {at}"),
                Err(e) => assert!(e.starts_with("byte ") || e.starts_with("has "), "byte {at}: {e}"),
            }
        }
    }
}
