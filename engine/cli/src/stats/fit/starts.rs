//! Start values of a fit.
//!
//! Far from its minimum, χ² is flat in a parameter such as a time, or a fit from there ends at infinity. Powers of ten around the
//! scales of x are tried for the parameters in which the formula is not linear, and the best ones are start values.

use super::formula::Formula;
use super::{Points, length, solve_linear};

/// Largest number of points with which start values are compared.
const SAMPLE: usize = 100;
/// Largest number of powers of ten that are tried for a parameter, each with both signs.
const POWERS: i32 = 16;
/// Number of fits, apart from that whose parameters start at 1.
const FITS: usize = 5;

/// Start values of all parameters, and the parameters in which the formula is linear.
pub(super) struct Starts {
    /// Start values; the first ones are 1 if the formula is finite there, apart from given ones.
    pub lists: Vec<Vec<f64>>,
    /// For each parameter, whether the formula is linear in it.
    pub linear: Vec<bool>,
}

/// Finds start values. `given` has those that must not be changed.
///
/// # Errors
/// Returns an error if the formula is not finite at all points with any of them.
pub(super) fn find(f: &Formula, points: &Points, given: &[Option<f64>]) -> Result<Starts, String> {
    let values = candidates(points);
    let all = |value: f64| -> Vec<f64> { given.iter().map(|g| g.unwrap_or(value)).collect() };
    let finite = |start: &Vec<f64>| f.residuals(points, start).iter().all(|r| r.is_finite());
    let scale = points.x.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    let mut bases: Vec<Vec<f64>> = [1.0, scale].map(all).into_iter().filter(finite).collect();
    if bases.is_empty() {
        bases.extend(values.iter().map(|v| all(*v)).find(finite));
    }
    if bases.is_empty() {
        return Err("the formula is not finite at all points with any start values; give points by --range or start \
                    values by --start"
            .into());
    }
    // a formula that vanishes at all points seems to be linear
    let mut linear = vec![true; given.len()];
    for base in &bases {
        linear.iter_mut().zip(f.linear(points, base)).for_each(|(all, one)| *all &= one);
    }
    let mut lists = vec![bases.swap_remove(0)];
    let free: Vec<usize> = (0..given.len()).filter(|k| !linear[*k] && given[*k].is_none()).collect();
    lists.extend(best(f, &thinned(points), &lists[0], &free, &linear, &values));
    Ok(Starts { lists, linear })
}

/// Returns the values that are tried for a parameter: powers of ten around 1, x and 1/x, and the mean of x.
fn candidates(points: &Points) -> Vec<f64> {
    let sizes = || points.x.iter().map(|x| x.abs().log10()).filter(|k| k.is_finite());
    let most = sizes().map(f64::abs).fold(0.0, f64::max).ceil() as i32 + 1;
    let step = (2 * most / POWERS).max(1);
    let powers = (-most..=most).filter(|k| k % step == 0).map(|k| 10f64.powi(k));
    let mean = points.x.iter().sum::<f64>() / points.x.len() as f64;
    let mut values: Vec<f64> = powers.flat_map(|v| [v, -v]).chain([mean]).collect();
    values.retain(|v| v.is_finite() && *v != 0.0);
    values
}

/// Returns some of the points, from the whole range.
fn thinned(points: &Points) -> Points {
    let step = points.x.len().div_ceil(SAMPLE).max(1);
    let some = |v: &[f64]| -> Vec<f64> { v.iter().step_by(step).copied().collect() };
    Points { x: some(&points.x), y: some(&points.y), sigma: points.sigma.as_deref().map(some) }
}

/// Returns the start values with the smallest χ, of which the parameters in which the formula is linear are solved for. The
/// values of two parameters are tried together, since times and exponents depend on each other.
fn best(f: &Formula, points: &Points, base: &[f64], free: &[usize], linear: &[bool], values: &[f64]) -> Vec<Vec<f64>> {
    let mut found: Vec<(f64, Vec<f64>)> = vec![];
    let pairs: Vec<[usize; 2]> = match free {
        [one] => vec![[*one; 2]],
        _ => free.iter().enumerate().flat_map(|(n, i)| free[n + 1..].iter().map(move |j| [*i, *j])).collect(),
    };
    for [i, j] in pairs {
        let from = found.first().map_or(base, |(_, start)| start.as_slice()).to_vec();
        for a in values {
            let others = if i == j { std::slice::from_ref(a) } else { values };
            for b in others {
                let mut start = from.clone();
                (start[i], start[j]) = (*a, *b);
                let Some(solved) = solve_linear(f, points, &start, linear) else { continue };
                let chi = length(&f.residuals(points, &solved));
                if chi.is_finite() {
                    found.push((chi, solved));
                }
            }
        }
        found.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        found.truncate(FITS);
    }
    found.into_iter().map(|(_, start)| start).collect()
}
