//! Errors, one variant per cause.
//!
//! A mistake of the user is always returned as an error; it never panics.

use std::fmt;
use std::path::PathBuf;

/// The result type of all plugin functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A position in an input file: line and column, both starting from 1; columns count characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Line, starting from 1.
    pub line: u32,
    /// Column in characters, starting from 1.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// One mistake in an input file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// The file; `None` for the pipeline itself.
    pub file: Option<PathBuf>,
    /// Position of the mistake, if known.
    pub at: Option<Position>,
    /// What is wrong and how to fix it, without a trailing full stop.
    pub message: String,
}

impl InputError {
    /// Creates a mistake at a position in the pipeline.
    pub fn at(at: Position, message: impl Into<String>) -> Self {
        Self { file: None, at: Some(at), message: message.into() }
    }
    /// Creates a mistake without a position; it is reported at the position of the component.
    pub fn new(message: impl Into<String>) -> Self {
        Self { file: None, at: None, message: message.into() }
    }
    /// Creates a mistake in a file other than the pipeline.
    pub fn in_file(file: impl Into<PathBuf>, at: Option<Position>, message: impl Into<String>) -> Self {
        Self { file: Some(file.into()), at, message: message.into() }
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}:", file.display())?;
        }
        if let Some(at) = self.at {
            write!(f, "{at}:")?;
        }
        if self.file.is_some() || self.at.is_some() {
            f.write_str(" ")?;
        }
        f.write_str(&self.message)
    }
}

/// The causes of failure.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The user's input is wrong (exit status 2). Lists all mistakes found, not only the first.
    #[error("{}", join(.0))]
    Input(Vec<InputError>),
    /// The simulation became unstable (exit status 1): a NaN, a bond beyond its limit, a lost particle.
    #[error("step {step}: {what}{}", tag.map(|t| format!(" (particle with tag {t})")).unwrap_or_default())]
    Unstable {
        /// The time step.
        step: u64,
        /// The tag of the particle, if there is one.
        tag: Option<u32>,
        /// What happened.
        what: String,
    },
    /// A plugin could not be loaded or violated its contract.
    #[error("{}: {message}", path.display())]
    Plugin {
        /// The library.
        path: PathBuf,
        /// What is wrong with it, and how to fix it.
        message: String,
    },
    /// The device or its compiler returned an error.
    #[error("{what}: {message}")]
    Device {
        /// The call or kernel.
        what: String,
        /// The message of the driver or compiler.
        message: String,
    },
    /// A file could not be read or written.
    #[error("{}: {message}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The message of the operating system.
        message: String,
    },
    /// A component panicked; the panic was caught inside the plugin.
    #[error("{component} panicked{}: {message}", if method.is_empty() { String::new() } else { format!(" in `{method}`") })]
    Panic {
        /// The component.
        component: String,
        /// The method, filled in by the engine; it does not cross the boundary.
        method: &'static str,
        /// The text and source location of the panic.
        message: String,
    },
    /// Any other error that a component reports during a run.
    #[error("{0}")]
    Run(String),
}

fn join(errors: &[InputError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl Error {
    /// Creates an input error with one mistake and no position.
    pub fn input(message: impl Into<String>) -> Self {
        Self::Input(vec![InputError::new(message)])
    }
    /// Creates an error of a file operation.
    pub fn io(path: impl Into<PathBuf>, error: impl fmt::Display) -> Self {
        Self::Io { path: path.into(), message: error.to_string() }
    }
}

impl From<InputError> for Error {
    fn from(e: InputError) -> Self {
        Self::Input(vec![e])
    }
}

/// Collects mistakes, so that one check reports all of them.
#[derive(Debug, Default)]
pub struct Errors(pub Vec<InputError>);

impl Errors {
    /// Records a mistake.
    pub fn push(&mut self, e: InputError) {
        self.0.push(e);
    }
    /// Records the mistake in `result`, if there is one, and returns the value otherwise.
    pub fn absorb<T>(&mut self, result: std::result::Result<T, InputError>) -> Option<T> {
        result.map_err(|e| self.0.push(e)).ok()
    }
    /// Returns `value` if no mistake was recorded.
    ///
    /// # Errors
    /// Returns [`Error::Input`] with all recorded mistakes.
    pub fn into_result<T>(self, value: Option<T>) -> Result<T> {
        match value {
            Some(v) if self.0.is_empty() => Ok(v),
            _ if self.0.is_empty() => Err(Error::input("the input could not be parsed")),
            _ => Err(Error::Input(self.0)),
        }
    }
}

/// Returns the entry of `names` that is closest to the misspelled word `wrong`, if one is close.
pub fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    names
        .into_iter()
        .map(|n| (strsim::damerau_levenshtein(&wrong.to_lowercase(), &n.to_lowercase()), n))
        .filter(|(d, n)| *d <= 1 + n.len().max(wrong.len()) / 3)
        .min()
        .map(|(_, n)| n)
}
