//! Types of integer literals without a suffix.
//!
//! rustc infers the type of `0` in `let mut n = 0;` from all later uses of `n`; C++ does not. Therefore a literal gets the
//! type written next to it (`let n: u64 = 0` becomes 0u64), or i32 if there is none, before both translations. A literal
//! combined with another value (`k + 1`) takes that value's type in both languages and is left unchanged.

use syn::visit_mut::{self, VisitMut};
use syn::{BinOp, Block, Expr, ItemFn, Lit, LitInt, Local, Pat, ReturnType, Stmt, Type};

/// Returns the function with a type for every integer literal that needs one.
pub fn settle(f: &ItemFn) -> ItemFn {
    let mut f = f.clone();
    if let ReturnType::Type(_, ty) = &f.sig.output {
        let ty = ty.clone();
        hint_block(&mut f.block, &ty);
    }
    Settle.visit_block_mut(&mut f.block);
    f
}

struct Settle;

impl VisitMut for Settle {
    fn visit_local_mut(&mut self, local: &mut Local) {
        if let Some(init) = &mut local.init {
            match &local.pat {
                Pat::Type(t) => hint(&mut init.expr, &t.ty),
                _ => by_itself(&mut init.expr),
            }
        }
        visit_mut::visit_local_mut(self, local);
    }
    fn visit_expr_mut(&mut self, e: &mut Expr) {
        match e {
            Expr::ForLoop(l) => {
                if let Expr::Range(r) = &mut *l.expr
                    && let (Some(a), Some(b)) = (&mut r.start, &mut r.end)
                    && is_pure(a)
                    && is_pure(b)
                {
                    hint(a, &i32_type());
                    hint(b, &i32_type());
                }
            }
            Expr::Binary(b) if !is_shift(&b.op) && is_pure(&b.left) && is_pure(&b.right) => {
                hint(&mut b.left, &i32_type());
                hint(&mut b.right, &i32_type());
            }
            Expr::Cast(c) if is_pure(&c.expr) => hint(&mut c.expr, &i32_type()),
            _ => {}
        }
        visit_mut::visit_expr_mut(self, e);
    }
}

fn i32_type() -> Type {
    syn::parse_quote!(i32)
}

/// Returns whether this is a shift, whose right operand has an independent type.
pub fn is_shift(op: &BinOp) -> bool {
    matches!(op, BinOp::Shl(_) | BinOp::Shr(_))
}

fn is_arithmetic(op: &BinOp) -> bool {
    is_shift(op)
        || matches!(
            op,
            BinOp::Add(_)
                | BinOp::Sub(_)
                | BinOp::Mul(_)
                | BinOp::Div(_)
                | BinOp::Rem(_)
                | BinOp::BitAnd(_)
                | BinOp::BitOr(_)
                | BinOp::BitXor(_)
        )
}

fn last(block: &Block) -> Option<&Expr> {
    match block.stmts.last() {
        Some(Stmt::Expr(e, None)) => Some(e),
        _ => None,
    }
}

/// Returns whether the value consists only of integer literals without a suffix.
pub fn is_pure(e: &Expr) -> bool {
    match e {
        Expr::Lit(l) => matches!(&l.lit, Lit::Int(i) if i.suffix().is_empty()),
        Expr::Paren(p) => is_pure(&p.expr),
        Expr::Group(g) => is_pure(&g.expr),
        Expr::Unary(u) => is_pure(&u.expr),
        Expr::Binary(b) if is_shift(&b.op) => is_pure(&b.left),
        Expr::Binary(b) => is_arithmetic(&b.op) && is_pure(&b.left) && is_pure(&b.right),
        Expr::Block(b) => last(&b.block).is_some_and(is_pure),
        Expr::If(i) => {
            last(&i.then_branch).is_some_and(is_pure) && i.else_branch.as_ref().is_some_and(|(_, e)| is_pure(e))
        }
        _ => false,
    }
}

/// Gives i32 to a value whose type nothing determines; members of a tuple one by one.
fn by_itself(e: &mut Expr) {
    match e {
        Expr::Tuple(t) => t.elems.iter_mut().for_each(by_itself),
        Expr::Paren(p) => by_itself(&mut p.expr),
        e if is_pure(e) => hint(e, &i32_type()),
        _ => {}
    }
}

fn hint_block(block: &mut Block, ty: &Type) {
    match block.stmts.last_mut() {
        Some(Stmt::Expr(Expr::Return(r), _)) => {
            if let Some(e) = &mut r.expr {
                hint(e, ty);
            }
        }
        Some(Stmt::Expr(e, None)) => hint(e, ty),
        _ => {}
    }
}

/// Writes a known type into the literals that have it.
fn hint(e: &mut Expr, ty: &Type) {
    match (e, ty) {
        (Expr::Paren(p), ty) => hint(&mut p.expr, ty),
        (Expr::Group(g), ty) => hint(&mut g.expr, ty),
        (Expr::Block(b), ty) => hint_block(&mut b.block, ty),
        (Expr::If(i), ty) => {
            hint_block(&mut i.then_branch, ty);
            if let Some((_, other)) = &mut i.else_branch {
                hint(other, ty);
            }
        }
        (Expr::Tuple(t), Type::Tuple(types)) => {
            t.elems.iter_mut().zip(&types.elems).for_each(|(e, ty)| hint(e, ty));
        }
        (e, Type::Path(p)) => {
            let name = p.path.get_ident().map(ToString::to_string).unwrap_or_default();
            if ["i32", "u32", "u64", "usize"].contains(&name.as_str()) {
                suffix(e, &name);
            }
        }
        _ => {}
    }
}

fn suffix(e: &mut Expr, name: &str) {
    match e {
        Expr::Lit(l) => {
            if let Lit::Int(i) = &l.lit
                && i.suffix().is_empty()
            {
                l.lit = LitInt::new(&format!("{i}{name}"), i.span()).into();
            }
        }
        Expr::Unary(u) => suffix(&mut u.expr, name),
        Expr::Binary(b) if is_arithmetic(&b.op) => {
            suffix(&mut b.left, name);
            if !is_shift(&b.op) {
                suffix(&mut b.right, name);
            }
        }
        Expr::Paren(_) | Expr::Group(_) | Expr::Block(_) | Expr::If(_) => {
            hint(e, &syn::parse_str(name).unwrap_or_else(|_| i32_type()));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::ToTokens as _;

    fn settled(body: &str) -> String {
        let f = syn::parse_str(&format!("fn f(k: u32) -> (u32, real) {{ {body} }}")).expect("Rust syntax");
        settle(&f).block.to_token_stream().to_string()
    }

    #[test]
    fn literals_get_the_type_next_to_them() {
        for (body, expected) in [
            ("let n = 0;", "let n = 0i32"),
            ("let n: u64 = 0;", "0u64"),
            ("let n = -(1 + 2);", "- (1i32 + 2i32)"),
            ("let n = if k > 1 { 0 } else { 1 };", "if k > 1 { 0i32 } else { 1i32 }"),
            ("let n = if k > 1 { 0 } else { k };", "{ 0 } else { k }"),
            ("let n: u32 = if k > 1 { 0 } else { k };", "{ 0u32 } else { k }"),
            ("let n = k + 1;", "k + 1 ;"),
            ("let n: usize = 1 << 3;", "1usize << 3"),
            ("let (a, b) = (1, k);", "(1i32 , k)"),
            ("for k in 0..4 { }", "0i32 .. 4i32"),
            ("for k in 0..n { }", "0 .. n"),
            ("let x = 3 as real;", "3i32 as real"),
            ("(3, 1.0)", "(3u32 , 1.0)"),
            ("return (if k > 2 { (0xff, 1.0) } else { (2 * 3, 2.0) });", "(0xffu32 , 1.0)"),
        ] {
            let text = settled(body);
            assert!(text.contains(expected), "{body} became {text}");
        }
    }
}
