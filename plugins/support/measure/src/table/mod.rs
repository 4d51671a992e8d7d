//! Output tables: those that grow row by row, and those that are rewritten as a whole.

pub mod columns;
pub mod dataset;
pub mod pace;

use crate::pack::foreign;
use crate::table::columns::{TableColumn, TableValue, encode, is_parquet};
use crate::table::dataset::{Dataset, SavedRows};
use galamost_plugin_api::output;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::resume::check_length;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// Returns rows as CSV.
///
/// # Errors
/// Returns the writer's error; writing to memory does not fail.
fn csv_text<R: AsRef<[String]>>(rows: &[R]) -> Result<Vec<u8>> {
    let mut w = csv::Writer::from_writer(vec![]);
    for row in rows {
        w.write_record(row.as_ref()).map_err(|e| Error::Run(e.to_string()))?;
    }
    w.into_inner().map_err(|e| Error::Run(e.to_string()))
}

/// Makes the header row of a table.
pub fn header(names: &[&str]) -> Vec<String> {
    names.iter().map(|n| (*n).into()).collect()
}

/// Formats a number with all its digits.
pub fn number(x: f64) -> String {
    format!("{x:?}")
}

/// Replaces a table file atomically: readers see the old table or the new one. The first row holds the names of the columns.
///
/// The file is CSV, or Parquet if the name ends in `.parquet`. A Parquet column holds integers, real numbers or texts,
/// whichever is the first that parses all its values.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn replace<R: AsRef<[String]>>(path: &Path, rows: &[R]) -> Result<()> {
    let Some((names, rows)) = rows.split_first().filter(|_| is_parquet(path)) else {
        return replace_bytes(path, &csv_text(rows)?);
    };
    let column = |(k, name): (usize, &String)| {
        let texts: Vec<&str> = rows.iter().map(|r| r.as_ref().get(k).map_or("", String::as_str)).collect();
        TableColumn::guess(name, &texts)
    };
    let columns: Vec<TableColumn> = names.as_ref().iter().enumerate().map(column).collect();
    let encoded =
        |out: &mut BufWriter<File>| encode(out, &columns, 0..rows.len()).map(drop).map_err(std::io::Error::other);
    output::replace(path, encoded).map_err(|e| Error::io(path, e))
}

fn replace_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    output::replace(path, |out| out.write_all(bytes)).map_err(|e| Error::io(path, e))
}

/// Replaces a table file as [`replace`] does, from CSV text.
///
/// # Errors
/// Returns an error if the file cannot be written or the text is not CSV.
pub fn replace_text(path: &Path, text: &str) -> Result<()> {
    if !is_parquet(path) {
        return replace_bytes(path, text.as_bytes());
    }
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    let row = |r: csv::Result<csv::StringRecord>| {
        r.map(|r| r.iter().map(String::from).collect::<Vec<_>>()).map_err(|e| Error::io(path, e))
    };
    replace(path, &reader.records().map(row).collect::<Result<Vec<_>>>()?)
}

/// Returns numbers as bytes for a checkpoint.
pub fn bytes(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// Splits `expected` numbers off the front of checkpoint bytes. Returns them and the rest.
///
/// # Errors
/// Returns an error if there are fewer bytes.
pub fn numbers(bytes: &[u8], expected: usize) -> Result<(Vec<f64>, &[u8])> {
    let Some((mine, rest)) = bytes.split_at_checked(8 * expected) else {
        return Err(foreign());
    };
    Ok((mine.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect(), rest))
}

/// A table that grows row by row: a CSV file, or a folder of Parquet files ([`Dataset`]) if the name ends in `.parquet`.
///
/// A killed run may have written rows after its last checkpoint. To avoid writing them twice, `save` stores the length of the
/// table, and a resumed run truncates the table to it. The length of a Parquet table comes with a hash of its last rows, so that the
/// table of another run is recognized; the engine compares CSV files.
#[derive(Debug, Default)]
pub struct GrowingTable {
    path: PathBuf,
    system: SystemInfo,
    kept: Option<u64>,
    file: Option<TableFile>,
}

#[derive(Debug)]
enum TableFile {
    Csv(RowFile),
    Parquet(SharedOutput<Dataset>),
}

/// Flag of a saved length that counts rows (Parquet); without it, the length counts bytes (CSV).
const ROWS: u64 = 1 << 63;
/// Flag of a saved number of rows that a hash follows.
const HASHED: u64 = 1 << 62;

impl GrowingTable {
    /// Sets the file; call this in `bind`.
    pub fn bind(&mut self, system: &SystemInfo, needs: &mut Needs, file: &str) {
        // a table in Parquet is a folder
        let output =
            OutputFile { rewritten: is_parquet(Path::new(file)), ..OutputFile::new(file, OutputKind::Growing) };
        self.path = needs.declare(system, output);
        self.system = system.clone();
    }

    /// Opens the file, truncated to the length in the checkpoint; call this in `start`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened, or is shorter than at the checkpoint.
    pub fn start(&mut self) -> Result<()> {
        self.file = None;
        let (parquet, path, system) = (is_parquet(&self.path), &self.path, &self.system);
        // a run resumed with the other format starts a new table
        let kept = self.kept.filter(|k| (k & ROWS > 0) == parquet).map(|k| k & !ROWS);
        self.file = Some(if parquet {
            let open = || Dataset::open(path, system.resumed, kept);
            TableFile::Parquet(SharedOutput::open(system, path, open)?)
        } else {
            let kept = kept.map(u64::to_le_bytes);
            TableFile::Csv(RowFile::open(system, path, kept.as_ref().map(|k| &k[..]))?)
        });
        Ok(())
    }

    fn file(&mut self) -> Result<&mut TableFile> {
        self.file.as_mut().ok_or_else(|| Error::Run("the table is not open; call `start` before the first row".into()))
    }

    /// Writes the header of a new table. `blank` is a row of missing values that gives the data types.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written, or if its columns differ.
    pub fn begin<N: AsRef<str>>(&mut self, names: &[N], blank: &[TableValue]) -> Result<()> {
        match self.file()? {
            TableFile::Parquet(d) => d.lock().begin(names, blank),
            TableFile::Csv(f) => f.begin(&line(names)?),
        }
    }

    /// Appends rows; a new table gets the header `names` first.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written, if its columns differ, or if `start` was not called.
    pub fn append<N: AsRef<str>>(&mut self, names: &[N], rows: &[Vec<TableValue>]) -> Result<()> {
        match self.file()? {
            TableFile::Parquet(d) => d.lock().append(names, rows),
            TableFile::Csv(f) => {
                f.begin(&line(names)?)?;
                let rows: Vec<Vec<String>> = rows.iter().map(|r| r.iter().map(TableValue::text).collect()).collect();
                if rows.is_empty() { Ok(()) } else { f.append(&csv_text(&rows)?) }
            }
        }
    }

    /// Writes the rows that are not in the file yet; call this in `finish`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn finish(&mut self) -> Result<()> {
        match &mut self.file {
            Some(TableFile::Parquet(d)) => d.lock().flush(),
            Some(TableFile::Csv(_)) | None => Ok(()),
        }
    }

    /// Syncs the table to the disk and returns its length; call this in `save`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn save(&mut self) -> Result<Vec<u8>> {
        match self.file()? {
            TableFile::Csv(f) => f.save(),
            TableFile::Parquet(d) => {
                let SavedRows { rows, hash } = d.lock().save()?;
                let flag = hash.map_or(0, |_| HASHED);
                Ok([rows | ROWS | flag].into_iter().chain(hash).flat_map(u64::to_le_bytes).collect())
            }
        }
    }

    /// Reads the bytes of `save` off the front of a checkpoint and returns the rest; call this in `load`. An empty state
    /// means that nothing was saved.
    ///
    /// # Errors
    /// Returns an error if the state is too short, or if the table cannot be continued.
    pub fn load<'a>(&mut self, state: &'a [u8]) -> Result<&'a [u8]> {
        if state.is_empty() {
            return Ok(state);
        }
        let word = |state: &'a [u8]| {
            let wrong = || Error::Run("the checkpoint does not match this table".into());
            let (mine, rest) = state.split_first_chunk().ok_or_else(wrong)?;
            Ok::<_, Error>((u64::from_le_bytes(*mine), rest))
        };
        let (saved, mut rest) = word(state)?;
        let mut hash = None;
        if saved & HASHED > 0 {
            let (found, after) = word(rest)?;
            (hash, rest) = (Some(found), after);
        }
        let kept = saved & !HASHED;
        self.kept = Some(kept);
        // a run resumed with the other format starts a new table
        match (kept & ROWS > 0, is_parquet(&self.path)) {
            (true, true) => Dataset::check(&self.path, SavedRows { rows: kept & !ROWS, hash })?,
            (false, false) => check_length(&self.path, kept)?,
            _ => {}
        }
        Ok(rest)
    }
}

/// Returns the header line.
fn line<N: AsRef<str>>(names: &[N]) -> Result<Vec<u8>> {
    csv_text(&[names.iter().map(|n| n.as_ref().into()).collect::<Vec<_>>()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::columns::{Cell, Cells, read};

    fn system(folder: &Path, resumed: bool) -> SystemInfo {
        let directory = folder.to_string_lossy().into_owned();
        SystemInfo { directory, resumed, run: u64::from(resumed), ..SystemInfo::default() }
    }

    #[test]
    fn both_formats_have_the_same_rows() {
        let folder = tempfile::tempdir().expect("a folder");
        let row = |k: u64| vec![k.into(), (k as f64 / 3.0).into(), Cell::from(None::<f64>), "a,b".into()];
        let names = ["step", "x", "y", "what"];
        for file in ["t.csv", "t.parquet"] {
            let mut t = GrowingTable::default();
            assert!(t.append(&names, &[row(1)]).is_err(), "not started");
            t.bind(&system(folder.path(), false), &mut Needs::default(), file);
            t.start().expect("started");
            t.append(&names, &[row(1), row(2)]).expect("written");
            let saved = t.save().expect("saved");
            t.append(&names, &[row(3)]).expect("written");
            t.finish().expect("written");
            let mut t = GrowingTable::default();
            t.bind(&system(folder.path(), true), &mut Needs::default(), file);
            assert_eq!(t.load(&[&saved[..], b"rest"].concat()).expect("loaded"), b"rest");
            // earlier versions saved no hash
            let length = u64::from_le_bytes(saved[..8].try_into().expect("8 bytes")) & !HASHED;
            assert_eq!(t.load(&length.to_le_bytes()).expect("loaded"), b"");
            t.start().expect("started");
            t.begin(&names, &row(0)).expect("the table has rows already");
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
        // a table that is rewritten as a whole
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
