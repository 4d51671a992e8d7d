//! The same function for rustc: generic over `real`, with literals and casts that fit any `real`.

use crate::language::RANDOM_METHODS;
use crate::types::{constant, constant_path, is_constant_name};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use std::collections::HashSet;
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, ItemFn, Lit, Type, parse_quote};

/// Methods that the numbers of Rust have themselves with another meaning than C++ gives them here.
const RENAMED: &[&str] = &["min", "max", "round", "powi"];

/// Whether `real` is a type parameter or f64 itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// Type parameter.
    Generic,
    /// f64: scalar functions of integrators.
    F64,
}

struct Native {
    number: Number,
    /// Names of variables.
    variables: HashSet<String>,
}

impl Native {
    fn real(&self) -> Type {
        match self.number {
            Number::Generic => parse_quote!(real),
            Number::F64 => parse_quote!(f64),
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
                let (value, ty) = (&c.expr, &c.ty);
                *e = match &**ty {
                    Type::Path(p) if p.path.is_ident("real") && self.number == Number::Generic => {
                        parse_quote!(::galamost_plugin_api::real::Cast::to_real::<real>(#value))
                    }
                    Type::Path(p) => match p.path.get_ident().map(ToString::to_string).as_deref() {
                        Some("f64" | "real") => {
                            parse_quote!(::galamost_plugin_api::real::Cast::to_f64(#value))
                        }
                        Some("f32") => {
                            parse_quote!(::galamost_plugin_api::real::Cast::to_f32(#value))
                        }
                        Some("i32") => {
                            parse_quote!(::galamost_plugin_api::real::Cast::to_i32(#value))
                        }
                        Some("u32") => {
                            parse_quote!(::galamost_plugin_api::real::Cast::to_u32(#value))
                        }
                        Some("u64") => {
                            parse_quote!(::galamost_plugin_api::real::Cast::to_u64(#value))
                        }
                        Some("usize") => {
                            parse_quote!(::galamost_plugin_api::real::Cast::to_usize(#value))
                        }
                        _ => return,
                    },
                    _ => return,
                };
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
                    let segments: Vec<_> = f.path.segments.iter().map(|s| s.ident.to_string()).collect();
                    let vector =
                        segments.len() >= 2 && matches!(segments[segments.len() - 2].as_str(), "Vec3" | "Quaternion");
                    if vector && segments.last().is_some_and(|s| s == "zero") {
                        // its arguments do not tell of which numbers it is
                        let (n, real) = (segments.len() - 2, self.real());
                        if f.path.segments[n].arguments.is_none() {
                            f.path.segments[n].arguments = syn::PathArguments::AngleBracketed(parse_quote!(::<#real>));
                        }
                    }
                    // enum constructors and tuple structs are not called here: every other call is of a device function
                    if !vector
                        && let Some(last) = f.path.segments.last_mut()
                        && last.arguments.is_none()
                        && self.number == Number::Generic
                        && last.ident != "lit"
                        && !last.ident.to_string().starts_with("to_")
                    {
                        last.arguments = syn::PathArguments::AngleBracketed(parse_quote!(::<real>));
                    }
                }
            }
            _ => {}
        }
    }
}

/// The Rust function to compile.
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
        #[allow(non_camel_case_types, clippy::needless_return)]
        #f
    }
}
