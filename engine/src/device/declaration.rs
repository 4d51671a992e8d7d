//! Declarations of kernels in CUDA C++.

use super::SourceUnit;
use galamost_plugin_api::error::Result;
use std::collections::BTreeSet;

/// The marker with which every kernel is declared, in two parts, so that no search takes it for a kernel.
pub const MARKER: &str = concat!("extern \"C\" __global", "__ void");

/// The statement with which a kernel begins that may be launched before the kernels ahead of it have ended.
pub const AWAIT: &str = "await_launches();";

/// Returns the text of a unit with all of its headers.
///
/// # Errors
/// Returns an error if a struct is defined twice.
pub fn flattened(unit: &SourceUnit) -> Result<String> {
    let headers = SourceUnit::headers()?;
    let mut flat = String::new();
    include(&unit.text, &headers, &mut BTreeSet::new(), &mut flat);
    Ok(flat)
}

/// Returns the names of the kernels of a unit whose first statement is `await_launches();`.
///
/// # Errors
/// Returns an error if a struct is defined twice.
pub fn awaiting_kernels(unit: &SourceUnit) -> Result<BTreeSet<String>> {
    let text = flattened(unit)?;
    let kernels = text.split(MARKER).skip(1).filter_map(Declaration::parse);
    let awaits =
        |k: &Declaration<'_>| k.rest.strip_prefix('{').is_some_and(|body| body.trim_start().starts_with(AWAIT));
    Ok(kernels.filter(awaits).map(|k| k.name.to_string()).collect())
}

/// Adds a text to `out`, with each header in place of its first inclusion.
fn include<'a>(
    text: &'a str,
    headers: &'a [(&'static str, String)],
    done: &mut BTreeSet<&'static str>,
    out: &mut String,
) {
    for line in text.lines() {
        let code = line.trim_start();
        let name = code.strip_prefix("#include \"").and_then(|n| n.strip_suffix('"'));
        match headers.iter().find(|(n, _)| Some(*n) == name) {
            Some((name, header)) => {
                if done.insert(name) {
                    include(header, headers, done, out);
                }
            }
            None if code == "#pragma once" || code.starts_with("//") => {}
            None => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
}

/// A declaration of a kernel up to its body.
pub struct Declaration<'a> {
    pub bounds: &'a str,
    pub name: &'a str,
    /// Types and names.
    pub parameters: Vec<(&'a str, &'a str)>,
    /// The text from the body on.
    pub rest: &'a str,
}

impl<'a> Declaration<'a> {
    /// Parses the text after [`MARKER`].
    pub fn parse(text: &'a str) -> Option<Self> {
        let mut rest = text.trim_start();
        let mut bounds = "";
        if let Some(after) = rest.strip_prefix("__launch_bounds__") {
            bounds = &rest[..rest.len() - after.len() + closing(after)?];
            rest = rest[bounds.len()..].trim_start();
        }
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'))?;
        let (name, after) = rest.split_at(end);
        let after = after.trim_start();
        let end = closing(after)?;
        let rest = after[end..].trim_start();
        let parameters = after[1..end - 1].split(',').map(str::trim).filter(|p| !p.is_empty());
        let parameters = parameters.map(|p| {
            let at = p.rfind(|c: char| !(c.is_alphanumeric() || c == '_'))? + 1;
            Some((p[..at].trim(), &p[at..]))
        });
        let parameters = parameters.collect::<Option<Vec<_>>>()?;
        rest.starts_with('{').then_some(Self { bounds, name, parameters, rest })
    }
}

/// Returns the length of a text in parentheses, which starts with the first one.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(at + 1),
            ')' => depth = depth.checked_sub(1)?,
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use galamost_plugin_api::precision::Precision;

    #[test]
    fn kernels_that_await_others_are_found() {
        let text = "extern \"C\" __global__ void __launch_bounds__(128, f(2)) a(u32 n) {\n    await_launches();\n}\n\
            extern \"C\" __global__ void b() { if (later) await_launches(); }\n\
            extern \"C\" __global__ void c() { await_launches(); }\n";
        let unit = SourceUnit::new("unit", text, Precision::Mixed);
        assert_eq!(awaiting_kernels(&unit).expect("no clashes"), BTreeSet::from(["a".into(), "c".into()]));
    }
}
