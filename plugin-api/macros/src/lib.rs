//! Macros of the GALAMOST plugin API; see the crate `galamost-plugin-api`, which re-exports and explains them.

mod component;
mod expression;
mod functions;
mod language;
mod layout;
mod native;
mod order;
mod params;
mod settle;
mod structs;
mod types;
mod words;

use native::Number;
use proc_macro::TokenStream;
use syn::{DeriveInput, ItemFn, parse_macro_input};

fn finish(result: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    result.unwrap_or_else(syn::Error::into_compile_error).into()
}

/// A function of the device language: compiled by rustc for `f32` and `f64`, and turned into CUDA C++.
///
/// `#[device_fn(f64)]`: its numbers are f64, as in a `#[scalar_fn]`, which may call it.
#[proc_macro_attribute]
pub fn device_fn(args: TokenStream, item: TokenStream) -> TokenStream {
    let f = parse_macro_input!(item as ItemFn);
    let number = match args.to_string().as_str() {
        "" => Number::Generic,
        "f64" => Number::F64,
        _ => return finish(Err(syn::Error::new(f.sig.ident.span(), "#[device_fn] or #[device_fn(f64)]"))),
    };
    finish(functions::device_fn(&f, number))
}

/// A pair potential: `#[pair_potential("Name")] fn name(r2: real, p: &Name<real>) -> (real, real)` returns (F/r, U).
///
/// The CPU loop computes both branches of an `if` for all neighbors. A condition `p.member == 1.0` (any number) is an exception: where it holds for all
/// rows, the loop without the other branch is taken.
#[proc_macro_attribute]
pub fn pair_potential(args: TokenStream, item: TokenStream) -> TokenStream {
    let args = parse_macro_input!(args as functions::Arguments);
    let f = parse_macro_input!(item as ItemFn);
    finish(functions::pair_potential(&args, &f))
}

/// A pair potential of oriented particles: `#[oriented_pair_potential("Name")] fn name(r: Vec3<real>, axis_i: Vec3<real>,
/// axis_j: Vec3<real>, p: &Name<real>) -> (Vec3<real>, Vec3<real>, real)` returns the force on i, the torque on i in the
/// frame of space, and U. Offered are `r` = r_i − r_j, `r2`, `r_cut`, the axes, `quaternion_i`, `quaternion_j`, charges
/// and diameters. With an energy of axes and r alone the torque is n_i × (−∂U/∂n_i).
#[proc_macro_attribute]
pub fn oriented_pair_potential(args: TokenStream, item: TokenStream) -> TokenStream {
    let args = parse_macro_input!(args as functions::Arguments);
    let f = parse_macro_input!(item as ItemFn);
    finish(functions::oriented_pair_potential(&args, &f))
}

/// A bond potential: `#[bond_potential("Name")] fn name(r2: real, p: &Name<real>) -> (real, real)` returns (F/r, U).
#[proc_macro_attribute]
pub fn bond_potential(args: TokenStream, item: TokenStream) -> TokenStream {
    let args = parse_macro_input!(args as functions::Arguments);
    let f = parse_macro_input!(item as ItemFn);
    finish(functions::bonded_potential(&args, &f, 2))
}

/// An angle potential: `#[angle_potential("Name")] fn name(cos_theta: real, p: &Name<real>) -> (real, real)` returns
/// (dU/dcos θ, U). θ is the angle at the middle particle, 180° where the three lie in a line; offered are `theta`,
/// `cos_theta` and `sin_theta`.
#[proc_macro_attribute]
pub fn angle_potential(args: TokenStream, item: TokenStream) -> TokenStream {
    let args = parse_macro_input!(args as functions::Arguments);
    let f = parse_macro_input!(item as ItemFn);
    finish(functions::bonded_potential(&args, &f, 3))
}

/// A dihedral potential: `#[dihedral_potential("Name")] fn name(phi: real, p: &Name<real>) -> (real, real)` returns
/// (dU/dφ, U). φ is 0 for cis and ±180° for trans; offered are `phi`, `cos_phi` and `sin_phi`.
#[proc_macro_attribute]
pub fn dihedral_potential(args: TokenStream, item: TokenStream) -> TokenStream {
    let args = parse_macro_input!(args as functions::Arguments);
    let f = parse_macro_input!(item as ItemFn);
    finish(functions::bonded_potential(&args, &f, 4))
}

/// A force on single particles: `#[external_potential("Name")] fn name(position: Vec3<real>, p: &Name<real>) ->
/// (Vec3<real>, real)` returns the force and U; U = +∞ (divide by 0) says that a particle must not be there, and ends the
/// run. Offered are `position`, `unwrapped` (which does not jump where a particle crosses the box), `length` of the box,
/// `velocity`, `mass`, `charge`, `kind` and `tag`. `input = Type` names what the user writes (`ExternalParams`); without
/// it that is the row, and a group.
#[proc_macro_attribute]
pub fn external_potential(args: TokenStream, item: TokenStream) -> TokenStream {
    let args = parse_macro_input!(args as functions::Arguments);
    let f = parse_macro_input!(item as ItemFn);
    finish(functions::external_potential(&args, &f))
}

/// A function an integrator applies to each particle: `#[particle_fn(Integrator)]`.
///
/// It gets what it names: `p: &mut Particle<real>`, `x: &mut Arrays<real>` (the integrator's own numbers of the particle),
/// `g: &State`, `step: &Step<real>`, `random: &mut Random`. What it returns, one number or a tuple, is summed over the
/// group in f64 for the scalar functions behind it.
#[proc_macro_attribute]
pub fn particle_fn(args: TokenStream, item: TokenStream) -> TokenStream {
    let integrator = parse_macro_input!(args as syn::Path);
    let f = parse_macro_input!(item as ItemFn);
    finish(functions::integrator_fn(&integrator, &f, false))
}

/// A function an integrator applies once to its own state: `#[scalar_fn(Integrator)]`; numbers are f64.
///
/// It gets what it names: `g: &mut State`, `sums: &[f64; 8]` (those of the last particle function that returned any),
/// `step: &Step<f64>`, `random: &mut Random`, and for barostats `sim_box: &mut SimBox`, whose lengths it may change; an
/// integrator with such a function moves all particles and gets virials in every step.
#[proc_macro_attribute]
pub fn scalar_fn(args: TokenStream, item: TokenStream) -> TokenStream {
    let integrator = parse_macro_input!(args as syn::Path);
    let f = parse_macro_input!(item as ItemFn);
    finish(functions::integrator_fn(&integrator, &f, true))
}

/// A component whose parameters are this struct: `#[component(Analyzer, "Thermo")]`; its doc comment is its page.
#[proc_macro_attribute]
pub fn component(args: TokenStream, item: TokenStream) -> TokenStream {
    let args = parse_macro_input!(args as component::Arguments);
    let item = parse_macro_input!(item as syn::ItemStruct);
    finish(component::component(&args, &item))
}

/// A `#[repr(C)]` struct with the same layout in CUDA C++.
#[proc_macro_derive(DeviceStruct, attributes(device))]
pub fn device_struct(item: TokenStream) -> TokenStream {
    let input = parse_macro_input!(item as DeriveInput);
    finish(structs::device_struct(&input))
}

/// Where the members of a `#[repr(C)]` struct lie, for the comparison when a library is loaded.
#[proc_macro_derive(Layout)]
pub fn layout_derive(item: TokenStream) -> TokenStream {
    let input = parse_macro_input!(item as DeriveInput);
    finish(layout::layout(&input))
}

/// Parameters of a component, read from RON by name.
#[proc_macro_derive(Params, attributes(param))]
pub fn params_derive(item: TokenStream) -> TokenStream {
    let input = parse_macro_input!(item as DeriveInput);
    finish(params::params(&input))
}

/// One row of a potential's parameters: a struct over `real` whose fields are all numbers.
#[proc_macro_derive(PairParams, attributes(param))]
pub fn pair_params_derive(item: TokenStream) -> TokenStream {
    let input = parse_macro_input!(item as DeriveInput);
    finish(params::pair_params(&input))
}
