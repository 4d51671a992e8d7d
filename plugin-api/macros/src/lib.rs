//! Macros of the GALAMOST plugin API. The crate `galamost-plugin-api` re-exports and explains them.
//!
//! `language/` translates a Rust function into CUDA C++; `functions/` wraps such functions as potentials and integrator
//! functions; the other files are derives and `#[component]`.

mod component;
mod functions;
mod language;
mod layout;
mod params;
mod shown;
mod structs;

use language::native::Number;
use proc_macro::TokenStream;
use syn::{DeriveInput, ItemFn, parse_macro_input};

fn finish(result: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    result.unwrap_or_else(syn::Error::into_compile_error).into()
}

/// A function of the device language: rustc compiles it for `f32` and `f64`, and the macro translates it into CUDA C++.
///
/// With `#[device_fn(f64)]` all numbers are `f64`; a `#[scalar_fn]` may call such a function.
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
/// The CPU loop evaluates both branches of an `if` for all neighbors. Exception: for a condition `p.member == 1.0` (any
/// number) a second instance of the loop, without the other branch, is used when the condition holds for all rows.
#[proc_macro_attribute]
pub fn pair_potential(args: TokenStream, item: TokenStream) -> TokenStream {
    let args = parse_macro_input!(args as functions::Arguments);
    let f = parse_macro_input!(item as ItemFn);
    finish(functions::pair::pair_potential(&args, &f))
}

/// A pair potential of oriented particles: `#[oriented_pair_potential("Name")] fn name(r: Vec3<real>, axis_i: Vec3<real>,
/// axis_j: Vec3<real>, p: &Name<real>) -> (Vec3<real>, Vec3<real>, real)` returns the force on i, the torque on i in the
/// space frame, and U. Available arguments: `r` = r_i − r_j, `r2`, `r_cut`, the axes, `quaternion_i`, `quaternion_j`,
/// charges and diameters. If U depends on the axes and r alone, the torque is n_i × (−∂U/∂n_i).
#[proc_macro_attribute]
pub fn oriented_pair_potential(args: TokenStream, item: TokenStream) -> TokenStream {
    let args = parse_macro_input!(args as functions::Arguments);
    let f = parse_macro_input!(item as ItemFn);
    finish(functions::pair::oriented_pair_potential(&args, &f))
}

/// A bond potential: `#[bond_potential("Name")] fn name(r2: real, p: &Name<real>) -> (real, real)` returns (F/r, U).
#[proc_macro_attribute]
pub fn bond_potential(args: TokenStream, item: TokenStream) -> TokenStream {
    let args = parse_macro_input!(args as functions::Arguments);
    let f = parse_macro_input!(item as ItemFn);
    finish(functions::bonded::bonded_potential(&args, &f, "Bonds"))
}

/// An angle potential: `#[angle_potential("Name")] fn name(cos_theta: real, p: &Name<real>) -> (real, real)` returns
/// (dU/dcos θ, U). θ is the angle at the middle particle, 180° for three particles in a line. Available arguments:
/// `theta`, `cos_theta` and `sin_theta`.
#[proc_macro_attribute]
pub fn angle_potential(args: TokenStream, item: TokenStream) -> TokenStream {
    let args = parse_macro_input!(args as functions::Arguments);
    let f = parse_macro_input!(item as ItemFn);
    finish(functions::bonded::bonded_potential(&args, &f, "Angles"))
}

/// A dihedral potential: `#[dihedral_potential("Name")] fn name(phi: real, p: &Name<real>) -> (real, real)` returns
/// (dU/dφ, U). φ is 0 for cis and ±180° for trans. Available arguments: `phi`, `cos_phi` and `sin_phi`.
#[proc_macro_attribute]
pub fn dihedral_potential(args: TokenStream, item: TokenStream) -> TokenStream {
    let args = parse_macro_input!(args as functions::Arguments);
    let f = parse_macro_input!(item as ItemFn);
    finish(functions::bonded::bonded_potential(&args, &f, "Dihedrals"))
}

/// An improper potential: `#[improper_potential("Name")] fn name(phi: real, p: &Name<real>) -> (real, real)` returns
/// (dU/dφ, U). φ is the angle of a dihedral of the four particles, in their order. Available arguments: `phi`, `cos_phi` and
/// `sin_phi`.
#[proc_macro_attribute]
pub fn improper_potential(args: TokenStream, item: TokenStream) -> TokenStream {
    let args = parse_macro_input!(args as functions::Arguments);
    let f = parse_macro_input!(item as ItemFn);
    finish(functions::bonded::bonded_potential(&args, &f, "Impropers"))
}

/// A force on single particles: `#[external_potential("Name")] fn name(position: Vec3<real>, p: &Name<real>) ->
/// (Vec3<real>, real)` returns the force and U. U = +∞ (divide by 0) marks a forbidden position and ends the run.
/// Available arguments: `position`, `unwrapped` (continuous across the periodic boundary), `length` of the box,
/// `velocity`, `mass`, `charge`, `kind` (the particle type) and `tag`. `input = Type` names the struct that the user writes
/// (`ExternalParams`); by default the user writes the row and a group.
#[proc_macro_attribute]
pub fn external_potential(args: TokenStream, item: TokenStream) -> TokenStream {
    let args = parse_macro_input!(args as functions::Arguments);
    let f = parse_macro_input!(item as ItemFn);
    finish(functions::bonded::external_potential(&args, &f))
}

/// A function that an integrator applies to each particle: `#[particle_fn(Integrator)]`.
///
/// The arguments declare what the function reads and changes; it takes any of them, in any order:
///
/// | argument | meaning |
/// |---|---|
/// | `velocity: &mut Vec3<real>` | velocity; as `Vec3<real>` read-only |
/// | `force: Vec3<real>`, `mass: real`, `kind: u32`, `tag: u32` | force, mass, type and tag |
/// | `position: Vec3<real>` | position, −L/2 ≤ x < L/2 |
/// | `displacement: &mut Vec3<real>` | initially 0; the engine adds it to the position |
/// | `quaternion: &mut Quaternion<real>`, `angular_momentum: &mut Vec3<real>` | orientation and angular momentum in the lab frame; without `&mut` read-only |
/// | `torque: Vec3<real>`, `inertia: Vec3<real>` | torque in the lab frame, moments of inertia about the body axes |
/// | `x: &mut Arrays<real>` | the integrator's numbers of the particle |
/// | `g: &State`, `step: &Step<real>`, `random: &mut Random` | the integrator's state, the step, random numbers |
///
/// The returned number or tuple is summed over the group in f64 for the scalar functions that follow.
#[proc_macro_attribute]
pub fn particle_fn(args: TokenStream, item: TokenStream) -> TokenStream {
    let integrator = parse_macro_input!(args as syn::Path);
    let f = parse_macro_input!(item as ItemFn);
    finish(functions::integrator::integrator_fn(&integrator, &f, false))
}

/// A function that an integrator applies once to its global state, in f64: `#[scalar_fn(Integrator)]`.
///
/// Available arguments: `g: &mut State`, `sums: &[f64; 8]` (from the last particle function that returned sums),
/// `step: &Step<f64>`, `random: &mut Random`.
///
/// An integrator with one of the following arguments acts on all particles. Barostats take `box_length: &mut [f64; 3]`
/// (positions are rescaled when it changes; `&[f64; 3]` to read it) and `virial: &[f64; 3]` (Σ r_k F_k for each axis),
/// and have virials in every step. Barostats that change the shape of the box take `tilt: &mut [f64; 3]` (xy, xz, yz) and
/// `shear_virial: &[f64; 3]` (Σ r_x F_y, Σ r_x F_z, Σ r_y F_z) as well; runs with them have a triclinic box. Lees-Edwards boundaries take `shear_offset: &mut f64` and `shear_speed: &mut f64`.
#[proc_macro_attribute]
pub fn scalar_fn(args: TokenStream, item: TokenStream) -> TokenStream {
    let integrator = parse_macro_input!(args as syn::Path);
    let f = parse_macro_input!(item as ItemFn);
    finish(functions::integrator::integrator_fn(&integrator, &f, true))
}

/// Registers a component whose parameters are this struct: `#[component(Analyzer, "Thermo")]`. Its doc comment is its page.
///
/// After a rename, pipelines and checkpoints with the old name keep working if the attribute lists it:
/// `#[component(Analyzer, "Thermo", former = "Thermodynamics")]`. Repeat `former = "…"` for several old names.
#[proc_macro_attribute]
pub fn component(args: TokenStream, item: TokenStream) -> TokenStream {
    let args = parse_macro_input!(args as component::Arguments);
    let item = parse_macro_input!(item as syn::ItemStruct);
    finish(component::component(&args, &item))
}

/// A `#[repr(C)]` struct with the same layout in CUDA C++.
///
/// The C++ definition comes from the Rust one, and asserts the size and all offsets where it is compiled. A member is a
/// number, `Vec3<real>`, another such struct, an array of these, or a `DevicePtr`. `#[device(cxx = "real*")]` gives the
/// C++ type of a member whose type depends on the precision; for an array, the type of its elements.
#[proc_macro_derive(DeviceStruct, attributes(device))]
pub fn device_struct(item: TokenStream) -> TokenStream {
    let input = parse_macro_input!(item as DeriveInput);
    finish(structs::device_struct(&input))
}

/// The C++ definition of a `#[repr(C)]` struct without padding that is not plain data, because several threads write some
/// of its words.
#[proc_macro_derive(CxxStruct, attributes(device))]
pub fn cxx_struct(item: TokenStream) -> TokenStream {
    let input = parse_macro_input!(item as DeriveInput);
    finish(structs::shared_struct(&input))
}

/// Describes the members of a `#[repr(C)]` struct; the engine compares them when it loads a library.
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
