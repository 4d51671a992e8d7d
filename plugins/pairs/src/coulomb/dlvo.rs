//! Colloids: attraction of Hamaker, repulsion of double layers.

use galamost_plugin_api::prelude::*;

/// Parameters of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct DlvoInput {
    /// Hamaker constant A.
    #[param(unit = "energy", at_least = 0.0)]
    hamaker: f64,
    /// Radii a₁ and a₂ of the particles.
    #[param(unit = "length", above = 0.0)]
    radii: [f64; 2],
    /// Strength Z of the repulsion.
    #[param(name = "Z", unit = "energy/length", at_least = 0.0)]
    z: f64,
    /// Inverse Debye length κ.
    #[param(unit = "1/length", at_least = 0.0)]
    kappa: f64,
}

/// Coefficients A/6, a₁a₂, a₁ + a₂, (a₁ − a₂)², Z a₁a₂/(a₁ + a₂) and κ.
#[derive(Debug, PairParams)]
pub struct Dlvo<real> {
    sixth: real,
    product: real,
    sum: real,
    difference2: real,
    repulsion: real,
    kappa: real,
}

impl RowInput for DlvoInput {
    type Settings = NoSettings;
    type Row = Dlvo<f64>;
    fn row(&self, _: &NoSettings) -> std::result::Result<Dlvo<f64>, String> {
        let [a, b] = self.radii;
        Ok(Dlvo {
            sixth: self.hamaker / 6.0,
            product: a * b,
            sum: a + b,
            difference2: (a - b) * (a - b),
            repulsion: self.z * a * b / (a + b),
            kappa: self.kappa,
        })
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Option<Dlvo<f64>> {
        let radii = [0.05 + 0.1 * random(), 0.05 + 0.1 * random()];
        DlvoInput { hamaker: random(), radii, z: 50.0 * random(), kappa: 1.0 + 3.0 * random() }.row(&NoSettings).ok()
    }
}

/// DLVO pair potential of colloids: U(r) = −(A/6)[2p/x + 2p/y + ln(x/y)] + Z p/s · exp(−κ(r − s)), r < r_cut, with
/// s = a₁ + a₂, p = a₁a₂, x = r² − s², y = r² − (a₁ − a₂)².
///
/// The first term is the van der Waals attraction of two spheres (Hamaker), the second the screened repulsion of their surfaces
/// in the approximation of Derjaguin. For surfaces of equal potential ψ, Z = 64π ε_r ε₀ (kT/e)² tanh²(eψ/4kT). The attraction
/// diverges at contact, r = s. Particles that touch end the run with an error that names one of them, so Z must be large enough to
/// keep particles apart, or another potential must.
///
/// Reference: J. N. Israelachvili, Intermolecular and Surface Forces, 3rd ed. (2011), chapters 13 and 14; H. C. Hamaker,
/// Physica 4 (1937) 1058, doi:10.1016/S0031-8914(37)80203-7. The same form is `DLVO` in HOOMD-blue.
///
/// ```ron
/// Dlvo(r_cut: 3.0, mode: ShiftEnergy, pairs: {
///     ("A", "A"): (hamaker: 0.5, radii: [0.2, 0.2], Z: 60.0, kappa: 3.0),
///     ("A", "B"): (hamaker: 0.5, radii: [0.2, 0.3], Z: 60.0, kappa: 3.0),
///     ("B", "B"): (hamaker: 0.4, radii: [0.3, 0.3], Z: 50.0, kappa: 2.5),
/// })
/// ```
#[pair_potential("Dlvo", input = DlvoInput)]
fn dlvo(r2: real, p: &Dlvo<real>) -> (real, real) {
    let r = r2.sqrt();
    // bounded for overlapping particles, whose force of 10¹² A/s then ends the run
    let x = (r2 - p.sum * p.sum).max(1e-6 * p.sum * p.sum);
    let y = (r2 - p.difference2).max(1e-6 * p.sum * p.sum);
    let layer = p.repulsion * (-p.kappa * (r - p.sum)).exp();
    let attraction = p.sixth * (2.0 * p.product / x + 2.0 * p.product / y + (x / y).ln());
    let slope = p.sixth * ((4.0 * p.product / x - 2.0) / x + (4.0 * p.product / y + 2.0) / y);
    (p.kappa * layer / r - slope, layer - attraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_particles_have_finite_forces_that_no_run_survives() {
        let input = DlvoInput { hamaker: 0.5, radii: [0.2, 0.2], z: 60.0, kappa: 3.0 };
        let row = input.row(&NoSettings).expect("valid");
        for r in [1e-3, 0.1, 0.4] {
            let (f, u) = dlvo(r * r, &row);
            assert!(f < -1e9 && f.is_finite() && u.is_finite(), "r = {r}: {f:e} {u:e}");
        }
    }
}
