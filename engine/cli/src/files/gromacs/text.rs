//! Numbers and texts in pipelines.

/// Returns a computed number, rounded to ten digits.
pub fn number(x: f64) -> String {
    let rounded: f64 = format!("{x:.9e}").parse().unwrap_or(x);
    format!("{rounded:?}")
}

/// Adds items to a text, several in a line of at most 120 characters, each followed by a comma.
pub fn wrap(out: &mut String, indent: usize, items: &[String]) {
    let mut length = 0;
    for item in items {
        if length > 0 && length + item.len() + 2 > 120 {
            out.push('\n');
            length = 0;
        }
        let before = if length == 0 { " ".repeat(indent) } else { " ".into() };
        out.push_str(&format!("{before}{item},"));
        length += before.len() + item.chars().count() + 1;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    #[test]
    fn computed_numbers_have_ten_digits() {
        let all = [0.1 + 0.2, 1.0 / 3.0, 2.0, 1.23456789012e-7, 138.935458 / 15.0].map(super::number);
        assert_eq!(all, ["0.3", "0.3333333333", "2.0", "1.23456789e-7", "9.262363867"]);
    }

    #[test]
    fn long_lists_are_wrapped() {
        let mut out = String::new();
        super::wrap(&mut out, 2, &["a".repeat(60), "b".repeat(60), "c".into()]);
        assert_eq!(out, format!("  {},\n  {}, c,\n", "a".repeat(60), "b".repeat(60)));
    }
}
