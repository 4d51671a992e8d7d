//! The XTC format: step, time, box, and positions as compressed integers. Nine particles and fewer have plain numbers.

use crate::gromacs::compression::decode::{Compression, decode};
use crate::gromacs::compression::encode::{encode, rounded};
use crate::gromacs::fields::{Fault, Source, put_box, put_int};
use crate::gromacs::index::{Format, FrameData, Head};
use crate::single;
use galamost_text::Shape;

/// First number of a frame.
const MAGIC: i32 = 1995;
/// First number of a frame whose compressed positions have a length of 64 bits.
const WIDE: i32 = 2023;
/// Particles above which GROMACS writes such frames.
const WIDE_ABOVE: usize = 298_261_617;
/// Largest number of particles that are not compressed.
pub const PLAIN: u64 = 9;
/// Bytes of the longest header.
const HEADER: u64 = 96;
/// Most bytes of a compressed position: three numbers of 32 bits and six bits for the differences.
const MOST: u64 = 13;

/// The format.
#[derive(Debug)]
pub struct Xtc;

/// What else the header says.
#[derive(Debug, PartialEq)]
pub struct Rest {
    shape: Option<Shape>,
    /// Byte offset of the positions.
    at: u64,
    /// Bytes of the positions.
    bytes: u64,
    /// Compression of the positions, if they are compressed.
    compression: Option<Compression>,
}

impl Format for Xtc {
    const NAME: &'static str = "XTC";
    type Rest = Rest;

    fn head(source: &mut Source, at: u64) -> Result<Head<Rest>, Fault> {
        let wrong = |message: String| Fault::Wrong(format!("byte {at}: {message}"));
        let mut f = source.fields(at, HEADER)?;
        let magic = f.int()?;
        if ![MAGIC, WIDE].contains(&magic) {
            return Err(wrong(format!("not a frame of an XTC file (expected {MAGIC} or {WIDE}, found {magic})")));
        }
        let count = f.int()?;
        let n = u64::try_from(count).ok().filter(|n| *n > 0);
        let n = n.ok_or_else(|| wrong(format!("unsupported number of particles, {count}")))?;
        let step = (f.int()? as u32).into();
        let _time = f.int()?;
        let shape = f.sim_box(false, at)?;
        let again = f.int()?;
        if again != count {
            return Err(wrong(format!("a frame of {count} particles has {again} positions")));
        }
        let head = |bytes: u64, size: u64, compression| {
            let begin = at + size;
            let end = begin.saturating_add(bytes.next_multiple_of(4));
            let rest = Rest { shape, at: begin, bytes, compression };
            Head { end, n, step, has_positions: true, rest }
        };
        if n <= PLAIN {
            return Ok(head(12 * n, 56, None));
        }
        let precision = f32::from_be_bytes(f.take()?);
        let compression = Compression { precision, low: f.ints()?, high: f.ints()?, small: f.int()? };
        let wide = magic == WIDE;
        let bytes = if wide { u64::from_be_bytes(f.take()?) } else { u64::from(u32::from_be_bytes(f.take()?)) };
        // a position has at least two bits
        if !(n.div_ceil(4)..=MOST * n + 8).contains(&bytes) {
            return Err(wrong(format!("a frame of {n} particles has {bytes} bytes of positions")));
        }
        Ok(head(bytes, if wide { 96 } else { 92 }, Some(compression)))
    }

    fn data(source: &mut Source, head: &Head<Rest>) -> Result<FrameData, Fault> {
        let rest = &head.rest;
        let mut f = source.fields(rest.at, rest.bytes)?;
        let position = match &rest.compression {
            None => f.vectors(head.n as usize, false, "coordinate")?,
            Some(c) => decode(&f.into_bytes(), head.n as usize, c).map_err(Fault::Wrong)?,
        };
        Ok(FrameData { shape: rest.shape, position, velocity: None })
    }
}

/// Formats a frame. Coordinates begin at 0 in the box.
///
/// # Errors
/// Returns a message that names the particle if a coordinate exceeds the format.
pub fn frame(step: u64, time: f64, shape: &Shape, position: &[[f64; 3]], precision: f64) -> Result<Vec<u8>, String> {
    let wide = position.len() > WIDE_ABOVE;
    let mut out = vec![];
    out.extend(if wide { WIDE } else { MAGIC }.to_be_bytes());
    put_int(&mut out, position.len() as u64);
    put_int(&mut out, step);
    out.extend((time as f32).to_be_bytes());
    put_box(&mut out, shape, false);
    put_int(&mut out, position.len() as u64);
    if position.len() as u64 <= PLAIN {
        single::of_particles("position", 3, position.as_flattened())?;
        position.as_flattened().iter().for_each(|x| out.extend((*x as f32).to_be_bytes()));
    } else {
        let precision = precision as f32;
        encode(&mut out, &rounded(position, precision.into())?, precision, wide);
    }
    Ok(out)
}
