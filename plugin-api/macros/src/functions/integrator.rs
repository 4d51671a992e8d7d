//! `#[particle_fn(Integrator)]` and `#[scalar_fn(Integrator)]`.
//!
//! A function declares what it reads and changes by the names and types of its arguments. It cannot reach anything else,
//! so an assignment either has its effect or does not compile.

use super::{arguments, device_fn};
use crate::language::native::Number;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{FnArg, Ident, ItemFn, Pat, Path, Result, ReturnType, Type};

/// An argument that a function can take.
struct Offer {
    name: &'static str,
    /// Its type if it is read-only; empty if it can only be changed.
    read: &'static str,
    /// Its type if changes are stored; empty if it is read-only.
    changed: &'static str,
    /// What to write instead of changing a read-only argument.
    instead: &'static str,
}

const fn offer(name: &'static str, read: &'static str, changed: &'static str, instead: &'static str) -> Offer {
    Offer { name, read, changed, instead }
}

const MOVE: &str = "; to move the particle, take `displacement: &mut Vec3<real>` and assign to it";
const VELOCITY: &str = "; to change the motion, take `velocity: &mut Vec3<real>`";
const SPIN: &str = "; to change the rotation, take `angular_momentum: &mut Vec3<real>`";

/// Quantities of a particle: members of `Particle`.
const PARTICLE: &[Offer] = &[
    offer("velocity", "Vec3<real>", "&mut Vec3<real>", ""),
    offer("force", "Vec3<real>", "", VELOCITY),
    offer("mass", "real", "", ""),
    offer("position", "Vec3<real>", "", MOVE),
    offer("displacement", "", "&mut Vec3<real>", ""),
    offer("quaternion", "Quaternion<real>", "&mut Quaternion<real>", ""),
    offer("angular_momentum", "Vec3<real>", "&mut Vec3<real>", ""),
    offer("torque", "Vec3<real>", "", SPIN),
    offer("inertia", "Vec3<real>", "", ""),
    offer("kind", "u32", "", ""),
    offer("tag", "u32", "", ""),
];

/// Quantities of the box, and the members of `SimBox` that hold them.
const BOX: &[(Offer, &str)] = &[
    (offer("box_length", "&[f64; 3]", "&mut [f64; 3]", ""), "length"),
    (offer("virial", "&[f64; 3]", "", ""), "virial"),
    (offer("tilt", "&[f64; 3]", "&mut [f64; 3]", ""), "tilt"),
    (offer("shear_virial", "&[f64; 3]", "", ""), "shear_virial"),
    (offer("shear_offset", "f64", "&mut f64", ""), "offset"),
    (offer("shear_speed", "f64", "&mut f64", ""), "speed"),
];

/// Arguments that the loop passes on; rustc checks their types.
const PARTICLE_OTHERS: &[&str] = &["x: &mut Arrays<real>", "g: &State", "step: &Step<real>", "random: &mut Random"];
const SCALAR_OTHERS: &[&str] = &["g: &mut State", "sums: &[f64; 8]", "step: &Step<f64>", "random: &mut Random"];

/// How an argument is used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// A copy of a number or vector, or a shared reference to an array.
    Read,
    /// Changes are stored.
    Change,
    /// Passed on by the loop.
    Other,
}

/// An argument of a function.
struct Argument {
    name: String,
    usage: Use,
}

impl Argument {
    fn is(&self, names: &[&str]) -> bool {
        names.contains(&self.name.as_str())
    }
}

/// `#[particle_fn(Integrator)]` and `#[scalar_fn(Integrator)]`.
pub fn integrator_fn(integrator: &Path, f: &ItemFn, scalar: bool) -> Result<TokenStream> {
    let args = declared(f, scalar)?;
    let function = device_fn(f, if scalar { Number::F64 } else { Number::Generic })?;
    let implementation = if scalar { scalar_fn(integrator, f, &args)? } else { particle_fn(integrator, f, &args)? };
    Ok(quote! {
        #function
        #implementation
    })
}

/// Returns the arguments of a function; each must be one that the loop offers, with the type that it offers.
fn declared(f: &ItemFn, scalar: bool) -> Result<Vec<Argument>> {
    let offers: Vec<&Offer> = if scalar { BOX.iter().map(|(o, _)| o).collect() } else { PARTICLE.iter().collect() };
    let others = if scalar { SCALAR_OTHERS } else { PARTICLE_OTHERS };
    let mut args = vec![];
    for (name, ty) in arguments(f)? {
        let usage = if let Some(offer) = offers.iter().find(|o| o.name == name) {
            usage(offer, ty)?
        } else if others.iter().any(|o| o.split(':').next() == Some(&name)) {
            Use::Other
        } else {
            let written = |o: &&Offer| format!("{}: {}", o.name, if o.changed.is_empty() { o.read } else { o.changed });
            let known: Vec<_> = offers.iter().map(written).chain(others.iter().map(ToString::to_string)).collect();
            let message = format!("unknown argument `{name}`; available are {}", known.join(", "));
            return Err(syn::Error::new_spanned(ty, message));
        };
        args.push(Argument { name, usage });
    }
    for arg in &f.sig.inputs {
        if let FnArg::Typed(t) = arg
            && let Pat::Ident(i) = &*t.pat
            && let Some(word) = &i.mutability
        {
            let message = format!("changes of `{}` would be lost: use a variable, `let mut`", i.ident);
            return Err(syn::Error::new_spanned(word, message));
        }
    }
    Ok(args)
}

/// Returns whether an argument of this type is read or changed.
fn usage(offer: &Offer, ty: &Type) -> Result<Use> {
    let written = |ty: &str| ty.replace(' ', "");
    let ty_text = written(&quote!(#ty).to_string());
    if ty_text == written(offer.read) {
        return Ok(Use::Read);
    }
    if ty_text == written(offer.changed) {
        return Ok(Use::Change);
    }
    let name = offer.name;
    let message = match (offer.read, offer.changed) {
        (read, "") => format!("`{name}` is read-only and has the type `{read}`{}", offer.instead),
        ("", changed) => format!("`{name}` has the type `{changed}`"),
        (read, changed) => format!("`{name}` has the type `{changed}`, or `{read}` to read it only"),
    };
    Err(syn::Error::new_spanned(ty, message))
}

/// The number of values that a function returns.
fn returned_values(f: &ItemFn) -> usize {
    match &f.sig.output {
        ReturnType::Default => 0,
        ReturnType::Type(_, t) => match &**t {
            Type::Tuple(t) => t.elems.len(),
            _ => 1,
        },
    }
}

/// `impl ScalarFn`.
fn scalar_fn(integrator: &Path, f: &ItemFn, args: &[Argument]) -> Result<TokenStream> {
    let name = &f.sig.ident;
    let api = quote!(::galamost_plugin_api::integrator);
    let of = quote!(<#integrator as #api::Integrator>);
    let sim_box = args.iter().any(|a| a.usage != Use::Other);
    let shear = args.iter().any(|a| a.is(&["shear_offset", "shear_speed"]));
    if shear && args.iter().any(|a| a.is(&["virial"]) || (a.is(&["box_length"]) && a.usage == Use::Change)) {
        let message =
            "a function that shears the box neither reads the virial nor changes box lengths: write two functions";
        return Err(syn::Error::new_spanned(&f.sig.inputs, message));
    }
    let tilts = args.iter().any(|a| a.is(&["tilt"]) && a.usage == Use::Change);
    let keeps_state = !f.sig.inputs.iter().any(|a| {
        matches!(a, FnArg::Typed(t) if matches!(&*t.pat, Pat::Ident(i) if i.ident == "g")
            && matches!(&*t.ty, Type::Reference(r) if r.mutability.is_some()))
    });
    let member = |a: &Argument| BOX.iter().find(|(o, _)| o.name == a.name).map(|(_, member)| *member);
    let native = args.iter().map(|a| {
        let ident = format_ident!("{}", member(a).unwrap_or(&a.name));
        match a.usage {
            Use::Other => quote!(#ident),
            Use::Change => quote!(&mut sim_box.#ident),
            Use::Read if a.is(&["shear_offset", "shear_speed"]) => quote!(sim_box.#ident),
            Use::Read => quote!(&sim_box.#ident),
        }
    });
    let cxx: Vec<_> =
        args.iter().map(|a| member(a).map_or_else(|| a.name.clone(), |m| format!("sim_box.{m}"))).collect();
    let (cxx, last) = (cxx.join(", "), if sim_box { ", SimBox& sim_box" } else { "" });
    let text = format!(
        "__device__ __forceinline__ void {name}_call(State& g, const double* sums, const Step<double>& step, Random& random{last}) {{ {name}<double>({cxx}); }}\n"
    );
    Ok(quote! {
        impl #api::ScalarFn<#integrator> for #name {
            const NAME: &'static str = ::std::stringify!(#name);
            const SIM_BOX: bool = #sim_box;
            const SHEAR: bool = #shear;
            const TILTS: bool = #tilts;
            const KEEPS_STATE: bool = #keeps_state;
            #[allow(unused_variables)]
            fn apply(
                g: &mut #of::State,
                sums: &[f64; #api::MAX_SUMS],
                step: &::galamost_plugin_api::views::Step<f64>,
                random: &mut ::galamost_plugin_api::philox::Random,
                sim_box: &mut ::galamost_plugin_api::views::SimBox,
            ) {
                #name(#(#native),*)
            }
            fn call_text() -> &'static str { #text }
        }
    })
}

/// `impl ParticleFn`.
fn particle_fn(integrator: &Path, f: &ItemFn, args: &[Argument]) -> Result<TokenStream> {
    let (name, sums) = (&f.sig.ident, returned_values(f));
    let api = quote!(::galamost_plugin_api::integrator);
    let of = quote!(<#integrator as #api::Integrator>);
    if sums == 0 && !args.iter().any(|a| a.usage == Use::Change || a.is(&["x"])) {
        let message = "this function has no effect: it changes no argument (such as `velocity: &mut Vec3<real>`) and returns no sums";
        return Err(syn::Error::new(name.span(), message));
    }
    let has = |names: &[&str]| args.iter().any(|a| a.is(names));
    let (moves, position) = (has(&["displacement"]), has(&["position"]));
    let turns = has(&["quaternion", "angular_momentum", "torque", "inertia"]);
    let native: Vec<_> = args.iter().map(native_argument).collect();
    let (text, native_call) = (particle_text(name, args, sums), particle_call(name, &native, sums));
    Ok(quote! {
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

/// The Rust expression of an argument of a particle function.
fn native_argument(a: &Argument) -> TokenStream {
    let ident = format_ident!("{}", a.name);
    match a.usage {
        Use::Other => quote!(#ident),
        Use::Read => quote!(p.#ident),
        Use::Change => quote!(&mut p.#ident),
    }
}

/// The C++ function that calls a particle function and stores its sums.
fn particle_text(name: &Ident, args: &[Argument], sums: usize) -> String {
    let cxx: Vec<_> =
        args.iter().map(|a| if a.usage == Use::Other { a.name.clone() } else { format!("p.{}", a.name) }).collect();
    let cxx = cxx.join(", ");
    // the function returns one number, a tuple, or nothing
    let (value, store) = match sums {
        0 => (String::new(), String::new()),
        1 => ("const auto value = ".into(), "sums[0] = double(value);".into()),
        n => (
            "const auto value = ".into(),
            (0..n).map(|k| format!("sums[{k}] = double(value.v{k}); ")).collect::<String>(),
        ),
    };
    format!(
        "template <class real>\n__device__ __forceinline__ void {name}_call(Particle<real>& p, Extra<real>& x, const State& g, const Step<real>& step, Random& random, double* sums) {{ {value}{name}<real>({cxx}); {store} }}\n"
    )
}

/// The Rust expression that calls a particle function and returns its sums.
fn particle_call(name: &Ident, args: &[TokenStream], sums: usize) -> TokenStream {
    let api = quote!(::galamost_plugin_api::integrator);
    let members = (0..sums).map(syn::Index::from);
    match sums {
        0 => quote!({ #name::<R>(#(#args),*); [0.0; #api::MAX_SUMS] }),
        1 => {
            quote!({ let mut s = [0.0; #api::MAX_SUMS]; s[0] = #name::<R>(#(#args),*).f64(); s })
        }
        _ => quote!({
            let mut s = [0.0; #api::MAX_SUMS];
            let value = #name::<R>(#(#args),*);
            #(s[#members] = value.#members.f64();)*
            s
        }),
    }
}
