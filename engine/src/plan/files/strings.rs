//! Texts in quotes in a pipeline, with their positions.

use crate::pipeline::Entry;
use galamost_plugin_api::error::Position;

/// Returns the texts in quotes of an entry.
pub fn of_entry(entry: &Entry) -> Vec<(Position, String)> {
    scan(&entry.text, entry.at)
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
    each(text, start, &mut |at, s| {
        found = (s == wanted).then_some(at);
        found.is_none()
    });
    found
}

fn scan(text: &str, start: Position) -> Vec<(Position, String)> {
    let mut all = vec![];
    each(text, start, &mut |at, s| {
        all.push((at, s.to_string()));
        true
    });
    all
}

/// Calls `f` with each text in quotes until it returns false. Comments are skipped; escaped characters count as
/// themselves.
fn each(text: &str, start: Position, f: &mut dyn FnMut(Position, &str) -> bool) {
    let mut at = start;
    let mut characters = text.chars().peekable();
    let advance = |at: &mut Position, c: char| match c {
        '\n' => *at = Position { line: at.line + 1, column: 1 },
        _ => at.column += 1,
    };
    let (mut comment, mut quoted, mut last) = (None::<char>, None::<(Position, String)>, ' ');
    while let Some(c) = characters.next() {
        let here = at;
        advance(&mut at, c);
        match (&mut quoted, comment) {
            (Some((begun, s)), _) => match c {
                '"' => {
                    if !f(*begun, s) {
                        return;
                    }
                    quoted = None;
                }
                '\\' => {
                    if let Some(escaped) = characters.next() {
                        advance(&mut at, escaped);
                        s.push(escaped);
                    }
                }
                c => s.push(c),
            },
            (None, Some('/')) if c == '\n' => comment = None,
            (None, Some('*')) if last == '*' && c == '/' => comment = None,
            (None, Some(_)) => {}
            (None, None) => match (c, characters.peek()) {
                ('/', Some(next @ ('/' | '*'))) => comment = Some(*next),
                ('"', _) => quoted = Some((here, String::new())),
                _ => {}
            },
        }
        last = c;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_positions_and_comments_are_skipped() {
        let text = "(a: \"x\", // \"no\"\n /* \"no\" */ b: \"y\\\"z\",\n  c: [\"t.csv\"])";
        let start = Position { line: 1, column: 1 };
        let all: Vec<(u32, u32, String)> = scan(text, start).into_iter().map(|(p, s)| (p.line, p.column, s)).collect();
        assert_eq!(all, [(1, 5, "x".into()), (2, 16, "y\"z".into()), (3, 7, "t.csv".into())]);
        assert_eq!(position(text, start, "t.csv"), Some(Position { line: 3, column: 7 }));
        assert_eq!(position(text, Position { line: 1, column: 6 }, "x"), None);
        assert_eq!(position(text, Position { line: 2, column: 1 }, "no"), None);
    }
}
