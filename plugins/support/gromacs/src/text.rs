//! Numbers in pipelines.

/// Returns a computed number, rounded to ten digits.
pub fn number(x: f64) -> String {
    let rounded: f64 = format!("{x:.9e}").parse().unwrap_or(x);
    format!("{rounded:?}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn computed_numbers_have_ten_digits() {
        let all = [0.1 + 0.2, 1.0 / 3.0, 2.0, 1.23456789012e-7, 138.935458 / 15.0].map(super::number);
        assert_eq!(all, ["0.3", "0.3333333333", "2.0", "1.23456789e-7", "9.262363867"]);
    }
}
