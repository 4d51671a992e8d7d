//! The TRR format: step, time, box, positions, velocities and forces in single or double precision. A header gives the bytes
//! of each part, 0 if the frame does not have it.

use crate::gromacs::fields::{Fault, Fields, Source, put_box, put_int, put_real};
use crate::gromacs::index::{Format, FrameData, Head};
use galamost_text::Shape;

/// First number of a frame.
const MAGIC: i32 = 1993;
/// Version of the format.
const VERSION: &[u8; 12] = b"GMX_trn_file";
/// Bytes of the longest header.
const HEADER: u64 = 92;
/// Names of the parts of a frame, in the order of their sizes in the header.
const PARTS: [&str; 10] = [
    "input record",
    "energies",
    "box",
    "virial",
    "pressure",
    "topology",
    "symbols",
    "positions",
    "velocities",
    "forces",
];
const BOX: usize = 2;
const POSITIONS: usize = 7;
const VELOCITIES: usize = 8;

/// The format.
#[derive(Debug)]
pub struct Trr;

/// What else the header says.
#[derive(Debug, PartialEq)]
pub struct Rest {
    /// Byte offset of the first part.
    at: u64,
    /// Bytes of the parts.
    sizes: [u64; 10],
    /// Whether numbers have double precision.
    double: bool,
}

impl Rest {
    /// Returns a part, if the frame has it.
    fn part(&self, source: &mut Source, part: usize) -> Result<Option<Fields>, Fault> {
        let at = self.at + self.sizes[..part].iter().sum::<u64>();
        let size = self.sizes[part];
        (size > 0).then(|| source.fields(at, size)).transpose()
    }
}

/// Returns the numbers that a part of a frame has.
fn numbers(part: usize, n: u64) -> u64 {
    match part {
        2..=4 => 9,
        7..=9 => 3 * n,
        _ => 0,
    }
}

/// Returns whether parts of these sizes have double precision.
///
/// # Errors
/// Returns a message that names the part whose size fits neither precision.
fn precision(sizes: [u64; 10], n: u64) -> Result<bool, String> {
    let fits = |bytes: u64| sizes.iter().enumerate().position(|(k, s)| *s != 0 && *s != bytes * numbers(k, n));
    match (fits(4), fits(8)) {
        (None, _) => Ok(false),
        (_, None) => Ok(true),
        (Some(a), Some(b)) => {
            // the first part that does not fit the more plausible of both
            let part = a.max(b);
            Err(format!("unsupported size of the {}, {} bytes for {n} particles", PARTS[part], sizes[part]))
        }
    }
}

impl Format for Trr {
    const NAME: &'static str = "TRR";
    type Rest = Rest;

    fn head(source: &mut Source, at: u64) -> Result<Head<Rest>, Fault> {
        let wrong = |message: String| Fault::Wrong(format!("byte {at}: {message}"));
        let mut f = source.fields(at, HEADER)?;
        let magic = f.int()?;
        if magic != MAGIC {
            return Err(wrong(format!("not a frame of a TRR file (expected {MAGIC}, found {magic})")));
        }
        // the length of the text with its end, and without it
        let lengths = [f.int()?, f.int()?];
        if lengths != [13, 12] || &f.take::<12>()? != VERSION {
            return Err(wrong("unsupported version of the TRR format (expected `GMX_trn_file`)".into()));
        }
        let mut sizes = [0; 10];
        for (size, part) in sizes.iter_mut().zip(PARTS) {
            let found = f.int()?;
            *size = u64::try_from(found).map_err(|_| wrong(format!("invalid size of the {part}, {found} bytes")))?;
        }
        let count = f.int()?;
        let n = u64::try_from(count).ok().filter(|n| *n > 0);
        let n = n.ok_or_else(|| wrong(format!("unsupported number of particles, {count}")))?;
        let step = (f.int()? as u32).into();
        let _energies = f.int()?;
        let double = precision(sizes, n).map_err(wrong)?;
        // time and lambda
        f.real(double)?;
        f.real(double)?;
        let begin = at + if double { 92 } else { 84 };
        let end = begin + sizes.iter().sum::<u64>();
        Ok(Head { end, n, step, has_positions: sizes[POSITIONS] > 0, rest: Rest { at: begin, sizes, double } })
    }

    fn data(source: &mut Source, head: &Head<Rest>) -> Result<FrameData, Fault> {
        let (rest, n) = (&head.rest, head.n as usize);
        let shape = match rest.part(source, BOX)? {
            Some(mut f) => f.sim_box(rest.double, rest.at)?,
            None => None,
        };
        let mut vectors = |part: usize, what: &str| {
            let fields = rest.part(source, part)?;
            fields.map(|mut f| f.vectors(n, rest.double, what)).transpose()
        };
        let position = vectors(POSITIONS, "coordinate")?.unwrap_or_default();
        Ok(FrameData { shape, position, velocity: vectors(VELOCITIES, "velocity")? })
    }
}

/// Contents of a frame to write.
#[derive(Debug)]
pub struct Contents<'a> {
    pub step: u64,
    pub time: f64,
    /// The box.
    pub shape: Shape,
    /// Positions, which begin at 0 in the box.
    pub position: &'a [[f64; 3]],
    /// Velocities, if they are written.
    pub velocity: Option<&'a [[f64; 3]]>,
    /// Three numbers for each particle, if they are written.
    pub force: Option<&'a [f64]>,
    /// Whether to write double precision.
    pub double: bool,
}

/// Formats a frame.
pub fn frame(c: &Contents<'_>) -> Vec<u8> {
    let velocity = c.velocity.map(<[[f64; 3]]>::as_flattened);
    let parts = [Some(c.position.as_flattened()), velocity, c.force];
    let width = if c.double { 8 } else { 4 };
    let mut out = vec![];
    out.extend(MAGIC.to_be_bytes());
    [13, 12].iter().for_each(|x| put_int(&mut out, *x));
    out.extend(VERSION);
    let all = parts.map(|p| p.map_or(0, |p| width * p.len() as u64));
    [&[0, 0, 9 * width, 0, 0, 0, 0], &all[..]].concat().iter().for_each(|size| put_int(&mut out, *size));
    [c.position.len() as u64, c.step, 0].iter().for_each(|x| put_int(&mut out, *x));
    [c.time, 0.0].iter().for_each(|x| put_real(&mut out, *x, c.double));
    put_box(&mut out, &c.shape, c.double);
    parts.iter().flatten().copied().flatten().for_each(|x| put_real(&mut out, *x, c.double));
    out
}
