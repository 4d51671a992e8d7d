//! What the user reads when something is wrong.

use galamost_plugin_api::error::{Error, InputError, Position};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// One mistake in an input file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file.
    pub file: PathBuf,
    /// Where.
    pub at: Option<Position>,
    /// The component that found it.
    pub component: Option<String>,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl Diagnostic {
    /// A mistake in the pipeline.
    pub fn new(file: &Path, at: Option<Position>, message: impl Into<String>) -> Self {
        Self { file: file.into(), at, component: None, message: message.into() }
    }

    /// What a component found; `at` is where the component stands.
    pub fn of_component(file: &Path, at: Position, component: &str, e: InputError) -> Self {
        match e.file {
            Some(other) => Self { file: other, at: e.at, component: Some(component.into()), message: e.message },
            None => Self {
                file: file.into(),
                at: Some(e.at.unwrap_or(at)),
                component: Some(component.into()),
                message: e.message,
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
        write!(f, " {}", self.message)
    }
}

/// Why a command did not succeed.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The input is wrong: exit status 2.
    Input(Vec<Diagnostic>),
    /// The run failed: exit status 1. What was saved stands in the second text.
    Run(String, Vec<String>),
}

impl Failure {
    /// The program's exit status.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Input(_) => 2,
            Self::Run(..) => 1,
        }
    }

    /// A failed run with nothing saved.
    pub fn run(message: impl std::fmt::Display) -> Self {
        Self::Run(message.to_string(), vec![])
    }

    /// The text for the terminal: each mistake with the line it stands in.
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
                let s = if list.len() == 1 { "" } else { "s" };
                let _ = writeln!(out, "{} error{s}; nothing was run", list.len());
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

/// The line of the file and a mark under the column.
fn excerpt(file: &Path, at: Position) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().nth(at.line.checked_sub(1)? as usize)?;
    let before = at.column.saturating_sub(1) as usize;
    // long lines are cut around the mark
    let start = before.saturating_sub(60);
    let shown: String = line.chars().skip(start).take(110).collect();
    let number = at.line.to_string();
    let pad = " ".repeat(number.len());
    let mark = " ".repeat(before - start);
    Some(format!("{pad} |\n{number} | {shown}\n{pad} | {mark}^\n"))
}
