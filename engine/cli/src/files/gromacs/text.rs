//! Lists in pipelines.

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
    fn long_lists_are_wrapped() {
        let mut out = String::new();
        super::wrap(&mut out, 2, &["a".repeat(60), "b".repeat(60), "c".into()]);
        assert_eq!(out, format!("  {},\n  {}, c,\n", "a".repeat(60), "b".repeat(60)));
    }
}
