//! Columns of a table, and Parquet files of them.

use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::input;
use parquet::basic::{Compression, ConvertedType, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescriptor, ColumnPath, Type};
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

/// One value of a row. `None` is a missing value; it still has the data type of its column.
#[derive(Clone, Debug, PartialEq)]
pub enum TableValue {
    /// An integer: a step, a count, a tag.
    Int(Option<i64>),
    /// A real number.
    Number(Option<f64>),
    /// A text.
    Text(Option<String>),
}

impl TableValue {
    /// Returns the text for a CSV file: all digits of a number, the empty text for a missing value.
    pub fn text(&self) -> String {
        match self {
            Self::Int(Some(x)) => x.to_string(),
            Self::Number(Some(x)) => format!("{x:?}"),
            Self::Text(Some(x)) => x.clone(),
            Self::Int(None) | Self::Number(None) | Self::Text(None) => String::new(),
        }
    }
}

macro_rules! value_from {
    ($($from:ty => $variant:ident $convert:expr;)+) => {$(
        impl From<$from> for TableValue {
            fn from(x: $from) -> Self {
                Self::$variant(Some($convert(x)))
            }
        }
        impl From<Option<$from>> for TableValue {
            fn from(x: Option<$from>) -> Self {
                Self::$variant(x.map($convert))
            }
        }
    )+};
}
value_from! {
    i64 => Int i64::from;
    u32 => Int i64::from;
    // steps and counts are far below 2⁶³
    u64 => Int |x: u64| x as i64;
    usize => Int |x: usize| x as i64;
    f64 => Number f64::from;
    String => Text String::from;
    &str => Text String::from;
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnValues {
    /// Integers.
    Int(Vec<Option<i64>>),
    /// Real numbers.
    Number(Vec<Option<f64>>),
    /// Texts.
    Text(Vec<Option<String>>),
}

macro_rules! with_values {
    ($values:expr, $v:ident => $do:expr) => {
        match $values {
            ColumnValues::Int($v) => $do,
            ColumnValues::Number($v) => $do,
            ColumnValues::Text($v) => $do,
        }
    };
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableColumn {
    /// Name in the header.
    pub name: String,
    /// Values, one per row.
    pub cells: ColumnValues,
}

// short names that tests and commands use
pub use self::{ColumnValues as Cells, TableColumn as Column, TableValue as Cell};

impl TableColumn {
    /// Makes an empty column with the data type of a value.
    pub fn like(name: &str, value: &TableValue) -> Self {
        let cells = match value {
            TableValue::Int(_) => ColumnValues::Int(vec![]),
            TableValue::Number(_) => ColumnValues::Number(vec![]),
            TableValue::Text(_) => ColumnValues::Text(vec![]),
        };
        Self { name: name.into(), cells }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        with_values!(&self.cells, v => v.len())
    }

    /// Returns whether the column has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether another column has the same name and data type.
    pub fn is_like(&self, other: &Self) -> bool {
        self.name == other.name && std::mem::discriminant(&self.cells) == std::mem::discriminant(&other.cells)
    }

    /// Appends a value. Returns `false` if its data type is not that of the column.
    #[must_use]
    pub fn push(&mut self, value: TableValue) -> bool {
        match (&mut self.cells, value) {
            (ColumnValues::Int(v), TableValue::Int(x)) => v.push(x),
            (ColumnValues::Number(v), TableValue::Number(x)) => v.push(x),
            (ColumnValues::Text(v), TableValue::Text(x)) => v.push(x),
            _ => return false,
        }
        true
    }

    /// Returns the value in a row, if the column is that long.
    pub fn cell(&self, row: usize) -> Option<TableValue> {
        match &self.cells {
            ColumnValues::Int(v) => v.get(row).map(|x| TableValue::Int(*x)),
            ColumnValues::Number(v) => v.get(row).map(|x| TableValue::Number(*x)),
            ColumnValues::Text(v) => v.get(row).map(|x| TableValue::Text(x.clone())),
        }
    }

    /// Keeps the first `rows` values.
    pub fn truncate(&mut self, rows: usize) {
        with_values!(&mut self.cells, v => v.truncate(rows));
    }

    /// Removes the first `rows` values.
    pub fn drop_first(&mut self, rows: usize) {
        with_values!(&mut self.cells, v => drop(v.drain(..rows.min(v.len()))));
    }

    /// Appends the values of a column with the same data type.
    fn extend(&mut self, other: Self) {
        match (&mut self.cells, other.cells) {
            (ColumnValues::Int(v), ColumnValues::Int(w)) => v.extend(w),
            (ColumnValues::Number(v), ColumnValues::Number(w)) => v.extend(w),
            (ColumnValues::Text(v), ColumnValues::Text(w)) => v.extend(w),
            _ => {}
        }
    }

    /// Adds the first `rows` values to a hash. The hash of equal values is the same on every machine.
    pub fn hash_values(&self, rows: usize, hash: u64) -> u64 {
        fn all<T>(values: &[Option<T>], hash: u64, word: impl Fn(&T) -> u64) -> u64 {
            values.iter().fold(hash, |h, v| mixed(mixed(h, u64::from(v.is_some())), v.as_ref().map_or(0, &word)))
        }
        let rows = rows.min(self.len());
        match &self.cells {
            ColumnValues::Int(v) => all(&v[..rows], hash, |x| *x as u64),
            ColumnValues::Number(v) => all(&v[..rows], hash, |x| x.to_bits()),
            ColumnValues::Text(v) => all(&v[..rows], hash, |x| x.bytes().fold(0, |h, b| mixed(h, b.into()))),
        }
    }

    /// Makes a column from texts. Its data type is the first one that parses all of them: integers, real numbers, texts. An
    /// empty text is a missing value.
    pub fn guess(name: &str, texts: &[&str]) -> Self {
        fn all<T>(texts: &[&str], read: impl Fn(&str) -> Option<T>) -> Option<Vec<Option<T>>> {
            texts.iter().map(|t| if t.is_empty() { Some(None) } else { read(t).map(Some) }).collect()
        }
        let some = texts.iter().any(|t| !t.is_empty());
        let cells = match all(texts, |t| t.parse().ok()).filter(|_| some) {
            Some(v) => ColumnValues::Int(v),
            None => match all(texts, |t| t.parse().ok()) {
                Some(v) => ColumnValues::Number(v),
                None => ColumnValues::Text(texts.iter().map(|t| (!t.is_empty()).then(|| (*t).into())).collect()),
            },
        };
        Self { name: name.into(), cells }
    }
}

/// Adds a word to a hash, as FxHash does: fast, and the same in every build, unlike the hash of the standard library.
fn mixed(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
}

/// Returns whether a file name ends in `.parquet`.
pub fn is_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("parquet"))
}

/// Writes rows as a Parquet file and syncs it to the disk.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn write(path: &Path, columns: &[TableColumn], rows: Range<usize>) -> Result<()> {
    let file = File::create(path).map_err(|e| Error::io(path, e))?;
    let file = encode(file, columns, rows).map_err(|e| Error::io(path, e))?;
    file.sync_all().map_err(|e| Error::io(path, e))
}

/// Writes rows in the format Parquet, and returns the output.
///
/// # Errors
/// Returns the error of the output or of the Parquet library.
pub fn encode<W: Write + Send>(out: W, columns: &[TableColumn], rows: Range<usize>) -> Result<W, ParquetError> {
    let (mut fields, mut properties) = (vec![], WriterProperties::builder().set_compression(Compression::SNAPPY));
    for c in columns {
        let (physical, logical) = match &c.cells {
            ColumnValues::Int(_) => (Physical::INT64, None),
            ColumnValues::Number(_) => (Physical::DOUBLE, None),
            ColumnValues::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let field = Type::primitive_type_builder(&c.name, physical).with_repetition(Repetition::OPTIONAL);
        fields.push(Arc::new(field.with_logical_type(logical).build()?));
        // numbers rarely repeat, so a dictionary does not pay; integers (steps) mostly increase
        let path = || ColumnPath::new(vec![c.name.clone()]);
        if physical != Physical::BYTE_ARRAY {
            properties = properties.set_column_dictionary_enabled(path(), false);
        }
        if physical == Physical::INT64 {
            properties = properties.set_column_encoding(path(), Encoding::DELTA_BINARY_PACKED);
        }
    }
    let schema = Type::group_type_builder("schema").with_fields(fields).build()?;
    let mut writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties.build()))?;
    if !rows.is_empty() {
        let mut group = writer.next_row_group()?;
        let mut columns = columns.iter();
        while let (Some(mut out), Some(c)) = (group.next_column()?, columns.next()) {
            fn levels<T>(values: &[Option<T>]) -> Vec<i16> {
                values.iter().map(|v| i16::from(v.is_some())).collect()
            }
            match &c.cells {
                ColumnValues::Int(v) => {
                    let v = &v[rows.clone()];
                    let values: Vec<i64> = v.iter().flatten().copied().collect();
                    out.typed::<Int64Type>().write_batch(&values, Some(&levels(v)), None)?;
                }
                ColumnValues::Number(v) => {
                    let v = &v[rows.clone()];
                    let values: Vec<f64> = v.iter().flatten().copied().collect();
                    out.typed::<DoubleType>().write_batch(&values, Some(&levels(v)), None)?;
                }
                ColumnValues::Text(v) => {
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

thread_local! {
    /// Whether this thread expects a panic.
    static EXPECTS_PANIC: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Calls the Parquet library, which may panic on a damaged file, and turns a panic into an error without a message of its
/// own on the terminal.
fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T, String>) -> Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |info| {
            if !EXPECTS_PANIC.get() {
                others(info);
            }
        }));
    });
    EXPECTS_PANIC.set(true);
    let result = catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err("the Parquet file is damaged".into()));
    EXPECTS_PANIC.set(false);
    result.map_err(|e| Error::io(path, e))
}

fn open(path: &Path) -> Result<SerializedFileReader<File>, String> {
    let file = input::open(path).map_err(|e| e.message)?;
    SerializedFileReader::new(file).map_err(|e| format!("not a complete Parquet file: {e}"))
}

/// Returns the number of rows of a Parquet file.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub fn rows(path: &Path) -> Result<u64> {
    guarded(path, || Ok(open(path)?.metadata().file_metadata().num_rows().max(0) as u64))
}

/// Returns whether a file has the name of a part of a table that this program writes: `part-000000.parquet`.
fn is_part(file: &Path) -> bool {
    let digits = file.file_stem().and_then(|s| s.to_str()).and_then(|s| s.strip_prefix("part-"));
    digits.is_some_and(|d| d.len() >= 6 && d.bytes().all(|b| b.is_ascii_digit()))
}

/// Lists the files of a Parquet table: the file itself, or the Parquet files of a folder sorted by name. Names that begin
/// with a dot or an underscore are ignored, as other readers of such folders do.
///
/// # Errors
/// Returns an error if the folder cannot be read, has no Parquet files, or lacks a part of a table that this program wrote.
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
    if found.is_empty() {
        return Err(Error::io(path, "the folder has no Parquet files"));
    }
    // parts of this program are numbered from 0; the names of other programs are arbitrary
    let parts = found.iter().filter(|f| is_part(f)).count();
    let missing =
        (0..parts).map(|k| format!("part-{k:06}.parquet")).find(|n| found.binary_search(&path.join(n)).is_err());
    match missing {
        Some(name) => Err(Error::io(path, format!("{name} is missing: the table is incomplete; restore this file"))),
        None => Ok(found),
    }
}

/// Reads a Parquet file, or all files of a folder as one table.
///
/// # Errors
/// Returns an error if a file cannot be read, if a column has neither numbers nor texts, or if the files of a folder have
/// different columns.
pub fn read(path: &Path) -> Result<Vec<TableColumn>> {
    let mut all: Option<Vec<TableColumn>> = None;
    for file in files(path)? {
        let part = guarded(&file, || decode(&open(&file)?))?;
        match &mut all {
            None => all = Some(part),
            Some(all) => {
                if all.len() != part.len() || !all.iter().zip(&part).all(|(a, b)| a.is_like(b)) {
                    return Err(Error::io(file, "the columns differ from those of the previous file"));
                }
                all.iter_mut().zip(part).for_each(|(a, b)| a.extend(b));
            }
        }
    }
    Ok(all.unwrap_or_default())
}

fn decode(reader: &SerializedFileReader<File>) -> Result<Vec<TableColumn>, String> {
    let schema = reader.metadata().file_metadata().schema_descr();
    let mut columns: Vec<TableColumn> = schema.columns().iter().map(|c| empty(c)).collect::<Result<_, _>>()?;
    for k in 0..reader.num_row_groups() {
        let group = reader.get_row_group(k).map_err(|e| e.to_string())?;
        let n = usize::try_from(group.metadata().num_rows()).map_err(|e| e.to_string())?;
        for (i, column) in columns.iter_mut().enumerate() {
            let level = schema.column(i).max_def_level();
            let before = column.len();
            let part = group.metadata().column(i);
            // the library panics at such a range, and caught panics still write to the terminal
            let begin = part.dictionary_page_offset().unwrap_or(0).min(part.data_page_offset());
            if begin < 0 || part.compressed_size() < 0 {
                return Err(format!("the Parquet file is damaged: the column `{}` has no valid place", column.name));
            }
            let chunk = group.get_column_reader(i).map_err(|e| e.to_string())?;
            decode_chunk(chunk, n, level, &mut column.cells)?;
            if column.len() != before + n {
                return Err(format!("the Parquet file is damaged: the column `{}` is too short", column.name));
            }
        }
    }
    Ok(columns)
}

/// Appends the `n` values of a column chunk to a column.
fn decode_chunk(chunk: ColumnReader, n: usize, level: i16, to: &mut ColumnValues) -> Result<(), String> {
    use {ColumnReader as R, ColumnValues as V};
    match (chunk, to) {
        (R::Int64ColumnReader(r), V::Int(to)) => read_values(r, n, level, to, |x| Ok(*x)),
        (R::Int32ColumnReader(r), V::Int(to)) => read_values(r, n, level, to, |x| Ok(i64::from(*x))),
        (R::BoolColumnReader(r), V::Int(to)) => read_values(r, n, level, to, |x| Ok(i64::from(*x))),
        (R::DoubleColumnReader(r), V::Number(to)) => read_values(r, n, level, to, |x| Ok(*x)),
        (R::FloatColumnReader(r), V::Number(to)) => read_values(r, n, level, to, |x| Ok(f64::from(*x))),
        (R::ByteArrayColumnReader(r), V::Text(to)) => read_values(r, n, level, to, |x| {
            x.as_utf8().map(String::from).map_err(|_| "the Parquet file has a text that is not UTF-8".into())
        }),
        _ => Err("the Parquet file is damaged: a column has two data types".into()),
    }
}

/// Makes an empty column with the data type of a Parquet column.
fn empty(c: &ColumnDescriptor) -> Result<TableColumn, String> {
    use ConvertedType as C;
    let integers = [C::NONE, C::INT_8, C::INT_16, C::INT_32, C::INT_64, C::UINT_8, C::UINT_16, C::UINT_32, C::UINT_64];
    let (physical, converted) = (c.physical_type(), c.converted_type());
    let cells = match physical {
        _ if c.max_rep_level() > 0 || c.path().parts().len() > 1 => None,
        Physical::INT32 | Physical::INT64 if integers.contains(&converted) => Some(ColumnValues::Int(vec![])),
        Physical::BOOLEAN => Some(ColumnValues::Int(vec![])),
        Physical::FLOAT | Physical::DOUBLE => Some(ColumnValues::Number(vec![])),
        Physical::BYTE_ARRAY if [C::UTF8, C::ENUM, C::JSON].contains(&converted) => Some(ColumnValues::Text(vec![])),
        _ => None,
    };
    let name = c.path().string();
    match cells {
        Some(cells) => Ok(TableColumn { name, cells }),
        None => Err(format!("the column `{name}` has neither numbers nor texts ({physical}, {converted})")),
    }
}

/// Appends the next `n` values of a column reader. Values below the definition level `level` are missing.
fn read_values<D: DataType, T>(
    mut from: ColumnReaderImpl<D>,
    n: usize,
    level: i16,
    to: &mut Vec<Option<T>>,
    convert: impl Fn(&D::T) -> Result<T, String>,
) -> Result<(), String> {
    let (mut levels, mut values) = (vec![], vec![]);
    let (rows, ..) = from.read_records(n, Some(&mut levels), None, &mut values).map_err(|e| e.to_string())?;
    let mut values = values.iter();
    for k in 0..rows {
        let defined = level == 0 || levels.get(k) == Some(&level);
        to.push(if defined { values.next().map(&convert).transpose()? } else { None });
    }
    Ok(())
}
