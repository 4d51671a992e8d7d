//! Parquet tables that grow: folders of parts.

use crate::columns::{Cell, Column, read, rows, write};
use galamost_plugin_api::error::{Error, Result};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Rows of a part.
const PART: usize = 65_536;
/// The shortest time between two versions of the newest part.
const BETWEEN: Duration = Duration::from_secs(10);

/// A folder of Parquet files, `part-000000.parquet` and so on, that rows are appended to.
///
/// Every part but the newest has 65,536 rows, so where one ends depends on nothing but the rows. The newest one is written with its
/// first row, then again whenever there are new rows and 10 s have passed, and when the run saves its state or ends. A part is written
/// beside the folder, where no reader looks (some read hidden files of a folder too), and renamed: at any moment the folder is a whole table.
#[derive(Debug)]
pub struct Dataset {
    folder: PathBuf,
    /// What a part is called while it is written.
    temporary: PathBuf,
    /// Number of the newest part.
    part: usize,
    /// Rows of those before it.
    before: u64,
    /// Its columns; none before the first row.
    columns: Vec<Column>,
    /// Rows of it that its file has; none if there is no file that is as long as this.
    written: Option<usize>,
    last: Option<Instant>,
}

fn name(part: usize) -> String {
    format!("part-{part:06}.parquet")
}

/// The number of a part.
fn number(name: &str) -> Option<usize> {
    let digits = name.strip_prefix("part-")?.strip_suffix(".parquet")?;
    (digits.len() >= 6 && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?
}

impl Dataset {
    /// Opens the folder: an empty one, or, in a run that goes on, the old one with the first `kept` rows; all without that number.
    ///
    /// # Errors
    /// The system's words; the folder has other files, or less rows than it had.
    pub fn open(folder: &Path, resumed: bool, kept: Option<u64>) -> Result<Self> {
        let failed = |e: std::io::Error| Error::io(folder, e);
        if folder.exists() && !folder.is_dir() {
            return Err(Error::io(folder, "is a file, where a Parquet table that grows is a folder: move it away"));
        }
        if !folder.is_dir() {
            std::fs::create_dir(folder).map_err(failed)?;
        }
        // where the folder is, not where a link to it is: the file is to be renamed into it
        let mut temporary = folder.canonicalize().map_err(failed)?.into_os_string();
        temporary.push(".part");
        let mut parts = vec![];
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let file = entry.map_err(failed)?.file_name();
            let file = file.to_string_lossy();
            let Some(part) = number(&file) else {
                let what = format!("has a file `{file}`, which is no part of a table: move it or the folder away");
                return Err(Error::io(folder, what));
            };
            parts.push(part);
        }
        parts.sort_unstable();
        let temporary = PathBuf::from(temporary);
        if temporary.is_file() {
            // of a run that was killed while it wrote
            std::fs::remove_file(&temporary).map_err(failed)?;
        }
        let mut out =
            Self { folder: folder.into(), temporary, part: 0, before: 0, columns: vec![], written: None, last: None };
        if resumed && !parts.is_empty() {
            if let Some(missing) = (0..parts.len()).find(|k| parts[*k] != *k) {
                return Err(Error::io(folder, format!("lacks {}: move the folder away", name(missing))));
            }
            out.go_on(parts.len(), kept)?;
        } else {
            // from the last one on, so that what is there is a table even after a kill
            parts.iter().rev().try_for_each(|p| out.remove(*p))?;
        }
        Ok(out)
    }

    /// Goes on behind `kept` rows of so many parts.
    fn go_on(&mut self, parts: usize, kept: Option<u64>) -> Result<()> {
        let lengths = (0..parts).map(|p| rows(&self.path(p))).collect::<Result<Vec<_>>>()?;
        let total: u64 = lengths.iter().sum();
        let mut left = kept.unwrap_or(total);
        if left > total {
            return Err(Error::io(&self.folder, "has less rows than it had at the checkpoint: move it away"));
        }
        while self.part < parts && left >= lengths[self.part] && (self.part + 1 < parts || left >= PART as u64) {
            left -= lengths[self.part];
            self.before += lengths[self.part];
            self.part += 1;
        }
        if self.part == parts {
            return Ok(());
        }
        self.columns = read(&self.path(self.part))?;
        let (left, mut first) = (left as usize, self.part + 1);
        if left == 0 && self.part > 0 {
            first = self.part;
        } else if self.length() > left {
            self.put(self.part, 0..left)?;
        }
        self.columns.iter_mut().for_each(|c| c.truncate(left));
        self.written = (first > self.part).then_some(left);
        (first..parts).rev().try_for_each(|p| self.remove(p))
    }

    fn path(&self, part: usize) -> PathBuf {
        self.folder.join(name(part))
    }

    fn remove(&self, part: usize) -> Result<()> {
        let path = self.path(part);
        std::fs::remove_file(&path).map_err(|e| Error::io(path, e))
    }

    /// Rows of the newest part.
    fn length(&self) -> usize {
        self.columns.first().map_or(0, Column::len)
    }

    /// Writes a part.
    fn put(&self, part: usize, rows: std::ops::Range<usize>) -> Result<()> {
        let path = self.path(part);
        write(&self.temporary, &self.columns, rows)?;
        std::fs::rename(&self.temporary, &path).map_err(|e| Error::io(&path, e))
    }

    /// Names the columns, and what they have, where nothing was written yet.
    ///
    /// # Errors
    /// The system's words.
    pub fn begin<N: AsRef<str>>(&mut self, names: &[N], blank: &[Cell]) -> Result<()> {
        if self.part > 0 || !self.columns.is_empty() {
            return Ok(());
        }
        self.columns = names.iter().zip(blank).map(|(n, c)| Column::like(n.as_ref(), c)).collect();
        self.flush()
    }

    /// Appends rows.
    ///
    /// # Errors
    /// The system's words, or the rows have other columns than those before; then none of them counts.
    pub fn append<N: AsRef<str>>(&mut self, names: &[N], rows: &[Vec<Cell>]) -> Result<()> {
        let Some(first) = rows.first() else { return Ok(()) };
        let like: Vec<Column> = names.iter().zip(first).map(|(n, c)| Column::like(n.as_ref(), c)).collect();
        if self.columns.is_empty() {
            self.columns = like.clone();
        }
        let before = self.length();
        let fits = self.columns.len() == like.len() && self.columns.iter().zip(&like).all(|(a, b)| a.is_like(b));
        let pushed = fits
            && rows.iter().all(|row| {
                row.len() == self.columns.len() && self.columns.iter_mut().zip(row).all(|(c, x)| c.push(x.clone()))
            });
        let done = if pushed {
            self.write_due()
        } else {
            Err(Error::io(&self.folder, "the columns are not those of the rows before: move the folder away"))
        };
        if done.is_err() {
            self.columns.iter_mut().for_each(|c| c.truncate(before));
            // the file may be longer than that, which a restart cuts
            self.written = None;
        }
        done
    }

    /// Writes the parts that are whole, and the newest one if it is time.
    fn write_due(&mut self) -> Result<()> {
        let (whole, length) = (self.length() / PART, self.length());
        for k in 0..whole {
            self.put(self.part + k, k * PART..(k + 1) * PART)?;
        }
        let due = length % PART > 0 && self.last.is_none_or(|l| l.elapsed() >= BETWEEN);
        if due {
            self.put(self.part + whole, whole * PART..length)?;
            self.last = Some(Instant::now());
        }
        if whole > 0 {
            self.part += whole;
            self.before += (whole * PART) as u64;
            self.columns.iter_mut().for_each(|c| c.drop_first(whole * PART));
            self.written = None;
        }
        if due {
            self.written = Some(self.length());
        }
        Ok(())
    }

    /// Writes what the files lack.
    ///
    /// # Errors
    /// The system's words.
    pub fn flush(&mut self) -> Result<()> {
        let length = self.length();
        // a part without rows is written where there is no other one
        if self.columns.is_empty() || self.written == Some(length) || (length == 0 && self.part > 0) {
            return Ok(());
        }
        self.put(self.part, 0..length)?;
        (self.written, self.last) = (Some(length), Some(Instant::now()));
        Ok(())
    }

    /// For a checkpoint: writes everything, names too, and returns the number of rows.
    ///
    /// # Errors
    /// The system's words.
    pub fn save(&mut self) -> Result<u64> {
        self.flush()?;
        File::open(&self.folder).and_then(|f| f.sync_all()).map_err(|e| Error::io(&self.folder, e))?;
        Ok(self.before + self.length() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Cells;

    const NAMES: [&str; 3] = ["step", "kT", "what"];

    fn row(k: usize) -> Vec<Cell> {
        let kt = if k % 5 == 3 { Cell::Number(None) } else { (k as f64 / 7.0).into() };
        vec![k.into(), kt, if k.is_multiple_of(2) { "even" } else { "odd, \u{3bb}" }.into()]
    }

    fn add(d: &mut Dataset, range: std::ops::Range<usize>) {
        d.append(&NAMES, &range.map(row).collect::<Vec<_>>()).expect("appended");
    }

    /// Names and contents of a folder.
    fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
        let entry = |e: std::io::Result<std::fs::DirEntry>| {
            let path = e.expect("an entry").path();
            (path.file_name().expect("a name").to_string_lossy().into_owned(), std::fs::read(&path).expect("read"))
        };
        let mut all: Vec<_> = std::fs::read_dir(folder).expect("a folder").map(entry).collect();
        all.sort();
        all
    }

    #[test]
    fn a_table_grows_and_goes_on_where_a_checkpoint_was() {
        let place = tempfile::tempdir().expect("a folder");
        let (whole, parts) = (place.path().join("whole.parquet"), place.path().join("parts.parquet"));
        let n = 2 * PART + 1000;
        let mut d = Dataset::open(&whole, false, None).expect("opened");
        add(&mut d, 0..n);
        assert_eq!(d.save().expect("saved"), n as u64);
        let columns = read(&whole).expect("read");
        let Cells::Int(steps) = &columns[0].cells else { panic!("{:?}", columns[0].name) };
        assert!(steps.iter().copied().eq((0..n as i64).map(Some)));
        for k in [0, 3, 4, PART - 1, PART, n - 1] {
            assert_eq!(columns.iter().filter_map(|c| c.cell(k)).collect::<Vec<_>>(), row(k));
        }
        // rows behind a checkpoint come again; cuts at the end of a part, behind one, at the very start
        for (kept, lost) in [(10, 20), (PART, PART + 7), (PART + 5, 2 * PART + 3), (0, 5), (2 * PART, 2 * PART), (n, n)]
        {
            let mut d = Dataset::open(&parts, false, None).expect("opened");
            add(&mut d, 0..1.min(kept));
            add(&mut d, 1.min(kept)..kept);
            assert_eq!(d.save().expect("saved"), kept as u64);
            add(&mut d, kept..lost);
            d.flush().expect("written");
            std::fs::write(place.path().join("parts.parquet.part"), "PAR1").expect("a rest of a kill");
            let mut d = Dataset::open(&parts, true, Some(kept as u64)).expect("opened");
            if kept > 0 {
                assert_eq!(read(&parts).expect("read")[0].len(), kept);
            }
            add(&mut d, kept..n);
            d.flush().expect("written");
            assert!(files(&whole) == files(&parts), "from {kept} and {lost}");
            assert!(!place.path().join("parts.parquet.part").exists());
        }
        // a folder that was kept whole
        let mut d = Dataset::open(&parts, true, None).expect("opened");
        add(&mut d, 0..1);
        assert_eq!(d.save().expect("saved"), n as u64 + 1);
    }

    #[test]
    fn what_is_no_table_is_left_alone() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("t.parquet");
        let said = |d: Result<Dataset>| d.expect_err("refused").to_string();
        std::fs::write(&path, "a file").expect("written");
        assert!(said(Dataset::open(&path, false, None)).contains("is a file"));
        std::fs::remove_file(&path).expect("removed");
        let mut d = Dataset::open(&path, false, None).expect("opened");
        d.begin(&NAMES, &[Cell::Int(None), Cell::Number(None), Cell::Text(None)]).expect("begun");
        assert_eq!(read(&path).expect("read").iter().map(Column::len).collect::<Vec<_>>(), [0; 3]);
        add(&mut d, 0..4);
        d.flush().expect("written");
        // another table: no row of it counts
        assert!(d.append(&["step"], &[vec![5usize.into()]]).is_err());
        assert!(d.append(&NAMES, &[row(4), vec![5usize.into(), "hot".into(), "odd".into()]]).is_err());
        assert_eq!(d.save().expect("saved"), 4);
        assert!(said(Dataset::open(&path, true, Some(5))).contains("less rows"));
        std::fs::write(path.join("notes.txt"), "mine").expect("written");
        assert!(said(Dataset::open(&path, false, None)).contains("notes.txt"));
        std::fs::rename(path.join("notes.txt"), path.join("part-000002.parquet")).expect("renamed");
        assert!(said(Dataset::open(&path, true, None)).contains("lacks part-000001.parquet"));
        std::fs::rename(path.join("part-000002.parquet"), path.join("part-000001.parquet")).expect("renamed");
        assert!(said(Dataset::open(&path, true, None)).contains("no whole Parquet file"));
        Dataset::open(&path, false, None).expect("begun anew");
        assert!(files(&path).is_empty());
    }
}
