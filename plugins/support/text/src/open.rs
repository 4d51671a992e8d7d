//! Opening plain and compressed files.

use crate::Result;
use galamost_plugin_api::error::InputError;
use galamost_plugin_api::input;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use std::cell::Cell;
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::rc::Rc;

/// Largest ratio of unpacked to compressed size, beyond [`EXTRA_BYTES`].
const MAX_RATIO: u64 = 200;
/// Unpacked size that is allowed in any case, in bytes.
const EXTRA_BYTES: u64 = 16 << 20;
/// Largest unpacked size, in bytes, because unpacked text is held in memory.
const MAX_UNPACKED: u64 = 1 << 30;
/// Largest memory for the dictionary of an .xz file, in KiB; files made by `xz -9` need 65 MiB.
const MAX_DICTIONARY: u32 = 256 << 10;

/// A file that can be read from any position.
#[derive(Debug)]
pub enum Source {
    /// A plain file.
    File(BufReader<File>),
    /// The unpacked contents of a compressed file.
    Memory(Cursor<Vec<u8>>),
}

impl Read for Source {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::File(f) => f.read(out),
            Self::Memory(m) => m.read(out),
        }
    }
}

impl BufRead for Source {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        match self {
            Self::File(f) => f.fill_buf(),
            Self::Memory(m) => m.fill_buf(),
        }
    }
    fn consume(&mut self, n: usize) {
        match self {
            Self::File(f) => f.consume(n),
            Self::Memory(m) => m.consume(n),
        }
    }
}

impl Seek for Source {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        match self {
            Self::File(f) => f.seek(to),
            Self::Memory(m) => m.seek(to),
        }
    }
}

/// A compressed file, whose consumed bytes are counted.
struct Packed {
    file: BufReader<File>,
    consumed: Rc<Cell<u64>>,
}

impl Read for Packed {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let n = self.file.read(out)?;
        self.consumed.set(self.consumed.get() + n as u64);
        Ok(n)
    }
}

impl BufRead for Packed {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        self.file.fill_buf()
    }
    fn consume(&mut self, n: usize) {
        self.file.consume(n);
        self.consumed.set(self.consumed.get() + n as u64);
    }
}

/// A compression.
enum Packing {
    Xz,
    Gz,
    Bz2,
    Zst,
}

impl Packing {
    /// Returns the compression of a file that begins with these bytes.
    fn of(first_bytes: &[u8]) -> Option<Self> {
        let begins = |with: &[u8]| first_bytes.starts_with(with);
        match () {
            () if begins(b"\xfd7zXZ\0") => Some(Self::Xz),
            () if begins(&[0x1f, 0x8b]) => Some(Self::Gz),
            () if begins(b"BZh") && first_bytes.get(4..10) == Some(b"1AY&SY") => Some(Self::Bz2),
            () if begins(&[0x28, 0xb5, 0x2f, 0xfd]) => Some(Self::Zst),
            () => None,
        }
    }
}

/// The frames of a .zst file, one after the other.
enum Zstd {
    Frame(Box<StreamingDecoder<Packed, FrameDecoder>>),
    Between(Packed),
    End,
}

impl Read for Zstd {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        loop {
            match std::mem::replace(self, Self::End) {
                Self::Frame(mut frame) => {
                    let n = frame.read(out).map_err(|e| zstd_error(&e))?;
                    let more = n > 0 || out.is_empty();
                    *self = if more { Self::Frame(frame) } else { Self::Between(frame.into_inner()) };
                    if more {
                        return Ok(n);
                    }
                }
                Self::Between(mut packed) => {
                    if packed.fill_buf()?.is_empty() {
                        return Ok(0);
                    }
                    let frame = StreamingDecoder::new(packed).map_err(|e| zstd_error(&e))?;
                    *self = Self::Frame(Box::new(frame));
                }
                Self::End => return Ok(0),
            }
        }
    }
}

/// Returns the error of a decoder; an end of the file inside of a frame keeps its kind.
fn zstd_error(e: &(dyn std::error::Error + 'static)) -> std::io::Error {
    let mut cause = Some(e);
    while let Some(e) = cause {
        if let Some(io) = e.downcast_ref::<std::io::Error>() {
            if io.kind() == ErrorKind::UnexpectedEof {
                return std::io::Error::new(ErrorKind::UnexpectedEof, io.to_string());
            }
            // an error in another one is not its source
            cause = io.get_ref().map(|e| e as &(dyn std::error::Error + 'static));
        } else {
            cause = e.source();
        }
    }
    std::io::Error::other(e.to_string())
}

/// The unpacked bytes of a file. Reading fails as soon as they are too many for the compressed bytes consumed so far.
struct Unpacked<R> {
    from: R,
    consumed: Rc<Cell<u64>>,
    size: u64,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let n = self.from.read(out)?;
        self.size += n as u64;
        let (size, consumed) = (self.size, self.consumed.get());
        if size > EXTRA_BYTES.saturating_add(consumed.saturating_mul(MAX_RATIO)) {
            let text = format!(
                "its first {consumed} bytes expand to more than {size}; if this is intended, unpack the file first"
            );
            return Err(std::io::Error::other(text));
        }
        if size > MAX_UNPACKED {
            return Err(std::io::Error::other(format!(
                "it expands to more than {MAX_UNPACKED}; unpack the file first"
            )));
        }
        Ok(n)
    }
}

/// Opens a text file. Compressed files (.xz, .gz, .bz2, .zst) are detected by their first bytes and unpacked in memory.
///
/// The unpacked size is limited to 16 MiB plus 200 times the size of the file, and to 1 GiB. Unpacking stops at the first
/// byte that exceeds this or that is not text, so that a small file cannot fill the memory.
///
/// # Errors
/// Returns an error if the path is not a regular file, or if the file cannot be read, is damaged, or exceeds the limit.
pub fn open(path: &Path) -> Result<Source> {
    let file = input::open(path)?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let first_bytes = reader.fill_buf();
    let first_bytes = first_bytes.map_err(|e| InputError::in_file(path, None, format!("cannot be read: {e}")))?;
    let Some(packing) = Packing::of(first_bytes) else { return Ok(Source::File(reader)) };
    let consumed = Rc::new(Cell::new(0));
    let packed = Packed { file: reader, consumed: Rc::clone(&consumed) };
    let from: Box<dyn Read> = match packing {
        Packing::Xz => Box::new(lzma_rust2::XzReader::new_mem_limit(packed, true, MAX_DICTIONARY)),
        Packing::Gz => Box::new(flate2::bufread::MultiGzDecoder::new(packed)),
        Packing::Bz2 => Box::new(bzip2::bufread::MultiBzDecoder::new(packed)),
        Packing::Zst => Box::new(Zstd::Between(packed)),
    };
    let text = input::text_from(path, Unpacked { from, consumed, size: 0 }, u64::MAX)?;
    Ok(Source::Memory(Cursor::new(text.into_bytes())))
}

/// Reads the text of a file, compressed or not.
///
/// # Errors
/// Returns the errors of [`open`], or an error with the line if the file is not UTF-8.
pub fn read_text(path: &Path) -> Result<String> {
    match open(path)? {
        Source::File(file) => input::text_from(path, file, u64::MAX),
        // it was checked while it was unpacked
        Source::Memory(text) => input::text_from(path, text, u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use galamost_plugin_api::error::Position;
    use std::io::Write as _;

    fn gz(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(vec![], flate2::Compression::best());
        out.write_all(bytes).expect("packed");
        out.finish().expect("packed")
    }

    #[test]
    fn compressed_files_are_read_and_bombs_are_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        let text = "a line\nand another\n".repeat(1000);
        // all members of a .gz file are read
        let packed = [gz(text.as_bytes()), gz(b"end")].concat();
        std::fs::write(&path, &packed).expect("written");
        assert_eq!(read_text(&path), Ok(text + "end"));
        for cut in [2, packed.len() / 2, packed.len() - 1] {
            std::fs::write(&path, &packed[..cut]).expect("written");
            let message = read_text(&path).expect_err("cut").message;
            assert!(message.starts_with("is truncated: its compressed data end after"), "{cut}: {message}");
        }
        let mut xz = vec![];
        lzma_rs::xz_compress(&mut "a line\nand another\n".repeat(50_000).as_bytes(), &mut xz).expect("packed");
        for cut in [20, xz.len() / 2, xz.len() - 1] {
            std::fs::write(&path, &xz[..cut]).expect("written");
            let message = read_text(&path).expect_err("cut").message;
            assert!(message.starts_with("is truncated: its compressed data end after"), "{cut}: {message}");
        }
        // all frames of a .zst file and all streams of a .bz2 file are read
        let lines = "a line\nand another\n".repeat(50_000);
        let zst = |text: &str| {
            ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest)
        };
        let bz2 = |text: &str| {
            let mut out = bzip2::write::BzEncoder::new(vec![], bzip2::Compression::best());
            out.write_all(text.as_bytes()).and_then(|()| out.finish()).expect("packed")
        };
        for packed in [[zst(&lines), zst("end")].concat(), [bz2(&lines), bz2("end")].concat()] {
            std::fs::write(&path, &packed).expect("written");
            assert_eq!(read_text(&path), Ok(lines.clone() + "end"));
            for cut in [20, packed.len() / 2, packed.len() - 1] {
                std::fs::write(&path, &packed[..cut]).expect("written");
                let message = read_text(&path).expect_err("cut").message;
                assert!(message.starts_with("is truncated: its compressed data end after"), "{cut}: {message}");
            }
        }
        std::fs::write(&path, b"\xfd7zXZ\0nonsense").expect("written");
        assert!(read_text(&path).expect_err("nonsense").message.starts_with("cannot be read: "));
        std::fs::write(&path, b"a\nb\xff\n").expect("written");
        assert_eq!(read_text(&path).expect_err("no text").at, Some(Position { line: 2, column: 2 }));
    }

    /// A bomb is refused after few of its bytes: of one with text by its ratio, of any other by its first wrong byte.
    #[test]
    fn bombs_are_refused_early() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        let read = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("written");
            read_text(&path).expect_err("a bomb").message
        };
        let text = gz(&vec![b' '; 64 << 20]);
        assert!(text.len() < 100_000);
        let message = read(&text);
        let numbers: Vec<u64> = message.split(|c: char| !c.is_ascii_digit()).filter_map(|w| w.parse().ok()).collect();
        assert!(message.contains("bytes expand to more than"), "{message}");
        assert!(numbers.iter().all(|n| *n < 32 << 20), "{message}");
        assert!(read(&gz(&vec![0; 64 << 20])).contains("zero byte"));
        let blanks = vec![b' '; 64 << 20];
        let zst = ruzstd::encoding::compress_to_vec(&blanks[..], ruzstd::encoding::CompressionLevel::Fastest);
        let mut bz2 = bzip2::write::BzEncoder::new(vec![], bzip2::Compression::best());
        bz2.write_all(&blanks).expect("packed");
        for bomb in [zst, bz2.finish().expect("packed")] {
            assert!(read(&bomb).contains("bytes expand to more than"));
        }
    }
}
