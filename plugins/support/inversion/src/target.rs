//! Distributions out of files: CSV tables of the analyzers, VOTCA's `.dist.tgt`, plain columns.

use crate::interaction::Bins;
use galamost_tables::read::{Choice, read};
use galamost_tables::{Kind, Mistake, Unit};

/// Names of the columns in the head of a CSV table, if it has one.
pub fn columns_of(text: &str) -> Vec<String> {
    let head = text.lines().find(|l| !l.trim().is_empty() && !l.starts_with(['#', '@'])).unwrap_or_default();
    let names: Vec<String> = head.split(',').map(|w| w.trim().trim_matches('"').to_string()).collect();
    if names.len() > 1 && names.iter().all(|n| n.parse::<f64>().is_err()) { names } else { vec![] }
}

/// The distribution of a file in bins: what it has at their middles, on straight lines between its rows.
///
/// `column` is the name of a column or its number from 1; by default the second. Links that lie beyond the file's rows have the density 0; a pair's must
/// cover the grid. Angles are in degrees unless the file's head says `_rad` or `unit` says so.
///
/// # Errors
/// What is wrong, with its line.
pub fn read_target(
    text: &str,
    kind: Kind,
    bins: &Bins,
    column: Option<&str>,
    unit: Option<Unit>,
) -> Result<Vec<f64>, Mistake> {
    let names = columns_of(text);
    let number = match column {
        None => 2,
        Some(name) => match names.iter().position(|n| n == name).map(|k| k as u32 + 1).or(name.parse().ok()) {
            Some(number) => number,
            None if names.is_empty() => {
                return Err(Mistake::new(format!("there is no column `{name}`: the file names none")));
            }
            None => return Err(Mistake::at(1, format!("there is no column `{name}`; there are {}", names.join(", ")))),
        },
    };
    let rows = read(text, Choice { entry: None, columns: Some(&[1, number]) })?;
    let at = |row: usize, message: String| Mistake { line: rows.lines.get(row).copied(), message };
    if rows.x.len() < 2 {
        return Err(at(0, format!("{} rows are no distribution", rows.x.len())));
    }
    let scale = match (kind.is_angle(), unit, rows.unit) {
        (true, Some(a), Some(b)) if a != b => {
            return Err(at(0, format!("the file says {b:?}, but the unit given is {a:?}")));
        }
        (true, a, b) if a.or(b) == Some(Unit::Radians) => 1f64.to_degrees(),
        _ => 1.0,
    };
    let x: Vec<f64> = rows.x.iter().map(|x| x * scale).collect();
    for (row, (x_k, p)) in x.iter().zip(&rows.u).enumerate() {
        if !(x_k.is_finite() && p.is_finite()) {
            return Err(at(row, format!("{x_k}, {p}: these are no finite numbers")));
        }
        if *p < 0.0 {
            return Err(at(row, format!("{p} is below 0: a distribution is not")));
        }
        if row > 0 && *x_k <= x[row - 1] {
            return Err(at(row, format!("{x_k} is not above {} of the row before", x[row - 1])));
        }
    }
    let last = x.len() - 1;
    if kind.is_angle() && x[last] - x[0] < 7.0 {
        return Err(at(last, format!("the angles {} … {} are less than 7° in all; are they Radians?", x[0], x[last])));
    }
    let middle = bins.middle(bins.n - 1);
    if kind == Kind::Pair && x[last] < middle - 1e-6 * bins.width {
        return Err(at(last, format!("g(r) ends at {}, but the grid at {}", x[last], bins.last())));
    }
    let p = (0..bins.n).map(|k| {
        let want = bins.middle(k);
        // printed digits
        let slack = 1e-6 * bins.width;
        if want < x[0] - slack || want > x[last] + slack {
            return 0.0;
        }
        let i = x.partition_point(|x| *x <= want).clamp(1, last) - 1;
        let t = (want - x[i]) / (x[i + 1] - x[i]);
        // a value of the file itself stays what it is
        match t {
            t if t.abs() < 1e-6 => rows.u[i],
            t if (t - 1.0).abs() < 1e-6 => rows.u[i + 1],
            t => (1.0 - t) * rows.u[i] + t * rows.u[i + 1],
        }
    });
    let mut p: Vec<f64> = p.collect();
    if p.iter().all(|p| *p == 0.0) {
        return Err(at(0, format!("nothing lies in {} … {}", bins.first, bins.last())));
    }
    if kind != Kind::Pair {
        normalise(&mut p, bins);
    }
    Ok(p)
}

/// Makes the integral 1.
pub fn normalise(p: &mut [f64], bins: &Bins) {
    let sum: f64 = p.iter().sum::<f64>() * bins.width;
    if sum > 0.0 {
        p.iter_mut().for_each(|p| *p /= sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_brought_to_the_grid() {
        let bins = Bins::new(0.0, 2.0, 4);
        let g = read_target(
            "r,A-A,A-B\n0.25,0.0,1.0\n0.75,1.0,2.0\n1.25,2.0,3.0\n1.75,1.0,4.0\n",
            Kind::Pair,
            &bins,
            Some("A-B"),
            None,
        );
        assert_eq!(g.unwrap(), [1.0, 2.0, 3.0, 4.0]);
        let g = read_target("0.0 0.0 i\n1.0 2.0 i\n2.0 1.0 i\n", Kind::Pair, &bins, None, None).unwrap();
        assert_eq!(g, [0.5, 1.5, 1.75, 1.25]);
        let half = std::f64::consts::FRAC_PI_2;
        let p = read_target(
            &format!("0.0 0.0\n{half} 1.0\n{} 0.0\n", 2.0 * half),
            Kind::Angle,
            &Bins::new(0.0, 180.0, 2),
            None,
            Some(Unit::Radians),
        );
        assert!(p.unwrap().iter().all(|p| (p * 180.0 - 1.0).abs() < 1e-12));
    }

    #[test]
    fn wrong_files_are_told_with_their_line() {
        let bins = Bins::new(0.0, 2.0, 4);
        let cases = [
            ("r,A-A\n0.5,1.0\n2.0,1.0\n", Some("B-B"), "there is no column `B-B`; there are r, A-A", Some(1)),
            ("0.5 1.0\n0.4 1.0\n", None, "0.4 is not above 0.5", Some(2)),
            ("0.5 1.0\n1.4 nan\n", None, "no finite numbers", Some(2)),
            ("0.5 1.0\n1.4 -0.1\n", None, "-0.1 is below 0", Some(2)),
            ("0.5 1.0\n1.4 0.1\n", None, "g(r) ends at 1.4, but the grid at 2", Some(2)),
        ];
        for (text, column, message, line) in cases {
            let e = read_target(text, Kind::Pair, &bins, column, None).unwrap_err();
            assert!(e.message.contains(message) && e.line == line, "{e:?}");
        }
        let angles = Bins::new(0.0, 180.0, 18);
        let e = read_target("0.0 1.0\n1.5 2.0\n3.1 1.0\n", Kind::Angle, &angles, None, None).unwrap_err();
        assert!(e.message.contains("are they Radians?"), "{e:?}");
    }
}
