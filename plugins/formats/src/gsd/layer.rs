//! File layer of GSD, versions 1 (read only) and 2, for what the writing library cannot do: check a file before the library opens it (the
//! library panics on damaged files), read columns of any width, and remove frames at the end.
//!
//! A file begins with a header of 256 bytes. The header gives the position of the chunk names (consecutive, each
//! terminated by 0) and of the index: 32 bytes for each chunk, ordered by frame; entries with location 0 are free.
//! In version 1 each name has 64 bytes, and the entries of a frame have any order.

use galamost_plugin_api::input;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

const MAGIC: u64 = 0x65df_65df_65df_65df;
const HEADER: u64 = 256;
const ENTRY: u64 = 32;
const NAME: u64 = 64;
/// Entries of the first index, which follows the header.
const FIRST_INDEX: u64 = 128;

/// Index entry of a chunk.
#[derive(Clone, Debug)]
pub struct Entry {
    frame: u64,
    /// Number of rows.
    pub rows: u64,
    location: u64,
    /// Number of values in a row.
    pub columns: u32,
    id: u16,
    value_type: u8,
    flags: u8,
}

impl Entry {
    /// Returns the bytes of the entry.
    fn bytes(&self) -> [u8; ENTRY as usize] {
        let mut b = [0; ENTRY as usize];
        b[..8].copy_from_slice(&self.frame.to_ne_bytes());
        b[8..16].copy_from_slice(&self.rows.to_ne_bytes());
        b[16..24].copy_from_slice(&self.location.to_ne_bytes());
        b[24..28].copy_from_slice(&self.columns.to_ne_bytes());
        b[28..30].copy_from_slice(&self.id.to_ne_bytes());
        (b[30], b[31]) = (self.value_type, self.flags);
        b
    }

    fn parse(b: &[u8]) -> Self {
        Self {
            frame: u64_at(b, 0),
            rows: u64_at(b, 8),
            location: u64_at(b, 16),
            columns: u32_at(b, 24),
            id: u16::from_ne_bytes([b[28], b[29]]),
            value_type: b[30],
            flags: b[31],
        }
    }

    /// Returns the size of a value in bytes.
    fn value_size(&self) -> Option<u64> {
        [None, Some(1), Some(2), Some(4), Some(8), Some(1), Some(2), Some(4), Some(8), Some(4), Some(8), Some(1)]
            .get(self.value_type as usize)
            .copied()
            .flatten()
    }

    /// Returns the byte offset after the chunk.
    fn end(&self) -> Option<u64> {
        let size = self.rows.checked_mul(u64::from(self.columns))?.checked_mul(self.value_size()?)?;
        self.location.checked_add(size)
    }
}

fn u64_at(b: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(std::array::from_fn(|k| b[at + k]))
}

fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(std::array::from_fn(|k| b[at + k]))
}

fn read_at(mut file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(bytes)
}

/// Returns the text up to the first 0.
fn text(b: &[u8]) -> String {
    String::from_utf8_lossy(b.split(|c| *c == 0).next().unwrap_or_default()).into_owned()
}

/// A file whose index has been checked.
#[derive(Debug)]
pub struct Layer {
    file: File,
    names: Vec<String>,
    entries: Vec<Entry>,
    /// Schema name.
    pub schema: String,
    /// Schema version.
    pub version: (u32, u32),
    index: Index,
    /// Byte offsets of the names and after them.
    name_block: (u64, u64),
    length: u64,
}

/// A block of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Index {
    /// Byte offset.
    at: u64,
    /// Number of entries for which it has room.
    room: u64,
}

impl Index {
    fn end(self) -> u64 {
        self.at + self.room * ENTRY
    }
}

impl Layer {
    /// Opens a file and checks its index.
    ///
    /// # Errors
    /// Returns a message that completes "the file …".
    pub fn open(path: &Path, writable: bool) -> Result<Self, String> {
        input::open(path).map_err(|e| e.message)?;
        let file =
            File::options().read(true).write(writable).open(path).map_err(|e| format!("cannot be opened: {e}"))?;
        let length = file.metadata().map_err(|e| e.to_string())?.len();
        let mut header = [0; HEADER as usize];
        if length < HEADER || read_at(&file, &mut header, 0).is_err() || u64_at(&header, 0) != MAGIC {
            return Err("is not a GSD file".into());
        }
        let [version, schema_version] = [u32_at(&header, 44), u32_at(&header, 40)].map(|v| (v >> 16, v & 0xffff));
        let old = version.0 == 1;
        let is_known = version.0 == 2 || (old && !writable);
        if !is_known {
            let supported = if writable { "only version 2 can be continued" } else { "supported versions are 1 and 2" };
            return Err(format!("is a GSD file of version {}.{}; {supported}", version.0, version.1));
        }
        let block = |at: usize, unit: u64| {
            let (begin, size) = (u64_at(&header, at), u64_at(&header, at + 8).checked_mul(unit)?);
            begin.checked_add(size).filter(|end| size > 0 && *end <= length).map(|end| (begin, end))
        };
        let cut_off = || format!("is truncated: it has {length} bytes, and its index lies beyond");
        let (index, index_end) = block(8, ENTRY).ok_or_else(cut_off)?;
        let (names_begin, names_end) = block(24, NAME).ok_or_else(cut_off)?;
        let read = |begin: u64, end: u64| {
            let mut bytes = vec![0; (end - begin) as usize];
            read_at(&file, &mut bytes, begin).map(|()| bytes).map_err(|e| format!("cannot be read: {e}"))
        };
        let names = read(names_begin, names_end)?;
        let names: Vec<String> = if old {
            names.chunks_exact(NAME as usize).map(text).take_while(|n| !n.is_empty()).collect()
        } else {
            names.split(|c| *c == 0).take_while(|n| !n.is_empty()).map(text).collect()
        };
        let entries: Vec<Entry> = read(index, index_end)?
            .chunks_exact(ENTRY as usize)
            .map(Entry::parse)
            .take_while(|e| e.location != 0)
            .collect();
        let layer = Self {
            file,
            names,
            entries,
            schema: text(&header[112..176]),
            version: schema_version,
            index: Index { at: index, room: (index_end - index) / ENTRY },
            name_block: (names_begin, names_end),
            length,
        };
        layer.check(length, layer.index.room, old)?;
        Ok(layer)
    }

    fn check(&self, length: u64, allocated: u64, old: bool) -> Result<(), String> {
        let mut last = (0, 0);
        for (k, e) in self.entries.iter().enumerate() {
            let known = (e.id as usize) < self.names.len() && e.flags == 0 && e.frame < allocated;
            if !known || e.value_size().is_none() || (k > 0 && (e.frame, e.id) <= last && !(old && e.frame == last.0)) {
                return Err(format!("is damaged: entry {k} of its index is invalid"));
            }
            if e.end().is_none_or(|end| end > length) {
                let name = &self.names[e.id as usize];
                return Err(format!("is truncated: {name} of frame {} is incomplete", e.frame));
            }
            last = (e.frame, e.id);
        }
        Ok(())
    }

    /// Returns the number of frames.
    pub fn frames(&self) -> u64 {
        self.entries.last().map_or(0, |e| e.frame + 1)
    }

    /// Returns whether the first name is `name` and the first chunk has it.
    pub fn begins_with(&self, name: &str) -> bool {
        self.names.first().is_some_and(|n| n == name) && self.entries.first().is_some_and(|e| (e.frame, e.id) == (0, 0))
    }

    /// Returns a chunk of a frame, if present.
    pub fn find(&self, frame: u64, name: &str) -> Option<&Entry> {
        let id = self.names.iter().position(|n| n == name)?;
        let begin = self.entries.partition_point(|e| e.frame < frame);
        self.entries[begin..].iter().take_while(|e| e.frame == frame).find(|e| e.id as usize == id)
    }

    /// Returns the bytes of a chunk.
    fn bytes(&self, e: &Entry) -> Result<Vec<u8>, String> {
        // the size was checked against the file size
        let mut bytes = vec![0; (e.end().unwrap_or(e.location) - e.location) as usize];
        read_at(&self.file, &mut bytes, e.location).map_err(|e| format!("cannot be read: {e}"))?;
        Ok(bytes)
    }

    /// Returns the values of a chunk as numbers.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or the chunk is text.
    pub fn numbers(&self, e: &Entry) -> Result<Vec<f64>, String> {
        macro_rules! all {
            ($bytes:expr, $t:ty) => {
                $bytes
                    .chunks_exact(size_of::<$t>())
                    .map(|b| <$t>::from_ne_bytes(std::array::from_fn(|k| b[k])) as f64)
                    .collect()
            };
        }
        let bytes = self.bytes(e)?;
        Ok(match e.value_type {
            1 => all!(bytes, u8),
            2 => all!(bytes, u16),
            3 => all!(bytes, u32),
            4 => all!(bytes, u64),
            5 => all!(bytes, i8),
            6 => all!(bytes, i16),
            7 => all!(bytes, i32),
            8 => all!(bytes, i64),
            9 => all!(bytes, f32),
            10 => all!(bytes, f64),
            _ => return Err(format!("is damaged: {} is text", self.names[e.id as usize])),
        })
    }

    /// Returns each row of a chunk of single bytes as text.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or the chunk does not consist of single bytes.
    pub fn texts(&self, e: &Entry) -> Result<Vec<String>, String> {
        if e.value_size() != Some(1) || e.columns == 0 {
            return Err(format!("is damaged: {} is not text", self.names[e.id as usize]));
        }
        Ok(self.bytes(e)?.chunks_exact(e.columns as usize).map(text).collect())
    }

    /// Returns the number of chunks, and the number for which the index has room.
    pub fn chunks(&self) -> (u64, u64) {
        (self.entries.len() as u64, self.index.room)
    }

    /// Returns the end of the data of the first `keep` entries.
    fn data_end(&self, keep: usize) -> u64 {
        self.entries[..keep].iter().filter_map(Entry::end).max().unwrap_or(0)
    }

    /// Returns the index that a file with the first `keep` entries has if it was never cut: it grows at the first frame for which it has
    /// no room, and begins where the data of this frame end. Returns the present one if the bytes of the former are in use.
    fn index_of(&self, keep: usize) -> Index {
        let mut index = Index { at: HEADER, room: FIRST_INDEX };
        let mut count = 0;
        for frame in self.entries[..keep].chunk_by(|a, b| a.frame == b.frame) {
            count += frame.len();
            if count as u64 > index.room {
                while index.room <= count as u64 {
                    index.room *= 2;
                }
                index.at = self.data_end(count);
            }
        }
        let free = |begin: u64, end: u64| end <= index.at || begin >= index.end();
        let is_free = index.end() <= self.length
            && free(self.name_block.0, self.name_block.1)
            && self.entries[..keep].iter().all(|e| free(e.location, e.end().unwrap_or(u64::MAX)));
        if is_free && index.room < self.index.room { index } else { self.index }
    }

    /// Removes all frames from number `frames` on. The file must be writable. Later frames give it the same bytes as if there had been
    /// no others.
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub fn cut(self, frames: u64) -> Result<(), String> {
        let keep = self.entries.partition_point(|e| e.frame < frames);
        let index = self.index_of(keep);
        let write = || {
            let mut file = &self.file;
            let free = (self.entries.len().min(index.room as usize) - keep) * ENTRY as usize;
            if index == self.index {
                file.seek(SeekFrom::Start(index.at + keep as u64 * ENTRY))?;
                file.write_all(&vec![0; free])?;
            } else {
                // the index has grown since: the earlier one, which the file still contains, takes its place
                let mut entries: Vec<u8> = self.entries[..keep].iter().flat_map(Entry::bytes).collect();
                entries.resize((index.room * ENTRY) as usize, 0);
                file.seek(SeekFrom::Start(index.at))?;
                file.write_all(&entries)?;
                self.file.sync_all()?;
                file.seek(SeekFrom::Start(8))?;
                file.write_all(&[index.at.to_ne_bytes(), index.room.to_ne_bytes()].concat())?;
            }
            self.file.sync_all()?;
            // truncate, since a full disk may need the space
            self.file.set_len(self.data_end(keep).max(index.end()).max(self.name_block.1))?;
            self.file.sync_all()
        };
        write().map_err(|e: std::io::Error| format!("cannot be truncated to {frames} frames: {e}"))
    }
}
