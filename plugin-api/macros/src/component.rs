//! `#[component(Kind, "Name")]` on the parameter struct of a component.

use crate::params::{doc_text, valid};
use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::{Ident, ItemStruct, LitStr, Result, Token};

/// `Kind, "Name"`, and any number of `former = "OldName"`.
pub struct Arguments {
    kind: Ident,
    name: LitStr,
    former: Vec<LitStr>,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let kind = input.parse()?;
        input.parse::<Token![,]>()?;
        let name = valid(input.parse()?)?;
        let mut former = vec![];
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            let key: Ident = input.parse()?;
            if key != "former" {
                return Err(syn::Error::new(key.span(), "expected `former = \"OldName\"`"));
            }
            input.parse::<Token![=]>()?;
            former.push(valid(input.parse()?)?);
        }
        Ok(Self { kind, name, former })
    }
}

/// Returns the unchanged struct, followed by its registration.
pub fn component(args: &Arguments, item: &ItemStruct) -> Result<TokenStream> {
    let constructor = match args.kind.to_string().as_str() {
        "Generator" => quote!(generator),
        "Force" => quote!(force),
        "LongRange" => quote!(long_range),
        "Integrator" => quote!(integrator),
        "Updater" => quote!(updater),
        "Analyzer" => quote!(analyzer),
        "Sampler" => quote!(sampler),
        other => {
            return Err(syn::Error::new(
                args.kind.span(),
                format!(
                    "unknown kind `{other}`; the kinds are Generator, Force, LongRange, Integrator, Updater, Analyzer, Sampler (for pairs and bonds use #[pair_potential], #[bond_potential])"
                ),
            ));
        }
    };
    let (ty, name, former, doc) = (&item.ident, &args.name, &args.former, doc_text(&item.attrs));
    let former = if former.is_empty() { quote!() } else { quote!(.renamed_from(&[#(#former),*])) };
    Ok(quote! {
        #item
        ::galamost_plugin_api::inventory::submit! {
            ::galamost_plugin_api::component::Registration::#constructor::<#ty>(#name, #doc)#former
        }
    })
}
