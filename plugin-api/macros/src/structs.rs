//! `#[derive(DeviceStruct)]`: a `#[repr(C)]` struct of Rust as a struct of CUDA C++.

use crate::language::types::{cxx_type, refuse};
use crate::language::words::{cxx_field, is_free};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Expr, ExprLit, Fields, FieldsNamed, Lit, Result, Type};

/// Returns the named fields of a struct.
///
/// # Errors
/// Returns an error if the item is not a struct with named fields.
pub fn named_fields(input: &DeriveInput) -> Result<&FieldsNamed> {
    match &input.data {
        Data::Struct(s) => match &s.fields {
            Fields::Named(f) => Ok(f),
            f => Err(syn::Error::new_spanned(f, "expected a struct with named fields")),
        },
        _ => Err(syn::Error::new_spanned(&input.ident, "expected a struct with named fields")),
    }
}

/// Returns whether the struct has the type parameter `real` (and no other parameter).
pub fn is_generic(input: &DeriveInput) -> Result<bool> {
    let params = &input.generics.params;
    match params.len() {
        0 => Ok(false),
        1 if matches!(&params[0], syn::GenericParam::Type(t) if t.ident == "real") => Ok(true),
        _ => Err(syn::Error::new_spanned(params, "the only type parameter allowed is the number type `real`")),
    }
}

/// The length of an array in brackets; empty for other types. The value of a Rust constant is filled in when the text is
/// generated.
fn array_length(ty: &Type) -> String {
    let Type::Array(a) = ty else { return String::new() };
    let len = &a.len;
    match len {
        Expr::Lit(ExprLit { lit: Lit::Int(n), .. }) => format!("[{}]", n.base10_digits()),
        _ => format!("[@{}@]", quote!(#len)),
    }
}

/// Returns the target of a `DevicePtr<T>`.
fn pointee(ty: &Type) -> Result<Option<&Type>> {
    let Type::Path(p) = ty else { return Ok(None) };
    let Some(last) = p.path.segments.last().filter(|s| s.ident == "DevicePtr") else { return Ok(None) };
    if let syn::PathArguments::AngleBracketed(args) = &last.arguments
        && let Some(syn::GenericArgument::Type(t)) = args.args.first()
    {
        return Ok(Some(t));
    }
    Err(syn::Error::new_spanned(ty, "DevicePtr<T>"))
}

/// The C++ type of a member, or of the elements of an array.
fn member_type(ty: &Type) -> Result<String> {
    if let Some(t) = pointee(ty)? {
        let bytes = matches!(t, Type::Path(p) if p.path.is_ident("u8"));
        return Ok(format!("{}*", if bytes { "unsigned char".into() } else { cxx_type(t)? }));
    }
    if matches!(ty, Type::Path(p) if p.path.segments.last().is_some_and(|s| s.ident == "usize")) {
        return refuse(ty, "use u32 or u64: the size of usize depends on the platform");
    }
    cxx_type(ty)
}

/// The struct that must be defined before a member of this type.
fn needed(ty: &Type) -> Option<&Type> {
    const BUILT_IN: &[&str] = &["real", "f32", "f64", "i32", "u32", "u64", "u8", "bool", "Vec3", "Quaternion"];
    match ty {
        Type::Array(a) => needed(&a.elem),
        Type::Path(p) => match pointee(ty) {
            Ok(Some(target)) => needed(target),
            _ => {
                let last = p.path.segments.last()?.ident.to_string();
                (!BUILT_IN.contains(&last.as_str())).then_some(ty)
            }
        },
        _ => None,
    }
}

fn declaration(ty: &Type, name: &str) -> Result<String> {
    match ty {
        Type::Array(a) => Ok(format!("{} {name}{};", member_type(&a.elem)?, array_length(ty))),
        Type::Path(_) => Ok(format!("{} {name};", member_type(ty)?)),
        _ => {
            refuse(ty, "a member is a number, bool, Vec3<real>, another such struct, an array of these or a DevicePtr")
        }
    }
}

fn cxx_attribute(field: &syn::Field) -> Result<Option<String>> {
    let mut found = None;
    for attr in &field.attrs {
        if attr.path().is_ident("device") {
            attr.parse_nested_meta(|m| {
                if !m.path.is_ident("cxx") {
                    return Err(m.error("the only key is `cxx`"));
                }
                let text: syn::LitStr = m.value()?.parse()?;
                found = Some(text.value());
                Ok(())
            })?;
        }
    }
    Ok(found)
}

/// Returns the C++ members of a struct, and the Rust constants that replace `@…@`.
fn members(fields: &FieldsNamed) -> Result<(String, Vec<(String, TokenStream)>)> {
    let mut text = String::new();
    let mut constants = vec![];
    for f in &fields.named {
        let name = cxx_field(&f.ident.as_ref().expect("named").to_string());
        let line = match cxx_attribute(f)? {
            // the C++ type of the member, or of the elements of an array
            Some(ty) => format!("{ty} {name}{};", array_length(&f.ty)),
            None => declaration(&f.ty, &name)?,
        };
        if let Type::Array(a) = &f.ty
            && line.contains('@')
        {
            let len = &a.len;
            constants.push((format!("@{}@", quote!(#len)), quote!(#len)));
        }
        text.push_str("    ");
        text.push_str(&line);
        text.push('\n');
    }
    Ok((text, constants))
}

/// Returns whether the struct has the attribute `#[device(header)]`: the engine's header defines it.
fn is_in_header(input: &DeriveInput) -> Result<bool> {
    let mut found = false;
    for attr in input.attrs.iter().filter(|a| a.path().is_ident("device")) {
        attr.parse_nested_meta(|m| {
            found |= m.path.is_ident("header");
            if m.path.is_ident("header") { Ok(()) } else { Err(m.error("the only key is `header`")) }
        })?;
    }
    Ok(found)
}

/// Statements that add assertions about the layout of the struct to its C++ `text`.
fn layout_checks(input: &DeriveInput) -> Result<TokenStream> {
    let (name, fields) = (&input.ident, named_fields(input)?);
    let members: Vec<_> = fields.named.iter().filter_map(|f| f.ident.as_ref()).collect();
    let cxx: Vec<_> = members.iter().map(|m| cxx_field(&m.to_string())).collect();
    let check = |cxx_name: String, ty: TokenStream| {
        quote! {
            text.push_str(&::galamost_plugin_api::device::layout_checks(
                #cxx_name,
                ::std::mem::size_of::<#ty>(),
                ::std::mem::align_of::<#ty>(),
                &[#((#cxx, ::std::mem::offset_of!(#ty, #members))),*],
            ));
        }
    };
    Ok(if is_generic(input)? {
        let instance = |cxx: &str, real: TokenStream| check(format!("{name}<{cxx}>"), quote!(#name<#real>));
        [instance("float", quote!(f32)), instance("double", quote!(f64))].into_iter().collect()
    } else {
        check(name.to_string(), quote!(#name))
    })
}

/// `impl CxxStruct`: the C++ definition. `checks` are statements that add assertions to its `text`.
pub fn cxx_struct(input: &DeriveInput, checks: &TokenStream) -> Result<TokenStream> {
    let name = &input.ident;
    if !is_free(&name.to_string()) && !is_in_header(input)? {
        return refuse(name, format!("`{name}` is reserved in C++ or in the engine's headers; rename this struct"));
    }
    let fields = named_fields(input)?;
    let generic = is_generic(input)?;
    let (members, constants) = members(fields)?;
    let template = if generic { "template <class real>\n" } else { "" };
    let text = format!("{template}struct {name} {{\n{members}}};\n");
    let (keys, values): (Vec<_>, Vec<_>) = constants.into_iter().unzip();
    // the C++ type that an attribute names is not the Rust type
    let renamed = |f: &&syn::Field| f.attrs.iter().any(|a| a.path().is_ident("device"));
    let needs = fields.named.iter().filter(|f| !renamed(f)).filter_map(|f| needed(&f.ty));
    let header = is_in_header(input)?;
    let name_text = name.to_string();
    let (head, ty) = if generic {
        (quote!(impl<real: ::galamost_plugin_api::Real>), quote!(#name<real>))
    } else {
        (quote!(impl), quote!(#name))
    };
    // the needs of a generic struct are those of its f32 instance: the template text is the same
    let alias = generic.then(|| {
        quote!(
            #[allow(non_camel_case_types, dead_code)]
            type real = f32;
        )
    });
    Ok(quote! {
        #[allow(non_camel_case_types)]
        #head ::galamost_plugin_api::device::CxxStruct for #ty {
            fn text() -> &'static ::galamost_plugin_api::device::DeviceText {
                #alias
                static TEXT: ::galamost_plugin_api::device::DeviceText = ::galamost_plugin_api::device::DeviceText {
                    name: #name_text,
                    text: || {
                        #[allow(unused_mut)]
                        let mut text = ::std::string::String::from(#text);
                        #(text = text.replace(#keys, &(#values).to_string());)*
                        #checks
                        text
                    },
                    header: #header,
                    needs: &[#(|| <#needs as ::galamost_plugin_api::device::CxxStruct>::text()),*],
                };
                &TEXT
            }
        }
    })
}

/// Returns an error if the struct is not `#[repr(C)]`.
fn check_repr(input: &DeriveInput, derive: &str) -> Result<()> {
    let is_c = |a: &syn::Attribute| a.path().is_ident("repr") && a.parse_args::<syn::Ident>().is_ok_and(|i| i == "C");
    if input.attrs.iter().any(is_c) {
        return Ok(());
    }
    Err(syn::Error::new(input.ident.span(), format!("#[derive({derive})] needs #[repr(C)] on the struct")))
}

/// `#[derive(CxxStruct)]`.
pub fn shared_struct(input: &DeriveInput) -> Result<TokenStream> {
    check_repr(input, "CxxStruct")?;
    let (cxx, unpadded) = (cxx_struct(input, &layout_checks(input)?)?, unpadded(input)?);
    Ok(quote!(#cxx const _: () = { #unpadded };))
}

/// `#[derive(DeviceStruct)]`.
pub fn device_struct(input: &DeriveInput) -> Result<TokenStream> {
    check_repr(input, "DeviceStruct")?;
    let name = &input.ident;
    let (cxx, unpadded) = (cxx_struct(input, &layout_checks(input)?)?, unpadded(input)?);
    let members = named_fields(input)?.named.iter().map(|f| &f.ty);
    let (generics, ty) = if is_generic(input)? {
        (quote!(<real: ::galamost_plugin_api::Real>), quote!(#name<real>))
    } else {
        (quote!(), quote!(#name))
    };
    Ok(quote! {
        #cxx
        // SAFETY: the members are plain data, and there is no padding between them (both are checked below)
        #[allow(non_camel_case_types)]
        unsafe impl #generics ::galamost_plugin_api::device::Plain for #ty {}
        // SAFETY: `#[repr(C)]` was checked, and the C++ text declares the same members in the same order
        #[allow(non_camel_case_types)]
        unsafe impl #generics ::galamost_plugin_api::device::DeviceStruct for #ty {}
        #[allow(non_camel_case_types, dead_code)]
        const _: () = {
            const fn member<T: ::galamost_plugin_api::device::Plain>() {}
            const fn members #generics () {
                #(member::<#members>();)*
            }
            #unpadded
        };
    })
}

/// Checks that the sizes of the members add up to the size of the struct, for both types of numbers if it is generic.
fn unpadded(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    let members = named_fields(input)?.named.iter().map(|f| &f.ty);
    let sum = quote!(0 #(+ ::std::mem::size_of::<#members>())*);
    let message = format!("`{name}` has padding: order its members by size, or fill the gap with a `reserved` member");
    let instance = |real: TokenStream| {
        quote! {{
            type real = #real;
            assert!(::std::mem::size_of::<#name<real>>() == #sum, #message);
        }}
    };
    Ok(if is_generic(input)? {
        [quote!(f32), quote!(f64)].into_iter().map(instance).collect()
    } else {
        quote!(assert!(::std::mem::size_of::<#name>() == #sum, #message);)
    })
}
