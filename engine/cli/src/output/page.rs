//! Self-contained HTML pages for screen (light and dark), print and phone.

use galamost_pictures::{Axis, Curve, Plot, Theme};

/// Style sheet of all pages.
const STYLE: &str = "\
:root{color-scheme:light dark;--ground:#ffffff;--ink:#1c2126;--soft:#5b6670;--line:#dfe4e8;--panel:#f6f8f9;--accent:#0b6aa8;--warn:#9a5b00;\
--warn-ground:#fff6e5;--bad:#a3261d;--bad-ground:#fdecea;--good:#1b7a4b;--s:#8a4b08;--n:#0b6aa8;--c:#7a3e9d;--k:#1b7a4b}\
@media screen and (prefers-color-scheme:dark){:root{--ground:#15191d;--ink:#e3e8ec;--soft:#9aa6b0;--line:#2f373e;--panel:#1c2227;--accent:#6cb8ee;--warn:#f0b458;\
--warn-ground:#2e2616;--bad:#ff8d83;--bad-ground:#331b19;--good:#5fcf97;--s:#e0a566;--n:#6cb8ee;--c:#c79be6;--k:#5fcf97}\
svg [stroke=\"#0072b2\"]{stroke:#4aa3df}}\
*{box-sizing:border-box}html{-webkit-text-size-adjust:100%}\
body{margin:0 auto;max-width:1180px;padding:1.6rem 1.4rem 4rem;background:var(--ground);color:var(--ink);\
font:15px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}\
h1{font-size:1.7rem;line-height:1.25;margin:.2rem 0 .2rem;overflow-wrap:anywhere}h2{font-size:1.2rem;margin:2.4rem 0 .8rem;padding-bottom:.25rem;\
border-bottom:1px solid var(--line)}h3{font-size:1rem;margin:1.2rem 0 .4rem;overflow-wrap:anywhere}p{margin:.4rem 0}a{color:var(--accent)}\
.soft{color:var(--soft)}.small{font-size:.86rem}header p{color:var(--soft);margin:.1rem 0}\
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(158px,1fr));gap:.7rem;margin:1.2rem 0}\
.facts div{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:.6rem .8rem}\
.facts dt,.facts span{display:block;color:var(--soft);font-size:.8rem}.facts b{font-size:1.15rem;font-weight:600;overflow-wrap:anywhere}\
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,440px),1fr));gap:1.2rem;align-items:start}\
figure{margin:0;break-inside:avoid}figcaption{color:var(--soft);font-size:.86rem;margin-top:.2rem;overflow-wrap:anywhere}\
svg{max-width:100%;height:auto;display:block}figure svg{width:100%}.narrow{display:none}img{max-width:100%;height:auto;display:block;border:1px solid var(--line);border-radius:6px}\
.scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem;width:100%}\
td,th{padding:.28rem .8rem .28rem 0;text-align:right;border-bottom:1px solid var(--line);vertical-align:top;white-space:nowrap}\
th{color:var(--soft);font-weight:500}td:first-child,th:first-child,.left td,.left th{text-align:left}.wrap{white-space:normal;overflow-wrap:anywhere}\
code,pre{font:13px/1.5 ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace}\
pre{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:.8rem 1rem;overflow-x:auto;white-space:pre;tab-size:4}\
pre i{font-style:normal;color:var(--soft)}pre .s{color:var(--s)}pre .n{color:var(--n)}pre .c{color:var(--c);font-weight:600}pre .k{color:var(--k)}\
.warn,.bad{border-left:4px solid var(--warn);background:var(--warn-ground);padding:.5rem .9rem;border-radius:4px;margin:.5rem 0;overflow-wrap:anywhere}\
.bad{border-color:var(--bad);background:var(--bad-ground)}.tag{font-weight:600}.tag.good{color:var(--good)}.tag.bad2{color:var(--bad)}.tag.mid{color:var(--warn)}\
.bar{display:flex;height:1.1rem;border-radius:4px;overflow:hidden;margin:.6rem 0 .4rem}.bar span{min-width:1px}\
.key{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.4em;vertical-align:-.05em}\
@media(max-width:640px){.wide{display:none}.narrow{display:block}body{padding:1rem .8rem 3rem}h1{font-size:1.35rem}}\
@page{margin:14mm}@media print{*{print-color-adjust:exact;-webkit-print-color-adjust:exact}.wide{display:block}.narrow{display:none}\
.facts div,.pair>*,tr{break-inside:avoid}.pair{grid-template-columns:1fr 1fr}.scroll{overflow:visible}td,th{white-space:normal;overflow-wrap:anywhere}:root{color-scheme:light;--ground:#fff;--ink:#000;--soft:#444;--line:#ccc;--panel:#fff;--accent:#0b6aa8;--warn-ground:#fff;--bad-ground:#fff;\
--s:#8a4b08;--n:#0b6aa8;--c:#7a3e9d;--k:#1b7a4b;--good:#1b7a4b;--warn:#9a5b00;--bad:#a3261d}body{max-width:none;padding:0;font-size:11pt}pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:8.5pt}\
h2{break-after:avoid}table{font-size:9pt}}";

/// Returns a page; title and body are HTML.
pub fn document(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width,initial-scale=1\"><title>{title}</title>\n<style>{STYLE}</style></head>\n<body>\n{body}</body></html>\n"
    )
}

/// Returns an SVG plot in the colors of the page.
pub fn chart(curves: Vec<Curve>, [x, y]: [&str; 2], range: Option<[f64; 2]>) -> String {
    Plot::simple(Axis::new(x), Axis { range, ..Axis::new(y) }, curves).drawing().svg(Theme::Page)
}

/// Encodes bytes as Base64, for embedding in a page.
pub fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for c in bytes.chunks(3) {
        let n = u32::from(c[0]) << 16 | u32::from(*c.get(1).unwrap_or(&0)) << 8 | u32::from(*c.get(2).unwrap_or(&0));
        for k in 0..4 {
            let digit = DIGITS[(n >> (18 - 6 * k)) as usize & 63];
            out.push(if k <= c.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

/// Returns RON text as HTML with syntax highlighting of components, fields, numbers, strings and comments.
pub fn highlighted(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    let mut wrapped = |class: &str, piece: &str| {
        let piece = galamost_pictures::escape(piece);
        out.push_str(&match class {
            "" => piece,
            "i" => format!("<i>{piece}</i>"),
            class => format!("<span class=\"{class}\">{piece}</span>"),
        });
    };
    while let Some(c) = rest.chars().next() {
        let length_of = |f: &dyn Fn(char) -> bool| rest.find(|c: char| !f(c)).unwrap_or(rest.len());
        let (n, class) = if rest.starts_with("//") {
            (rest.find('\n').unwrap_or(rest.len()), "i")
        } else if rest.starts_with("/*") {
            (rest.find("*/").map_or(rest.len(), |k| k + 2), "i")
        } else if c == '"' {
            let mut escaped = false;
            let end = rest.char_indices().skip(1).find(|(_, c)| {
                let ends = *c == '"' && !escaped;
                escaped = *c == '\\' && !escaped;
                ends
            });
            (end.map_or(rest.len(), |(k, _)| k + 1), "s")
        } else if c.is_ascii_digit() {
            (length_of(&|c| c.is_ascii_alphanumeric() || "._+".contains(c)), "n")
        } else if c.is_alphabetic() || c == '_' {
            let n = length_of(&|c| c.is_alphanumeric() || c == '_');
            let after = rest[n..].trim_start();
            (
                n,
                if after.starts_with('(') || c.is_uppercase() {
                    "c"
                } else if after.starts_with(':') {
                    "k"
                } else {
                    ""
                },
            )
        } else {
            (c.len_utf8(), "")
        };
        let (piece, others) = rest.split_at(n.max(c.len_utf8()));
        wrapped(class, piece);
        rest = others;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_matches_known_values() {
        for (bytes, text) in
            [(&b""[..], ""), (b"f", "Zg=="), (b"fo", "Zm8="), (b"foo", "Zm9v"), (b"foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes), text);
        }
        assert_eq!(base64(&[255, 254, 253]), "//79");
    }

    #[test]
    fn highlighting_keeps_the_text() {
        let text =
            "(seed: 42, // a <seed>\n forces: [ Lj(r_cut: 2.5e0, pairs: {(\"A\\\"\", \"B\"): (x: -1)}) ], /* end */ ä";
        let marked = highlighted(text);
        assert!(marked.contains("<i>// a &lt;seed&gt;</i>") && marked.contains("<span class=\"c\">Lj</span>"));
        assert!(marked.contains("<span class=\"k\">seed</span>") && marked.contains("<span class=\"n\">2.5e0</span>"));
        let mut plain = String::new();
        let mut inside = false;
        for c in marked.chars() {
            match c {
                '<' => inside = true,
                '>' => inside = false,
                c if !inside => plain.push(c),
                _ => {}
            }
        }
        let plain = plain.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
        assert_eq!(plain, text);
        // unterminated strings and comments
        for odd in ["\"abc", "/* x", "\"\\", "é(\"é"] {
            assert!(!highlighted(odd).is_empty());
        }
    }
}
