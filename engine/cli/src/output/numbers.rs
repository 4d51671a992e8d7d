//! Numbers rounded for readers.

/// Formats a number with `digits` significant digits, without trailing zeros after the decimal point. Numbers below 1e-4 and
/// from 1e7 on have an exponent.
pub fn significant(x: f64, digits: i32) -> String {
    if x == 0.0 || !x.is_finite() {
        return format!("{x}");
    }
    let power = x.abs().log10().floor() as i32;
    if !(-4..7).contains(&power) {
        let places = (digits - 1).max(0) as usize;
        let text = format!("{x:.places$e}");
        let Some((mantissa, exponent)) = text.split_once('e') else { return text };
        return format!("{}e{exponent}", trimmed(mantissa));
    }
    let places = (digits - 1 - power).max(0) as usize;
    trimmed(&format!("{x:.places$}")).into()
}

/// Removes trailing zeros after the decimal point.
fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// Formats `mean ± error` with two significant digits of the error.
pub fn with_error(mean: f64, error: f64) -> String {
    if !(error.is_finite() && mean.is_finite()) || error <= 0.0 {
        return significant(mean, 9);
    }
    let digits = 1 - error.log10().floor() as i32;
    let largest = mean.abs().max(error);
    if !(1e-4..1e7).contains(&largest) {
        let power = largest.log10().floor() as i32;
        let unit = 10f64.powi(power);
        let places = (digits + power).clamp(0, 15) as usize;
        return format!("({:.places$} ± {:.places$})e{power}", mean / unit, error / unit);
    }
    let places = digits.clamp(0, 15) as usize;
    format!("{mean:.places$} ± {error:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_their_errors() {
        assert_eq!(with_error(1.23456, 0.0123), "1.235 ± 0.012");
        assert_eq!(with_error(-4543.2, 12.3), "-4543 ± 12");
        assert_eq!(with_error(1.5e-6, 2e-8), "(1.500 ± 0.020)e-6");
        assert_eq!(with_error(1_176.470_588_235, 0.0), "1176.47059");
        for (x, digits, text) in
            [(30.07, 4, "30.07"), (0.000_123, 2, "0.00012"), (5.0, 3, "5"), (-1.5e9, 3, "-1.5e9"), (0.0, 3, "0")]
        {
            assert_eq!(significant(x, digits), text);
        }
    }
}
