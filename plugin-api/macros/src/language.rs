//! The device language: a Rust function body becomes CUDA C++ text.
//!
//! rustc has the last word on types; this translation only needs syntax. What it does not know is refused with the
//! exact span, so that a function either means the same on both devices or does not compile.

use crate::types::{Result, constant, constant_path, cxx_field, cxx_type, refuse, struct_paths};
use proc_macro2::Span;
use std::collections::HashMap;
use std::fmt::Write as _;
use syn::spanned::Spanned;
use syn::{BinOp, Block, Expr, ExprIf, FnArg, ItemFn, Lit, Local, Member, Pat, RangeLimits, ReturnType, Stmt, UnOp};

/// What a translated function needs before it.
#[derive(Default)]
pub struct Needs {
    /// Structs in its signature.
    pub structs: Vec<syn::Path>,
    /// Functions it calls.
    pub functions: Vec<syn::Path>,
}

/// A function's C++ text and its needs.
pub struct Translated {
    /// `template <class real> __device__ … { … }`
    pub text: String,
    /// What must stand before it.
    pub needs: Needs,
}

/// Methods of numbers and vectors, and how many arguments they take besides `self`.
const METHODS: &[(&str, usize)] = &[
    ("sqrt", 0),
    ("rsqrt", 0),
    ("recip", 0),
    ("exp", 0),
    ("ln", 0),
    ("sin", 0),
    ("cos", 0),
    ("acos", 0),
    ("abs", 0),
    ("floor", 0),
    ("round", 0),
    ("norm", 0),
    ("norm2", 0),
    ("axis", 0),
    ("normalized", 0),
    ("atan2", 1),
    ("powi", 1),
    ("powf", 1),
    ("min", 1),
    ("max", 1),
    ("dot", 1),
    ("cross", 1),
    ("rotate", 1),
    ("rotate_back", 1),
];

/// Methods of `random`; what they return is a number of the function's own type.
pub const RANDOM_METHODS: &[&str] = &["uniform", "normal3"];

/// Translates a whole function.
pub fn translate(f: &ItemFn) -> Result<Translated> {
    if let Some(q) = &f.sig.asyncness {
        return refuse(q.span(), "no async functions");
    }
    if let Some(p) = f.sig.generics.params.first() {
        return refuse(p.span(), "no type parameters: the number type is called `real` and needs no declaration");
    }
    let mut t = Translator {
        scopes: vec![HashMap::new()],
        count: 0,
        needs: Needs::default(),
        out: String::new(),
        file: String::new(),
    };
    let mut args = vec![];
    for arg in &f.sig.inputs {
        let FnArg::Typed(arg) = arg else {
            return refuse(arg.span(), "no methods: write a free function");
        };
        let Pat::Ident(name) = &*arg.pat else {
            return refuse(arg.pat.span(), "an argument is a plain name");
        };
        struct_paths(&arg.ty, &mut t.needs.structs);
        let ty = cxx_type(&arg.ty)?;
        let name = t.declare(&name.ident.to_string());
        args.push(format!("{ty} {name}"));
    }
    let ret = match &f.sig.output {
        ReturnType::Default => "void".into(),
        ReturnType::Type(_, ty) => {
            struct_paths(ty, &mut t.needs.structs);
            cxx_type(ty)?
        }
    };
    t.line(f.sig.ident.span());
    let _ = writeln!(
        t.out,
        "template <class real>\n__device__ __forceinline__ {ret} {}({}) {{",
        f.sig.ident,
        args.join(", ")
    );
    t.body(&f.block, ret != "void")?;
    t.out.push_str("}\n");
    Ok(Translated { text: t.out, needs: t.needs })
}

struct Translator {
    scopes: Vec<HashMap<String, String>>,
    count: usize,
    needs: Needs,
    out: String,
    file: String,
}

impl Translator {
    /// A fresh C++ name, so that shadowing cannot change a result and no keyword is hit.
    fn declare(&mut self, name: &str) -> String {
        let fresh = format!("{}_{}", name.trim_start_matches("r#"), self.count);
        self.count += 1;
        self.scopes.last_mut().expect("a function has a scope").insert(name.into(), fresh.clone());
        fresh
    }

    fn lookup(&self, name: &str) -> Option<&String> {
        self.scopes.iter().rev().find_map(|s| s.get(name))
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

    fn body(&mut self, block: &Block, value: bool) -> Result<()> {
        let n = block.stmts.len();
        for (i, stmt) in block.stmts.iter().enumerate() {
            match stmt {
                Stmt::Expr(e, None) if i + 1 == n && value => {
                    let e = match e {
                        Expr::Return(r) => match &r.expr {
                            Some(e) => e,
                            None => return refuse(r.span(), "a value must be returned"),
                        },
                        e => e,
                    };
                    self.line(e.span());
                    let e = self.expr(e)?;
                    let _ = writeln!(self.out, "return {e};");
                }
                stmt => self.statement(stmt)?,
            }
        }
        Ok(())
    }

    fn block(&mut self, block: &Block, value: bool) -> Result<()> {
        self.scopes.push(HashMap::new());
        let result = self.body(block, value);
        self.scopes.pop();
        result
    }

    fn statement(&mut self, stmt: &Stmt) -> Result<()> {
        self.line(stmt.span());
        match stmt {
            Stmt::Local(local) => self.local(local),
            Stmt::Expr(Expr::If(e), _) => self.if_statement(e),
            Stmt::Expr(Expr::ForLoop(e), _) => {
                let Pat::Ident(var) = &*e.pat else {
                    return refuse(e.pat.span(), "the loop variable is a plain name");
                };
                let Expr::Range(range) = &*e.expr else {
                    return refuse(e.expr.span(), "loops run over a range of whole numbers, `for k in 0..n`");
                };
                let (Some(from), Some(to)) = (&range.start, &range.end) else {
                    return refuse(range.span(), "a range has two ends here");
                };
                let (from, to) = (self.expr(from)?, self.expr(to)?);
                let less = if matches!(range.limits, RangeLimits::HalfOpen(_)) { "<" } else { "<=" };
                self.scopes.push(HashMap::new());
                let k = self.declare(&var.ident.to_string());
                let _ = writeln!(self.out, "for (PlainType<decltype({to})> {k} = {from}; {k} {less} {to}; ++{k}) {{");
                let done = self.block(&e.body, false);
                self.scopes.pop();
                self.out.push_str("}\n");
                done
            }
            Stmt::Expr(Expr::Assign(a), _) => {
                let (l, r) = (self.expr(&a.left)?, self.expr(&a.right)?);
                let _ = writeln!(self.out, "{l} = {r};");
                Ok(())
            }
            Stmt::Expr(Expr::Binary(b), _) if assigning(&b.op).is_some() => {
                let op = assigning(&b.op).unwrap_or_default();
                let (l, r) = (self.expr(&b.left)?, self.expr(&b.right)?);
                let _ = writeln!(self.out, "{l} {op} {r};");
                Ok(())
            }
            Stmt::Expr(Expr::Block(b), _) => {
                self.out.push_str("{\n");
                self.block(&b.block, false)?;
                self.out.push_str("}\n");
                Ok(())
            }
            Stmt::Expr(e @ Expr::Call(_), Some(_)) => {
                let e = self.expr(e)?;
                let _ = writeln!(self.out, "{e};");
                Ok(())
            }
            Stmt::Expr(Expr::Return(r), _) => refuse(r.span(), "no return before the end: use an if/else expression"),
            Stmt::Expr(e, _) => {
                // the expression's own fault first: it says more
                self.expr(e)?;
                refuse(e.span(), "this statement has no effect")
            }
            Stmt::Item(i) => refuse(i.span(), "no items inside a device function"),
            Stmt::Macro(m) => refuse(m.span(), "no macros inside a device function"),
        }
    }

    fn local(&mut self, local: &Local) -> Result<()> {
        let Some(init) = &local.init else {
            return refuse(local.span(), "a variable gets its value where it is declared");
        };
        if let Some((_, e)) = &init.diverge {
            return refuse(e.span(), "no let-else");
        }
        let value = self.expr(&init.expr)?;
        let (pat, ty) = match &local.pat {
            Pat::Type(t) => (&*t.pat, cxx_type(&t.ty)?),
            p => (p, "auto".into()),
        };
        match pat {
            Pat::Ident(p) if p.subpat.is_none() && p.by_ref.is_none() => {
                let constant = if p.mutability.is_some() { "" } else { "const " };
                let name = self.declare(&p.ident.to_string());
                let _ = writeln!(self.out, "{constant}{ty} {name} = {value};");
                Ok(())
            }
            Pat::Tuple(tuple) => {
                let whole = format!("tuple_{}", self.count);
                self.count += 1;
                let _ = writeln!(self.out, "const {ty} {whole} = {value};");
                for (k, p) in tuple.elems.iter().enumerate() {
                    match p {
                        Pat::Wild(_) => {}
                        Pat::Ident(p) => {
                            let constant = if p.mutability.is_some() { "" } else { "const " };
                            let name = self.declare(&p.ident.to_string());
                            let _ = writeln!(self.out, "{constant}auto {name} = {whole}.v{k};");
                        }
                        p => return refuse(p.span(), "a tuple is taken apart into plain names"),
                    }
                }
                Ok(())
            }
            p => refuse(p.span(), "a variable is a plain name or a tuple of names"),
        }
    }

    fn if_statement(&mut self, e: &ExprIf) -> Result<()> {
        let c = self.expr(&e.cond)?;
        let _ = writeln!(self.out, "if ({c}) {{");
        self.block(&e.then_branch, false)?;
        self.out.push('}');
        match &e.else_branch {
            None => self.out.push('\n'),
            Some((_, other)) => {
                self.out.push_str(" else {\n");
                match &**other {
                    Expr::If(e) => self.if_statement(e)?,
                    Expr::Block(b) => self.block(&b.block, false)?,
                    other => return refuse(other.span(), "else takes a block"),
                }
                self.out.push_str("}\n");
            }
        }
        Ok(())
    }

    /// The value of a block as an expression: its last line alone, or a lambda that is called at once.
    fn block_value(&mut self, block: &Block) -> Result<String> {
        if let [Stmt::Expr(e, None)] = block.stmts.as_slice() {
            return self.expr(e);
        }
        if let Some(Stmt::Expr(Expr::Return(r), _)) = block.stmts.last() {
            return refuse(r.span(), "no return inside an expression: use an if/else expression");
        }
        if !matches!(block.stmts.last(), Some(Stmt::Expr(_, None))) {
            return refuse(block.span(), "this block must end in a value");
        }
        let outer = std::mem::take(&mut self.out);
        let result = self.block(block, true);
        let inner = std::mem::replace(&mut self.out, outer);
        result?;
        Ok(format!("[&]() {{\n{inner}}}()"))
    }

    fn expr(&mut self, e: &Expr) -> Result<String> {
        match e {
            Expr::Lit(l) => literal(&l.lit),
            Expr::Path(p) => {
                if let Some(name) = constant_path(&p.path) {
                    return match constant(&name) {
                        Some(x) => Ok(format!("real({x:?})")),
                        None => refuse(p.span(), format!("there is no constant {name} here")),
                    };
                }
                let Some(name) = p.path.get_ident() else {
                    return refuse(p.span(), "this name is not a variable");
                };
                match self.lookup(&name.to_string()) {
                    Some(n) => Ok(n.clone()),
                    None => {
                        refuse(p.span(), "this is no variable of the function; constants are literals or consts::NAME")
                    }
                }
            }
            Expr::Paren(p) => Ok(format!("({})", self.expr(&p.expr)?)),
            Expr::Group(g) => self.expr(&g.expr),
            Expr::Unary(u) => {
                let x = self.expr(&u.expr)?;
                match u.op {
                    UnOp::Neg(_) => Ok(format!("(-{x})")),
                    UnOp::Not(_) => Ok(format!("device_not({x})")),
                    UnOp::Deref(_) => Ok(x),
                    _ => refuse(u.span(), "this operator is not part of the language"),
                }
            }
            Expr::Reference(r) => self.expr(&r.expr),
            Expr::Binary(b) => {
                if assigning(&b.op).is_some() {
                    return refuse(b.span(), "an assignment has no value");
                }
                let (l, r) = (self.expr(&b.left)?, self.expr(&b.right)?);
                let Some(op) = operator(&b.op) else {
                    return refuse(b.op.span(), "this operator is not part of the language");
                };
                Ok(format!("({l} {op} {r})"))
            }
            Expr::If(i) => {
                let Some((_, other)) = &i.else_branch else {
                    return refuse(i.span(), "an if with a value needs an else");
                };
                let c = self.expr(&i.cond)?;
                let a = self.block_value(&i.then_branch)?;
                let b = match &**other {
                    Expr::Block(b) => self.block_value(&b.block)?,
                    other => self.expr(other)?,
                };
                Ok(format!("({c} ? {a} : {b})"))
            }
            Expr::Block(b) if b.label.is_none() => self.block_value(&b.block),
            Expr::Tuple(t) => {
                let parts = t.elems.iter().map(|e| self.expr(e)).collect::<Result<Vec<_>>>()?;
                Ok(format!("tuple({})", parts.join(", ")))
            }
            Expr::Field(f) => {
                let base = self.expr(&f.base)?;
                Ok(match &f.member {
                    Member::Named(n) => format!("{base}.{}", cxx_field(&n.to_string())),
                    Member::Unnamed(n) => format!("{base}.v{}", n.index),
                })
            }
            Expr::Index(i) => Ok(format!("{}[{}]", self.expr(&i.expr)?, self.expr(&i.index)?)),
            Expr::Cast(c) => Ok(format!("static_cast<{}>({})", cxx_type(&c.ty)?, self.expr(&c.expr)?)),
            Expr::MethodCall(m) => {
                let name = m.method.to_string();
                if RANDOM_METHODS.contains(&name.as_str()) && m.args.is_empty() {
                    return Ok(format!("device_{name}<real>({})", self.expr(&m.receiver)?));
                }
                let Some((_, arity)) = METHODS.iter().find(|(n, _)| *n == name) else {
                    let known = METHODS.iter().map(|(n, _)| n).chain(RANDOM_METHODS);
                    let known = known.copied().collect::<Vec<_>>().join(", ");
                    return refuse(m.method.span(), format!("there is no method `{name}`; there are {known}"));
                };
                if m.args.len() != *arity {
                    return refuse(m.span(), format!("`{name}` takes {arity} argument(s)"));
                }
                let mut args = vec![self.expr(&m.receiver)?];
                for a in &m.args {
                    args.push(self.expr(a)?);
                }
                Ok(format!("device_{name}({})", args.join(", ")))
            }
            Expr::Call(c) => {
                let Expr::Path(f) = &*c.func else {
                    return refuse(c.func.span(), "only functions with a name are called");
                };
                let args = c.args.iter().map(|a| self.expr(a)).collect::<Result<Vec<_>>>()?.join(", ");
                let segments: Vec<_> = f.path.segments.iter().map(|s| s.ident.to_string()).collect();
                match segments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
                    [.., "Vec3", "new"] => Ok(format!("Vec3<real>{{{args}}}")),
                    [.., "Quaternion", "new"] => Ok(format!("Quaternion<real>{{{args}}}")),
                    [.., "Vec3", "zero"] => Ok("Vec3<real>{real(0), real(0), real(0)}".into()),
                    [.., name] => {
                        self.needs.functions.push(f.path.clone());
                        Ok(format!("{name}<real>({args})"))
                    }
                    [] => refuse(c.span(), "an empty path"),
                }
            }
            Expr::Return(r) => refuse(r.span(), "no return inside an expression: use an if/else expression"),
            Expr::Match(m) => refuse(m.span(), "no match: use if/else"),
            Expr::While(w) => refuse(w.span(), "no while: loops are bounded, `for k in 0..n`"),
            Expr::Loop(l) => refuse(l.span(), "no loop: loops are bounded, `for k in 0..n`"),
            Expr::Closure(c) => refuse(c.span(), "no closures: write a device function"),
            Expr::Macro(m) => refuse(m.span(), "no macros inside a device function"),
            e => refuse(e.span(), "this expression is not part of the language"),
        }
    }
}

fn literal(l: &Lit) -> Result<String> {
    match l {
        Lit::Float(f) => match f.suffix() {
            "" => Ok(format!("real({})", f.base10_digits())),
            "f32" => Ok(format!("{}f", with_point(f.base10_digits()))),
            "f64" => Ok(with_point(f.base10_digits())),
            s => refuse(f.span(), format!("unknown suffix {s}")),
        },
        Lit::Int(i) => match i.suffix() {
            "" | "i32" => Ok(i.base10_digits().into()),
            "u32" => Ok(format!("{}u", i.base10_digits())),
            "u64" => Ok(format!("{}ull", i.base10_digits())),
            s => refuse(i.span(), format!("whole numbers are i32, u32 or u64, not {s}")),
        },
        Lit::Bool(b) => Ok(b.value.to_string()),
        l => refuse(l.span(), "literals are numbers, true and false"),
    }
}

fn with_point(digits: &str) -> String {
    if digits.contains(['.', 'e', 'E']) { digits.into() } else { format!("{digits}.0") }
}

fn operator(op: &BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::Add(_) => "+",
        BinOp::Sub(_) => "-",
        BinOp::Mul(_) => "*",
        BinOp::Div(_) => "/",
        BinOp::Rem(_) => "%",
        BinOp::And(_) => "&&",
        BinOp::Or(_) => "||",
        BinOp::BitAnd(_) => "&",
        BinOp::BitOr(_) => "|",
        BinOp::BitXor(_) => "^",
        BinOp::Shl(_) => "<<",
        BinOp::Shr(_) => ">>",
        BinOp::Eq(_) => "==",
        BinOp::Ne(_) => "!=",
        BinOp::Lt(_) => "<",
        BinOp::Le(_) => "<=",
        BinOp::Gt(_) => ">",
        BinOp::Ge(_) => ">=",
        _ => return None,
    })
}

fn assigning(op: &BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::AddAssign(_) => "+=",
        BinOp::SubAssign(_) => "-=",
        BinOp::MulAssign(_) => "*=",
        BinOp::DivAssign(_) => "/=",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(source: &str) -> Result<String> {
        translate(&syn::parse_str(source).expect("Rust syntax")).map(|t| t.text)
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
            ("fn f(x: String) -> real { println!(); 1.0 }", "no macros"),
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
        assert!(t.contains("const auto k_3 = static_cast<unsigned int>(n_1);"), "{t}");
        assert!(text("fn f(random: &mut Random) -> real { random.uniform(1) }").is_err());
    }

    #[test]
    fn statements() {
        let t = text(
            "fn f(p: &mut Particle<real>, n: i32) { for k in 0..n { if k > 2 { p.x += k as real; } else { p.default = 1.0; } } }",
        )
        .expect("valid");
        assert!(t.contains("Particle<real>& p_0, int n_1"), "{t}");
        assert!(t.contains("for (PlainType<decltype(n_1)> k_2 = 0; k_2 < n_1; ++k_2) {"), "{t}");
        assert!(t.contains("p_0.x += static_cast<real>(k_2);"), "{t}");
        assert!(t.contains("p_0.default_ = real(1.0);"), "{t}");
    }
}
