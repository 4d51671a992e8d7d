//! The DCD format. A file consists of records, each enclosed by its length in bytes. The first record holds `CORD` and
//! 20 numbers (frames, first step, steps between frames, …), the second titles, the third the number of particles. A
//! frame is a record of six f64 (lengths and angles of the box, if present) and one record of f32 for each axis.

use galamost_plugin_api::input;
use galamost_text::Shape;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

/// Byte offset of the number of frames.
const FRAMES_AT: u64 = 8;
/// Byte offset of the number of steps.
const STEPS_AT: u64 = 20;
/// Byte offset of dt.
const DT_AT: u64 = 44;
/// Maximum size of the titles, in bytes.
const TITLES: u32 = 1 << 16;

/// Header of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// Step of the first frame.
    pub first: u64,
    /// Steps between frames.
    pub every: u64,
    /// Time step.
    pub dt: f32,
    /// Number of particles.
    pub n: u64,
    /// Whether frames have a box.
    has_box: bool,
    /// Whether the byte order is swapped.
    swapped: bool,
    /// Size of the header, in bytes.
    length: u64,
}

/// A frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The box, if present.
    pub shape: Option<Shape>,
    /// Positions.
    pub position: Vec<[f32; 3]>,
}

impl Head {
    /// Returns the size of a frame, in bytes.
    pub fn frame_size(&self) -> u64 {
        3 * (4 * self.n + 8) + if self.has_box { 56 } else { 0 }
    }

    /// Returns the byte offset of a frame.
    pub fn begin_of(&self, frame: u64) -> u64 {
        self.length + frame * self.frame_size()
    }

    /// Returns the number of complete frames in a file of this length.
    pub fn frames(&self, length: u64) -> u64 {
        length.saturating_sub(self.length) / self.frame_size()
    }
}

/// Builds the header of a new file.
pub fn head(first: u64, every: u64, dt: f64, n: u64) -> (Vec<u8>, Head) {
    let mut out = vec![];
    let int = |out: &mut Vec<u8>, x: u32| out.extend(x.to_le_bytes());
    let short = |x: u64| u32::try_from(x).unwrap_or(i32::MAX as u32).min(i32::MAX as u32);
    int(&mut out, 84);
    out.extend(b"CORD");
    let mut control = [0u32; 20];
    (control[1], control[2]) = (short(first), short(every));
    let dt = dt as f32;
    control[9] = dt.to_bits();
    // a unit cell in the format of CHARMM 24
    (control[10], control[19]) = (1, 24);
    control.iter().for_each(|x| int(&mut out, *x));
    int(&mut out, 84);
    int(&mut out, 84);
    int(&mut out, 1);
    out.extend(format!("{:80}", "written by GALAMOST").as_bytes());
    int(&mut out, 84);
    int(&mut out, 4);
    int(&mut out, short(n));
    int(&mut out, 4);
    let head = Head { first, every, dt, n, has_box: true, swapped: false, length: out.len() as u64 };
    (out, head)
}

/// Builds the bytes of a frame.
pub fn frame(shape: &Shape, position: impl ExactSizeIterator<Item = [f64; 3]> + Clone) -> Vec<u8> {
    let mut out = vec![];
    out.extend(48u32.to_le_bytes());
    let ([a, b, c], cosines) = shape.lengths_and_cosines();
    let [alpha, beta, gamma] = cosines.map(|x| if x == 0.0 { 90.0 } else { x.acos().to_degrees() });
    [a, gamma, b, beta, alpha, c].iter().for_each(|x: &f64| out.extend(x.to_le_bytes()));
    out.extend(48u32.to_le_bytes());
    for k in 0..3 {
        let size = (4 * position.len() as u32).to_le_bytes();
        out.extend(size);
        position.clone().for_each(|x| out.extend((x[k] as f32).to_le_bytes()));
        out.extend(size);
    }
    out
}

/// Writes the number of frames into the header.
pub fn note_frames(file: &mut File, head: &Head, frames: u64) -> std::io::Result<()> {
    let short = |x: u64| (x.min(i32::MAX as u64) as u32).to_le_bytes();
    for (at, value) in [(FRAMES_AT, frames), (STEPS_AT, frames.saturating_mul(head.every))] {
        file.seek(SeekFrom::Start(at))?;
        file.write_all(&short(value))?;
    }
    Ok(())
}

/// Writes the time step into the header.
pub fn note_dt(file: &mut File, dt: f32) -> std::io::Result<()> {
    file.seek(SeekFrom::Start(DT_AT))?;
    file.write_all(&dt.to_le_bytes())
}

/// A file open for reading.
#[derive(Debug)]
pub struct Layer {
    file: File,
    length: u64,
    /// Parsed header.
    pub head: Head,
    /// Number of frames that the header declares.
    declared: u64,
}

impl Layer {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// Returns a message with the byte offset if the file is damaged or unsupported.
    pub fn open(path: &Path) -> Result<Self, String> {
        let file = input::open(path).map_err(|e| e.message)?;
        let length = file.metadata().map_err(|e| format!("cannot be read: {e}"))?.len();
        let none = Head { first: 0, every: 0, dt: 0.0, n: 0, has_box: false, swapped: false, length: 0 };
        let mut layer = Self { file, length, head: none, declared: 0 };
        let mark: [u8; 4] = layer.bytes(0, 4, "the first record")?.try_into().unwrap_or_default();
        match (u32::from_le_bytes(mark), u32::from_be_bytes(mark)) {
            (84, _) => {}
            (_, 84) => layer.head.swapped = true,
            _ => return Err("byte 0: not a DCD file with 32-bit records".into()),
        }
        let (control, at) = layer.record(0, 84)?;
        if !control.starts_with(b"CORD") {
            return Err("byte 4: not a DCD file of positions (expected `CORD`)".into());
        }
        let number = |layer: &Self, k: usize| layer.int(&control[4 + 4 * k..]);
        if number(&layer, 8) != 0 {
            return Err("byte 40: files with fixed atoms are not supported".into());
        }
        if number(&layer, 11) != 0 {
            return Err("byte 52: files with a fourth dimension are not supported".into());
        }
        let [first, every] = [number(&layer, 1), number(&layer, 2)].map(|x| u64::from(x.min(i32::MAX as u32)));
        let dt = f32::from_bits(number(&layer, 9));
        // without the CHARMM version, word 10 has another meaning
        let has_box = number(&layer, 19) != 0 && number(&layer, 10) != 0;
        layer.declared = number(&layer, 0).into();
        let (_, at) = layer.record(at, TITLES)?;
        let (count, at) = layer.record(at, 4)?;
        let n = count.get(..4).map_or(0, |b| layer.int(b));
        if n == 0 || n > i32::MAX as u32 / 4 {
            return Err(format!("byte {}: unsupported number of particles, {n}", at - 8));
        }
        layer.head = Head { first, every, dt, n: n.into(), has_box, length: at, ..layer.head };
        Ok(layer)
    }

    /// Returns the number of complete frames.
    pub fn frames(&self) -> u64 {
        self.head.frames(self.length)
    }

    /// Returns how the number of frames in the header differs from the frames of the file, if it does. Programs that
    /// cannot go back in a file leave 0 in the header.
    pub fn mismatch(&self) -> Option<String> {
        let (declared, frames) = (self.declared, self.frames());
        let rest = self.length - self.head.begin_of(frames).min(self.length);
        if rest > 0 {
            let offset = self.length - rest;
            return Some(format!(
                "frame {frames} is incomplete and was ignored: it has {rest} of {} bytes, from byte {offset}",
                self.head.frame_size()
            ));
        }
        (declared != 0 && declared != frames)
            .then(|| format!("the header declares {declared} frames, but the file has {frames}; {frames} are used"))
    }

    fn int(&self, b: &[u8]) -> u32 {
        let bytes = std::array::from_fn(|k| b[k]);
        if self.head.swapped { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    fn bytes(&mut self, at: u64, size: u64, what: &str) -> Result<Vec<u8>, String> {
        if at.checked_add(size).is_none_or(|end| end > self.length) {
            return Err(format!("byte {}: the file ends inside {what}; it may be truncated", self.length));
        }
        let mut bytes = vec![0; size as usize];
        let read = self.file.seek(SeekFrom::Start(at)).and_then(|_| self.file.read_exact(&mut bytes));
        read.map(|()| bytes).map_err(|e| format!("cannot be read: {e}"))
    }

    /// Returns the record at a byte offset, of at most `most` bytes, and the offset after it.
    fn record(&mut self, at: u64, most: u32) -> Result<(Vec<u8>, u64), String> {
        let head = self.bytes(at, 4, "a record")?;
        let size = self.int(&head);
        if size > most {
            return Err(format!("byte {at}: a record has {size} bytes, expected at most {most}"));
        }
        let bytes = self.bytes(at + 4, u64::from(size) + 4, "a record")?;
        let (bytes, end) = bytes.split_at(size as usize);
        if self.int(end) != size {
            return Err(format!("byte {at}: the lengths before and after a record differ"));
        }
        Ok((bytes.to_vec(), at + 8 + u64::from(size)))
    }

    /// Returns a record of exactly `size` bytes, and the offset after it.
    fn exact(&mut self, at: u64, size: u64) -> Result<(Vec<u8>, u64), String> {
        let found = self.record(at, size as u32)?;
        if found.0.len() as u64 == size {
            Ok(found)
        } else {
            Err(format!("byte {at}: a record has {} bytes, expected {size}", found.0.len()))
        }
    }

    /// Reads a frame.
    ///
    /// # Errors
    /// Returns a message with the byte offset if the frame is damaged.
    pub fn frame(&mut self, number: u64) -> Result<Frame, String> {
        let swapped = self.head.swapped;
        let mut at = self.head.begin_of(number);
        let mut shape = None;
        if self.head.has_box {
            let (bytes, next) = self.exact(at, 48)?;
            let values: Vec<f64> = bytes
                .as_chunks::<8>()
                .0
                .iter()
                .map(|b| if swapped { f64::from_be_bytes(*b) } else { f64::from_le_bytes(*b) })
                .collect();
            let [a, gamma, b, beta, alpha, c] = std::array::from_fn(|k| values[k]);
            if [a, b, c].iter().any(|l| !l.is_finite() || *l < 0.0) {
                return Err(format!("byte {at}: invalid box lengths {a} × {b} × {c}"));
            }
            if [a, b, c].iter().all(|l| *l > 0.0) {
                // some programs write angles in degrees, others their cosines
                let angles = [alpha, beta, gamma];
                let cosines = angles.iter().all(|x| x.abs() <= 1.0);
                let found =
                    if cosines { Shape::of_cosines([a, b, c], angles) } else { Shape::of_angles([a, b, c], angles) };
                let none = || format!("byte {at}: no box has the angles {alpha}, {beta}, {gamma}");
                shape = Some(found.ok_or_else(none)?);
            }
            at = next;
        }
        let mut position = vec![[0.0; 3]; self.head.n as usize];
        for k in 0..3 {
            let begin = at;
            let (bytes, next) = self.exact(at, 4 * self.head.n)?;
            for (i, (p, b)) in position.iter_mut().zip(bytes.as_chunks::<4>().0).enumerate() {
                p[k] = if swapped { f32::from_be_bytes(*b) } else { f32::from_le_bytes(*b) };
                if !p[k].is_finite() {
                    return Err(format!("byte {}: a coordinate of particle {i} is {}", begin + 4 + 4 * i as u64, p[k]));
                }
            }
            at = next;
        }
        Ok(Frame { shape, position })
    }
}
