//! Errors as the user reads them.

use galamost_plugin_api::error::{Error, InputError, Position};
use galamost_plugin_api::input;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// One error in an input file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file.
    pub file: PathBuf,
    /// Position in the file.
    pub at: Option<Position>,
    /// The component that reported it.
    pub component: Option<String>,
    /// What is wrong, and how to fix it.
    pub message: String,
    /// For an error in a file that a component reads: where the pipeline has the component.
    pub read_by: Option<(PathBuf, Option<Position>)>,
}

impl Diagnostic {
    /// Returns an error of the pipeline.
    pub fn new(file: &Path, at: Option<Position>, message: impl Into<String>) -> Self {
        Self { file: file.into(), at, component: None, message: message.into(), read_by: None }
    }

    /// Returns an error that a component reported. `at` is the position of the component.
    pub fn of_component(file: &Path, at: Position, component: &str, e: InputError) -> Self {
        match e.file {
            Some(other) => Self {
                file: other,
                at: e.at,
                component: Some(component.into()),
                message: e.message,
                read_by: Some((file.into(), Some(at))),
            },
            None => Self {
                file: file.into(),
                at: Some(e.at.unwrap_or(at)),
                component: Some(component.into()),
                message: e.message,
                read_by: None,
            },
        }
    }
}

impl std::fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some(at) = self.at {
            write!(f, "{at}:")?;
        }
        if let Some(c) = &self.component {
            write!(f, " {c}:")?;
        }
        write!(f, " {}", self.message)?;
        match &self.read_by {
            Some((file, Some(at))) => write!(f, " (read by {}:{at})", file.display()),
            Some((file, None)) => write!(f, " (read by {})", file.display()),
            None => Ok(()),
        }
    }
}

/// The failure of a command.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The input is wrong: exit status 2.
    Input(Vec<Diagnostic>),
    /// The run failed: exit status 1. Message, and notes on what was saved.
    Run(String, Vec<String>),
}

impl Failure {
    /// Returns the program's exit status.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Input(_) => 2,
            Self::Run(..) => 1,
        }
    }

    /// Returns the failure of a run without notes.
    pub fn run(message: impl std::fmt::Display) -> Self {
        Self::Run(message.to_string(), vec![])
    }

    /// Returns the text for the terminal: each error with its line of the file.
    pub fn render(&self) -> String {
        let mut out = String::new();
        match self {
            Self::Input(list) => {
                for d in list {
                    let _ = writeln!(out, "{d}");
                    if let Some(at) = d.at {
                        out.push_str(&excerpt(&d.file, at).unwrap_or_default());
                    }
                }
                let _ = writeln!(out, "{}; nothing was done", counted(list.len() as u64, "error"));
            }
            Self::Run(message, notes) => {
                let _ = writeln!(out, "error: {message}");
                for note in notes {
                    let _ = writeln!(out, "  {note}");
                }
            }
        }
        out
    }
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Self::run(e)
    }
}

/// Returns a number with its noun, as in `1 type` and `2 types`.
pub fn counted(n: u64, noun: &str) -> String {
    let ending = match (n, noun.ends_with("ch")) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{n} {noun}{ending}")
}

/// Returns the line of the file and a mark under the column.
fn excerpt(file: &Path, at: Position) -> Option<String> {
    let text = input::text(file).ok()?;
    let line = text.lines().nth(at.line.checked_sub(1)? as usize)?;
    let before = at.column.saturating_sub(1) as usize;
    // cut long lines around the mark
    let start = before.saturating_sub(60);
    let shown: String = line.chars().skip(start).take(110).collect();
    let number = at.line.to_string();
    let pad = " ".repeat(number.len());
    let mark = " ".repeat(before - start);
    Some(format!("{pad} |\n{number} | {shown}\n{pad} | {mark}^\n"))
}
