//! Statements of the device language.

use super::expression::product;
use super::translator::{Translator, Value};
use super::types::{Result, cxx_type, refuse, struct_paths};
use super::{RANDOM_METHODS, assigning, is_float_type, without_parentheses};
use super::{order, real};
use std::collections::HashMap;
use std::fmt::Write as _;
use syn::spanned::Spanned;
use syn::{Block, Expr, ExprForLoop, ExprIf, Local, Pat, PatTuple, RangeLimits, Stmt, Type};

impl Translator {
    pub(super) fn body(&mut self, block: &Block, value: Value) -> Result<()> {
        let n = block.stmts.len();
        for (i, stmt) in block.stmts.iter().enumerate() {
            let last = i + 1 == n;
            match stmt {
                Stmt::Expr(Expr::Return(r), _) if last && value == Value::OfFunction => {
                    let Some(e) = &r.expr else { return refuse(r, "a value must be returned") };
                    self.result(e)?;
                }
                Stmt::Expr(e, None) if last && value != Value::None => self.result(e)?,
                stmt => self.statement(stmt, last)?,
            }
        }
        Ok(())
    }

    fn result(&mut self, e: &Expr) -> Result<()> {
        self.line(e.span());
        let e = self.full_expression(e)?;
        let _ = writeln!(self.out, "return {e};");
        Ok(())
    }

    /// Translates an expression that is not part of a larger one, and checks its order of evaluation.
    fn full_expression(&mut self, e: &Expr) -> Result<String> {
        let text = self.expr(e)?;
        order::check(e, &self.by_reference)?;
        Ok(text)
    }

    fn block(&mut self, block: &Block, value: Value) -> Result<()> {
        self.scopes.push(HashMap::new());
        let result = self.body(block, value);
        self.scopes.pop();
        result
    }

    fn statement(&mut self, stmt: &Stmt, last: bool) -> Result<()> {
        self.line(stmt.span());
        match stmt {
            Stmt::Local(local) => self.local(local),
            Stmt::Expr(Expr::If(e), _) => self.if_statement(e),
            Stmt::Expr(Expr::ForLoop(e), _) => self.for_loop(e),
            Stmt::Expr(Expr::Assign(a), _) => self.assign(&a.left, &a.right),
            Stmt::Expr(Expr::Binary(b), _) if assigning(&b.op).is_some() => {
                let (operator, helper) = assigning(&b.op).unwrap_or_default();
                if let (Some(p), "add" | "sub") = (product(&b.right), helper) {
                    let (l, (x, y)) = (self.target(&b.left)?, self.factors(p)?);
                    self.check_operands(&b.left, &b.op, &b.right)?;
                    order::check_assignment(&b.left, &b.right, &self.by_reference)?;
                    let name = if helper == "add" { "mul_add" } else { "sub_mul" };
                    let _ = writeln!(self.out, "device_set_{name}({l}, {x}, {y});");
                    return Ok(());
                }
                let (l, r) = (self.target(&b.left)?, self.expr(&b.right)?);
                self.check_operands(&b.left, &b.op, &b.right)?;
                order::check_assignment(&b.left, &b.right, &self.by_reference)?;
                let float = self.is_float(&b.left) || self.is_float(&b.right);
                let _ = if float && !operator.is_empty() {
                    writeln!(self.out, "{l} {operator} {r};")
                } else {
                    writeln!(self.out, "device_set_{helper}({l}, {r});")
                };
                Ok(())
            }
            Stmt::Expr(Expr::Block(b), _) if b.label.is_none() => {
                self.out.push_str("{\n");
                self.block(&b.block, Value::None)?;
                self.out.push_str("}\n");
                Ok(())
            }
            Stmt::Expr(e @ Expr::Call(_), semicolon) if semicolon.is_some() || last => {
                let e = self.full_expression(e)?;
                let _ = writeln!(self.out, "{e};");
                Ok(())
            }
            Stmt::Expr(e @ Expr::MethodCall(m), Some(_)) if RANDOM_METHODS.iter().any(|n| m.method == n) => {
                let e = self.full_expression(e)?;
                let _ = writeln!(self.out, "{e};");
                Ok(())
            }
            Stmt::Expr(Expr::Return(r), _) => refuse(r, "no return before the end: use an if/else expression"),
            Stmt::Expr(e, _) => {
                // an error inside the expression is more specific
                self.expr(e)?;
                refuse(e, "this statement has no effect")
            }
            Stmt::Item(syn::Item::Const(c)) => {
                refuse(c, "no items inside a device function: define the constant outside")
            }
            Stmt::Item(i) => refuse(i, "no items inside a device function"),
            Stmt::Macro(m) => refuse(m, "no macros inside a device function"),
        }
    }

    fn for_loop(&mut self, e: &ExprForLoop) -> Result<()> {
        let Expr::Range(range) = without_parentheses(&e.expr) else {
            return refuse(&e.expr, "a loop runs over a range of integers, `for k in 0..n`");
        };
        let (Some(from), Some(to)) = (&range.start, &range.end) else {
            return refuse(range, "a range needs both limits");
        };
        if let Some(label) = &e.label {
            return refuse(label, "no labels: there is no break and no continue");
        }
        order::check(&e.expr, &self.by_reference)?;
        let (from, to) = (self.expr(from)?, self.expr(to)?);
        let (begin, end, counter) = (self.fresh("begin"), self.fresh("end"), self.fresh("counter"));
        // the limits are evaluated once, and changes of the loop variable do not affect the next iteration
        let _ = writeln!(self.out, "{{ const auto {begin} = {from}; const auto {end} = {to};");
        let ty = format!("device_common<decltype({begin}), decltype({end})>");
        let closed = matches!(range.limits, RangeLimits::Closed(_));
        let _ = if closed {
            // the upper limit may be the largest integer
            writeln!(self.out, "if ({begin} <= {end}) for ({ty} {counter} = {begin};; ++{counter}) {{")
        } else {
            writeln!(self.out, "for ({ty} {counter} = {begin}; {counter} < {end}; ++{counter}) {{")
        };
        self.scopes.push(HashMap::new());
        let done = match &*e.pat {
            Pat::Wild(_) => Ok(()),
            Pat::Ident(k) => self.declare(k, false).map(|name| {
                let constant = if k.mutability.is_some() { "" } else { "const " };
                let _ = writeln!(self.out, "{constant}{ty} {name} = {counter};");
            }),
            p => refuse(p, "the loop variable must be a plain name"),
        };
        let done = done.and_then(|()| self.block(&e.body, Value::None));
        self.scopes.pop();
        if closed {
            let _ = writeln!(self.out, "if ({counter} == {end}) break;");
        }
        self.out.push_str("} }\n");
        done
    }

    fn assign(&mut self, left: &Expr, right: &Expr) -> Result<()> {
        if let Expr::Tuple(targets) = left {
            let r = self.full_expression(right)?;
            let whole = self.fresh("tuple");
            let _ = writeln!(self.out, "const auto {whole} = {r};");
            for (k, target) in targets.elems.iter().enumerate() {
                if !matches!(target, Expr::Infer(_)) {
                    let l = self.target(target)?;
                    let _ = writeln!(self.out, "{l} = {whole}.v{k};");
                }
            }
            return Ok(());
        }
        let (l, r) = (self.target(left)?, self.expr(right)?);
        order::check_assignment(left, right, &self.by_reference)?;
        let _ = writeln!(self.out, "{l} = {r};");
        Ok(())
    }

    /// Translates the left side of an assignment.
    fn target(&mut self, e: &Expr) -> Result<String> {
        let Some(root) = order::root(e) else {
            return refuse(e, "assign to a variable, to a member of one, or to a tuple of these");
        };
        if self.lookup(&root).is_some_and(|v| v.read_only) {
            let message = match root.as_str() {
                // no function may take it as `&mut`
                "position" => {
                    "`position` is a read-only argument: assign to a variable, `let mut position = position;`; a \
                               particle moves by `displacement: &mut Vec3<real>`"
                        .into()
                }
                _ => format!(
                    "`{root}` is a read-only argument: take it as `{root}: &mut …`, or assign to a variable, `let mut {root} = {root};`"
                ),
            };
            return refuse(e, message);
        }
        self.expr(e)
    }

    fn local(&mut self, local: &Local) -> Result<()> {
        let Some(init) = &local.init else {
            return refuse(local, "a variable needs a value where it is declared");
        };
        if let Some((_, e)) = &init.diverge {
            return refuse(e, "no let-else");
        }
        if let Some(name) = order::root(&init.expr)
            .filter(|n| self.by_reference.contains(n) && matches!(without_parentheses(&init.expr), Expr::Path(_)))
        {
            return refuse(
                &init.expr,
                format!("`{name}` is a reference, and variables hold values: use `{name}` itself"),
            );
        }
        if let Pat::Type(t) = &local.pat
            && is_float_type(&t.ty)
        {
            real::check_number(&init.expr)?;
        }
        let value = self.full_expression(&init.expr)?;
        let is_real = self.is_real(&init.expr);
        let (pat, ty, float) = match &local.pat {
            Pat::Type(t) => {
                struct_paths(&t.ty, &mut self.needs.structs);
                (&*t.pat, cxx_type(&t.ty)?, is_float_type(&t.ty))
            }
            p => (p, "auto".into(), self.is_float(&init.expr)),
        };
        match pat {
            Pat::Ident(p) => {
                let constant = if p.mutability.is_some() { "" } else { "const " };
                let name = self.declare(p, float)?;
                if let Some(variable) = self.declared(&p.ident.to_string()) {
                    variable.real = is_real;
                }
                let _ = writeln!(self.out, "{constant}{ty} {name} = {value};");
                Ok(())
            }
            Pat::Tuple(tuple) => self.destructure(local, &init.expr, tuple, &ty, &value),
            p => refuse(p, "a variable must be a plain name or a tuple of names"),
        }
    }

    /// `let (a, b) = value;`
    fn destructure(&mut self, local: &Local, init: &Expr, tuple: &PatTuple, ty: &str, value: &str) -> Result<()> {
        let whole = self.fresh("tuple");
        let _ = writeln!(self.out, "const {ty} {whole} = {value};");
        for (k, p) in tuple.elems.iter().enumerate() {
            match p {
                Pat::Wild(_) => {}
                Pat::Ident(p) => {
                    let constant = if p.mutability.is_some() { "" } else { "const " };
                    let float = match (&local.pat, without_parentheses(init)) {
                        (Pat::Type(t), _) => {
                            matches!(&*t.ty, Type::Tuple(t) if t.elems.get(k).is_some_and(is_float_type))
                        }
                        (_, Expr::Tuple(t)) => t.elems.get(k).is_some_and(|e| self.is_float(e)),
                        _ => false,
                    };
                    let name = self.declare(p, float)?;
                    let _ = writeln!(self.out, "{constant}auto {name} = {whole}.v{k};");
                }
                p => return refuse(p, "a tuple pattern consists of plain names"),
            }
        }
        Ok(())
    }

    fn if_statement(&mut self, e: &ExprIf) -> Result<()> {
        let c = self.full_expression(&e.cond)?;
        let _ = writeln!(self.out, "if ({c}) {{");
        self.block(&e.then_branch, Value::None)?;
        self.out.push('}');
        match &e.else_branch {
            None => self.out.push('\n'),
            Some((_, other)) => {
                self.out.push_str(" else {\n");
                match &**other {
                    Expr::If(e) => self.if_statement(e)?,
                    Expr::Block(b) => self.block(&b.block, Value::None)?,
                    other => return refuse(other, "else needs a block"),
                }
                self.out.push_str("}\n");
            }
        }
        Ok(())
    }

    /// Translates a block that has a value: its only expression, or a lambda that is called immediately.
    pub fn block_value(&mut self, block: &Block) -> Result<String> {
        if let [Stmt::Expr(e, None)] = block.stmts.as_slice() {
            return self.expr(e);
        }
        if let Some(Stmt::Expr(Expr::Return(r), _)) = block.stmts.last() {
            return refuse(r, "no return inside an expression: use an if/else expression");
        }
        if !matches!(block.stmts.last(), Some(Stmt::Expr(_, None))) {
            return refuse(block, "this block must end with a value");
        }
        let outer = std::mem::take(&mut self.out);
        let result = self.block(block, Value::OfBlock);
        let inner = std::mem::replace(&mut self.out, outer);
        result?;
        Ok(format!("[&]() {{\n{inner}}}()"))
    }
}
