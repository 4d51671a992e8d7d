//! The function that the rows of a table define, for every distance or angle.

use crate::grid::CoefficientGrid;
use crate::spline::{Spline, end_slope};
use crate::{FEWEST, Kind, Mistake, Rows, Unit};
use std::f64::consts::{PI, TAU};

/// A table as a function: a cubic spline through its rows. The slopes at the ends come from the forces of the first and last
/// row or, without forces, from the cubic through the four outermost rows.
///
/// Beyond its rows, the function is a parabola with the value, slope and curvature of that end; a negative curvature is
/// replaced by 0. The parabola is in r² below the first row of a pair table, and in r or θ elsewhere. A dihedral table is
/// periodic.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    kind: Kind,
    spline: Spline,
    /// First and last x; 2π apart for a dihedral.
    ends: [f64; 2],
}

impl Curve {
    /// Builds the function from rows; angles are converted to radians.
    ///
    /// # Errors
    /// Returns an error if there are too few rows, if rows are not finite or not increasing, or if angles do not fit their
    /// unit.
    pub fn new(kind: Kind, rows: &Rows, unit: Option<Unit>) -> Result<Self, Mistake> {
        let (x, u, f) = checked(kind, rows, unit)?;
        if kind == Kind::Dihedral {
            return periodic(&x, &u, rows);
        }
        let n = x.len();
        let slopes = match &f {
            Some(f) => [-f[0], -f[n - 1]],
            None => {
                let reversed = |v: &[f64]| v.iter().rev().take(4).copied().collect::<Vec<f64>>();
                [end_slope(&x, &u), end_slope(&reversed(&x), &reversed(&u))]
            }
        };
        Ok(Self { kind, ends: [x[0], x[n - 1]], spline: Spline::clamped(&x, &u, slopes) })
    }

    /// Returns the first and last x; radians for angles.
    pub fn ends(&self) -> [f64; 2] {
        self.ends
    }

    /// Returns U, dU/dx and d²U/dx².
    pub fn at(&self, x: f64) -> [f64; 3] {
        let [first, last] = self.ends;
        match self.kind {
            Kind::Dihedral => self.spline.at(first + (x - first).rem_euclid(TAU)),
            Kind::Pair if x < first => {
                // in z = r²: U = U₀ + U' (z − z₀) + ½ U'' (z − z₀)²
                let [u, slope, curvature] = self.derivatives_in_square(first);
                let d = x * x - first * first;
                let by_z = slope + curvature * d;
                [u + d * (slope + 0.5 * curvature * d), 2.0 * x * by_z, 2.0 * by_z + 4.0 * x * x * curvature]
            }
            _ if x < first || x > last => {
                let end = if x < first { first } else { last };
                let [u, slope, curvature] = self.spline.at(end);
                let (curvature, d) = (curvature.max(0.0), x - end);
                [u + d * (slope + 0.5 * curvature * d), slope + curvature * d, curvature]
            }
            _ => self.spline.at(x),
        }
    }

    /// Returns U, dU/dz and d²U/dz² (at least 0) at the first row r₀, where z = r².
    fn derivatives_in_square(&self, r0: f64) -> [f64; 3] {
        if r0 <= 0.0 {
            return [self.spline.at(0.0)[0], 0.0, 0.0];
        }
        let [u, slope, curvature] = self.spline.at(r0);
        [u, slope / (2.0 * r0), ((curvature - slope / r0) / (4.0 * r0 * r0)).max(0.0)]
    }

    /// Returns a pair table on a grid in r² from 0 to `cutoff`².
    pub fn pair_grid(&self, cells: usize, cutoff: f64) -> CoefficientGrid {
        let value = |z: f64| self.at(z.sqrt())[0];
        let end = cutoff * cutoff;
        let step = end / cells as f64;
        CoefficientGrid::new(
            cells,
            0.0,
            end,
            |z| {
                let r = z.sqrt();
                let slope = if z > 0.0 {
                    self.at(r)[1] / (2.0 * r)
                } else if self.ends[0] * self.ends[0] > step {
                    let [_, slope, curvature] = self.derivatives_in_square(self.ends[0]);
                    slope - curvature * self.ends[0] * self.ends[0]
                } else {
                    // the rows reach down to 0, where the slope in r² may be infinite
                    let z: Vec<f64> = (0..4).map(|k| f64::from(k) * step).collect();
                    end_slope(&z, &z.iter().map(|z| value(*z)).collect::<Vec<_>>())
                };
                [value(z), slope]
            },
            None,
        )
    }

    /// Returns a bond, angle or dihedral table on a grid in r, θ or φ.
    pub fn link_grid(&self, cells: usize) -> CoefficientGrid {
        let f = |x: f64| {
            let [u, slope, _] = self.at(x);
            [u, slope]
        };
        match self.kind {
            Kind::Angle => CoefficientGrid::new(cells, 0.0, PI, f, None),
            Kind::Dihedral => CoefficientGrid::new(cells, PI, PI, f, None),
            _ => CoefficientGrid::new(cells, 0.0, self.ends[1], f, Some(&|x| self.at(x))),
        }
    }
}

/// Returns x, U and forces in lengths or radians, after checking the rows.
#[allow(clippy::type_complexity)]
fn checked(kind: Kind, rows: &Rows, unit: Option<Unit>) -> Result<(Vec<f64>, Vec<f64>, Option<Vec<f64>>), Mistake> {
    check_rows(kind, rows)?;
    if !kind.is_angle() {
        return Ok((rows.x.clone(), rows.u.clone(), rows.f.clone()));
    }
    let k = checked_unit(kind, rows, unit)?.radians();
    let mut x: Vec<f64> = rows.x.iter().map(|x| x * k).collect();
    if kind == Kind::Angle {
        // a rounded last angle (3.1416) must not exceed π
        let row = x.len() - 1;
        x[row] = x[row].min(PI);
        if x[row] <= x[row - 1] {
            let message = format!("angle = {} is not above the previous row", rows.x[row]);
            return Err(mistake(rows, row, message));
        }
    }
    Ok((x, rows.u.clone(), rows.f.as_ref().map(|f| f.iter().map(|f| f / k).collect())))
}

/// Makes an error in a row.
fn mistake(rows: &Rows, row: usize, message: String) -> Mistake {
    Mistake { line: rows.lines.get(row).copied(), message }
}

/// Checks the number of rows, their kind and variable, and that they are finite and increasing.
fn check_rows(kind: Kind, rows: &Rows) -> Result<(), Mistake> {
    let mistake = |row: usize, message: String| mistake(rows, row, message);
    let last_row = rows.x.len().saturating_sub(1);
    if rows.x.len() < FEWEST {
        return Err(mistake(last_row, format!("the table has {} rows; it needs at least {FEWEST}", rows.x.len())));
    }
    if let Some(named) = rows.kind.filter(|k| *k != kind) {
        return Err(mistake(0, format!("the kind of this table is {}; expected {}", named.name(), kind.name())));
    }
    rows.check_variable(kind)?;
    let what = if kind.is_angle() { "angle" } else { "r" };
    for (row, (x, u)) in rows.x.iter().zip(&rows.u).enumerate() {
        let f = rows.f.as_ref().map_or(0.0, |f| f[row]);
        for (name, value) in [(what, *x), ("U", *u), ("F", f)] {
            if !value.is_finite() {
                let hint = "remove the row; a table is extrapolated below its first row";
                return Err(mistake(row, format!("{name} = {value} is not a finite number; {hint}")));
            }
        }
        if row > 0 && *x <= rows.x[row - 1] {
            return Err(mistake(row, format!("{what} = {x} is not above {} of the previous row", rows.x[row - 1])));
        }
    }
    if kind != Kind::Dihedral && rows.x[0] < 0.0 {
        return Err(mistake(0, format!("{what} = {} is negative", rows.x[0])));
    }
    Ok(())
}

/// Returns the unit of the angles, after checking that the range of the angles fits it.
fn checked_unit(kind: Kind, rows: &Rows, unit: Option<Unit>) -> Result<Unit, Mistake> {
    let mistake = |row: usize, message: String| mistake(rows, row, message);
    let last_row = rows.x.len() - 1;
    let (first, last) = (rows.x[0], rows.x[last_row]);
    let unit = match (unit, rows.unit) {
        (Some(a), Some(b)) if a != b => {
            return Err(mistake(0, format!("the file is in {b:?}, but the unit given is {a:?}")));
        }
        (a, b) => {
            a.or(b).ok_or_else(|| mistake(0, "the unit of the angles is missing; give Degrees or Radians".into()))?
        }
    };
    let (span, limit) = if kind == Kind::Angle { (last, PI) } else { (last - first, TAU) };
    let turn = limit / unit.radians();
    if span > turn * (1.0 + 1e-5) {
        let hint = if unit == Unit::Radians && span > 2.0 * TAU { "; are they Degrees?" } else { "" };
        let message = match kind {
            Kind::Angle => format!("the angle {last} is above {turn} {unit:?}{hint}"),
            _ => format!("the angles {first} … {last} span more than {turn} {unit:?}{hint}"),
        };
        return Err(mistake(last_row, message));
    }
    if unit == Unit::Degrees && span < limit * (1.0 + 1e-5) {
        let message = format!("the angles {first} … {last} span less than 7 Degrees; are they Radians?");
        return Err(mistake(last_row, message));
    }
    Ok(unit)
}

/// Builds the periodic spline of rows that cover 360°. The last row may repeat the first.
fn periodic(x: &[f64], u: &[f64], rows: &Rows) -> Result<Curve, Mistake> {
    let mistake = |message: String| Mistake { line: rows.lines.last().copied(), message };
    let n = x.len();
    let span = x[n - 1] - x[0];
    let widest = x.windows(2).map(|w| w[1] - w[0]).fold(0.0, f64::max);
    // the last row repeats the first, up to rounding (3.1416)
    let closed = TAU - span < 1e-3 * widest + 1e-5 * TAU;
    if !closed && TAU - span > 1.5 * widest {
        let degrees = |x: f64| x.to_degrees();
        return Err(mistake(format!(
            "the rows cover {:.1}° … {:.1}°; the rows of a dihedral must cover 360°",
            degrees(x[0]),
            degrees(x[n - 1])
        )));
    }
    let (low, high) = u.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), u| (a.min(*u), b.max(*u)));
    if closed && (u[n - 1] - u[0]).abs() > 1e-3 * (high - low) {
        return Err(mistake(format!("U = {} after 360°, but {} in the first row", u[n - 1], u[0])));
    }
    let period = if closed { n - 1 } else { n };
    // enough periods before and after that their ends have no effect: an error there decays by a factor of 0.27 per row
    let turns = 40usize.div_ceil(period) as i64;
    let (mut all_x, mut all_u) = (vec![], vec![]);
    for turn in -turns..=turns {
        for k in 0..period {
            all_x.push(x[k] + turn as f64 * TAU);
            all_u.push(u[k]);
        }
    }
    let slopes = [0.0; 2];
    Ok(Curve { kind: Kind::Dihedral, spline: Spline::clamped(&all_x, &all_u, slopes), ends: [x[0], x[0] + TAU] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(x: Vec<f64>, u: impl Fn(f64) -> f64) -> Rows {
        let u = x.iter().map(|x| u(*x)).collect();
        Rows { x, u, ..Rows::default() }
    }

    #[test]
    fn a_pair_is_extrapolated_by_a_parabola_in_the_square() {
        let x = (0..100).map(|k| 0.8 + 0.017 * f64::from(k)).collect();
        let c = Curve::new(Kind::Pair, &rows(x, |r| r.powi(-12)), None).unwrap();
        let grid = c.pair_grid(2000, 2.4);
        let mut before = 0.0;
        for k in 0..16 {
            let r = 0.8 - 0.05 * f64::from(k);
            let [u, slope, _] = c.at(r);
            let h = 1e-5;
            let numerical = (c.at(r + h)[0] - c.at(r - h)[0]) / (2.0 * h);
            // h² U‴ and rounding 1e-16 U/h; the grid has cells of 0.003 in r²
            assert!((slope - numerical).abs() < 1e-5 * slope.abs().max(1.0), "r = {r}: {slope} and {numerical}");
            assert!((grid.at(r * r)[0] - u).abs() < 1e-4 * u.abs(), "r = {r}");
            let f_over_r = -slope / r;
            assert!(f_over_r >= before, "F/r grows towards the core");
            before = f_over_r;
        }
        assert!(grid.at(0.0)[0] > 4.0 * c.at(0.8)[0]);
    }

    #[test]
    fn bonds_are_extrapolated_by_parabolas() {
        let x: Vec<f64> = (0..50).map(|k| 0.5 + 0.02 * f64::from(k)).collect();
        let c = Curve::new(Kind::Bond, &rows(x, |r| 30.0 * (r - 1.0).powi(2)), None).unwrap();
        let grid = c.link_grid(500);
        for r in [0.0, 0.2, 0.5, 1.0, 1.47, 1.6, 5.0] {
            let truth = 30.0 * (r - 1.0f64).powi(2);
            assert!((c.at(r)[0] - truth).abs() < 1e-9 && (grid.at(r)[0] - truth).abs() < 1e-9, "{r}");
        }
    }

    #[test]
    fn dihedrals_are_periodic_with_or_without_the_last_row() {
        for (first, n) in [(-180.0, 361), (-180.0, 360), (0.0, 361), (0.0, 360)] {
            let x = (0..n).map(|k| first + f64::from(k)).collect();
            let c = Curve::new(Kind::Dihedral, &rows(x, |d: f64| (3.0 * d.to_radians()).cos()), Some(Unit::Degrees));
            let c = c.unwrap();
            let grid = c.link_grid(2000);
            for k in -20..=20 {
                let phi = PI * f64::from(k) / 20.0;
                let [u, slope] = grid.at(phi);
                // rows a degree h apart: a cubic spline is off by 5/384 h⁴ 3⁴ = 1e-7, its slope by h³ 3⁴/24 = 2e-5
                assert!(
                    (u - (3.0 * phi).cos()).abs() < 1e-7 && (slope + 3.0 * (3.0 * phi).sin()).abs() < 1e-4,
                    "{phi}"
                );
            }
        }
    }

    #[test]
    fn bad_tables_are_refused() {
        let message = |kind, x: Vec<f64>, unit| Curve::new(kind, &rows(x, |x| x), unit).unwrap_err().message;
        let even = |n: usize, step: f64| (0..n).map(|k| k as f64 * step).collect::<Vec<f64>>();
        assert!(message(Kind::Pair, vec![1.0, 2.0, 3.0], None).contains("3 rows; it needs at least 4"));
        assert!(message(Kind::Pair, vec![1.0, 2.0, 2.0, 3.0], None).contains("r = 2 is not above 2"));
        assert!(message(Kind::Pair, vec![1.0, f64::NAN, 2.0, 3.0], None).contains("r = NaN is not a finite number"));
        assert!(message(Kind::Pair, vec![-1.0, 0.0, 2.0, 3.0], None).contains("r = -1 is negative"));
        assert!(message(Kind::Angle, even(181, 1.0), None).contains("the unit of the angles is missing"));
        assert!(message(Kind::Angle, even(181, 1.0), Some(Unit::Radians)).contains("are they Degrees?"));
        assert!(message(Kind::Angle, even(181, PI / 180.0), Some(Unit::Degrees)).contains("are they Radians?"));
        assert!(message(Kind::Dihedral, even(361, 1.0), Some(Unit::Radians)).contains("are they Degrees?"));
        assert!(message(Kind::Dihedral, even(361, TAU / 360.0), Some(Unit::Degrees)).contains("are they Radians?"));
        assert!(message(Kind::Dihedral, even(181, 1.0), Some(Unit::Degrees)).contains("must cover 360°"));
        assert!(message(Kind::Dihedral, even(361, 1.0), Some(Unit::Degrees)).contains("after 360°"));
    }
}
