//! `#[pair_potential]` and `#[oriented_pair_potential]`.

use super::potential::{Interface, Potential, Returned, implement, potential, row_type};
use super::{Arguments, arguments};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ExprIf, Ident, ItemFn, Lit, LitFloat, Member, Path, Result};

/// Collects the conditions `p.member == 1.0` on members of the row.
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

/// The specialization of the CPU loop: the values for which these conditions hold.
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
        // SAFETY: the function below compares members of the row, which are numbers, with literals
        const SPECIALIZATION: ::std::option::Option<::galamost_plugin_api::pair::SpecializationIsPure> =
            ::std::option::Option::Some(unsafe { ::galamost_plugin_api::pair::SpecializationIsPure::promise() });
        #[inline(always)]
        fn specialized<R: ::galamost_plugin_api::Real>(row: &#row<R>) -> bool {
            #(#asked)&&*
        }
    })
}

/// The flags of the inputs in use, with that of `step`.
fn with_step(p: &Potential) -> Vec<Ident> {
    p.inputs.iter().cloned().chain(p.step.then(|| format_ident!("STEP"))).collect()
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
    let inputs = with_step(&p);
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
