//! Functions of bonded interactions: the component that computes each, and the row of its parameters.

use crate::text::number;
use galamost_plugin_api::snapshot::LinkList as List;

/// A component with its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    pub list: List,
    pub component: &'static str,
    /// Fields before the rows.
    pub settings: String,
    /// What a comment says about it.
    pub comment: &'static str,
    /// The row of types without this interaction, for formulas, which need a row for every type.
    pub without: Option<&'static str>,
}

impl Form {
    /// Returns the name of the field with the rows.
    pub fn rows(&self) -> &'static str {
        if self.component == "Constraints" { "types" } else { self.list.name() }
    }
}

/// An interaction: its component and its row.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    pub form: Form,
    /// `None`, or the fields of the row.
    pub row: String,
    /// U'' of a bond at its minimum.
    pub stiffness: f64,
}

impl Term {
    fn new(list: List, component: &'static str, settings: &str, comment: &'static str, row: String) -> Self {
        Self { form: Form { list, component, settings: settings.into(), comment, without: None }, row, stiffness: 0.0 }
    }

    /// Returns a bond of which only the exclusion of the pair matters.
    pub fn exclusion() -> Self {
        Self::new(List::Bonds, "HarmonicBond", "convention: Half", "", "None".into())
    }

    /// Returns a harmonic bond U = ½ k (r − b)².
    ///
    /// # Errors
    /// Returns an error if a number is negative.
    pub fn harmonic_bond(b: f64, k: f64) -> Result<Self, String> {
        let row = format!("(k: {}, r0: {})", positive(k, "k")?, positive(b, "the bond length")?);
        Ok(Self { stiffness: k, ..Self::new(List::Bonds, "HarmonicBond", "convention: Half", "", row) })
    }

    /// Returns a constraint of this length.
    ///
    /// # Errors
    /// Returns an error if the length is not positive.
    pub fn constraint(length: f64) -> Result<Self, String> {
        if length > 0.0 {
            Ok(Self::new(List::Bonds, "Constraints", "", "", format!("{length:?}")))
        } else {
            Err(format!("the length of this constraint is {length}; it must be above 0"))
        }
    }

    /// Returns whether the term is a constraint.
    pub fn is_constraint(&self) -> bool {
        self.form.component == "Constraints"
    }

    /// Returns the reaction field of an excluded pair with this product of charges. `settings` is the formula.
    pub fn reaction_field(qq: f64, settings: &str) -> Self {
        let comment = "the reaction field of GROMACS acts on excluded pairs too";
        let mut term = Self::new(List::Bonds, "BondExpression", settings, comment, format!("(qq: {})", number(qq)));
        term.form.without = Some("(qq: 0.0)");
        term
    }

    /// Returns a row of `[ pairs ]` with C₆, C₁₂ and the scaled product of charges. `settings` is the formula.
    ///
    /// # Errors
    /// Returns an error if a number is not finite.
    pub fn pair(powers: [f64; 2], qq: f64, settings: &str) -> Result<Self, String> {
        Self::nonbonded(powers, qq, settings, "[ pairs ] of GROMACS, without cutoff")
    }

    /// Returns the interaction of a pair with a bond that is not excluded. `settings` is the formula.
    ///
    /// # Errors
    /// Returns an error if a number is not finite.
    pub fn not_excluded(powers: [f64; 2], qq: f64, settings: &str) -> Result<Self, String> {
        Self::nonbonded(
            powers,
            qq,
            settings,
            "pairs that have a bond and interact like others; `exclude` leaves them out",
        )
    }

    fn nonbonded([c6, c12]: [f64; 2], qq: f64, settings: &str, comment: &'static str) -> Result<Self, String> {
        if ![c6, c12, qq].iter().all(|x| x.is_finite()) {
            return Err(format!(
                "C6 = {c6}, C12 = {c12} of this pair are no numbers; check the parameters of its types"
            ));
        }
        let row = format!("(c6: {}, c12: {}, qq: {})", number(c6), number(c12), number(qq));
        let mut term = Self::new(List::Bonds, "BondExpression", settings, comment, row);
        term.form.without = Some("(c6: 0.0, c12: 0.0, qq: 0.0)");
        Ok(term)
    }
}

fn positive(x: f64, what: &str) -> Result<String, String> {
    if x < 0.0 { Err(format!("{what} is {x}; it must not be negative")) } else { Ok(format!("{x:?}")) }
}

/// Returns an angle in degrees for a field from 0 to 180.
fn angle(x: f64) -> Result<String, String> {
    if (0.0..=180.0).contains(&x) { Ok(format!("{x:?}")) } else { Err(format!("the angle {x} is not in 0 to 180°")) }
}

/// Returns a phase between −180° and 180°.
fn phase(x: f64) -> String {
    format!("{:?}", if (-180.0..=180.0).contains(&x) { x } else { x - 360.0 * (x / 360.0).round() })
}

/// Returns the multiplicity of a cosine.
fn multiplicity(x: f64) -> Result<u32, String> {
    let valid = x.fract() == 0.0 && (1.0..=12.0).contains(&x);
    valid.then_some(x as u32).ok_or_else(|| format!("the multiplicity {x} is not a whole number from 1 to 12"))
}

/// Returns the number of parameters of a function of `[ bonds ]`, `[ angles ]` or `[ dihedrals ]`.
///
/// # Errors
/// Returns an error if no component computes the function.
pub fn parameters(list: List, function: u32) -> Result<usize, String> {
    let (known, section): (&[(u32, usize)], _) = match list {
        List::Bonds => (&[(1, 2), (2, 2), (6, 2)], "bonds"),
        List::Angles => (&[(1, 2), (2, 2), (10, 2)], "angles"),
        List::Dihedrals | List::Impropers => (&[(1, 3), (2, 2), (3, 6), (4, 3), (9, 3)], "dihedrals"),
    };
    let found = known.iter().find(|(f, _)| *f == function).map(|(_, n)| *n);
    found.ok_or_else(|| {
        let all: Vec<String> = known.iter().map(|(f, _)| f.to_string()).collect();
        format!("function {function} of [ {section} ] is not supported; the functions are {}", all.join(", "))
    })
}

/// Returns the interaction of a function of `[ bonds ]`, `[ angles ]` or `[ dihedrals ]` with its parameters.
///
/// # Errors
/// Returns an error if a parameter is out of range.
pub fn term(list: List, function: u32, p: &[f64]) -> Result<Term, String> {
    let half = "convention: Half";
    match (list, function, p) {
        (List::Bonds, 1 | 6, &[b, k]) => Term::harmonic_bond(b, k),
        (List::Bonds, _, &[b, k]) => {
            positive(k, "k")?;
            // ¼ k (r² − b²)² with s = r − b is k b² s² + k b s³ + ¼ k s⁴
            let [k2, k3, k4] = [k * b * b, k * b, 0.25 * k].map(number);
            let row = format!("(k2: {k2}, k3: {k3}, k4: {k4}, r0: {})", positive(b, "the bond length")?);
            let term = Term::new(List::Bonds, "QuarticBond", "", "GROMOS-96 bonds, ¼ k (r² − b²)²", row);
            Ok(Term { stiffness: 2.0 * k * b * b, ..term })
        }
        (List::Angles, function, &[theta, k]) => {
            let (theta, k) = (angle(theta)?, positive(k, "k")?);
            Ok(match function {
                1 => Term::new(list, "HarmonicAngle", half, "", format!("(k: {k}, theta0_deg: {theta})")),
                2 => Term::new(list, "CosineSquaredAngle", half, "", format!("(k: {k}, theta0_deg: {theta})")),
                _ => Term::new(list, "RestrictedAngle", half, "", format!("(k: {k}, theta0_deg: {theta})")),
            })
        }
        (_, 2, &[phi, k]) => {
            let row = format!("(k: {}, phi0_deg: {})", positive(k, "k")?, phase(phi));
            Ok(Term::new(List::Impropers, "HarmonicImproper", half, "", row))
        }
        (_, 3, &[c0, c1, c2, c3, c4, c5]) => {
            let row = format!("(c0: {c0:?}, c1: {c1:?}, c2: {c2:?}, c3: {c3:?}, c4: {c4:?}, c5: {c5:?})");
            Ok(Term::new(List::Dihedrals, "RyckaertBellemans", "", "", row))
        }
        (_, function, &[phi, k, n]) => {
            let row = format!("(k: {k:?}, n: {}, delta_deg: {})", multiplicity(n)?, phase(phi));
            let (list, component) = match function {
                4 => (List::Impropers, "PeriodicImproper"),
                _ => (List::Dihedrals, "PeriodicDihedral"),
            };
            Ok(Term::new(list, component, "", "", row))
        }
        _ => Err("unexpected number of parameters".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_become_rows() {
        let row = |list, function, p: &[f64]| term(list, function, p).map(|t| (t.form.component, t.row));
        let text = |component, row: &str| Ok((component, row.to_string()));
        assert_eq!(row(List::Bonds, 1, &[0.47, 1250.0]), text("HarmonicBond", "(k: 1250.0, r0: 0.47)"));
        assert_eq!(row(List::Bonds, 2, &[0.5, 100.0]), text("QuarticBond", "(k2: 25.0, k3: 50.0, k4: 25.0, r0: 0.5)"));
        assert_eq!(row(List::Angles, 2, &[120.0, 25.0]), text("CosineSquaredAngle", "(k: 25.0, theta0_deg: 120.0)"));
        assert_eq!(row(List::Dihedrals, 2, &[270.0, 9.0]), text("HarmonicImproper", "(k: 9.0, phi0_deg: -90.0)"));
        assert_eq!(
            row(List::Dihedrals, 9, &[180.0, -2.0, 3.0]),
            text("PeriodicDihedral", "(k: -2.0, n: 3, delta_deg: 180.0)")
        );
        assert_eq!(
            row(List::Dihedrals, 4, &[180.0, 2.0, 2.0]),
            text("PeriodicImproper", "(k: 2.0, n: 2, delta_deg: 180.0)")
        );
        for (list, function, p, message) in [
            (List::Bonds, 1, &[0.47, -1.0][..], "k is -1"),
            (List::Angles, 1, &[190.0, 25.0], "the angle 190"),
            (List::Dihedrals, 1, &[0.0, 1.0, 0.0], "the multiplicity 0"),
        ] {
            assert!(row(list, function, p).expect_err(message).contains(message));
        }
        assert!(parameters(List::Angles, 8).expect_err("unknown").contains("the functions are 1, 2, 10"));
        // U'' of a bond of function 2 at its minimum: 2kb²
        assert_eq!(term(List::Bonds, 2, &[0.5, 100.0]).expect("valid").stiffness, 50.0);
    }
}
