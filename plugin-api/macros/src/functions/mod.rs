//! `#[device_fn]` and the attributes built on it: potentials and integrator functions.

pub mod bonded;
pub mod integrator;
pub mod pair;
mod potential;

use crate::language::literals::settle;
use crate::language::native::{Number, native};
use crate::language::translate;
use crate::language::words::plain;
use crate::params::valid;
use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::{FnArg, Ident, ItemFn, LitStr, Pat, Result, Token, Type};

/// Returns the function for rustc, and a type of the same name that has its CUDA text.
pub fn device_fn(f: &ItemFn, number: Number) -> Result<TokenStream> {
    with_rows(f, number, &[])
}

/// As [`device_fn`]; all members of the arguments `rows` have the type `real`.
fn with_rows(f: &ItemFn, number: Number, rows: &[String]) -> Result<TokenStream> {
    let f = &settle(f);
    let translated = translate(f, rows)?;
    let native = native(f, number);
    let (name, vis) = (&f.sig.ident, &f.vis);
    let name_text = name.to_string();
    let (name_text, text) = (plain(&name_text), translated.text);
    let structs = &translated.needs.structs;
    let functions = &translated.needs.functions;
    let constants = &translated.needs.constants;
    // names of functions (which may be imported under other names) and values of constants are known to Rust only:
    // they are filled in when the text is generated
    let calls = (0..functions.len()).map(|k| format!("@call {k}@"));
    let places = (0..constants.len()).map(|k| format!("@constant {k}@"));
    let text = quote! {{
        #[allow(unused_mut)]
        let mut text = ::std::string::String::from(#text);
        #(text = text.replace(#calls, <#functions as ::galamost_plugin_api::device::DeviceFn>::text().name);)*
        #(text = text.replace(#places, &::galamost_plugin_api::real::Constant::cxx(#constants));)*
        text
    }};
    let doc = format!("The CUDA text of [`{name}()`].");
    Ok(quote! {
        #native

        #[doc = #doc]
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug)]
        #vis struct #name {}

        impl ::galamost_plugin_api::device::DeviceFn for #name {
            fn text() -> &'static ::galamost_plugin_api::device::DeviceText {
                #[allow(non_camel_case_types, dead_code)]
                type real = f32;
                static TEXT: ::galamost_plugin_api::device::DeviceText = ::galamost_plugin_api::device::DeviceText {
                    name: #name_text,
                    text: || #text,
                    needs: &[
                        #(|| <#structs as ::galamost_plugin_api::device::CxxStruct>::text(),)*
                        #(|| <#functions as ::galamost_plugin_api::device::DeviceFn>::text(),)*
                    ],
                    header: false,
                };
                &TEXT
            }
        }
    })
}

/// Arguments of an attribute: `"Name"`, then `key = Type` pairs. Without arguments, the function is no component itself.
pub struct Arguments {
    pub name: Option<LitStr>,
    keys: Vec<(Ident, Type)>,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if input.is_empty() {
            return Ok(Self { name: None, keys: vec![] });
        }
        let name = Some(valid(input.parse()?)?);
        let mut keys = vec![];
        while input.parse::<Option<Token![,]>>()?.is_some() && !input.is_empty() {
            let key = input.parse()?;
            input.parse::<Token![=]>()?;
            keys.push((key, input.parse()?));
        }
        Ok(Self { name, keys })
    }
}

impl Arguments {
    pub fn input(&self) -> Result<Option<&Type>> {
        match self.keys.iter().find(|(k, _)| k != "input") {
            Some((k, _)) => Err(syn::Error::new(k.span(), "the only key is `input`")),
            None => Ok(self.keys.first().map(|(_, t)| t)),
        }
    }
}

/// Name, type and position of each argument.
fn arguments(f: &ItemFn) -> Result<Vec<(String, &Type)>> {
    f.sig
        .inputs
        .iter()
        .map(|a| match a {
            FnArg::Typed(t) => match &*t.pat {
                Pat::Ident(i) => Ok((i.ident.to_string(), &*t.ty)),
                p => Err(syn::Error::new_spanned(p, "an argument must be a plain name")),
            },
            FnArg::Receiver(r) => Err(syn::Error::new_spanned(r, "write a free function")),
        })
        .collect()
}
