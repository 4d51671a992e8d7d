//! Energies of bonds, angles, and pairs that decide reactions.

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

/// Angle energy U(θ) = k (θ − θ0)², angles in radians.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AngleEnergy {
    k: f64,
    theta0: f64,
}

impl AngleEnergy {
    /// Returns U(θ).
    pub fn at(self, theta: f64) -> f64 {
        self.k * (theta - self.theta0) * (theta - self.theta0)
    }

    /// An energy with θ0 in radians.
    #[cfg(test)]
    pub fn new(k: f64, theta0: f64) -> Self {
        Self { k, theta0 }
    }
}

impl FromValue for AngleEnergy {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        if value.name() != Some("Harmonic") {
            errors.push(value.error(format!("expected {}", Self::describe())));
            return None;
        }
        let mut fields = Fields::new(value, errors)?;
        let k = fields.required("k", Range { at_least: 0.0, ..Range::ANY });
        let theta0 = fields.required("theta0_deg", Range { at_least: 0.0, at_most: 180.0, ..Range::ANY });
        fields.finish();
        let (k, theta0): (f64, f64) = (k?, theta0?);
        Some(Self { k, theta0: theta0.to_radians() })
    }
    fn describe() -> String {
        "`Harmonic(k: 10.0, theta0_deg: 180.0)`, U = k (θ − θ0)², θ in radians".into()
    }
}

/// Energy U(r) of two particles without a bond: Lennard-Jones, cut and shifted to 0 at `r_cut`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairEnergy {
    epsilon: f64,
    sigma: f64,
    r_cut: f64,
    /// U of the uncut potential at `r_cut`.
    shift: f64,
}

impl PairEnergy {
    fn new(epsilon: f64, sigma: f64, r_cut: f64) -> Self {
        let uncut = Self { epsilon, sigma, r_cut: f64::INFINITY, shift: 0.0 };
        let shift = if r_cut.is_finite() { uncut.at(r_cut) } else { 0.0 };
        Self { r_cut, shift, ..uncut }
    }

    /// The potential of Weeks, Chandler, and Andersen.
    pub fn wca(epsilon: f64, sigma: f64) -> Self {
        Self::new(epsilon, sigma, 2f64.powf(1.0 / 6.0) * sigma)
    }

    /// Returns U(r).
    pub fn at(self, r: f64) -> f64 {
        if r >= self.r_cut {
            return 0.0;
        }
        let s6 = (self.sigma / r).powi(6);
        4.0 * self.epsilon * s6 * (s6 - 1.0) - self.shift
    }
}

impl FromValue for PairEnergy {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let name = value.name();
        if !matches!(name, Some("Wca" | "LennardJones")) {
            errors.push(value.error(format!("expected {}", Self::describe())));
            return None;
        }
        let above = Range { above: 0.0, ..Range::ANY };
        let mut fields = Fields::new(value, errors)?;
        let epsilon = fields.required("epsilon", Range { at_least: 0.0, ..Range::ANY });
        let sigma = fields.required("sigma", above);
        let r_cut = if name == Some("Wca") { Some(0.0) } else { fields.or("r_cut", above, || f64::INFINITY) };
        fields.finish();
        let (epsilon, sigma, r_cut) = (epsilon?, sigma?, r_cut?);
        Some(if name == Some("Wca") { Self::wca(epsilon, sigma) } else { Self::new(epsilon, sigma, r_cut) })
    }
    fn describe() -> String {
        "`Wca(epsilon: 1.0, sigma: 1.0)`, or `LennardJones(epsilon: 1.0, sigma: 1.0, r_cut: 2.5)`, \
         U = 4 epsilon [(sigma/r)¹² − (sigma/r)⁶], shifted to 0 at r_cut if given"
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
        assert!((AngleEnergy::new(3.0, 1.0).at(1.5) - 0.75).abs() < 1e-15);
        let wca = PairEnergy::wca(2.0, 1.5);
        assert!((wca.at(1.5) - 2.0).abs() < 1e-14 && wca.at(1.69) == 0.0 && wca.at(0.0) == f64::INFINITY);
        let cut = PairEnergy::new(1.0, 1.0, 2.5);
        assert!((cut.at(1.0) - 4.0 * (2.5f64.powi(-6) - 2.5f64.powi(-12))).abs() < 1e-15 && cut.at(2.5) == 0.0);
        assert!((PairEnergy::new(1.0, 1.0, f64::INFINITY).at(2f64.powf(1.0 / 6.0)) + 1.0).abs() < 1e-14);
    }
}
