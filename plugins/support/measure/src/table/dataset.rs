//! Parquet tables that grow, as folders of part files.

use crate::table::columns::{TableColumn, TableValue, read, rows, write};
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::output::temporary;
use galamost_plugin_api::resume::{RESTORE, check_exists};
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Rows per part.
const PART: usize = 65_536;
/// Shortest time between two writes of the newest part.
const INTERVAL: Duration = Duration::from_secs(10);

/// A folder of Parquet files, `part-000000.parquet` and so on, that rows are appended to.
///
/// Every part except the newest has 65,536 rows, so the division into parts depends only on the rows. The newest part is
/// written with its first row, then at most every 10 s if there are new rows, and when the run saves a checkpoint, ends, or returns
/// to a program in Python. A
/// part is written beside the folder and renamed into it, because some readers also read hidden files of the folder. At any
/// moment the folder is a complete table.
#[derive(Debug)]
pub struct Dataset {
    folder: PathBuf,
    /// Path of a part while it is written.
    temporary: PathBuf,
    /// Number of the newest part.
    part: usize,
    /// Rows in the parts before the newest.
    before: u64,
    /// Columns of the newest part; empty before the first row.
    columns: Vec<TableColumn>,
    /// Rows of the newest part that its file has; `None` if its file does not match.
    written: Option<usize>,
    last: Option<Instant>,
}

/// Returns the file name of a part.
fn name(part: usize) -> String {
    format!("part-{part:06}.parquet")
}

/// Returns the number of a part from its file name.
fn number(name: &str) -> Option<usize> {
    let digits = name.strip_prefix("part-")?.strip_suffix(".parquet")?;
    (digits.len() >= 6 && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// Lists the numbers of the parts in a folder, sorted.
fn list_parts(folder: &Path) -> Result<Vec<usize>> {
    let failed = |e: std::io::Error| Error::io(folder, e);
    let mut parts = vec![];
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let file = entry.map_err(failed)?.file_name();
        let file = file.to_string_lossy();
        let Some(part) = number(&file) else {
            let what = format!("`{file}` is not a part of this table; move it or the folder away");
            return Err(Error::io(folder, what));
        };
        parts.push(part);
    }
    parts.sort_unstable();
    Ok(parts)
}

/// Checks that a table has all parts up to its last one.
fn check_gaps(folder: &Path, parts: &[usize]) -> Result<()> {
    match (0..parts.len()).find(|k| parts[*k] != *k) {
        Some(missing) => Err(Error::io(folder, format!("{} is missing; move the folder away", name(missing)))),
        None => Ok(()),
    }
}

/// Checks that there is no file instead of the folder.
fn check_folder(folder: &Path) -> Result<()> {
    if folder.exists() && !folder.is_dir() {
        return Err(Error::io(folder, "is a file, but a growing Parquet table is a folder; move the file away"));
    }
    Ok(())
}

/// Creates the folder, or the one that a symbolic link without a target leads to.
fn create_folder(folder: &Path) -> std::io::Result<()> {
    match std::fs::read_link(folder) {
        Ok(to) => create_folder(&folder.parent().unwrap_or(Path::new("")).join(to)),
        Err(_) => std::fs::create_dir(folder),
    }
}

/// Returns a hash of the first rows of a part.
fn hash(columns: &[TableColumn], rows: usize) -> u64 {
    columns.iter().fold(0, |hash, c| c.hash_values(rows, hash))
}

/// The rows of a table at a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedRows {
    /// Their number.
    pub rows: u64,
    /// Hash of the rows in the last part; `None` in checkpoints of earlier versions.
    pub hash: Option<u64>,
}

impl Dataset {
    /// Opens the folder, which may be a symbolic link. A new run removes the parts in it; a resumed run keeps the first `kept` rows, or all rows without a
    /// number.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or written, or if the folder has other files or fewer than `kept` rows.
    pub fn open(folder: &Path, resumed: bool, kept: Option<u64>) -> Result<Self> {
        let failed = |e: std::io::Error| Error::io(folder, e);
        check_folder(folder)?;
        match std::fs::metadata(folder) {
            Ok(_) => {}
            // links that lead to each other are another error
            Err(e) if e.kind() == ErrorKind::NotFound => create_folder(folder).map_err(failed)?,
            Err(e) => return Err(failed(e)),
        }
        // next to the folder itself, not to a symbolic link: a rename must stay on one file system
        let temporary = temporary(&folder.canonicalize().map_err(failed)?);
        let parts = list_parts(folder)?;
        if temporary.is_file() {
            // left by a run that was killed while writing
            std::fs::remove_file(&temporary).map_err(failed)?;
        }
        let mut out =
            Self { folder: folder.into(), temporary, part: 0, before: 0, columns: vec![], written: None, last: None };
        if resumed && !parts.is_empty() {
            check_gaps(folder, &parts)?;
            out.resume(parts.len(), kept)?;
        } else {
            // the last part first, so that the folder is a valid table even if the run is killed
            parts.iter().rev().try_for_each(|p| out.remove(*p))?;
        }
        Ok(out)
    }

    /// Checks before a run resumes that the folder begins with the rows of the checkpoint, or has no parts. Of the rows, those in
    /// the last part of the checkpoint are compared.
    ///
    /// # Errors
    /// Returns an error if the folder is missing, cannot be read, has fewer rows, or has rows of another run.
    pub fn check(folder: &Path, saved: SavedRows) -> Result<()> {
        check_folder(folder)?;
        let kept = saved.rows;
        if kept == 0 {
            return Ok(());
        }
        check_exists(folder, &format!("{kept} rows"))?;
        let parts = list_parts(folder)?;
        if parts.is_empty() {
            return Ok(());
        }
        check_gaps(folder, &parts)?;
        let lengths = parts.iter().map(|p| rows(&folder.join(name(*p)))).collect::<Result<Vec<_>>>()?;
        let total: u64 = lengths.iter().sum();
        if total < kept {
            return Err(Error::io(
                folder,
                format!("has {total} rows, but had {kept} at the checkpoint; restore the folder or empty it"),
            ));
        }
        let Some(expected) = saved.hash else { return Ok(()) };
        let (mut part, mut left) = (0, kept);
        while left > lengths[part] {
            left -= lengths[part];
            part += 1;
        }
        if hash(&read(&folder.join(name(part)))?, left as usize) == expected {
            return Ok(());
        }
        Err(Error::io(
            folder,
            "its rows are not those at the checkpoint: another run has written it, or it was edited; restore the folder, or \
             empty it to begin it again",
        ))
    }

    /// Truncates a table of `parts` parts to `kept` rows and continues after them.
    fn resume(&mut self, parts: usize, kept: Option<u64>) -> Result<()> {
        let lengths = (0..parts).map(|p| rows(&self.path(p))).collect::<Result<Vec<_>>>()?;
        let total: u64 = lengths.iter().sum();
        let mut left = kept.unwrap_or(total);
        if left > total {
            return Err(Error::io(&self.folder, "has fewer rows than at the checkpoint; move the folder away"));
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

    /// Returns the number of rows of the newest part.
    fn length(&self) -> usize {
        self.columns.first().map_or(0, TableColumn::len)
    }

    /// Writes rows of `columns` as a part.
    fn put(&self, part: usize, rows: std::ops::Range<usize>) -> Result<()> {
        let path = self.path(part);
        write(&self.temporary, &self.columns, rows)?;
        std::fs::rename(&self.temporary, &path).map_err(|e| Error::io(&path, e))
    }

    /// Writes a table with columns and no rows, unless it already has columns. `blank` gives the data types.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn begin<N: AsRef<str>>(&mut self, names: &[N], blank: &[TableValue]) -> Result<()> {
        if self.part > 0 || !self.columns.is_empty() {
            return Ok(());
        }
        self.columns = names.iter().zip(blank).map(|(n, c)| TableColumn::like(n.as_ref(), c)).collect();
        self.flush()
    }

    /// Appends rows.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written, or if the columns differ from those of earlier rows. Then no row is
    /// appended.
    pub fn append<N: AsRef<str>>(&mut self, names: &[N], rows: &[Vec<TableValue>]) -> Result<()> {
        let Some(first) = rows.first() else { return Ok(()) };
        let like: Vec<TableColumn> = names.iter().zip(first).map(|(n, c)| TableColumn::like(n.as_ref(), c)).collect();
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
            Err(Error::io(&self.folder, "the columns differ from those of earlier rows; move the folder away"))
        };
        if done.is_err() {
            self.columns.iter_mut().for_each(|c| c.truncate(before));
            // the file may have more rows, which a restart truncates
            self.written = None;
        }
        done
    }

    /// Writes the parts that are full, and the newest one if the interval has passed.
    fn write_due(&mut self) -> Result<()> {
        let (full, length) = (self.length() / PART, self.length());
        for k in 0..full {
            self.put(self.part + k, k * PART..(k + 1) * PART)?;
        }
        let due = length % PART > 0 && self.last.is_none_or(|l| l.elapsed() >= INTERVAL);
        if due {
            self.put(self.part + full, full * PART..length)?;
            self.last = Some(Instant::now());
        }
        if full > 0 {
            self.part += full;
            self.before += (full * PART) as u64;
            self.columns.iter_mut().for_each(|c| c.drop_first(full * PART));
            self.written = None;
        }
        if due {
            self.written = Some(self.length());
        }
        Ok(())
    }

    /// Writes the rows that are not in the files yet.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn flush(&mut self) -> Result<()> {
        let length = self.length();
        // a part without rows is written only if it is the only part
        if self.columns.is_empty() || self.written == Some(length) || (length == 0 && self.part > 0) {
            return Ok(());
        }
        self.put(self.part, 0..length)?;
        (self.written, self.last) = (Some(length), Some(Instant::now()));
        Ok(())
    }

    /// Checks that no other program has removed or emptied parts.
    fn check_parts(&self) -> Result<()> {
        let written = self.part + usize::from(self.written.is_some());
        let is_lost = |p: &usize| std::fs::metadata(self.path(*p)).map_or(true, |m| m.len() == 0);
        match (0..written).find(is_lost) {
            Some(p) => {
                let part = name(p);
                let message = format!("{part} was removed or emptied while the run was writing it: {RESTORE}");
                Err(Error::io(&self.folder, message))
            }
            None => Ok(()),
        }
    }

    /// Writes all rows, syncs the folder to the disk, and returns the rows for a checkpoint.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written, if the last part cannot be read, or if another program has removed parts.
    pub fn save(&mut self) -> Result<SavedRows> {
        self.flush()?;
        self.check_parts()?;
        File::open(&self.folder).and_then(|f| f.sync_all()).map_err(|e| Error::io(&self.folder, e))?;
        let length = self.length();
        let hash = match self.part.checked_sub(1) {
            // full parts are not in memory
            Some(full) if length == 0 => hash(&read(&self.path(full))?, PART),
            _ => hash(&self.columns, length),
        };
        Ok(SavedRows { rows: self.before + length as u64, hash: Some(hash) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::columns::{Cell, Cells, Column};

    const NAMES: [&str; 3] = ["step", "kT", "what"];

    fn row(k: usize) -> Vec<Cell> {
        let kt = if k % 5 == 3 { Cell::Number(None) } else { (k as f64 / 7.0).into() };
        vec![k.into(), kt, if k.is_multiple_of(2) { "even" } else { "odd, \u{3bb}" }.into()]
    }

    fn add(d: &mut Dataset, range: std::ops::Range<usize>) {
        d.append(&NAMES, &range.map(row).collect::<Vec<_>>()).expect("appended");
    }

    /// Returns the names and contents of the files in a folder.
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
    fn a_table_grows_and_resumes_from_a_checkpoint() {
        let root = tempfile::tempdir().expect("a folder");
        let (whole, parts) = (root.path().join("whole.parquet"), root.path().join("parts.parquet"));
        let n = 2 * PART + 1000;
        let mut d = Dataset::open(&whole, false, None).expect("opened");
        add(&mut d, 0..n);
        assert_eq!(d.save().expect("saved").rows, n as u64);
        let columns = read(&whole).expect("read");
        let Cells::Int(steps) = &columns[0].cells else { panic!("{:?}", columns[0].name) };
        assert!(steps.iter().copied().eq((0..n as i64).map(Some)));
        for k in [0, 3, 4, PART - 1, PART, n - 1] {
            assert_eq!(columns.iter().filter_map(|c| c.cell(k)).collect::<Vec<_>>(), row(k));
        }
        // rows after a checkpoint are written again; truncation at the end of a part, after one, and at the very start
        for (kept, lost) in [(10, 20), (PART, PART + 7), (PART + 5, 2 * PART + 3), (0, 5), (2 * PART, 2 * PART), (n, n)]
        {
            let mut d = Dataset::open(&parts, false, None).expect("opened");
            add(&mut d, 0..1.min(kept));
            add(&mut d, 1.min(kept)..kept);
            let saved = d.save().expect("saved");
            assert_eq!(saved.rows, kept as u64);
            add(&mut d, kept..lost);
            d.flush().expect("written");
            std::fs::write(temporary(&parts), "PAR1").expect("a temporary file of a killed run");
            Dataset::check(&parts, saved).expect("the rows at the checkpoint");
            let other = SavedRows { hash: saved.hash.map(|h| h ^ 1), ..saved };
            assert_eq!(Dataset::check(&parts, other).is_err(), kept > 0, "{kept}");
            let mut d = Dataset::open(&parts, true, Some(kept as u64)).expect("opened");
            if kept > 0 {
                Dataset::check(&parts, saved).expect("they are left");
                assert_eq!(read(&parts).expect("read")[0].len(), kept);
            }
            add(&mut d, kept..n);
            d.flush().expect("written");
            assert!(files(&whole) == files(&parts), "from {kept} and {lost}");
            assert!(!temporary(&parts).exists());
        }
        // a folder that is kept completely
        let mut d = Dataset::open(&parts, true, None).expect("opened");
        add(&mut d, 0..1);
        assert_eq!(d.save().expect("saved").rows, n as u64 + 1);
    }

    /// A checkpoint of a table without its parts could not be resumed.
    #[test]
    fn parts_that_another_program_removes_are_an_error_of_the_checkpoint() {
        let root = tempfile::tempdir().expect("a folder");
        let path = root.path().join("t.parquet");
        let mine = root.path().join("t.parquet.part");
        std::fs::create_dir(&mine).expect("a folder of the user");
        let mut d = Dataset::open(&path, false, None).expect("opened");
        add(&mut d, 0..4);
        d.save().expect("saved");
        let losses: [fn(&Path) -> std::io::Result<()>; 2] = [|p| std::fs::write(p, ""), |p| std::fs::remove_file(p)];
        for lose in losses {
            lose(&path.join(name(0))).expect("lost");
            let said = d.save().map_err(|e| e.to_string());
            assert!(said.is_err_and(|e| e.contains("part-000000.parquet was removed or emptied while the run")));
        }
        assert!(mine.is_dir());
    }

    #[test]
    fn foreign_files_are_not_touched() {
        let root = tempfile::tempdir().expect("a folder");
        let path = root.path().join("t.parquet");
        let message = |d: Result<Dataset>| d.expect_err("refused").to_string();
        std::fs::write(&path, "a file").expect("written");
        assert!(message(Dataset::open(&path, false, None)).contains("is a file"));
        assert!(Dataset::check(&path, SavedRows { rows: 0, hash: None }).is_err());
        std::fs::remove_file(&path).expect("removed");
        let mut d = Dataset::open(&path, false, None).expect("opened");
        d.begin(&NAMES, &[Cell::Int(None), Cell::Number(None), Cell::Text(None)]).expect("begun");
        assert_eq!(read(&path).expect("read").iter().map(Column::len).collect::<Vec<_>>(), [0; 3]);
        add(&mut d, 0..4);
        d.flush().expect("written");
        // rows with other columns are rejected
        assert!(d.append(&["step"], &[vec![5usize.into()]]).is_err());
        assert!(d.append(&NAMES, &[row(4), vec![5usize.into(), "hot".into(), "odd".into()]]).is_err());
        assert_eq!(d.save().expect("saved").rows, 4);
        assert!(message(Dataset::open(&path, true, Some(5))).contains("fewer rows"));
        std::fs::write(path.join("notes.txt"), "mine").expect("written");
        assert!(message(Dataset::open(&path, false, None)).contains("notes.txt"));
        std::fs::rename(path.join("notes.txt"), path.join("part-000002.parquet")).expect("renamed");
        assert!(message(Dataset::open(&path, true, None)).contains("part-000001.parquet is missing"));
        std::fs::rename(path.join("part-000002.parquet"), path.join("part-000001.parquet")).expect("renamed");
        assert!(message(Dataset::open(&path, true, None)).contains("not a complete Parquet file"));
        Dataset::open(&path, false, None).expect("started over");
        assert!(files(&path).is_empty());
    }
}
