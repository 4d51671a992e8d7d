//! Types and constants of the device language, and their C++ forms.

use quote::ToTokens;
use syn::{PathArguments, Type};

/// A result whose error has a span.
pub type Result<T> = syn::Result<T>;

/// Returns an error of the device language at this piece of the text.
pub fn refuse<T>(at: impl ToTokens, message: impl std::fmt::Display) -> Result<T> {
    Err(syn::Error::new_spanned(at, format!("device language: {message}")))
}

const TYPES: &str = "types are real, f32, f64, i32, u32, u64, usize, bool, Vec3<real>, Quaternion<real>, tuples of two to six of these, \
                     structs with #[derive(DeviceStruct)] and references";

/// Rust types without a C++ form in the device language.
const FOREIGN: &[&str] = &[
    "i8", "i16", "i64", "i128", "isize", "u8", "u16", "u128", "char", "str", "String", "Vec", "Option", "Result", "Box",
];

/// Returns whether this is a number type, a valid target of `as`.
pub fn is_primitive(ty: &Type) -> bool {
    matches!(ty, Type::Path(p) if ["real", "f32", "f64", "i32", "u32", "u64", "usize"].iter().any(|n| p.path.is_ident(n)))
}

/// Returns whether a path is written like a constant, in capitals: `R_MAX`, `limits::N`, `u32::MAX`.
pub fn is_constant_name(path: &syn::Path) -> bool {
    path.segments.last().is_some_and(|s| {
        let name = s.ident.to_string();
        s.arguments.is_empty() && name.contains(char::is_uppercase) && !name.contains(char::is_lowercase)
    })
}

/// Structs that the C++ headers define themselves.
const BUILT_IN: &[&str] = &["Vec3", "Quaternion", "Step", "Particle", "Random", "Sums", "SimBox"];

/// Constants of `consts::`.
pub fn constant(name: &str) -> Option<f64> {
    use std::f64::consts as c;
    Some(match name {
        "PI" => c::PI,
        "TAU" => c::TAU,
        "FRAC_PI_2" => c::FRAC_PI_2,
        "FRAC_PI_4" => c::FRAC_PI_4,
        "SQRT_2" => c::SQRT_2,
        "FRAC_1_SQRT_2" => c::FRAC_1_SQRT_2,
        "LN_2" => c::LN_2,
        "E" => c::E,
        _ => return None,
    })
}

/// Returns the name of the constant if this path is `consts::NAME` (with any prefix).
pub fn constant_path(path: &syn::Path) -> Option<String> {
    let mut segments = path.segments.iter().rev();
    let name = segments.next()?.ident.to_string();
    (segments.next()?.ident == "consts").then_some(name)
}

/// Returns the C++ form of a type.
pub fn cxx_type(ty: &Type) -> Result<String> {
    match ty {
        Type::Reference(r) if matches!(&*r.elem, Type::Array(_) | Type::Slice(_)) => {
            let (Type::Array(syn::TypeArray { elem, .. }) | Type::Slice(syn::TypeSlice { elem, .. })) = &*r.elem else {
                unreachable!("matched above")
            };
            let inner = cxx_type(elem)?;
            Ok(if r.mutability.is_some() { format!("{inner}*") } else { format!("const {inner}*") })
        }
        Type::Reference(r) => {
            let inner = cxx_type(&r.elem)?;
            Ok(if r.mutability.is_some() { format!("{inner}&") } else { format!("const {inner}&") })
        }
        Type::Tuple(t) if t.elems.is_empty() => Ok("void".into()),
        Type::Tuple(t) => {
            let parts = t.elems.iter().map(cxx_type).collect::<Result<Vec<_>>>()?;
            if !(2..=6).contains(&parts.len()) {
                return refuse(ty, "tuples have two to six members");
            }
            Ok(format!("Tuple{}<{}>", parts.len(), parts.join(", ")))
        }
        Type::Path(p) => {
            let Some(last) = p.path.segments.last() else {
                return refuse(ty, "an empty path");
            };
            let name = last.ident.to_string();
            Ok(match name.as_str() {
                "real" => "real".into(),
                "f32" => "float".into(),
                "f64" => "double".into(),
                "i32" => "int".into(),
                "u32" => "unsigned int".into(),
                "u64" | "usize" => "unsigned long long".into(),
                "bool" => "bool".into(),
                other if FOREIGN.contains(&other) => return refuse(ty, TYPES),
                _ => match &last.arguments {
                    PathArguments::None => name,
                    PathArguments::AngleBracketed(a) => {
                        let mut parts = vec![];
                        for arg in &a.args {
                            let syn::GenericArgument::Type(t) = arg else {
                                return refuse(arg, "only types are allowed here");
                            };
                            parts.push(cxx_type(t)?);
                        }
                        format!("{name}<{}>", parts.join(", "))
                    }
                    PathArguments::Parenthesized(_) => {
                        return refuse(ty, "no function types");
                    }
                },
            })
        }
        _ => refuse(ty, TYPES),
    }
}

/// Collects the structs in a type that need a C++ definition.
pub fn struct_paths(ty: &Type, out: &mut Vec<syn::Path>) {
    match ty {
        Type::Reference(r) => struct_paths(&r.elem, out),
        Type::Array(a) => struct_paths(&a.elem, out),
        Type::Tuple(t) => t.elems.iter().for_each(|t| struct_paths(t, out)),
        Type::Path(p) => {
            let name = p.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
            let primitive = matches!(name.as_str(), "real" | "f32" | "f64" | "i32" | "u32" | "u64" | "usize" | "bool");
            if !primitive && !BUILT_IN.contains(&name.as_str()) {
                out.push(p.path.clone());
            }
        }
        _ => {}
    }
}
