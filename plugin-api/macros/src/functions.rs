//! `#[device_fn]` and the attributes built on it: pair and bond potentials, functions of integrators.

use crate::language::translate;
use crate::native::{Number, native};
use crate::params::doc_text;
use crate::settle::settle;
use crate::words::plain;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::visit::{self, Visit};
use syn::{
    BinOp, Expr, ExprIf, FnArg, Ident, ItemFn, Lit, LitFloat, LitStr, Member, Pat, Path, PathArguments, Result,
    ReturnType, Token, Type,
};

/// The function for rustc, and its text for CUDA as a type of the same name.
pub fn device_fn(f: &ItemFn, number: Number) -> Result<TokenStream> {
    let f = &settle(f);
    let translated = translate(f)?;
    let native = native(f, number);
    let (name, vis) = (&f.sig.ident, &f.vis);
    let name_text = name.to_string();
    let (name_text, text) = (plain(&name_text), translated.text);
    let structs = &translated.needs.structs;
    let functions = &translated.needs.functions;
    let constants = &translated.needs.constants;
    // what only Rust knows is put in when the text is made: the names of functions, which may be imported under
    // others, and the values of constants
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
                };
                &TEXT
            }
        }
    })
}

/// `"Name"`, and `key = Type` pairs behind it.
pub struct Arguments {
    name: LitStr,
    keys: Vec<(Ident, Type)>,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = input.parse()?;
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
    fn input(&self) -> Result<Option<&Type>> {
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
                p => Err(syn::Error::new_spanned(p, "an argument is a plain name")),
            },
            FnArg::Receiver(r) => Err(syn::Error::new_spanned(r, "write a free function")),
        })
        .collect()
}

/// The struct behind `&Name<real>`, without its argument.
fn row_type(ty: &Type) -> Option<Path> {
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

struct Potential {
    row: Path,
    /// Expression in Rust for each argument of the function.
    native: Vec<TokenStream>,
    /// Expression in C++ for each argument of the function.
    cxx: Vec<String>,
    inputs: Vec<Ident>,
}

/// What a potential returns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Returned {
    /// (F/r, U), or (dU/dx, U).
    Slope,
    /// Force, torque, U.
    Torque,
    /// Force, U.
    Force,
}

/// Arguments of an oriented potential that [`OrientedInput`] has itself; the others are those of its pair.
const POSE: [&str; 5] = ["r", "axis_i", "axis_j", "quaternion_i", "quaternion_j"];

/// Matches a potential's arguments with what the loop offers: (name, constant of `Inputs` or none).
fn potential(f: &ItemFn, returned: Returned, offered: &[(&str, Option<&str>)]) -> Result<Potential> {
    let oriented = returned == Returned::Torque;
    let pair = if oriented { quote!(input.pair) } else { quote!(input) };
    let (mut native, mut cxx, mut inputs, mut row) = (vec![], vec![], vec![], None);
    for (name, ty) in arguments(f)? {
        if name == "step" {
            native.push(quote!(&#pair.step));
            cxx.push("input.step".into());
        } else if let Some(path) = row_type(ty) {
            row = Some(path);
            native.push(quote!(row));
            cxx.push("row".into());
        } else if let Some((_, flag)) = offered.iter().find(|(n, _)| *n == name) {
            let expected = match name.as_str() {
                "r" | "axis_i" | "axis_j" | "position" | "unwrapped" | "length" | "velocity" => "Vec3<real>",
                "quaternion_i" | "quaternion_j" => "Quaternion<real>",
                "kind" | "tag" => "u32",
                _ => "real",
            };
            if quote!(#ty).to_string().replace(' ', "") != expected {
                return Err(syn::Error::new_spanned(ty, format!("`{name}` is a `{expected}`")));
            }
            let field = match name.as_str() {
                "theta" | "phi" => "angle",
                "cos_theta" | "cos_phi" => "cos",
                "sin_theta" | "sin_phi" => "sin",
                other => other,
            };
            let ident = format_ident!("{field}");
            native.push(if POSE.contains(&field) { quote!(input.#ident) } else { quote!(#pair.#ident) });
            cxx.push(format!("input.{field}"));
            inputs.extend(flag.map(|f| format_ident!("{f}")));
        } else {
            let names: Vec<_> = offered.iter().map(|(n, _)| *n).collect();
            return Err(syn::Error::new_spanned(
                ty,
                format!(
                    "`{name}` is not offered here; there are {}, step: &Step<real>, and the row `p: &Name<real>`",
                    names.join(", ")
                ),
            ));
        }
    }
    let Some(row) = row else {
        return Err(syn::Error::new(f.sig.ident.span(), "one argument is the parameter row, `p: &Name<real>`"));
    };
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
    if !right {
        return Err(syn::Error::new_spanned(&f.sig.output, message));
    }
    Ok(Potential { row, native, cxx, inputs })
}

/// What a loop asks of a potential's function, and how it is registered.
struct Interface<'a> {
    /// The component has a group: it acts on single particles.
    group: bool,
    /// The trait to implement, and the input of its `eval`.
    of: TokenStream,
    input: TokenStream,
    /// Constants of the trait.
    constants: TokenStream,
    /// What `eval` returns, in Rust and in C++.
    returned: TokenStream,
    cxx_returned: &'a str,
    /// Names in C++: of the alias of the row, the input, and the function.
    cxx_names: [&'a str; 3],
    /// Function of `Registration`.
    register: &'a str,
    /// Tests of the crate: name, and function of `testkit`.
    tests: &'a [(&'a str, &'a str)],
}

/// The function, its trait, its registration and its tests.
fn implement(args: &Arguments, f: &ItemFn, p: &Potential, interface: &Interface<'_>) -> Result<TokenStream> {
    let function = device_fn(f, Number::Generic)?;
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
                };
                &TEXT
            }
        }

        // a plugin's own tests ask the function; its loops, for all instruction sets, would double the time to build them
        #[cfg(not(test))]
        ::galamost_plugin_api::inventory::submit! {
            ::galamost_plugin_api::component::Registration::#register::<#name>(#component, #doc)
        }

        #[cfg(test)]
        mod #module {
            #(#test)*
        }
    })
}

/// Members of its row that a potential asks for certain values: those of conditions `p.member == 1.0`.
struct SpecializedValues<'a> {
    row: &'a str,
    found: Vec<(Ident, LitFloat)>,
}

impl<'a> Visit<'a> for SpecializedValues<'_> {
    fn visit_expr_if(&mut self, e: &'a ExprIf) {
        visit::visit_expr_if(self, e);
        if let Expr::Binary(b) = &*e.cond
            && let (Expr::Field(of), BinOp::Eq(_), Expr::Lit(number)) = (&*b.left, &b.op, &*b.right)
            && let (Expr::Path(base), Member::Named(member), Lit::Float(value)) = (&*of.base, &of.member, &number.lit)
            && base.path.is_ident(self.row)
        {
            self.found.push((member.clone(), value.clone()));
        }
    }
}

/// What the CPU loop may take for granted where all rows are so.
fn specialized(f: &ItemFn, row: &Path) -> Result<TokenStream> {
    let arguments = arguments(f)?;
    let Some((name, _)) = arguments.iter().find(|(name, ty)| name != "step" && row_type(ty).is_some()) else {
        return Ok(TokenStream::new());
    };
    let mut visitor = SpecializedValues { row: name, found: vec![] };
    visitor.visit_block(&f.block);
    if visitor.found.is_empty() {
        return Ok(TokenStream::new());
    }
    let asked = visitor.found.iter().map(|(member, value)| quote!(row.#member == R::lit(#value)));
    Ok(quote! {
        const HAS_SPECIALIZATION: bool = true;
        #[inline(always)]
        fn specialized<R: ::galamost_plugin_api::Real>(row: &#row<R>) -> bool {
            #(#asked)&&*
        }
    })
}

/// `#[pair_potential("Name")]`.
pub fn pair_potential(args: &Arguments, f: &ItemFn) -> Result<TokenStream> {
    let p = potential(
        f,
        Returned::Slope,
        &[
            ("r2", None),
            ("r_cut", None),
            ("rv", Some("VELOCITY")),
            ("zeta", Some("RANDOM")),
            ("charge_i", Some("CHARGE")),
            ("charge_j", Some("CHARGE")),
            ("diameter_i", Some("DIAMETER")),
            ("diameter_j", Some("DIAMETER")),
        ],
    )?;
    let inputs = &p.inputs;
    let specialized = specialized(f, &p.row)?;
    let interface = Interface {
        group: false,
        of: quote!(::galamost_plugin_api::pair::PairFn),
        input: quote!(::galamost_plugin_api::pair::PairInput),
        constants: quote!(const INPUTS: u32 = 0 #(| ::galamost_plugin_api::pair::inputs::#inputs)*; #specialized),
        returned: quote!((R, R)),
        cxx_returned: "Tuple2<real, real>",
        cxx_names: ["PairRow", "PairInput", "pair_eval"],
        register: "pair",
        tests: &[
            ("force_is_the_gradient_of_the_energy", "pair_gradient"),
            ("single_and_double_precision_agree", "pair_precision"),
        ],
    };
    implement(args, f, &p, &interface)
}

/// `#[oriented_pair_potential("Name")]`.
pub fn oriented_pair_potential(args: &Arguments, f: &ItemFn) -> Result<TokenStream> {
    let p = potential(
        f,
        Returned::Torque,
        &[
            ("r", None),
            ("r2", None),
            ("r_cut", None),
            ("axis_i", None),
            ("axis_j", None),
            ("quaternion_i", None),
            ("quaternion_j", None),
            ("charge_i", Some("CHARGE")),
            ("charge_j", Some("CHARGE")),
            ("diameter_i", Some("DIAMETER")),
            ("diameter_j", Some("DIAMETER")),
        ],
    )?;
    let inputs = &p.inputs;
    let vector = quote!(::galamost_plugin_api::vector::Vec3<R>);
    let interface = Interface {
        group: false,
        of: quote!(::galamost_plugin_api::pair::OrientedFn),
        input: quote!(::galamost_plugin_api::pair::OrientedInput),
        constants: quote! {
            const INPUTS: u32 = ::galamost_plugin_api::pair::inputs::ORIENTATION
                #(| ::galamost_plugin_api::pair::inputs::#inputs)*;
        },
        returned: quote!((#vector, #vector, R)),
        cxx_returned: "Tuple3<Vec3<real>, Vec3<real>, real>",
        cxx_names: ["PairRow", "OrientedInput", "pair_eval"],
        register: "oriented_pair",
        tests: &[
            ("force_and_torque_are_the_gradients_of_the_energy", "oriented_gradient"),
            ("action_is_reaction_and_angular_momentum_stays", "oriented_reaction"),
        ],
    };
    implement(args, f, &p, &interface)
}

/// `#[bond_potential("Name")]`, `#[angle_potential("Name")]`, `#[dihedral_potential("Name")]`: links of `width` members.
pub fn bonded_potential(args: &Arguments, f: &ItemFn, width: u32) -> Result<TokenStream> {
    let offered: &[(&str, Option<&str>)] = match width {
        2 => &[("r2", None)],
        3 => &[("theta", None), ("cos_theta", None), ("sin_theta", None)],
        _ => &[("phi", None), ("cos_phi", None), ("sin_phi", None)],
    };
    let p = potential(f, Returned::Slope, offered)?;
    let interface = Interface {
        group: false,
        of: quote!(::galamost_plugin_api::bonded::BondFn),
        input: quote!(::galamost_plugin_api::bonded::BondInput),
        constants: quote!(const WIDTH: u32 = #width;),
        returned: quote!((R, R)),
        cxx_returned: "Tuple2<real, real>",
        cxx_names: ["BondRow", "BondInput", "bond_eval"],
        register: "bond",
        tests: &[("force_is_the_gradient_of_the_energy", "bond_gradient")],
    };
    implement(args, f, &p, &interface)
}

/// `#[external_potential("Name")]`.
pub fn external_potential(args: &Arguments, f: &ItemFn) -> Result<TokenStream> {
    let p = potential(
        f,
        Returned::Force,
        &[
            ("position", None),
            ("unwrapped", None),
            ("length", None),
            ("velocity", None),
            ("mass", None),
            ("charge", Some("CHARGE")),
            ("kind", None),
            ("tag", None),
        ],
    )?;
    let inputs = &p.inputs;
    let interface = Interface {
        group: true,
        of: quote!(::galamost_plugin_api::external::ExternalFn),
        input: quote!(::galamost_plugin_api::external::ExternalInput),
        constants: quote!(const INPUTS: u32 = 0 #(| ::galamost_plugin_api::external::inputs::#inputs)*;),
        returned: quote!((::galamost_plugin_api::vector::Vec3<R>, R)),
        cxx_returned: "Tuple2<Vec3<real>, real>",
        cxx_names: ["ExternalRow", "ExternalInput", "external_eval"],
        register: "external",
        tests: &[
            ("force_is_the_gradient_of_the_energy", "external_gradient"),
            ("single_and_double_precision_agree", "external_precision"),
        ],
    };
    implement(args, f, &p, &interface)
}

/// `#[particle_fn(Integrator)]` and `#[scalar_fn(Integrator)]`.
pub fn integrator_fn(integrator: &Path, f: &ItemFn, scalar: bool) -> Result<TokenStream> {
    let offered: &[(&str, &str)] = if scalar {
        &[("g", "g"), ("sums", "sums"), ("step", "step"), ("random", "random"), ("sim_box", "sim_box")]
    } else {
        &[("p", "p"), ("x", "x"), ("g", "g"), ("step", "step"), ("random", "random")]
    };
    let mut args = vec![];
    for (name, ty) in arguments(f)? {
        if !offered.iter().any(|(n, _)| *n == name) {
            let names: Vec<_> = offered.iter().map(|(n, _)| *n).collect();
            return Err(syn::Error::new_spanned(
                ty,
                format!("`{name}` is not offered here; there are {}", names.join(", ")),
            ));
        }
        args.push(name);
    }
    let sums = match &f.sig.output {
        ReturnType::Default => 0,
        ReturnType::Type(_, t) => match &**t {
            Type::Tuple(t) => t.elems.len(),
            _ => 1,
        },
    };
    let function = device_fn(f, if scalar { Number::F64 } else { Number::Generic })?;
    let name = &f.sig.ident;
    let idents: Vec<_> = args.iter().map(|a| format_ident!("{a}")).collect();
    let cxx = args.join(", ");
    let api = quote!(::galamost_plugin_api::integrator);
    let of = quote!(<#integrator as #api::Integrator>);
    if scalar {
        let sim_box = args.iter().any(|a| a == "sim_box");
        let shear = sim_box && mentions(f, "offset");
        let last = if sim_box { ", SimBox& sim_box" } else { "" };
        let text = format!(
            "__device__ __forceinline__ void {name}_call(State& g, const double* sums, const Step<double>& step, Random& random{last}) {{ {name}<double>({cxx}); }}\n"
        );
        return Ok(quote! {
            #function
            impl #api::ScalarFn<#integrator> for #name {
                const NAME: &'static str = ::std::stringify!(#name);
                const SIM_BOX: bool = #sim_box;
                const SHEAR: bool = #shear;
                #[allow(unused_variables)]
                fn apply(
                    g: &mut #of::State,
                    sums: &[f64; #api::MAX_SUMS],
                    step: &::galamost_plugin_api::views::Step<f64>,
                    random: &mut ::galamost_plugin_api::philox::Random,
                    sim_box: &mut ::galamost_plugin_api::views::SimBox,
                ) {
                    #name(#(#idents),*)
                }
                fn call_text() -> &'static str { #text }
            }
        });
    }
    let (moves, position) = (mentions(f, "displacement"), mentions(f, "position"));
    let turns = ["quaternion", "angular_momentum", "torque", "inertia"].iter().any(|member| mentions(f, member));
    // a sum returned as one number, a tuple, or nothing
    let (value, store) = match sums {
        0 => (String::new(), String::new()),
        1 => ("const auto value = ".into(), "sums[0] = double(value);".into()),
        n => (
            "const auto value = ".into(),
            (0..n).map(|k| format!("sums[{k}] = double(value.v{k}); ")).collect::<String>(),
        ),
    };
    let text = format!(
        "template <class real>\n__device__ __forceinline__ void {name}_call(Particle<real>& p, Extra<real>& x, const State& g, const Step<real>& step, Random& random, double* sums) {{ {value}{name}<real>({cxx}); {store} }}\n"
    );
    let members = (0..sums).map(syn::Index::from);
    let native_call = match sums {
        0 => quote!({ #name::<R>(#(#idents),*); [0.0; #api::MAX_SUMS] }),
        1 => {
            quote!({ let mut s = [0.0; #api::MAX_SUMS]; s[0] = #name::<R>(#(#idents),*).f64(); s })
        }
        _ => quote!({
            let mut s = [0.0; #api::MAX_SUMS];
            let value = #name::<R>(#(#idents),*);
            #(s[#members] = value.#members.f64();)*
            s
        }),
    };
    Ok(quote! {
        #function
        impl #api::ParticleFn<#integrator> for #name {
            const NAME: &'static str = ::std::stringify!(#name);
            const SUMS: usize = #sums;
            const MOVES: bool = #moves;
            const POSITION: bool = #position;
            const TURNS: bool = #turns;
            #[inline(always)]
            #[allow(unused_variables)]
            fn apply<R: ::galamost_plugin_api::Real>(
                p: &mut #api::Particle<R>,
                x: &mut #of::Extra<R>,
                g: &#of::State,
                step: &::galamost_plugin_api::views::Step<R>,
                random: &mut ::galamost_plugin_api::philox::Random,
            ) -> [f64; #api::MAX_SUMS] {
                #native_call
            }
            fn call_text() -> &'static str { #text }
        }
    })
}

/// Whether a member of this name is used anywhere in the body.
fn mentions(f: &ItemFn, member: &str) -> bool {
    struct Finder<'a>(&'a str, bool);
    impl Visit<'_> for Finder<'_> {
        fn visit_member(&mut self, m: &Member) {
            self.1 |= matches!(m, Member::Named(n) if n == self.0);
        }
    }
    let mut finder = Finder(member, false);
    Visit::visit_item_fn(&mut finder, f);
    finder.1
}
