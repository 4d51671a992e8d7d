//! Keys and values in the second line of a frame.

use galamost_text::{Lines, Result};

/// Returns keys and values in order; a key without a value has the value `T`.
///
/// # Errors
/// Returns an error if a quotation is not closed.
pub fn keys(l: &Lines) -> Result<Vec<(&str, &str)>> {
    let mut rest = l.text();
    let mut all = vec![];
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Ok(all);
        }
        let (key, after) = word(l, rest, true)?;
        match after.strip_prefix('=') {
            Some(value) => {
                let (value, after) = word(l, value.trim_ascii_start(), false)?;
                all.push((key, value));
                rest = after;
            }
            None => {
                all.push((key, "T"));
                rest = after;
            }
        }
    }
}

/// Returns a word, or the text in quotation marks or brackets, and the remaining text.
fn word<'a>(l: &Lines, text: &'a str, key: bool) -> Result<(&'a str, &'a str)> {
    let close = match text.chars().next() {
        Some('"') => Some('"'),
        Some('\'') => Some('\''),
        Some('{') => Some('}'),
        Some('[') => Some(']'),
        _ => None,
    };
    if let Some(close) = close {
        let inner = &text[1..];
        return inner.split_once(close).ok_or_else(|| l.wrong_at(text, format!("missing closing `{close}`")));
    }
    let end = text.find(|c: char| c.is_ascii_whitespace() || key && c == '=').unwrap_or(text.len());
    if end == 0 && key {
        return Err(l.wrong_at(text, "expected a key, found `=`"));
    }
    Ok(text.split_at(end))
}
