//! Texts in quotes in a pipeline, with their positions.

use crate::pipeline::Entry;
use galamost_plugin_api::error::Position;

/// Returns the values in quotes of those fields of an entry whose names `wanted` accepts: `field: "value"`.
pub fn values_of(entry: &Entry, wanted: impl Fn(&str) -> bool) -> Vec<(Position, String)> {
    scan(&entry.text, entry.at).into_iter().filter(|q| wanted(&q.field)).map(|q| (q.at, q.text)).collect()
}

/// A text in quotes.
#[derive(Default)]
struct Quoted {
    at: Position,
    text: String,
    /// Name of the field whose value it is; empty for keys of maps and elements of lists.
    field: String,
}

/// Returns the position of a text in quotes: the first one from `start` on.
pub fn position(file: &str, start: Position, wanted: &str) -> Option<Position> {
    let line = start.line.checked_sub(1)? as usize;
    let line_start: usize = file.split_inclusive('\n').take(line).map(str::len).sum();
    let rest = file.get(line_start..)?;
    let column = rest.char_indices().nth(start.column.checked_sub(1)? as usize)?.0;
    find(&rest[column..], start, wanted)
}

fn find(text: &str, start: Position, wanted: &str) -> Option<Position> {
    let mut found = None;
    each(text, start, &mut |q| {
        found = (q.text == wanted).then_some(q.at);
        found.is_none()
    });
    found
}

fn scan(text: &str, start: Position) -> Vec<Quoted> {
    let mut all = vec![];
    each(text, start, &mut |q| {
        all.push(q);
        true
    });
    all
}

/// Calls `f` with each text in quotes until it returns false. Comments are skipped; escaped characters count as
/// themselves.
fn each(text: &str, start: Position, f: &mut dyn FnMut(Quoted) -> bool) {
    let mut at = start;
    let mut characters = text.chars().peekable();
    let advance = |at: &mut Position, c: char| match c {
        '\n' => *at = Position { line: at.line + 1, column: 1 },
        _ => at.column += 1,
    };
    let (mut comment, mut quoted, mut last) = (None::<char>, None::<Quoted>, ' ');
    let mut field = Field::default();
    while let Some(c) = characters.next() {
        let here = at;
        advance(&mut at, c);
        match (&mut quoted, comment) {
            (Some(q), _) => match c {
                '"' => {
                    if !quoted.take().is_none_or(&mut *f) {
                        return;
                    }
                }
                '\\' => {
                    if let Some(escaped) = characters.next() {
                        advance(&mut at, escaped);
                        q.text.push(escaped);
                    }
                }
                c => q.text.push(c),
            },
            (None, Some('/')) if c == '\n' => comment = None,
            (None, Some('*')) if last == '*' && c == '/' => comment = None,
            (None, Some(_)) => {}
            (None, None) => match (c, characters.peek()) {
                ('/', Some(next @ ('/' | '*'))) => comment = Some(*next),
                ('"', _) => quoted = Some(Quoted { at: here, field: field.take(), ..Quoted::default() }),
                _ => field.next(c, last),
            },
        }
        last = c;
    }
}

/// The name before a value.
#[derive(Default)]
struct Field {
    name: String,
    /// The colon after it was read.
    complete: bool,
}

impl Field {
    /// Reads a character outside of quotes; `last` is the one before it.
    fn next(&mut self, c: char, last: char) {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        match c {
            c if c.is_whitespace() => {}
            ':' => self.complete = true,
            c if word(c) && word(last) && !self.complete => self.name.push(c),
            c if word(c) => *self = Self { name: c.into(), complete: false },
            _ => *self = Self::default(),
        }
    }

    /// Returns the name if the next value is that of the field.
    fn take(&mut self) -> String {
        let field = std::mem::take(self);
        if field.complete { field.name } else { String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_positions_and_comments_are_skipped() {
        let text = "(a: \"x\", // \"no\"\n /* \"no\" */ b: \"y\\\"z\",\n  c: [\"t.csv\"])";
        let start = Position { line: 1, column: 1 };
        let all: Vec<(u32, u32, String)> =
            scan(text, start).into_iter().map(|q| (q.at.line, q.at.column, q.text)).collect();
        assert_eq!(all, [(1, 5, "x".into()), (2, 16, "y\"z".into()), (3, 7, "t.csv".into())]);
        assert_eq!(position(text, start, "t.csv"), Some(Position { line: 3, column: 7 }));
        assert_eq!(position(text, Position { line: 1, column: 6 }, "x"), None);
        assert_eq!(position(text, Position { line: 2, column: 1 }, "no"), None);
    }

    #[test]
    fn values_have_the_names_of_their_fields() {
        let text = r#"T(pairs: { ("A", "B"): (file: "a", u: [0.0]), "C": (r: 1.0, /* "no" */ my_file : /* : */ "b") },
            file: Some, list: ["x", "y"], "key": "v", of: (file: "c"))"#;
        let entry = Entry { name: "T".into(), text: text.into(), at: Position { line: 1, column: 1 } };
        let all = scan(text, entry.at);
        let all: Vec<_> = all.iter().map(|q| (q.field.as_str(), q.text.as_str())).collect();
        let expected = [
            ("", "A"),
            ("", "B"),
            ("file", "a"),
            ("", "C"),
            ("my_file", "b"),
            ("", "x"),
            ("", "y"),
            ("", "key"),
            ("", "v"),
            ("file", "c"),
        ];
        assert_eq!(all, expected);
        let values = values_of(&entry, |f| f == "file").into_iter().map(|v| v.1);
        assert_eq!(values.collect::<Vec<_>>(), ["a", "c"]);
    }
}
