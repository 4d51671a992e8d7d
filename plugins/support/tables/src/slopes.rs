//! Forces of a table that contradict its energies.

use crate::Rows;

/// Number of ranges in which the forces are compared with the energies.
const RANGES: usize = 20;
/// Energy changes below this part of the energy are not compared, because files have few digits.
const SIGNIFICANT: f64 = 1e-2;
/// Largest difference between the change of the energy and the integral of the forces, in units of that integral. A wrong sign gives 2,
/// forces that are ten times too large 0.9.
const LARGEST: f64 = 0.75;

/// Describes the first range of rows where forces and energies contradict each other, if they do so in most of the ranges: F has the wrong
/// sign or unit, or is 0.
///
/// Between two rows the integral of F is taken to be within those of the smaller and of the larger force, so the spacing of the rows does not
/// matter.
pub fn contradiction(rows: &Rows) -> Option<String> {
    let (f, n) = (rows.f.as_ref()?, rows.x.len());
    let step = n.saturating_sub(1).div_ceil(RANGES).max(1);
    let (mut compared, mut wrong) = (0, vec![]);
    for first in (0..n.saturating_sub(1)).step_by(step) {
        let last = (first + step).min(n - 1);
        let work = rows.u[first] - rows.u[last];
        if work.abs() <= SIGNIFICANT * rows.u[first].abs().max(rows.u[last].abs()) {
            continue;
        }
        let integral = |of: fn(f64, f64) -> f64| -> f64 {
            (first..last).map(|k| (rows.x[k + 1] - rows.x[k]) * of(f[k], f[k + 1])).sum()
        };
        let (low, high) = (integral(f64::min), integral(f64::max));
        let outside = (low - work).max(work - high);
        compared += 1;
        if outside > LARGEST * low.abs().max(high.abs()) {
            wrong.push((first, last, work, 0.5 * (low + high)));
        }
    }
    let (first, last, work, integral) = *wrong.first()?;
    (2 * wrong.len() > compared).then(|| {
        format!(
            "the column F is not the negative derivative of U: between {} and {}, U changes by {:.3e}, but F by its integral {:.3e}; check \
             the sign and the unit of F, or leave it out",
            rows.x[first], rows.x[last], -work, -integral
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of Lennard-Jones with forces times a factor.
    fn rows(n: u32, first: f64, factor: f64) -> Rows {
        let x: Vec<f64> = (0..n).map(|k| first + (2.5 - first) * f64::from(k) / f64::from(n - 1)).collect();
        let u = x.iter().map(|r| 4.0 * (r.powi(-12) - r.powi(-6))).collect();
        let f = x.iter().map(|r| factor * 24.0 * (2.0 * r.powi(-13) - r.powi(-7))).collect();
        Rows { x, u, f: Some(f), ..Rows::default() }
    }

    #[test]
    fn forces_of_the_wrong_sign_or_unit_are_found() {
        for n in [5, 20, 200, 5000] {
            for first in [0.3, 0.8, 1.0] {
                assert_eq!(contradiction(&rows(n, first, 1.0)), None, "{n} rows from {first}");
            }
            for factor in [-1.0, 10.0, 0.1, 0.0] {
                // few rows have forces of very different sizes side by side
                let found = contradiction(&rows(n, 0.8, factor));
                assert!(n < 200 || found.is_some_and(|m| m.contains("between 0.8 and")), "{n} rows, {factor}");
            }
        }
        // energies without forces, and forces of rounded energies
        assert_eq!(contradiction(&Rows { f: None, ..rows(200, 0.8, 1.0) }), None);
        let mut rounded = rows(200, 0.8, 1.0);
        rounded.u.iter_mut().for_each(|u| *u = (*u * 100.0).round() / 100.0);
        assert_eq!(contradiction(&rounded), None);
    }
}
