//! Rows of a force-field file as rows of components.

use super::sections::{ForceField, Row, Section};
use galamost_gromacs::number;
use galamost_plugin_api::error::InputError;
use galamost_plugin_api::snapshot::Snapshot;
use std::collections::BTreeMap;

/// A component with its rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    pub name: &'static str,
    /// Fields before the rows.
    pub settings: String,
    /// The field with the rows.
    pub field: &'static str,
    pub comment: &'static str,
    pub rows: Vec<String>,
}

/// The interactions of a structure.
#[derive(Debug, Default)]
pub struct Interactions {
    pub components: Vec<Component>,
    /// Rows of the field `types` of `Sites`.
    pub sites: Vec<String>,
    /// k of each bond type.
    pub stiffness: BTreeMap<String, f64>,
    pub errors: Vec<InputError>,
}

/// Prefix of bond types that `GalamostXml` makes of constraints.
pub const CONSTRAINT: &str = "constraint-";
/// Prefix of improper types that `GalamostXml` makes of virtual sites.
pub const SITE: &str = "vsite-";

/// What a row becomes: component, settings, field, comment, parameters.
type Terms = Vec<(&'static str, &'static str, &'static str, &'static str, String)>;

impl Interactions {
    /// Collects the bonded interactions of the types that a structure has.
    pub fn of(field: &ForceField, s: &Snapshot) -> Self {
        let mut all = Self::default();
        let (constraints, plain): (Vec<&String>, Vec<&String>) =
            s.bond_types.iter().partition(|t| t.starts_with(CONSTRAINT));
        all.section(field, "bond_params", &plain, "", bond);
        all.section(field, "angle_params", &s.angle_types.iter().collect::<Vec<_>>(), "", angle);
        all.section(field, "dihedral_params", &s.dihedral_types.iter().collect::<Vec<_>>(), "", dihedral);
        all.section(field, "constraint_params", &constraints, CONSTRAINT, constraint);
        let sites: Vec<&String> = s.improper_types.iter().filter(|t| t.starts_with(SITE)).collect();
        all.section(field, "vsite_params", &sites, SITE, site);
        all
    }

    /// Adds the rows of a section, in the order of `types`, whose names begin with `prefix`.
    fn section(
        &mut self,
        field: &ForceField,
        name: &str,
        types: &[&String],
        prefix: &str,
        terms: fn(&[f64]) -> Result<Terms, String>,
    ) {
        let section = field.section(name);
        for kind in types {
            let plain = &kind[prefix.len()..];
            let row = match find(field, section, plain) {
                Ok(Some(row)) => row,
                Ok(None) => {
                    let message = format!("<{name}> has no row for the type {plain}");
                    self.errors.push(InputError::in_file(&field.path, section.map(|s| s.at), message));
                    continue;
                }
                Err(e) => {
                    self.errors.push(e);
                    continue;
                }
            };
            let made = field.numbers(row, 1).and_then(|numbers| {
                if name == "bond_params" {
                    self.stiffness.insert(plain.into(), numbers.first().copied().unwrap_or_default());
                }
                terms(&numbers).map_err(|m| field.error(row.at(), m))
            });
            match made {
                Ok(made) => made.into_iter().for_each(|term| self.add(kind, term)),
                Err(e) => self.errors.push(e),
            }
        }
    }

    /// Adds a row to its component.
    fn add(
        &mut self,
        kind: &str,
        (name, settings, field, comment, row): (&'static str, &'static str, &'static str, &'static str, String),
    ) {
        let row = format!("{kind:?}: {row}");
        if name == "Sites" {
            self.sites.push(row);
            return;
        }
        // terms of one type are in different components of the same name
        let taken = |c: &Component| c.rows.iter().any(|r| r.starts_with(&format!("{kind:?}: ")));
        let same = |c: &&mut Component| c.name == name && c.comment == comment && !taken(c);
        match self.components.iter_mut().find(same) {
            Some(component) => component.rows.push(row),
            None => {
                self.components.push(Component { name, settings: settings.into(), field, comment, rows: vec![row] });
            }
        }
    }
}

/// Returns the row of a type.
///
/// # Errors
/// Returns an error if the section has two different rows.
fn find<'a>(field: &ForceField, section: Option<&'a Section>, name: &str) -> Result<Option<&'a Row>, InputError> {
    let mut rows = section.into_iter().flat_map(|s| &s.rows).filter(|r| r.name() == name);
    let Some(first) = rows.next() else { return Ok(None) };
    let texts = |row: &Row| row.words.iter().map(|w| w.text.clone()).collect::<Vec<_>>();
    match rows.find(|r| texts(r) != texts(first)) {
        None => Ok(Some(first)),
        Some(other) => {
            let line = first.at().line;
            Err(field.error(other.at(), format!("the type {name} has other parameters in line {line}")))
        }
    }
}

/// Checks the number of values of a row, and that the last one is the function.
fn values<const N: usize>(numbers: &[f64], what: &str) -> Result<[f64; N], String> {
    let values = numbers.try_into();
    values.map_err(|_| format!("expected {} values after the type ({what}), found {}", N, numbers.len()))
}

fn not_negative(x: f64, what: &str) -> Result<f64, String> {
    if x < 0.0 { Err(format!("{what} is {x}; it must not be negative")) } else { Ok(x) }
}

fn function(x: f64, section: &str, known: &str) -> String {
    format!("function {x} of <{section}> is not supported; the functions are {known}")
}

fn bond(numbers: &[f64]) -> Result<Terms, String> {
    let [k, r0, f] = values(numbers, "k, r0, function")?;
    if f != 1.0 {
        return Err(function(f, "bond_params", "1"));
    }
    let row = format!("(k: {:?}, r0: {:?})", not_negative(k, "k")?, not_negative(r0, "the bond length")?);
    Ok(vec![("HarmonicBond", "convention: Half, ", "bonds", "", row)])
}

fn angle(numbers: &[f64]) -> Result<Terms, String> {
    let name = match numbers.last() {
        Some(1.0) => "HarmonicAngle",
        Some(2.0) => "CosineSquaredAngle",
        Some(5.0) => return Err("function 5 (Urey-Bradley) of <angle_params> is not supported".into()),
        Some(f) => return Err(function(*f, "angle_params", "1, 2")),
        None => "",
    };
    let [k, theta, _] = values(numbers, "k, theta0 in degrees, function")?;
    if !(0.0..=180.0).contains(&theta) {
        return Err(format!("the angle {theta} is not in 0 to 180°"));
    }
    let row = format!("(k: {:?}, theta0_deg: {theta:?})", not_negative(k, "k")?);
    Ok(vec![(name, "convention: Half, ", "angles", "", row)])
}

/// Returns an angle between −180° and 180°.
fn within_half_turn(x: f64) -> f64 {
    if (-180.0..=180.0).contains(&x) { x } else { x - 360.0 * (x / 360.0).round() }
}

fn dihedral(numbers: &[f64]) -> Result<Terms, String> {
    match numbers.last() {
        Some(2.0) => {
            let [phi, k, _] = values(numbers, "phi0 in degrees, k, function")?;
            let row = format!("(k: {:?}, phi0_deg: {:?})", not_negative(k, "k")?, within_half_turn(phi));
            let comment = "harmonic impropers of GROMACS, ½ k (φ − φ₀)²";
            Ok(vec![("HarmonicDihedral", "convention: Half, ", "dihedrals", comment, row)])
        }
        Some(3.0) => {
            let [c0, c1, c2, c3, c4, c5, _] = values(numbers, "c0 to c5, function")?;
            // PyGAMD 1.4.9 adds Cₙ cosⁿφ; the component has cos(φ − 180°) = −cos φ
            let [c1, c3, c5] = [c1, c3, c5].map(|c| 0.0 - c);
            let row = format!("(c0: {c0:?}, c1: {c1:?}, c2: {c2:?}, c3: {c3:?}, c4: {c4:?}, c5: {c5:?})");
            let comment = "Σ Cₙ cosⁿφ, as PyGAMD; for coefficients of GROMACS change the signs of c1, c3, c5";
            Ok(vec![("RyckaertBellemans", "", "dihedrals", comment, row)])
        }
        Some(5.0) => {
            let [k1, k2, k3, k4, _] = values(numbers, "k1 to k4, function")?;
            let row = format!("(k1: {k1:?}, k2: {k2:?}, k3: {k3:?}, k4: {k4:?})");
            Ok(vec![("OplsDihedral", "", "dihedrals", "", row)])
        }
        Some(4.0) => {
            let [phase, k, rest @ .., _] = values::<9>(numbers, "phase, k, six zeros, function")?;
            // PyGAMD 1.4.8 reads a phase and k of cos 2φ; older versions read four amplitudes and four phases
            if rest == [0.0; 6] { cosines([0.0, k, 0.0, 0.0], [0.0, phase, 0.0, 0.0]) } else { four(numbers) }
        }
        Some(9.0) => four(numbers),
        Some(f) => Err(function(*f, "dihedral_params", "2, 3, 4, 5, 9")),
        None => Err("expected parameters and a function after the type".into()),
    }
}

fn four(numbers: &[f64]) -> Result<Terms, String> {
    let [k1, k2, k3, k4, d1, d2, d3, d4, _] = values(numbers, "k1 to k4, delta1 to delta4 in degrees, function")?;
    cosines([k1, k2, k3, k4], [d1, d2, d3, d4])
}

/// Returns the terms k [1 + cos(nφ − δ)] that are not 0.
fn cosines(k: [f64; 4], delta: [f64; 4]) -> Result<Terms, String> {
    let term = |row| ("PeriodicDihedral", "", "dihedrals", "k [1 + cos(nφ − δ)]", row);
    let row = |n: usize| format!("(k: {:?}, n: {}, delta_deg: {:?})", k[n], n + 1, within_half_turn(delta[n]));
    let mut terms: Terms = (0..4).filter(|n| k[*n] != 0.0).map(|n| term(row(n))).collect();
    if terms.is_empty() {
        terms.push(term("None".into()));
    }
    Ok(terms)
}

fn constraint(numbers: &[f64]) -> Result<Terms, String> {
    let [length, f] = values(numbers, "length, function")?;
    if f != 1.0 && f != 2.0 {
        return Err(function(f, "constraint_params", "1, 2"));
    }
    if length <= 0.0 {
        return Err(format!("the length of this constraint is {length}; it must be above 0"));
    }
    Ok(vec![("Constraints", "", "types", "", format!("{length:?}"))])
}

fn site(numbers: &[f64]) -> Result<Terms, String> {
    let [a, b, c, f] = values(numbers, "a, b, c, function")?;
    let row = match f {
        1.0 if c == 0.0 => format!("Three(a: {a:?}, b: {b:?})"),
        1.0 => return Err(format!("c is {c}; function 1 of <vsite_params> has a and b, and c is 0")),
        4.0 => format!("ThreeOut(a: {a:?}, b: {b:?}, c: {c:?})"),
        _ => return Err(function(f, "vsite_params", "1, 4")),
    };
    Ok(vec![("Sites", "", "", "", row)])
}

/// ε, σ and α of a pair of types.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    pub epsilon: f64,
    pub sigma: f64,
    pub alpha: f64,
}

impl Pair {
    /// Returns the row of `LennardJones`.
    pub fn row(&self) -> String {
        if self.epsilon == 0.0 || self.sigma == 0.0 {
            return "None".into();
        }
        let alpha = if self.alpha == 1.0 { String::new() } else { format!(", alpha: {:?}", self.alpha) };
        format!("(epsilon: {:?}, sigma: {:?}{alpha})", self.epsilon, self.sigma)
    }

    /// Returns the row of the formula with C₆, C₁₂ and the product of charges `qq`.
    pub fn formula_row(&self, qq: f64) -> String {
        let c12 = 4.0 * self.epsilon * self.sigma.powi(12);
        let c6 = 4.0 * self.epsilon * self.alpha * self.sigma.powi(6);
        // no negative zero
        format!("(c12: {}, c6: {}, qq: {})", number(c12), number(c6), number(qq + 0.0))
    }
}

/// The parameters of pairs.
#[derive(Clone, Debug, PartialEq)]
pub enum Pairs {
    /// Of each pair of types: `<pair_params>`.
    LennardJones(Vec<([String; 2], Pair)>),
    /// σ and λ of each type: `<ah_params>`.
    AshbaughHatch(Vec<(String, [f64; 2])>),
}

/// Returns the parameters of all pairs of types that have particles.
///
/// # Errors
/// Returns all rows that are invalid or missing.
pub fn pairs(field: &ForceField, types: &[&String]) -> Result<Pairs, Vec<InputError>> {
    let section = field.section("pair_params");
    let of_types = field.section("ah_params");
    if let (Some(_), Some(other)) = (section, of_types) {
        return Err(vec![
            field.error(other.at, "<pair_params> and <ah_params> are potentials of the same pairs; remove one"),
        ]);
    }
    let mut errors = vec![];
    let mut keep = |e: InputError| errors.push(e);
    let found = if of_types.is_some() {
        let of = |name: &&String| Some((name.to_string(), of_type(field, of_types, name).map_err(&mut keep).ok()?));
        Pairs::AshbaughHatch(types.iter().filter_map(of).collect())
    } else {
        let both = types.iter().enumerate().flat_map(|(k, a)| types[k..].iter().map(move |b| (*a, *b)));
        let of = |(a, b): (&String, &String)| {
            Some(([a.clone(), b.clone()], pair(field, section, a, b).map_err(&mut keep).ok()?))
        };
        Pairs::LennardJones(both.filter_map(of).collect())
    };
    if errors.is_empty() { Ok(found) } else { Err(errors) }
}

/// Returns σ and λ of a type.
fn of_type(field: &ForceField, section: Option<&Section>, name: &str) -> Result<[f64; 2], InputError> {
    let row = find(field, section, name)?.ok_or_else(|| {
        InputError::in_file(&field.path, section.map(|s| s.at), format!("<ah_params> has no row for the type {name}"))
    })?;
    let [sigma, lambda] = values(&field.numbers(row, 1)?, "sigma, lambda").map_err(|m| field.error(row.at(), m))?;
    if sigma <= 0.0 || lambda < 0.0 {
        let message = format!("sigma is {sigma} and lambda {lambda}; they must be above 0, and at least 0");
        return Err(field.error(row.at(), message));
    }
    Ok([sigma, lambda])
}

fn pair(field: &ForceField, section: Option<&Section>, a: &str, b: &str) -> Result<Pair, InputError> {
    let mut first: Option<(&Row, Pair)> = None;
    for row in section.into_iter().flat_map(|s| &s.rows) {
        let [x, y] = [0, 1].map(|k| row.words.get(k).map_or("", |w| w.text.as_str()));
        if [x, y] != [a, b] && [x, y] != [b, a] {
            continue;
        }
        let numbers = field.numbers(row, 2)?;
        let [epsilon, sigma, alpha] = numbers[..].try_into().map_err(|_| {
            let message =
                format!("expected 3 values after both types (epsilon, sigma, alpha), found {}", numbers.len());
            field.error(row.at(), message)
        })?;
        not_negative(epsilon, "epsilon")
            .and_then(|_| not_negative(sigma, "sigma"))
            .map_err(|m| field.error(row.at(), m))?;
        let this = Pair { epsilon, sigma, alpha };
        if let Some((before, _)) = first.filter(|(_, p)| *p != this) {
            let line = before.at().line;
            return Err(field.error(row.at(), format!("the pair {a} {b} has other parameters in line {line}")));
        }
        first = Some((row, this));
    }
    first.map(|(_, p)| p).ok_or_else(|| {
        let message = format!("<pair_params> has no row for the pair {a} {b}");
        InputError::in_file(&field.path, section.map(|s| s.at), message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_become_rows() {
        let rows = |f: fn(&[f64]) -> Result<Terms, String>, x: &[f64]| {
            f(x).map(|all| all.into_iter().map(|t| format!("{}({}{})", t.0, t.1, t.4)).collect::<Vec<_>>())
        };
        assert_eq!(
            rows(bond, &[1250.0, 0.47, 1.0]).expect("valid"),
            ["HarmonicBond(convention: Half, (k: 1250.0, r0: 0.47))"]
        );
        assert_eq!(
            rows(dihedral, &[-179.7, 50.0, 2.0]).expect("valid"),
            ["HarmonicDihedral(convention: Half, (k: 50.0, phi0_deg: -179.7))"]
        );
        assert_eq!(
            rows(dihedral, &[1.0, 0.0, -0.5, 0.0, 180.0, 0.0, 360.0, 0.0, 9.0]).expect("valid"),
            ["PeriodicDihedral((k: 1.0, n: 1, delta_deg: 180.0))", "PeriodicDihedral((k: -0.5, n: 3, delta_deg: 0.0))"]
        );
        assert_eq!(
            rows(dihedral, &[180.0, 4.6, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 4.0]).expect("valid"),
            ["PeriodicDihedral((k: 4.6, n: 2, delta_deg: 180.0))"]
        );
        assert_eq!(
            rows(dihedral, &[0.0, 4.6, 0.0, 0.0, 0.0, 180.0, 0.0, 0.0, 4.0]).expect("valid"),
            ["PeriodicDihedral((k: 4.6, n: 2, delta_deg: 180.0))"]
        );
        assert_eq!(
            rows(dihedral, &[0.0; 8].iter().copied().chain([9.0]).collect::<Vec<_>>()).expect("valid"),
            ["PeriodicDihedral(None)"]
        );
        assert_eq!(rows(site, &[0.1, 0.2, -0.3, 4.0]).expect("valid"), ["Sites(ThreeOut(a: 0.1, b: 0.2, c: -0.3))"]);
        for (f, x, message) in [
            (bond as fn(&[f64]) -> Result<Terms, String>, &[1.0, 0.5, 2.0][..], "function 2 of <bond_params>"),
            (bond, &[1.0, 0.5], "expected 3 values after the type (k, r0, function), found 2"),
            (bond, &[-1.0, 0.5, 1.0], "k is -1"),
            (angle, &[1.0, 190.0, 1.0], "the angle 190"),
            (angle, &[1.0, 120.0, 2.0, 3.0, 5.0], "Urey-Bradley"),
            (angle, &[1.0, 120.0, 10.0], "function 10 of <angle_params>"),
            (dihedral, &[1.0, 2.0, 1.0], "function 1 of <dihedral_params>"),
            (constraint, &[0.0, 1.0], "must be above 0"),
            (site, &[0.1, 0.2, 0.3, 2.0], "function 2 of <vsite_params>"),
        ] {
            let said = f(x).expect_err(message);
            assert!(said.contains(message), "{message}: {said}");
        }
    }
}
