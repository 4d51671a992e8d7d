//! Round numbers along an axis.

/// Tick marks of an axis and their labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ticks {
    /// Positions with a label.
    pub major: Vec<(f64, String)>,
    /// Positions without a label.
    pub minor: Vec<f64>,
    /// Labels are in units of this power of ten.
    pub power: i32,
}

/// Replaces hyphens by minus signs.
fn signed(text: String) -> String {
    text.replace('-', "−")
}

/// Returns a power of ten as text, for example 10⁻³.
pub fn power_of_ten(power: i32) -> String {
    let digit = |c: char| match c {
        '-' => '⁻',
        c => c.to_digit(10).and_then(|d| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(d as usize)).unwrap_or(c),
    };
    format!("10{}", power.to_string().chars().map(digit).collect::<String>())
}

/// Returns about `wanted` ticks at round numbers between two ends.
pub fn linear([low, high]: [f64; 2], wanted: f64) -> Ticks {
    let raw = (high - low) / wanted.max(1.0);
    let decade = 10f64.powf(raw.log10().floor());
    if !(raw.is_finite() && decade.is_normal()) {
        return Ticks::default();
    }
    let step = [1.0, 2.0, 5.0, 10.0].iter().map(|k| k * decade).find(|s| *s >= raw * 0.999).unwrap_or(raw);
    let largest = low.abs().max(high.abs());
    let magnitude = largest.log10().floor() as i32;
    let power = if (-3..5).contains(&magnitude) { 0 } else { magnitude };
    let unit = 10f64.powi(power);
    let decimals = (-(step / unit * 1.000_001).log10().floor()).clamp(0.0, 12.0) as usize;
    // the range is too narrow, compared with its distance from 0, for labels that differ
    if step < 1e-12 * largest {
        return Ticks { major: vec![(low, signed(format!("{low:.6e}")))], ..Ticks::default() };
    }
    let multiples = |s: f64| {
        let (first, last) = ((low / s - 1e-9).ceil() as i64, (high / s + 1e-9).floor() as i64);
        (first..=last).map(move |k| k as f64 * s)
    };
    let major = multiples(step).map(|v| (v, signed(format!("{:.decimals$}", v / unit + 0.0)))).collect();
    let divisions = if (step / decade - 2.0).abs() < 0.1 { 4.0 } else { 5.0 };
    let is_minor = |v: &f64| (v / step - (v / step).round()).abs() > 1e-6;
    Ticks { major, minor: multiples(step / divisions).filter(is_minor).collect(), power }
}

/// Returns the ticks of a logarithmic axis: powers of ten, and multiples of them if there are few decades.
pub fn logarithmic([low, high]: [f64; 2]) -> Ticks {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let decades = high.log10() - low.log10();
    if !(low.is_normal() && high.is_finite() && low > 0.0) {
        return Ticks::default();
    }
    let inside = |v: &f64| *v >= low * (1.0 - 1e-9) && *v <= high * (1.0 + 1e-9);
    let every = ((decades / 7.0).ceil() as i32).max(1);
    let mut ticks = Ticks::default();
    for k in first..=last {
        for m in 1..10 {
            let v = f64::from(m) * 10f64.powi(k);
            if !inside(&v) {
                continue;
            }
            let labeled = match m {
                1 => k.rem_euclid(every) == 0,
                2 | 5 => decades < 2.0,
                _ => decades < 0.7,
            };
            if labeled && m == 1 && (k.abs() > 2 || decades >= 2.0) {
                ticks.major.push((v, power_of_ten(k)));
            } else if labeled {
                ticks.major.push((
                    v,
                    if k.abs() > 3 {
                        format!("{m}·{}", power_of_ten(k))
                    } else {
                        format!("{v:.*}", (-k).max(0) as usize)
                    },
                ));
            } else if every == 1 || m == 1 {
                ticks.minor.push(v);
            }
        }
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(t: &Ticks) -> Vec<&str> {
        t.major.iter().map(|m| m.1.as_str()).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(texts(&linear([0.03, 2.9], 6.0)), ["0.5", "1.0", "1.5", "2.0", "2.5"]);
        assert_eq!(texts(&linear([-1.0, 1.0], 4.0)), ["−1.0", "−0.5", "0.0", "0.5", "1.0"]);
        let t = linear([0.0, 1e6], 5.0);
        assert_eq!((texts(&t), t.power), (vec!["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"], 6));
        assert_eq!(texts(&linear([-4.5432, -4.5428], 4.0)), ["−4.5432", "−4.5431", "−4.5430", "−4.5429", "−4.5428"]);
        assert_eq!(texts(&logarithmic([0.5, 200.0])), ["10⁰", "10¹", "10²"]);
        assert_eq!(texts(&logarithmic([1.0, 20.0])), ["1", "2", "5", "10", "20"]);
        assert_eq!(texts(&logarithmic([1e-12, 1e3])).len(), 6);
        // degenerate ranges give few ticks
        for range in [[0.0, 0.0], [1.0, 1.0 + 1e-16], [f64::NAN, 1.0], [-1e308, 1e308], [0.0, 1e-320]] {
            assert!(linear(range, 6.0).major.len() < 30, "{range:?}");
        }
    }
}
