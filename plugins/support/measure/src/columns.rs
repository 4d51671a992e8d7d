//! Columns of a table, and Parquet files of them.

use galamost_plugin_api::error::{Error, Result};
use parquet::basic::{Compression, ConvertedType, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescriptor, ColumnPath, Type};
use std::fs::File;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A cell of a row. It is empty where there is no value, and still of the kind of its column.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A whole number: a step, a count, a tag.
    Int(Option<i64>),
    /// A number.
    Number(Option<f64>),
    /// A word.
    Text(Option<String>),
}

impl Cell {
    /// What a CSV file has for it: all digits of a number, nothing for an empty cell.
    pub fn text(&self) -> String {
        match self {
            Self::Int(Some(x)) => x.to_string(),
            Self::Number(Some(x)) => format!("{x:?}"),
            Self::Text(Some(x)) => x.clone(),
            Self::Int(None) | Self::Number(None) | Self::Text(None) => String::new(),
        }
    }
}

macro_rules! cell_from {
    ($($from:ty => $kind:ident $make:expr;)+) => {$(
        impl From<$from> for Cell {
            fn from(x: $from) -> Self {
                Self::$kind(Some($make(x)))
            }
        }
        impl From<Option<$from>> for Cell {
            fn from(x: Option<$from>) -> Self {
                Self::$kind(x.map($make))
            }
        }
    )+};
}
cell_from! {
    i64 => Int i64::from;
    u32 => Int i64::from;
    // steps and counts are far below 2⁶³
    u64 => Int |x: u64| x as i64;
    usize => Int |x: usize| x as i64;
    f64 => Number f64::from;
    String => Text String::from;
    &str => Text String::from;
}

/// Cells of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells {
    /// Whole numbers.
    Int(Vec<Option<i64>>),
    /// Numbers.
    Number(Vec<Option<f64>>),
    /// Words.
    Text(Vec<Option<String>>),
}

macro_rules! each {
    ($cells:expr, $v:ident => $do:expr) => {
        match $cells {
            Cells::Int($v) => $do,
            Cells::Number($v) => $do,
            Cells::Text($v) => $do,
        }
    };
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its cells.
    pub cells: Cells,
}

impl Column {
    /// A column without cells, of the kind of this one.
    pub fn like(name: &str, cell: &Cell) -> Self {
        let cells = match cell {
            Cell::Int(_) => Cells::Int(vec![]),
            Cell::Number(_) => Cells::Number(vec![]),
            Cell::Text(_) => Cells::Text(vec![]),
        };
        Self { name: name.into(), cells }
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        each!(&self.cells, v => v.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether another column has its name and kind.
    pub fn is_like(&self, other: &Self) -> bool {
        self.name == other.name && std::mem::discriminant(&self.cells) == std::mem::discriminant(&other.cells)
    }

    /// Adds a cell; `false` if it is of another kind.
    #[must_use]
    pub fn push(&mut self, cell: Cell) -> bool {
        match (&mut self.cells, cell) {
            (Cells::Int(v), Cell::Int(x)) => v.push(x),
            (Cells::Number(v), Cell::Number(x)) => v.push(x),
            (Cells::Text(v), Cell::Text(x)) => v.push(x),
            _ => return false,
        }
        true
    }

    /// A cell.
    pub fn cell(&self, row: usize) -> Option<Cell> {
        match &self.cells {
            Cells::Int(v) => v.get(row).map(|x| Cell::Int(*x)),
            Cells::Number(v) => v.get(row).map(|x| Cell::Number(*x)),
            Cells::Text(v) => v.get(row).map(|x| Cell::Text(x.clone())),
        }
    }

    /// Keeps the first cells.
    pub fn truncate(&mut self, rows: usize) {
        each!(&mut self.cells, v => v.truncate(rows));
    }

    /// Takes the first cells off.
    pub fn drop_first(&mut self, rows: usize) {
        each!(&mut self.cells, v => drop(v.drain(..rows.min(v.len()))));
    }

    /// Adds the cells of a column that is like this one.
    fn extend(&mut self, other: Self) {
        match (&mut self.cells, other.cells) {
            (Cells::Int(v), Cells::Int(w)) => v.extend(w),
            (Cells::Number(v), Cells::Number(w)) => v.extend(w),
            (Cells::Text(v), Cells::Text(w)) => v.extend(w),
            _ => {}
        }
    }

    /// A column of texts, of the kind that all of them read as: whole numbers, else numbers, else words; an empty text is an
    /// empty cell.
    pub fn guess(name: &str, texts: &[&str]) -> Self {
        fn all<T>(texts: &[&str], read: impl Fn(&str) -> Option<T>) -> Option<Vec<Option<T>>> {
            texts.iter().map(|t| if t.is_empty() { Some(None) } else { read(t).map(Some) }).collect()
        }
        let some = texts.iter().any(|t| !t.is_empty());
        let cells = match all(texts, |t| t.parse().ok()).filter(|_| some) {
            Some(v) => Cells::Int(v),
            None => match all(texts, |t| t.parse().ok()) {
                Some(v) => Cells::Number(v),
                None => Cells::Text(texts.iter().map(|t| (!t.is_empty()).then(|| (*t).into())).collect()),
            },
        };
        Self { name: name.into(), cells }
    }
}

/// Whether the name of a file asks for Parquet.
pub fn is_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("parquet"))
}

/// Writes rows as a Parquet file that is on the disk when this returns.
///
/// # Errors
/// The system's words.
pub fn write(path: &Path, columns: &[Column], rows: Range<usize>) -> Result<()> {
    let file = File::create(path).map_err(|e| Error::io(path, e))?;
    let file = encode(file, columns, rows).map_err(|e| Error::io(path, e))?;
    file.sync_all().map_err(|e| Error::io(path, e))
}

fn encode(file: File, columns: &[Column], rows: Range<usize>) -> Result<File, ParquetError> {
    let (mut fields, mut properties) = (vec![], WriterProperties::builder().set_compression(Compression::SNAPPY));
    for c in columns {
        let (physical, logical) = match &c.cells {
            Cells::Int(_) => (Physical::INT64, None),
            Cells::Number(_) => (Physical::DOUBLE, None),
            Cells::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let field = Type::primitive_type_builder(&c.name, physical).with_repetition(Repetition::OPTIONAL);
        fields.push(Arc::new(field.with_logical_type(logical).build()?));
        // few numbers come twice, and whole numbers mostly rise
        let place = || ColumnPath::new(vec![c.name.clone()]);
        if physical != Physical::BYTE_ARRAY {
            properties = properties.set_column_dictionary_enabled(place(), false);
        }
        if physical == Physical::INT64 {
            properties = properties.set_column_encoding(place(), Encoding::DELTA_BINARY_PACKED);
        }
    }
    let schema = Type::group_type_builder("schema").with_fields(fields).build()?;
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties.build()))?;
    if !rows.is_empty() {
        let mut group = writer.next_row_group()?;
        let mut columns = columns.iter();
        while let (Some(mut out), Some(c)) = (group.next_column()?, columns.next()) {
            fn levels<T>(cells: &[Option<T>]) -> Vec<i16> {
                cells.iter().map(|c| i16::from(c.is_some())).collect()
            }
            match &c.cells {
                Cells::Int(v) => {
                    let v = &v[rows.clone()];
                    let values: Vec<i64> = v.iter().flatten().copied().collect();
                    out.typed::<Int64Type>().write_batch(&values, Some(&levels(v)), None)?;
                }
                Cells::Number(v) => {
                    let v = &v[rows.clone()];
                    let values: Vec<f64> = v.iter().flatten().copied().collect();
                    out.typed::<DoubleType>().write_batch(&values, Some(&levels(v)), None)?;
                }
                Cells::Text(v) => {
                    let v = &v[rows.clone()];
                    let values: Vec<ByteArray> = v.iter().flatten().map(|t| ByteArray::from(t.as_str())).collect();
                    out.typed::<ByteArrayType>().write_batch(&values, Some(&levels(v)), None)?;
                }
            }
            out.close()?;
        }
        group.close()?;
    }
    writer.into_inner()
}

/// Calls into the library, which may stumble over a damaged file.
fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T, String>) -> Result<T> {
    let what = catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err("is damaged".into()));
    what.map_err(|e| Error::io(path, e))
}

fn open(path: &Path) -> Result<SerializedFileReader<File>, String> {
    let file = File::open(path).map_err(|e| e.to_string())?;
    SerializedFileReader::new(file).map_err(|e| format!("is no whole Parquet file: {e}"))
}

/// Number of rows of a Parquet file.
///
/// # Errors
/// It cannot be read.
pub fn rows(path: &Path) -> Result<u64> {
    guarded(path, || Ok(open(path)?.metadata().file_metadata().num_rows().max(0) as u64))
}

/// Files of a Parquet table: itself, or those of a folder, in the order of their names. As for other readers of such
/// folders, names that begin with a dot or an underscore do not count.
///
/// # Errors
/// The system's words, or the folder has none.
pub fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.into()]);
    }
    let failed = |e: std::io::Error| Error::io(path, e);
    let mut found = vec![];
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        let hidden = file
            .file_name()
            .is_none_or(|n| n.as_encoded_bytes().starts_with(b".") || n.as_encoded_bytes().starts_with(b"_"));
        if !hidden && is_parquet(&file) {
            found.push(file);
        }
    }
    found.sort();
    if found.is_empty() { Err(Error::io(path, "is a folder without Parquet files")) } else { Ok(found) }
}

/// Reads a Parquet file, or all of a folder as one table.
///
/// # Errors
/// It cannot be read, has columns that are neither numbers nor texts, or files of a folder have different columns.
pub fn read(path: &Path) -> Result<Vec<Column>> {
    let mut all: Option<Vec<Column>> = None;
    for file in files(path)? {
        let part = guarded(&file, || decode(&open(&file)?))?;
        match &mut all {
            None => all = Some(part),
            Some(all) => {
                if all.len() != part.len() || !all.iter().zip(&part).all(|(a, b)| a.is_like(b)) {
                    return Err(Error::io(file, "has other columns than the file before it"));
                }
                all.iter_mut().zip(part).for_each(|(a, b)| a.extend(b));
            }
        }
    }
    Ok(all.unwrap_or_default())
}

fn decode(reader: &SerializedFileReader<File>) -> Result<Vec<Column>, String> {
    let schema = reader.metadata().file_metadata().schema_descr();
    let mut columns: Vec<Column> = schema.columns().iter().map(|c| empty(c)).collect::<Result<_, _>>()?;
    for k in 0..reader.num_row_groups() {
        let group = reader.get_row_group(k).map_err(|e| e.to_string())?;
        let n = usize::try_from(group.metadata().num_rows()).map_err(|e| e.to_string())?;
        for (i, column) in columns.iter_mut().enumerate() {
            let level = schema.column(i).max_def_level();
            let from = group.get_column_reader(i).map_err(|e| e.to_string())?;
            let before = column.len();
            match (from, &mut column.cells) {
                (ColumnReader::Int64ColumnReader(r), Cells::Int(to)) => take(r, n, level, to, |x| Ok(*x)),
                (ColumnReader::Int32ColumnReader(r), Cells::Int(to)) => take(r, n, level, to, |x| Ok(i64::from(*x))),
                (ColumnReader::BoolColumnReader(r), Cells::Int(to)) => take(r, n, level, to, |x| Ok(i64::from(*x))),
                (ColumnReader::DoubleColumnReader(r), Cells::Number(to)) => take(r, n, level, to, |x| Ok(*x)),
                (ColumnReader::FloatColumnReader(r), Cells::Number(to)) => take(r, n, level, to, |x| Ok(f64::from(*x))),
                (ColumnReader::ByteArrayColumnReader(r), Cells::Text(to)) => take(r, n, level, to, |x| {
                    x.as_utf8().map(String::from).map_err(|_| "has a text that is not UTF-8".into())
                }),
                _ => Err("is damaged: a column has two types".into()),
            }?;
            if column.len() != before + n {
                return Err(format!("is damaged: the column `{}` is too short", column.name));
            }
        }
    }
    Ok(columns)
}

/// A column without cells, if it is of a kind that tables have.
fn empty(c: &ColumnDescriptor) -> Result<Column, String> {
    use ConvertedType as C;
    let whole = [C::NONE, C::INT_8, C::INT_16, C::INT_32, C::INT_64, C::UINT_8, C::UINT_16, C::UINT_32, C::UINT_64];
    let (physical, converted) = (c.physical_type(), c.converted_type());
    let cells = match physical {
        _ if c.max_rep_level() > 0 || c.path().parts().len() > 1 => None,
        Physical::INT32 | Physical::INT64 if whole.contains(&converted) => Some(Cells::Int(vec![])),
        Physical::BOOLEAN => Some(Cells::Int(vec![])),
        Physical::FLOAT | Physical::DOUBLE => Some(Cells::Number(vec![])),
        Physical::BYTE_ARRAY if [C::UTF8, C::ENUM, C::JSON].contains(&converted) => Some(Cells::Text(vec![])),
        _ => None,
    };
    let name = c.path().string();
    match cells {
        Some(cells) => Ok(Column { name, cells }),
        None => Err(format!("the column `{name}` has neither numbers nor texts ({physical}, {converted})")),
    }
}

/// The next n cells of a column.
fn take<D: DataType, T>(
    mut from: ColumnReaderImpl<D>,
    n: usize,
    level: i16,
    to: &mut Vec<Option<T>>,
    make: impl Fn(&D::T) -> Result<T, String>,
) -> Result<(), String> {
    let (mut levels, mut values) = (vec![], vec![]);
    let (rows, ..) = from.read_records(n, Some(&mut levels), None, &mut values).map_err(|e| e.to_string())?;
    let mut values = values.iter();
    for k in 0..rows {
        let there = level == 0 || levels.get(k) == Some(&level);
        to.push(if there { values.next().map(&make).transpose()? } else { None });
    }
    Ok(())
}
