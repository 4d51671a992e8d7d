//! `#[component(Kind, "Name")]` on the parameter struct of a component.

use crate::params::doc_text;
use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::{Ident, ItemStruct, LitStr, Result, Token};

/// `Kind, "Name"`.
pub struct Arguments {
    kind: Ident,
    name: LitStr,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let kind = input.parse()?;
        input.parse::<Token![,]>()?;
        Ok(Self { kind, name: input.parse()? })
    }
}

/// Returns the unchanged struct and its registration.
pub fn component(args: &Arguments, item: &ItemStruct) -> Result<TokenStream> {
    let constructor = match args.kind.to_string().as_str() {
        "Generator" => quote!(generator),
        "Force" => quote!(force),
        "Integrator" => quote!(integrator),
        "Updater" => quote!(updater),
        "Analyzer" => quote!(analyzer),
        "Sampler" => quote!(sampler),
        other => {
            return Err(syn::Error::new(
                args.kind.span(),
                format!(
                    "unknown kind `{other}`; the kinds are Generator, Force, Integrator, Updater, Analyzer, Sampler (for pairs and bonds use #[pair_potential], #[bond_potential])"
                ),
            ));
        }
    };
    let (ty, name, doc) = (&item.ident, &args.name, doc_text(&item.attrs));
    Ok(quote! {
        #item
        ::galamost_plugin_api::inventory::submit! {
            ::galamost_plugin_api::component::Registration::#constructor::<#ty>(#name, #doc)
        }
    })
}
