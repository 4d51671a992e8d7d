//! The text of a force-field file: sections with rows of words.

use galamost_plugin_api::error::{InputError, Position, nearest};
use std::path::{Path, PathBuf};

/// The sections that become components.
pub const SECTIONS: [&str; 7] =
    ["pair_params", "ah_params", "bond_params", "angle_params", "dihedral_params", "constraint_params", "vsite_params"];

/// A word of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    pub text: String,
    pub at: Position,
}

/// A row of a section.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub words: Vec<Word>,
}

impl Row {
    /// Returns the position of its first word.
    pub fn at(&self) -> Position {
        self.words[0].at
    }

    /// Returns the first word, the name of a type.
    pub fn name(&self) -> &str {
        &self.words[0].text
    }
}

/// A section: its name, the position of its tag, its rows.
#[derive(Debug)]
pub struct Section {
    pub name: String,
    pub at: Position,
    pub rows: Vec<Row>,
}

/// A force-field file.
#[derive(Debug, Default)]
pub struct ForceField {
    pub path: PathBuf,
    pub sections: Vec<Section>,
}

impl ForceField {
    /// Reads a file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, and all lines that are invalid.
    pub fn read(path: &Path) -> Result<Self, Vec<InputError>> {
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(path, &text),
            Err(e) => Err(vec![InputError::in_file(path, None, format!("cannot be read: {e}"))]),
        }
    }

    /// Parses the text of a file. Comments begin with `#` or `;`.
    ///
    /// # Errors
    /// Returns all lines that are invalid.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Vec<InputError>> {
        let mut field = Self { path: path.into(), sections: vec![] };
        let (mut errors, mut open) = (vec![], false);
        for (k, line) in text.lines().enumerate() {
            let words = words(line, k as u32 + 1);
            let Some(first) = words.first() else { continue };
            let whole: String = words.iter().map(|w| w.text.as_str()).collect();
            if let Some(tag) = whole.strip_prefix('<').and_then(|t| t.strip_suffix('>')) {
                open = field.tag(tag, first.at, open, &mut errors);
            } else if let (true, Some(section)) = (open, field.sections.last_mut()) {
                section.rows.push(Row { words });
            } else {
                let message = format!("`{}` is outside a section such as <pair_params>", first.text);
                errors.push(field.error(first.at, message));
            }
        }
        if let (true, Some(section)) = (open, field.sections.last()) {
            errors.push(field.error(section.at, format!("<{}> has no end </{}>", section.name, section.name)));
        }
        if field.sections.is_empty() && errors.is_empty() {
            let all = SECTIONS.map(|s| format!("<{s}>")).join(", ");
            errors.push(InputError::in_file(path, None, format!("no sections; they are {all}")));
        }
        if errors.is_empty() { Ok(field) } else { Err(errors) }
    }

    /// Handles `<name>` or `</name>`. Returns whether a section is open after it.
    fn tag(&mut self, tag: &str, at: Position, open: bool, errors: &mut Vec<InputError>) -> bool {
        let last = self.sections.last().map(|s| s.name.clone()).unwrap_or_default();
        let message = match tag.strip_prefix('/') {
            Some(name) if open && name == last => return false,
            Some(name) => format!("</{name}> ends no section"),
            None if open => format!("<{tag}> is inside <{last}>, which has no end </{last}>"),
            None if self.sections.iter().any(|s| s.name == tag) => format!("<{tag}> is here twice"),
            None if SECTIONS.contains(&tag) => {
                self.sections.push(Section { name: tag.into(), at, rows: vec![] });
                return true;
            }
            None => match (tag, nearest(tag, SECTIONS)) {
                ("wf_params", _) => "<wf_params> is not supported; write PairExpression and DebyeHueckel".into(),
                (_, Some(close)) => format!("unknown section <{tag}>; did you mean <{close}>?"),
                _ => format!(
                    "unknown section <{tag}>; the sections are {}",
                    SECTIONS.map(|s| format!("<{s}>")).join(", ")
                ),
            },
        };
        errors.push(self.error(at, message));
        // its rows are skipped
        if !tag.starts_with('/') {
            self.sections.push(Section { name: tag.into(), at, rows: vec![] });
        }
        !tag.starts_with('/')
    }

    /// Returns a section.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|s| s.name == name)
    }

    /// Returns an error at a position of the file.
    pub fn error(&self, at: Position, message: impl Into<String>) -> InputError {
        InputError::in_file(&self.path, Some(at), message)
    }

    /// Returns the numbers of a row after its `names`. The last word is the function, if there is one.
    ///
    /// # Errors
    /// Returns an error if a word is no finite number.
    pub fn numbers(&self, row: &Row, names: usize) -> Result<Vec<f64>, InputError> {
        let number = |w: &Word| match w.text.parse::<f64>() {
            Ok(x) if x.is_finite() => Ok(x),
            _ => Err(self.error(w.at, format!("expected a number, found `{}`", w.text))),
        };
        row.words.iter().skip(names).map(number).collect()
    }
}

/// Returns the words of a line before its comment.
fn words(line: &str, number: u32) -> Vec<Word> {
    let text = line.split(['#', ';']).next().unwrap_or_default();
    let of = |word: &str| {
        let before = &text[..word.as_ptr() as usize - text.as_ptr() as usize];
        Word { text: word.into(), at: Position { line: number, column: before.chars().count() as u32 + 1 } }
    };
    text.split_whitespace().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ForceField, Vec<String>> {
        let place = |e: &InputError| e.at.map_or(String::new(), |at| format!("{}:{} ", at.line, at.column));
        ForceField::parse(Path::new("a.force_field"), text)
            .map_err(|all| all.iter().map(|e| format!("{}{}", place(e), e.message)).collect())
    }

    #[test]
    fn sections_have_rows_of_words() {
        let text = "# comment\n<pair_params>\nA B 1.0 0.5 1.0 ; remark\n\n</pair_params>\n< bond_params >\n  b 2 3 1\n</bond_params>\n";
        let field = parse(text).expect("valid");
        let row = &field.section("bond_params").expect("a section").rows[0];
        assert_eq!((row.name(), row.at()), ("b", Position { line: 7, column: 3 }));
        assert_eq!(field.numbers(row, 1), Ok(vec![2.0, 3.0, 1.0]));
        assert_eq!(field.section("pair_params").expect("a section").rows[0].words.len(), 5);
    }

    #[test]
    fn mistakes_have_their_line() {
        for (text, expected) in [
            ("A 1\n<pair_params>\n</pair_params>", "1:1 `A` is outside a section such as <pair_params>"),
            ("<pair_params>\nA A 1 1 1", "1:1 <pair_params> has no end </pair_params>"),
            (
                "<pair_params>\n<bond_params>\n</bond_params>",
                "2:1 <bond_params> is inside <pair_params>, which has no end",
            ),
            ("\n</pair_params>", "2:1 </pair_params> ends no section"),
            ("<pair_param>\nA\n</pair_param>", "1:1 unknown section <pair_param>; did you mean <pair_params>?"),
            ("<wf_params>\nA\n</wf_params>", "1:1 <wf_params> is not supported; write PairExpression"),
            ("<pair_params>\n</pair_params>\n<pair_params>\n</pair_params>", "3:1 <pair_params> is here twice"),
            ("# nothing\n", "no sections; they are <pair_params>"),
        ] {
            let errors = parse(text).expect_err(expected);
            assert!(errors[0].starts_with(expected), "{text}: {errors:?}");
        }
    }
}
