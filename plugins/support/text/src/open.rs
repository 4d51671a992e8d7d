//! Opening plain and compressed files.

use crate::Result;
use galamost_plugin_api::error::{InputError, Position};
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

/// Largest ratio of unpacked to compressed size, beyond [`EXTRA_BYTES`].
const MAX_RATIO: u64 = 200;
/// Unpacked size that is allowed in any case, in bytes.
const EXTRA_BYTES: u64 = 16 << 20;
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

/// Opens a file. Compressed files (.xz, .gz) are detected by their first bytes and unpacked in memory.
///
/// The unpacked size is limited to 16 MiB plus 200 times the size of the file, so that a small file cannot fill the memory.
///
/// # Errors
/// Returns an error if the file cannot be read, is damaged, or exceeds the limit.
pub fn open(path: &Path) -> Result<Source> {
    let cannot = |e: std::io::Error| InputError::in_file(path, None, format!("cannot be read: {e}"));
    let file = File::open(path).map_err(cannot)?;
    let size = file.metadata().map_err(cannot)?.len();
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let first_bytes = reader.fill_buf().map_err(cannot)?;
    let unpacked = if first_bytes.starts_with(b"\xfd7zXZ\0") {
        unpack(lzma_rust2::XzReader::new_mem_limit(reader, true, MAX_DICTIONARY), size)
    } else if first_bytes.starts_with(&[0x1f, 0x8b]) {
        unpack(flate2::bufread::MultiGzDecoder::new(reader), size)
    } else {
        return Ok(Source::File(reader));
    };
    unpacked.map(|bytes| Source::Memory(Cursor::new(bytes))).map_err(|e| InputError::in_file(path, None, e))
}

fn unpack(from: impl Read, size: u64) -> std::result::Result<Vec<u8>, String> {
    let limit = size.saturating_mul(MAX_RATIO).saturating_add(EXTRA_BYTES);
    let mut out = vec![];
    from.take(limit + 1).read_to_end(&mut out).map_err(|e| format!("cannot be unpacked: {e}"))?;
    if out.len() as u64 > limit {
        return Err(format!(
            "cannot be unpacked: its {size} bytes expand to more than {limit}; if this is intended, unpack the file first"
        ));
    }
    Ok(out)
}

/// Reads the text of a file.
///
/// # Errors
/// Returns the errors of [`open`], or an error if the file is not UTF-8.
pub fn read_text(path: &Path) -> Result<String> {
    let mut bytes = vec![];
    let read = open(path)?.read_to_end(&mut bytes);
    read.map_err(|e| InputError::in_file(path, None, format!("cannot be read: {e}")))?;
    String::from_utf8(bytes).map_err(|e| {
        let valid = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|b| **b == b'\n').count() + 1;
        let at = Position { line: line as u32, column: 1 };
        InputError::in_file(path, Some(at), "this is not text (UTF-8)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
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
            assert!(message.starts_with("cannot be unpacked"), "{cut}: {message}");
        }
        let bomb = gz(&vec![b' '; 64 << 20]);
        assert!(bomb.len() < 100_000);
        std::fs::write(&path, &bomb).expect("written");
        let message = read_text(&path).expect_err("a bomb").message;
        assert!(message.contains("bytes expand to more than"), "{message}");
        std::fs::write(&path, b"\xfd7zXZ\0nonsense").expect("written");
        assert!(read_text(&path).expect_err("nonsense").message.starts_with("cannot be unpacked"));
        std::fs::write(&path, b"a\nb\xff\n").expect("written");
        assert_eq!(read_text(&path).expect_err("no text").at, Some(Position { line: 2, column: 1 }));
    }
}
