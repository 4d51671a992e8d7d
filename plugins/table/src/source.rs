//! Sources of table rows: files and lists.

use galamost_plugin_api::error::Position;
use galamost_plugin_api::input;
use galamost_plugin_api::prelude::*;
use galamost_tables::read::{Choice, contradicted_kind, read};
use galamost_tables::{Curve, Kind, Rows, Unit, contradiction};

/// User parameters of a table, except the list of its variable.
#[derive(Clone, Debug, PartialEq, Params)]
pub struct FileSource {
    /// File with the rows: GALAMOST (`<PairPotential>`, `<BondPotential>`, …), VOTCA (`.pot`), LAMMPS table, CSV or plain
    /// columns; the format is detected from the contents. Relative paths start at the folder of the pipeline.
    file: Option<Spanned<String>>,
    /// Section of a LAMMPS table.
    entry: Option<String>,
    /// Columns of the variable, U and optionally F, counted from 1. Default: the first two columns, or in a CSV file with
    /// a header the columns named r (angles: theta_deg, phi_rad, …), U and F.
    columns: Option<Vec<u32>>,
    /// U of each row, if no file is given.
    #[param(unit = "energy")]
    u: Option<Vec<f64>>,
}

impl FileSource {
    /// Returns the rows, from the file or the lists.
    fn rows(
        &self,
        kind: Kind,
        x: Option<&[f64]>,
        name: &str,
        at: Position,
        system: &SystemInfo,
    ) -> Result<(Rows, Origin)> {
        let here = Origin { file: None, doubt: None, at };
        let wrong = |message: String| Error::from(InputError::at(at, message));
        match (&self.file, x, &self.u) {
            (Some(file), None, None) => {
                let path = system.path(&file.value);
                let text = input::text(&path).map_err(|e| match e.at {
                    Some(_) => e,
                    // the name in the pipeline is wrong
                    None => InputError::at(file.at, format!("{} {}", path.display(), e.message)),
                })?;
                let choice = Choice { entry: self.entry.as_deref(), columns: self.columns.as_deref() };
                let doubt = contradicted_kind(&text, choice.entry, kind);
                let origin = Origin { file: Some(path), doubt, at };
                let rows = read(&text, choice).map_err(|e| origin.error(e))?;
                Ok((rows, origin))
            }
            (None, Some(x), Some(u)) => {
                if self.entry.is_some() || self.columns.is_some() {
                    return Err(wrong("`entry` and `columns` need `file`".into()));
                }
                if x.len() != u.len() {
                    return Err(wrong(format!("{} values of {name}, but {} of u", x.len(), u.len())));
                }
                Ok((Rows { x: x.to_vec(), u: u.clone(), ..Rows::default() }, here))
            }
            _ => Err(wrong(format!("give either `file` or the lists `{name}` and `u`"))),
        }
    }
}

/// Location of a table, for error messages.
struct Origin {
    file: Option<std::path::PathBuf>,
    /// A warning about the kind of interaction.
    doubt: Option<String>,
    at: Position,
}

impl Origin {
    fn error(&self, e: galamost_tables::Mistake) -> Error {
        let found = match &self.file {
            Some(file) => InputError::in_file(file.clone(), e.line.map(|line| Position { line, column: 1 }), e.message),
            None => InputError::at(self.at, e.message),
        };
        found.into()
    }

    /// Returns warnings if the file states another kind of interaction, or if its forces contradict the energies.
    fn warnings(&self, rows: &Rows) -> Vec<String> {
        let Some(file) = &self.file else { return vec![] };
        let all = self.doubt.iter().cloned().chain(contradiction(rows));
        all.map(|text| format!("{}: {text}", file.display())).collect()
    }
}

/// User parameters of one type or pair of types.
pub trait Source: Clone + PartialEq + Send + Sync + 'static {
    /// Returns the name and values of the variable's list, and the remaining parameters.
    fn parts(&self) -> (&'static str, Option<&[f64]>, &FileSource);
}

/// A table in r.
#[derive(Clone, Debug, PartialEq, Params)]
pub struct Distances {
    /// r of each row, if no file is given.
    #[param(unit = "length")]
    r: Option<Vec<f64>>,
    #[param(flatten)]
    rest: FileSource,
}

/// A table in an angle.
#[derive(Clone, Debug, PartialEq, Params)]
pub struct Angles {
    /// Angle of each row in the component's `unit`, if no file is given.
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

/// The tables of a component; each is read once.
pub struct Sources<I> {
    written: Vec<(Position, I)>,
    curves: Vec<Curve>,
    warnings: Vec<String>,
}

impl<I: Source> Sources<I> {
    /// Stores the user parameters; [`Self::bind`] reads the tables.
    pub fn new(written: &[(Position, &I)]) -> Self {
        Self { written: written.iter().map(|(at, i)| (*at, (*i).clone())).collect(), curves: vec![], warnings: vec![] }
    }

    /// Reads all tables.
    ///
    /// # Errors
    /// Returns all errors of all files, with their lines.
    pub fn bind(&mut self, kind: Kind, unit: Option<Unit>, system: &SystemInfo) -> Result<()> {
        let mut errors = Errors::default();
        let (mut curves, mut warnings) = (vec![], vec![]);
        for (at, input) in &self.written {
            let (name, x, rest) = input.parts();
            let made = rest.rows(kind, x, name, *at, system).and_then(|(rows, origin)| {
                let curve = Curve::new(kind, &rows, unit).map_err(|e| origin.error(e))?;
                warnings.extend(origin.warnings(&rows));
                Ok(curve)
            });
            match made {
                Ok(curve) => curves.push(curve),
                Err(Error::Input(list)) => list.into_iter().for_each(|e| errors.push(e)),
                Err(e) => return Err(e),
            }
        }
        (self.curves, self.warnings) = (curves, warnings);
        errors.into_result(Some(()))
    }

    /// Returns a warning for each table whose forces contradict its energies, or whose file states another kind of interaction.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// Returns the number and the curve of a table.
    pub fn find(&self, input: &I) -> Option<(usize, &Curve)> {
        let k = self.written.iter().position(|(_, i)| i == input)?;
        self.curves.get(k).map(|c| (k, c))
    }
}
