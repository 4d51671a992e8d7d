//! Tests: files read, written, and rejected.

use crate::dcd::layer::{Frame, Layer, frame, head, note_frames};
use galamost_text::Shape;
use std::path::Path;

/// Writes a file of three frames of two particles.
fn file(path: &Path) -> Vec<u8> {
    let (mut bytes, h) = head(100, 50, 0.005, 2);
    for k in 0..3 {
        let x = f64::from(k);
        bytes.extend(frame(&Shape::rectangular([10.0, 8.0, 6.5]), [[x, 1.0, -3.25], [0.5, -x, 2.0]].into_iter()));
    }
    std::fs::write(path, &bytes).expect("written");
    let mut f = std::fs::OpenOptions::new().write(true).open(path).expect("opened");
    note_frames(&mut f, &h, 3).expect("noted");
    std::fs::read(path).expect("read")
}

#[test]
fn what_is_written_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.dcd");
    let bytes = file(&path);
    assert_eq!((&bytes[..12], bytes[20]), (b"\x54\0\0\0CORD\x03\0\0\0".as_slice(), 150));
    let mut l = Layer::open(&path).expect("a file");
    assert_eq!((l.frames(), l.head.first, l.head.every, l.head.n), (3, 100, 50, 2));
    for k in 0..3u8 {
        let x = f32::from(k);
        let shape = Some(Shape::rectangular([10.0, 8.0, 6.5]));
        let expected = Frame { shape, position: vec![[x, 1.0, -3.25], [0.5, -x, 2.0]] };
        assert_eq!(l.frame(k.into()), Ok(expected));
    }
    // swap the byte order of each number
    let mut other = bytes.clone();
    let frames = l.head.begin_of(0) as usize;
    let flip = |b: &mut [u8], words: std::ops::Range<usize>, width: usize| {
        b[words].chunks_exact_mut(width).for_each(<[u8]>::reverse);
    };
    for words in [0..4, 8..100, 180..frames] {
        flip(&mut other, words, 4);
    }
    for k in 0..3 {
        let at = frames + k * l.head.frame_size() as usize;
        flip(&mut other, at..at + 4, 4);
        flip(&mut other, at + 4..at + 52, 8);
        flip(&mut other, at + 52..at + l.head.frame_size() as usize, 4);
    }
    std::fs::write(&path, &other).expect("written");
    let mut swapped = Layer::open(&path).expect("a file");
    assert_eq!((swapped.frames(), swapped.head.n), (3, 2));
    assert_eq!(swapped.frame(1).map(|f| f.position[0]), Ok([1.0, 1.0, -3.25]));
}

#[test]
fn errors_have_their_byte_offset() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.dcd");
    let bytes = file(&path);
    let parse = |bytes: &[u8]| {
        std::fs::write(&path, bytes).expect("written");
        Layer::open(&path).and_then(|mut l| l.frame(0).map(|_| l.frames()))
    };
    assert_eq!(parse(&bytes), Ok(3));
    let with = |at: usize, new: &[u8]| {
        let mut b = bytes.clone();
        b[at..at + new.len()].copy_from_slice(new);
        parse(&b).expect_err("damaged")
    };
    assert_eq!(with(0, &[85]), "byte 0: not a DCD file with 32-bit records");
    assert_eq!(with(4, b"VELD"), "byte 4: not a DCD file of positions (expected `CORD`)");
    assert_eq!(with(40, &[1]), "byte 40: files with fixed atoms are not supported");
    assert_eq!(with(88, &[83]), "byte 0: the lengths before and after a record differ");
    assert_eq!(with(92, &[0xff; 4]), "byte 92: a record has 4294967295 bytes, expected at most 65536");
    assert_eq!(with(188, &[0xff; 4]), "byte 188: unsupported number of particles, 4294967295");
    let begin = 196;
    assert_eq!(with(begin, &[8]), format!("byte {begin}: the lengths before and after a record differ"));
    assert_eq!(with(begin + 12, &180f64.to_le_bytes()), format!("byte {begin}: no box has the angles 90, 90, 180"));
    assert_eq!(
        with(begin + 60, &f32::NAN.to_le_bytes()),
        format!("byte {}: a coordinate of particle 0 is NaN", begin + 60)
    );
    // a truncated file gives an error with the byte offset, or its complete frames
    let size = 56 + 3 * 16;
    for cut in 0..bytes.len() {
        match parse(&bytes[..cut]) {
            Ok(n) => assert_eq!(n as usize, (cut - begin) / size),
            Err(e) => assert!(cut < begin + size && e.starts_with("byte "), "cut at {cut}: {e}"),
        }
    }
}
