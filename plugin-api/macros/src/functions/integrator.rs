//! `#[particle_fn(Integrator)]` and `#[scalar_fn(Integrator)]`.

use super::{arguments, device_fn};
use crate::language::native::Number;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::visit::Visit;
use syn::{ItemFn, Member, Path, Result, ReturnType, Type};

/// `#[particle_fn(Integrator)]` and `#[scalar_fn(Integrator)]`.
pub fn integrator_fn(integrator: &Path, f: &ItemFn, scalar: bool) -> Result<TokenStream> {
    let offered: &[&str] =
        if scalar { &["g", "sums", "step", "random", "sim_box"] } else { &["p", "x", "g", "step", "random"] };
    let mut args = vec![];
    for (name, ty) in arguments(f)? {
        if !offered.contains(&name.as_str()) {
            let message = format!("unknown argument `{name}`; available are {}", offered.join(", "));
            return Err(syn::Error::new_spanned(ty, message));
        }
        args.push(name);
    }
    let function = device_fn(f, if scalar { Number::F64 } else { Number::Generic })?;
    let implementation = if scalar { scalar_fn(integrator, f, &args) } else { particle_fn(integrator, f, &args) };
    Ok(quote! {
        #function
        #implementation
    })
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
fn scalar_fn(integrator: &Path, f: &ItemFn, args: &[String]) -> TokenStream {
    let name = &f.sig.ident;
    let idents: Vec<_> = args.iter().map(|a| format_ident!("{a}")).collect();
    let cxx = args.join(", ");
    let api = quote!(::galamost_plugin_api::integrator);
    let of = quote!(<#integrator as #api::Integrator>);
    let sim_box = args.iter().any(|a| a == "sim_box");
    let shear = sim_box && mentions(f, "offset");
    let last = if sim_box { ", SimBox& sim_box" } else { "" };
    let text = format!(
        "__device__ __forceinline__ void {name}_call(State& g, const double* sums, const Step<double>& step, Random& random{last}) {{ {name}<double>({cxx}); }}\n"
    );
    quote! {
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
    }
}

/// `impl ParticleFn`.
fn particle_fn(integrator: &Path, f: &ItemFn, args: &[String]) -> TokenStream {
    let (name, sums) = (&f.sig.ident, returned_values(f));
    let api = quote!(::galamost_plugin_api::integrator);
    let of = quote!(<#integrator as #api::Integrator>);
    let (moves, position) = (mentions(f, "displacement"), mentions(f, "position"));
    let turns = ["quaternion", "angular_momentum", "torque", "inertia"].iter().any(|member| mentions(f, member));
    let (text, native_call) = (particle_text(name, args, sums), particle_call(name, args, sums));
    quote! {
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
    }
}

/// The C++ function that calls a particle function and stores its sums.
fn particle_text(name: &syn::Ident, args: &[String], sums: usize) -> String {
    let cxx = args.join(", ");
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
fn particle_call(name: &syn::Ident, args: &[String], sums: usize) -> TokenStream {
    let idents: Vec<_> = args.iter().map(|a| format_ident!("{a}")).collect();
    let api = quote!(::galamost_plugin_api::integrator);
    let members = (0..sums).map(syn::Index::from);
    match sums {
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
    }
}

/// Returns whether a member of this name is used anywhere in the body.
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
