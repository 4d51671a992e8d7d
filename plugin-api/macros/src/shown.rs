//! Text of a default value as a user writes it in a pipeline: `[]` for `vec![]`, `"type"` for `"type".to_string()`.

use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{Expr, Lit, Path, Token};

/// Returns the RON text of a default value; an error for an expression that has none.
pub fn ron(e: &Expr) -> syn::Result<String> {
    match e {
        Expr::Lit(l) => Ok(literal(&l.lit)),
        Expr::Unary(u) => Ok(format!("{}{}", u.op.to_token_stream(), ron(&u.expr)?)),
        Expr::Paren(p) => ron(&p.expr),
        Expr::Path(p) => Ok(last(&p.path)),
        Expr::Array(a) => list(&a.elems),
        Expr::Repeat(r) => repeat(r),
        Expr::Macro(m) if m.mac.path.is_ident("vec") => {
            list(&m.mac.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated)?)
        }
        Expr::MethodCall(m) if m.args.is_empty() && ["into", "to_string"].iter().any(|n| m.method == n) => {
            ron(&m.receiver)
        }
        // a value with its position in the file
        Expr::Struct(s) => match s.fields.iter().find(|f| f.member.to_token_stream().to_string() == "value") {
            Some(f) => ron(&f.expr),
            None => Err(unclear(e)),
        },
        _ => Err(unclear(e)),
    }
}

fn literal(l: &Lit) -> String {
    match l {
        // Rust and RON write texts alike
        Lit::Str(s) => s.token().to_string(),
        l => l.to_token_stream().to_string().replace('_', ""),
    }
}

/// `Group::All` is `All` in RON.
fn last(path: &Path) -> String {
    path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default()
}

fn list(items: &Punctuated<Expr, Token![,]>) -> syn::Result<String> {
    let texts = items.iter().map(ron).collect::<syn::Result<Vec<_>>>()?;
    Ok(format!("[{}]", texts.join(", ")))
}

fn repeat(r: &syn::ExprRepeat) -> syn::Result<String> {
    let Expr::Lit(syn::ExprLit { lit: Lit::Int(n), .. }) = &*r.len else { return Err(unclear(&r.len)) };
    Ok(format!("[{}]", vec![ron(&r.expr)?; n.base10_parse()?].join(", ")))
}

fn unclear(e: &Expr) -> syn::Error {
    syn::Error::new_spanned(
        e,
        "a default is a literal, a list, or the variant of an enum, so that the component's page can show it as users \
         write it",
    )
}

#[cfg(test)]
mod tests {
    use super::ron;

    #[test]
    fn defaults_are_shown_as_users_write_them() {
        for (rust, shown) in [
            ("vec![]", "[]"),
            ("\"type\".to_string()", "\"type\""),
            ("\"Center\".into()", "\"Center\""),
            ("[0.0; 3]", "[0.0, 0.0, 0.0]"),
            ("[true, true]", "[true, true]"),
            ("-1", "-1"),
            ("10_000", "10000"),
            ("Group::All", "All"),
            ("Spanned { value: [1; 2], at: Position::default() }", "[1, 1]"),
        ] {
            let e = syn::parse_str(rust).expect("an expression");
            assert_eq!(ron(&e).expect("a text"), shown);
        }
        for rust in ["f(1)", "x.len()", "S { a: 1 }", "1 + 2"] {
            let e = syn::parse_str(rust).expect("an expression");
            assert!(ron(&e).is_err_and(|e| e.to_string().contains("as users write it")), "{rust}");
        }
    }
}
