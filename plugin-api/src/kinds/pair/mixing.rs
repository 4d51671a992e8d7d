//! Mixing rules: parameters of unlike types from those of like types.

use crate::error::Errors;
use crate::params::{FromValue, Value};

/// A mixing rule of energies ε and diameters σ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mixing {
    /// σ = (σ₁ + σ₂)/2, ε = √(ε₁ε₂).
    LorentzBerthelot,
    /// σ = √(σ₁σ₂), ε = √(ε₁ε₂).
    Geometric,
    /// σ⁶ = (σ₁⁶ + σ₂⁶)/2, ε = 2√(ε₁ε₂) σ₁³σ₂³/(σ₁⁶ + σ₂⁶).
    SixthPower,
}

const RULES: [(&str, Mixing); 3] = [
    ("LorentzBerthelot", Mixing::LorentzBerthelot),
    ("Geometric", Mixing::Geometric),
    ("SixthPower", Mixing::SixthPower),
];

impl Mixing {
    /// Mixes two diameters, or two other lengths.
    pub fn length(self, [a, b]: [f64; 2]) -> f64 {
        match self {
            Self::LorentzBerthelot => 0.5 * (a + b),
            Self::Geometric => (a * b).sqrt(),
            Self::SixthPower => (0.5 * (a.powi(6) + b.powi(6))).powf(1.0 / 6.0),
        }
    }

    /// Mixes two energies; `sigma` are the diameters.
    pub fn energy(self, [a, b]: [f64; 2], sigma: [f64; 2]) -> f64 {
        let geometric = (a * b).sqrt();
        match self {
            Self::LorentzBerthelot | Self::Geometric => geometric,
            Self::SixthPower => {
                let [x, y] = sigma.map(|s| s.powi(3));
                geometric * (2.0 * x * y / (x * x + y * y))
            }
        }
    }
}

impl FromValue for Mixing {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let found = RULES.iter().find(|(name, _)| *name == value.text()).map(|(_, rule)| *rule);
        if found.is_none() {
            errors.push(value.error(format!("expected {}, found `{}`", Self::describe(), value.text())));
        }
        found
    }
    fn describe() -> String {
        RULES.map(|(name, _)| name).join(" | ")
    }
}

#[cfg(test)]
mod tests {
    use super::Mixing::{Geometric, LorentzBerthelot, SixthPower};

    /// The rules of LAMMPS's `pair_modify mix` for ε = 1 and 4, σ = 1 and 2.
    #[test]
    fn rules_are_those_of_the_literature() {
        // powers may be wrong by a few units in the last place, not always the same ones
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-14, "{a} {b}");
        let mixed = |rule: super::Mixing| (rule.energy([1.0, 4.0], [1.0, 2.0]), rule.length([1.0, 2.0]));
        assert_eq!(mixed(LorentzBerthelot), (2.0, 1.5));
        assert_eq!(mixed(Geometric), (2.0, 2f64.sqrt()));
        let (energy, length) = mixed(SixthPower);
        near(energy, 2.0 * 2.0 * 8.0 / 65.0);
        near(length, 32.5f64.powf(1.0 / 6.0));
        for rule in [LorentzBerthelot, Geometric, SixthPower] {
            near(rule.length([1.3, 1.3]), 1.3);
            near(rule.energy([0.7, 0.7], [1.3, 1.3]), 0.7);
            near(rule.energy([0.3, 0.7], [1.1, 1.3]), rule.energy([0.7, 0.3], [1.3, 1.1]));
        }
    }
}
