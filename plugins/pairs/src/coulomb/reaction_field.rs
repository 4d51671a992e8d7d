//! Electrostatics with a reaction field.

use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{FromValue, Value};
use galamost_plugin_api::prelude::*;

/// Relative permittivity, possibly infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Permittivity {
    Infinite,
    Finite(f64),
}

impl FromValue for Permittivity {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match (value.text(), value.parse()) {
            ("Infinite", _) => Some(Self::Infinite),
            (_, Ok(x)) => Some(Self::Finite(x)),
            (text, Err(_)) => {
                errors.push(value.error(format!("expected {}, found `{text}`", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "a number or `Infinite`".into()
    }
    fn each_number(&self, f: &mut dyn FnMut(f64)) {
        if let Self::Finite(x) = self {
            f(*x);
        }
    }
}

/// Settings of the component.
#[derive(Clone, Debug, Params)]
pub struct ReactionFieldSettings {
    /// Coulomb constant f = 1/4πε₀: the energy of two unit charges at unit distance in vacuum. It is 1 in reduced units
    /// and 138.935458 for kJ/mol, nm and elementary charges.
    #[param(default = 1.0, unit = "energy length/charge²", above = 0.0)]
    f: f64,
    /// Relative permittivity ε_r inside the cutoff.
    #[param(default = 1.0, above = 0.0)]
    epsilon_r: f64,
    /// Relative permittivity ε_rf beyond the cutoff.
    #[param(default = Permittivity::Infinite, above = 0.0)]
    epsilon_rf: Permittivity,
}

/// Parameters of one pair of types: only its cutoff.
#[derive(Clone, Debug, Params)]
pub struct ReactionFieldInput {}

/// Coefficients f/ε_r and k_rf r_cut³.
#[derive(Debug, PairParams)]
pub struct ReactionField<real> {
    prefactor: real,
    k: real,
}

impl RowInput for ReactionFieldInput {
    type Settings = ReactionFieldSettings;
    type Row = ReactionField<f64>;
    fn row(&self, s: &ReactionFieldSettings) -> std::result::Result<ReactionField<f64>, String> {
        let k = match s.epsilon_rf {
            Permittivity::Infinite => 0.5,
            Permittivity::Finite(rf) => (rf - s.epsilon_r) / (2.0 * rf + s.epsilon_r),
        };
        Ok(ReactionField { prefactor: s.f / s.epsilon_r, k })
    }
    fn default_parameters() -> Option<Self> {
        Some(Self {})
    }
}

/// Reaction-field electrostatics: U(r) = (f/ε_r) q_i q_j [1/r + k_rf r² − c_rf], r < r_cut.
///
/// k_rf = (ε_rf − ε_r)/(2ε_rf + ε_r)/r_cut³, or 1/2r_cut³ for ε_rf = `Infinite`; c_rf = 1/r_cut + k_rf r_cut².
/// F = (f/ε_r) q_i q_j [1/r² − 2k_rf r] e, e = r_ij/r. The energy vanishes at r_cut; with infinite ε_rf the force does too.
///
/// The initial state must provide charges. `pairs` is optional; use it to set cutoffs of individual type pairs.
///
/// The sum covers pairs inside the cutoff. It contains neither the constant self-energy −(f/2ε_r) c_rf Σq² nor excluded
/// pairs. GROMACS has both; for excluded pairs within the cutoff, `galamost convert` adds (f/ε_r) q_i q_j [k_rf r² − c_rf] as bonds
/// to pipelines of its topologies.
///
/// Reference: I. G. Tironi et al., J. Chem. Phys. 102 (1995) 5451, doi:10.1063/1.469273.
///
/// ```ron
/// ReactionField(r_cut: 3.0, epsilon_r: 2.0, epsilon_rf: 78.5, pairs: {
///     ("A", "A"): (),
///     ("A", "B"): (r_cut: 2.5),
///     ("B", "B"): (),
/// })
/// ```
#[pair_potential("ReactionField", input = ReactionFieldInput)]
fn reaction_field(r2: real, r_cut: real, charge_i: real, charge_j: real, p: &ReactionField<real>) -> (real, real) {
    let inv = r2.rsqrt();
    let inv_cut = 1.0 / r_cut;
    let x2 = r2 * inv_cut * inv_cut;
    let qq = p.prefactor * charge_i * charge_j;
    let f = inv * inv * inv - 2.0 * p.k * inv_cut * inv_cut * inv_cut;
    (qq * f, qq * (inv + (p.k * x2 - p.k - 1.0) * inv_cut))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(epsilon_r: f64, epsilon_rf: Permittivity) -> ReactionField<f64> {
        ReactionFieldInput {}.row(&ReactionFieldSettings { f: 1.0, epsilon_r, epsilon_rf }).expect("valid")
    }

    #[test]
    fn energy_and_force_at_the_cutoff() {
        let (f, u) = reaction_field(6.25, 2.5, 1.0, -2.0, &row(1.0, Permittivity::Infinite));
        assert!(f.abs() < 1e-15 && u.abs() < 1e-15, "{f} {u}");
        let (f, u) = reaction_field(6.25, 2.5, 1.0, -2.0, &row(2.0, Permittivity::Finite(80.0)));
        assert!(f < -1e-4 && u.abs() < 1e-15, "{f} {u}");
        // the same permittivity on both sides: shifted Coulomb
        let (f, u) = reaction_field(4.0, 2.5, 1.0, 1.0, &row(2.0, Permittivity::Finite(2.0)));
        assert!((f * 2.0 - 0.125).abs() < 1e-15 && (u - 0.5 * (0.5 - 0.4)).abs() < 1e-15, "{f} {u}");
    }
}
