//! The DLVO potential of charged colloids.

use galamost_plugin_api::prelude::*;

/// Parameters of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct DlvoInput {
    /// Hamaker constant A.
    #[param(name = "A", unit = "energy", at_least = 0.0)]
    hamaker: f64,
    /// Strength Z of the screened repulsion.
    #[param(name = "Z", unit = "energy/length", at_least = 0.0)]
    z: f64,
    /// Inverse screening length κ.
    #[param(unit = "1/length", above = 0.0)]
    kappa: f64,
    /// Radius a₁.
    #[param(unit = "length", above = 0.0)]
    a1: f64,
    /// Radius a₂.
    #[param(unit = "length", above = 0.0)]
    a2: f64,
}

/// Coefficients A/6, 2a₁a₂, (a₁ + a₂)², (a₁ − a₂)², Z a₁a₂/(a₁ + a₂) e^(κ(a₁ + a₂)) and κ.
#[derive(Debug, PairParams)]
pub struct Dlvo<real> {
    hamaker: real,
    product: real,
    sum2: real,
    difference2: real,
    repulsion: real,
    kappa: real,
}

impl RowInput for DlvoInput {
    type Settings = NoSettings;
    type Row = Dlvo<f64>;
    fn row(&self, _: &NoSettings) -> std::result::Result<Dlvo<f64>, String> {
        let (sum, product) = (self.a1 + self.a2, self.a1 * self.a2);
        Ok(Dlvo {
            hamaker: self.hamaker / 6.0,
            product: 2.0 * product,
            sum2: sum * sum,
            difference2: (self.a1 - self.a2).powi(2),
            repulsion: self.z * product / sum * (self.kappa * sum).exp(),
            kappa: self.kappa,
        })
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Option<Dlvo<f64>> {
        // radii whose contact is below the distances of the tests
        let (a1, a2) = (0.2 + 0.1 * random(), 0.2 + 0.1 * random());
        DlvoInput { hamaker: 0.5 + random(), z: 5.0 + 5.0 * random(), kappa: 1.0 + random(), a1, a2 }
            .row(&NoSettings)
            .ok()
    }
}

/// DLVO pair potential of spheres with radii a₁ and a₂: van der Waals attraction (Hamaker) and screened repulsion (Derjaguin),
/// r < r_cut.
///
/// U(r) = −(A/6) {2a₁a₂/[r² − (a₁ + a₂)²] + 2a₁a₂/[r² − (a₁ − a₂)²] + ln([r² − (a₁ + a₂)²]/[r² − (a₁ − a₂)²])}
/// + Z a₁a₂/(a₁ + a₂) exp(−κ(r − a₁ − a₂)).
///
/// The attraction diverges at contact, r = a₁ + a₂: start without overlaps, and choose Z so that the barrier is many kT high.
/// The form is that of `DLVO` in HOOMD-blue.
///
/// Reference: J. N. Israelachvili, Intermolecular and Surface Forces, 3rd ed., Academic Press, 2011, p. 317.
///
/// ```ron
/// Dlvo(r_cut: 2.5, mode: ShiftEnergy, pairs: {
///     ("A", "A"): (A: 1.0, Z: 80.0, kappa: 10.0, a1: 0.4, a2: 0.4),
///     ("A", "B"): (A: 1.0, Z: 80.0, kappa: 10.0, a1: 0.4, a2: 0.35),
///     ("B", "B"): (A: 1.0, Z: 80.0, kappa: 10.0, a1: 0.35, a2: 0.35),
/// })
/// ```
#[pair_potential("Dlvo", input = DlvoInput)]
fn dlvo(r2: real, p: &Dlvo<real>) -> (real, real) {
    let inv = r2.rsqrt();
    let near = 1.0 / (r2 - p.sum2);
    let far = 1.0 / (r2 - p.difference2);
    let repulsion = p.repulsion * (-p.kappa * r2 * inv).exp();
    let attraction = p.hamaker * (p.product * (near + far) + (far / near).ln());
    let slope = p.hamaker * (p.product * (near * near + far * far) - near + far);
    (p.kappa * repulsion * inv - 2.0 * slope, repulsion - attraction)
}
