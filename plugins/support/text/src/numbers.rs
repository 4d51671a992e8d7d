//! Formatting of numbers.

use std::io::Write as _;

/// Appends a number with `digits` decimals, or with as many digits as an exact round trip needs.
pub fn real(out: &mut Vec<u8>, x: f64, digits: Option<u32>) {
    // writing to memory does not fail
    let _ = match digits {
        Some(digits) => write!(out, "{x:.*}", digits as usize),
        None => write!(out, "{x:?}"),
    };
}

/// Appends numbers, each after a blank.
pub fn reals(out: &mut Vec<u8>, values: &[f64], digits: Option<u32>) {
    for x in values {
        out.push(b' ');
        real(out, *x, digits);
    }
}

/// Appends integers, each after a blank.
pub fn whole<T: std::fmt::Display>(out: &mut Vec<u8>, values: &[T]) {
    for x in values {
        let _ = write!(out, " {x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip() {
        for x in [0.1, -1.0 / 3.0, 1e-300, 123_456_789.123_456_79, f64::from(0.1f32), -0.0, 1e22] {
            let mut out = vec![];
            real(&mut out, x, None);
            let text = String::from_utf8(out).expect("text");
            assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(x.to_bits()), "{text}");
        }
        let mut out = vec![];
        reals(&mut out, &[1.0, -0.126], Some(2));
        whole(&mut out, &[3, -4]);
        assert_eq!(out, b" 1.00 -0.13 3 -4");
    }
}
