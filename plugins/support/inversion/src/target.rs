//! Target distributions from files: CSV tables of the analyzers, VOTCA's `.dist.tgt`, plain columns.

use crate::interaction::Bins;
use galamost_tables::read::{Choice, read, variable_column};
use galamost_tables::{Kind, Mistake, Rows, Unit};

/// Returns the column names in the header of a CSV table; empty if there is no header.
pub fn columns_of(text: &str) -> Vec<String> {
    let head = text.lines().find(|l| !l.trim().is_empty() && !l.starts_with(['#', '@'])).unwrap_or_default();
    let names: Vec<String> = head.split(',').map(|w| w.trim().trim_matches('"').to_string()).collect();
    if names.len() > 1 && names.iter().all(|n| n.parse::<f64>().is_err()) { names } else { vec![] }
}

/// Reads the distribution of a file, interpolated linearly to the centers of the bins.
///
/// The variable is the column named r, theta_deg, …, or the first one. `column` is the name of a column or its number from 1;
/// the default is the column after the variable. Distributions of bonds, angles and
/// dihedrals are 0 beyond the rows of the file; a g(r) must cover the grid. Angles are in degrees unless the header of the
/// file ends in `_rad` or `unit` says otherwise. All distributions except g(r) are normalized.
///
/// # Errors
/// Returns an error with the line number if the file does not hold a distribution on this grid.
pub fn read_target(
    text: &str,
    kind: Kind,
    bins: &Bins,
    column: Option<&str>,
    unit: Option<Unit>,
) -> Result<Vec<f64>, Mistake> {
    let names = columns_of(text);
    let variable = variable_column(&names).unwrap_or(1);
    let columns = [variable, column_number(&names, column, variable + 1)?];
    let rows = read(text, Choice { entry: None, columns: Some(&columns) })?;
    let x = checked_abscissas(&rows, kind, unit)?;
    let at = |row: usize, message: String| Mistake { line: rows.lines.get(row).copied(), message };
    let last = x.len() - 1;
    let center = bins.middle(bins.n - 1);
    if kind == Kind::Pair && x[last] < center - 1e-6 * bins.width {
        return Err(at(last, format!("g(r) ends at {}, but the grid ends at {}", x[last], bins.last())));
    }
    let mut p: Vec<f64> = (0..bins.n).map(|k| interpolate(&x, &rows.u, bins.middle(k), bins.width)).collect();
    if p.iter().all(|p| *p == 0.0) {
        return Err(at(0, format!("the distribution is 0 between {} and {}", bins.first, bins.last())));
    }
    if kind != Kind::Pair {
        normalize(&mut p, bins);
    }
    Ok(p)
}

/// Returns the number of a column, from 1, that is given by name or number.
fn column_number(names: &[String], column: Option<&str>, default: u32) -> Result<u32, Mistake> {
    let Some(name) = column else { return Ok(default) };
    match names.iter().position(|n| n == name).map(|k| k as u32 + 1).or(name.parse().ok()) {
        Some(number) => Ok(number),
        None if names.is_empty() => Err(Mistake::new(format!(
            "there is no column `{name}`: the file has no header; give the number of a column"
        ))),
        None => Err(Mistake::at(1, format!("there is no column `{name}`; the columns are {}", names.join(", ")))),
    }
}

/// Returns x of each row, angles in degrees, after checking the rows.
fn checked_abscissas(rows: &Rows, kind: Kind, unit: Option<Unit>) -> Result<Vec<f64>, Mistake> {
    let at = |row: usize, message: String| Mistake { line: rows.lines.get(row).copied(), message };
    if rows.x.len() < 2 {
        return Err(at(0, format!("a distribution has at least 2 rows, found {}", rows.x.len())));
    }
    rows.check_variable(kind)?;
    let scale = match (kind.is_angle(), unit, rows.unit) {
        (true, Some(a), Some(b)) if a != b => {
            return Err(at(0, format!("the file is in {b:?}, but the unit given is {a:?}")));
        }
        (true, a, b) if a.or(b) == Some(Unit::Radians) => 1f64.to_degrees(),
        _ => 1.0,
    };
    let x: Vec<f64> = rows.x.iter().map(|x| x * scale).collect();
    for (row, (x_k, p)) in x.iter().zip(&rows.u).enumerate() {
        if !(x_k.is_finite() && p.is_finite()) {
            return Err(at(row, format!("{x_k}, {p}: expected finite numbers")));
        }
        if *p < 0.0 {
            return Err(at(row, format!("{p} is negative; a distribution is at least 0")));
        }
        if row > 0 && *x_k <= x[row - 1] {
            return Err(at(row, format!("{x_k} is not above {} of the previous row", x[row - 1])));
        }
    }
    let last = x.len() - 1;
    if kind.is_angle() && x[last] - x[0] < 7.0 {
        return Err(at(last, format!("the angles {} … {} span less than 7°; are they Radians?", x[0], x[last])));
    }
    Ok(x)
}

/// Interpolates rows linearly at `at`; 0 beyond the rows. `width` is the width of a bin.
fn interpolate(x: &[f64], u: &[f64], at: f64, width: f64) -> f64 {
    let last = x.len() - 1;
    // files have rounded numbers
    let tolerance = 1e-6 * width;
    if at < x[0] - tolerance || at > x[last] + tolerance {
        return 0.0;
    }
    let i = x.partition_point(|x| *x <= at).clamp(1, last) - 1;
    let t = (at - x[i]) / (x[i + 1] - x[i]);
    // at a row of the file, its value is taken without rounding
    match t {
        t if t.abs() < 1e-6 => u[i],
        t if (t - 1.0).abs() < 1e-6 => u[i + 1],
        t => (1.0 - t) * u[i] + t * u[i + 1],
    }
}

/// Normalizes a distribution to an integral of 1.
pub fn normalize(p: &mut [f64], bins: &Bins) {
    let sum: f64 = p.iter().sum::<f64>() * bins.width;
    if sum > 0.0 {
        p.iter_mut().for_each(|p| *p /= sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_interpolated_to_the_grid() {
        let bins = Bins::new(0.0, 2.0, 4);
        let g = read_target(
            "r,A-A,A-B\n0.25,0.0,1.0\n0.75,1.0,2.0\n1.25,2.0,3.0\n1.75,1.0,4.0\n",
            Kind::Pair,
            &bins,
            Some("A-B"),
            None,
        );
        assert_eq!(g.unwrap(), [1.0, 2.0, 3.0, 4.0]);
        // the first column numbers the rows
        let numbered = ",r,A-A\n0,0.25,0.0\n1,0.75,1.0\n2,1.25,2.0\n3,1.75,1.0\n";
        assert_eq!(read_target(numbered, Kind::Pair, &bins, None, None).unwrap(), [0.0, 1.0, 2.0, 1.0]);
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
    fn errors_name_the_line() {
        let bins = Bins::new(0.0, 2.0, 4);
        let cases = [
            ("r,A-A\n0.5,1.0\n2.0,1.0\n", Some("B-B"), "there is no column `B-B`; the columns are r, A-A", Some(1)),
            ("0.5 1.0\n0.4 1.0\n", None, "0.4 is not above 0.5", Some(2)),
            ("0.5 1.0\n1.4 nan\n", None, "expected finite numbers", Some(2)),
            ("0.5 1.0\n1.4 -0.1\n", None, "-0.1 is negative", Some(2)),
            ("0.5 1.0\n1.4 0.1\n", None, "g(r) ends at 1.4, but the grid ends at 2", Some(2)),
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
