//! The Lennard-Jones parameters of all pairs of types that are present.

use crate::forcefield::ForceField;
use crate::source::At;
use crate::text::number;
use crate::topology::Topology;
use galamost_plugin_api::error::InputError;

/// Returns the rows of `LennardJones`.
///
/// # Errors
/// Returns an error for each pair without a Lennard-Jones potential of its parameters.
pub fn rows(topology: &Topology) -> Result<Vec<String>, Vec<InputError>> {
    let types = topology.types();
    let (mut rows, mut errors) = (vec![], vec![]);
    for (k, a) in types.iter().enumerate() {
        for b in &types[k..] {
            match row(&topology.field, a, b) {
                Ok(row) => rows.push(format!("({a:?}, {b:?}): {row}")),
                Err(message) => {
                    let at = topology.blocks.first().map(|b| b.at).unwrap_or_default();
                    errors.push(topology.source.error(at, format!("atom types {a} and {b}: {message}")));
                }
            }
        }
    }
    if errors.is_empty() { Ok(rows) } else { Err(errors) }
}

/// Pairs that a remark names.
const SHOWN: usize = 5;

/// Returns a remark about pairs that `[ nonbond_params ]` lacks, in force fields whose types have no parameters, such as those of
/// Martini. Types without mass and without any row, such as virtual sites that carry bonds only, are left out.
pub fn missing_rows(topology: &Topology) -> Option<(At, String)> {
    let (types, field) = (topology.types(), &topology.field);
    let of_type = |name: &str| field.atom_types.get(name);
    if types.iter().any(|t| of_type(t).is_some_and(|t| t.parameters != [0.0; 2])) {
        return None;
    }
    let idle =
        |a: &&str| of_type(a).is_some_and(|t| t.mass == 0.0) && types.iter().all(|b| field.pair_of(a, b).is_none());
    let types: Vec<&str> = types.iter().copied().filter(|a| !idle(a)).collect();
    let pairs = types.iter().enumerate().flat_map(|(k, a)| types[k..].iter().map(move |b| (*a, *b)));
    let missing: Vec<String> =
        pairs.filter(|(a, b)| field.pair_of(a, b).is_none()).map(|(a, b)| format!("{a} {b}")).collect();
    let more = match missing.len().saturating_sub(SHOWN) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let shown = missing.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    let remark = format!("No interaction of these pairs, which have no row in [ nonbond_params ]: {shown}{more}.");
    (!missing.is_empty()).then(|| (topology.blocks.first().map(|b| b.at).unwrap_or_default(), remark))
}

/// Returns the parameters of a pair of types, in the units of `[ atomtypes ]`, and whether they follow from those of both types.
fn parameters(field: &ForceField, a: &str, b: &str) -> ([f64; 2], bool) {
    let of_type = |name: &str| field.atom_types.get(name).map(|t| t.parameters).unwrap_or_default();
    if let Some(given) = field.pair_of(a, b) {
        return (given, false);
    }
    let ([s, e], [t, f]) = (of_type(a), of_type(b));
    if a == b && field.rule != Some(1) {
        return ([s, e], false);
    }
    // a negative σ is one without attraction
    let sign = if s < 0.0 || t < 0.0 { -1.0 } else { 1.0 };
    let first = match field.rule {
        Some(1) => (s * t).sqrt(),
        Some(2) => sign * (0.5 * (s.abs() + t.abs())),
        _ => sign * (s * t).abs().sqrt(),
    };
    ([first, (e * f).sqrt()], true)
}

/// Returns C₆ and C₁₂ of a pair of types.
pub fn powers_of(field: &ForceField, a: &str, b: &str) -> [f64; 2] {
    field.powers(parameters(field, a, b).0)
}

/// Returns the row of a pair of types.
fn row(field: &ForceField, a: &str, b: &str) -> Result<String, String> {
    match (field.rule, parameters(field, a, b)) {
        (Some(1), ([c6, c12], _)) => powers(c6, c12),
        (_, ([sigma, epsilon], true)) => lennard_jones(sigma, epsilon, number),
        (_, ([sigma, epsilon], false)) => lennard_jones(sigma, epsilon, |x| format!("{x:?}")),
    }
}

/// Returns the row of U = C₁₂/r¹² − C₆/r⁶.
fn powers(c6: f64, c12: f64) -> Result<String, String> {
    let valid = c6 >= 0.0 && c12 >= 0.0 && (c6 == 0.0 || c12 > 0.0);
    if !valid {
        return Err(format!("C6 = {c6}, C12 = {c12} is no Lennard-Jones potential: both must be positive, or C6 0"));
    }
    if c12 == 0.0 {
        return Ok("None".into());
    }
    if c6 == 0.0 {
        return Ok(format!("(epsilon: 1.0, sigma: {}, alpha: 0.0)", number((c12 / 4.0).powf(1.0 / 12.0))));
    }
    lennard_jones((c12 / c6).powf(1.0 / 6.0), c6 * c6 / (4.0 * c12), number)
}

/// Returns the row of σ and ε. A negative σ is one without attraction, as in GROMACS.
fn lennard_jones(sigma: f64, epsilon: f64, text: impl Fn(f64) -> String) -> Result<String, String> {
    if epsilon < 0.0 || !epsilon.is_finite() {
        return Err(format!("epsilon is {epsilon}; it must not be negative"));
    }
    if epsilon == 0.0 || sigma == 0.0 {
        return Ok("None".into());
    }
    let alpha = if sigma < 0.0 { ", alpha: 0.0" } else { "" };
    Ok(format!("(epsilon: {}, sigma: {}{alpha})", text(epsilon), text(sigma.abs())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_become_sigma_and_epsilon() {
        // ε = 5, σ = 1/2: 4εσ⁶ = 0.3125, 4εσ¹² = 0.0048828125
        assert_eq!(powers(0.3125, 0.0048828125), Ok("(epsilon: 5.0, sigma: 0.5)".into()));
        assert_eq!(powers(0.0, 0.0), Ok("None".into()));
        assert!(powers(1.0, 0.0).is_err() && powers(-1.0, 1.0).is_err() && powers(f64::NAN, 1.0).is_err());
        // 4 · 1 · σ¹² = 4 · 2⁻¹²
        assert_eq!(powers(0.0, 4.0 / 4096.0), Ok("(epsilon: 1.0, sigma: 0.5, alpha: 0.0)".into()));
        assert_eq!(lennard_jones(-0.5, 2.0, number), Ok("(epsilon: 2.0, sigma: 0.5, alpha: 0.0)".into()));
    }
}
