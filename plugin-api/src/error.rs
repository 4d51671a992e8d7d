//! Errors: one enum by cause. Context wraps outward; a user's mistake never panics.

use std::fmt;
use std::path::PathBuf;

/// The result type of everything a plugin does.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A place in an input file: 1-based line and column (in characters).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
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
    /// The file, when it is not the pipeline itself.
    pub file: Option<PathBuf>,
    /// Where, if it has a place.
    pub at: Option<Position>,
    /// What is wrong and what would be right; no trailing full stop.
    pub message: String,
}

impl InputError {
    /// A mistake at a place in the pipeline.
    pub fn at(at: Position, message: impl Into<String>) -> Self {
        Self { file: None, at: Some(at), message: message.into() }
    }
    /// A mistake without a place of its own: it is reported where the component stands.
    pub fn new(message: impl Into<String>) -> Self {
        Self { file: None, at: None, message: message.into() }
    }
    /// A mistake in another file than the pipeline.
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

/// What can go wrong, by cause.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The user's input is wrong (exit status 2): every mistake found, not only the first.
    #[error("{}", join(.0))]
    Input(Vec<InputError>),
    /// The simulation itself broke (exit status 1): a NaN, a bond beyond its limit, a lost particle.
    #[error("step {step}: {what}{}", tag.map(|t| format!(" (particle with tag {t})")).unwrap_or_default())]
    Unstable {
        /// The time step.
        step: u64,
        /// The particle's tag, where one can be named.
        tag: Option<u32>,
        /// What happened.
        what: String,
    },
    /// A plugin could not be loaded or broke its contract.
    #[error("{}: {message}", path.display())]
    Plugin {
        /// The library.
        path: PathBuf,
        /// What is wrong with it, with the way out.
        message: String,
    },
    /// The device or its compiler refused something.
    #[error("{what}: {message}")]
    Device {
        /// The call or kernel.
        what: String,
        /// The driver's or compiler's words.
        message: String,
    },
    /// A file could not be read or written.
    #[error("{}: {message}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Returns the operating system's error.
        message: String,
    },
    /// A component panicked; the guard caught it inside the plugin.
    #[error("{component} panicked{}: {message}", if method.is_empty() { String::new() } else { format!(" in `{method}`") })]
    Panic {
        /// The component.
        component: String,
        /// The method, as the engine knows it; it does not cross.
        method: &'static str,
        /// The panic's text and place.
        message: String,
    },
    /// Anything else a component reports about itself while the run goes on.
    #[error("{0}")]
    Run(String),
}

fn join(errors: &[InputError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl Error {
    /// One mistake without a place.
    pub fn input(message: impl Into<String>) -> Self {
        Self::Input(vec![InputError::new(message)])
    }
    /// A failed file operation.
    pub fn io(path: impl Into<PathBuf>, error: impl fmt::Display) -> Self {
        Self::Io { path: path.into(), message: error.to_string() }
    }
}

impl From<InputError> for Error {
    fn from(e: InputError) -> Self {
        Self::Input(vec![e])
    }
}

/// Collects mistakes, so that one check reports them all.
#[derive(Debug, Default)]
pub struct Errors(pub Vec<InputError>);

impl Errors {
    /// Notes a mistake.
    pub fn push(&mut self, e: InputError) {
        self.0.push(e);
    }
    /// Notes what `result` reports and hands on its value.
    pub fn absorb<T>(&mut self, result: std::result::Result<T, InputError>) -> Option<T> {
        result.map_err(|e| self.0.push(e)).ok()
    }
    /// `Ok(value)` if nothing was noted.
    ///
    /// # Errors
    /// [`Error::Input`] with everything noted.
    pub fn into_result<T>(self, value: Option<T>) -> Result<T> {
        match value {
            Some(v) if self.0.is_empty() => Ok(v),
            _ if self.0.is_empty() => Err(Error::input("the input could not be read")),
            _ => Err(Error::Input(self.0)),
        }
    }
}

/// Of `names`, the one that `wrong` was probably meant to be.
pub fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    names
        .into_iter()
        .map(|n| (strsim::damerau_levenshtein(&wrong.to_lowercase(), &n.to_lowercase()), n))
        .filter(|(d, n)| *d <= 1 + n.len().max(wrong.len()) / 3)
        .min()
        .map(|(_, n)| n)
}
