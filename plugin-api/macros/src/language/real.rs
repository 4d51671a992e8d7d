//! Numbers that should be a `real`: `2 * p.a` and `2.0f32 * p.a` are refused with the number to write.
//!
//! rustc refuses them too, but its message speaks of traits. Only what is certainly a `real` is judged here.

use super::literals::{is_pure, is_shift};
use super::translator::Translator;
use super::types::{Result, refuse};
use super::without_parentheses;
use quote::ToTokens as _;
use syn::{BinOp, Expr, Lit, Member, Type};

/// Returns whether a value of this type is a `real`, or has only members that are.
pub fn is_real_type(ty: &Type) -> bool {
    let text = ty.to_token_stream().to_string().replace(' ', "");
    let text = text.trim_start_matches("&mut").trim_start_matches('&');
    ["real", "Vec3<real>", "Quaternion<real>"].contains(&text)
}

/// Refuses an integer where a floating-point number is needed.
pub fn check_number(e: &Expr) -> Result<()> {
    if let Expr::Lit(l) = without_parentheses(e)
        && let Lit::Int(i) = &l.lit
        && !i.suffix().starts_with('f')
    {
        let digits = i.base10_digits();
        return refuse(e, format!("an integer cannot be combined with a `real`: write `{digits}.0`"));
    }
    if is_pure(e) {
        return refuse(e, "integers cannot be combined with a `real`: write `2.0` instead of `2`");
    }
    Ok(())
}

/// Refuses a literal that has another floating-point type than `real`.
fn check_suffix(e: &Expr) -> Result<()> {
    if let Expr::Lit(l) = without_parentheses(e)
        && let Some((digits, suffix)) = match &l.lit {
            Lit::Float(f) => Some((f.base10_digits(), f.suffix())),
            Lit::Int(i) => Some((i.base10_digits(), i.suffix())),
            _ => None,
        }
        && ["f32", "f64"].contains(&suffix)
    {
        let point = if digits.contains(['.', 'e', 'E']) { "" } else { ".0" };
        return refuse(e, format!("an {suffix} cannot be combined with a `real`: write `{digits}{point}`"));
    }
    Ok(())
}

impl Translator {
    /// Refuses literals of another type beside a `real`.
    pub(super) fn check_operands(&self, left: &Expr, op: &BinOp, right: &Expr) -> Result<()> {
        if is_shift(op) || matches!(op, BinOp::ShlAssign(_) | BinOp::ShrAssign(_)) {
            return Ok(());
        }
        for (literal, other) in [(left, right), (right, left)] {
            if self.is_real(other) {
                check_suffix(literal)?;
            }
            if self.is_real(other) || self.is_float(other) {
                check_number(literal)?;
            }
        }
        Ok(())
    }

    /// Returns whether this is certainly a `real`.
    pub(super) fn is_real(&self, e: &Expr) -> bool {
        match e {
            Expr::Path(p) => p.path.get_ident().and_then(|i| self.lookup(&i.to_string())).is_some_and(|v| v.real),
            Expr::Paren(p) => self.is_real(&p.expr),
            Expr::Group(g) => self.is_real(&g.expr),
            Expr::Unary(u) => self.is_real(&u.expr),
            Expr::Reference(r) => self.is_real(&r.expr),
            Expr::Field(f) => matches!(&f.member, Member::Named(_)) && self.is_real(&f.base),
            Expr::Cast(c) => is_real_type(&c.ty),
            Expr::Binary(b) => {
                matches!(b.op, BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_))
                    && (self.is_real(&b.left) || self.is_real(&b.right))
            }
            Expr::MethodCall(m) => self.is_real(&m.receiver),
            _ => false,
        }
    }
}
