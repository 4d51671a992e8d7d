//! What all potentials have in common: matching of arguments, the trait, the registration, the tests.

use super::{Arguments, arguments, with_rows};
use crate::language::native::Number;
use crate::params::doc_text;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Ident, ItemFn, Path, PathArguments, Result, ReturnType, Type};

/// Returns the struct of a reference `&Name<real>`, without its type argument.
pub fn row_type(ty: &Type) -> Option<Path> {
    let Type::Reference(r) = ty else { return None };
    let Type::Path(p) = &*r.elem else { return None };
    let mut path = p.path.clone();
    let last = path.segments.last_mut()?;
    let PathArguments::AngleBracketed(a) = &last.arguments else {
        return None;
    };
    let real = matches!(a.args.first(), Some(syn::GenericArgument::Type(Type::Path(t))) if t.path.is_ident("real"));
    if !real {
        return None;
    }
    last.arguments = PathArguments::None;
    Some(path)
}

/// The arguments of a potential, matched with what the loop provides.
pub struct Potential {
    /// The struct of the parameter row.
    pub row: Path,
    /// Expression in Rust for each argument of the function.
    native: Vec<TokenStream>,
    /// Expression in C++ for each argument of the function.
    cxx: Vec<String>,
    /// Flags of the inputs in use.
    pub inputs: Vec<Ident>,
    /// Whether the function has the argument `step`.
    pub step: bool,
}

/// What a potential returns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Returned {
    /// (F/r, U), or (dU/dx, U).
    Slope,
    /// Force, torque, U.
    Torque,
    /// Force, U.
    Force,
}

/// Arguments of an oriented potential that are fields of `OrientedInput`; the others are fields of its pair.
const POSE: [&str; 5] = ["r", "axis_i", "axis_j", "quaternion_i", "quaternion_j"];

/// The type that an argument of this name must have.
fn expected_type(name: &str) -> &'static str {
    match name {
        "r" | "axis_i" | "axis_j" | "position" | "unwrapped" | "length" | "velocity" => "Vec3<real>",
        "quaternion_i" | "quaternion_j" => "Quaternion<real>",
        "kind" | "tag" => "u32",
        _ => "real",
    }
}

/// The field of the loop's input that holds an argument.
fn input_field(name: &str) -> &str {
    match name {
        "theta" | "phi" => "angle",
        "cos_theta" | "cos_phi" => "cos",
        "sin_theta" | "sin_phi" => "sin",
        other => other,
    }
}

/// Matches a potential's arguments with what the loop provides: (name, constant of `inputs` or none).
pub fn potential(f: &ItemFn, returned: Returned, offered: &[(&str, Option<&str>)]) -> Result<Potential> {
    let oriented = returned == Returned::Torque;
    let pair = if oriented { quote!(input.pair) } else { quote!(input) };
    let (mut native, mut cxx, mut inputs, mut row, mut step) = (vec![], vec![], vec![], None, false);
    for (name, ty) in arguments(f)? {
        if name == "step" {
            step = true;
            native.push(quote!(&#pair.step));
            cxx.push("input.step".into());
        } else if let Some(path) = row_type(ty) {
            row = Some(path);
            native.push(quote!(row));
            cxx.push("row".into());
        } else if let Some((_, flag)) = offered.iter().find(|(n, _)| *n == name) {
            let expected = expected_type(&name);
            if quote!(#ty).to_string().replace(' ', "") != expected {
                return Err(syn::Error::new_spanned(ty, format!("`{name}` has the type `{expected}`")));
            }
            let field = input_field(&name);
            let ident = format_ident!("{field}");
            native.push(if POSE.contains(&field) { quote!(input.#ident) } else { quote!(#pair.#ident) });
            cxx.push(format!("input.{field}"));
            inputs.extend(flag.map(|f| format_ident!("{f}")));
        } else {
            let names: Vec<_> = offered.iter().map(|(n, _)| *n).collect();
            let message = format!(
                "unknown argument `{name}`; available are {}, step: &Step<real>, and the row `p: &Name<real>`",
                names.join(", ")
            );
            return Err(syn::Error::new_spanned(ty, message));
        }
    }
    let Some(row) = row else {
        return Err(syn::Error::new(f.sig.ident.span(), "one argument must be the parameter row, `p: &Name<real>`"));
    };
    check_returned(f, returned)?;
    Ok(Potential { row, native, cxx, inputs, step })
}

/// Checks the number of returned values.
fn check_returned(f: &ItemFn, returned: Returned) -> Result<()> {
    let (members, message) = match returned {
        Returned::Slope => (2, "a potential returns (F/r, U): `-> (real, real)`"),
        Returned::Torque => (
            3,
            "an oriented potential returns the force on i, the torque on i, and U: `-> (Vec3<real>, Vec3<real>, real)`",
        ),
        Returned::Force => (2, "an external potential returns the force and U: `-> (Vec3<real>, real)`"),
    };
    let right =
        matches!(&f.sig.output, ReturnType::Type(_, t) if matches!(&**t, Type::Tuple(t) if t.elems.len() == members));
    if right { Ok(()) } else { Err(syn::Error::new_spanned(&f.sig.output, message)) }
}

/// The trait that a potential's function implements, and its registration.
pub struct Interface<'a> {
    /// Whether the component acts on single particles and has a group.
    pub group: bool,
    /// The trait to implement.
    pub of: TokenStream,
    /// The input of its `eval`.
    pub input: TokenStream,
    /// Constants of the trait.
    pub constants: TokenStream,
    /// The return type of `eval` in Rust.
    pub returned: TokenStream,
    /// The return type in C++.
    pub cxx_returned: &'a str,
    /// Names in C++ of the row's alias, the input, and the function.
    pub cxx_names: [&'a str; 3],
    /// Function of `Registration`.
    pub register: &'a str,
    /// Tests of the crate: name, and function of `testkit`.
    pub tests: &'a [(&'a str, &'a str)],
}

/// Returns the function, its trait, its registration and its tests.
pub fn implement(args: &Arguments, f: &ItemFn, p: &Potential, interface: &Interface<'_>) -> Result<TokenStream> {
    let is_row = |(name, ty): &(String, &Type)| name != "step" && row_type(ty).is_some();
    let rows: Vec<String> = arguments(f)?.into_iter().filter(is_row).map(|(name, _)| name).collect();
    let function = with_rows(f, Number::Generic, &rows)?;
    let (name, row, native, component) = (&f.sig.ident, &p.row, &p.native, &args.name);
    let default_input: Type = match interface.group {
        true => syn::parse_quote!(::galamost_plugin_api::external::OneRow<#row<f64>>),
        false => syn::parse_quote!(#row<f64>),
    };
    let rows = args.input()?.unwrap_or(&default_input);
    let Interface { group: _, of, input, constants, returned, cxx_returned, cxx_names, register, tests } = interface;
    let [cxx_row, cxx_input, eval] = cxx_names;
    let row_name = row.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
    let text = format!(
        "template <class real> using {cxx_row} = {row_name}<real>;\n\
         template <class real>\n\
         __device__ __forceinline__ {cxx_returned} {eval}(const {cxx_input}<real>& input, const {row_name}<real>& row) {{\n\
         return {name}<real>({});\n}}\n",
        p.cxx.join(", ")
    );
    let (doc, module, register) = (doc_text(&f.attrs), format_ident!("{name}_harness"), format_ident!("{register}"));
    let test = tests.iter().map(|(test, kit)| {
        let (test, kit) = (format_ident!("{test}"), format_ident!("{kit}"));
        quote! {
            #[test]
            fn #test() {
                ::galamost_plugin_api::testkit::#kit::<super::#name>();
            }
        }
    });
    // a function without a name belongs to another component
    let registration = component.as_ref().map(|component| {
        quote! {
            // a plugin's unit tests call the function directly: compiling its loops for all instruction sets would double
            // their build time
            #[cfg(not(test))]
            ::galamost_plugin_api::inventory::submit! {
                ::galamost_plugin_api::component::Registration::#register::<#name>(#component, #doc)
            }
        }
    });
    Ok(quote! {
        #function

        impl #of for #name {
            type Row<R: ::galamost_plugin_api::Real> = #row<R>;
            type Input = #rows;
            #constants
            #[inline(always)]
            #[allow(unused_variables)]
            fn eval<R: ::galamost_plugin_api::Real>(input: &#input<R>, row: &#row<R>) -> #returned {
                #name::<R>(#(#native),*)
            }
            fn eval_text() -> &'static ::galamost_plugin_api::device::DeviceText {
                static TEXT: ::galamost_plugin_api::device::DeviceText = ::galamost_plugin_api::device::DeviceText {
                    name: #eval,
                    text: || #text.into(),
                    needs: &[|| <#name as ::galamost_plugin_api::device::DeviceFn>::text()],
                    header: false,
                };
                &TEXT
            }
        }

        #registration

        #[cfg(test)]
        mod #module {
            #(#test)*
        }
    })
}
