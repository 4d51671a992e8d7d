//! The device language: translates the body of a Rust function into CUDA C++.
//!
//! rustc checks the types; the translation needs only the syntax. Anything it does not know is refused at its exact span,
//! so a function either means the same on both devices or does not compile.
//!
//! `statement.rs` and `expression.rs` translate, `translator.rs` keeps scopes and names, `literals.rs` gives types to
//! integer literals, `native.rs` makes the Rust side, `order.rs` refuses what depends on the order of evaluation, `real.rs` literals of
//! another type than `real`.

pub mod expression;
pub mod literals;
pub mod native;
mod order;
mod real;
mod statement;
mod translator;
pub mod types;
pub mod words;

use proc_macro2::TokenStream;
use quote::ToTokens;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use syn::visit::Visit;
use syn::{BinOp, Expr, FnArg, ItemFn, Pat, ReturnType, Type};
use translator::{Translator, Value};
use types::{Result, cxx_type, refuse, struct_paths};
use words::{is_free, plain};

/// The definitions that a translated function needs.
#[derive(Default)]
pub struct Needs {
    /// Structs in its signature.
    pub structs: Vec<syn::Path>,
    /// Functions it calls; `@call k@` in the text stands for the name of function k.
    pub functions: Vec<syn::Path>,
    /// Rust constants it names; `@constant k@` in the text stands for the value of constant k.
    pub constants: Vec<TokenStream>,
}

/// The C++ text of a function, and the definitions it needs.
pub struct Translated {
    /// `template <class real> __device__ … { … }`
    pub text: String,
    /// Definitions that must come before it.
    pub needs: Needs,
}

/// Methods of `random`; they return the function's number type.
pub const RANDOM_METHODS: &[&str] = &["uniform", "normal3"];

/// Translates a function whose integer literals have types (`literals::settle`). All members of the arguments `rows`
/// have the type `real`.
pub fn translate(f: &ItemFn, rows: &[String]) -> Result<Translated> {
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
            return refuse(&arg.pat, "an argument must be a plain name");
        };
        struct_paths(&arg.ty, &mut t.needs.structs);
        let ty = cxx_type(&arg.ty)?;
        let changes = matches!(&*arg.ty, Type::Reference(r) if r.mutability.is_some());
        let cxx_name = t.declare(name, is_float_type(&arg.ty))?;
        if changes {
            t.by_reference.insert(name.ident.to_string());
        }
        if let Some(variable) = t.declared(&name.ident.to_string()) {
            variable.read_only = !changes && name.mutability.is_none();
            variable.real = real::is_real_type(&arg.ty) || rows.contains(&name.ident.to_string());
        }
        args.push(format!("{ty} {cxx_name}"));
    }
    let ret = match &f.sig.output {
        ReturnType::Default => "void".into(),
        ReturnType::Type(_, ty) if matches!(&**ty, Type::Reference(_)) => {
            return refuse(ty, "a function returns a value, not a reference");
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

/// Refuses unsupported parts of a function's signature.
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
        return refuse(p, "no type parameters: the number type is `real` and needs no declaration");
    }
    if let Some(w) = &sig.generics.where_clause {
        return refuse(w, "no where clauses: the number type is `real` and needs no declaration");
    }
    let name = sig.ident.to_string();
    if !name.is_ascii() {
        return refuse(&sig.ident, "a function name must be ASCII");
    }
    if !is_free(&name) {
        return refuse(
            &sig.ident,
            format!("`{name}` is reserved in C++ or in the engine's headers; rename this function"),
        );
    }
    // an attribute such as `#[cfg]` would remove code for rustc only
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
        Some(a) => refuse(&a, "no attributes inside a device function except lint levels"),
        None => Ok(()),
    }
}

/// Identifiers in the Rust text: no C++ variable may have one of these names.
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

/// Returns whether a value of this type consists of floating-point numbers.
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

/// Returns the expression inside any parentheses.
pub fn without_parentheses(e: &Expr) -> &Expr {
    match e {
        Expr::Paren(p) => without_parentheses(&p.expr),
        Expr::Group(g) => without_parentheses(&g.expr),
        e => e,
    }
}

/// Returns the C++ operator of a compound assignment (empty if only the helper applies) and the name of its helper.
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
        translate(&literals::settle(&syn::parse_str(source).expect("Rust syntax")), &[]).map(|t| t.text)
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
            ("fn f(x: real) -> real { y }", "not a variable"),
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

    /// A product and a sum are one operation; otherwise operators of C++ where numbers are known to be floating-point, helpers elsewhere.
    #[test]
    fn arithmetic() {
        let t = text(
            "fn f(x: real, n: i32, p: &P<real>) -> real { let a = p.k * p.l + x; let m = -n % 3 << 1; let b = (n > 1) & (m > 2); a * a }",
        )
        .expect("valid");
        for line in [
            "const auto a_3 = device_mul_add(p_2.k, p_2.l, x_0);",
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
