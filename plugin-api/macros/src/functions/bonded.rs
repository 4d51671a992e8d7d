//! `#[bond_potential]`, `#[angle_potential]`, `#[dihedral_potential]`, `#[improper_potential]` and
//! `#[external_potential]`.

use super::Arguments;
use super::potential::{Interface, Returned, implement, potential};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{ItemFn, Result};

/// `#[bond_potential("Name")]`, `#[angle_potential("Name")]`, `#[dihedral_potential("Name")]`,
/// `#[improper_potential("Name")]`: a potential of the links of a `LinkList`.
pub fn bonded_potential(args: &Arguments, f: &ItemFn, list: &str) -> Result<TokenStream> {
    let offered: &[(&str, Option<&str>)] = match list {
        "Bonds" => &[("r2", None)],
        "Angles" => &[("theta", None), ("cos_theta", None), ("sin_theta", None)],
        _ => &[("phi", None), ("cos_phi", None), ("sin_phi", None)],
    };
    let p = potential(f, Returned::Slope, offered)?;
    let list = format_ident!("{list}");
    let interface = Interface {
        group: false,
        of: quote!(::galamost_plugin_api::bonded::BondFn),
        input: quote!(::galamost_plugin_api::bonded::BondInput),
        constants: quote!(const LIST: ::galamost_plugin_api::snapshot::LinkList = ::galamost_plugin_api::snapshot::LinkList::#list;),
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
