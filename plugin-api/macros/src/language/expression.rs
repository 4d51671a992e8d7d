//! Expressions of the device language.
//!
//! Floating-point arithmetic uses the C++ operators. If a value may be an integer, helpers of `types.cuh` replace the
//! operators, so that results are those of Rust: integers wrap around, shifts take the distance modulo the width, `&` of
//! two bools is a bool, and casts saturate.

use super::real;
use super::translator::Translator;
use crate::language::literals::{is_pure, is_shift};
use crate::language::types::{Result, constant, constant_path, cxx_type, is_constant_name, is_primitive, refuse};
use crate::language::words::cxx_field;
use crate::language::{RANDOM_METHODS, assigning, is_float_type, without_parentheses};
use quote::{ToTokens as _, quote};
use syn::{BinOp, Expr, ExprBinary, ExprCall, ExprMethodCall, Lit, Member, Type, UnOp};

/// Methods of numbers and vectors, and their number of arguments besides `self`.
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
    ("wrapping_add", 1),
    ("wrapping_sub", 1),
    ("wrapping_mul", 1),
];

/// Methods whose value may be an integer.
const INTEGER_METHODS: &[&str] = &["abs", "min", "max", "wrapping_add", "wrapping_sub", "wrapping_mul"];

impl Translator {
    /// Translates an expression.
    pub fn expr(&mut self, e: &Expr) -> Result<String> {
        match e {
            Expr::Lit(l) => literal(&l.lit),
            Expr::Path(p) => self.path(p),
            Expr::Paren(p) => Ok(format!("({})", self.expr(&p.expr)?)),
            Expr::Group(g) => self.expr(&g.expr),
            Expr::Unary(u) => match u.op {
                UnOp::Neg(_) => self.negative(&u.expr),
                UnOp::Not(_) => Ok(format!("device_not({})", self.expr(&u.expr)?)),
                UnOp::Deref(_) => self.expr(&u.expr),
                _ => refuse(u, "this operator is not part of the language"),
            },
            Expr::Reference(r) if r.mutability.is_some() => {
                refuse(r, "`&mut` is allowed only for arguments of calls: variables hold values")
            }
            Expr::Reference(r) => self.expr(&r.expr),
            Expr::Binary(b) => self.binary(b),
            Expr::If(i) => {
                let Some((_, other)) = &i.else_branch else {
                    return refuse(i, "an if with a value needs an else");
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
                if !(2..=6).contains(&t.elems.len()) {
                    return refuse(t, "tuples have two to six members");
                }
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
            Expr::Index(i) => {
                if let Expr::Range(r) = without_parentheses(&i.index) {
                    return refuse(r, "no slices: an index is an integer");
                }
                Ok(format!("{}[{}]", self.expr(&i.expr)?, self.expr(&i.index)?))
            }
            Expr::Cast(c) => {
                if !is_primitive(&c.ty) {
                    return refuse(&c.ty, "the targets of `as` are real, f32, f64, i32, u32, u64 and usize");
                }
                Ok(format!("device_cast<{}>({})", cxx_type(&c.ty)?, self.expr(&c.expr)?))
            }
            Expr::MethodCall(m) => self.method(m),
            Expr::Call(c) => self.call(c),
            e => refuse(e, refusal(e)),
        }
    }

    fn binary(&mut self, b: &ExprBinary) -> Result<String> {
        if assigning(&b.op).is_some() {
            return refuse(b, "an assignment has no value");
        }
        if let Some(fused) = self.fused(b)? {
            return Ok(fused);
        }
        let (l, r) = (self.expr(&b.left)?, self.expr(&b.right)?);
        self.check_operands(&b.left, &b.op, &b.right)?;
        if is_shift(&b.op) && is_pure(&b.left) {
            return refuse(&b.left, "write the type of this number, `1u32`: it decides which bits a shift drops");
        }
        let Some((operator, helper)) = operator(&b.op) else {
            return refuse(b.op, "this operator is not part of the language");
        };
        if helper.is_empty() {
            return Ok(format!("({l} {operator} {r})"));
        }
        let float = self.is_float(&b.left) || self.is_float(&b.right);
        Ok(if float && matches!(b.op, BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_)) {
            format!("({l} {operator} {r})")
        } else {
            format!("device_{helper}({l}, {r})")
        })
    }

    /// Writes a sum or difference with a product as one operation, which a GPU rounds once. Of two products the first is
    /// fused.
    fn fused(&mut self, b: &ExprBinary) -> Result<Option<String>> {
        let minus = match b.op {
            BinOp::Add(_) => false,
            BinOp::Sub(_) => true,
            _ => return Ok(None),
        };
        let fused = if let Some(product) = product(&b.left) {
            let ((x, y), z) = (self.factors(product)?, self.expr(&b.right)?);
            format!("device_mul_{}({x}, {y}, {z})", if minus { "sub" } else { "add" })
        } else if let Some(product) = product(&b.right) {
            let (z, (x, y)) = (self.expr(&b.left)?, self.factors(product)?);
            if minus { format!("device_sub_mul({z}, {x}, {y})") } else { format!("device_mul_add({x}, {y}, {z})") }
        } else {
            return Ok(None);
        };
        self.check_operands(&b.left, &b.op, &b.right)?;
        Ok(Some(fused))
    }

    /// Returns the factors of a product.
    pub fn factors(&mut self, product: &ExprBinary) -> Result<(String, String)> {
        let factors = (self.expr(&product.left)?, self.expr(&product.right)?);
        self.check_operands(&product.left, &product.op, &product.right)?;
        Ok(factors)
    }

    fn path(&mut self, p: &syn::ExprPath) -> Result<String> {
        if let Some(name) = p.path.get_ident()
            && let Some(v) = self.lookup(&name.to_string())
        {
            return Ok(v.name.clone());
        }
        if let Some(x) = constant_path(&p.path).and_then(|n| constant(&n)) {
            return Ok(format!("real({x:?})"));
        }
        if is_constant_name(&p.path) {
            let n = self.needs.constants.len();
            self.needs.constants.push(p.to_token_stream());
            return Ok(format!("@constant {n}@"));
        }
        refuse(p, "not a variable of this function; constants are written in CAPITALS")
    }

    fn negative(&mut self, e: &Expr) -> Result<String> {
        // C++ has no negative literals, and 2147483648 is no int
        if let Expr::Lit(l) = e
            && let Lit::Int(i) = &l.lit
            && i.base10_digits() == "2147483648"
            && ["", "i32"].contains(&i.suffix())
        {
            return Ok("(-2147483647 - 1)".into());
        }
        let x = self.expr(e)?;
        Ok(if self.is_float(e) || matches!(e, Expr::Lit(_)) { format!("(-{x})") } else { format!("device_neg({x})") })
    }

    fn method(&mut self, m: &ExprMethodCall) -> Result<String> {
        let name = m.method.to_string();
        if let Some(t) = &m.turbofish {
            return refuse(t, "no type arguments");
        }
        if RANDOM_METHODS.contains(&name.as_str()) && m.args.is_empty() {
            return Ok(format!("device_{name}<real>({})", self.expr(&m.receiver)?));
        }
        let Some((_, arity)) = METHODS.iter().find(|(n, _)| *n == name) else {
            let known = METHODS.iter().map(|(n, _)| n).chain(RANDOM_METHODS);
            let known = known.copied().collect::<Vec<_>>().join(", ");
            return refuse(&m.method, format!("no method `{name}`; available are {known}"));
        };
        if m.args.len() != *arity {
            return refuse(m, format!("`{name}` takes {arity} argument(s)"));
        }
        let mut args = vec![self.expr(&m.receiver)?];
        for a in &m.args {
            args.push(self.expr(a)?);
            if ["min", "max", "powf", "atan2"].contains(&name.as_str()) && self.is_real(&m.receiver) {
                real::check_number(a)?;
            }
        }
        Ok(format!("device_{}({})", name.trim_start_matches("wrapping_"), args.join(", ")))
    }

    fn call(&mut self, c: &ExprCall) -> Result<String> {
        let Expr::Path(f) = &*c.func else {
            return refuse(&c.func, "call functions by name");
        };
        let mut args = vec![];
        for a in &c.args {
            args.push(match a {
                Expr::Reference(r) => self.expr(&r.expr)?,
                a => self.expr(a)?,
            });
        }
        let args = args.join(", ");
        let segments: Vec<_> = f.path.segments.iter().map(|s| s.ident.to_string()).collect();
        match segments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            [.., "Vec3", "new"] => return Ok(format!("device_vec3({args})")),
            [.., "Quaternion", "new"] => return Ok(format!("device_quaternion({args})")),
            [.., "Vec3", "zero"] => return Ok("Vec3<real>{real(0), real(0), real(0)}".into()),
            [.., owner, name] if is_constant_case(owner) => {
                return refuse(&c.func, format!("no associated functions: write a device function, or `x.{name}()`"));
            }
            [name] if *name == self.name => return refuse(&c.func, "no recursion"),
            _ => {}
        }
        let mut path = f.path.clone();
        for s in &mut path.segments {
            let real: syn::AngleBracketedGenericArguments = syn::parse_quote!(::<real>);
            match &s.arguments {
                syn::PathArguments::None => {}
                syn::PathArguments::AngleBracketed(a) if a.args == real.args => {}
                a => return refuse(a, "the only type argument of a device function is `real`, which may be omitted"),
            }
            s.arguments = syn::PathArguments::None;
        }
        let text = quote!(#path).to_string();
        let known = self.needs.functions.iter().position(|p| quote!(#p).to_string() == text);
        let n = known.unwrap_or(self.needs.functions.len());
        if known.is_none() {
            self.needs.functions.push(path);
        }
        Ok(format!("@call {n}@<real>({args})"))
    }

    /// Returns whether this is known to consist of floating-point numbers; rustc guarantees the same for the other operands.
    pub fn is_float(&self, e: &Expr) -> bool {
        match e {
            Expr::Lit(l) => matches!(&l.lit, Lit::Float(_)),
            Expr::Path(p) => match p.path.get_ident() {
                Some(i) => self.lookup(&i.to_string()).is_some_and(|v| v.float),
                None => constant_path(&p.path).is_some(),
            },
            Expr::Paren(p) => self.is_float(&p.expr),
            Expr::Group(g) => self.is_float(&g.expr),
            Expr::Unary(u) => self.is_float(&u.expr),
            Expr::Reference(r) => self.is_float(&r.expr),
            Expr::Binary(b) => {
                matches!(b.op, BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_))
                    && (self.is_float(&b.left) || self.is_float(&b.right))
            }
            Expr::Cast(c) => is_float_type(&c.ty),
            Expr::MethodCall(m) => {
                if INTEGER_METHODS.iter().any(|n| m.method == n) {
                    self.is_float(&m.receiver) || m.args.iter().any(|a| self.is_float(a))
                } else {
                    true
                }
            }
            Expr::Call(c) => {
                let of_floats = |s: &syn::PathSegment| s.ident == "Vec3" || s.ident == "Quaternion";
                matches!(&*c.func, Expr::Path(p) if p.path.segments.iter().any(of_floats))
            }
            _ => false,
        }
    }
}

/// Returns the product that an expression is.
pub fn product(e: &Expr) -> Option<&ExprBinary> {
    match without_parentheses(e) {
        Expr::Binary(b) if matches!(b.op, BinOp::Mul(_)) => Some(b),
        _ => None,
    }
}

/// Returns whether a segment of a path names a type: `Vec3`, `f64`.
fn is_constant_case(segment: &str) -> bool {
    segment.starts_with(char::is_uppercase)
        || syn::parse_str::<Type>(segment).is_ok_and(|t| is_primitive(&t))
        || segment == "bool"
}

/// Returns why an expression is not part of the language.
fn refusal(e: &Expr) -> &'static str {
    match e {
        Expr::Return(_) => "no return inside an expression: use an if/else expression",
        Expr::Match(_) => "no match: use if/else",
        Expr::While(_) => "no while: loops are bounded, `for k in 0..n`",
        Expr::Loop(_) => "no loop: loops are bounded, `for k in 0..n`",
        Expr::ForLoop(_) => "a loop has no value",
        Expr::Assign(_) => "an assignment has no value",
        Expr::Break(_) => "no break: skip the rest of the body instead, `if !found { … }`",
        Expr::Continue(_) => "no continue: put the rest of the body into an if",
        Expr::Closure(_) => "no closures: write a device function",
        Expr::Macro(_) => "no macros inside a device function",
        Expr::Array(_) | Expr::Repeat(_) => {
            "no arrays: use variables, a tuple, or an array of a struct that is an argument"
        }
        Expr::Struct(_) => "no struct expressions: return a tuple, or change a struct that is an argument",
        Expr::Let(_) => "no patterns in conditions",
        Expr::Range(_) => "a range is allowed only in `for k in 0..n`",
        Expr::Try(_) => "no `?`: there are no errors here",
        Expr::Unsafe(_) => "no unsafe code",
        Expr::Block(_) => "no labels: there is no break",
        _ => "this expression is not part of the language",
    }
}

fn literal(l: &Lit) -> Result<String> {
    match l {
        Lit::Float(f) => match f.suffix() {
            "" => Ok(format!("real({})", f.base10_digits())),
            "f32" => Ok(format!("{}f", with_point(f.base10_digits()))),
            "f64" => Ok(with_point(f.base10_digits())),
            s => refuse(f, format!("unknown suffix {s}")),
        },
        Lit::Int(i) => match i.suffix() {
            "" if i.base10_parse::<i32>().is_err() => {
                refuse(i, format!("not an i32: write its type, `{i}u32` or `{i}u64`"))
            }
            "" | "i32" => Ok(i.base10_digits().into()),
            "u32" => Ok(format!("{}u", i.base10_digits())),
            "u64" | "usize" => Ok(format!("{}ull", i.base10_digits())),
            "f32" => Ok(format!("{}.0f", i.base10_digits())),
            "f64" => Ok(format!("{}.0", i.base10_digits())),
            s => refuse(i, format!("integers are i32, u32, u64 or usize, not {s}")),
        },
        Lit::Bool(b) => Ok(b.value.to_string()),
        l => refuse(l, "literals are numbers, true and false"),
    }
}

fn with_point(digits: &str) -> String {
    if digits.contains(['.', 'e', 'E']) { digits.into() } else { format!("{digits}.0") }
}

/// Returns a C++ operator and the helper that replaces it for integers; an empty helper if both are the same.
fn operator(op: &BinOp) -> Option<(&'static str, &'static str)> {
    Some(match op {
        BinOp::Add(_) => ("+", "add"),
        BinOp::Sub(_) => ("-", "sub"),
        BinOp::Mul(_) => ("*", "mul"),
        BinOp::Div(_) => ("/", "div"),
        BinOp::Rem(_) => ("%", "rem"),
        BinOp::And(_) => ("&&", ""),
        BinOp::Or(_) => ("||", ""),
        BinOp::BitAnd(_) => ("&", "and"),
        BinOp::BitOr(_) => ("|", "or"),
        BinOp::BitXor(_) => ("^", "xor"),
        BinOp::Shl(_) => ("<<", "shl"),
        BinOp::Shr(_) => (">>", "shr"),
        BinOp::Eq(_) => ("==", ""),
        BinOp::Ne(_) => ("!=", ""),
        BinOp::Lt(_) => ("<", ""),
        BinOp::Le(_) => ("<=", ""),
        BinOp::Gt(_) => (">", ""),
        BinOp::Ge(_) => (">=", ""),
        _ => return None,
    })
}
