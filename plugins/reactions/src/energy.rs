//! Bond energy for the Metropolis criterion of reactions.

use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{Fields, FromValue, Range, Value};

/// Bond energy U(r), with the energy `bound` released by its formation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BondEnergy {
    /// k (r − r0)² − bound.
    Harmonic { k: f64, r0: f64, bound: f64 },
    /// −½ k R0² ln[1 − (r/R0)²] − bound.
    Fene { k: f64, r_max: f64, bound: f64 },
}

impl BondEnergy {
    /// Returns U(r); infinite if the bond would be too long.
    pub fn at(self, r: f64) -> f64 {
        match self {
            Self::Harmonic { k, r0, bound } => k * (r - r0) * (r - r0) - bound,
            Self::Fene { k, r_max, bound } => {
                let left = 1.0 - (r / r_max) * (r / r_max);
                if left > 0.0 { -0.5 * k * r_max * r_max * left.ln() - bound } else { f64::INFINITY }
            }
        }
    }
}

impl FromValue for BondEnergy {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let name = value.name();
        if !matches!(name, Some("Harmonic" | "Fene")) {
            errors.push(value.error(format!("expected {}", Self::describe())));
            return None;
        }
        let above = Range { above: 0.0, ..Range::ANY };
        let not_negative = Range { at_least: 0.0, ..Range::ANY };
        let mut fields = Fields::new(value, errors)?;
        let k = fields.required("k", not_negative);
        let length =
            if name == Some("Fene") { fields.required("R0", above) } else { fields.required("r0", not_negative) };
        let bound = fields.or("bound", Range::ANY, || 0.0);
        fields.finish();
        let (k, length, bound) = (k?, length?, bound?);
        Some(match name {
            Some("Fene") => Self::Fene { k, r_max: length, bound },
            _ => Self::Harmonic { k, r0: length, bound },
        })
    }
    fn describe() -> String {
        "`Harmonic(k: 10.0, r0: 1.0, bound: 0.0)`, U = k (r − r0)² − bound, or `Fene(k: 10.0, R0: 1.5, bound: 0.0)`, \
         U = −½ k R0² ln[1 − (r/R0)²] − bound"
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn energies() {
        let harmonic = BondEnergy::Harmonic { k: 2.0, r0: 1.0, bound: 3.0 };
        assert!((harmonic.at(1.5) + 2.5).abs() < 1e-15);
        let fene = BondEnergy::Fene { k: 30.0, r_max: 1.5, bound: 0.0 };
        assert!((fene.at(0.75) - 33.75 * (4.0f64 / 3.0).ln()).abs() < 1e-12);
        assert!(fene.at(1.5) == f64::INFINITY && fene.at(2.0) == f64::INFINITY);
    }
}
