//! Reads tables that analyzers write: CSV with a header line, or Parquet (a file or a folder of files).

use crate::common::input_error;
use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_measure::columns;
use galamost_plugin_api::error::{Error, Position};
use galamost_plugin_api::input;
use std::path::{Path, PathBuf};

/// The cells of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum SeriesCells {
    /// Numbers; NaN where a cell is empty.
    Numbers(Vec<f64>),
    /// Text.
    Text(Vec<String>),
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesColumn {
    /// Name without the unit.
    pub name: String,
    /// Unit from the header: `name (unit)` or `name [unit]`.
    pub unit: Option<String>,
    /// Cells.
    pub cells: SeriesCells,
}

impl SeriesColumn {
    /// Returns the numbers of a numeric column.
    pub fn numbers(&self) -> Option<&[f64]> {
        match &self.cells {
            SeriesCells::Numbers(v) => Some(v),
            SeriesCells::Text(_) => None,
        }
    }

    /// Returns name and unit, as the label of an axis.
    pub fn label(&self) -> String {
        match &self.unit {
            Some(unit) => format!("{} ({unit})", self.name),
            None => self.name.clone(),
        }
    }
}

/// A table of named columns.
#[derive(Clone, Debug)]
pub struct Series {
    /// The file.
    pub path: PathBuf,
    /// The columns; all have the same number of cells.
    pub columns: Vec<SeriesColumn>,
    /// Whether the last line was incomplete and was ignored.
    pub cut: bool,
}

/// A CSV cell and the column of its first character.
struct CsvCell {
    text: String,
    column: u32,
}

/// Splits a CSV line into cells. Cells that contain commas are quoted.
fn split_line(line: &str) -> Result<Vec<CsvCell>, (u32, String)> {
    let mut out = vec![];
    let mut rest = line.char_indices().zip(1u32..).map(|((_, c), k)| (c, k)).peekable();
    loop {
        let mut cell =
            CsvCell { text: String::new(), column: rest.peek().map_or(line.chars().count() as u32 + 1, |c| c.1) };
        let quoted = rest.next_if(|c| c.0 == '"').is_some();
        let mut closed = !quoted;
        let mut more = false;
        while let Some((c, at)) = rest.next() {
            match c {
                '"' if quoted && !closed => match rest.next_if(|c| c.0 == '"') {
                    Some(_) => cell.text.push('"'),
                    None => closed = true,
                },
                ',' if closed => {
                    more = true;
                    break;
                }
                _ if quoted && closed && !c.is_whitespace() => {
                    return Err((at, "text after the closing quote of a quoted cell".into()));
                }
                c => cell.text.push(c),
            }
        }
        if !closed {
            return Err((cell.column, "missing closing quote".into()));
        }
        cell.text = cell.text.trim().into();
        out.push(cell);
        if !more {
            return Ok(out);
        }
    }
}

/// Parses a number; an empty cell is NaN.
fn number(text: &str) -> Option<f64> {
    match text {
        "" => Some(f64::NAN),
        // `f64` would accept these names
        "infinity" | "Infinity" | "-infinity" | "-Infinity" => None,
        t => t.parse().ok(),
    }
}

/// Splits a header cell into name and unit.
fn name_and_unit(text: &str) -> (String, Option<String>) {
    for (open, close) in [('(', ')'), ('[', ']')] {
        if let Some(inner) = text.strip_suffix(close)
            && let Some((name, unit)) = inner.rsplit_once(open)
            && !name.trim().is_empty()
            && name.ends_with(' ')
        {
            return (name.trim().into(), Some(unit.trim().into()));
        }
    }
    (text.into(), None)
}

/// Returns a column from its header and its cells, which are in the given lines.
fn column(header: &CsvCell, cells: Vec<CsvCell>, lines: &[u32]) -> Result<SeriesColumn, (Option<Position>, String)> {
    let (name, unit) = name_and_unit(&header.text);
    // the first nonempty cell determines whether the column is numeric; a text above nothing but numbers is a mistake
    let mut filled = cells.iter().filter(|c| !c.text.is_empty());
    let starts_with_number = filled.next().is_none_or(|c| number(&c.text).is_some());
    let others: Vec<&CsvCell> = filled.collect();
    let cells = if starts_with_number || others.len() > 1 && others.iter().all(|c| number(&c.text).is_some()) {
        let one = |(c, line): (&CsvCell, &u32)| {
            number(&c.text).ok_or_else(|| {
                let at = Position { line: *line, column: c.column };
                (Some(at), format!("`{}` is not a number, but the column is numeric", c.text))
            })
        };
        SeriesCells::Numbers(cells.iter().zip(lines).map(one).collect::<Result<_, _>>()?)
    } else {
        SeriesCells::Text(cells.into_iter().map(|c| c.text).collect())
    };
    Ok(SeriesColumn { name, unit, cells })
}

/// Returns whether a table is Parquet (a file or a folder), judging by its name.
pub fn is_parquet(path: &Path) -> bool {
    columns::is_parquet(path)
}

/// Reads the columns of a Parquet table.
///
/// # Errors
/// Returns an error if the table cannot be read.
pub fn read_parquet(path: &Path) -> Result<Vec<columns::Column>, Failure> {
    columns::read(path).map_err(|e| {
        let (file, what) = match e {
            Error::Io { path, message } => (path, message),
            other => (path.into(), other.to_string()),
        };
        input_error(&file, what)
    })
}

/// Returns the size of a file, or of all files of a Parquet folder, in bytes.
///
/// # Errors
/// Returns an error if a file cannot be accessed.
pub fn size_on_disk(path: &Path) -> std::io::Result<u64> {
    let metadata = path.metadata()?;
    if !metadata.is_dir() {
        return Ok(metadata.len());
    }
    let files = columns::files(path).unwrap_or_default();
    files.iter().map(|f| f.metadata().map(|m| m.len())).sum()
}

impl Series {
    /// Reads a CSV file or a Parquet table.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is invalid, with line and column.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let fail = |at, m: String| Failure::Input(vec![Diagnostic::new(path, at, m)]);
        if is_parquet(path) {
            return Self::of_parquet(path);
        }
        let text = input::text(path).map_err(|e| fail(e.at, e.message))?;
        Self::parse(path, &text).map_err(|(at, m)| fail(at, m))
    }

    /// Reads a Parquet table.
    fn of_parquet(path: &Path) -> Result<Self, Failure> {
        let columns = read_parquet(path)?.into_iter().map(|c| {
            let cells = match c.cells {
                columns::Cells::Int(v) => {
                    SeriesCells::Numbers(v.into_iter().map(|x| x.map_or(f64::NAN, |x| x as f64)).collect())
                }
                columns::Cells::Number(v) => {
                    SeriesCells::Numbers(v.into_iter().map(|x| x.unwrap_or(f64::NAN)).collect())
                }
                columns::Cells::Text(v) => SeriesCells::Text(v.into_iter().map(Option::unwrap_or_default).collect()),
            };
            let (name, unit) = name_and_unit(&c.name);
            SeriesColumn { name, unit, cells }
        });
        Ok(Self { path: path.into(), columns: columns.collect(), cut: false })
    }

    /// Parses CSV text.
    ///
    /// # Errors
    /// Returns position and message of the first error.
    pub fn parse(path: &Path, text: &str) -> Result<Self, (Option<Position>, String)> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let complete = text.is_empty() || text.ends_with('\n');
        let mut lines =
            text.lines().zip(1u32..).filter(|(l, _)| !l.trim().is_empty() && !l.starts_with('#')).peekable();
        let at = |line, column| Some(Position { line, column });
        let Some((head, first)) = lines.next() else {
            return Err((None, "empty file: expected a header line and rows of numbers".into()));
        };
        let names = split_line(head).map_err(|(c, m)| (at(first, c), m))?;
        if names.iter().all(|n| number(&n.text).is_some()) {
            return Err((at(first, 1), "the first line contains numbers: expected the names of the columns".into()));
        }
        if let [one] = &names[..]
            && let Some(separator) = [';', '\t'].into_iter().find(|s| one.text.contains(*s))
        {
            let name = if separator == ';' { "semicolons" } else { "tabs" };
            return Err((at(first, 1), format!("the columns are separated by {name}; separate them by commas")));
        }
        for (k, n) in names.iter().enumerate() {
            if names[..k].iter().any(|o| o.text == n.text) {
                return Err((at(first, n.column), format!("duplicate column `{}`", n.text)));
            }
        }
        let mut columns: Vec<Vec<CsvCell>> = names.iter().map(|_| vec![]).collect();
        let mut line_numbers = vec![];
        let mut cut = false;
        while let Some((line, n)) = lines.next() {
            let last = !complete && lines.peek().is_none();
            let row = match split_line(line) {
                Ok(row) if row.len() == names.len() => row,
                // a running simulation is still writing this line
                _ if last => {
                    cut = true;
                    break;
                }
                Err((c, m)) => return Err((at(n, c), m)),
                Ok(row) => {
                    let column = row.get(names.len()).map_or(line.chars().count() as u32 + 1, |c| c.column);
                    return Err((at(n, column), format!("{} cells in a table of {} columns", row.len(), names.len())));
                }
            };
            if last {
                // the last number may be incomplete
                cut = true;
                break;
            }
            line_numbers.push(n);
            columns.iter_mut().zip(row).for_each(|(list, cell)| list.push(cell));
        }
        let column = |(name, cells)| column(name, cells, &line_numbers);
        let columns = names.iter().zip(columns).map(column).collect::<Result<_, _>>()?;
        Ok(Self { path: path.into(), columns, cut })
    }

    /// Logs a warning if the last line was left out.
    pub fn warn_if_cut(&self) {
        if self.cut {
            tracing::warn!(
                "{}: the last line has no line break and was left out; a run may be writing it",
                self.path.display()
            );
        }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |c| match &c.cells {
            SeriesCells::Numbers(v) => v.len(),
            SeriesCells::Text(v) => v.len(),
        })
    }

    /// Finds a column by its name or label.
    pub fn find(&self, name: &str) -> Option<&SeriesColumn> {
        self.columns.iter().find(|c| c.name == name || c.label() == name)
    }

    /// Returns the names in a list separated by commas, or the text if it is the name of a column, which may contain commas.
    pub fn names_in(&self, text: &str) -> Vec<String> {
        match self.find(text) {
            Some(_) => vec![text.into()],
            None => text.split(',').map(|name| name.trim().to_string()).collect(),
        }
    }

    /// Finds a numeric column by its name or label.
    ///
    /// # Errors
    /// Returns an error if there is no such column or it is not numeric.
    pub fn numeric_column(&self, name: &str) -> Result<&SeriesColumn, Failure> {
        let fail = |m: String| input_error(&self.path, m);
        match self.find(name) {
            Some(c) if c.numbers().is_some() => Ok(c),
            Some(_) => Err(fail(format!("the column `{name}` contains text, not numbers"))),
            None => {
                let names = self.columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>();
                Err(fail(format!("unknown column `{name}`; {}", galamost_engine::pipeline::suggestion(name, names))))
            }
        }
    }

    /// Returns the column `step` of a table that begins with it and has several rows per step.
    fn repeated_steps(&self) -> Option<&[f64]> {
        let steps = self.columns.first().filter(|c| c.name == "step").and_then(SeriesColumn::numbers)?;
        steps.windows(2).any(|w| w[0] == w[1]).then_some(steps)
    }

    /// Returns whether the table has several rows per step, as profiles have.
    pub fn repeats_steps(&self) -> bool {
        self.repeated_steps().is_some()
    }

    /// If the table has several rows per step, keeps the rows of the given or the last step and returns that step.
    ///
    /// # Errors
    /// Returns an error if the table does not contain the step.
    pub fn at_step(&mut self, step: Option<f64>) -> Result<Option<f64>, Failure> {
        let Some(steps) = self.repeated_steps() else { return Ok(None) };
        let Some(last) = steps.last().copied() else { return Ok(None) };
        let step = step.unwrap_or(last);
        let kept: Vec<bool> = steps.iter().map(|s| *s == step).collect();
        if !kept.contains(&true) {
            return Err(input_error(&self.path, format!("no step {step}; the last step is {last}")));
        }
        for c in &mut self.columns {
            let mut keep = kept.iter();
            match &mut c.cells {
                SeriesCells::Numbers(v) => v.retain(|_| keep.next() == Some(&true)),
                SeriesCells::Text(v) => v.retain(|_| keep.next() == Some(&true)),
            }
        }
        Ok(Some(step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Series, (Option<Position>, String)> {
        Series::parse("x.csv".as_ref(), text)
    }

    #[test]
    fn a_table_is_read() {
        let s = parse("# made by hand\nstep,r (nm),\"a,b\",what\n1,0.5,-1e3,born\n2,,NaN,died\n").expect("a table");
        assert_eq!(s.rows(), 2);
        assert_eq!((s.columns[1].label(), s.columns[1].unit.clone()), ("r (nm)".into(), Some("nm".into())));
        assert_eq!(s.numeric_column("a,b").expect("a column").numbers().expect("numbers")[0], -1e3);
        assert!(s.columns[1].numbers().expect("numbers")[1].is_nan() && s.columns[3].numbers().is_none());
        assert!(s.numeric_column("what").is_err() && s.numeric_column("where").is_err() && !s.cut);
    }

    #[test]
    fn an_incomplete_last_line_is_ignored() {
        for end in ["3,", "3,4", "\"3"] {
            let s = parse(&format!("a,b\n1,2\n{end}")).expect("a table");
            assert_eq!((s.rows(), s.cut), (1, true), "{end}");
        }
    }

    #[test]
    fn errors_have_a_position() {
        for (text, line, column, words) in [
            ("a,b\n1,2\n3,x\n4,5\n", 3, 3, "`x` is not a number"),
            ("a,b\n1,x\n3,2\n4,5\n", 2, 3, "`x` is not a number"),
            ("a,b\n1,2,3\n", 2, 5, "3 cells in a table of 2 columns"),
            ("a,b\n1\n2,3\n", 2, 2, "1 cells"),
            ("1,2\n3,4\n", 1, 1, "expected the names"),
            ("a,a\n3,4\n", 1, 3, "duplicate column `a`"),
            ("a,b\n\"1,2\n", 2, 1, "quote"),
            ("a,b\n\"1\"2,2\n", 2, 4, "quoted"),
        ] {
            let (at, message) = parse(text).expect_err(text);
            assert_eq!(at, Some(Position { line, column }), "{text}: {message}");
            assert!(message.contains(words), "{message}");
        }
        assert!(parse("").is_err() && parse("\n# nothing\n").is_err());
    }

    #[test]
    fn the_last_step_of_a_profile_is_selected() {
        let mut s = parse("step,z,n\n0,1,5\n0,2,6\n10,1,7\n10,2,8\n").expect("a table");
        assert_eq!(s.at_step(None).expect("a step"), Some(10.0));
        assert_eq!(s.columns[2].numbers(), Some([7.0, 8.0].as_slice()));
        let mut s = parse("step,kT\n0,1\n10,1\n").expect("a table");
        assert_eq!(s.at_step(None).expect("none"), None);
    }
}
