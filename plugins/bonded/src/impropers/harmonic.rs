//! Improper potential that is harmonic in φ.

use crate::dihedrals::harmonic::within_half_turn;
use galamost_plugin_api::params::{FromValue, Value};
use galamost_plugin_api::prelude::*;

/// Prefactor, and whether U depends on the sign of φ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ImproperConvention {
    Paper,
    Half,
    Lammps,
    Hoomd,
}

impl FromValue for ImproperConvention {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.text() {
            "Paper" => Some(Self::Paper),
            "Half" => Some(Self::Half),
            "Lammps" => Some(Self::Lammps),
            "Hoomd" => Some(Self::Hoomd),
            text => {
                errors.push(value.error(format!("expected {}, found `{text}`", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "`Paper`, `Half`, `Lammps` or `Hoomd`".into()
    }
}

/// Settings of the component.
#[derive(Clone, Debug, Params)]
pub struct ImproperSettings {
    /// Convention: `Paper` for U = k (φ − φ₀)², `Half` for ½ k (φ − φ₀)², `Lammps` for k (|φ| − φ₀)², `Hoomd` for
    /// ½ k (|φ| − φ₀)².
    #[param(default = ImproperConvention::Paper)]
    convention: ImproperConvention,
}

/// Parameters of one improper type.
#[derive(Clone, Debug, Params)]
pub struct ImproperParameters {
    /// Stiffness k.
    #[param(unit = "energy", at_least = 0.0)]
    k: f64,
    /// Equilibrium angle φ₀, not negative with `Lammps` and `Hoomd`.
    #[param(unit = "degrees", default = 0.0, at_least = -180.0, at_most = 180.0)]
    phi0_deg: f64,
}

/// Coefficient k of U = k (φ − φ₀)², φ₀ in radians, and whether φ is its absolute value (1) or not (0).
#[derive(Debug, PairParams)]
pub struct HarmonicImproper<real> {
    #[param(at_least = 0.0)]
    k: real,
    #[param(at_least = -3.14159265, at_most = 3.14159265)]
    phi0: real,
    #[param(at_least = 0.0, at_most = 1.0)]
    absolute: real,
}

impl RowInput for ImproperParameters {
    type Settings = ImproperSettings;
    type Row = HarmonicImproper<f64>;
    fn row(&self, settings: &ImproperSettings) -> std::result::Result<HarmonicImproper<f64>, String> {
        let (factor, absolute) = match settings.convention {
            ImproperConvention::Paper => (1.0, 0.0),
            ImproperConvention::Half => (0.5, 0.0),
            ImproperConvention::Lammps => (1.0, 1.0),
            ImproperConvention::Hoomd => (0.5, 1.0),
        };
        if absolute > 0.0 && self.phi0_deg < 0.0 {
            return Err(format!("phi0_deg is {}, but |φ| of this convention is never negative", self.phi0_deg));
        }
        Ok(HarmonicImproper { k: factor * self.k, phi0: self.phi0_deg.to_radians(), absolute })
    }
}

/// Harmonic improper: U(φ) = k (φ − φ₀)², with φ − φ₀ wrapped to −180° … 180° and k in energy per rad².
///
/// It keeps four particles in a plane (φ₀ = 0) or at a given chirality. φ is the angle of a dihedral of the four particles:
/// between the planes of the first three and of the last three. `convention` gives the forms of other programs:
///
/// | `convention` | U | |
/// |---|---|---|
/// | `Paper` | k (φ − φ₀)² | CHARMM |
/// | `Half` | ½ k (φ − φ₀)² | GROMACS, GROMOS |
/// | `Lammps` | k (\|φ\| − φ₀)² | LAMMPS `improper_style harmonic` |
/// | `Hoomd` | ½ k (\|φ\| − φ₀)² | HOOMD-blue `improper.Harmonic` |
///
/// LAMMPS and HOOMD-blue do not distinguish mirror images: with 0 < φ₀ < 180° there are two minima, and the force jumps at
/// φ = 0 and ±180°. With `Paper` and `Half` the force jumps opposite to φ₀, where the barrier is that of half a turn. For
/// φ₀ = 0 all conventions agree up to the factor.
///
/// Reference: van Gunsteren and Berendsen, Groningen Molecular Simulation (GROMOS) Library Manual, Biomos, 1987.
///
/// ```ron
/// HarmonicImproper(impropers: { "A-A-A-A": (k: 2.0), "A-A-A-B": (k: 1.0, phi0_deg: 35.0), "A-A-B-B": (k: 0.5),
///     "A-B-B-B": (k: 0.5, phi0_deg: 180.0), "B-B-B-B": (k: 0.2, phi0_deg: -90.0) })
/// ```
#[improper_potential("HarmonicImproper", input = ImproperParameters)]
fn harmonic_improper(phi: real, p: &HarmonicImproper<real>) -> (real, real) {
    let mirrored = p.absolute > 0.5 && phi < 0.0;
    let sign = if mirrored { -1.0 } else { 1.0 };
    let x = within_half_turn(sign * phi - p.phi0);
    (2.0 * p.k * x * sign, p.k * x * x)
}
