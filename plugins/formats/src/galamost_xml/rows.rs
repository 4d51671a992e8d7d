//! Text of a node as rows of numbers or names, one row per line.

use crate::galamost_xml::document::Node;
use crate::galamost_xml::report::Report;
use crate::names::repetition;
use galamost_plugin_api::snapshot::Link;
use std::collections::HashMap;

/// A type of number in a row.
pub trait Number: Copy + Default {
    /// Description for messages.
    const WORDS: &'static str;
    /// Parses a number.
    fn parse(text: &str) -> Option<Self>;
}
impl Number for f64 {
    const WORDS: &'static str = "a number";
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|x: &Self| x.is_finite())
    }
}
impl Number for i32 {
    const WORDS: &'static str = "an integer";
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}
impl Number for u32 {
    const WORDS: &'static str = "a particle number, from 0";
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// Iterates over the lines that are not blank.
pub fn rows<'a>(node: &Node<'a>) -> impl Iterator<Item = &'a str> {
    node.text.clone().into_iter().flat_map(str::lines).map(str::trim_ascii).filter(|l| !l.is_empty())
}

/// Records an error in row `k`.
pub fn say(node: &Node<'_>, k: usize, report: &mut Report<'_>, message: impl FnOnce() -> String) {
    report
        .say_at(|r| rows(node).nth(k).map_or(node.at, |row| r.offset(row)), || format!("{}: {}", node.name, message()));
}

/// Formats a number of rows.
pub fn count(rows: usize) -> String {
    if rows == 1 { "1 row".into() } else { format!("{rows} rows") }
}

fn words(count: usize) -> String {
    if count == 1 { "1 value".into() } else { format!("{count} values") }
}

/// Parses rows of `W` numbers. A row with an error is recorded and counts as zeros, so that other rows keep their
/// numbers.
pub fn numbers<T: Number, const W: usize>(node: &Node<'_>, report: &mut Report<'_>) -> Vec<[T; W]> {
    let mut out = vec![];
    for row in rows(node) {
        out.push(numbers_of_row(node, row, row.split_ascii_whitespace(), 0, report).unwrap_or([T::default(); W]));
    }
    out
}

/// Parses the numbers of a row after `before` other values.
fn numbers_of_row<'a, T: Number, const W: usize>(
    node: &Node<'_>,
    row: &'a str,
    values: impl Iterator<Item = &'a str>,
    before: usize,
    report: &mut Report<'_>,
) -> Option<[T; W]> {
    let mut numbers = [T::default(); W];
    let mut found = 0;
    for value in values {
        if let Some(slot) = numbers.get_mut(found) {
            match T::parse(value) {
                Some(x) => *slot = x,
                None => {
                    report.say(report.offset(value), || {
                        format!("{}: expected {}, found `{}`", node.name, T::WORDS, short(value))
                    });
                    return None;
                }
            }
        }
        found += 1;
    }
    if found != W {
        report.say(report.offset(row), || {
            format!("{}: expected {} in a row, found {}", node.name, words(W + before), found + before)
        });
        return None;
    }
    Some(numbers)
}

/// Shortens a value for a message.
fn short(value: &str) -> &str {
    value.char_indices().nth(30).map_or(value, |(n, _)| &value[..n])
}

/// Type names and their indices, in order of appearance.
#[derive(Default)]
struct Names<'a> {
    names: Vec<String>,
    numbers: HashMap<&'a str, u32>,
    last: Option<(&'a str, u32)>,
}

impl<'a> Names<'a> {
    /// Begins with the names in the attribute `types`, if the node has it. A name that occurs twice is an error.
    fn of(node: &'a Node<'_>, report: &mut Report<'_>) -> Self {
        let mut names = Self::default();
        let list: Vec<&str> = node.attribute("types").unwrap_or_default().split_ascii_whitespace().collect();
        if let Some(k) = repetition(&list) {
            report.say(node.at, || format!("{}: `types` lists {} twice; list each type once", node.name, list[k]));
        }
        list.into_iter().for_each(|name| _ = names.number(name));
        names
    }

    fn number(&mut self, name: &'a str) -> u32 {
        // adjacent rows often have the same type
        if let Some((last, number)) = self.last
            && last == name
        {
            return number;
        }
        let number = *self.numbers.entry(name).or_insert_with(|| {
            self.names.push(name.into());
            (self.names.len() - 1) as u32
        });
        self.last = Some((name, number));
        number
    }
}

/// Parses one name per row; returns the names of the attribute `types` and further ones in order of their first use,
/// and the index of each row's name.
pub fn names(node: &Node<'_>, report: &mut Report<'_>) -> (Vec<String>, Vec<u32>) {
    let mut names = Names::of(node, report);
    let mut indices = vec![];
    for row in rows(node) {
        let name = row.split_ascii_whitespace().next().unwrap_or(row);
        if name.len() != row.len() {
            let found = row.split_ascii_whitespace().count();
            report.say(report.offset(row), || format!("{}: expected 1 name in a row, found {found}", node.name));
        }
        indices.push(names.number(name));
    }
    (names.names, indices)
}

/// Parses rows of a type and `N` particles out of `n`.
pub fn links<const N: usize>(node: &Node<'_>, n: usize, report: &mut Report<'_>) -> (Vec<String>, Vec<Link<N>>) {
    let mut names = Names::of(node, report);
    let mut links = vec![];
    for row in rows(node) {
        let mut values = row.split_ascii_whitespace();
        let kind = names.number(values.next().unwrap_or(row));
        let tags = numbers_of_row(node, row, values, 1, report);
        if let Some(tags) = tags {
            check_members(node, row, &tags, n, report);
        }
        // a row with an error still counts
        links.push(Link { kind, tags: tags.unwrap_or([0; N]) });
    }
    (names.names, links)
}

fn check_members<const N: usize>(node: &Node<'_>, row: &str, tags: &[u32; N], n: usize, report: &mut Report<'_>) {
    if let Some(tag) = tags.iter().find(|t| **t as usize >= n) {
        report.say(report.offset(row), || {
            format!("{}: unknown particle {tag}; the last particle is {}", node.name, n.saturating_sub(1))
        });
    } else if let Some(twice) = (1..N).find(|k| tags[..*k].contains(&tags[*k])) {
        report.say(report.offset(row), || format!("{}: particle {} occurs twice", node.name, tags[twice]));
    }
}
