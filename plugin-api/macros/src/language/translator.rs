//! The state of a translation: scopes, C++ names, output.

use super::Needs;
use super::types::{Result, refuse};
use super::words::ascii;
use proc_macro2::Span;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use syn::PatIdent;

/// A C++ variable.
pub struct Variable {
    /// Its C++ name.
    pub name: String,
    /// Whether it is known to consist of floating-point numbers.
    pub float: bool,
    /// Whether it is an argument that is not `&mut`.
    pub read_only: bool,
    /// Whether it, or every member of it, is known to be a `real`; for messages.
    pub real: bool,
}

/// What the last expression of a block is the value of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Value {
    None,
    OfFunction,
    OfBlock,
}

/// The state of a translation.
pub struct Translator {
    pub(super) scopes: Vec<HashMap<String, Variable>>,
    pub(super) count: usize,
    /// Names in the Rust text: no C++ variable may have one of them.
    pub(super) taken: HashSet<String>,
    /// The `&mut` arguments.
    pub(super) by_reference: HashSet<String>,
    /// The name of the function.
    pub name: String,
    /// See [`Needs`].
    pub needs: Needs,
    pub(super) out: String,
    pub(super) file: String,
}

impl Translator {
    /// Declares a variable under a new C++ name, so that shadowing and keywords cannot change a result.
    pub(super) fn declare(&mut self, pat: &PatIdent, float: bool) -> Result<String> {
        if let Some(word) = &pat.by_ref {
            return refuse(word, "no `ref`: variables hold values");
        }
        if let Some((at, _)) = &pat.subpat {
            return refuse(at, "no subpatterns");
        }
        let name = pat.ident.to_string();
        let fresh = self.fresh(&ascii(&name));
        self.scopes
            .last_mut()
            .expect("a function has a scope")
            .insert(name, Variable { name: fresh.clone(), float, read_only: false, real: false });
        Ok(fresh)
    }

    /// Returns the variable that a Rust name refers to in the current scope.
    pub fn lookup(&self, name: &str) -> Option<&Variable> {
        self.scopes.iter().rev().find_map(|s| s.get(name))
    }

    /// Returns the variable declared last under this name.
    pub(super) fn declared(&mut self, name: &str) -> Option<&mut Variable> {
        self.scopes.last_mut().and_then(|s| s.get_mut(name))
    }

    /// Returns an unused C++ name.
    pub(super) fn fresh(&mut self, name: &str) -> String {
        loop {
            self.count += 1;
            let fresh = format!("{name}_{}", self.count - 1);
            if !self.taken.contains(&fresh) {
                return fresh;
            }
        }
    }

    /// Writes a `#line` directive, so that messages of the C++ compiler refer to the Rust line.
    pub(super) fn line(&mut self, span: Span) {
        if !proc_macro::is_available() {
            return;
        }
        let start = span.unwrap();
        self.file = start.file();
        let _ = writeln!(self.out, "#line {} \"{}\"", start.line(), self.file);
    }
}
