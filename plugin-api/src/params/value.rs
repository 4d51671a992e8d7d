//! Pieces of RON text with their positions in the file.

use crate::error::{InputError, Position};
use ron::extensions::Extensions;
use ron::value::RawValue;
use serde::de::{self, Deserialize, DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// RON options of pipelines. `implicit_some` is always enabled, so an optional number is written as a number.
fn options() -> ron::Options {
    ron::Options::default().with_default_extension(Extensions::IMPLICIT_SOME)
}

/// A text and the position of its first character in the user's file.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The text.
    pub text: &'a str,
    /// Position of the first character.
    pub start: Position,
}

impl<'a> Source<'a> {
    /// Creates the source of a whole file.
    pub fn file(text: &'a str) -> Self {
        Self { text, start: Position { line: 1, column: 1 } }
    }

    /// Returns the whole text as one value.
    pub fn value(self) -> Value<'a> {
        let whole = Value { text: self.text, source: self, at: self.start };
        whole.part(trim(self.text))
    }
}

/// Returns the position after a text that begins at `start`.
fn advance(start: Position, text: &str) -> Position {
    let newlines = text.matches('\n').count() as u32;
    let last_line = text.rfind('\n').map_or(text, |n| &text[n + 1..]);
    let column = last_line.chars().count() as u32;
    match newlines {
        0 => Position { line: start.line, column: start.column + column },
        n => Position { line: start.line + n, column: column + 1 },
    }
}

/// A RON value as text, with its position.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    text: &'a str,
    source: Source<'a>,
    at: Position,
}

impl<'a> Value<'a> {
    /// Returns the text, without surrounding whitespace and comments.
    pub fn text(self) -> &'a str {
        self.text
    }

    /// Returns the text that contains the value.
    pub fn source(self) -> Source<'a> {
        self.source
    }

    /// Returns the offset of the value in its source, in bytes.
    pub fn offset(self) -> usize {
        self.text.as_ptr() as usize - self.source.text.as_ptr() as usize
    }

    /// Returns the value without its first `n` bytes.
    pub fn skip(self, n: usize) -> Self {
        self.part(trim(&self.text[n..]))
    }

    /// Returns the position of the value.
    pub fn at(self) -> Position {
        self.at
    }

    /// Returns the position of byte `n` of the text.
    pub fn place(self, n: usize) -> Position {
        advance(self.at, &self.text[..n])
    }

    /// Returns a part of the text as a value.
    fn part(self, text: &'a str) -> Self {
        Walk::through(self).value(text)
    }

    /// Creates a mistake at the position of the value.
    pub fn error(self, message: impl Into<String>) -> InputError {
        InputError::at(self.at(), message)
    }

    /// Converts an error of `ron` to the coordinates of the file.
    fn translate(self, e: ron::error::SpannedError) -> InputError {
        let (line, column) = (e.span.start.line.max(1), e.span.start.col.max(1));
        let rest = self.text.split_inclusive('\n').take(line - 1).map(str::len).sum::<usize>();
        let skipped = self.text[rest..].char_indices().nth(column - 1).map_or(self.text.len() - rest, |(n, _)| n);
        let message = match e.code {
            ron::Error::ExceededRecursionLimit => "more than 128 nested levels".into(),
            // the error is behind the comma, or at the comma behind a whole value
            code => [0, 1]
                .into_iter()
                .find_map(|n| decimal_comma(self.text, rest + skipped + n))
                .unwrap_or_else(|| code.to_string()),
        };
        InputError::at(self.place(rest + skipped), message)
    }

    /// Returns a hint if the text has a number with a decimal comma, as in `[0,5, 1,0]`.
    pub(super) fn decimal_comma(self) -> Option<String> {
        self.text.match_indices(',').find_map(|(n, _)| decimal_comma(self.text, n + 1))
    }

    /// Parses a leaf with serde.
    ///
    /// # Errors
    /// Returns the error of `ron`, at its position in the file.
    pub fn parse<T: DeserializeOwned>(self) -> Result<T, InputError> {
        options().from_str(self.text).map_err(|e| self.translate(e))
    }

    /// Checks the syntax of the whole value.
    ///
    /// # Errors
    /// Returns the first syntax error.
    pub fn check_syntax(self) -> Result<(), InputError> {
        options().from_str::<&RawValue>(self.text).map(|_| ()).map_err(|e| self.translate(e))
    }

    /// Returns the leading name of a struct or variant, if there is one: `Dpd` of `Dpd(r_cut: 1.0)`.
    pub fn name(self) -> Option<&'a str> {
        let end = self.text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(self.text.len());
        let name = &self.text[..end];
        let rest = trim(&self.text[end..]);
        let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && (rest.is_empty() || rest.starts_with('('))
            && !matches!(name, "true" | "false" | "inf" | "NaN");
        is_name.then_some(name)
    }

    /// Returns the text after the name: `(r_cut: 1.0)` of `Dpd(r_cut: 1.0)`; `None` for a bare name.
    pub fn after_name(self) -> Option<Self> {
        let name = self.name()?;
        let rest = trim(&self.text[name.len()..]);
        (!rest.is_empty()).then(|| self.part(rest))
    }

    /// Returns the fields of a struct in order. A bare name and `Name()` have none.
    ///
    /// # Errors
    /// Returns an error for invalid syntax, or if the value is not a struct with named fields.
    pub fn entries(self) -> Result<Vec<(Key<'a>, Self)>, InputError> {
        if self.text.is_empty() {
            return Ok(vec![]);
        }
        let Entries(list) = options().from_str(self.text).map_err(|e| self.translate(e))?;
        let mut walk = Walk::through(self);
        let mut entry = |(name, raw): (std::borrow::Cow<'a, str>, &'a RawValue)| {
            let text = trim(raw.get_ron());
            // a key is the identifier before the colon in front of its value
            let before = walk.until(text);
            let at = before.rfind(&*name).map_or(walk.at, |n| advance(walk.at, &before[..n]));
            (Key { at, name }, walk.value(text))
        };
        Ok(list.into_iter().map(&mut entry).collect())
    }

    /// Returns the elements of a list or tuple.
    ///
    /// # Errors
    /// Returns an error for invalid syntax, or if the value is not a list.
    pub fn elements(self) -> Result<Vec<Self>, InputError> {
        let parsed = options().from_str(self.text);
        let Elements(list) = parsed.map_err(|e| self.named_values().unwrap_or_else(|| self.translate(e)))?;
        let mut walk = Walk::through(self);
        Ok(list.into_iter().map(|raw| walk.value(trim(raw.get_ron()))).collect())
    }

    /// Returns a mistake if the value is what follows the name of a variant, and its parts have names, as in `Smooth(r_on: 2.5)`.
    fn named_values(self) -> Option<InputError> {
        let entries = self.entries().ok().filter(|e| !e.is_empty())?;
        let before = self.source.text[..self.offset()].trim_end();
        let name = before.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next().filter(|n| !n.is_empty())?;
        let values: Vec<&str> = entries.iter().map(|(_, v)| v.text()).collect();
        Some(self.error(format!("the values of `{name}` have no names: write `{name}({})`", values.join(", "))))
    }

    /// Returns the entries of a map `{ key: value, … }`.
    ///
    /// # Errors
    /// Returns an error for invalid syntax, or if the value is not a map.
    pub fn map(self) -> Result<Vec<(Self, Self)>, InputError> {
        let Pairs(list) = options().from_str(self.text).map_err(|e| self.translate(e))?;
        let mut walk = Walk::through(self);
        let mut value = |raw: &'a RawValue| walk.value(trim(raw.get_ron()));
        Ok(list.into_iter().map(|(k, v)| (value(k), value(v))).collect())
    }
}

/// Finds the positions of the parts of a value in one pass. They must come in the order of the text.
struct Walk<'a> {
    source: Source<'a>,
    /// Offset in the source up to which the position is known.
    offset: usize,
    /// Position of this offset.
    at: Position,
}

impl<'a> Walk<'a> {
    fn through(value: Value<'a>) -> Self {
        Self { source: value.source, offset: value.offset(), at: value.at }
    }

    /// Returns the text between the previous part and this one.
    fn until(&self, text: &str) -> &'a str {
        &self.source.text[self.offset..text.as_ptr() as usize - self.source.text.as_ptr() as usize]
    }

    /// Returns the next part as a value.
    fn value(&mut self, text: &'a str) -> Value<'a> {
        let passed = self.until(text);
        self.at = advance(self.at, passed);
        self.offset += passed.len();
        Value { text, source: self.source, at: self.at }
    }
}

/// Returns a message if the digits at byte `n` of the text follow a decimal comma, as in `0,5`.
fn decimal_comma(text: &str, n: usize) -> Option<String> {
    let digit = |c: char| c.is_ascii_digit();
    let before = text.get(..n)?.trim_end_matches(digit);
    let after = &text[before.len()..];
    let fraction = &after[..after.find(|c| !digit(c)).unwrap_or(after.len())];
    let head = before.strip_suffix(',')?;
    let whole = &head[head.trim_end_matches(digit).len()..];
    let decimal = !whole.is_empty() && !fraction.is_empty() && !head.trim_end_matches(digit).ends_with('.');
    decimal.then(|| format!("`{whole},{fraction}` has a decimal comma; write `{whole}.{fraction}`"))
}

/// The name of a field with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    /// The name.
    pub name: std::borrow::Cow<'a, str>,
    /// Position of the name.
    pub at: Position,
}

impl Key<'_> {
    /// Creates a mistake at the name.
    pub fn error(&self, message: impl Into<String>) -> InputError {
        InputError::at(self.at, message)
    }
}

/// Removes whitespace and comments from both ends.
fn trim(text: &str) -> &str {
    let mut t = text.trim();
    loop {
        let rest = if let Some(line) = t.strip_prefix("//") {
            &line[line.find('\n').unwrap_or(line.len())..]
        } else if t.starts_with("/*") {
            after_block_comment(t)
        } else {
            break;
        };
        t = rest.trim_start();
    }
    trim_end(t)
}

/// Returns the text after a block comment. RON's block comments can be nested.
fn after_block_comment(t: &str) -> &str {
    let (mut depth, mut i) = (0, 0);
    while i < t.len() {
        if t[i..].starts_with("/*") {
            (depth, i) = (depth + 1, i + 2);
        } else if t[i..].starts_with("*/") {
            (depth, i) = (depth - 1, i + 2);
            if depth == 0 {
                return &t[i..];
            }
        } else {
            i += t[i..].chars().next().map_or(1, char::len_utf8);
        }
    }
    // a slice of `t`, even if empty: callers compute its position
    &t[t.len()..]
}

/// Removes comments after a value, which `ron` includes in its text.
fn trim_end(t: &str) -> &str {
    let bytes = t.as_bytes();
    let (mut i, mut end) = (0, 0);
    while i < bytes.len() {
        let rest = &t[i..];
        if rest.starts_with("//") {
            i += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            i = t.len() - after_block_comment(rest).len();
        } else if rest.starts_with('"') || rest.starts_with("r\"") || rest.starts_with("r#") {
            i += string_length(rest);
            end = i;
        } else if let Some(body) = rest.strip_prefix('\'') {
            // a character literal: 'x' or '\x'
            let escaped = usize::from(body.starts_with('\\'));
            let skip = escaped + body[escaped..].chars().next().map_or(0, char::len_utf8);
            i += 1 + skip + body[skip..].find('\'').map_or(0, |n| n + 1);
            end = i;
        } else {
            let c = rest.chars().next().map_or(1, char::len_utf8);
            i += c;
            if !rest.starts_with(char::is_whitespace) {
                end = i;
            }
        }
    }
    &t[..end.min(t.len())]
}

/// Returns the length in bytes of the string literal at the start of `t`.
fn string_length(t: &str) -> usize {
    if let Some(body) = t.strip_prefix('"') {
        let mut escaped = false;
        for (i, c) in body.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => return i + 2,
                _ => {}
            }
        }
        return t.len();
    }
    let hashes = t[1..].bytes().take_while(|b| *b == b'#').count();
    let close = format!("\"{}", "#".repeat(hashes));
    if t[1 + hashes..].starts_with('"') {
        t[2 + hashes..].find(&close).map_or(t.len(), |n| 2 + hashes + n + close.len())
    } else {
        // an identifier that starts with r#
        2.min(t.len())
    }
}

/// Fields of a struct.
struct Entries<'a>(Vec<(std::borrow::Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Entries<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("named fields: `(name: value, …)`")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<'de>, A::Error> {
                let mut list = vec![];
                while let Some(key) = map.next_key::<String>()? {
                    list.push((key.into(), map.next_value()?));
                }
                Ok(Entries(list))
            }
            fn visit_unit<E: de::Error>(self) -> Result<Entries<'de>, E> {
                Ok(Entries(vec![]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Entries<'de>, A::Error> {
                match seq.next_element::<&RawValue>()? {
                    None => Ok(Entries(vec![])),
                    Some(_) => Err(de::Error::invalid_type(de::Unexpected::Seq, &self)),
                }
            }
        }
        d.deserialize_any(V)
    }
}

/// Elements of a list or tuple.
struct Elements<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for Elements<'de> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Elements<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list: `[…]`")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Elements<'de>, A::Error> {
                let mut list = vec![];
                while let Some(element) = seq.next_element()? {
                    list.push(element);
                }
                Ok(Elements(list))
            }
            fn visit_unit<E: de::Error>(self) -> Result<Elements<'de>, E> {
                Ok(Elements(vec![]))
            }
        }
        d.deserialize_any(V)
    }
}

/// Entries of a map.
struct Pairs<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Pairs<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map: `{ key: value, … }`")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<'de>, A::Error> {
                let mut list = vec![];
                while let Some(entry) = map.next_entry()? {
                    list.push(entry);
                }
                Ok(Pairs(list))
            }
        }
        d.deserialize_map(V)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "#![enable(implicit_some)]\n(\n  seed: 42, // the seed\n  forces: [\n    Dpd(r_cut: 1.0, pairs: { (\"A\", \"A\"): (a: 25.0), // first\n      (\"A\", \"B//\"): (a: x), }),\n    /* none */ Wall(),\n    Gravity,\n  ],\n)";

    #[test]
    fn pieces_know_their_place() {
        let root = Source::file(TEXT).value();
        let fields = root.entries().expect("a struct");
        assert_eq!((fields[0].0.name.as_ref(), fields[0].0.at), ("seed", Position { line: 3, column: 3 }));
        assert_eq!((fields[0].1.text(), fields[0].1.at()), ("42", Position { line: 3, column: 9 }));
        let forces = fields[1].1.elements().expect("a list");
        let names: Vec<_> = forces.iter().map(|v| v.name()).collect();
        assert_eq!(names, [Some("Dpd"), Some("Wall"), Some("Gravity")]);
        assert_eq!(forces[1].at(), Position { line: 7, column: 16 });
        assert!(forces[1].entries().expect("no fields").is_empty());
        assert!(forces[2].entries().expect("no fields").is_empty());
        let dpd = forces[0].entries().expect("fields");
        let pairs = dpd[1].1.map().expect("a map");
        assert_eq!(pairs[1].0.text(), "(\"A\", \"B//\")");
        assert_eq!(pairs[1].0.at(), Position { line: 6, column: 7 });
        let a = pairs[1].1.entries().expect("fields")[0].1;
        let e = a.parse::<f64>().expect_err("x is no number");
        assert_eq!(e.at, Some(Position { line: 6, column: 25 }), "{e}");
    }

    #[test]
    fn syntax_errors_are_translated() {
        let error = |text: &str| Source::file(text).value().check_syntax().expect_err(text);
        let e = error("(\n  a: 1,\n  b: [1, 2,\n)");
        assert_eq!(e.at.map(|p| p.line), Some(4), "{e}");
        for text in ["(\n  a: 0,5)", "(\n  a: 0,5, b: 2)", "(a: {\n 1: 0,5})"] {
            let e = error(text);
            assert_eq!((e.at.map(|p| p.line), &*e.message), (Some(2), "`0,5` has a decimal comma; write `0.5`"));
        }
        for deep in ["(", "[", "{", "A(", "Some("] {
            let e = error(&format!("(a:\n{}", deep.repeat(100_000)));
            assert_eq!((e.at.map(|p| p.line), &*e.message), (Some(2), "more than 128 nested levels"));
        }
    }

    /// The time grows linearly with the length: each position follows from the one before.
    #[test]
    fn long_lists_have_positions() {
        let n = 300_000;
        let text = format!("(list: [\n{}])", "  A(x: 1),\n".repeat(n));
        let list = Source::file(&text).value().entries().expect("a struct")[0].1.elements().expect("a list");
        assert_eq!((list.len(), list[n - 1].at()), (n, Position { line: n as u32 + 1, column: 3 }));
    }
}
