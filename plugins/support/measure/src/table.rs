//! Tables: those that grow row by row, and those that are replaced as a whole.

use crate::columns::{Cell, Column, is_parquet, write};
use crate::dataset::Dataset;
use galamost_plugin_api::prelude::*;
use std::path::{Path, PathBuf};

/// Rows as CSV.
///
/// # Errors
/// Never, in memory; the writer's words.
fn text<R: AsRef<[String]>>(rows: &[R]) -> Result<Vec<u8>> {
    let mut w = csv::Writer::from_writer(vec![]);
    for row in rows {
        w.write_record(row.as_ref()).map_err(|e| Error::Run(e.to_string()))?;
    }
    w.into_inner().map_err(|e| Error::Run(e.to_string()))
}

/// A header.
pub fn header(names: &[&str]) -> Vec<String> {
    names.iter().map(|n| (*n).into()).collect()
}

/// A number with all its digits.
pub fn number(x: f64) -> String {
    format!("{x:?}")
}

/// Replaces a table, whose first row are the names of the columns: readers see the old one or the new one, never a part.
///
/// It is CSV, or a Parquet file if the name ends in `.parquet`; then a column has whole numbers, numbers or words, whichever all of its
/// cells read as.
///
/// # Errors
/// The system's words.
pub fn replace<R: AsRef<[String]>>(path: &Path, rows: &[R]) -> Result<()> {
    let Some((names, rows)) = rows.split_first().filter(|_| is_parquet(path)) else {
        return swap(path, |part| std::fs::write(part, text(rows)?).map_err(|e| Error::io(part, e)));
    };
    let column = |(k, name): (usize, &String)| {
        let texts: Vec<&str> = rows.iter().map(|r| r.as_ref().get(k).map_or("", String::as_str)).collect();
        Column::guess(name, &texts)
    };
    let columns: Vec<Column> = names.as_ref().iter().enumerate().map(column).collect();
    swap(path, |part| write(part, &columns, 0..rows.len()))
}

/// The same of a table whose text was made already.
///
/// # Errors
/// The system's words, or the text is no CSV.
pub fn replace_text(path: &Path, text: &str) -> Result<()> {
    if !is_parquet(path) {
        return swap(path, |part| std::fs::write(part, text).map_err(|e| Error::io(part, e)));
    }
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    let row = |r: csv::Result<csv::StringRecord>| {
        r.map(|r| r.iter().map(String::from).collect::<Vec<_>>()).map_err(|e| Error::io(path, e))
    };
    replace(path, &reader.records().map(row).collect::<Result<Vec<_>>>()?)
}

/// Writes a file under another name first.
fn swap(path: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".part");
    let part = path.with_file_name(name);
    write(&part)?;
    std::fs::rename(&part, path).map_err(|e| Error::io(path, e))
}

/// Numbers for a checkpoint.
pub fn bytes(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// Numbers of a checkpoint, and what follows them.
///
/// # Errors
/// There are not `expected` of them at the front.
pub fn numbers(bytes: &[u8], expected: usize) -> Result<(Vec<f64>, &[u8])> {
    let Some((mine, rest)) = bytes.split_at_checked(8 * expected) else {
        return Err(Error::Run("the checkpoint is of another analyzer".into()));
    };
    Ok((mine.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect(), rest))
}

/// A table that grows row by row: a CSV file, or where the name ends in `.parquet` a folder of Parquet files, see [`Dataset`].
///
/// A run that was killed has written rows after its last checkpoint; when it goes on from there, they would come twice. So the
/// table tells its length in `save`, and is cut to it.
#[derive(Debug, Default)]
pub struct Table {
    path: PathBuf,
    resumed: bool,
    kept: Option<u64>,
    file: Option<Growing>,
}

#[derive(Debug)]
enum Growing {
    Csv(RowFile),
    Parquet(Dataset),
}

/// Marks a length in rows; without it, it is one in bytes.
const ROWS: u64 = 1 << 63;

impl Table {
    /// Bytes that [`Table::save`] gives.
    pub const SAVED: usize = 8;

    /// In `bind`: a file of the pipeline.
    pub fn bind(&mut self, system: &SystemInfo, file: &str) {
        self.path = system.path(file);
        self.resumed = system.resumed;
    }

    /// In `start`: opens it, cut to what the checkpoint knows.
    ///
    /// # Errors
    /// The system's words, or the file is shorter than it was.
    pub fn start(&mut self) -> Result<()> {
        let parquet = is_parquet(&self.path);
        // a run that was told to go on in the other format begins there
        let kept = self.kept.filter(|k| (k & ROWS > 0) == parquet).map(|k| k & !ROWS);
        self.file = Some(if parquet {
            Growing::Parquet(Dataset::open(&self.path, self.resumed, kept)?)
        } else {
            let kept = kept.map(u64::to_le_bytes);
            Growing::Csv(RowFile::open(&self.path, self.resumed, kept.as_ref().map(|k| &k[..]))?)
        });
        Ok(())
    }

    fn file(&mut self) -> Result<&mut Growing> {
        self.file.as_mut().ok_or_else(|| Error::Run("the table was not opened".into()))
    }

    /// Writes the header where the table begins, before there is a row; `blank` is a row of empty cells.
    ///
    /// # Errors
    /// The system's words.
    pub fn begin<N: AsRef<str>>(&mut self, names: &[N], blank: &[Cell]) -> Result<()> {
        match self.file()? {
            Growing::Parquet(d) => d.begin(names, blank),
            Growing::Csv(f) if f.is_empty() => f.append(&line(names)?),
            Growing::Csv(_) => Ok(()),
        }
    }

    /// Appends rows, below `names` where the table begins.
    ///
    /// # Errors
    /// The system's words, or there was no `start`.
    pub fn append<N: AsRef<str>>(&mut self, names: &[N], rows: &[Vec<Cell>]) -> Result<()> {
        match self.file()? {
            Growing::Parquet(d) => d.append(names, rows),
            Growing::Csv(f) => {
                let mut all = if f.is_empty() { line(names)? } else { vec![] };
                let rows: Vec<Vec<String>> = rows.iter().map(|r| r.iter().map(Cell::text).collect()).collect();
                all.extend(text(&rows)?);
                if all.is_empty() { Ok(()) } else { f.append(&all) }
            }
        }
    }

    /// In `finish`: writes what waits.
    ///
    /// # Errors
    /// The system's words.
    pub fn finish(&mut self) -> Result<()> {
        match &mut self.file {
            Some(Growing::Parquet(d)) => d.flush(),
            Some(Growing::Csv(_)) | None => Ok(()),
        }
    }

    /// In `save`: what there is, on the disk, and how much it is, in [`Table::SAVED`] bytes.
    ///
    /// # Errors
    /// The system's words.
    pub fn save(&mut self) -> Result<Vec<u8>> {
        match self.file()? {
            Growing::Csv(f) => f.save(),
            Growing::Parquet(d) => Ok((d.save()? | ROWS).to_le_bytes().into()),
        }
    }

    /// In `load`: takes what `save` gave off the front; nothing where there is nothing.
    ///
    /// # Errors
    /// It is too short.
    pub fn load<'a>(&mut self, state: &'a [u8]) -> Result<&'a [u8]> {
        if state.is_empty() {
            return Ok(state);
        }
        let (mine, rest) =
            state.split_first_chunk().ok_or_else(|| Error::Run("the checkpoint is of another table".into()))?;
        self.kept = Some(u64::from_le_bytes(*mine));
        Ok(rest)
    }
}

/// A line of names.
fn line<N: AsRef<str>>(names: &[N]) -> Result<Vec<u8>> {
    text(&[names.iter().map(|n| n.as_ref().into()).collect::<Vec<_>>()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::{Cells, read};

    fn system(folder: &Path, resumed: bool) -> SystemInfo {
        SystemInfo { directory: folder.to_string_lossy().into_owned(), resumed, ..SystemInfo::default() }
    }

    #[test]
    fn both_formats_have_the_same_rows() {
        let folder = tempfile::tempdir().expect("a folder");
        let row = |k: u64| vec![k.into(), (k as f64 / 3.0).into(), Cell::from(None::<f64>), "a,b".into()];
        let names = ["step", "x", "y", "what"];
        for file in ["t.csv", "t.parquet"] {
            let mut t = Table::default();
            assert!(t.append(&names, &[row(1)]).is_err(), "not started");
            t.bind(&system(folder.path(), false), file);
            t.start().expect("started");
            t.append(&names, &[row(1), row(2)]).expect("written");
            let saved = t.save().expect("saved");
            assert_eq!(saved.len(), Table::SAVED);
            t.append(&names, &[row(3)]).expect("written");
            t.finish().expect("written");
            let mut t = Table::default();
            t.bind(&system(folder.path(), true), file);
            assert_eq!(t.load(&[&saved[..], b"rest"].concat()).expect("loaded"), b"rest");
            t.start().expect("started");
            t.begin(&names, &row(0)).expect("it has begun");
            t.append(&names, &[row(4)]).expect("written");
            t.finish().expect("written");
        }
        let text = std::fs::read_to_string(folder.path().join("t.csv")).expect("a text");
        let want = "step,x,y,what\n1,0.3333333333333333,,\"a,b\"\n2,0.6666666666666666,,\"a,b\"\n4,1.3333333333333333,,\"a,b\"\n";
        assert_eq!(text, want);
        let columns = read(&folder.path().join("t.parquet")).expect("a table");
        assert_eq!(columns[0].cells, Cells::Int(vec![Some(1), Some(2), Some(4)]));
        assert_eq!(columns[1].cells, Cells::Number([1.0, 2.0, 4.0].map(|x| Some(x / 3.0)).into()));
        assert_eq!(columns[2].cells, Cells::Number(vec![None; 3]));
        assert_eq!(columns[3].cells, Cells::Text(vec![Some("a,b".into()); 3]));
        // and one that is replaced as a whole
        let rows = [header(&names), vec!["1".into(), number(0.5), String::new(), "A-B".into()]];
        for file in ["whole.csv", "whole.parquet"] {
            replace(&folder.path().join(file), &rows).expect("written");
        }
        let text = std::fs::read_to_string(folder.path().join("whole.csv")).expect("a text");
        assert_eq!(text, "step,x,y,what\n1,0.5,,A-B\n");
        let columns = read(&folder.path().join("whole.parquet")).expect("a table");
        let kinds = [Cells::Int(vec![Some(1)]), Cells::Number(vec![Some(0.5)]), Cells::Number(vec![None])];
        assert!(columns.iter().zip(kinds).all(|(c, k)| c.cells == k), "{columns:?}");
        assert_eq!(columns[3].cells, Cells::Text(vec![Some("A-B".into())]));
        replace_text(&folder.path().join("text.parquet"), &text).expect("written");
        assert_eq!(read(&folder.path().join("text.parquet")).expect("a table"), columns);
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 5, "temporary files are left");
    }
}
