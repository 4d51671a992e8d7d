//! Where the rows of a table come from.

use galamost_plugin_api::error::Position;
use galamost_plugin_api::prelude::*;
use galamost_tables::read::{Choice, read};
use galamost_tables::{Curve, Kind, Rows, Unit};

/// A table as the user gives it, besides the rows themselves.
#[derive(Clone, Debug, PartialEq, Params)]
pub struct FileSource {
    /// A file with the rows: GALAMOST (`<PairPotential>`, `<BondPotential>`, …), VOTCA (`.pot`), LAMMPS table, CSV or plain
    /// columns, told apart by what is in it. Relative paths start at the pipeline's folder.
    file: Option<Spanned<String>>,
    /// The section of a LAMMPS table.
    entry: Option<String>,
    /// Columns of the variable, U and, if there are three, F, from 1. By default the first two; a CSV file with names: those
    /// called U and F.
    columns: Option<Vec<u32>>,
    /// U of each row, if there is no file.
    #[param(unit = "energy")]
    u: Option<Vec<f64>>,
}

impl FileSource {
    /// The rows, read from the file or taken from the lists.
    fn rows(&self, x: Option<&[f64]>, name: &str, at: Position, system: &SystemInfo) -> Result<(Rows, Place)> {
        let here = Place { file: None, at };
        let wrong = |message: String| Error::from(InputError::at(at, message));
        match (&self.file, x, &self.u) {
            (Some(file), None, None) => {
                let path = system.path(&file.value);
                let text = std::fs::read_to_string(&path)
                    .map_err(|e| InputError::at(file.at, format!("{} cannot be read: {e}", path.display())))?;
                let choice = Choice { entry: self.entry.as_deref(), columns: self.columns.as_deref() };
                let place = Place { file: Some(path), at };
                let rows = read(&text, choice).map_err(|e| place.mistake(e))?;
                Ok((rows, place))
            }
            (None, Some(x), Some(u)) => {
                if self.entry.is_some() || self.columns.is_some() {
                    return Err(wrong("`entry` and `columns` have a meaning with `file` only".into()));
                }
                if x.len() != u.len() {
                    return Err(wrong(format!("{} values of {name}, but {} of u", x.len(), u.len())));
                }
                Ok((Rows { x: x.to_vec(), u: u.clone(), ..Rows::default() }, here))
            }
            _ => Err(wrong(format!("a table is either `file` or the lists `{name}` and `u`"))),
        }
    }
}

/// Where mistakes of a table are told.
struct Place {
    file: Option<std::path::PathBuf>,
    at: Position,
}

impl Place {
    fn mistake(&self, e: galamost_tables::Mistake) -> Error {
        let found = match &self.file {
            Some(file) => InputError::in_file(file.clone(), e.line.map(|line| Position { line, column: 1 }), e.message),
            None => InputError::at(self.at, e.message),
        };
        found.into()
    }
}

/// What the user gives for one type or pair of types.
pub trait Source: Clone + PartialEq + Send + Sync + 'static {
    /// The lists' name and values, the rest.
    fn parts(&self) -> (&'static str, Option<&[f64]>, &FileSource);
}

/// A table of a distance.
#[derive(Clone, Debug, PartialEq, Params)]
pub struct Distances {
    /// r of each row, if there is no file.
    #[param(unit = "length")]
    r: Option<Vec<f64>>,
    #[param(flatten)]
    rest: FileSource,
}

/// A table of an angle.
#[derive(Clone, Debug, PartialEq, Params)]
pub struct Angles {
    /// The angle of each row in the component's `unit`, if there is no file.
    angle: Option<Vec<f64>>,
    #[param(flatten)]
    rest: FileSource,
}

impl Source for Distances {
    fn parts(&self) -> (&'static str, Option<&[f64]>, &FileSource) {
        ("r", self.r.as_deref(), &self.rest)
    }
}

impl Source for Angles {
    fn parts(&self) -> (&'static str, Option<&[f64]>, &FileSource) {
        ("angle", self.angle.as_deref(), &self.rest)
    }
}

/// The tables of a component, each read once.
pub struct Sources<I> {
    written: Vec<(Position, I)>,
    curves: Vec<Curve>,
}

impl<I: Source> Sources<I> {
    pub fn new(written: &[(Position, &I)]) -> Self {
        Self { written: written.iter().map(|(at, i)| (*at, (*i).clone())).collect(), curves: vec![] }
    }

    /// Reads them; all mistakes at once.
    ///
    /// # Errors
    /// What is wrong with the files, with their lines.
    pub fn bind(&mut self, kind: Kind, unit: Option<Unit>, system: &SystemInfo) -> Result<()> {
        let mut errors = Errors::default();
        let mut curves = vec![];
        for (at, input) in &self.written {
            let (name, x, rest) = input.parts();
            let made = rest
                .rows(x, name, *at, system)
                .and_then(|(rows, place)| Curve::new(kind, &rows, unit).map_err(|e| place.mistake(e)));
            match made {
                Ok(curve) => curves.push(curve),
                Err(Error::Input(list)) => list.into_iter().for_each(|e| errors.push(e)),
                Err(e) => return Err(e),
            }
        }
        self.curves = curves;
        errors.into_result(Some(()))
    }

    /// Number and curve of one of them.
    pub fn find(&self, input: &I) -> Option<(usize, &Curve)> {
        let k = self.written.iter().position(|(_, i)| i == input)?;
        self.curves.get(k).map(|c| (k, c))
    }
}
