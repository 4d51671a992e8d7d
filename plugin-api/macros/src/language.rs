//! The device language: a Rust function body becomes CUDA C++ text. Here functions and statements; `expression.rs` has
//! the expressions.
//!
//! rustc has the last word on types; this translation only needs syntax. What it does not know is refused with the
//! exact span, so that a function either means the same on both devices or does not compile.

use crate::order;
use crate::types::{Result, cxx_type, refuse, struct_paths};
use crate::words::{ascii, is_free, plain};
use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{
    BinOp, Block, Expr, ExprForLoop, ExprIf, FnArg, ItemFn, Local, Pat, PatIdent, RangeLimits, ReturnType, Stmt, Type,
};

/// What a translated function needs before it.
#[derive(Default)]
pub struct Needs {
    /// Structs in its signature.
    pub structs: Vec<syn::Path>,
    /// Functions it calls; where the text has `@call k@`, the name of number k belongs.
    pub functions: Vec<syn::Path>,
    /// Constants of Rust it names; where the text has `@constant k@`, the value of number k belongs.
    pub constants: Vec<TokenStream>,
}

/// A function's C++ text and its needs.
pub struct Translated {
    /// `template <class real> __device__ … { … }`
    pub text: String,
    /// What must stand before it.
    pub needs: Needs,
}

/// Methods of `random`; what they return is a number of the function's own type.
pub const RANDOM_METHODS: &[&str] = &["uniform", "normal3"];

/// Translates a whole function, whose numbers were settled before.
pub fn translate(f: &ItemFn) -> Result<Translated> {
    signature(f)?;
    let mut t = Translator {
        scopes: vec![HashMap::new()],
        count: 0,
        taken: called_names(f),
        by_reference: HashSet::new(),
        name: f.sig.ident.to_string(),
        needs: Needs::default(),
        out: String::new(),
        file: String::new(),
    };
    let mut args = vec![];
    for arg in &f.sig.inputs {
        let FnArg::Typed(arg) = arg else {
            return refuse(arg, "no methods: write a free function");
        };
        let Pat::Ident(name) = &*arg.pat else {
            return refuse(&arg.pat, "an argument is a plain name");
        };
        struct_paths(&arg.ty, &mut t.needs.structs);
        let ty = cxx_type(&arg.ty)?;
        if matches!(&*arg.ty, Type::Reference(r) if r.mutability.is_some()) {
            t.by_reference.insert(name.ident.to_string());
        }
        let name = t.declare(name, is_float_type(&arg.ty))?;
        args.push(format!("{ty} {name}"));
    }
    let ret = match &f.sig.output {
        ReturnType::Default => "void".into(),
        ReturnType::Type(_, ty) if matches!(&**ty, Type::Reference(_)) => {
            return refuse(ty, "a function returns a value, no reference");
        }
        ReturnType::Type(_, ty) => {
            struct_paths(ty, &mut t.needs.structs);
            cxx_type(ty)?
        }
    };
    t.line(f.sig.ident.span());
    let _ = writeln!(
        t.out,
        "template <class real>\n__device__ __forceinline__ {ret} {}({}) {{",
        plain(&t.name),
        args.join(", ")
    );
    t.body(&f.block, if ret == "void" { Value::None } else { Value::OfFunction })?;
    t.out.push_str("}\n");
    Ok(Translated { text: t.out, needs: t.needs })
}

/// Refuses what a function's head may not have.
fn signature(f: &ItemFn) -> Result<()> {
    let sig = &f.sig;
    let words: [Option<TokenStream>; 4] = [
        sig.asyncness.map(ToTokens::into_token_stream),
        sig.constness.map(ToTokens::into_token_stream),
        sig.unsafety.map(ToTokens::into_token_stream),
        sig.abi.as_ref().map(ToTokens::to_token_stream),
    ];
    if let Some(word) = words.into_iter().flatten().next() {
        return refuse(&word, format!("no `{word}` functions"));
    }
    if let Some(p) = sig.generics.params.first() {
        return refuse(p, "no type parameters: the number type is called `real` and needs no declaration");
    }
    if let Some(w) = &sig.generics.where_clause {
        return refuse(w, "no where clauses: the number type is called `real` and needs no declaration");
    }
    let name = sig.ident.to_string();
    if !name.is_ascii() {
        return refuse(&sig.ident, "a function's name is written in ASCII letters");
    }
    if !is_free(&name) {
        return refuse(
            &sig.ident,
            format!("`{name}` means something in C++ or in the engine's headers: rename this function"),
        );
    }
    // attributes of statements may remove code for rustc only
    struct Conditions(Option<syn::Attribute>);
    impl Visit<'_> for Conditions {
        fn visit_attribute(&mut self, a: &syn::Attribute) {
            if !["allow", "expect", "warn", "deny", "doc"].iter().any(|n| a.path().is_ident(n)) {
                self.0.get_or_insert_with(|| a.clone());
            }
        }
    }
    let mut conditions = Conditions(None);
    conditions.visit_block(&f.block);
    match conditions.0 {
        Some(a) => refuse(&a, "no attributes inside a device function besides lint levels"),
        None => Ok(()),
    }
}

/// Last names of everything that is called: no variable may get one of them in C++.
fn called_names(f: &ItemFn) -> HashSet<String> {
    struct Names(HashSet<String>);
    impl Visit<'_> for Names {
        fn visit_ident(&mut self, i: &proc_macro2::Ident) {
            self.0.insert(i.to_string());
        }
    }
    let mut names = Names(HashSet::new());
    names.visit_item_fn(f);
    names.0
}

/// Whether a value of this type is made of floating-point numbers.
pub fn is_float_type(ty: &Type) -> bool {
    match ty {
        Type::Reference(r) => is_float_type(&r.elem),
        Type::Path(p) => p
            .path
            .segments
            .last()
            .is_some_and(|s| ["real", "f32", "f64", "Vec3", "Quaternion"].iter().any(|n| s.ident == n)),
        _ => false,
    }
}

/// A variable in C++.
pub struct Variable {
    /// Its name there.
    pub name: String,
    /// Whether it is known to be made of floating-point numbers.
    pub float: bool,
}

/// Whose value the last line of a block is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    None,
    OfFunction,
    OfBlock,
}

/// The state of a translation.
pub struct Translator {
    scopes: Vec<HashMap<String, Variable>>,
    count: usize,
    /// Names in the Rust text, none of which a variable of C++ may have.
    taken: HashSet<String>,
    /// The `&mut` arguments.
    by_reference: HashSet<String>,
    /// The function's own name.
    pub name: String,
    /// See [`Needs`].
    pub needs: Needs,
    out: String,
    file: String,
}

impl Translator {
    /// A fresh C++ name, so that shadowing cannot change a result and no keyword is hit.
    fn declare(&mut self, pat: &PatIdent, float: bool) -> Result<String> {
        if let Some(word) = &pat.by_ref {
            return refuse(word, "no `ref`: variables hold values");
        }
        if let Some((at, _)) = &pat.subpat {
            return refuse(at, "no patterns behind a name");
        }
        let name = pat.ident.to_string();
        let fresh = self.fresh(&ascii(&name));
        self.scopes.last_mut().expect("a function has a scope").insert(name, Variable { name: fresh.clone(), float });
        Ok(fresh)
    }

    /// The variable that a name of Rust means here.
    pub fn lookup(&self, name: &str) -> Option<&Variable> {
        self.scopes.iter().rev().find_map(|s| s.get(name))
    }

    /// A name of C++ that nothing else has.
    fn fresh(&mut self, name: &str) -> String {
        loop {
            self.count += 1;
            let fresh = format!("{name}_{}", self.count - 1);
            if !self.taken.contains(&fresh) {
                return fresh;
            }
        }
    }

    /// Maps the C++ compiler's messages back to the Rust line.
    fn line(&mut self, span: Span) {
        if !proc_macro::is_available() {
            return;
        }
        let place = span.unwrap();
        self.file = place.file();
        let _ = writeln!(self.out, "#line {} \"{}\"", place.line(), self.file);
    }

    fn body(&mut self, block: &Block, value: Value) -> Result<()> {
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
        let e = self.whole(e)?;
        let _ = writeln!(self.out, "return {e};");
        Ok(())
    }

    /// An expression that is a statement's own, not part of a larger one.
    fn whole(&mut self, e: &Expr) -> Result<String> {
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
                let (l, r) = (self.expr(&b.left)?, self.expr(&b.right)?);
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
                let e = self.whole(e)?;
                let _ = writeln!(self.out, "{e};");
                Ok(())
            }
            Stmt::Expr(e @ Expr::MethodCall(m), Some(_)) if RANDOM_METHODS.iter().any(|n| m.method == n) => {
                let e = self.whole(e)?;
                let _ = writeln!(self.out, "{e};");
                Ok(())
            }
            Stmt::Expr(Expr::Return(r), _) => refuse(r, "no return before the end: use an if/else expression"),
            Stmt::Expr(e, _) => {
                // the expression's own fault first: it says more
                self.expr(e)?;
                refuse(e, "this statement has no effect")
            }
            Stmt::Item(syn::Item::Const(c)) => {
                refuse(c, "no items inside a device function: write the constant outside of it")
            }
            Stmt::Item(i) => refuse(i, "no items inside a device function"),
            Stmt::Macro(m) => refuse(m, "no macros inside a device function"),
        }
    }

    fn for_loop(&mut self, e: &ExprForLoop) -> Result<()> {
        let Expr::Range(range) = without_parentheses(&e.expr) else {
            return refuse(&e.expr, "loops run over a range of whole numbers, `for k in 0..n`");
        };
        let (Some(from), Some(to)) = (&range.start, &range.end) else {
            return refuse(range, "a range has two ends here");
        };
        if let Some(label) = &e.label {
            return refuse(label, "no labels: there is no break and no continue");
        }
        order::check(&e.expr, &self.by_reference)?;
        let (from, to) = (self.expr(from)?, self.expr(to)?);
        let (begin, end, counter) = (self.fresh("begin"), self.fresh("end"), self.fresh("counter"));
        // the ends are evaluated once, and what the body does to its variable does not change the next turn
        let _ = writeln!(self.out, "{{ const auto {begin} = {from}; const auto {end} = {to};");
        let ty = format!("device_common<decltype({begin}), decltype({end})>");
        let closed = matches!(range.limits, RangeLimits::Closed(_));
        let _ = if closed {
            // the end may be the largest number there is
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
            p => refuse(p, "the loop variable is a plain name"),
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
        if let Expr::Tuple(places) = left {
            let r = self.whole(right)?;
            let whole = self.fresh("tuple");
            let _ = writeln!(self.out, "const auto {whole} = {r};");
            for (k, place) in places.elems.iter().enumerate() {
                if !matches!(place, Expr::Infer(_)) {
                    let l = self.place(place)?;
                    let _ = writeln!(self.out, "{l} = {whole}.v{k};");
                }
            }
            return Ok(());
        }
        let (l, r) = (self.place(left)?, self.expr(right)?);
        order::check_assignment(left, right, &self.by_reference)?;
        let _ = writeln!(self.out, "{l} = {r};");
        Ok(())
    }

    /// The left side of an assignment.
    fn place(&mut self, e: &Expr) -> Result<String> {
        if order::root(e).is_none() {
            return refuse(e, "a value is given to a variable, to a member of one, or to a tuple of these");
        }
        self.expr(e)
    }

    fn local(&mut self, local: &Local) -> Result<()> {
        let Some(init) = &local.init else {
            return refuse(local, "a variable gets its value where it is declared");
        };
        if let Some((_, e)) = &init.diverge {
            return refuse(e, "no let-else");
        }
        if let Some(name) = order::root(&init.expr)
            .filter(|n| self.by_reference.contains(n) && matches!(without_parentheses(&init.expr), Expr::Path(_)))
        {
            return refuse(
                &init.expr,
                format!("`{name}` is a reference, and variables hold values: use it under its own name"),
            );
        }
        let value = self.whole(&init.expr)?;
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
                let _ = writeln!(self.out, "{constant}{ty} {name} = {value};");
                Ok(())
            }
            Pat::Tuple(tuple) => {
                let whole = self.fresh("tuple");
                let _ = writeln!(self.out, "const {ty} {whole} = {value};");
                for (k, p) in tuple.elems.iter().enumerate() {
                    match p {
                        Pat::Wild(_) => {}
                        Pat::Ident(p) => {
                            let constant = if p.mutability.is_some() { "" } else { "const " };
                            let float = match (&local.pat, without_parentheses(&init.expr)) {
                                (Pat::Type(t), _) => {
                                    matches!(&*t.ty, Type::Tuple(t) if t.elems.get(k).is_some_and(is_float_type))
                                }
                                (_, Expr::Tuple(t)) => t.elems.get(k).is_some_and(|e| self.is_float(e)),
                                _ => false,
                            };
                            let name = self.declare(p, float)?;
                            let _ = writeln!(self.out, "{constant}auto {name} = {whole}.v{k};");
                        }
                        p => return refuse(p, "a tuple is taken apart into plain names"),
                    }
                }
                Ok(())
            }
            p => refuse(p, "a variable is a plain name or a tuple of names"),
        }
    }

    fn if_statement(&mut self, e: &ExprIf) -> Result<()> {
        let c = self.whole(&e.cond)?;
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
                    other => return refuse(other, "else takes a block"),
                }
                self.out.push_str("}\n");
            }
        }
        Ok(())
    }

    /// The value of a block as an expression: its last line alone, or a lambda that is called at once.
    pub fn block_value(&mut self, block: &Block) -> Result<String> {
        if let [Stmt::Expr(e, None)] = block.stmts.as_slice() {
            return self.expr(e);
        }
        if let Some(Stmt::Expr(Expr::Return(r), _)) = block.stmts.last() {
            return refuse(r, "no return inside an expression: use an if/else expression");
        }
        if !matches!(block.stmts.last(), Some(Stmt::Expr(_, None))) {
            return refuse(block, "this block must end in a value");
        }
        let outer = std::mem::take(&mut self.out);
        let result = self.block(block, Value::OfBlock);
        let inner = std::mem::replace(&mut self.out, outer);
        result?;
        Ok(format!("[&]() {{\n{inner}}}()"))
    }
}

/// The expression inside any parentheses.
pub fn without_parentheses(e: &Expr) -> &Expr {
    match e {
        Expr::Paren(p) => without_parentheses(&p.expr),
        Expr::Group(g) => without_parentheses(&g.expr),
        e => e,
    }
}

/// A compound assignment's operator in C++ where it may stand as it is, and its helper's name.
pub fn assigning(op: &BinOp) -> Option<(&'static str, &'static str)> {
    Some(match op {
        BinOp::AddAssign(_) => ("+=", "add"),
        BinOp::SubAssign(_) => ("-=", "sub"),
        BinOp::MulAssign(_) => ("*=", "mul"),
        BinOp::DivAssign(_) => ("/=", "div"),
        BinOp::RemAssign(_) => ("", "rem"),
        BinOp::BitAndAssign(_) => ("", "and"),
        BinOp::BitOrAssign(_) => ("", "or"),
        BinOp::BitXorAssign(_) => ("", "xor"),
        BinOp::ShlAssign(_) => ("", "shl"),
        BinOp::ShrAssign(_) => ("", "shr"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(source: &str) -> Result<String> {
        translate(&crate::settle::settle(&syn::parse_str(source).expect("Rust syntax"))).map(|t| t.text)
    }

    #[test]
    fn shadowing_gets_fresh_names() {
        let t = text("fn f(x: real) -> real { let x = x + 1.0; let y = { let x = 2.0 * x; x * x }; x - y }")
            .expect("valid");
        assert!(t.contains("const auto x_1 = (x_0 + real(1.0));"), "{t}");
        assert!(t.contains("const auto x_2 = (real(2.0) * x_1);"), "{t}");
        assert!(t.contains("return (x_1 - y_3);"), "{t}");
    }

    #[test]
    fn outside_the_language_is_refused() {
        for (source, message) in [
            ("fn f(x: real) -> real { let y = if x > 1.0 { return x; } else { 2.0 }; y }", "no return"),
            ("fn f(x: real) -> real { if x > 1.0 { return x; } x }", "no return"),
            ("fn f(x: real) -> real { x.tanh() }", "no method `tanh`"),
            ("fn f(x: real) -> real { while x > 1.0 {} x }", "no while"),
            ("fn f(x: real) -> real { y }", "no variable"),
            ("fn f(x: real) -> real { println!(); 1.0 }", "no macros"),
            ("fn f(x: String) -> real { 1.0 }", "types are"),
            ("fn f<T>(x: T) -> real { 1.0 }", "no type parameters"),
        ] {
            let e = text(source).map(|t| panic!("{source} became {t}")).expect_err("refused");
            assert!(e.to_string().contains(message), "{source}: {e}");
        }
    }

    #[test]
    fn draws_and_indices() {
        let t = text(
            "fn f(random: &mut Random, n: u32) -> real { let u = random.uniform(); let k = n as usize; u + (k as real) }",
        )
        .expect("valid");
        assert!(t.contains("Random& random_0"), "{t}");
        assert!(t.contains("const auto u_2 = device_uniform<real>(random_0);"), "{t}");
        assert!(t.contains("const auto k_3 = device_cast<unsigned long long>(n_1);"), "{t}");
        assert!(text("fn f(random: &mut Random) -> real { random.uniform(1) }").is_err());
    }

    #[test]
    fn statements() {
        let t = text(
            "fn f(p: &mut Particle<real>, n: i32) { for k in 0..n { if k > 2 { p.x += k as real; } else { p.default = 1.0; } } }",
        )
        .expect("valid");
        assert!(t.contains("Particle<real>& p_0, int n_1"), "{t}");
        assert!(t.contains("{ const auto begin_2 = 0; const auto end_3 = n_1;"), "{t}");
        assert!(t.contains("counter_4 = begin_2; counter_4 < end_3; ++counter_4) {"), "{t}");
        assert!(t.contains("k_5 = counter_4;"), "{t}");
        assert!(t.contains("p_0.x += device_cast<real>(k_5);"), "{t}");
        assert!(t.contains("p_0.default_ = real(1.0);"), "{t}");
    }

    /// Operators of C++ where numbers are known to be floating-point, helpers elsewhere.
    #[test]
    fn arithmetic() {
        let t = text(
            "fn f(x: real, n: i32, p: &P<real>) -> real { let a = p.k * p.l + x; let m = -n % 3 << 1; let b = (n > 1) & (m > 2); a * a }",
        )
        .expect("valid");
        for line in [
            "const auto a_3 = (device_mul(p_2.k, p_2.l) + x_0);",
            "const auto m_4 = device_shl(device_rem(device_neg(n_1), 3), 1);",
            "const auto b_5 = device_and(((n_1 > 1)), ((m_4 > 2)));",
            "return (a_3 * a_3);",
        ] {
            assert!(t.contains(line), "{line} is not in {t}");
        }
    }

    #[test]
    fn names() {
        let t = text("fn f(int: real, r#type: real) -> real { let ε = int * type_0(r#type); let real = ε; real }");
        let t = t.expect("valid");
        assert!(t.contains("real int_0, real type_1"), "{t}");
        assert!(t.contains("const auto u3b5_2 = (int_0 * @call 0@<real>(type_1));"), "{t}");
        // a variable never hides a function
        assert!(text("fn f(x: real) -> real { x_0(x) }").expect("valid").contains("@call 0@<real>(x_1)"));
    }
}
