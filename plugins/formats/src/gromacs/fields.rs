//! Numbers of a file, in the byte order of XDR.

use galamost_plugin_api::input;
use galamost_text::Shape;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// Why a frame cannot be read.
#[derive(Debug, PartialEq)]
pub enum Fault {
    /// The file ends inside the frame.
    Incomplete,
    /// The frame is damaged or unsupported.
    Wrong(String),
}

impl From<Fault> for String {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Incomplete => "the file ends inside the frame".into(),
            Fault::Wrong(message) => message,
        }
    }
}

/// A file open for reading.
#[derive(Debug)]
pub struct Source {
    file: File,
    /// Length of the file, in bytes.
    pub length: u64,
}

impl Source {
    /// Opens a file.
    ///
    /// # Errors
    /// Returns a message if it cannot be opened.
    pub fn open(path: &Path) -> Result<Self, String> {
        let file = input::open(path).map_err(|e| e.message)?;
        let length = file.metadata().map_err(|e| format!("cannot be read: {e}"))?.len();
        Ok(Self { file, length })
    }

    /// Reads the bytes from `at` on: `size`, or fewer at the end of the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn fields(&mut self, at: u64, size: u64) -> Result<Fields, Fault> {
        let mut bytes = vec![0; size.min(self.length.saturating_sub(at)) as usize];
        let read = self.file.seek(SeekFrom::Start(at)).and_then(|_| self.file.read_exact(&mut bytes));
        read.map_err(|e| Fault::Wrong(format!("cannot be read: {e}")))?;
        Ok(Fields { bytes, next: 0 })
    }
}

/// Bytes of a file, read from the front.
#[derive(Debug)]
pub struct Fields {
    bytes: Vec<u8>,
    next: usize,
}

impl Fields {
    /// Returns the next `N` bytes, or [`Fault::Incomplete`] if there are fewer.
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let found = self.bytes.get(self.next..).and_then(<[u8]>::first_chunk::<N>).copied();
        self.next += N;
        found.ok_or(Fault::Incomplete)
    }

    /// Returns the next integer.
    pub fn int(&mut self) -> Result<i32, Fault> {
        self.take().map(i32::from_be_bytes)
    }

    /// Returns the next three integers.
    pub fn ints(&mut self) -> Result<[i32; 3], Fault> {
        Ok([self.int()?, self.int()?, self.int()?])
    }

    /// Returns the next number, of double or single precision.
    pub fn real(&mut self, double: bool) -> Result<f64, Fault> {
        if double { self.take().map(f64::from_be_bytes) } else { self.take().map(|b| f32::from_be_bytes(b).into()) }
    }

    /// Returns the next `n` vectors; `what` names them if one is not finite.
    pub fn vectors(&mut self, n: usize, double: bool, what: &str) -> Result<Vec<[f64; 3]>, Fault> {
        let mut all = Vec::with_capacity(n.min(self.bytes.len() / 12));
        for particle in 0..n {
            let mut v = [0.0; 3];
            for x in &mut v {
                *x = self.real(double)?;
                if !x.is_finite() {
                    return Err(Fault::Wrong(format!("a {what} of particle {particle} is {x}")));
                }
            }
            all.push(v);
        }
        Ok(all)
    }

    /// Returns the box of the next three box vectors; `None` if there is no box, which has a length of 0.
    pub fn sim_box(&mut self, double: bool, at: u64) -> Result<Option<Shape>, Fault> {
        let v = self.vectors(3, double, "box vector")?;
        let length = [v[0][0], v[1][1], v[2][2]];
        if length.iter().any(|l| *l < 0.0) {
            return Err(Fault::Wrong(format!("byte {at}: invalid box lengths {length:?}")));
        }
        if length.contains(&0.0) {
            return Ok(None);
        }
        let shape = Shape::of_edges([v[0], v[1], v[2]]);
        shape.map(Some).map_err(|m| Fault::Wrong(format!("byte {at}: {m}; the box vectors are {v:?}")))
    }

    /// Returns all bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Appends a number of double or single precision.
pub fn put_real(out: &mut Vec<u8>, x: f64, double: bool) {
    if double {
        out.extend(x.to_be_bytes());
    } else {
        out.extend((x as f32).to_be_bytes());
    }
}

/// Appends an integer. Larger numbers become the largest one.
pub fn put_int(out: &mut Vec<u8>, x: u64) {
    out.extend(i32::try_from(x).unwrap_or(i32::MAX).to_be_bytes());
}

/// Appends the vectors of a box.
pub fn put_box(out: &mut Vec<u8>, shape: &Shape, double: bool) {
    shape.edges().as_flattened().iter().for_each(|x| put_real(out, *x, double));
}
