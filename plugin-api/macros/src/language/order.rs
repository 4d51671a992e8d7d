//! The order of evaluation.
//!
//! Rust evaluates operands and arguments from left to right, C++ in any order. The order matters only if one of them
//! changes a variable that another one uses: by a random draw, by a call with `&mut`, by an assignment in a block. Such
//! expressions are refused.

use crate::language::RANDOM_METHODS;
use crate::language::types::{Result, refuse};
use std::collections::HashSet;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, Stmt};

/// Variables that an expression reads and changes.
#[derive(Default)]
struct Uses {
    reads: HashSet<String>,
    writes: HashSet<String>,
}

impl Uses {
    fn add(&mut self, other: Self) {
        self.reads.extend(other.reads);
        self.writes.extend(other.writes);
    }
    fn touches(&self, name: &str) -> bool {
        self.reads.contains(name) || self.writes.contains(name)
    }
}

/// Refuses an expression whose value depends on the order of evaluation; `by_reference` are the `&mut` arguments of the
/// function.
pub fn check(e: &Expr, by_reference: &HashSet<String>) -> Result<()> {
    uses(e, by_reference).map(|_| ())
}

/// Refuses an assignment whose right side changes what the left side's index uses.
pub fn check_assignment(left: &Expr, right: &Expr, by_reference: &HashSet<String>) -> Result<()> {
    let (l, r) = (uses(left, by_reference)?, uses(right, by_reference)?);
    let mut indices = Uses::default();
    let mut target = left;
    loop {
        target = match target {
            Expr::Field(f) => &f.base,
            Expr::Paren(p) => &p.expr,
            Expr::Unary(u) => &u.expr,
            Expr::Index(i) => {
                indices.add(uses(&i.index, by_reference)?);
                &i.expr
            }
            _ => break,
        }
    }
    let clash = r.writes.iter().find(|n| indices.touches(n)).or_else(|| l.writes.iter().find(|n| r.touches(n)));
    match clash {
        Some(name) => refuse(right, clash_message(name)),
        None => Ok(()),
    }
}

fn clash_message(name: &str) -> String {
    format!(
        "this changes `{name}`, which another part of the statement uses, and C++ does not fix the order: use a separate `let`"
    )
}

/// Returns the variable to which an assignable expression belongs.
pub fn root(target: &Expr) -> Option<String> {
    match target {
        Expr::Path(p) => p.path.get_ident().map(ToString::to_string),
        Expr::Field(f) => root(&f.base),
        Expr::Index(i) => root(&i.expr),
        Expr::Paren(p) => root(&p.expr),
        Expr::Unary(u) => root(&u.expr),
        Expr::Reference(r) => root(&r.expr),
        _ => None,
    }
}

/// Parts that C++ evaluates in any order: no part may use what another one changes.
fn unordered<'a>(parts: impl IntoIterator<Item = &'a Expr>, m: &HashSet<String>) -> Result<Uses> {
    let mut all = Uses::default();
    for e in parts {
        let u = uses(e, m)?;
        let clash = u.writes.iter().find(|n| all.touches(n)).or_else(|| all.writes.iter().find(|n| u.touches(n)));
        if let Some(name) = clash {
            return refuse(e, clash_message(name));
        }
        all.add(u);
    }
    Ok(all)
}

fn uses(e: &Expr, m: &HashSet<String>) -> Result<Uses> {
    let mut found = Uses::default();
    match e {
        Expr::Path(p) => found.reads.extend(p.path.get_ident().map(ToString::to_string)),
        Expr::Paren(p) => return uses(&p.expr, m),
        Expr::Group(g) => return uses(&g.expr, m),
        Expr::Unary(u) => return uses(&u.expr, m),
        Expr::Reference(r) => return uses(&r.expr, m),
        Expr::Field(f) => return uses(&f.base, m),
        Expr::Cast(c) => return uses(&c.expr, m),
        Expr::Index(i) => return unordered([&*i.expr, &*i.index], m),
        // && and || are evaluated from left to right in C++, too
        Expr::Binary(b) if matches!(b.op, BinOp::And(_) | BinOp::Or(_)) => {
            found.add(uses(&b.left, m)?);
            found.add(uses(&b.right, m)?);
        }
        Expr::Binary(b) => return unordered([&*b.left, &*b.right], m),
        Expr::Tuple(t) => return unordered(&t.elems, m),
        Expr::MethodCall(c) => {
            found = unordered(std::iter::once(&*c.receiver).chain(&c.args), m)?;
            if RANDOM_METHODS.iter().any(|n| c.method == n) {
                found.writes.extend(root(&c.receiver));
            }
        }
        Expr::Call(c) => {
            // all arguments are evaluated before the function can change them
            found = unordered(&c.args, m)?;
            for a in &c.args {
                let changed = match a {
                    Expr::Reference(r) if r.mutability.is_some() => root(&r.expr),
                    Expr::Path(_) => root(a).filter(|n| m.contains(n)),
                    _ => None,
                };
                found.writes.extend(changed);
            }
        }
        Expr::If(i) => {
            found.add(uses(&i.cond, m)?);
            found.add(block_uses(&i.then_branch, m)?);
            if let Some((_, other)) = &i.else_branch {
                found.add(uses(other, m)?);
            }
        }
        Expr::Block(b) => return block_uses(&b.block, m),
        _ => {}
    }
    Ok(found)
}

/// Everything a block reads and changes. Its statements are checked one by one when they are translated.
fn block_uses(block: &Block, m: &HashSet<String>) -> Result<Uses> {
    struct Finder<'a> {
        found: Uses,
        m: &'a HashSet<String>,
        error: Option<syn::Error>,
    }
    impl Visit<'_> for Finder<'_> {
        fn visit_expr(&mut self, e: &Expr) {
            match e {
                Expr::Path(p) => self.found.reads.extend(p.path.get_ident().map(ToString::to_string)),
                Expr::Assign(a) => self.found.writes.extend(root(&a.left)),
                Expr::Binary(b) if crate::language::assigning(&b.op).is_some() => {
                    self.found.writes.extend(root(&b.left));
                }
                Expr::Call(_) | Expr::MethodCall(_) => match uses(e, self.m) {
                    Ok(u) => self.found.add(u),
                    Err(e) => self.error = Some(e),
                },
                _ => {}
            }
            visit::visit_expr(self, e);
        }
    }
    let mut finder = Finder { found: Uses::default(), m, error: None };
    finder.visit_block(block);
    if let Some(Stmt::Expr(e, None)) = block.stmts.last() {
        finder.found.add(uses(e, m)?);
    }
    match finder.error {
        Some(e) => Err(e),
        None => Ok(finder.found),
    }
}
