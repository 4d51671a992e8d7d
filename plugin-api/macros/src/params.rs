//! `#[derive(Params)]` and `#[derive(PairParams)]`: parameters from RON, with their documentation.

use crate::structs::{cxx_struct, is_generic, named_fields};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, DeriveInput, Expr, Field, Result, Type};

/// Returns the text of doc comments.
pub fn doc_text(attrs: &[Attribute]) -> String {
    let texts = attrs.iter().filter(|a| a.path().is_ident("doc")).filter_map(|a| match &a.meta {
        syn::Meta::NameValue(syn::MetaNameValue {
            value: Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(s), .. }),
            ..
        }) => Some(s.value()),
        _ => None,
    });
    // an empty line is one doc attribute with an empty text
    let lines: Vec<String> = texts
        .flat_map(|s| {
            s.split('\n').map(|l| l.strip_prefix(' ').unwrap_or(l).trim_end().to_string()).collect::<Vec<_>>()
        })
        .collect();
    lines.join("\n").trim().to_string()
}

/// Returns the name of a component or a field.
///
/// # Errors
/// Returns an error if pipelines cannot contain this name.
pub fn valid(name: syn::LitStr) -> Result<syn::LitStr> {
    let text = name.value();
    if text.is_empty()
        || text.starts_with(|c: char| c.is_numeric())
        || !text.chars().all(|c| c.is_alphanumeric() || c == '_')
    {
        let message = "a name has letters, digits and `_`, and does not begin with a digit";
        return Err(syn::Error::new(name.span(), message));
    }
    Ok(name)
}

/// The attribute `#[param(…)]` of a field.
#[derive(Default)]
struct Spec {
    name: Option<String>,
    default: Option<Expr>,
    unit: String,
    extensions: String,
    above: Option<Expr>,
    at_least: Option<Expr>,
    below: Option<Expr>,
    at_most: Option<Expr>,
    flatten: bool,
    skip: bool,
}

fn spec(field: &Field) -> Result<Spec> {
    let mut s = Spec::default();
    for attr in field.attrs.iter().filter(|a| a.path().is_ident("param")) {
        attr.parse_nested_meta(|m| {
            let key = m.path.get_ident().map(ToString::to_string).unwrap_or_default();
            match key.as_str() {
                "default" => s.default = Some(m.value()?.parse()?),
                "name" => s.name = Some(valid(m.value()?.parse()?)?.value()),
                "unit" => s.unit = m.value()?.parse::<syn::LitStr>()?.value(),
                "extensions" => s.extensions = m.value()?.parse::<syn::LitStr>()?.value(),
                "above" => s.above = Some(m.value()?.parse()?),
                "at_least" => s.at_least = Some(m.value()?.parse()?),
                "below" => s.below = Some(m.value()?.parse()?),
                "at_most" => s.at_most = Some(m.value()?.parse()?),
                "flatten" => s.flatten = true,
                "skip" => s.skip = true,
                _ => {
                    return Err(m.error(
                        "the keys are name, default, unit, extensions, above, at_least, below, at_most, flatten, skip",
                    ));
                }
            }
            Ok(())
        })?;
    }
    Ok(s)
}

fn range(s: &Spec) -> TokenStream {
    let part = |name: &str, e: &Option<Expr>| {
        let name = syn::Ident::new(name, proc_macro2::Span::call_site());
        e.as_ref().map(|e| quote!(#name: #e as f64,))
    };
    let parts =
        [part("above", &s.above), part("at_least", &s.at_least), part("below", &s.below), part("at_most", &s.at_most)];
    quote!(::galamost_plugin_api::params::Range { #(#parts)* ..::galamost_plugin_api::params::Range::ANY })
}

/// Checks that the numbers of a default, which has this text, are in the range. Both are known here if they are literals.
fn check_default(s: &Spec, default: &Expr, text: &str) -> Result<()> {
    let items = text.split(',').filter_map(|item| item.trim_matches(['[', ']', ' ']).parse::<f64>().ok());
    let numbers: Vec<f64> = items.filter(|x| x.is_finite()).collect();
    let limits: [(&str, &Option<Expr>, fn(f64, f64) -> bool); 4] = [
        ("above", &s.above, |x, limit| x > limit),
        ("at least", &s.at_least, |x, limit| x >= limit),
        ("below", &s.below, |x, limit| x < limit),
        ("at most", &s.at_most, |x, limit| x <= limit),
    ];
    for (word, limit, holds) in limits {
        let limit = limit.as_ref().and_then(|e| crate::shown::ron(e).ok()?.parse::<f64>().ok());
        if let Some(limit) = limit
            && let Some(x) = numbers.iter().find(|x| !holds(**x, limit))
        {
            let message = format!("the default {x} is not allowed: it must be {word} {limit}");
            return Err(syn::Error::new_spanned(default, message));
        }
    }
    Ok(())
}

struct Reader {
    names: Vec<syn::Ident>,
    reads: Vec<TokenStream>,
    docs: Vec<TokenStream>,
    ranges: Vec<TokenStream>,
    /// Whether a field has the name of a cutoff, for each field or flattened struct.
    cutoffs: Vec<TokenStream>,
}

/// Returns the code that reads each field; with `as_f64` every field is read as a number, whatever its type.
fn reader(input: &DeriveInput, as_f64: bool) -> Result<Reader> {
    let mut r = Reader { names: vec![], reads: vec![], docs: vec![], ranges: vec![], cutoffs: vec![] };
    let api = quote!(::galamost_plugin_api::params);
    let mut keys: Vec<String> = vec![];
    for f in &named_fields(input)?.named {
        let s = spec(f)?;
        let name = f.ident.clone().expect("named");
        if let Some(word) = name.to_string().strip_prefix("r#") {
            let message =
                format!("`{word}` is a keyword of Rust: call the field `{word}_` and add #[param(name = \"{word}\")]");
            return Err(syn::Error::new(name.span(), message));
        }
        let key = s.name.clone().unwrap_or_else(|| name.to_string());
        let f64_type: Type = syn::parse_quote!(f64);
        let ty = if as_f64 { &f64_type } else { &f.ty };
        let range = range(&s);
        if s.skip {
            r.reads.push(quote!(let #name = ::std::option::Option::Some(::std::default::Default::default());));
        } else if s.flatten {
            r.reads.push(quote!(let #name = <#ty as #api::Params>::take(fields);));
            r.docs.push(quote!(docs.extend(<#ty as #api::Params>::docs());));
            r.cutoffs.push(quote!(<#ty as #api::Params>::HAS_CUTOFF));
        } else {
            if keys.contains(&key) {
                let message = format!("another field has the name `{key}` in pipelines: give one of them another name");
                return Err(syn::Error::new(name.span(), message));
            }
            keys.push(key.clone());
            if ["r_cut", "r_on"].contains(&key.as_str()) {
                r.cutoffs.push(quote!(true));
            }
            let (doc, unit) = (doc_text(&f.attrs), &s.unit);
            let extensions = s.extensions.split_whitespace();
            let default = match &s.default {
                Some(e) => {
                    r.reads.push(quote!(let #name = fields.or::<#ty>(#key, #range, || #e);));
                    let text = crate::shown::ron(e)?;
                    check_default(&s, e, &text)?;
                    quote!(::std::option::Option::Some(#text.into()))
                }
                None => {
                    r.reads.push(quote!(let #name = fields.required::<#ty>(#key, #range);));
                    quote!(<#ty as #api::FromValue>::absent().map(|_| "none".into()))
                }
            };
            r.docs.push(quote! {
                docs.push({
                    let range: #api::Range = #range;
                    #api::FieldDoc {
                        name: #key.into(),
                        kind: <#ty as #api::FromValue>::describe(),
                        unit: #unit.into(),
                        default: #default,
                        range: if range == #api::Range::ANY { ::std::string::String::new() } else { range.to_string() },
                        doc: #doc.into(),
                        fields: <#ty as #api::FromValue>::fields(),
                        extensions: ::std::vec![#(#extensions.into()),*],
                    }
                });
            });
        }
        r.ranges.push(range);
        r.names.push(name);
    }
    Ok(r)
}

fn params_impl(ty: &TokenStream, r: &Reader) -> TokenStream {
    let Reader { names, reads, docs, cutoffs, .. } = r;
    let api = quote!(::galamost_plugin_api::params);
    quote! {
        impl #api::Params for #ty {
            const HAS_CUTOFF: bool = false #(|| #cutoffs)*;
            #[allow(unused_variables)]
            fn take(fields: &mut #api::Fields<'_, '_>) -> ::std::option::Option<Self> {
                #(#reads)*
                ::std::option::Option::Some(Self { #(#names: #names?),* })
            }
            fn docs() -> ::std::vec::Vec<#api::FieldDoc> {
                #[allow(unused_mut)]
                let mut docs = ::std::vec::Vec::new();
                #(#docs)*
                docs
            }
        }
        impl #api::FromValue for #ty {
            fn from_value(
                value: #api::Value<'_>,
                errors: &mut ::galamost_plugin_api::error::Errors,
            ) -> ::std::option::Option<Self> {
                let mut fields = #api::Fields::new(value, errors)?;
                let result = <Self as #api::Params>::take(&mut fields);
                fields.finish();
                result
            }
            fn describe() -> ::std::string::String {
                let names: ::std::vec::Vec<_> = <Self as #api::Params>::docs().into_iter().map(|d| d.name).collect();
                ::std::format!("({}: …)", names.join(": …, "))
            }
            fn fields() -> ::std::vec::Vec<#api::FieldDoc> {
                <Self as #api::Params>::docs()
            }
        }
    }
}

/// `#[derive(Params)]`.
pub fn params(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    Ok(params_impl(&quote!(#name), &reader(input, false)?))
}

/// `#[derive(PairParams)]`: a row of numbers over `real`.
pub fn pair_params(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    if !is_generic(input)? {
        return Err(syn::Error::new(name.span(), format!("write `struct {name}<real>` with fields of type `real`")));
    }
    for f in &named_fields(input)?.named {
        if !matches!(&f.ty, Type::Path(p) if p.path.is_ident("real")) {
            return Err(syn::Error::new_spanned(&f.ty, "every field of a row has the type `real`"));
        }
    }
    let r = reader(input, true)?;
    let params = params_impl(&quote!(#name<f64>), &r);
    let cxx = cxx_struct(input, &TokenStream::new())?;
    let Reader { names, ranges, .. } = &r;
    let pair = quote!(::galamost_plugin_api::pair);
    Ok(quote! {
        #params
        #cxx
        #[allow(non_camel_case_types)]
        impl<real: ::galamost_plugin_api::Real> ::std::clone::Clone for #name<real> {
            fn clone(&self) -> Self { *self }
        }
        #[allow(non_camel_case_types)]
        impl<real: ::galamost_plugin_api::Real> ::std::marker::Copy for #name<real> {}
        impl #pair::Row for #name<f64> {
            type As<R: ::galamost_plugin_api::Real> = #name<R>;
            fn cast<R: ::galamost_plugin_api::Real>(&self) -> #name<R> {
                #name { #(#names: R::lit(self.#names)),* }
            }
            fn numbers(&self) -> ::std::vec::Vec<f64> {
                ::std::vec![#(self.#names),*]
            }
            fn sample(random: &mut dyn ::std::ops::FnMut() -> f64) -> Self {
                Self { #(#names: #pair::sample_in(&#ranges, random)),* }
            }
            fn zeros() -> ::std::option::Option<Self> {
                ::std::option::Option::Some(Self { #(#names: 0.0),* })
            }
        }
        impl #pair::RowInput for #name<f64> {
            type Settings = #pair::NoSettings;
            type Row = Self;
            fn row(&self, _: &#pair::NoSettings) -> ::std::result::Result<Self, ::std::string::String> {
                ::std::result::Result::Ok(*self)
            }
        }
    })
}
