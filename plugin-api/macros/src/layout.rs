//! `#[derive(Layout)]`: offsets and sizes of the members of a `#[repr(C)]` struct, compared when a library is loaded.

use crate::structs::named_fields;
use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Result};

/// `impl Layout`.
pub fn layout(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    let text = name.to_string();
    let (generics, ty, bounds) = input.generics.split_for_impl();
    let members = named_fields(input)?.named.iter().map(|f| {
        let member = &f.ident;
        let text = member.as_ref().map(ToString::to_string);
        quote!((#text.into(), ::std::mem::offset_of!(Self, #member) as u32, size(|s: &Self| &s.#member)))
    });
    Ok(quote! {
        #[allow(non_camel_case_types)]
        impl #generics ::galamost_plugin_api::layout::Layout for #name #ty #bounds {
            fn layout() -> ::galamost_plugin_api::layout::StructLayout {
                fn size<S, T>(_: fn(&S) -> &T) -> u32 {
                    ::std::mem::size_of::<T>() as u32
                }
                ::galamost_plugin_api::layout::StructLayout {
                    name: #text.into(),
                    size: ::std::mem::size_of::<Self>() as u32,
                    align: ::std::mem::align_of::<Self>() as u32,
                    members: ::std::vec![#(#members),*],
                }
            }
        }
    })
}
