//! Tables as analyzers write them: CSV, a line of names and then rows, or Parquet, a file or a folder of files.

use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_measure::columns;
use galamost_plugin_api::error::{Error, Position};
use std::path::{Path, PathBuf};

/// What a column has.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells {
    /// Numbers; NaN where a cell is empty.
    Numbers(Vec<f64>),
    /// Words.
    Words(Vec<String>),
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name, without the unit.
    pub name: String,
    /// The unit, if the header has one: `name (unit)` or `name [unit]`.
    pub unit: Option<String>,
    /// Its cells.
    pub cells: Cells,
}

impl Column {
    /// The numbers, if it has any.
    pub fn numbers(&self) -> Option<&[f64]> {
        match &self.cells {
            Cells::Numbers(v) => Some(v),
            Cells::Words(_) => None,
        }
    }

    /// Name and unit for an axis.
    pub fn label(&self) -> String {
        match &self.unit {
            Some(unit) => format!("{} ({unit})", self.name),
            None => self.name.clone(),
        }
    }
}

/// A table.
#[derive(Clone, Debug)]
pub struct Series {
    /// The file.
    pub path: PathBuf,
    /// Its columns; all have the same number of cells.
    pub columns: Vec<Column>,
    /// Whether the last line was still being written, and was left out.
    pub cut: bool,
}

/// A cell and the column of its first character.
struct Cell {
    text: String,
    column: u32,
}

/// Cells of a line: separated by commas, quoted where they contain commas.
fn cells(line: &str) -> Result<Vec<Cell>, (u32, String)> {
    let mut out = vec![];
    let mut rest = line.char_indices().zip(1u32..).map(|((_, c), k)| (c, k)).peekable();
    loop {
        let mut cell =
            Cell { text: String::new(), column: rest.peek().map_or(line.chars().count() as u32 + 1, |c| c.1) };
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
                    return Err((at, "a quoted cell ends before this".into()));
                }
                c => cell.text.push(c),
            }
        }
        if !closed {
            return Err((cell.column, "a quote without its end".into()));
        }
        cell.text = cell.text.trim().into();
        out.push(cell);
        if !more {
            return Ok(out);
        }
    }
}

/// A number as programs write it.
fn number(text: &str) -> Option<f64> {
    match text {
        "" => Some(f64::NAN),
        // words that are no numbers to a reader of tables
        "infinity" | "Infinity" | "-infinity" | "-Infinity" => None,
        t => t.parse().ok(),
    }
}

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

/// Whether a table is Parquet: by its name, for a file or a folder.
pub fn is_parquet(path: &Path) -> bool {
    columns::is_parquet(path)
}

/// The columns of a Parquet table.
///
/// # Errors
/// It cannot be read.
pub fn parquet(path: &Path) -> Result<Vec<columns::Column>, Failure> {
    columns::read(path).map_err(|e| {
        let (file, what) = match e {
            Error::Io { path, message } => (path, message),
            other => (path.into(), other.to_string()),
        };
        Failure::Input(vec![Diagnostic::new(&file, None, what)])
    })
}

/// Bytes of a file, or of the files of a Parquet table that is a folder.
pub fn bytes(path: &Path) -> std::io::Result<u64> {
    let about = path.metadata()?;
    if !about.is_dir() {
        return Ok(about.len());
    }
    let files = columns::files(path).unwrap_or_default();
    files.iter().map(|f| f.metadata().map(|m| m.len())).sum()
}

impl Series {
    /// Reads a file, or the folder of a Parquet table.
    ///
    /// # Errors
    /// It cannot be read, or what is wrong with it, with line and column.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let fail = |at, m: String| Failure::Input(vec![Diagnostic::new(path, at, m)]);
        if is_parquet(path) {
            return Self::of_parquet(path);
        }
        let bytes = std::fs::read(path).map_err(|e| fail(None, format!("cannot be read: {e}")))?;
        let text = String::from_utf8(bytes).map_err(|e| {
            let good = &e.as_bytes()[..e.utf8_error().valid_up_to()];
            let line = good.iter().filter(|b| **b == b'\n').count() as u32 + 1;
            let column = String::from_utf8_lossy(good).lines().last().map_or(0, |l| l.chars().count()) as u32 + 1;
            fail(Some(Position { line, column }), "is no text: a byte that is not UTF-8".into())
        })?;
        Self::parse(path, &text).map_err(|(at, m)| fail(at, m))
    }

    fn of_parquet(path: &Path) -> Result<Self, Failure> {
        let columns = parquet(path)?.into_iter().map(|c| {
            let cells = match c.cells {
                columns::Cells::Int(v) => {
                    Cells::Numbers(v.into_iter().map(|x| x.map_or(f64::NAN, |x| x as f64)).collect())
                }
                columns::Cells::Number(v) => Cells::Numbers(v.into_iter().map(|x| x.unwrap_or(f64::NAN)).collect()),
                columns::Cells::Text(v) => Cells::Words(v.into_iter().map(Option::unwrap_or_default).collect()),
            };
            let (name, unit) = name_and_unit(&c.name);
            Column { name, unit, cells }
        });
        Ok(Self { path: path.into(), columns: columns.collect(), cut: false })
    }

    /// Reads a text.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn parse(path: &Path, text: &str) -> Result<Self, (Option<Position>, String)> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let whole = text.is_empty() || text.ends_with('\n');
        let mut lines =
            text.lines().zip(1u32..).filter(|(l, _)| !l.trim().is_empty() && !l.starts_with('#')).peekable();
        let at = |line, column| Some(Position { line, column });
        let Some((head, first)) = lines.next() else {
            return Err((None, "is empty: wanted a line of names and rows of numbers".into()));
        };
        let names = cells(head).map_err(|(c, m)| (at(first, c), m))?;
        if names.iter().all(|n| number(&n.text).is_some()) {
            return Err((at(first, 1), "the first line has numbers: wanted the names of the columns".into()));
        }
        for (k, n) in names.iter().enumerate() {
            if names[..k].iter().any(|o| o.text == n.text) {
                return Err((at(first, n.column), format!("there are two columns `{}`", n.text)));
            }
        }
        let mut columns: Vec<Vec<Cell>> = names.iter().map(|_| vec![]).collect();
        let mut numbers = vec![];
        let mut cut = false;
        while let Some((line, n)) = lines.next() {
            let last = !whole && lines.peek().is_none();
            let row = match cells(line) {
                Ok(row) if row.len() == names.len() => row,
                // a run is writing it
                _ if last => {
                    cut = true;
                    break;
                }
                Err((c, m)) => return Err((at(n, c), m)),
                Ok(row) => {
                    let column = row.get(names.len()).map_or(line.chars().count() as u32 + 1, |c| c.column);
                    return Err((at(n, column), format!("{} cells, but there are {} columns", row.len(), names.len())));
                }
            };
            if last {
                // the last number may lack digits
                cut = true;
                break;
            }
            numbers.push(n);
            columns.iter_mut().zip(row).for_each(|(list, cell)| list.push(cell));
        }
        let column = |(name, list): (&Cell, Vec<Cell>)| {
            let (name, unit) = name_and_unit(&name.text);
            // the first cell that is not empty says what the column has
            let first = list.iter().find(|c| !c.text.is_empty());
            let cells = if first.is_none_or(|c| number(&c.text).is_some()) {
                let one = |(c, line): (&Cell, &u32)| {
                    number(&c.text).ok_or_else(|| {
                        (at(*line, c.column), format!("`{}` is no number, as the cells above it are", c.text))
                    })
                };
                Cells::Numbers(list.iter().zip(&numbers).map(one).collect::<Result<_, _>>()?)
            } else {
                Cells::Words(list.into_iter().map(|c| c.text).collect())
            };
            Ok::<Column, (Option<Position>, String)>(Column { name, unit, cells })
        };
        let columns = names.iter().zip(columns).map(column).collect::<Result<_, _>>()?;
        Ok(Self { path: path.into(), columns, cut })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |c| match &c.cells {
            Cells::Numbers(v) => v.len(),
            Cells::Words(v) => v.len(),
        })
    }

    /// A column by its name.
    pub fn find(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name == name || c.label() == name)
    }

    /// A column of numbers by its name.
    ///
    /// # Errors
    /// There is none; the message has the names there are.
    pub fn wanted(&self, name: &str) -> Result<&Column, Failure> {
        let fail = |m: String| Failure::Input(vec![Diagnostic::new(&self.path, None, m)]);
        match self.find(name) {
            Some(c) if c.numbers().is_some() => Ok(c),
            Some(_) => Err(fail(format!("the column `{name}` has words, not numbers"))),
            None => {
                let names = self.columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>();
                Err(fail(format!(
                    "there is no column `{name}`; {}",
                    galamost_engine::pipeline::suggestion(name, names)
                )))
            }
        }
    }

    /// The rows of one step, if the table has several rows for each: the last step, or the given one.
    ///
    /// # Errors
    /// The table has no such step.
    pub fn at_step(&mut self, step: Option<f64>) -> Result<Option<f64>, Failure> {
        let Some(steps) = self.columns.first().filter(|c| c.name == "step").and_then(Column::numbers) else {
            return Ok(None);
        };
        if !steps.windows(2).any(|w| w[0] == w[1]) {
            return Ok(None);
        }
        let Some(last) = steps.last().copied() else { return Ok(None) };
        let step = step.unwrap_or(last);
        let kept: Vec<bool> = steps.iter().map(|s| *s == step).collect();
        if !kept.contains(&true) {
            let m = format!("there is no step {step}; the last one is {last}");
            return Err(Failure::Input(vec![Diagnostic::new(&self.path, None, m)]));
        }
        for c in &mut self.columns {
            let mut keep = kept.iter();
            match &mut c.cells {
                Cells::Numbers(v) => v.retain(|_| keep.next() == Some(&true)),
                Cells::Words(v) => v.retain(|_| keep.next() == Some(&true)),
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
    fn tables_are_read() {
        let s = parse("# made by hand\nstep,r (nm),\"a,b\",what\n1,0.5,-1e3,born\n2,,NaN,died\n").expect("a table");
        assert_eq!(s.rows(), 2);
        assert_eq!((s.columns[1].label(), s.columns[1].unit.clone()), ("r (nm)".into(), Some("nm".into())));
        assert_eq!(s.wanted("a,b").expect("a column").numbers().expect("numbers")[0], -1e3);
        assert!(s.columns[1].numbers().expect("numbers")[1].is_nan() && s.columns[3].numbers().is_none());
        assert!(s.wanted("what").is_err() && s.wanted("where").is_err() && !s.cut);
    }

    #[test]
    fn an_unfinished_line_is_skipped() {
        for end in ["3,", "3,4", "\"3"] {
            let s = parse(&format!("a,b\n1,2\n{end}")).expect("a table");
            assert_eq!((s.rows(), s.cut), (1, true), "{end}");
        }
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, line, column, words) in [
            ("a,b\n1,2\n3,x\n4,5\n", 3, 3, "`x` is no number"),
            ("a,b\n1,2,3\n", 2, 5, "3 cells, but there are 2 columns"),
            ("a,b\n1\n2,3\n", 2, 2, "1 cells"),
            ("1,2\n3,4\n", 1, 1, "wanted the names"),
            ("a,a\n3,4\n", 1, 3, "two columns `a`"),
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
    fn profiles_have_the_last_step() {
        let mut s = parse("step,z,n\n0,1,5\n0,2,6\n10,1,7\n10,2,8\n").expect("a table");
        assert_eq!(s.at_step(None).expect("a step"), Some(10.0));
        assert_eq!(s.columns[2].numbers(), Some([7.0, 8.0].as_slice()));
        let mut s = parse("step,kT\n0,1\n10,1\n").expect("a table");
        assert_eq!(s.at_step(None).expect("none"), None);
    }
}
