//! The Rust side of a device function: generic over `real`, with literals and casts that fit any `real`.

use crate::language::RANDOM_METHODS;
use crate::language::types::{constant, constant_path, is_constant_name};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use std::collections::HashSet;
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, ExprCast, ItemFn, Lit, Path, PathArguments, Type, parse_quote};

/// Methods of Rust's own number types whose results differ from those of the C++ helpers.
const RENAMED: &[&str] = &["min", "max", "round", "powi"];

/// The number type of a function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// A type parameter `real`.
    Generic,
    /// f64, in scalar functions of integrators.
    F64,
}

struct Native {
    number: Number,
    /// Names of local variables and arguments.
    variables: HashSet<String>,
}

impl Native {
    fn real(&self) -> Type {
        match self.number {
            Number::Generic => parse_quote!(real),
            Number::F64 => parse_quote!(f64),
        }
    }

    /// The conversion that stands for `value as type`; `None` for other types, which rustc judges.
    fn cast(&self, c: &ExprCast) -> Option<Expr> {
        let Type::Path(p) = &*c.ty else { return None };
        let mut value = &*c.expr;
        // an argument needs no parentheses, and rustc would warn of them
        while let Expr::Paren(inner) = value {
            value = &inner.expr;
        }
        let ty = p.path.get_ident()?.to_string();
        if ty == "real" && self.number == Number::Generic {
            return Some(parse_quote!(::galamost_plugin_api::real::Cast::to_real::<real>(#value)));
        }
        let method = match ty.as_str() {
            "real" => "to_f64".into(),
            "f64" | "f32" | "i32" | "u32" | "u64" | "usize" => format!("to_{ty}"),
            _ => return None,
        };
        let method = format_ident!("{method}");
        Some(parse_quote!(::galamost_plugin_api::real::Cast::#method(#value)))
    }

    /// Adds the number type to a called function.
    fn called(&self, path: &mut Path) {
        let n = path.segments.len();
        let vector = n >= 2 && ["Vec3", "Quaternion"].iter().any(|t| path.segments[n - 2].ident == t);
        let Some(last) = path.segments.last_mut() else { return };
        if vector {
            // `zero()` has no arguments from which rustc could infer the number type
            if last.ident == "zero" && path.segments[n - 2].arguments.is_none() {
                let real = self.real();
                path.segments[n - 2].arguments = PathArguments::AngleBracketed(parse_quote!(::<#real>));
            }
            return;
        }
        // the language has no enum constructors or tuple structs: every other call is of a device function
        let conversion = last.ident == "lit" || last.ident.to_string().starts_with("to_");
        if last.arguments.is_none() && self.number == Number::Generic && !conversion {
            last.arguments = PathArguments::AngleBracketed(parse_quote!(::<real>));
        }
    }
}

impl VisitMut for Native {
    fn visit_expr_mut(&mut self, e: &mut Expr) {
        visit_mut::visit_expr_mut(self, e);
        match e {
            Expr::Lit(l) if self.number == Number::Generic => {
                if let Lit::Float(f) = &l.lit
                    && f.suffix().is_empty()
                {
                    *e = parse_quote!(<real as ::galamost_plugin_api::Real>::lit(#f));
                }
            }
            Expr::Cast(c) => {
                if let Some(cast) = self.cast(c) {
                    *e = cast;
                }
            }
            Expr::MethodCall(m) if m.turbofish.is_none() && RANDOM_METHODS.iter().any(|n| m.method == n) => {
                m.turbofish = Some(match self.number {
                    Number::Generic => parse_quote!(::<real>),
                    Number::F64 => parse_quote!(::<f64>),
                });
            }
            Expr::MethodCall(m) if RENAMED.iter().any(|n| m.method == n) => {
                m.method = format_ident!("device_{}", m.method);
            }
            Expr::Index(i) if !matches!(&*i.index, Expr::Lit(_)) => {
                let index = &i.index;
                i.index = parse_quote!(::galamost_plugin_api::real::Cast::to_usize(#index));
            }
            Expr::Path(p) if p.path.get_ident().is_some_and(|i| self.variables.contains(&i.to_string())) => {}
            Expr::Path(p) => {
                if let Some(x) = constant_path(&p.path).and_then(|n| constant(&n)) {
                    *e = match self.number {
                        Number::Generic => {
                            parse_quote!(<real as ::galamost_plugin_api::Real>::lit(#x))
                        }
                        Number::F64 => parse_quote!(#x),
                    };
                } else if is_constant_name(&p.path) {
                    let real = self.real();
                    *e = parse_quote!(::galamost_plugin_api::real::Constant::of::<#real>(#p));
                }
            }
            Expr::Call(c) => {
                if let Expr::Path(f) = &mut *c.func {
                    self.called(&mut f.path);
                }
            }
            _ => {}
        }
    }
}

/// Returns the Rust function to compile.
pub fn native(f: &ItemFn, number: Number) -> TokenStream {
    struct Names(HashSet<String>);
    impl Visit<'_> for Names {
        fn visit_pat_ident(&mut self, p: &syn::PatIdent) {
            self.0.insert(p.ident.to_string());
            visit::visit_pat_ident(self, p);
        }
    }
    let mut names = Names(HashSet::new());
    names.visit_item_fn(f);
    let mut f = f.clone();
    Native { number, variables: names.0 }.visit_item_fn_mut(&mut f);
    if number == Number::Generic {
        f.sig.generics = parse_quote!(<real: ::galamost_plugin_api::Real>);
    }
    let stmts = &f.block.stmts;
    f.block = parse_quote!({
        #[allow(unused_imports)]
        use ::galamost_plugin_api::{Real as _, real::{Ordered as _, Rounded as _}};
        #(#stmts)*
    });
    quote! {
        #[inline(always)]
        #[allow(non_camel_case_types, clippy::needless_return, clippy::too_many_arguments)]
        #f
    }
}
